//! Texts to try things on: random ones of every script, and the demo's articles.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use samestory::text::markup::ContentType;
use samestory::text::{Options, Text, prepare};
use serde::Deserialize;

/// An article as it comes, as far as its text goes.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Article {
    pub(crate) id: String,
    pub(crate) title: Option<String>,
    pub(crate) language: Option<String>,
    pub(crate) content_type: Option<String>,
    pub(crate) body: String,
}

impl Article {
    /// Its text, as it would be prepared on its way to a fingerprint.
    pub(crate) fn text(&self) -> Text {
        let content_type = self.content_type.as_deref().and_then(ContentType::parse);
        prepare(&self.body, content_type, self.language.as_deref(), &Options::default()).unwrap()
    }
}

/// The demo's articles, in the order they arrive.
pub(crate) fn demo() -> Vec<Article> {
    read_articles(&Path::new(env!("CARGO_MANIFEST_DIR")).join("demo/articles.ndjson"))
}

/// The articles of a file, one a line.
pub(crate) fn read_articles(path: &Path) -> Vec<Article> {
    let lines = fs::read_to_string(path).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

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

/// Text of any scripts, mixed worse than any editor would.
pub(crate) fn any_script() -> impl Strategy<Value = String> {
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

/// Characters that mind their neighbours, close together: starters that marks compose with, also where they already
/// hold a mark, marks of every kind of combining class, and what vanishes between them.
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

/// Short text in which neighbours meet that seldom do.
pub(crate) fn touchy() -> impl Strategy<Value = String> {
    let of_length =
        |length| prop::collection::vec(prop::sample::select(TOUCHY), length).prop_map(String::from_iter);
    // Mostly a few: one that needs the whole rule decides for all its neighbours.
    prop_oneof![3 => of_length(0..4), 1 => of_length(0..12)]
}
