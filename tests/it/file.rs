//! `samestory file` from the user's point of view.

use std::fs;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use serde_json::Value;

use super::folder::{Folder, story, verdicts};

/// Three articles: a text, another one, and the first again.
fn three() -> Vec<(&'static str, String)> {
    vec![("a", story(1, "")), ("b", story(2, "")), ("c", story(1, ""))]
}

const EXPECTED: [&str; 3] = ["a unique -", "b unique -", "c exact-duplicate a"];

fn ndjson(articles: &[(&str, String)]) -> String {
    articles.iter().map(|(id, text)| format!("{{\"id\":\"{id}\",\"body\":{text:?}}}\n")).collect()
}

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zst(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec(bytes, CompressionLevel::Fastest)
}

#[test]
fn the_same_articles_in_every_format() {
    let folder = Folder::new("formats");
    let lines = ndjson(&three());
    let array = format!("[\n  {}\n]\n", lines.trim().replace('\n', ",\n  "));
    let pretty =
        lines.replace("{\"id\"", "{\n  \"id\"").replace(",\"body\"", ",\n  \"body\"").replace("}\n", "\n}\n");
    let rows = |separator: &str| -> String {
        let row = |(id, text): &(&str, String)| format!("{id}{separator}\"{text}\"\r\n");
        format!("Id{separator}Article Body\r\n{}", three().iter().map(row).collect::<String>())
    };
    let twice = [
        gz(lines.lines().next().unwrap().as_bytes()),
        gz(b"\n"),
        gz(lines.split_once('\n').unwrap().1.as_bytes()),
    ];
    let frames = [
        zst(&lines.as_bytes()[..10]),
        vec![0x51, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3],
        zst(&lines.as_bytes()[10..]),
    ];
    let files: [(&str, Vec<u8>); 14] = [
        ("a.ndjson", lines.clone().into_bytes()),
        ("bom.jsonl", [b"\xef\xbb\xbf", lines.as_bytes()].concat()),
        ("crlf.ndjson", lines.replace('\n', "\r\n").into_bytes()),
        ("no-end.ndjson", lines.trim_end().into()),
        ("gaps.ndjson", lines.replace('\n', "\n\n  \n").into_bytes()),
        ("a.json", array.clone().into_bytes()),
        ("flat.json", array.replace('\n', "").into_bytes()),
        ("stream.json", pretty.into_bytes()),
        ("a.csv", rows(",").into_bytes()),
        ("semicolon.csv", [b"\xef\xbb\xbf", rows(";").as_bytes()].concat()),
        ("a.tsv", rows("\t").into_bytes()),
        ("members.ndjson.gz", twice.concat()),
        ("frames.zst", frames.concat()),
        ("array.json.gz", gz(array.as_bytes())),
    ];
    for (name, bytes) in files {
        folder.write(name, &bytes);
        let printed = folder.run(&["file", name]);
        assert_eq!(verdicts(&printed.stdout), EXPECTED, "{name}: {}", printed.stderr);
        let printed = folder.pipe(&["file", "-"], &bytes);
        assert_eq!(verdicts(&printed.stdout), EXPECTED, "{name} through a pipe: {}", printed.stderr);
    }
}

#[test]
fn the_envelope_has_these_fields_in_this_order_and_the_article_verbatim() {
    let folder = Folder::new("envelope");
    let article = "{ \"id\":7, \"x\":1e400,\"x\":\"\\ud800\",\"body\" : \"short\", \"title\":\"T\" }";
    folder.write("a.ndjson", article.as_bytes());
    let printed = folder.run(&["file", "a.ndjson"]);
    let line = printed.stdout.trim_end();
    let keys = [
        "id",
        "verdict",
        "match_type",
        "duplicate_of",
        "similarity",
        "containment",
        "confidence",
        "cluster_id",
        "canonical_id",
        "revision",
        "language",
        "language_source",
        "declared_language",
        "content_kind",
        "related",
        "flags",
        "config",
        "input",
        "article",
    ];
    let positions: Vec<usize> = keys.iter().map(|key| line.find(&format!("\"{key}\":")).unwrap()).collect();
    assert!(positions.is_sorted(), "{line}");
    assert!(
        line.starts_with("{\"id\":\"7\",\"verdict\":\"unique\",\"match_type\":null,\"duplicate_of\":null,"),
        "{line}"
    );
    assert!(
        line.ends_with(&format!("\"input\":{{\"file\":\"a.ndjson\",\"line\":1}},\"article\":{article}}}")),
        "{line}"
    );
    let printed = folder.run(&["file", "a.ndjson", "--no-article"]);
    assert!(
        printed.stdout.ends_with("\"input\":{\"file\":\"a.ndjson\",\"line\":1}}\n"),
        "{}",
        printed.stdout
    );
}

#[test]
fn broken_records_are_named_counted_and_skipped() {
    let folder = Folder::new("broken");
    let good = ndjson(&three());
    let good: Vec<&str> = good.lines().collect();
    let deep =
        format!("{{\"id\":\"deep\",\"x\":{}{},\"body\":\"\"}}", "[".repeat(100_000), "]".repeat(100_000));
    let lines: [&[u8]; 12] = [
        good[0].as_bytes(),
        b"{\"id\": \"cut off",
        b"{\"id\":\"x\",\"body\":\"\xff\"}",
        b"[1,2]",
        b"{\"title\":\"no id\",\"body\":\"\"}",
        b"{\"id\":\"x\",\"url\":\"u\"}",
        b"{\"id\":\"x\",\"body\":{\"a\":1}}",
        b"{\"id\":[1],\"body\":\"\"}",
        deep.as_bytes(),
        good[1].as_bytes(),
        good[2].as_bytes(),
        // Text in UTF-8, so that the byte above is damage and not an encoding.
        "{\"id\":\"z\",\"body\":\"Z\u{fc}rich\"}".as_bytes(),
    ];
    folder.write("a.ndjson", &lines.join(&b'\n'));
    let printed = folder.run(&["file", "a.ndjson", "--no-article", "--max-errors", "100"]);
    let found = verdicts(&printed.stdout);
    assert_eq!(found, [EXPECTED[0], EXPECTED[1], EXPECTED[2], "z unique -"], "{}", printed.stderr);
    for wanted in [
        "a.ndjson:2: undecodable: not JSON: EOF while parsing a string at column 15",
        "a.ndjson:3: undecodable: byte 19 is not UTF-8",
        "a.ndjson:4: wrong-type: an article is an object with fields, not a list",
        "a.ndjson:5: no-id: missing field \"id\" or one of its usual names; the record has title, body",
        "a.ndjson:6: no-body: missing field \"body\" or one of its usual names; the record has id, url",
        "a.ndjson:7: wrong-type: field \"body\" is an object; it must be a string or a list of strings",
        "a.ndjson:8: wrong-type: field \"id\" is a list; it must be a string or an integer",
        "a.ndjson:9: too-deep: nested more than 128 levels deep",
        "8 of 12 records could not be judged:",
        "  2 undecodable: name the encoding with --encoding",
        "  1 no-id: name the id field with --field id=NAME, or use --id line",
        "  3 wrong-type: map the field",
        "  --dead-letters FILE keeps them all",
    ] {
        assert!(printed.stderr.contains(wanted), "no {wanted:?} in\n{}", printed.stderr);
    }
    let strict = folder.start(&["file", "a.ndjson", "--strict"], b"");
    assert!(!strict.0 && strict.1.stderr.contains("a.ndjson:2: undecodable"), "{}", strict.1.stderr);
    assert_eq!(verdicts(&strict.1.stdout), EXPECTED[..1], "the lines before it were judged");
}

#[test]
fn an_endless_line_is_a_dead_letter_and_costs_no_memory() {
    let folder = Folder::new("endless");
    let mut bytes = b"{\"id\":\"big\",\"body\":\"".to_vec();
    bytes.resize(100 << 20, b'x');
    bytes.extend_from_slice(b"\"}\n");
    bytes.extend_from_slice(ndjson(&three()).as_bytes());
    folder.write("a.ndjson", &bytes);
    let printed = folder.run(&["file", "a.ndjson", "--max-errors", "30%"]);
    assert_eq!(verdicts(&printed.stdout), EXPECTED);
    assert!(
        printed.stderr.contains("a.ndjson:1: too-large: 104857602 bytes; at most 8388608"),
        "{}",
        printed.stderr
    );
    // A quote that is never closed, in a table.
    folder.write("a.csv", &[b"id,text\na,\"".as_slice(), &bytes[..20 << 20]].concat());
    let printed = folder.fail(&["file", "a.csv"]);
    assert!(printed.contains("a.csv:2: too-large"), "{printed}");
    assert!(printed.contains("a.csv ends inside the record that begins on line 2"), "{printed}");
    // Within the limit for lines, beyond the one for text.
    bytes.truncate(3 << 20);
    folder.write("b.ndjson", &[&bytes[..], b"\"}"].concat());
    let printed = folder.fail(&["file", "b.ndjson"]);
    assert!(printed.contains("b.ndjson:1: too-large: text is longer than 1048576 bytes"), "{printed}");
    assert!(printed.contains("no record could be judged: 1 of 1 were refused"), "{printed}");
    // Markup does not count: the limit is on the text in it.
    let page = format!("<html><body><!--{}--><p>{}</p></body></html>", "x".repeat(3 << 20), story(1, ""));
    folder.write("c.ndjson", serde_json::json!({"id": "page", "body": page}).to_string().as_bytes());
    assert_eq!(verdicts(&folder.run(&["file", "c.ndjson"]).stdout), ["page unique -"]);
    let page = format!("<html><body><!--{}--></body></html>", "x".repeat(4 << 20));
    folder.write("d.ndjson", serde_json::json!({"id": "page", "body": page}).to_string().as_bytes());
    assert!(folder.fail(&["file", "d.ndjson"]).contains("at most 4194304 are parsed (text.max_raw_bytes)"));
}

#[test]
fn faults_in_tables_are_named_by_line() {
    let folder = Folder::new("tables");
    folder.write(
        "a.csv",
        b"id,text\r\na,\"two\r\nlines\"\r\n\r\nb,too,many\r\nc,\xff\r\nd,fine\r\ne,Z\xc3\xbcrich\r\n",
    );
    let printed = folder.run(&["file", "a.csv", "--max-errors", "50"]);
    assert_eq!(verdicts(&printed.stdout), ["a unique -", "d unique -", "e unique -"]);
    assert!(
        printed.stderr.contains("a.csv:5: undecodable: the row has 3 values, and the header has 2"),
        "{}",
        printed.stderr
    );
    assert!(
        printed.stderr.contains("a.csv:6: undecodable: the value of column \"text\" is not UTF-8"),
        "{}",
        printed.stderr
    );
    let last: Value = serde_json::from_str(printed.stdout.lines().nth(1).unwrap()).unwrap();
    assert_eq!((&last["input"]["line"], &last["article"]["text"]), (&7.into(), &"fine".into()));
    // Without an id column, rows are named by their lines.
    folder.write("b.csv", b"headline,text\nOne,first\nTwo,second\n");
    let printed = folder.run(&["file", "b.csv"]);
    assert_eq!(verdicts(&printed.stdout), ["b.csv:2 unique -", "b.csv:3 unique -"]);
    assert!(printed.stderr.contains("2 had no id and are named by file and line"), "{}", printed.stderr);
}

#[test]
fn fields_are_found_where_the_crawler_keeps_them() {
    let folder = Folder::new("fields");
    let text = story(1, "");
    let lines = [
        format!("{{\"_id\":\"a\",\"content\":{{\"text\":{text:?}}},\"lang\":\"en\"}}"),
        format!("{{\"GUID\":\"b\",\"articleBody\":{text:?},\"languageCode\":\"en\"}}"),
        format!("{{\"url\":\"https://x.example/c\",\"paragraphs\":[{text:?},null],\"locale\":\"en_GB\"}}"),
    ];
    folder.write("usual.ndjson", lines.join("\n").as_bytes());
    let printed = folder.run(&["file", "usual.ndjson"]);
    let expected = ["a unique -", "b exact-duplicate a", "https://x.example/c exact-duplicate a"];
    assert_eq!(verdicts(&printed.stdout), expected, "{}", printed.stderr);
    let line = format!(
        "{{\"id\":\"wrong\",\"nid\":1,\"doc\":{{\"parts\":[{{\"p\":{text:?}}},{{\"p\":\"End.\"}}]}}}}"
    );
    folder.write("own.ndjson", line.as_bytes());
    let arguments = ["file", "own.ndjson", "--field", "body=doc.parts[].p", "--field", "id=nid"];
    assert_eq!(verdicts(&folder.run(&arguments).stdout), ["1 unique -"]);
    folder.write("c.toml", b"[input.fields]\nbody = \"doc.parts[].p\"\n");
    assert_eq!(
        verdicts(&folder.run(&["--config", "c.toml", "file", "own.ndjson"]).stdout),
        ["wrong unique -"]
    );
    assert!(folder.fail(&["file", "own.ndjson", "--field", "bdoy=x"]).contains("there is no field \"bdoy\""));
    folder.write("none.ndjson", b"{\"text\":\"x\"}");
    assert_eq!(
        verdicts(&folder.run(&["file", "none.ndjson", "--id", "line"]).stdout),
        ["none.ndjson:1 unique -"]
    );
}

#[test]
fn only_the_requested_verdicts_are_written() {
    let folder = Folder::new("only");
    folder.write("a.ndjson", ndjson(&three()).as_bytes());
    let only = |names: &str| verdicts(&folder.run(&["file", "a.ndjson", "--only", names]).stdout);
    assert_eq!(only("unique"), EXPECTED[..2]);
    assert_eq!(only("exact-duplicate"), EXPECTED[2..]);
    assert_eq!(only("unique,duplicate"), EXPECTED);
    assert!(only("near-duplicate,related,review").is_empty());
}

#[test]
fn a_repeated_id_is_the_same_article_or_an_update() {
    let folder = Folder::new("again");
    let (one, two) = (story(1, ""), story(2, ""));
    folder.write(
        "a.ndjson",
        ndjson(&[("a", one.clone()), ("a", one.clone()), ("a", two), ("b", one)]).as_bytes(),
    );
    let printed = folder.run(&["file", "a.ndjson"]);
    assert_eq!(verdicts(&printed.stdout), ["a unique -", "a exact-duplicate a", "a unique -", "b unique -"]);
    let revision = |line: &str| serde_json::from_str::<Value>(line).unwrap()["revision"].as_u64().unwrap();
    assert_eq!(printed.stdout.lines().map(revision).collect::<Vec<_>>(), [0, 0, 1, 0]);
}

#[test]
fn several_files_are_one_stream() {
    let folder = Folder::new("several");
    let lines = ndjson(&three());
    let (first, rest) = lines.split_once('\n').unwrap();
    folder.write("one.ndjson", first.as_bytes());
    folder.write("two.ndjson", rest.as_bytes());
    folder.write("empty.ndjson", b"");
    let printed = folder.run(&["file", "one.ndjson", "empty.ndjson", "two.ndjson", "--output", "out.ndjson"]);
    assert_eq!(verdicts(&folder.read("out.ndjson")), EXPECTED);
    assert!(printed.stdout.is_empty() && printed.stderr.contains("3 articles in"), "{}", printed.stderr);
}

#[test]
fn the_number_of_threads_does_not_matter() {
    let folder = Folder::new("threads");
    let text = |at: usize| match at % 5 {
        3 => story(at - 3, ""),
        4 => story(at - 2, "And one more sentence of another desk."),
        _ => story(at, ""),
    };
    let articles: Vec<String> =
        (0..2000).map(|at| format!("{{\"id\":\"{at}\",\"body\":{:?}}}\n", text(at))).collect();
    folder.write("a.ndjson", articles.concat().as_bytes());
    let run = |threads: &str, out: &str| {
        folder.run(&[
            "file",
            "a.ndjson",
            "--threads",
            threads,
            "--output",
            out,
            "--html",
            &format!("{out}.html"),
        ]);
        (folder.read(out), folder.read(&format!("{out}.html")))
    };
    let alone = run("1", "one");
    assert!(alone.0.contains("near-duplicate"));
    assert!(alone == run("4", "four"), "four threads differ from one");
    assert!(alone == run("3", "three"), "three threads differ from one");
    let pipe = folder.pipe(&["file", "-", "--threads", "2"], articles.concat().as_bytes()).stdout;
    assert!(pipe == alone.0.replace("\"file\":\"a.ndjson\"", "\"file\":\"-\""), "a pipe differs");
}

#[test]
fn an_unusable_input_is_reported_at_once() {
    let folder = Folder::new("refused");
    fs::create_dir(folder.path().join("dir")).unwrap();
    folder.write("a.ndjson", ndjson(&three()).as_bytes());
    folder.write("sheet.xlsx", b"PK\x03\x04 and so on");
    folder.write("a.xz", b"\xfd7zXZ\0\0\0");
    folder.write("text", b"just words\n");
    for (arguments, wanted) in [
        (vec!["dir"], "dir is a directory; name the files in it"),
        (vec!["a.ndjson", "missing.ndjson"], "cannot read missing.ndjson: No such file"),
        (
            vec!["sheet.xlsx"],
            "sheet.xlsx is a workbook (xlsx), not a table of text; save the sheet as CSV UTF-8",
        ),
        (vec!["a.xz"], "xzcat a.xz | samestory file -"),
        (vec!["text"], "cannot detect the format of text"),
        (
            vec!["a.ndjson", "--output", "a.ndjson"],
            "--output a.ndjson and the input a.ndjson are the same file",
        ),
        (vec!["a.ndjson", "--output", "dir"], "cannot write dir"),
        (vec!["a.ndjson", "--html", "no/such/page.html"], "cannot write the page no/such/page.html"),
    ] {
        let arguments = [vec!["file"], arguments].concat();
        let printed = folder.fail(&arguments);
        assert!(printed.contains(wanted), "{arguments:?}: {printed}");
        assert_eq!(verdicts(&folder.run(&["file", "a.ndjson"]).stdout), EXPECTED, "the input is as it was");
    }
}

#[test]
fn damaged_archives_fail_after_what_could_be_read() {
    let folder = Folder::new("damaged");
    let lines: String =
        (0..3000).map(|at| format!("{{\"id\":\"{at}\",\"body\":{:?}}}\n", story(at, ""))).collect();
    for (name, mut bytes) in [("a.gz", gz(lines.as_bytes())), ("a.zst", zst(lines.as_bytes()))] {
        bytes.truncate(bytes.len() * 2 / 3);
        folder.write(name, &bytes);
        let (success, printed) = folder.start(&["file", name], b"");
        assert!(
            !success && printed.stderr.contains(&format!("cannot read {name} past line")),
            "{}",
            printed.stderr
        );
        assert!(printed.stdout.lines().count() > 100, "{name}");
    }
    let mut flipped = zst(lines.as_bytes());
    let middle = flipped.len() / 2;
    flipped[middle] ^= 0x10;
    folder.write("flipped.zst", &flipped);
    assert!(folder.fail(&["file", "flipped.zst"]).contains("cannot read flipped.zst past line"));
}

#[test]
fn the_report_shows_hostile_articles_as_text() {
    let folder = Folder::new("page");
    let evil = "<script>alert(1)</script><img src=x onerror=alert(2)>\" onmouseover='x' & \u{202e}txet";
    let body = |end: &str| format!("{}{evil}{end}", story(1, ""));
    let article = |id: &str, end: &str| {
        serde_json::json!({"id": format!("{id}{evil}"), "title": evil, "url": format!("javascript:alert(3)//{evil}"),
            "host": evil, "language": "en", "content_type": "text/plain", "body": body(end)}).to_string()
    };
    let copy = serde_json::json!({"id": "copy", "language": "en", "title": evil, "url": "https://x.example/?a=\"><script>", "body": body(""), "content_type": "text/plain"});
    let lines =
        [article("a", ""), article("b", " Another fixture has added this sentence."), copy.to_string()];
    folder.write("a.ndjson", lines.join("\n").as_bytes());
    let printed = folder.run(&["file", "a.ndjson", "--html", "page.html"]);
    assert!(printed.stdout.contains("near-duplicate"), "{}", printed.stdout);
    let page = folder.read("page.html");
    let (head, body) = page.split_once("<body>").unwrap();
    assert!(head.contains("Content-Security-Policy") && head.contains("default-src 'none'"));
    // The only scripts are the page's data and its own, and nothing in the data can end them.
    assert_eq!((body.matches("<script").count(), body.matches("</script").count()), (2, 2));
    for never in
        ["<script>alert", "<img", "href=\"javascript:", "@import", "url(", "innerHTML", "insertAdjacentHTML"]
    {
        assert!(!body.contains(never), "{never:?} is in the page");
    }
    let data = |page: &str| -> Value {
        let data = page.split_once("id=\"data\">").unwrap().1.split_once("</script>").unwrap().0;
        assert!(!data.contains('<'), "an element could begin in the data");
        serde_json::from_str(data).unwrap()
    };
    let found = data(&page);
    let texts: Vec<&str> = found["articles"]
        .as_array()
        .unwrap()
        .iter()
        .map(|article| article["text"].as_str().unwrap())
        .collect();
    assert!(texts.len() == 2 && texts.iter().all(|text| text.contains(evil)), "{found}");
    assert_eq!(
        (&found["groups"][0]["size"], &found["groups"][0]["pairs"][0]["differences"]),
        (&3.into(), &true.into())
    );
    assert!(page.contains("2 of 3 articles repeat an earlier one"), "{body}");
    // Through a pipe the texts are there too.
    folder.pipe(&["file", "-", "--html", "pipe.html"], lines.join("\n").as_bytes());
    assert_eq!(data(&folder.read("pipe.html")), found);
}

#[test]
fn a_report_without_copies_says_so() {
    let folder = Folder::new("bare-page");
    folder.write("a.ndjson", b"");
    folder.run(&["file", "a.ndjson", "--html", "page.html"]);
    assert!(folder.read("page.html").contains("No articles"));
}

/// A line with its own event time, `day` days into 2026.
fn dated(id: &str, text: usize, day: usize) -> String {
    let time = format!("2026-{:02}-{:02}T06:00:00Z", 1 + day / 28, 1 + day % 28);
    format!("{{\"id\":\"{id}\",\"fetched_at\":\"{time}\",\"body\":{:?}}}\n", story(text, ""))
}

/// `match.retention` (7d) also applied to files: a dump over 90 days silently lost four fifths of its copies.
/// A file run remembers forever unless its own option says otherwise.
#[test]
fn a_file_run_remembers_forever_by_default() {
    let folder = Folder::new("for-ever");
    let lines: String = (0..90)
        .map(|day| {
            dated(&format!("a{day}"), day, day) + &dated(&format!("b{day}"), day.saturating_sub(30), day)
        })
        .collect();
    folder.write("a.ndjson", lines.as_bytes());
    folder.write("bus.toml", b"[match]\nretention = \"7d\"\n[languages.en]\nretention = \"1d\"\n");
    let copies = |arguments: &[&str]| {
        let printed = folder.run(arguments);
        let found = verdicts(&printed.stdout).iter().filter(|line| line.contains("exact-duplicate")).count();
        (found, printed.stderr)
    };
    let (found, printed) = copies(&["file", "a.ndjson"]);
    assert_eq!(found, 90, "{printed}");
    assert!(!printed.contains("expired"), "{printed}");
    assert_eq!(copies(&["--config", "bus.toml", "file", "a.ndjson"]).0, 90, "those settings are for the bus");
    let (found, printed) = copies(&["file", "a.ndjson", "--retention", "7d"]);
    assert!(found < 40, "{found}");
    assert!(
        printed.contains("warning: ") && printed.contains(" expired and were forgotten (--retention)"),
        "{printed}"
    );
    let refusal = folder.fail(&["file", "a.ndjson", "--retention", "soon"]);
    assert!(refusal.contains("--retention = soon: use a whole number and a unit"), "{refusal}");
}

#[test]
fn the_clusters_of_a_run_are_written_with_all_their_members() {
    let folder = Folder::new("clusters");
    let copies = (0..60).map(|copy| (format!("c{copy}"), story(1, "")));
    let others = [("x", 2), ("y", 3), ("z", 2)].map(|(id, text)| (id.to_owned(), story(text, "")));
    let lines: String =
        copies.chain(others).map(|(id, text)| format!("{{\"id\":\"{id}\",\"body\":{text:?}}}\n")).collect();
    folder.write("a.ndjson", (lines + "{\"id\":\"c0\",\"deleted\":true}\n").as_bytes());
    folder.run(&["file", "a.ndjson", "--output", "out.ndjson", "--clusters", "clusters.ndjson"]);
    let text = folder.read("clusters.ndjson");
    let clusters: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [large, small] = &clusters[..] else { panic!("{text}") };
    assert!(large["cluster_id"].as_str().unwrap().ends_with(":0:0"), "{large}");
    assert_eq!((&large["canonical_id"], &large["size"]), (&"c1".into(), &59.into()));
    let members: Vec<&str> =
        large["members"].as_array().unwrap().iter().map(|member| member["id"].as_str().unwrap()).collect();
    assert_eq!((members.len(), members[0], members[58]), (59, "c59", "c1"), "the newest first");
    assert_eq!((&small["canonical_id"], &small["members"][0]["match_type"]), (&"x".into(), &"exact".into()));
    let clash = folder.fail(&["file", "a.ndjson", "--output", "out.ndjson", "--clusters", "out.ndjson"]);
    assert!(clash.contains("are the same file"), "{clash}");
}

/// A wrong merge could not be corrected: the next run repeated it. A line in `--pairs` decides, whatever the
/// texts say, for its two articles and for no others.
#[test]
fn an_analyst_corrects_wrong_verdicts() {
    let folder = Folder::new("pairs");
    let edited = story(1, "Edited by another desk.");
    let articles = [
        ("a", story(1, "")),
        ("b", story(2, "")),
        ("copy", story(1, "")),
        ("edit", edited.clone()),
        ("edit-again", edited),
        ("other", story(3, "")),
        ("again", story(3, "")),
    ];
    folder.write("a.ndjson", ndjson(&articles).as_bytes());
    let found = |arguments: &[&str]| {
        let printed = folder.run(&[&["file", "a.ndjson", "--no-article"], arguments].concat());
        (verdicts(&printed.stdout), printed)
    };
    let before = [
        "a unique -",
        "b unique -",
        "copy exact-duplicate a",
        "edit near-duplicate a",
        "edit-again exact-duplicate edit",
        "other unique -",
        "again exact-duplicate other",
    ];
    assert_eq!(found(&[]).0, before);
    folder.write(
        "pairs.tsv",
        b"id1\tid2\tlabel\nedit\ta\tdifferent\tnot that one\nb\tother\tsame\nother\tagain\tmust-link\n",
    );
    let (after, printed) = found(&["--pairs", "pairs.tsv", "--clusters", "clusters.ndjson"]);
    let expected = [
        "a unique -",
        "b unique -",
        "copy exact-duplicate a",
        "edit unique -",
        "edit-again exact-duplicate edit",
        "other near-duplicate b",
        "again exact-duplicate other",
    ];
    assert_eq!(after, expected, "{}", printed.stderr);
    assert!(printed.stderr.contains("3 verdicts follow --pairs"), "{}", printed.stderr);
    let reviewed = printed.stdout.lines().find(|line| line.contains("\"id\":\"other\"")).unwrap();
    assert!(
        reviewed.contains("\"match_type\":\"reviewed\"") && reviewed.contains("\"confidence\":1.0"),
        "{reviewed}"
    );
    let text = folder.read("clusters.ndjson");
    let clusters: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let members = |cluster: &Value| -> Vec<String> {
        let members = cluster["members"].as_array().unwrap().iter();
        members.map(|member| member["id"].as_str().unwrap().to_owned()).collect()
    };
    let clusters: Vec<Vec<String>> = clusters.iter().map(members).collect();
    assert_eq!(clusters, [vec!["copy", "a"], vec!["again", "other", "b"], vec!["edit-again", "edit"]]);
    let wrong = |text: &str| {
        folder.write("wrong.tsv", text.as_bytes());
        folder.fail(&["file", "a.ndjson", "--pairs", "wrong.tsv"])
    };
    assert!(wrong("a\tb\tsame\na\tb\n").contains("wrong.tsv:2: expected two ids"));
    assert!(folder.fail(&["file", "a.ndjson", "--pairs", "none.tsv"]).contains("cannot read none.tsv"));
    let clash = folder.fail(&["file", "a.ndjson", "--pairs", "pairs.tsv", "--output", "pairs.tsv"]);
    assert!(clash.contains("the pairs pairs.tsv are the same file"), "{clash}");
}
