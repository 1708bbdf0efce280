//! Test texts: random ones in every script, and the demo's articles.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use samestory_engine::text::markup::ContentType;
use samestory_engine::text::{Options, Text, prepare};
use serde::Deserialize;

// The tests of samestory-compat need the same texts, and must run without this package.
#[path = "../../crates/samestory-compat/tests/compat/scripts.rs"]
mod scripts;
pub(crate) use scripts::any_script;

/// The fields of an article that concern its text.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Article {
    pub(crate) id: String,
    pub(crate) title: Option<String>,
    pub(crate) language: Option<String>,
    pub(crate) content_type: Option<String>,
    pub(crate) body: String,
}

impl Article {
    /// Its text, prepared as for a fingerprint.
    pub(crate) fn text(&self) -> Text {
        let content_type = self.content_type.as_deref().and_then(ContentType::parse);
        prepare(&self.body, content_type, self.language.as_deref(), &Options::default()).unwrap()
    }
}

/// The demo's articles, in stream order.
pub(crate) fn demo() -> Vec<Article> {
    read_articles(&Path::new(env!("CARGO_MANIFEST_DIR")).join("demo/articles.ndjson"))
}

/// The articles of a file with one per line.
pub(crate) fn read_articles(path: &Path) -> Vec<Article> {
    let lines = fs::read_to_string(path).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Characters that interact with their neighbours: starters that compose with marks, some of which already
/// contain one, marks of every combining class, and invisible characters between them.
#[rustfmt::skip]
const TOUCHY: &[char] = &[
    'a', 'e', 'i', 'I', 'u', 'o', '<', '1', ' ', 'İ', 'ı', 'ù', 'ê', 'ệ', 'ẹ', 'ơ', 'ǖ', 'ç', 'ḉ', 'ß', 'ſ', 'ẛ', 'Å',
    'ι', 'Σ', 'ς', 'ΐ', 'ᾳ', 'ᾴ', 'ὰ', 'и', 'й', 'א', '\u{fb2a}', 'ا', 'آ', 'ﷺ', 'क', 'ऩ', '\u{958}', '\u{9c7}', '\u{9be}', '\u{9cb}',
    '\u{cc6}', '\u{cc2}', '\u{cd5}', '\u{dd9}', '\u{dca}', '\u{1100}', '\u{1161}', '\u{11a8}', '가', '각', 'か', 'が', 'ｶ', 'ﾞ',
    '\u{1025}', '\u{102e}', '\u{f71}', '\u{f72}', '\u{f74}', '\u{f80}', '\u{300}', '\u{301}', '\u{302}', '\u{307}', '\u{308}',
    '\u{30c}', '\u{31b}', '\u{323}', '\u{327}', '\u{328}', '\u{334}', '\u{338}', '\u{342}', '\u{345}', '\u{34f}', '\u{5b0}',
    '\u{5bc}', '\u{5c1}', '\u{64b}', '\u{653}', '\u{654}', '\u{93c}', '\u{94d}', '\u{e38}', '\u{e48}', '\u{3099}', '\u{ad}',
    '\u{200b}', '\u{200d}', '\u{202e}', '\u{640}', '\u{a0}', '\u{3000}', '¨', '\u{37a}', '\u{1d15e}', '\u{1d165}', '\u{110a5}', '\u{110ba}',
];

/// Short texts with unusual neighbours.
pub(crate) fn touchy() -> impl Strategy<Value = String> {
    let of_length =
        |length| prop::collection::vec(prop::sample::select(TOUCHY), length).prop_map(String::from_iter);
    // Mostly short, because one character that needs the slow path takes all its neighbours along.
    prop_oneof![3 => of_length(0..4), 1 => of_length(0..12)]
}
