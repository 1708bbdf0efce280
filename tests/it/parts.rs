//! Parts and wholes of real articles match with the default index schemes.

use std::fs;

use samestory_engine::engine::Settings;
use samestory_engine::model::MatchType;
use samestory_engine::model::{RawArticle, RelationKind};

use super::engine_fixture::{EngineFixture, article, headline};
use super::support::shared_data;

/// Real articles of at least this many words, each as its words.
fn articles(file: &str, words: usize) -> Option<Vec<Vec<String>>> {
    let text = fs::read_to_string(shared_data(file)?).unwrap();
    let body = |line: &str| {
        let fields: serde_json::Value = serde_json::from_str(line).unwrap();
        let words = fields["body"].as_str().unwrap().split_whitespace().map(str::to_owned);
        words.collect::<Vec<_>>()
    };
    Some(text.lines().map(body).filter(|body| body.len() >= words).collect())
}

fn share(found: usize, all: usize) -> f64 {
    found as f64 / all as f64
}

#[test]
fn a_quarter_of_an_article_matches_it_and_an_article_matches_its_page() {
    for (file, language) in [("wikinews_en_2020.ndjson", "en"), ("bbc_hi.ndjson", "hi")] {
        let Some(all) = articles(file, 240) else { return };
        let new = |name: &str, title: usize, words: &[String]| RawArticle {
            language: Some(language.to_owned()),
            title: Some(headline(title as u64)),
            ..article(name, &words.join(" "))
        };
        let mut fixture = EngineFixture::new(Settings::default());
        for (n, words) in all.iter().enumerate() {
            fixture.tag(&new(&format!("a{n}"), n, words));
        }
        let (mut quarters, mut embedded) = (0, 0);
        for (n, words) in all.iter().enumerate() {
            let source = format!("a{n}");
            // A truncated article keeps its headline.
            let part = fixture.tag(&new(&format!("part{n}"), n, &words[..words.len() / 4]));
            quarters += usize::from(part.match_type == Some(MatchType::Partial));
            fixture.delete(&format!("part{n}"));
            // Surrounded by words of others, twice as many as its own.
            let others: Vec<String> =
                all.iter().rev().flatten().skip(97 * n).take(2 * words.len()).cloned().collect();
            let page = [&others[..words.len()], words, &others[words.len()..]].concat();
            let page = fixture.tag(&new(&format!("page{n}"), all.len() + n, &page));
            let extends = |related: &samestory_engine::model::Related| {
                related.relation == RelationKind::Extends && related.id.as_str() == source
            };
            embedded += usize::from(page.related.iter().any(extends));
            fixture.delete(&format!("page{n}"));
        }
        let (quarters, embedded) = (share(quarters, all.len()), share(embedded, all.len()));
        println!("{language}: {} articles, quarters {quarters:.3}, embedded {embedded:.3}", all.len());
        assert!(quarters >= 0.95, "{language}: quarters {quarters}");
        assert!(embedded >= 0.95, "{language}: embedded {embedded}");
    }
}
