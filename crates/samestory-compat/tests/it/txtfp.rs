//! Our txtfp-compatible functions and txtfp itself, side by side on the same text.

use proptest::prelude::*;
use samestory_compat::index::LshIndex;
use samestory_compat::txtfp as ours;
use txtfp::{
    Canonicalizer, Fingerprinter, GraphemeTokenizer, LshIndexBuilder, MinHashFingerprinter, MinHashSig,
    ShingleTokenizer, SimHashFingerprinter, Tokenizer, WordTokenizer,
};

use crate::scripts::any_script as text;
use crate::shared_data::bodies;

/// `make test` runs the release build and with it everything; the debug build is for seconds of waiting.
const CASES: u32 = if cfg!(debug_assertions) { 128 } else { 4096 };

/// The code points are tried in blocks; this many blocks make one step.
const STRIDE: usize = if cfg!(debug_assertions) { 32 } else { 1 };

fn tokens(tokenizer: impl Tokenizer, text: &str) -> Vec<String> {
    tokenizer.tokens(text).into_string_iter().collect()
}

fn words_and_graphemes_agree(text: &str) {
    assert_eq!(ours::words(text).collect::<Vec<_>>(), tokens(WordTokenizer, text), "{text:?}");
    assert_eq!(ours::graphemes(text).collect::<Vec<_>>(), tokens(GraphemeTokenizer, text), "{text:?}");
}

fn shingles_agree(text: &str, k: usize) {
    let of_words = ours::Shingles::new(ours::words(text), k);
    let theirs = tokens(ShingleTokenizer { k, inner: WordTokenizer }, text);
    assert_eq!(of_words.iter().collect::<Vec<_>>(), theirs, "k = {k}, {text:?}");
    let of_graphemes = ours::Shingles::new(ours::graphemes(text), k);
    let theirs = tokens(ShingleTokenizer { k, inner: GraphemeTokenizer }, text);
    assert_eq!(of_graphemes.iter().collect::<Vec<_>>(), theirs, "k = {k}, {text:?}");
}

fn their_minhash(text: &str) -> Option<MinHashSig<128>> {
    let tokenizer = ShingleTokenizer { k: ours::SHINGLE_WORDS, inner: WordTokenizer };
    MinHashFingerprinter::<_, 128>::new(Canonicalizer::default(), tokenizer).fingerprint(text).ok()
}

fn signatures_agree(text: &str) {
    let minhash = ours::minhash(text).map(|hash| hash.to_bytes().to_vec());
    assert_eq!(minhash, their_minhash(text).map(|sig| sig.as_bytes().to_vec()), "{text:?}");
    let simhash = ours::simhash(text).map(|hash| hash.to_le_bytes().to_vec());
    let theirs = SimHashFingerprinter::new(Canonicalizer::default(), WordTokenizer).fingerprint(text).ok();
    assert_eq!(simhash, theirs.map(|sig| sig.as_bytes().to_vec()), "{text:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn canonical_text_is_txtfps_and_stays_put(text in text()) {
        let canonical = ours::canonicalize(&text);
        prop_assert_eq!(&canonical, &txtfp::canonicalize(&text));
        prop_assert_eq!(&ours::canonicalize(&canonical), &canonical);
    }

    #[test]
    fn tokens_are_txtfps(text in text(), k in 0..7_usize) {
        words_and_graphemes_agree(&text);
        shingles_agree(&text, k);
    }

    #[test]
    fn signatures_are_txtfps(text in text()) {
        signatures_agree(&text);
    }

    #[test]
    fn similarity_is_txtfps(a in "[a-d ]{5,60}", b in "[a-d ]{5,60}") {
        let theirs = their_minhash(&a).zip(their_minhash(&b)).map(|(a, b)| f64::from(txtfp::jaccard(&a, &b)));
        let ours = ours::minhash(&a).zip(ours::minhash(&b)).map(|(a, b)| a.similarity(&b));
        prop_assert_eq!(ours, theirs);
    }
}

/// The two sides read tables of different Unicode versions. A failure here after an update of a dependency
/// names the code points to look at in `compat/txtfp/canonical.rs`.
#[test]
fn every_code_point_is_canonical_as_in_txtfp() {
    // Alone; before marks it could compose with or sort among; after a letter; between jamo.
    let contexts: [fn(char) -> String; 4] = [
        |c| format!(" {c} "),
        |c| format!("{c}\u{328}\u{301}\u{345}\u{3099}"),
        |c| format!("a\u{308}{c}\u{5b0}\u{94d}\u{e48}"),
        |c| format!("\u{1100}{c}\u{11a8}"),
    ];
    let all: Vec<char> = ('\0'..=char::MAX).collect();
    for context in contexts {
        for block in all.chunks(256).step_by(STRIDE) {
            let text: String = block.iter().copied().map(context).collect();
            if ours::canonicalize(&text) != txtfp::canonicalize(&text) {
                for text in block.iter().copied().map(context) {
                    assert_eq!(
                        ours::canonicalize(&text),
                        txtfp::canonicalize(&text),
                        "{}",
                        text.escape_unicode()
                    );
                }
                panic!("only together: {}", text.escape_unicode());
            }
        }
    }
}

#[test]
fn long_runs_of_marks_sort_as_in_txtfp() {
    let run = "\u{301}\u{328}\u{5b0}\u{345}\u{94d}".repeat(2_000);
    for text in [run.clone(), format!("e{run}"), format!("{run}\u{200d}{run}İ{run}")] {
        assert_eq!(ours::canonicalize(&text), txtfp::canonicalize(&text));
    }
}

#[test]
fn bands_for_a_threshold_are_txtfps() {
    for percent in 1_u16..100 {
        let theirs = LshIndexBuilder::for_threshold(f32::from(percent) / 100.0, 128).unwrap();
        let ours = LshIndex::for_threshold(f64::from(percent) / 100.0).unwrap();
        assert_eq!(ours.banding(), (theirs.bands, theirs.rows), "{percent} %");
    }
}

#[test]
fn real_articles_of_every_script_come_out_as_in_txtfp() {
    for body in bodies() {
        let canonical = ours::canonicalize(&body);
        assert_eq!(canonical, txtfp::canonicalize(&body));
        words_and_graphemes_agree(&canonical);
        signatures_agree(&body);
    }
}
