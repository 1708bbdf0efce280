//! `samestory file` fed with what people have, and giving what they can open: encodings, records under a key, missing ids,
//! tables and compression out, the published schema, and an end that says what happened.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::Command;

use encoding_rs::{Encoding, GBK, SHIFT_JIS, UTF_16LE, WINDOWS_1252};
use flate2::read::MultiGzDecoder;
use serde_json::{Value, json};

use super::folder::{Folder, story, verdicts};

fn ndjson(articles: &[(&str, String)]) -> String {
    articles.iter().map(|(id, text)| json!({"id": id, "body": text}).to_string() + "\n").collect()
}

/// Two unique articles and a copy of the first.
fn three() -> Vec<(&'static str, String)> {
    vec![("a", story(1, "")), ("b", story(2, "")), ("c", story(1, ""))]
}

const EXPECTED: [&str; 3] = ["a unique -", "b unique -", "c exact-duplicate a"];

fn encoded(text: &str, encoding: &'static Encoding) -> Vec<u8> {
    if encoding == UTF_16LE {
        return [vec![0xff, 0xfe], text.encode_utf16().flat_map(u16::to_le_bytes).collect()].concat();
    }
    let (bytes, _, unmappable) = encoding.encode(text);
    assert!(!unmappable);
    bytes.into_owned()
}

// A dump in latin-1 lost every article with an umlaut, and one in UTF-16 was refused.
#[test]
fn files_in_other_encodings_are_read_and_the_encoding_is_said() {
    let folder = Folder::new("encodings");
    let german = "Die Fähre zur Insel fährt ab Montag wieder, teilte die Behörde in Zürich mit. Über die größere Brücke wurde nicht gesprochen.";
    let japanese = "島へのフェリーは月曜日から運航を再開すると、市は金曜日に発表した。橋の工事の費用については話し合われなかった。";
    let chinese = "市政府星期五宣布,前往该岛的渡轮将从星期一起恢复运行。没有讨论大桥工程的费用。";
    for (name, text, encoding) in [
        ("latin.csv", german, WINDOWS_1252),
        ("sjis.csv", japanese, SHIFT_JIS),
        ("gbk.csv", chinese, GBK),
        ("utf16.csv", german, UTF_16LE),
    ] {
        folder.write(name, &encoded(&format!("id;text\n1;{text}\n2;{text}\n"), encoding));
        for arguments in [vec!["file", name], vec!["file", name, "--encoding", encoding.name()]] {
            let printed = folder.run(&arguments);
            assert_eq!(
                verdicts(&printed.stdout),
                ["1 unique -", "2 exact-duplicate 1"],
                "{}",
                printed.stderr
            );
            assert!(printed.stdout.contains(text), "{name}: {}", printed.stdout);
            assert!(printed.stderr.contains(&format!(" in {}", encoding.name())), "{}", printed.stderr);
            assert_eq!(printed.stderr.contains("guessed; --encoding"), arguments.len() == 2);
        }
    }
    let line = json!({"id": 1, "body": japanese}).to_string();
    let piped = folder.pipe(&["file", "-"], &encoded(&line, SHIFT_JIS));
    assert!(piped.stdout.contains(japanese), "{}", piped.stderr);
    let refusal = folder.fail(&["file", "latin.csv", "--encoding", "klingon"]);
    assert!(refusal.contains("use a name such as utf-8, latin1"), "{refusal}");
}

// The answer of a news API is one object; every file of it was one dead letter, "missing field id".
#[test]
fn records_under_a_key_are_found_and_suggested() {
    let folder = Folder::new("records");
    let articles: Vec<Value> = three()
        .iter()
        .map(|(id, text)| json!({"source": {"id": null, "name": "x"}, "url": format!("https://x.example/{id}"), "title": "T", "content": text}))
        .collect();
    let page = json!({"status": "ok", "totalResults": 3, "articles": articles, "after": {"articles": [1]}});
    let deep = json!({"response": {"meta": [1, 2], "results": articles}});
    let expected = [
        "https://x.example/a unique -",
        "https://x.example/b unique -",
        "https://x.example/c exact-duplicate https://x.example/a",
    ];
    for (name, text, key) in [
        ("flat.json", page.to_string(), "articles"),
        ("pretty.json", format!("{page:#}\n"), "articles"),
        ("deep.json", deep.to_string(), "response.results"),
        ("named.ndjson", page.to_string(), "articles"),
    ] {
        folder.write(name, text.as_bytes());
        let refusal = folder.fail(&["file", name]);
        let suggested = format!("{name} has its records under the key \"{key}\"; pass --records {key}");
        assert!(refusal.contains(&suggested), "{refusal}");
        let printed = folder.run(&["file", name, "--records", key]);
        assert_eq!(verdicts(&printed.stdout), expected, "{name}: {}", printed.stderr);
    }
    // Pages one after the other.
    folder.write("pages.json", format!("{page}\n{page}").as_bytes());
    let printed = folder.run(&["file", "pages.json", "--records", "articles", "--quiet"]);
    assert_eq!(printed.stdout.lines().count(), 6);
    let refusal = folder.fail(&["file", "flat.json", "--records", "items"]);
    assert!(
        refusal.contains(
            "no list of records under \"items\"; the object has status, totalResults, articles, after"
        ),
        "{refusal}"
    );
    let cut = page.to_string();
    folder.write("cut.json", &cut.as_bytes()[..cut.len() - 40]);
    let printed = folder.start(&["file", "cut.json", "--records", "articles"], b"").1;
    assert!(
        printed.stderr.contains("the JSON object is not closed") || printed.stderr.contains("not JSON"),
        "{}",
        printed.stderr
    );
    folder.write("a.csv", b"id,text\na,b\n");
    assert!(folder.fail(&["file", "a.csv", "--records", "x"]).contains("--records is for JSON"));
}

// One quote too many swallowed the rest of a table without a word.
#[test]
fn a_quote_that_is_not_closed_is_an_error_with_its_line() {
    let folder = Folder::new("quotes");
    let rows: String = (0..50).map(|at| format!("r{at},\"{}\"\n", story(at, ""))).collect();
    folder.write(
        "a.csv",
        format!("id,text\n{rows}bad,\"never closed\nx,{}\ny,{}\n", story(1, ""), story(2, "")).as_bytes(),
    );
    let (success, printed) = folder.start(&["file", "a.csv"], b"");
    assert!(printed.stderr.contains("a.csv:52: undecodable: a quote in the row that begins on line 52 is not closed; the 3 lines to the end"), "{}", printed.stderr);
    assert_eq!(printed.stdout.lines().count(), 50);
    assert!(
        !success
            && printed
                .stderr
                .contains("a.csv ends inside the record that begins on line 52: records may be missing"),
        "{}",
        printed.stderr
    );
    // Quotes inside plain values are text.
    folder.write("b.csv", b"id,text\n1,a 5\" pipe\n2,a 7\" pipe");
    assert_eq!(folder.run(&["file", "b.csv", "--quiet"]).stdout.lines().count(), 2);
    folder.write("c.csv", b"id,text\n1,\"open\n2,x,\"y\",z\n3,fine\n");
    let printed = folder.start(&["file", "c.csv"], b"").1;
    assert!(printed.stderr.contains("covers 2 lines: a quote is missing"), "{}", printed.stderr);
}

#[test]
fn articles_without_ids_are_named_by_line_in_json_too() {
    let folder = Folder::new("no-ids");
    folder.write("a.ndjson", b"{\"text\":\"one\"}\n{\"text\":\"two\"}\n");
    let printed = folder.run(&["file", "a.ndjson"]);
    assert_eq!(verdicts(&printed.stdout), ["a.ndjson:1 unique -", "a.ndjson:2 unique -"]);
    assert!(
        printed.stderr.contains("a.ndjson is NDJSON; id = file and line, body = text"),
        "{}",
        printed.stderr
    );
    // Ids that are missing here and there are errors.
    folder.write("b.ndjson", b"{\"id\":1,\"text\":\"one\"}\n{\"text\":\"two\"}\n");
    assert!(folder.fail(&["file", "b.ndjson"]).contains("b.ndjson:2: no-id"));
    assert!(folder.fail(&["file", "a.ndjson", "--field", "id=nid"]).contains("2 no-id"));
}

#[test]
fn the_first_line_says_which_column_was_read_as_what() {
    let folder = Folder::new("read-as");
    folder.write("a.csv", b"NID;Article Body;Headline;Rubrik;date\n1;text;T;news;2026-01-02\n");
    let first = |arguments: &[&str]| {
        folder.start(arguments, b"").1.stderr.lines().next().unwrap_or_default().to_owned()
    };
    assert_eq!(
        first(&["file", "a.csv", "--field", "id=NID"]),
        "samestory: a.csv is CSV with semicolons; id = NID, body = Article Body, title = Headline, published_at = date; not used: Rubrik"
    );
    folder.write("b.ndjson", b"{\"guid\":1,\"x\":2,\"content\":{\"text\":\"t\"}}\n");
    assert_eq!(
        first(&["file", "b.ndjson"]),
        "samestory: b.ndjson is NDJSON; id = guid, body = content.text; not used: x"
    );
    folder.write("c.csv", b"id,words\n1,text\n");
    assert!(first(&["file", "c.csv"]).contains("NO BODY: name it with --field body=COLUMN; not used: words"));
    // Files that are read alike are named once.
    folder.write("d.csv", &fs::read(folder.path().join("a.csv")).unwrap());
    let printed = folder.run(&["file", "a.csv", "d.csv", "--field", "id=NID"]);
    assert_eq!(printed.stderr.matches(" is CSV").count(), 1, "{}", printed.stderr);
    assert_eq!(folder.run(&["file", "a.csv", "--field", "id=NID", "--quiet"]).stderr, "");
}

fn table(folder: &Folder, name: &str, delimiter: u8) -> Vec<Vec<String>> {
    let bytes = fs::read(folder.path().join(name)).unwrap();
    rows(&bytes, delimiter)
}

/// Parses a table with the parser that the product uses for its input.
fn rows(mut bytes: &[u8], delimiter: u8) -> Vec<Vec<String>> {
    let mut reader = csv_core::ReaderBuilder::new().delimiter(delimiter).build();
    let (mut values, mut ends) = (vec![0; 1 << 20], vec![0; 64]);
    let mut rows = Vec::new();
    loop {
        let (result, read, _, count) = reader.read_record(bytes, &mut values, &mut ends);
        bytes = &bytes[read..];
        match result {
            csv_core::ReadRecordResult::Record => {
                let starts = std::iter::once(0).chain(ends[..count].iter().copied());
                let row = starts.zip(&ends[..count]);
                rows.push(
                    row.map(|(from, &to)| String::from_utf8(values[from..to].to_vec()).unwrap()).collect(),
                );
            }
            csv_core::ReadRecordResult::End => return rows,
            csv_core::ReadRecordResult::InputEmpty => bytes = &[],
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_table_goes_out_with_its_own_columns_and_the_verdict() {
    let folder = Folder::new("tables-out");
    let text = story(1, "He said: \"no\", twice;\nand left.");
    folder.write(
        "a.csv",
        format!("nid,story_text,verdict\n1,\"{0}\",old\n2,\"{0}\",old\n", text.replace('"', "\"\""))
            .as_bytes(),
    );
    let map = ["--field", "id=nid", "--field", "body=story_text"];
    let run = |more: &[&str]| folder.run(&[&["file", "a.csv"], &map[..], more].concat());
    run(&["--output", "out.csv"]);
    let found = table(&folder, "out.csv", b',');
    let names = [
        "nid",
        "story_text",
        "verdict",
        "samestory_verdict",
        "match_type",
        "duplicate_of",
        "similarity",
        "confidence",
        "cluster_id",
    ];
    assert_eq!(found[0], names);
    assert_eq!(
        (&found[1][1], found[1][3].as_str(), found[2][3].as_str()),
        (&text, "unique", "exact-duplicate")
    );
    assert_eq!(found[2][4..7], ["exact", "1", "1"]);
    assert!(found.len() == 3 && found.iter().all(|row| row.len() == names.len()), "{found:?}");
    // The same table on standard output, with tabs, compressed, and without the articles.
    let piped = folder.pipe(
        &[&["file", "-", "--to", "csv"], &map[..]].concat(),
        &fs::read(folder.path().join("a.csv")).unwrap(),
    );
    assert_eq!(piped.stdout, folder.read("out.csv"));
    assert_eq!(rows(run(&["--to", "tsv"]).stdout.as_bytes(), b'\t'), found);
    run(&["--output", "out.csv.gz"]);
    let mut unpacked = String::new();
    MultiGzDecoder::new(fs::File::open(folder.path().join("out.csv.gz")).unwrap())
        .read_to_string(&mut unpacked)
        .unwrap();
    assert_eq!(unpacked, folder.read("out.csv"));
    let bare = run(&["--to", "csv", "--no-article"]).stdout;
    assert!(
        bare.starts_with("id,verdict,match_type,") && bare.contains("\n2,exact-duplicate,exact,1,"),
        "{bare}"
    );
    // Without an id of its own, a table gets one: `duplicate_of` would name nothing otherwise.
    folder.write("b.csv", b"words\nsome text\nsome text\n");
    let named = folder.run(&["file", "b.csv", "--field", "body=words", "--to", "csv"]).stdout;
    assert!(
        named.starts_with("id,words,verdict")
            && named.contains("b.csv:3,some text,exact-duplicate,exact,b.csv:2"),
        "{named}"
    );
    let empty = folder.pipe(&["file", "-", "--format", "csv", "--to", "csv"], b"id,text\n").stdout;
    assert_eq!(empty, "id,text,verdict,match_type,duplicate_of,similarity,confidence,cluster_id\n");
    assert!(
        folder
            .fail(&["file", "a.csv", "--output", "out.xlsx"])
            .contains("write .csv, which spreadsheet programs open")
    );
}

#[test]
fn json_goes_out_as_a_table_of_its_first_keys() {
    let folder = Folder::new("json-to-table");
    let mut lines = String::from(
        "{\"_id\":1,\"text\":\"a\",\"tags\":[\"x\",2],\"n\":1.50}\n{\"_id\":2,\"text\":null,\"body\":\"b\",\"ok\":true}\n",
    );
    lines += &(3..200).map(|at| format!("{{\"_id\":{at},\"text\":\"t{at}\"}}\n")).collect::<String>();
    lines += "{\"_id\":200,\"text\":\"last\",\"late\":1}\n";
    folder.write("a.ndjson", lines.as_bytes());
    let printed = folder.run(&["file", "a.ndjson", "--output", "out.csv"]);
    let found = table(&folder, "out.csv", b',');
    assert_eq!(found[0][..6], ["_id", "text", "tags", "n", "body", "ok"]);
    assert_eq!(found[1][..6], ["1", "a", "[\"x\",2]", "1.50", "", ""]);
    assert_eq!(found[2][..6], ["2", "", "", "", "b", "true"]);
    assert_eq!(found.len(), 201);
    assert!(
        printed
            .stderr
            .contains("not in the output, because they first appear after its columns were chosen: late"),
        "{}",
        printed.stderr
    );
    let piped = folder.pipe(&["file", "-", "--to", "csv"], lines.as_bytes()).stdout;
    assert_eq!(piped, folder.read("out.csv"));
}

#[test]
fn compressed_outputs_and_tables_of_clusters_can_be_read_again() {
    let folder = Folder::new("compressed-out");
    folder.write("a.ndjson", ndjson(&three()).as_bytes());
    let plain = folder.run(&["file", "a.ndjson"]).stdout;
    for name in ["out.ndjson.gz", "out.ndjson.zst", "out"] {
        folder.run(&[
            "file",
            "a.ndjson",
            "--output",
            name,
            "--clusters",
            "clusters.csv",
            "--dead-letters",
            "dead.gz",
        ]);
        // Our own envelopes are articles to nobody, but they are lines.
        let printed =
            folder.run(&["file", name, "--format", "ndjson", "--field", "body=article.body", "--no-article"]);
        assert_eq!(verdicts(&printed.stdout), EXPECTED, "{name}: {}", printed.stderr);
    }
    assert_eq!(folder.read("out"), plain);
    let clusters = table(&folder, "clusters.csv", b',');
    assert_eq!(clusters[0][..5], ["cluster_id", "size", "canonical_id", "id", "match_type"]);
    assert_eq!(
        clusters[1..].iter().map(|row| row[1..5].to_vec()).collect::<Vec<_>>(),
        [["2", "a", "c", "exact"], ["2", "a", "a", ""]]
    );
}

#[cfg(feature = "rocksdb")]
#[test]
fn a_table_and_a_compressed_output_are_continued_with_a_state() {
    let folder = Folder::new("continued");
    let lines: Vec<String> = three().iter().map(|(id, text)| format!("{id},{text}\n")).collect();
    let run = |state: &str, output: &str| {
        folder.run(&["file", "a.csv", "--state", state, "--output", output, "--quiet"])
    };
    let whole = format!("id,text\n{}", lines.concat());
    folder.write("a.csv", whole.as_bytes());
    run("whole", "whole.csv");
    run("whole-gz", "whole.csv.gz");
    folder.write("a.csv", format!("id,text\n{}", lines[0]).as_bytes());
    run("parts", "parts.csv");
    run("parts-gz", "parts.csv.gz");
    folder.write("a.csv", whole.as_bytes());
    run("parts", "parts.csv");
    run("parts-gz", "parts.csv.gz");
    assert_eq!(folder.read("parts.csv"), folder.read("whole.csv"));
    for name in ["parts.csv.gz", "whole.csv.gz"] {
        let mut text = String::new();
        MultiGzDecoder::new(fs::File::open(folder.path().join(name)).unwrap())
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text, folder.read("whole.csv"), "{name}");
    }
    folder.write("other.csv", format!("id,text,more\nx,{},1\n", story(9, "")).as_bytes());
    let refusal = folder.fail(&["file", "other.csv", "--state", "parts", "--output", "parts.csv"]);
    assert!(refusal.contains("parts.csv has other columns than these inputs"), "{refusal}");
}

/// True if a value is of a type that a JSON Schema names.
pub(crate) fn is_of_json_type(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("type {other}"),
    }
}

/// A violation of a JSON Schema, of the parts of it that ours use.
fn violation(schema: &Value, value: &Value, path: &str) -> Option<String> {
    let is = |kind: &str| is_of_json_type(value, kind);
    let known = [
        "$schema",
        "$id",
        "title",
        "description",
        "type",
        "properties",
        "required",
        "items",
        "anyOf",
        "enum",
        "format",
        "additionalProperties",
        "minimum",
        "maximum",
    ];
    let unknown: Vec<&String> =
        schema.as_object().unwrap().keys().filter(|key| !known.contains(&key.as_str())).collect();
    assert!(unknown.is_empty(), "the validator does not know {unknown:?}");
    let types: Vec<&str> = match &schema["type"] {
        Value::Null => Vec::new(),
        Value::String(kind) => vec![kind],
        kinds => kinds.as_array().unwrap().iter().map(|kind| kind.as_str().unwrap()).collect(),
    };
    if !types.is_empty() && !types.iter().any(|kind| is(kind)) {
        return Some(format!("{path} is {value}, not {types:?}"));
    }
    if let Some(values) = schema["enum"].as_array()
        && !values.contains(value)
    {
        return Some(format!("{path} is {value}, which is none of {values:?}"));
    }
    if let Some(number) = value.as_f64() {
        let bound = |key: &str| schema[key].as_f64();
        if bound("minimum").is_some_and(|least| number < least)
            || bound("maximum").is_some_and(|most| number > most)
        {
            return Some(format!("{path} is {value}, out of bounds"));
        }
    }
    if let Some(variants) = schema["anyOf"].as_array()
        && variants.iter().all(|variant| violation(variant, value, path).is_some())
    {
        return Some(format!("{path} is {value}, which fits no variant"));
    }
    for name in schema["required"].as_array().into_iter().flatten().map(|name| name.as_str().unwrap()) {
        if value.as_object().is_some_and(|object| !object.contains_key(name)) {
            return Some(format!("{path} has no {name}"));
        }
    }
    if let Some(items) = schema.get("items") {
        return value.as_array()?.iter().find_map(|item| violation(items, item, &format!("{path}[]")));
    }
    let properties = schema["properties"].as_object()?;
    value.as_object()?.iter().find_map(|(key, value)| match properties.get(key) {
        Some(property) => violation(property, value, &format!("{path}.{key}")),
        None if schema["additionalProperties"] == json!(false) => {
            Some(format!("{path} has an unknown {key}"))
        }
        None => None,
    })
}

fn schema(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas").join(name);
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

// Not one line of 3,000 fitted the published schema: it required the topic that a file has not.
#[test]
fn every_line_of_every_output_fits_its_published_schema() {
    let folder = Folder::new("schema");
    let demo = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("demo/articles.ndjson")).unwrap();
    let odd = b"{\"id\":\"empty\",\"body\":\"\"}\n{\"id\":\"odd\",\"body\":\"x\",\"language\":\"x-klingon\",\"date\":\"9999-01-01\"}\n{broken\n\xff\n[1]\n{\"id\":\"no body\"}\n";
    folder.write("a.ndjson", &[&demo[..], odd].concat());
    let outputs = [
        "--output",
        "out.ndjson",
        "--clusters",
        "clusters.ndjson",
        "--dead-letters",
        "dead.ndjson",
        "--max-errors",
        "100",
    ];
    folder.write("evidence.toml", b"[output]\nevidence = true\n");
    let mut seen = BTreeSet::new();
    for more in [&[][..], &["--no-article"], &["--config", "evidence.toml"], &["--html", "page.html"]] {
        folder.run(&[&["file", "a.ndjson"], &outputs[..], more].concat());
        for (file, name, least) in [
            ("out.ndjson", "file-verdict.schema.json", 48),
            ("clusters.ndjson", "cluster.schema.json", 10),
            ("dead.ndjson", "file-dead-letter.schema.json", 4),
        ] {
            let schema = schema(name);
            let text = folder.read(file);
            assert!(text.lines().count() >= least, "{file}: {text}");
            for line in text.lines() {
                let value: Value = serde_json::from_str(line).unwrap();
                assert_eq!(violation(&schema, &value, name), None, "{more:?}: {line}");
                seen.extend(value.as_object().unwrap().keys().map(|key| format!("{name} {key}")));
            }
        }
    }
    // The schema promises nothing that is never written.
    for name in ["file-verdict.schema.json", "file-dead-letter.schema.json"] {
        let schema = schema(name);
        assert_eq!(schema["additionalProperties"], json!(false), "{name} would accept anything");
        for property in schema["properties"].as_object().unwrap().keys() {
            assert!(seen.contains(&format!("{name} {property}")), "{name}: {property} is never written");
        }
    }
    // The validator sees mistakes.
    let mut wrong: Value = serde_json::from_str(folder.read("out.ndjson").lines().next().unwrap()).unwrap();
    wrong["similarity"] = json!("0.5");
    assert!(violation(&schema("file-verdict.schema.json"), &wrong, "").is_some());
}

// A run that refused everything ended with 0, and twenty times the same message.
#[test]
fn a_run_that_refused_too_much_fails_and_says_each_error_once() {
    let folder = Folder::new("ends");
    let good: String =
        (0..90).map(|at| json!({"id": at, "text": story(at, "")}).to_string() + "\n").collect();
    let bad = |count: usize| "{\"id\":\"x\",\"words\":\"no body\"}\n".repeat(count);
    folder.write("all.ndjson", bad(50).as_bytes());
    let printed = folder.fail(&["file", "all.ndjson"]);
    assert_eq!(printed.matches("all.ndjson:").count(), 1, "{printed}");
    for part in [
        "50 of 50 records could not be judged",
        "  50 no-body: name the text field",
        "no record could be judged: 50 of 50",
    ] {
        assert!(printed.contains(part), "no {part:?} in {printed}");
    }
    folder.write("some.ndjson", (good.clone() + &bad(10)).as_bytes());
    let (success, printed) = folder.start(&["file", "some.ndjson", "--output", "out.ndjson"], b"");
    assert!(
        !success
            && printed.stderr.contains("10 records were refused, 10.0 % of all and more than --max-errors 5"),
        "{}",
        printed.stderr
    );
    assert_eq!(folder.read("out.ndjson").lines().count(), 90, "what could be judged is written");
    folder.run(&["file", "some.ndjson", "--max-errors", "10%"]);
    folder.write("few.ndjson", (good + &bad(4)).as_bytes());
    folder.run(&["file", "few.ndjson"]);
    assert!(folder.fail(&["file", "few.ndjson", "--max-errors", "0"]).contains("more than --max-errors 0"));
    assert!(folder.fail(&["file", "few.ndjson", "--max-errors", "lots"]).contains("use a percentage"));
    // Nothing to judge is no error.
    folder.write("empty.ndjson", b"");
    assert!(folder.run(&["file", "empty.ndjson"]).stderr.contains("empty.ndjson is NDJSON; it is empty"));
}

#[test]
fn the_summary_has_groups_warnings_and_the_next_step() {
    let folder = Folder::new("summary");
    let mut articles = three();
    articles.extend([("d", story(1, "")), ("e", story(2, "")), ("f", story(3, ""))]);
    folder.write("a.ndjson", ndjson(&articles).as_bytes());
    let printed = folder.run(&["file", "a.ndjson"]).stderr;
    assert!(printed.contains("2 groups of articles with the same text; 50.0 % of the articles repeat another; the largest group has 3 (a)"), "{printed}");
    assert!(printed.contains("next: --html report.html shows the groups side by side"), "{printed}");
    assert!(!printed.contains("warning"), "{printed}");
    // The wrong column as the text, and as the id.
    let rows: String = (0..20).map(|at| format!("{at},news,{}\n", story(at, ""))).collect();
    folder.write("b.csv", format!("nr,category,words\n{rows}").as_bytes());
    let run = |id: &str, body: &str| {
        folder
            .run(&["file", "b.csv", "--field", &format!("id={id}"), "--field", &format!("body={body}")])
            .stderr
    };
    assert!(run("nr", "category").contains("warning: every article has the same text"));
    let printed = run("category", "words");
    assert!(printed.contains("warning: 19 articles have the id of an earlier one and another text, and replaced it (the first: news, b.csv:3)"), "{printed}");
}

#[test]
fn a_threshold_and_an_exit_code_are_plain_flags() {
    let folder = Folder::new("flags");
    let edited = story(1, "And a sentence of another desk.");
    folder.write("a.ndjson", ndjson(&[("a", story(1, "")), ("b", edited.clone())]).as_bytes());
    let kind = |threshold: &str| {
        verdicts(&folder.run(&["file", "a.ndjson", "--threshold", threshold]).stdout)[1].clone()
    };
    assert_eq!((kind("0.1").as_str(), kind("0.9999").as_str()), ("b near-duplicate a", "b unique -"));
    assert!(folder.fail(&["file", "a.ndjson", "--threshold", "7"]).contains("match.min_confidence"));
    for (name, text) in [("a.txt", story(1, "")), ("b.txt", edited), ("c.txt", story(2, ""))] {
        folder.write(name, text.as_bytes());
    }
    let compare =
        |b: &str, more: &[&str]| folder.start(&[&["compare", "a.txt", b, "--exit-code"], more].concat(), b"");
    assert!(compare("b.txt", &[]).0 && !compare("b.txt", &["--threshold", "0.9999"]).0);
    let (same, printed) = compare("c.txt", &[]);
    assert!(!same && printed.stderr.is_empty(), "{}", printed.stderr);
    folder.run(&["compare", "a.txt", "c.txt"]);
}

// The report needs the evidence; the output must not change with it.
#[test]
fn a_report_changes_nothing_in_the_output() {
    let folder = Folder::new("with-report");
    let edited = story(1, "And a sentence of another desk.");
    folder.write("a.ndjson", ndjson(&[("a", story(1, "")), ("b", edited)]).as_bytes());
    let plain = folder.run(&["file", "a.ndjson"]).stdout;
    assert_eq!(folder.run(&["file", "a.ndjson", "--html", "page.html"]).stdout, plain);
    assert!(!plain.contains("\"evidence\""));
}

// A named pipe was opened once to be checked and once to be read, so its writer was killed half way; with a report, the run
// opened it a third time and waited for ever.
#[cfg(unix)]
#[test]
fn a_named_pipe_is_opened_once() {
    let folder = Folder::new("named-pipe");
    for (name, arguments) in [
        ("plain", &["file", "plain", "--quiet"][..]),
        ("table", &["file", "table", "--to", "csv", "--quiet"]),
        ("report", &["file", "report", "--html", "page.html", "--quiet"]),
    ] {
        assert!(Command::new("mkfifo").arg(folder.path().join(name)).status().unwrap().success());
        let (pipe, articles) = (folder.path().join(name), ndjson(&three()));
        // Opens the pipe when the program does, and fails if the program closes it early.
        let writer = std::thread::spawn(move || fs::write(pipe, articles.repeat(400)).is_ok());
        let printed = folder.run(arguments);
        assert!(writer.join().unwrap(), "{name}: the writer was cut off");
        assert_eq!(printed.stdout.lines().count(), 1200 + usize::from(name == "table"), "{name}");
    }
    assert!(folder.read("page.html").contains(&story(1, "")[..40]), "the report shows the texts");
}

// A table whose first line never ends had no columns and no rows, and the run reported success over nothing.
#[test]
fn a_header_without_an_end_is_an_error_and_costs_no_memory() {
    let folder = Folder::new("header");
    let mut bytes = b"id,text,".to_vec();
    bytes.resize(40 << 20, b'x');
    folder.write("endless.csv", &bytes);
    let wide = vec!["x"; 5000].join(",") + "\n1,2\n";
    folder.write("wide.csv", wide.as_bytes());
    for (name, message) in [
        ("endless.csv", "the header row cannot be used: 41943040 bytes; at most 8388608 are read"),
        ("wide.csv", "the header row cannot be used: more than 4096 columns"),
    ] {
        for arguments in [vec!["file", name], vec!["file", name, "--output", "out.csv"]] {
            let printed = folder.fail(&arguments);
            assert!(printed.contains(message), "{name}: {printed}");
            assert!(!folder.path().join("out.csv").exists(), "{name}");
        }
    }
}

// Of two columns with one name only one was read, and nothing said which.
#[test]
fn a_column_that_is_there_twice_is_an_error_with_its_name() {
    let folder = Folder::new("same-columns");
    folder.write("a.csv", b"id,text,text\n1,one,two\n");
    folder.write("b.csv", b"id;text;note;date; note \n1;one;x;y;z\n");
    for (name, message) in [
        (
            "a.csv",
            "the header row cannot be used: columns 2 and 3 are both called \"text\"; rename one of them",
        ),
        (
            "b.csv",
            "the header row cannot be used: columns 3 and 5 are both called \"note\"; rename one of them",
        ),
    ] {
        for arguments in [vec!["file", name], vec!["file", name, "--output", "out.csv"]] {
            let printed = folder.fail(&arguments);
            assert!(printed.contains(message), "{name}: {printed}");
            assert!(!folder.path().join("out.csv").exists(), "{name}");
        }
    }
    // Names that differ in case are two names, and columns at the end without any are what spreadsheets leave behind.
    folder.write("c.csv", b"id,text,Note,note,,\n1,one,x,y,,\n");
    assert_eq!(verdicts(&folder.run(&["file", "c.csv"]).stdout), ["1 unique -"]);
}

// A table that was judged twice had two columns `samestory_verdict`.
#[test]
fn a_table_that_was_judged_before_can_be_judged_again_and_again() {
    let folder = Folder::new("judged-again");
    folder.write("0.csv", b"id,text\n1,one\n");
    for round in 0..3 {
        let (from, to) = (format!("{round}.csv"), format!("{}.csv", round + 1));
        folder.run(&["file", &from, "--output", &to]);
    }
    let names = &table(&folder, "3.csv", b',')[0];
    let twice = names.iter().filter(|name| names.iter().filter(|other| other == name).count() > 1);
    assert_eq!(twice.count(), 0, "{names:?}");
    assert!(names.contains(&"samestory_samestory_verdict".to_owned()), "{names:?}");
}

// Excel's first line `sep=;` was read as the header, so every row was an error.
#[test]
fn the_line_with_which_excel_names_the_delimiter_is_understood() {
    let folder = Folder::new("sep");
    let articles = |delimiter: &str| {
        let header = ["id", "text", "a,b,c"].join(delimiter);
        format!("{header}\n{}\n", ["1", "one", "x"].join(delimiter))
    };
    let cases = [
        ("a.csv", format!("sep=;\n{}", articles(";")), " is CSV with semicolons; id, body = text"),
        ("b.csv", format!("\u{feff}SEP=;\r\n{}", articles(";")), " is CSV with semicolons; id, body = text"),
        ("c.csv", format!("\"sep=\t\"\n{}", articles("\t")), " is CSV with tabs; id, body = text"),
        ("d.txt", format!("sep=|\n{}", articles("|")), " is CSV with bars; id, body = text"),
        ("e.csv", format!("sep=^\n{}", articles("^")), " is CSV; id, body = text"),
        ("f.csv", format!("sep=;\n\n{}", articles(";")), " is CSV with semicolons; id, body = text"),
    ];
    for (name, content, read_as) in &cases {
        folder.write(name, content.as_bytes());
        let printed = folder.run(&["file", name]);
        assert!(printed.stderr.contains(read_as), "{name}: {}", printed.stderr);
        assert_eq!(verdicts(&printed.stdout), ["1 unique -"], "{name}");
    }
    // Lines are those of the file.
    folder.write("g.csv", b"sep=;\nid;text\n1;one\n2\n");
    assert!(folder.run(&["file", "g.csv", "--max-errors", "60"]).stderr.contains("g.csv:4: undecodable"));
    // A column may be called so.
    folder.write("h.csv", b"sep=a,id,text\n1,2,one\n");
    assert_eq!(verdicts(&folder.run(&["file", "h.csv"]).stdout), ["2 unique -"]);
    folder.write("i.csv", b"sep=;");
    assert!(folder.run(&["file", "i.csv"]).stderr.contains("i.csv is CSV"), "no rows");
}

// A missing quote joined two articles into one, and the run said nothing.
#[test]
fn a_quote_that_is_missing_in_the_middle_is_an_error_with_its_line() {
    let folder = Folder::new("swallowed");
    let row = |id: &str, end: &str| format!("{id},\"{}{end}\n", story(id.len(), ""));
    let table = ["id,text\n".to_owned(), row("a", "\""), row("bb", ""), row("ccc", "\""), row("dddd", "\"")];
    folder.write("a.csv", table.concat().as_bytes());
    let printed = folder.run(&["file", "a.csv", "--max-errors", "50"]);
    assert_eq!(verdicts(&printed.stdout), ["a unique -", "dddd unique -"]);
    let message = "a.csv:3: undecodable: text follows a closing quote in a row that covers 2 lines";
    assert!(printed.stderr.contains(message), "{}", printed.stderr);
    folder.write("a.csv", table.concat().replace('\n', "\r\n").as_bytes());
    assert!(folder.run(&["file", "a.csv", "--max-errors", "50"]).stderr.contains(message));
    // Lines, doubled quotes and spaces inside and after a value are fine.
    folder.write(
        "b.csv",
        b"id,text,end\r\n1,\"two\r\nlines, \"\"quoted\"\"\" ,\"\"\r\n2,\"say \"hi\" twice\",x\r\n",
    );
    let printed = folder.run(&["file", "b.csv"]);
    assert_eq!(verdicts(&printed.stdout), ["1 unique -", "2 unique -"], "{}", printed.stderr);
}

// Every article with its text under `content.text` and a list of pictures was refused, with the wrong advice.
#[test]
fn an_article_with_lists_beside_its_text_is_no_answer_of_an_api() {
    let folder = Folder::new("lists");
    let lines = |text: fn(&str) -> Value| -> String {
        let article = |(id, story): &(&str, String)| {
            let mut article = json!({"id": id, "images": [{"url": "https://x.example/1.jpg", "title": "x"}]});
            article.as_object_mut().unwrap().extend(text(story).as_object().unwrap().clone());
            article.to_string() + "\n"
        };
        three().iter().map(article).collect()
    };
    folder.write("content.ndjson", lines(|text| json!({"content": {"text": text}})).as_bytes());
    folder.write("parts.ndjson", lines(|text| json!({"doc": {"parts": [{"p": text}]}})).as_bytes());
    assert_eq!(verdicts(&folder.run(&["file", "content.ndjson"]).stdout), EXPECTED);
    let named = ["file", "parts.ndjson", "--field", "body=doc.parts[].p"];
    assert_eq!(verdicts(&folder.run(&named).stdout), EXPECTED);
}

#[test]
fn compressed_parquet_is_refused_with_the_fix() {
    let folder = Folder::new("columnar-gz");
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gz, b"PAR1 and the rest of a file").unwrap();
    folder.write("a.gz", &gz.finish().unwrap());
    assert!(folder.fail(&["file", "a.gz"]).contains("a.gz is Parquet"));
}

#[test]
fn a_table_with_bars_is_known_by_its_first_line() {
    let folder = Folder::new("bars");
    let rows: String = three().iter().map(|(id, text)| format!("{id}|{text}\n")).collect();
    folder.write("dump.txt", format!("id|text\n{rows}").as_bytes());
    let printed = folder.run(&["file", "dump.txt"]);
    assert_eq!(verdicts(&printed.stdout), EXPECTED);
    assert!(printed.stderr.contains("dump.txt is CSV with bars; id, body = text"), "{}", printed.stderr);
}
