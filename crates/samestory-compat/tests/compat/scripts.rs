//! Random text in every script. The tests of the product include this file too.

use proptest::prelude::*;

/// Unicode ranges where normalising, folding or segmenting does something: the scripts news is written in,
/// marks of many combining classes, characters that compose, expand, fold oddly or are invisible.
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

/// Sequences that random characters would hardly ever produce.
#[rustfmt::skip]
const SEQUENCES: &[&str] = &[
    "İ\u{329}", "ǰ\u{323}", "ΐ\u{345}", "ᾳ\u{301}", "\u{6e4}\u{202a}\u{6e4}\u{6ea}", "ﷺ", "ŉ", "ﬃ",
    "ß", "ẞ", "ſ\u{323}\u{307}", "ΣΊΣΥΦΟΣ", "각\u{11a8}", "\u{1100}\u{1161}\u{11a8}", "が",
    "か\u{3099}", "ｶﾞ", "क़", "क्‍ष", "இ", "நி", "กำ", "ຳ", "👨\u{200d}👩\u{200d}👧", "🇮🇳🇯🇵", "👍🏽",
    "1\u{fe0f}\u{20e3}", "🏴\u{e0067}\u{e007f}", "don't", "v1.2", "3,14", "a.b", "\r\n",
    "الْعَرَبِيَّة", "می\u{200c}خواهم", "עִבְרִית", "「東京」", "ⅷ", "℡", "㍿", "①", "ＡＢＣ", "ǅ", "Ꭰꭰ",
    "\u{2126}\u{212a}\u{212b}",
];

/// Text that mixes scripts worse than any editor would.
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
