//! Parquet and Arrow IPC, in and out. The files are written here with the crates that read them; `python/tests` has
//! the program read those of pyarrow and Polars.

use std::fs::{self, File};
use std::process::{Command, Stdio};
use std::sync::Arc;

use arrow_array::builder::{Int64Builder, ListBuilder, MapBuilder, StringBuilder, StringDictionaryBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Float64Array, Int64Array, LargeStringArray, RecordBatch,
    StringArray, StringViewArray, StructArray, TimestampMicrosecondArray,
};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use super::folder::{Folder, story, verdicts};

/// A batch whose columns may all be null.
fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let fields = columns.iter().map(|(name, column)| Field::new(*name, column.data_type().clone(), true));
    let schema = Schema::new(fields.collect::<Vec<_>>());
    RecordBatch::try_new(Arc::new(schema), columns.into_iter().map(|(_, column)| column).collect()).unwrap()
}

fn write_parquet(folder: &Folder, name: &str, batch: &RecordBatch, compression: Compression) {
    let properties = WriterProperties::builder().set_compression(compression).build();
    let file = File::create(folder.path().join(name)).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

fn read_parquet(folder: &Folder, name: &str) -> RecordBatch {
    let file = File::open(folder.path().join(name)).unwrap();
    let reader =
        ParquetRecordBatchReaderBuilder::try_new(file).unwrap().with_batch_size(1 << 20).build().unwrap();
    let batches: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
    assert!(batches.len() <= 1, "more rows than a batch");
    batches.into_iter().next().unwrap_or_else(|| {
        let file = File::open(folder.path().join(name)).unwrap();
        RecordBatch::new_empty(Arc::clone(ParquetRecordBatchReaderBuilder::try_new(file).unwrap().schema()))
    })
}

fn strings(batch: &RecordBatch, column: &str) -> Vec<Option<String>> {
    let column = batch.column_by_name(column).unwrap();
    column.as_string::<i32>().iter().map(|value| value.map(str::to_owned)).collect()
}

fn texts(values: [&str; 3]) -> Vec<Option<String>> {
    values.map(|value| (!value.is_empty()).then(|| value.to_owned())).into()
}

/// Two unique articles and a copy of the first.
fn three() -> RecordBatch {
    let bodies = [story(1, ""), story(2, ""), story(1, "")];
    batch(vec![
        ("id", Arc::new(Int64Array::from(vec![7, 8, 9]))),
        ("body", Arc::new(StringArray::from_iter_values(bodies))),
        ("paid", Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)]))),
        ("score", Arc::new(Float64Array::from(vec![Some(0.5), Some(f64::NAN), None]))),
    ])
}

const EXPECTED: [&str; 3] = ["7 unique -", "8 unique -", "9 exact-duplicate 7"];

#[test]
fn parquet_is_read_whatever_compresses_its_pages() {
    let folder = Folder::new("parquet");
    let zstd = Compression::ZSTD(ZstdLevel::default());
    let gzip = Compression::GZIP(Default::default());
    for (at, compression) in
        [Compression::UNCOMPRESSED, Compression::SNAPPY, zstd, gzip, Compression::LZ4_RAW]
            .into_iter()
            .enumerate()
    {
        let name = format!("{at}.parquet");
        write_parquet(&folder, &name, &three(), compression);
        let printed = folder.run(&["file", &name]);
        assert_eq!(verdicts(&printed.stdout), EXPECTED, "{}", printed.stderr);
        assert!(
            printed.stderr.contains(&format!("{name} is Parquet; id, body; not used: paid, score")),
            "{}",
            printed.stderr
        );
    }
    // The name does not matter.
    fs::rename(folder.path().join("0.parquet"), folder.path().join("dump")).unwrap();
    assert_eq!(verdicts(&folder.run(&["file", "dump", "--quiet"]).stdout), EXPECTED);
}

#[test]
fn arrow_ipc_is_read_as_a_file_and_as_a_stream() {
    let folder = Folder::new("arrow");
    let three = three();
    let file = File::create(folder.path().join("a.arrow")).unwrap();
    let mut writer = arrow_ipc::writer::FileWriter::try_new(file, &three.schema()).unwrap();
    writer.write(&three).unwrap();
    writer.finish().unwrap();
    let file = File::create(folder.path().join("a.arrows")).unwrap();
    let mut writer = arrow_ipc::writer::StreamWriter::try_new(file, &three.schema()).unwrap();
    writer.write(&three).unwrap();
    writer.finish().unwrap();
    for name in ["a.arrow", "a.arrows"] {
        let printed = folder.run(&["file", name]);
        assert_eq!(verdicts(&printed.stdout), EXPECTED, "{}", printed.stderr);
        assert!(printed.stderr.contains(&format!("{name} is Arrow IPC; id, body")), "{}", printed.stderr);
    }
    // A pipe cannot be read from its end.
    let bytes = fs::read(folder.path().join("a.arrow")).unwrap();
    let refusal = folder.start(&["file", "-"], &bytes).1.stderr;
    assert!(refusal.contains("- is Arrow IPC; it cannot be read from a pipe"), "{refusal}");
}

#[test]
fn every_type_of_column_has_a_defined_outcome() {
    let folder = Folder::new("columnar-types");
    let body = |number| story(number, "");
    let rows = 3;
    let content = StructArray::from(vec![(
        Arc::new(Field::new("text", DataType::LargeUtf8, true)),
        Arc::new(LargeStringArray::from_iter_values([body(1), body(2), body(1)])) as ArrayRef,
    )]);
    let mut tags = ListBuilder::new(StringBuilder::new());
    for _ in 0..rows {
        tags.append_value([Some("a"), None]);
    }
    let mut section = StringDictionaryBuilder::<Int32Type>::new();
    section.append_value("news");
    section.append_null();
    section.append_value("news");
    let published = TimestampMicrosecondArray::from(vec![Some(1_772_431_800_000_000), None, None]);
    let mut counts = MapBuilder::new(None, Int64Builder::new(), Int64Builder::new());
    for row in 0..rows {
        counts.keys().append_value(row);
        counts.values().append_value(row);
        counts.append(true).unwrap();
    }
    let all = batch(vec![
        ("id", Arc::new(StringViewArray::from_iter_values(["a", "b", "c"]))),
        ("content", Arc::new(content)),
        ("tags", Arc::new(tags.finish())),
        ("section", Arc::new(section.finish())),
        ("published_at", Arc::new(published.with_timezone("Europe/Berlin"))),
        ("counts", Arc::new(counts.finish())),
        ("raw", Arc::new(BinaryArray::from_iter([Some(&b"text"[..]), Some(b"\xff\xfe"), None]))),
    ]);
    write_parquet(&folder, "a.parquet", &all, Compression::SNAPPY);
    let printed = folder.run(&["file", "a.parquet"]);
    assert_eq!(
        verdicts(&printed.stdout),
        ["a unique -", "b unique -", "c exact-duplicate a"],
        "{}",
        printed.stderr
    );
    assert!(
        printed.stderr.contains("id, body = content.text, published_at; not used: tags, section, raw; cannot be read: counts (Map("),
        "{}",
        printed.stderr
    );
    let lines: Vec<serde_json::Value> =
        printed.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["article"]["published_at"], "2026-03-02T06:10:00Z");
    assert_eq!(lines[0]["article"]["tags"], serde_json::json!(["a", null]));
    assert_eq!(lines[0]["article"]["section"], "news");
    assert_eq!(lines[1]["article"].get("section"), None);
    // Bytes that are no text are a missing value, not another text.
    assert_eq!(lines[0]["article"]["raw"], "text");
    assert_eq!(lines[1]["article"].get("raw"), None);
    // Objects and lists become JSON in a table.
    folder.run(&["file", "a.parquet", "--output", "a.csv"]);
    assert!(folder.read("a.csv").contains("\"[\"\"a\"\",null]\""), "{}", folder.read("a.csv"));
}

#[test]
fn rows_without_id_or_text_are_errors_of_their_own() {
    let folder = Folder::new("columnar-nulls");
    let ids = [Some("1"), None, Some(""), Some("4")];
    let bodies = [Some(story(1, "")), Some(story(2, "")), Some(story(3, "")), None];
    let rows = batch(vec![
        ("id", Arc::new(StringArray::from_iter(ids))),
        ("body", Arc::new(StringArray::from_iter(bodies))),
    ]);
    write_parquet(&folder, "a.parquet", &rows, Compression::SNAPPY);
    let (success, printed) = folder.start(&["file", "a.parquet"], b"");
    assert!(!success, "three of four were refused");
    assert_eq!(printed.stdout.lines().count(), 1);
    assert!(printed.stderr.contains("a.parquet:2: no-id"), "{}", printed.stderr);
    assert!(printed.stderr.contains("2 no-id"), "{}", printed.stderr);
    assert!(printed.stderr.contains("a.parquet:4: "), "{}", printed.stderr);
    // pandas turns whole numbers with a gap into floating-point ones.
    let ids = Float64Array::from(vec![Some(1.0), Some(f64::NAN)]);
    let bodies = StringArray::from_iter_values([story(1, ""), story(2, "")]);
    let rows = batch(vec![("id", Arc::new(ids)), ("body", Arc::new(bodies))]);
    write_parquet(&folder, "c.parquet", &rows, Compression::SNAPPY);
    let refusal = folder.fail(&["file", "c.parquet"]);
    assert!(refusal.contains("c.parquet:1: wrong-type: field \"id\" is"), "{refusal}");
    assert!(refusal.contains("c.parquet:2: no-id"), "{refusal}");
    // Without a column of ids, rows are named by their number.
    let rows = batch(vec![("text", Arc::new(StringArray::from_iter_values([story(1, ""), story(1, "")])))]);
    write_parquet(&folder, "b.parquet", &rows, Compression::SNAPPY);
    let printed = folder.run(&["file", "b.parquet"]);
    assert_eq!(
        verdicts(&printed.stdout),
        ["b.parquet:1 unique -", "b.parquet:2 exact-duplicate b.parquet:1"]
    );
}

#[test]
fn damaged_files_are_named_and_never_a_panic() {
    let folder = Folder::new("columnar-damage");
    write_parquet(&folder, "a.parquet", &three(), Compression::SNAPPY);
    let whole = fs::read(folder.path().join("a.parquet")).unwrap();
    for cut in [4, 8, whole.len() / 2, whole.len() - 1] {
        folder.write("cut.parquet", &whole[..cut]);
        let refusal = folder.fail(&["file", "cut.parquet"]);
        assert!(refusal.contains("cannot read cut.parquet"), "{refusal}");
    }
    for at in (4..whole.len()).step_by(37) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0xff;
        folder.write("bent.parquet", &damaged);
        let (_, printed) = folder.start(&["file", "bent.parquet", "--quiet"], b"");
        assert!(!printed.stderr.contains("RUST_BACKTRACE"), "byte {at}: {}", printed.stderr);
    }
    folder.write("text.parquet", b"id,text\n1,a\n");
    let refusal = folder.fail(&["file", "text.parquet"]);
    assert!(refusal.contains("it does not begin as Parquet does"), "{refusal}");
    folder.write("old.feather", b"FEA1 and more");
    assert!(folder.fail(&["file", "old.feather"]).contains("Feather version 1; write it again"));
}

#[test]
fn verdicts_and_clusters_are_written_as_parquet_with_the_types_of_the_input() {
    let folder = Folder::new("parquet-out");
    write_parquet(&folder, "a.parquet", &three(), Compression::SNAPPY);
    let arguments = ["file", "a.parquet", "--output", "out.parquet", "--clusters", "clusters.parquet"];
    folder.run(&arguments);
    let out = read_parquet(&folder, "out.parquet");
    let schema = out.schema();
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(
        names,
        [
            "id",
            "body",
            "paid",
            "score",
            "verdict",
            "match_type",
            "duplicate_of",
            "similarity",
            "confidence",
            "cluster_id"
        ]
    );
    assert_eq!(out.column(0).as_primitive::<Int64Type>().values(), &[7, 8, 9]);
    assert_eq!(out.column(2).as_boolean().iter().collect::<Vec<_>>(), [Some(true), None, Some(false)]);
    assert_eq!(
        out.column(3).as_primitive::<Float64Type>().iter().collect::<Vec<_>>(),
        [Some(0.5), None, None]
    );
    assert_eq!(strings(&out, "verdict"), texts(["unique", "unique", "exact-duplicate"]));
    assert_eq!(strings(&out, "duplicate_of"), texts(["", "", "7"]));
    assert_eq!(out.column_by_name("similarity").unwrap().as_primitive::<Float64Type>().value(2), 1.0);
    let clusters = read_parquet(&folder, "clusters.parquet");
    assert_eq!(clusters.num_rows(), 2);
    assert_eq!(clusters.column_by_name("size").unwrap().as_primitive::<Int64Type>().values(), &[2, 2]);
    // What was written is read again.
    let again = folder.run(&["file", "out.parquet", "--quiet"]);
    assert_eq!(verdicts(&again.stdout), EXPECTED);
    // Other inputs have texts. Standard output takes Parquet too.
    folder.write("a.csv", format!("id,text\n1,{}\n", story(1, "")).as_bytes());
    folder.run(&["file", "a.csv", "--output", "csv.parquet"]);
    assert_eq!(strings(&read_parquet(&folder, "csv.parquet"), "id"), [Some("1".to_owned())]);
    // A column has one type: of inputs that disagree, the text.
    folder.run(&["file", "a.parquet", "a.csv", "--output", "both.parquet"]);
    assert_eq!(strings(&read_parquet(&folder, "both.parquet"), "id").len(), 4);
    // No row that matches, and still a table.
    folder.run(&["file", "a.csv", "--only", "duplicate", "--output", "none.parquet"]);
    let none = read_parquet(&folder, "none.parquet");
    assert_eq!((none.num_rows(), none.num_columns()), (0, 8));
}

#[test]
fn parquet_is_written_whole_or_not_at_all() {
    let folder = Folder::new("parquet-whole");
    write_parquet(&folder, "a.parquet", &three(), Compression::SNAPPY);
    let refusal = folder.fail(&["file", "a.parquet", "--output", "b.parquet.gz"]);
    assert!(refusal.contains("Parquet is compressed inside"), "{refusal}");
    // A run that fails on the way leaves a partial file that can be read.
    let rows = batch(vec![
        ("id", Arc::new(StringArray::from(vec![Some("1"), None]))),
        ("body", Arc::new(StringArray::from_iter_values([story(1, ""), story(2, "")]))),
    ]);
    write_parquet(&folder, "c.parquet", &rows, Compression::SNAPPY);
    let refusal = folder.fail(&["file", "c.parquet", "--strict", "--output", "out.parquet"]);
    assert!(refusal.contains("no-id"), "{refusal}");
    let partial = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let partial = partial.map(|name| name.into_string().unwrap()).find(|name| name.contains(".partial-"));
    assert_eq!(strings(&read_parquet(&folder, &partial.unwrap()), "id"), [Some("1".to_owned())]);
    assert!(!folder.path().join("out.parquet").exists());
}

// A batch of rows is held at a time, so a row group of any size fits.
#[test]
fn a_row_group_is_not_held_in_memory() {
    let folder = Folder::new("columnar-large");
    let rows = 20_000;
    let ids = Arc::new(Int64Array::from_iter_values(0..rows));
    let bodies = (0..rows).map(|row| format!("{row} {}", "padding of a long page ".repeat(400)));
    let bodies = Arc::new(StringArray::from_iter_values(bodies));
    write_parquet(&folder, "a.parquet", &batch(vec![("id", ids), ("text", bodies)]), Compression::SNAPPY);
    // 184 MB of text in one row group. Nothing of it is judged, only read.
    let mut child = Command::new(env!("CARGO_BIN_EXE_samestory"))
        .args(["file", "a.parquet", "--field", "id=missing", "--quiet"])
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next());
        peak = peak.max(kib.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0));
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(peak > 1_000 && peak < 130_000, "{peak} KiB");
}
