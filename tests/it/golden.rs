//! Fixed articles have fixed normalised text, fingerprint bytes and band keys.
//!
//! State on disk and in Kafka outlives a version of the program: a change to one of these bytes needs a new
//! scheme number, or everything stored must be rebuilt. `UPDATE_GOLDEN=1` rewrites the file; the commit
//! message must say why that was right.

use std::fs;
use std::path::{Path, PathBuf};

use samestory_engine::fingerprint::{Fingerprint, LANES, config_hash, fingerprint, of_text};
use samestory_engine::lsh::Banding;
use samestory_engine::model::Lang;
use samestory_engine::text::language::row;
use samestory_engine::text::{Options, Text, title_words};
use serde::{Deserialize, Serialize};

use crate::texts::{Article, read_articles};

/// Everything that is fixed about an article.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Golden {
    id: String,
    language: String,
    #[serde(rename = "canonical")]
    normalized: String,
    tokens: u32,
    shingles: u32,
    numerals: u32,
    names: u32,
    fingerprint: String,
    /// The keys of 35 bands of 3 rows, in order.
    bands: String,
}

/// Replaces the settings' hash, which changes with every added language while these bytes must not.
const CONFIG: u32 = 0x5a5a_5a5a;

impl Golden {
    fn from_article(article: &Article) -> Golden {
        let text = article.text();
        let row = row(text.language.lang);
        let title = article.title.as_deref().map(|title| title_words(title, row, &Options::default()));
        let print = of_text(&text, CONFIG).with_title(title.unwrap_or_default());
        let Text { normalized, language, .. } = text;
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
            normalized,
            tokens: print.tokens,
            shingles: print.shingles,
            numerals: print.numerals.distinct(),
            names: print.names.distinct(),
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
    let made: Vec<Golden> = articles.iter().map(Golden::from_article).collect();
    let path = golden("fingerprints.json");
    if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        fs::write(&path, serde_json::to_string_pretty(&made).unwrap() + "\n").unwrap();
    }
    let kept: Vec<Golden> = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    for (made, kept) in made.iter().zip(&kept) {
        let id = &kept.id;
        assert_eq!(made.id, *id, "articles.ndjson and fingerprints.json are not in the same order; {HOW}");
        assert_eq!(made.normalized, kept.normalized, "{id}: the normalised text changed; {HOW}");
        assert_eq!(made.language, kept.language, "{id}: the language changed; {HOW}");
        assert_eq!(made.fingerprint, kept.fingerprint, "{id}: the fingerprint changed; {HOW}");
        assert_eq!(made.bands, kept.bands, "{id}: the band keys changed; {HOW}");
        assert_eq!(made, kept, "{id}: a count changed; {HOW}");
    }
    assert_eq!(made.len(), kept.len(), "not every article has a golden fingerprint; {HOW}");
}

#[test]
fn texts_without_tokens_have_the_length_of_the_layout_table() {
    for normalized in ["", "🎉"] {
        let bytes = fingerprint(normalized, row(Lang::UND), CONFIG).encode();
        assert_eq!(bytes.len(), 314, "{normalized:?}");
        assert_eq!(bytes[..6], [2, 2, 0x5a, 0x5a, 0x5a, 0x5a]);
        assert_eq!(bytes[22..58], [0; 36], "no SimHash, no tokens, no shingles, no lists");
        assert_eq!(bytes[58..], [0; 256], "no lane has a minimum");
    }
    // XXH3-128 of the empty input, from its specification.
    let nothing = fingerprint("", row(Lang::UND), CONFIG);
    assert_eq!(nothing.content, 0x99aa_06d3_0147_98d8_6001_c324_468d_497f);
}

#[test]
fn settings_that_change_the_text_change_the_config_hash() {
    let plain = Options::default();
    let skeleton = Options { skeleton: true, ..plain.clone() };
    assert_ne!(config_hash(&plain), config_hash(&skeleton));
    // A limit refuses texts but changes none.
    assert_eq!(config_hash(&plain), config_hash(&Options { max_bytes: 10, ..plain }));
}
