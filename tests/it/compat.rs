//! Our txtfp-compatible functions and txtfp itself, side by side on the same text.

use std::fs;

use proptest::prelude::*;
use samestory::compat::index::LshIndex;
use samestory::compat::txtfp as ours;
use txtfp::{
    Canonicalizer, Fingerprinter, GraphemeTokenizer, LshIndexBuilder, MinHashFingerprinter, MinHashSig,
    ShingleTokenizer, SimHashFingerprinter, Tokenizer, WordTokenizer,
};

use crate::support::shared_data;

/// Stretches of Unicode where normalising, folding or segmenting does something: the scripts news is written
/// in, marks of many combining classes, characters that compose, expand, fold oddly or cannot be seen.
const STRETCHES: &[(char, char)] = &[
    ('\0', '\u{7f}'),
    ('\u{80}', '\u{24f}'),      // Latin: soft hyphen, ß, İ, ı, ŉ, ſ, Ǆ
    ('\u{250}', '\u{2ff}'),     // IPA and modifier letters
    ('\u{300}', '\u{36f}'),     // marks, ypogegrammeni among them
    ('\u{370}', '\u{3ff}'),     // Greek: final sigma, ΐ
    ('\u{400}', '\u{58f}'),     // Cyrillic, Armenian and its ligature և
    ('\u{590}', '\u{6ff}'),     // Hebrew points, Arabic, tatweel, number signs
    ('\u{900}', '\u{d7f}'),     // Devanagari to Malayalam
    ('\u{e00}', '\u{fff}'),     // Thai, Lao, Tibetan
    ('\u{1000}', '\u{109f}'),   // Burmese
    ('\u{10a0}', '\u{10ff}'),   // Georgian
    ('\u{1100}', '\u{11ff}'),   // Hangul jamo
    ('\u{1200}', '\u{137f}'),   // Ethiopic
    ('\u{13a0}', '\u{13ff}'),   // Cherokee, which folds to capitals
    ('\u{1780}', '\u{18af}'),   // Khmer, Mongolian and its selectors
    ('\u{1c80}', '\u{1cbf}'),   // Cyrillic and Georgian letters that fold into other blocks
    ('\u{1e00}', '\u{1fff}'),   // Latin and Greek precomposed, ẞ
    ('\u{2000}', '\u{206f}'),   // spaces, joiners, Bidi controls
    ('\u{2070}', '\u{218f}'),   // superscripts, letter-like, Roman numerals
    ('\u{2460}', '\u{24ff}'),   // enclosed letters
    ('\u{2600}', '\u{27bf}'),   // symbols with emoji forms
    ('\u{3000}', '\u{33ff}'),   // kana, voicing marks, squared words
    ('\u{4e00}', '\u{4fff}'),   // Han
    ('\u{a640}', '\u{a7ff}'),   // Cyrillic and Latin extensions, capitals since Unicode 17
    ('\u{ab30}', '\u{abff}'),   // Cherokee small letters, Meetei
    ('\u{ac00}', '\u{d7ff}'),   // Hangul syllables, more jamo
    ('\u{f900}', '\u{faff}'),   // Han compatibility
    ('\u{fb00}', '\u{fdff}'),   // ligatures, Arabic presentation forms, U+FDFA
    ('\u{fe00}', '\u{ffff}'),   // selectors, half and full width, specials
    ('\u{10400}', '\u{1044f}'), // Deseret
    ('\u{11000}', '\u{116ff}'), // Brahmic scripts beyond the first plane
    ('\u{16ea0}', '\u{16edf}'), // Beria Erfe, cased since Unicode 17
    ('\u{1d100}', '\u{1d7ff}'), // musical marks, mathematical letters
    ('\u{1e900}', '\u{1e95f}'), // Adlam
    ('\u{1f100}', '\u{1f64f}'), // flags, enclosed letters, emoji
    ('\u{1f900}', '\u{1faff}'), // more emoji
    ('\u{2f800}', '\u{2fa1f}'), // Han compatibility
    ('\u{e0000}', '\u{e01ef}'), // tags and selectors
];

/// What random characters would hardly ever line up to.
#[rustfmt::skip]
const SEQUENCES: &[&str] = &[
    "İ\u{329}", "ǰ\u{323}", "ΐ\u{345}", "ᾳ\u{301}", "\u{6e4}\u{202a}\u{6e4}\u{6ea}", "ﷺ", "ŉ", "ﬃ",
    "ß", "ẞ", "ſ\u{323}\u{307}", "ΣΊΣΥΦΟΣ", "각\u{11a8}", "\u{1100}\u{1161}\u{11a8}", "が",
    "か\u{3099}", "ｶﾞ", "क़", "क्‍ष", "இ", "நி", "กำ", "ຳ", "👨\u{200d}👩\u{200d}👧", "🇮🇳🇯🇵", "👍🏽",
    "1\u{fe0f}\u{20e3}", "🏴\u{e0067}\u{e007f}", "don't", "v1.2", "3,14", "a.b", "\r\n",
    "الْعَرَبِيَّة", "می\u{200c}خواهم", "עִבְרִית", "「東京」", "ⅷ", "℡", "㍿", "①", "ＡＢＣ", "ǅ", "Ꭰꭰ",
    "\u{2126}\u{212a}\u{212b}",
];

fn text() -> impl Strategy<Value = String> {
    let stretch = prop::sample::select(STRETCHES);
    let character = stretch.prop_flat_map(|(first, last)| prop::char::range(first, last));
    let piece = prop_oneof![
        6 => character.prop_map(String::from),
        2 => any::<char>().prop_map(String::from),
        2 => prop::sample::select(SEQUENCES).prop_map(String::from),
        2 => "[a-zA-Z]{1,6}",
        3 => Just(" ".to_owned()),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

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
    #![proptest_config(ProptestConfig { cases: 4096, failure_persistence: None, ..ProptestConfig::default() })]

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
        for block in all.chunks(256) {
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

/// One file or more for each script in the shared data.
const ARTICLES: &[&str] = &[
    "ntrex_19lang.ndjson",
    "semeval22_task8.ndjson",
    "tgcontest_ru_en.ndjson",
    "univnews_ar_en_ku.ndjson",
    "wikinews_en_2020.ndjson",
    "wikinews_ja.ndjson",
    "cnews_zh.ndjson",
    "bbc_hi.ndjson",
    "l3cube_lpc_mr.ndjson",
];

#[test]
fn real_articles_of_every_script_come_out_as_in_txtfp() {
    for file in ARTICLES {
        let Some(path) = shared_data(file) else { continue };
        let lines = fs::read_to_string(path).unwrap();
        assert!(!lines.is_empty(), "{file} is empty");
        for line in lines.lines() {
            let article: serde_json::Value = serde_json::from_str(line).unwrap();
            let body = article["body"].as_str().unwrap();
            let canonical = ours::canonicalize(body);
            assert_eq!(canonical, txtfp::canonicalize(body));
            words_and_graphemes_agree(&canonical);
            signatures_agree(body);
        }
    }
}
