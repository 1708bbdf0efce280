//! Fixed articles → fixed canonical text, fingerprint bytes and band keys.
//!
//! State on disk and on the bus outlives a version of the program: what changes one of these bytes needs a new scheme
//! number, or everything kept must be made again. `UPDATE_GOLDEN=1` writes the file anew; a sentence in the commit says
//! why that was right.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use samestory::detect::compare::{Relation, Rules, compare};
use samestory::fingerprint::{Fingerprint, LANES, config_hash, fingerprint, of_text};
use samestory::lsh::Banding;
use samestory::model::Lang;
use samestory::text::language::row;
use samestory::text::{Options, Text};
use serde::{Deserialize, Serialize};

use crate::texts::{Article, demo, read_articles};

/// All that is fixed of an article.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Golden {
    id: String,
    language: String,
    canonical: String,
    tokens: u32,
    shingles: u32,
    numerals: u32,
    fingerprint: String,
    /// The keys of 35 bands of 3 rows, in order.
    bands: String,
}

/// Stands where the settings' hash would: that one changes with every language that is added, and these must not.
const CONFIG: u32 = 0x5a5a_5a5a;

impl Golden {
    fn of(article: &Article) -> Golden {
        let Text { canonical, language } = article.text();
        let print = fingerprint(&canonical, row(language.lang), CONFIG);
        let bytes = print.encode();
        let keys = Banding::new(35, 3, LANES).unwrap().keys(&print.minhash);
        let keys: Vec<String> = keys
            .enumerate()
            .map(|(band, key)| {
                assert_eq!(usize::from(key.band), band);
                format!("{:016x}", key.hash)
            })
            .collect();
        assert_eq!(Fingerprint::decode(&bytes).as_ref(), Ok(&print));
        Golden {
            id: article.id.clone(),
            language: format!("{} ({})", language.lang, language.source.as_str()),
            canonical,
            tokens: print.tokens,
            shingles: print.shingles,
            numerals: print.numerals.distinct(),
            fingerprint: bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
            bands: keys.join(" "),
        }
    }
}

fn golden(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(file)
}

const HOW: &str = "if that is meant, UPDATE_GOLDEN=1 writes tests/golden/fingerprints.json anew; \
    kept fingerprints do not change with it, so think of the scheme number, and say why in the commit";

#[test]
fn fixed_articles_have_fixed_fingerprints() {
    let articles = read_articles(&golden("articles.ndjson"));
    let made: Vec<Golden> = articles.iter().map(Golden::of).collect();
    let path = golden("fingerprints.json");
    if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        fs::write(&path, serde_json::to_string_pretty(&made).unwrap() + "\n").unwrap();
    }
    let kept: Vec<Golden> = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    for (made, kept) in made.iter().zip(&kept) {
        let id = &kept.id;
        assert_eq!(made.id, *id, "articles.ndjson and fingerprints.json are not in the same order; {HOW}");
        assert_eq!(made.canonical, kept.canonical, "{id}: the canonical text changed; {HOW}");
        assert_eq!(made.language, kept.language, "{id}: the language changed; {HOW}");
        assert_eq!(made.fingerprint, kept.fingerprint, "{id}: the fingerprint changed; {HOW}");
        assert_eq!(made.bands, kept.bands, "{id}: the band keys changed; {HOW}");
        assert_eq!(made, kept, "{id}: a count changed; {HOW}");
    }
    assert_eq!(made.len(), kept.len(), "not every article has a golden fingerprint; {HOW}");
}

#[test]
fn texts_of_no_tokens_have_the_bytes_of_the_layout_table() {
    for canonical in ["", "🎉"] {
        let bytes = fingerprint(canonical, row(Lang::UND), CONFIG).encode();
        assert_eq!(bytes.len(), 562, "{canonical:?}");
        assert_eq!(bytes[..6], [1, 1, 0x5a, 0x5a, 0x5a, 0x5a]);
        assert_eq!(bytes[22..50], [0; 28], "no SimHash, no tokens, no shingles, no lists");
        assert_eq!(bytes[50..], [0xff; 512], "no lane has a least value");
    }
    // XXH3-128 of nothing, from its specification.
    let nothing = fingerprint("", row(Lang::UND), CONFIG);
    assert_eq!(nothing.content, 0x99aa_06d3_0147_98d8_6001_c324_468d_497f);
}

#[test]
fn settings_that_change_the_text_change_the_config_hash() {
    let plain = Options::default();
    let skeleton = Options { skeleton: true, ..plain };
    assert_ne!(config_hash(&plain), config_hash(&skeleton));
    // A limit refuses texts, it changes none.
    assert_eq!(config_hash(&plain), config_hash(&Options { max_bytes: 10, ..plain }));
}

#[test]
fn the_demo_articles_are_to_each_other_what_the_demo_says() {
    let articles = demo();
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo/expected.tsv");
    let table = fs::read_to_string(table).unwrap();
    let rows: Vec<Vec<&str>> = table.lines().skip(1).map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows.len(), articles.len());
    let mut seen: BTreeMap<&str, Text> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (row, article) in rows.iter().zip(&articles) {
        let [id, line, verdict, match_type, duplicate_of, _, related] = row[..] else { panic!("{row:?}") };
        assert_eq!(id, article.id);
        let text = article.text();
        let relations = relations(&text, &seen);
        let found = |id: &str| relations.get(id).map_or("none", |relation| relation.as_str());
        match verdict {
            // A new text under an old id replaces the old one.
            "unique" => wrong.extend(
                relations
                    .iter()
                    .filter(|(old, relation)| **old != id && relation.is_duplicate())
                    .map(|(old, relation)| format!("line {line} is a copy after all, {relation:?} to {old}")),
            ),
            "exact-duplicate" | "near-duplicate" => {
                let expected = if match_type == "same-article" { "exact" } else { match_type };
                if found(duplicate_of) != expected {
                    wrong.push(format!(
                        "line {line} is {}, not {expected}, to {duplicate_of}",
                        found(duplicate_of)
                    ));
                }
            }
            other => panic!("line {line}: {other} is no verdict"),
        }
        if let Some((expected, other)) = related.split_once(':')
            && found(other) != expected
        {
            wrong.push(format!("line {line} is {}, not {expected}, to {other}", found(other)));
        }
        seen.insert(&article.id, text);
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

/// What a text is to each of the earlier ones of its language; only those are ever compared.
fn relations<'a>(text: &Text, seen: &BTreeMap<&'a str, Text>) -> BTreeMap<&'a str, Relation> {
    let print = of_text(text, 0);
    seen.iter()
        .filter(|(_, old)| old.language.lang == text.language.lang)
        .map(|(id, old)| (*id, compare(&of_text(old, 0), &print, &Rules::default()).relation))
        .collect()
}
