//! The demo articles, one after another, get the verdicts that the demo promises.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use samestory_engine::engine::Settings;
use samestory_engine::model::RawArticle;

use super::engine_fixture::{EngineFixture, id};

fn demo(file: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("demo").join(file)).unwrap()
}

fn articles() -> Vec<RawArticle> {
    let article = |line: &str| {
        let fields: serde_json::Value = serde_json::from_str(line).unwrap();
        let text = |name: &str| fields[name].as_str().map(str::to_owned);
        RawArticle {
            id: id(fields["id"].as_str().unwrap()),
            body: text("body").unwrap(),
            title: text("title"),
            url: text("url"),
            host: text("host"),
            language: text("language"),
            content_type: text("content_type"),
            // All within a few days, so nothing expires.
            published_at: None,
            fetched_at: None,
        }
    };
    demo("articles.ndjson").lines().map(article).collect()
}

#[test]
fn the_demo_gets_the_verdicts_it_promises() {
    let expected = demo("expected.tsv");
    let mut rows = expected.lines();
    let header: Vec<&str> = rows.next().unwrap().split('\t').collect();
    let mut fixture = EngineFixture::new(Settings::default());
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for (article, row) in articles().iter().zip(rows) {
        let tagged = fixture.tag(article);
        let row: BTreeMap<&str, &str> = header.iter().copied().zip(row.split('\t')).collect();
        let or_dash = |text: Option<&str>| text.unwrap_or("-").to_owned();
        let related: Vec<String> = tagged
            .related
            .iter()
            .map(|related| format!("{}:{}", related.relation.as_str(), related.id))
            .collect();
        let found = [
            ("id", tagged.id.to_string()),
            ("verdict", tagged.kind.as_str().to_owned()),
            ("match_type", or_dash(tagged.match_type.map(|kind| kind.as_str()))),
            ("duplicate_of", or_dash(tagged.duplicate_of.as_ref().map(|id| id.as_str()))),
            ("related", if related.is_empty() { "-".to_owned() } else { related.join(",") }),
        ];
        for (column, value) in found {
            if row[column] != value {
                wrong.push(format!(
                    "line {}: {column} is {value}, not {}: {tagged:?}",
                    row["line"], row[column]
                ));
            }
        }
        seen += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(seen, 46);
}
