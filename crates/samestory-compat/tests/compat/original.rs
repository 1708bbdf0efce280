//! SimHash and MinHash against the original's algorithm, which `tests/data/original.mjs` reimplements in
//! JavaScript.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use proptest::prelude::*;
use samestory_compat::fnv_minhash::compute_minhash;
use samestory_compat::simhash::{compute_simhash, compute_simhash_unicode};
use serde::Deserialize;

use crate::shared_data::bodies;

#[derive(Debug, Deserialize, PartialEq)]
struct Hashes {
    simhash: String,
    minhash: Option<String>,
}

impl Hashes {
    fn of(text: &str) -> Hashes {
        let hex = |bytes: [u8; 512]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Hashes {
            simhash: compute_simhash(text),
            minhash: compute_minhash(text).map(|hash| hex(hash.to_bytes())),
        }
    }
}

fn data(file: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(file)).unwrap()
}

#[test]
fn invented_texts_hash_as_in_javascript() {
    let texts: Vec<String> = serde_json::from_str(&data("texts.json")).unwrap();
    let hashes: Vec<Hashes> = serde_json::from_str(&data("hashes.json")).unwrap();
    assert_eq!(texts.len(), hashes.len());
    for (text, hashes) in texts.iter().zip(hashes) {
        assert_eq!(Hashes::of(text), hashes, "{text:?}");
    }
}

#[test]
#[ignore = "needs Node and real articles: SAMESTORY_DATA=DIR cargo test -p samestory-compat -- --ignored"]
fn real_articles_hash_as_in_javascript() {
    let texts: Vec<String> = bodies().collect();
    let mut node = Command::new("node")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/original.mjs"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    node.stdin.take().unwrap().write_all(&serde_json::to_vec(&texts).unwrap()).unwrap();
    let hashes: Vec<Hashes> = serde_json::from_slice(&node.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(texts.len(), hashes.len());
    for (text, hashes) in texts.iter().zip(hashes) {
        assert_eq!(Hashes::of(text), hashes, "{text:?}");
    }
    println!("{} articles agree", texts.len());
}

proptest! {
    #[test]
    fn the_unicode_variant_is_the_original_on_ascii(text in "[ -~\\n\\t]{0,200}") {
        prop_assert_eq!(compute_simhash_unicode(&text), compute_simhash(&text));
    }
}
