//! The query API over a state of files: every answer is as its document says, and every bad question has one, too.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::shared_data;
use crate::web::{ask, get, post};

/// A running `samestory serve` with its directory, both removed with the test.
struct Served {
    dir: PathBuf,
    child: Child,
    address: String,
}

impl Served {
    fn new(name: &str, articles: &[Value], environment: &[(&str, &str)]) -> Served {
        let dir = std::env::temp_dir().join(format!("samestory-serve-{name}-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let lines: Vec<String> = articles.iter().map(Value::to_string).collect();
        fs::write(dir.join("articles.ndjson"), lines.join("\n")).unwrap();
        let program = || {
            let mut command = Command::new(env!("CARGO_BIN_EXE_samestory"));
            command.current_dir(&dir).env("SAMESTORY__HTTP__QUERY", "127.0.0.1:0");
            command
        };
        let filed = program()
            .args(["file", "articles.ndjson", "--state", "state", "--output", "tagged.ndjson", "--quiet"])
            .output()
            .unwrap();
        assert!(filed.status.success(), "{}", String::from_utf8_lossy(&filed.stderr));
        let log = fs::File::create(dir.join("log")).unwrap();
        let mut command = program();
        command.envs(environment.iter().copied()).args(["serve", "--state", "state"]);
        let child = command.stdout(Stdio::null()).stderr(log).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        let address = loop {
            let printed = fs::read_to_string(dir.join("log")).unwrap();
            if let Some(line) = printed.lines().find(|line| line.contains("serving the query API")) {
                let line: Value = serde_json::from_str(line).unwrap();
                break line["address"].as_str().unwrap().to_owned();
            }
            assert!(Instant::now() < deadline, "{printed}");
            thread::sleep(Duration::from_millis(20));
        };
        Served { dir, child, address }
    }

    fn tagged(&self) -> Vec<Value> {
        let tagged = fs::read_to_string(self.dir.join("tagged.ndjson")).unwrap();
        tagged.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn get(&self, path: &str) -> (u16, Value) {
        let (status, body) = get(&self.address, path).unwrap();
        (status, serde_json::from_str(&body).unwrap())
    }

    fn post(&self, path: &str, body: &str) -> (u16, Value) {
        let (status, body) = post(&self.address, path, body).unwrap();
        (status, serde_json::from_str(&body).unwrap())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
        drop(fs::remove_dir_all(&self.dir));
    }
}

/// A sequence of words that no other story has.
fn story(number: usize) -> Vec<String> {
    let word = |at: usize| ((number * 1000 + at).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44).to_string();
    (0..200).map(|at| format!("w{}", word(at))).collect()
}

fn article(id: &str, words: &[String]) -> Value {
    json!({"id": id, "language": "en", "title": format!("About {id}"), "url": "https://news.example/x", "body": words.join(" ")})
}

/// The violations of a schema by a value, with their locations. Covers as much of JSON Schema as the document
/// uses.
fn schema_violations(schema: &Value, document: &Value, value: &Value, location: &str) -> Vec<String> {
    if let Some(name) = schema["$ref"].as_str() {
        return schema_violations(document.pointer(&name[1..]).unwrap(), document, value, location);
    }
    let mut wrong = Vec::new();
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() || number.is_u64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let kinds: Vec<&str> = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        other => other.as_str().into_iter().collect(),
    };
    if !(kinds.contains(&kind) || kind == "integer" && kinds.contains(&"number")) {
        wrong.push(format!("{location} is {kind}, not {kinds:?}"));
    }
    if schema["enum"].as_array().is_some_and(|allowed| !allowed.contains(value)) {
        wrong.push(format!("{location} is {value}"));
    }
    if let Some(members) = value.as_object() {
        for name in schema["required"].as_array().into_iter().flatten() {
            if !members.contains_key(name.as_str().unwrap()) {
                wrong.push(format!("{location} has no {name}"));
            }
        }
        for (name, member) in members {
            match schema["properties"].get(name) {
                Some(schema) => {
                    wrong.extend(schema_violations(schema, document, member, &format!("{location}.{name}")))
                }
                None if schema["additionalProperties"] == false => {
                    wrong.push(format!("{location} has {name}"))
                }
                None => {}
            }
        }
    }
    for (at, item) in value.as_array().into_iter().flatten().enumerate() {
        wrong.extend(schema_violations(&schema["items"], document, item, &format!("{location}[{at}]")));
    }
    wrong
}

/// Asserts that the document describes this answer for the path, method and status.
pub(crate) fn fits(document: &Value, path: &str, method: &str, (status, answer): &(u16, Value)) {
    let response = &document["paths"][path][method]["responses"][status.to_string()];
    let content =
        response["content"].as_object().unwrap_or_else(|| panic!("{method} {path}: no {status}: {answer}"));
    let schema = &content.values().next().unwrap()["schema"];
    let wrong = schema_violations(schema, document, answer, "$");
    assert!(wrong.is_empty(), "{method} {path} {status}: {wrong:?} in {answer}");
}

#[test]
fn every_answer_matches_the_document() {
    let demo = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/demo/articles.ndjson")).unwrap();
    let mut articles: Vec<Value> = demo
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    articles.push(article("odd/id ?ü", &story(1)));
    let served = Served::new("document", &articles, &[]);
    let (status, document) = served.get("/api/v1/openapi.json");
    assert_eq!(status, 200);
    let mut similar = 0;
    for tagged in served.tagged() {
        let encoded: String =
            tagged["id"].as_str().unwrap().bytes().map(|byte| format!("%{byte:02X}")).collect();
        let answer = served.get(&format!("/api/v1/articles/{encoded}"));
        fits(&document, "/api/v1/articles/{id}", "get", &answer);
        if answer.1["revision"] == tagged["revision"] && tagged["match_type"] != "same-article" {
            for key in ["id", "verdict", "match_type", "duplicate_of", "similarity", "confidence", "language"]
            {
                assert_eq!(answer.1[key], tagged[key], "{key} of {}", tagged["id"]);
            }
        }
        let resembling = served.get(&format!("/api/v1/articles/{encoded}/similar"));
        fits(&document, "/api/v1/articles/{id}/similar", "get", &resembling);
        let scores = resembling.1["similar"].as_array().unwrap().iter().map(|one| one["similarity"].as_f64());
        assert!(scores.is_sorted_by(|a, b| a >= b), "{resembling:?}");
        similar += resembling.1["similar"].as_array().unwrap().len();
        let fingerprint = served.get(&format!("/api/v1/articles/{encoded}/fingerprint"));
        fits(&document, "/api/v1/articles/{id}/fingerprint", "get", &fingerprint);
        let cluster: String =
            answer.1["cluster_id"].as_str().unwrap().bytes().map(|byte| format!("%{byte:02X}")).collect();
        let cluster = served.get(&format!("/api/v1/clusters/{cluster}"));
        fits(&document, "/api/v1/clusters/{id}", "get", &cluster);
        assert_eq!(cluster.0, 200);
        assert_eq!(cluster.1["cluster_id"], answer.1["cluster_id"], "named as on the bus");
        let mut members = cluster.1["members"].as_array().unwrap().iter();
        let member = members.find(|member| member["id"] == answer.1["id"]).unwrap();
        for key in ["title", "host", "url", "published_at", "match_type"] {
            assert_eq!(member[key], answer.1[key], "{key} of {}", tagged["id"]);
        }
    }
    assert!(similar > 10, "{similar}");
    let copy = json!({"language": "en", "body": story(1).join(" ")});
    let checked = served.post("/api/v1/check", &copy.to_string());
    fits(&document, "/api/v1/check", "post", &checked);
    assert_eq!(
        (checked.1["verdict"].as_str(), checked.1["duplicate_of"].as_str()),
        (Some("exact-duplicate"), Some("odd/id ?ü"))
    );
    let unheard = served.post("/api/v1/check", r#"{"body":"Кот сидит на окне и смотрит на улицу"}"#);
    fits(&document, "/api/v1/check", "post", &unheard);
    assert_eq!(unheard.1["verdict"], "unique");
    assert_eq!(served.get("/api/v1/articles/the%20text%20in%20question").0, 404, "nothing is stored");
    let half = story(1)[..150].join(" ");
    let explained = served.post(
        "/api/v1/explain",
        &json!({"a": {"id": "odd/id ?ü"}, "b": {"text": half, "language": "en"}}).to_string(),
    );
    fits(&document, "/api/v1/explain", "post", &explained);
    assert_eq!(explained.1["passages"], Value::Null);
    assert!(explained.1["passages_reason"].as_str().unwrap().contains("articles.ndjson"), "{explained:?}");
    assert!(explained.1["containment"]["b_in_a"].as_f64() > Some(0.9), "{explained:?}");
    let both =
        json!({"a": {"text": story(1).join(" "), "language": "en"}, "b": {"text": half, "language": "en"}});
    let explained = served.post("/api/v1/explain", &both.to_string());
    fits(&document, "/api/v1/explain", "post", &explained);
    assert_eq!(explained.1["passages"][0]["tokens"], 150);
    for (path, method, answer) in [
        ("/api/v1/articles/{id}", "get", served.get("/api/v1/articles/nobody")),
        ("/api/v1/articles/{id}", "get", served.get(&format!("/api/v1/articles/{}", "x".repeat(600)))),
        ("/api/v1/articles/{id}", "get", served.get("/api/v1/articles/%FF")),
        ("/api/v1/articles/{id}/similar", "get", served.get("/api/v1/articles/nobody/similar?limit=0")),
        ("/api/v1/clusters/{id}", "get", served.get("/api/v1/clusters/nonsense")),
        ("/api/v1/clusters/{id}", "get", served.get("/api/v1/clusters/en:nobody:99")),
        ("/api/v1/check", "post", served.post("/api/v1/check", "{\"body\":")),
        ("/api/v1/check", "post", served.post("/api/v1/check", "{\"title\":\"no body\"}")),
        ("/api/v1/explain", "post", served.post("/api/v1/explain", r#"{"a":{},"b":{}}"#)),
        (
            "/api/v1/explain",
            "post",
            served.post("/api/v1/explain", r#"{"a":{"id":"nobody"},"b":{"text":"x"}}"#),
        ),
    ] {
        assert!(answer.0 >= 400, "{answer:?}");
        fits(&document, path, method, &answer);
    }
}

#[test]
fn a_copy_with_a_fifth_of_its_words_changed_is_among_the_ten() {
    let mut articles = Vec::new();
    for number in 0..100 {
        let words = story(number);
        let mut changed = words.clone();
        for (at, word) in changed.iter_mut().enumerate() {
            // A fifth of the words, at different positions in each story.
            if (at * 7919 + number * 104_729).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 & 0xffff < 0xffff / 5
            {
                *word = format!("x{number}x{at}");
            }
        }
        articles.push(article(&format!("story-{number}"), &words));
        articles.push(article(&format!("changed-{number}"), &changed));
    }
    let served = Served::new("fifth", &articles, &[]);
    let tagged = served.tagged();
    let unique = tagged.iter().filter(|one| one["verdict"] == "unique").count();
    assert!(unique > 180, "{unique} of 200 are unique; the rest changed too little");
    let found = (0..100).filter(|number| {
        let (_, answer) = served.get(&format!("/api/v1/articles/changed-{number}/similar"));
        let similar = answer["similar"].as_array().unwrap();
        similar.iter().any(|one| one["id"] == format!("story-{number}"))
    });
    let found = found.count();
    assert!(found >= 90, "{found} of 100");
}

/// Real articles, and each again with a fifth of its words replaced.
#[test]
fn a_real_article_with_a_fifth_of_its_words_changed_is_among_the_ten() {
    for (file, language) in [("wikinews_en_2020.ndjson", "en"), ("bbc_hi.ndjson", "hi")] {
        let Some(path) = shared_data(file) else { return };
        let body = |line: &str| {
            let article: Value = serde_json::from_str(line).unwrap();
            article["body"].as_str().unwrap().split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        let texts: Vec<Vec<String>> =
            fs::read_to_string(path).unwrap().lines().map(body).filter(|words| words.len() >= 100).collect();
        let vocabulary: Vec<&String> = texts.iter().flatten().collect();
        let (mut articles, mut seed) = (Vec::new(), 7_u64);
        let mut chance = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % below
        };
        for (number, words) in texts.iter().enumerate() {
            let mut changed = words.clone();
            for word in &mut changed {
                if chance(5) == 0 {
                    word.clone_from(vocabulary[chance(vocabulary.len())]);
                }
            }
            for (name, words) in [("story", words), ("changed", &changed)] {
                let mut one = article(&format!("{name}-{number}"), words);
                one["language"] = language.into();
                articles.push(one);
            }
        }
        let served = Served::new(&format!("real-{language}"), &articles, &[]);
        let (mut all, mut found) = (0, 0);
        for tagged in served.tagged() {
            let Some(number) = tagged["id"].as_str().unwrap().strip_prefix("changed-") else { continue };
            let (_, answer) = served.get(&format!("/api/v1/articles/changed-{number}/similar"));
            let original = Value::from(format!("story-{number}"));
            all += 1;
            found +=
                usize::from(answer["similar"].as_array().unwrap().iter().any(|one| one["id"] == original));
        }
        println!("{language}: {found} of {all} changed ones found");
        assert_eq!(all, texts.len(), "{language}");
        assert!(found * 10 >= all * 9, "{language}: {found} of {all}");
    }
}

#[test]
fn bad_requests_are_bounded_and_others_are_answered() {
    let served =
        Served::new("rude", &[article("a", &story(1))], &[("SAMESTORY__HTTP__TOKEN", "open sesame")]);
    ask_rudely(&served.address);
    ask_slowly(&served.address);
}

/// Sends a body at one byte per second: the server gives up after ten seconds.
pub(crate) fn ask_slowly(address: &str) {
    let mut slow = TcpStream::connect(address).unwrap();
    let head = "POST /api/v1/check HTTP/1.1\r\nhost: s\r\nauthorization: Bearer open sesame\r\ncontent-length: 1000\r\n\r\n";
    slow.write_all(head.as_bytes()).unwrap();
    slow.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let (began, mut answer) = (Instant::now(), [0; 12]);
    while slow.read(&mut answer).is_err() {
        assert!(began.elapsed() < Duration::from_secs(30), "the server still waits for more");
        slow.write_all(b" ").unwrap();
    }
    assert_eq!(String::from_utf8_lossy(&answer), "HTTP/1.1 408");
}

// A web page could resolve its own name to 127.0.0.1 (DNS rebinding) and read the API through its visitor's
// browser, because the host in the request was not checked.
#[test]
fn a_request_that_names_another_host_is_refused() {
    let articles = [article("a", &story(1))];
    let served = Served::new("hosts", &articles, &[("SAMESTORY__HTTP__HOSTS", "[\"news.example\"]")]);
    let named = |host: &str| {
        let request = format!("GET /api/v1/articles/a HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        ask(&served.address, request.as_bytes()).unwrap()
    };
    for ours in
        [&served.address, "localhost:9465", "[::1]:9465", "10.1.2.3", "News.Example:80", "news.example."]
    {
        assert_eq!(named(ours).0, 200, "{ours}");
    }
    for theirs in
        ["evil.example", "evil.example:9465", "localhost.evil.example", "127.0.0.1.evil.example", ""]
    {
        let (status, body) = named(theirs);
        assert!(status == 421 && body.contains("http.hosts"), "{theirs}: {status} {body}");
    }
}

/// Everything that a client can do wrong, against an API with an article `a` and the token `open sesame`.
pub(crate) fn ask_rudely(address: &str) {
    let with = |token: &str, rest: &str| {
        ask(
            address,
            format!("GET /api/v1/articles/a HTTP/1.1\r\nhost: s\r\nconnection: close\r\n{token}{rest}\r\n")
                .as_bytes(),
        )
    };
    let right = "authorization: Bearer open sesame\r\n";
    assert_eq!(with(right, "").unwrap().0, 200);
    for wrong in ["", "authorization: Bearer open sesam\r\n", "authorization: Basic open sesame\r\n"] {
        let (status, body) = with(wrong, "").unwrap();
        assert_eq!(status, 401, "{wrong}");
        assert!(body.contains("\"code\":\"token\"") && !body.contains("sesame"), "{body}");
    }
    let asked = |request: String| ask(address, request.as_bytes()).map(|(status, _)| status);
    let head = |line: &str| format!("{line} HTTP/1.1\r\nhost: s\r\nconnection: close\r\n{right}");
    assert_eq!(asked(format!("{}\r\n", head("GET /api/v1/../../etc/passwd"))), Some(404));
    assert_eq!(asked(format!("{}\r\n", head("DELETE /api/v1/articles/a"))), Some(405));
    let long = asked(format!("{}\r\n", head(&format!("GET /api/v1/articles/{}", "x".repeat(100_000)))));
    assert!(long.is_none_or(|status| status >= 400), "{long:?}");
    let huge =
        format!("{}content-length: 52428800\r\n\r\n{}", head("POST /api/v1/check"), " ".repeat(50 << 20));
    let huge = asked(huge);
    assert!(huge.is_none_or(|status| status == 413), "{huge:?}");
    let deep = "[".repeat(100_000);
    let deep = format!("{}content-length: {}\r\n\r\n{deep}", head("POST /api/v1/check"), deep.len());
    assert_eq!(asked(deep), Some(400));
    // A body that never ends, and heads that never end.
    let mut slow = TcpStream::connect(address).unwrap();
    slow.write_all(format!("{}content-length: 100\r\n\r\n{{", head("POST /api/v1/check")).as_bytes())
        .unwrap();
    let silent: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(address).unwrap()).collect();
    assert_eq!(with(right, "").unwrap().0, 200, "others are answered meanwhile");
    drop((slow, silent));
}
