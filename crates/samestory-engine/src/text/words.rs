//! Finds words by the boundaries of UAX #29, for `shingle` and `normalize`.
//!
//! The boundaries equal those of the `unicode-segmentation` crate, which the tests check. Finding them this way is
//! several times faster, because normalised text is mostly letters and single spaces. A word must contain a letter or
//! a digit.

use std::sync::OnceLock;

use icu_properties::CodePointMapData;
use icu_properties::props::WordBreak;

use super::block::{BLOCK, word_bits};

/// The positions of the words in a text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Words {
    /// Start and end of each word, flattened.
    edges: Vec<usize>,
    /// Indices of the words that contain an ASCII digit, ascending.
    pub(super) with_digit: Vec<usize>,
}

impl Words {
    /// Start and end of every word, in text order.
    pub(super) fn spans(&self) -> &[[usize; 2]] {
        self.edges.as_chunks().0
    }

    fn push(&mut self, span: [usize; 2], digit: bool) {
        if digit {
            self.with_digit.push(self.edges.len() / 2);
        }
        self.edges.extend_from_slice(&span);
    }
}

/// Finds the words of `text`.
pub(super) fn words(text: &str) -> Words {
    if text.is_ascii() { ascii_words(text.as_bytes()) } else { unicode_words(text) }
}

const LETTER: u8 = 1;
const DIGIT: u8 = 2;
/// Joins two letters, as in `a:b`.
const MID_LETTER: u8 = 4;
/// Joins two digits, as in `1,000`.
const MID_DIGIT: u8 = 8;

const ASCII: [u8; 256] = {
    let mut class = [0; 256];
    let mut byte = 0;
    while byte < 128 {
        class[byte] = match byte as u8 {
            b'a'..=b'z' | b'A'..=b'Z' => LETTER,
            b'0'..=b'9' => DIGIT,
            b':' => MID_LETTER,
            b',' | b';' => MID_DIGIT,
            b'.' | b'\'' => MID_LETTER | MID_DIGIT,
            _ => 0,
        };
        byte += 1;
    }
    class
};

/// Marks each byte that belongs to a word with a bit; words start and end where the bit changes. Nothing here
/// branches on an ordinary byte, so there is little to mispredict. The arithmetic wraps explicitly, because
/// checked shifts double its cost; no value comes near overflow.
fn ascii_words(bytes: &[u8]) -> Words {
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    // Padded with at least one space, which ends the last word.
    let mut last = [b' '; BLOCK];
    last[..rest.len()].copy_from_slice(rest);

    // Only a text of one-letter words needs more room than this.
    let mut edges = vec![0; bytes.len() / 2 + 2 * BLOCK];
    let mut found = 0usize;
    let (mut with_digit, mut underscores) = (Vec::new(), 0);
    // True if the previous block ended inside a word.
    let mut open = 0;
    for (block, base) in blocks.iter().chain([&last]).zip((0usize..).step_by(BLOCK)) {
        let bits = word_bits(block);
        let mut word = bits.word;
        // A single byte between two words, other than a space, may join them. `joins` looks beyond the block.
        let between = !word & (word << 1 | open) & (word >> 1 | 1 << 63) & !bits.space;
        each_bit(between, |at| word |= u64::from(joins(bytes, base.wrapping_add(at))) << at);

        let changes = word ^ (word << 1 | open);
        open = word >> 63;
        each_number(bits.digit, changes, |changes_before| {
            // Inside a word the number of edges so far is odd, so halving it gives the word's index.
            with_digit.push(found.wrapping_add(changes_before) / 2);
        });
        underscores |= bits.underscore;
        if edges.len() < found.wrapping_add(BLOCK) {
            edges.resize(edges.len() * 2, 0);
        }
        if let Some(room) = edges[found..].first_chunk_mut() {
            found = found.wrapping_add(write_positions(changes, base, room));
        }
    }
    edges.truncate(found);
    with_digit.dedup();
    let words = Words { edges, with_digit };
    if underscores == 0 { words } else { without_underscore_runs(&words, bytes) }
}

/// Writes the positions of the set bits, from the lowest; returns their number.
#[inline(always)]
fn write_positions(mut bits: u64, base: usize, room: &mut [usize; BLOCK]) -> usize {
    /// A block of news rarely has more words than half of this.
    const MOST: usize = 24;
    let count = bits.count_ones() as usize;
    let mut next = || {
        // The extra bit keeps the position in range once no bits are left.
        let at = (bits | 1 << 63).trailing_zeros() as usize;
        bits &= bits.wrapping_sub(1);
        base.wrapping_add(at)
    };
    // Always writes this many: the count is unpredictable, and the next block overwrites the excess.
    let (most, rest) = room.split_at_mut(MOST);
    most.fill_with(&mut next);
    if count > MOST {
        rest.fill_with(next);
    }
    count
}

/// Calls `each` with the position of every set bit, from the lowest.
#[inline(always)]
fn each_bit(mut bits: u64, mut each: impl FnMut(usize)) {
    while bits != 0 {
        each(bits.trailing_zeros() as usize);
        bits &= bits.wrapping_sub(1);
    }
}

/// Calls `each` for every word of the block that contains a digit, with the number of changes up to there.
#[inline(always)]
fn each_number(mut digits: u64, changes: u64, mut each: impl FnMut(usize)) {
    while digits != 0 {
        let up_to_here = digits ^ digits.wrapping_sub(1);
        each((changes & up_to_here).count_ones() as usize);
        // Skips to the next change, if there is one.
        let ahead = changes & !up_to_here;
        let next = ahead & ahead.wrapping_neg();
        digits &= next.wrapping_neg();
    }
}

/// Removes words that consist of underscores only.
fn without_underscore_runs(words: &Words, bytes: &[u8]) -> Words {
    let mut kept = Words::default();
    let mut with_digit = words.with_digit.iter().peekable();
    for (index, &[start, end]) in words.spans().iter().enumerate() {
        let digit = with_digit.next_if_eq(&&index).is_some();
        if bytes[start..end].iter().any(|&byte| byte != b'_') {
            kept.push([start, end], digit);
        }
    }
    kept
}

/// True if the character at `at` joins its two neighbours into one word.
fn joins(bytes: &[u8], at: usize) -> bool {
    let class = |at: usize| bytes.get(at).map_or(0, |&byte| ASCII[usize::from(byte)]);
    let (here, both) = (class(at), class(at - 1) & class(at + 1));
    (here & MID_LETTER != 0 && both & LETTER != 0) || (here & MID_DIGIT != 0 && both & DIGIT != 0)
}

/// The Word_Break classes that matter in normalised text, which has no format characters; one byte per character.
mod kind {
    pub(super) const OTHER: u8 = 0;
    pub(super) const LETTER: u8 = 1;
    pub(super) const HEBREW: u8 = 2;
    pub(super) const NUMERIC: u8 = 3;
    pub(super) const KATAKANA: u8 = 4;
    pub(super) const EXTEND_NUM_LET: u8 = 5;
    /// Extend and Format: belongs to the preceding character.
    pub(super) const ATTACHED: u8 = 6;
    pub(super) const MID_LETTER: u8 = 7;
    pub(super) const MID_NUM: u8 = 8;
    pub(super) const MID_NUM_LET: u8 = 9;
    pub(super) const SINGLE_QUOTE: u8 = 10;
    pub(super) const DOUBLE_QUOTE: u8 = 11;
    /// A single quote already joined to a Hebrew letter; no character has this class by itself.
    pub(super) const HEBREW_QUOTE: u8 = 12;
    pub(super) const KIND: u8 = 15;
    /// The character is a letter or a digit.
    pub(super) const ALNUM: u8 = 16;
}

fn word_class(c: char) -> u8 {
    let kind = match CodePointMapData::<WordBreak>::new().get(c) {
        WordBreak::ALetter => kind::LETTER,
        WordBreak::HebrewLetter => kind::HEBREW,
        WordBreak::Numeric => kind::NUMERIC,
        WordBreak::Katakana => kind::KATAKANA,
        WordBreak::ExtendNumLet => kind::EXTEND_NUM_LET,
        WordBreak::Extend | WordBreak::Format | WordBreak::ZWJ => kind::ATTACHED,
        WordBreak::MidLetter => kind::MID_LETTER,
        WordBreak::MidNum => kind::MID_NUM,
        WordBreak::MidNumLet => kind::MID_NUM_LET,
        WordBreak::SingleQuote => kind::SINGLE_QUOTE,
        WordBreak::DoubleQuote => kind::DOUBLE_QUOTE,
        _ => kind::OTHER,
    };
    if c.is_alphanumeric() { kind | kind::ALNUM } else { kind }
}

/// The classes of the Basic Multilingual Plane.
fn classes() -> &'static [u8] {
    static CLASSES: OnceLock<Box<[u8]>> = OnceLock::new();
    CLASSES.get_or_init(|| {
        (0..0x1_0000u32).map(|code| char::from_u32(code).map_or(kind::OTHER, word_class)).collect()
    })
}

/// True if a character is a letter or a digit of a script that puts spaces between words.
pub(super) fn is_spaced(c: char) -> bool {
    let class = classes().get(c as usize).copied().unwrap_or_else(|| word_class(c));
    let spaced = matches!(class & kind::KIND, kind::LETTER | kind::HEBREW | kind::NUMERIC);
    spaced && class & kind::ALNUM != 0
}

/// A test for letters and digits that looks them up in a table.
pub(super) fn alphanumeric() -> impl Fn(char) -> bool {
    let classes = classes();
    move |c| classes.get(c as usize).map_or_else(|| c.is_alphanumeric(), |class| class & kind::ALNUM != 0)
}

/// Calls `each` for every letter and digit, for text that is cut by characters.
pub(super) fn each_alphanumeric(text: &str, mut each: impl FnMut(usize, char)) {
    let is_alphanumeric = alphanumeric();
    for (at, c) in text.char_indices() {
        if is_alphanumeric(c) {
            each(at, c);
        }
    }
}

/// True if a boundary lies between two neighbours (UAX #29, WB5 to WB13b).
enum Join {
    Apart,
    Together,
    /// Together if the next character is of this kind: a middle character joins only two of the same kind.
    If(u8),
}

fn join(before: u8, after: u8) -> Join {
    use kind::*;
    let letter = |kind| kind == LETTER || kind == HEBREW;
    match (before, after) {
        (HEBREW, SINGLE_QUOTE) => Join::Together,
        (HEBREW_QUOTE, LETTER | HEBREW) => Join::Together,
        (HEBREW, DOUBLE_QUOTE) => Join::If(HEBREW),
        (before, MID_LETTER | MID_NUM_LET | SINGLE_QUOTE) if letter(before) => Join::If(LETTER),
        (NUMERIC, MID_NUM | MID_NUM_LET | SINGLE_QUOTE) => Join::If(NUMERIC),
        (LETTER | HEBREW | NUMERIC, LETTER | HEBREW | NUMERIC) => Join::Together,
        (KATAKANA, KATAKANA) => Join::Together,
        (LETTER | HEBREW | NUMERIC | KATAKANA | EXTEND_NUM_LET, EXTEND_NUM_LET) => Join::Together,
        (EXTEND_NUM_LET, LETTER | HEBREW | NUMERIC | KATAKANA) => Join::Together,
        _ => Join::Apart,
    }
}

/// A stretch of text without a boundary.
#[derive(Clone, Copy)]
struct Stretch {
    start: usize,
    alnum: bool,
    digit: bool,
}

fn unicode_words(text: &str) -> Words {
    let classes = classes();
    // A non-ASCII word takes eight bytes or more in every language measured, so this never grows.
    let mut words = Words { edges: Vec::with_capacity(text.len() / 4), with_digit: Vec::new() };
    let mut emit = |stretch: Stretch, end: usize| {
        if stretch.alnum {
            words.push([stretch.start, end], stretch.digit);
        }
    };
    let mut current = Stretch { start: 0, alnum: false, digit: false };
    let mut before = kind::OTHER;
    // A middle character that awaits its successor: the kind it needs, and the stretch it starts otherwise.
    let mut waiting: Option<(u8, Stretch)> = None;
    for (at, c) in text.char_indices() {
        let class = classes.get(c as usize).copied().unwrap_or_else(|| word_class(c));
        let (kind, alnum, digit) = (class & kind::KIND, class & kind::ALNUM != 0, c.is_ascii_digit());
        if kind == kind::ATTACHED {
            let owner = waiting.as_mut().map_or(&mut current, |(_, alone)| alone);
            owner.alnum |= alnum;
            if at == 0 {
                before = kind::ATTACHED;
            }
            continue;
        }
        if let Some((wanted, alone)) = waiting.take() {
            let holds = kind == wanted || (wanted == kind::LETTER && kind == kind::HEBREW);
            if holds {
                current.alnum |= alnum | alone.alnum;
                current.digit |= digit;
                before = kind;
                continue;
            }
            emit(current, alone.start);
            current = alone;
            before = kind::OTHER;
        }
        match join(before, kind) {
            Join::Together => {
                current.alnum |= alnum;
                current.digit |= digit;
                before = if kind == kind::SINGLE_QUOTE { kind::HEBREW_QUOTE } else { kind };
            }
            Join::If(wanted) => waiting = Some((wanted, Stretch { start: at, alnum, digit })),
            Join::Apart => {
                emit(current, at);
                current = Stretch { start: at, alnum, digit };
                before = kind;
            }
        }
    }
    if let Some((_, alone)) = waiting {
        emit(current, alone.start);
        current = alone;
    }
    emit(current, text.len());
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use unicode_segmentation::UnicodeSegmentation;

    fn ours(text: &str) -> Vec<&str> {
        words(text).spans().iter().map(|&[start, end]| &text[start..end]).collect()
    }

    #[test]
    fn words_follow_uax_29() {
        for text in [
            "can't stop, won't stop. 3.14 or 1,000.50; a.b u.s. x:y 1:2 _ __ a_b 9_",
            "\"quoted\" 'single' l'heure aujourd'hui",
            "नमस्ते दुनिया क्षत्रिय",
            "お寿司を食べた コーヒー",
            "ราคา 5 บาท",
            "צה\"ל ג'ירפה",
            "αβγ. δεζ",
            "a\u{308}b 1\u{308},2",
            "",
        ] {
            assert_eq!(ours(text), text.unicode_words().collect::<Vec<_>>(), "{text:?}");
        }
    }

    #[test]
    fn words_with_digits_are_marked() {
        for text in ["covid19 three 3 _ 1,000", "कोविड19 तीन 3 _ 1,000"] {
            assert_eq!(words(text).with_digit, [0, 2, 3], "{text}");
        }
    }

    #[test]
    fn any_number_of_short_words_is_found() {
        let text = "a 1 ".repeat(1000);
        let words = words(&text);
        assert_eq!(words.spans().len(), 2000);
        assert_eq!(words.spans().last(), Some(&[3998, 3999]));
        assert!(words.with_digit.iter().copied().eq((1..2000).step_by(2)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn ascii_boundaries_equal_the_crate(text in "[ -~]{0,200}|[a-b1 .,_]{0,200}") {
            prop_assert_eq!(ours(&text), text.unicode_words().collect::<Vec<_>>());
            prop_assert_eq!(ascii_words(text.as_bytes()), unicode_words(&text));
        }

        #[test]
        fn boundaries_equal_the_crate(text in "[a-c1-2 .,:;'\"_\u{308}\u{5d0}-\u{5d2}\u{30a0}-\u{30a5}\u{3042}\u{4e00}\u{915}-\u{91a}\u{93e}\u{94d}\u{e01}\u{1100}\u{1f600}]{0,24}") {
            // Normalised text has no two spaces in a row, so the rule that joins them does not apply.
            let text = text.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
            prop_assert_eq!(ours(&text), text.unicode_words().collect::<Vec<_>>());
        }
    }
}
