//! Words as UAX #29 draws them, without a table walk per character.
//!
//! The boundaries are those of the `unicode-segmentation` crate (the tests hold us to it); this way of finding
//! them is several times faster, because canonical text is mostly letters and single spaces.
//! A word counts if it has a letter or a digit in it.

use std::sync::OnceLock;

use icu_properties::CodePointMapData;
use icu_properties::props::WordBreak;

/// Calls `each` with start and end of every word of `text` in order, and whether it has an ASCII digit in it.
///
/// Inlined with one call of `each` for each kind of text, so that `each` is inlined too: it is called for every word.
#[inline(always)]
pub(super) fn each_word(text: &str, mut each: impl FnMut(usize, usize, bool)) {
    if text.is_ascii() {
        ascii_words(text.as_bytes(), &mut |start, end, digit| each(start, end, digit));
    } else {
        unicode_words(text, &mut |start, end, digit| each(start, end, digit));
    }
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

#[inline(always)]
fn ascii_words(bytes: &[u8], each: &mut impl FnMut(usize, usize, bool)) {
    // The word so far, if a middle character joined it to the run that follows.
    let mut joined: Option<(usize, bool)> = None;
    runs(bytes, |start, end, digit| {
        let (start, digit) = joined.take().map_or((start, digit), |(from, before)| (from, before | digit));
        // Nearly every word ends with a space: look closer only at the others.
        if bytes.get(end).is_some_and(|&byte| byte != b' ') && joins(bytes, end) {
            joined = Some((start, digit));
            return;
        }
        if bytes[start] != b'_' || bytes[start..end].iter().any(|&byte| byte != b'_') {
            each(start, end, digit);
        }
    });
}

/// Whether the character at `at` holds together what stands on both sides of it.
fn joins(bytes: &[u8], at: usize) -> bool {
    let class = |at: usize| bytes.get(at).map_or(0, |&byte| ASCII[usize::from(byte)]);
    let (here, both) = (class(at), class(at - 1) & class(at + 1));
    (here & MID_LETTER != 0 && both & LETTER != 0) || (here & MID_DIGIT != 0 && both & DIGIT != 0)
}

/// Bytes looked at together.
const BLOCK: usize = 64;

/// Calls `each` with start and end of every run of word characters, and whether it has a digit in it.
///
/// Sixty-four bytes become one bit each; a run begins and ends where the bit changes. Nothing here branches on
/// a single byte, so the processor has nothing to guess wrong but the number of words in a block. Arithmetic is
/// spelled wrapping, because checked shifts double its cost; no value comes near a limit.
#[inline(always)]
fn runs(bytes: &[u8], mut each: impl FnMut(usize, usize, bool)) {
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    // Padded with at least one space, which ends the last run.
    let mut last = [b' '; BLOCK];
    last[..rest.len()].copy_from_slice(rest);
    let below = |at: u32| 1u64.wrapping_shl(at).wrapping_sub(1);

    let mut base = 0usize;
    // A run that the last block left open: where it began, and whether it has a digit so far.
    let (mut open, mut start, mut digit_before) = (0u64, 0usize, false);
    for block in blocks.iter().chain([&last]) {
        let word = bits(block, |byte| {
            ((byte | 0x20).wrapping_sub(b'a') < 26) | (byte.wrapping_sub(b'0') < 10) | (byte == b'_')
        });
        let has_digits = block.iter().fold(false, |any, byte| any | (byte.wrapping_sub(b'0') < 10));
        let digits = if has_digits { bits(block, |byte| byte.wrapping_sub(b'0') < 10) } else { 0 };
        let before = word << 1 | open;
        let (mut starts, mut ends) = (word & !before, !word & before);
        let mut from = 0;
        while ends != 0 {
            let end = ends.trailing_zeros();
            ends &= ends.wrapping_sub(1);
            if open == 0 {
                from = starts.trailing_zeros();
                starts &= starts.wrapping_sub(1);
                start = base.wrapping_add(from as usize);
                digit_before = false;
            }
            open = 0;
            let digit = digit_before | (digits & below(end) & !below(from) != 0);
            each(start, base.wrapping_add(end as usize), digit);
        }
        if starts != 0 {
            from = starts.trailing_zeros();
            start = base.wrapping_add(from as usize);
            (open, digit_before) = (1, digits & !below(from) != 0);
        } else if open != 0 {
            digit_before |= digits != 0;
        }
        base = base.wrapping_add(BLOCK);
    }
}

/// One bit for each byte of the block. The compiler makes vector comparisons of the test; the multiplication
/// gathers eight bytes of 0 or 1 into the eight bits of the top byte.
#[inline(always)]
fn bits(block: &[u8; BLOCK], test: impl Fn(u8) -> bool) -> u64 {
    let flags = block.map(|byte| u8::from(test(byte)));
    let (eights, _) = flags.as_chunks::<8>();
    let gathered: [u8; 8] = std::array::from_fn(|place| {
        (u64::from_le_bytes(eights[place]).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
    });
    u64::from_le_bytes(gathered)
}

/// Word_Break classes that matter once format characters are gone, one byte a character.
mod kind {
    pub(super) const OTHER: u8 = 0;
    pub(super) const LETTER: u8 = 1;
    pub(super) const HEBREW: u8 = 2;
    pub(super) const NUMERIC: u8 = 3;
    pub(super) const KATAKANA: u8 = 4;
    pub(super) const EXTEND_NUM_LET: u8 = 5;
    /// Extend and Format: belongs to whatever stands before it.
    pub(super) const ATTACHED: u8 = 6;
    pub(super) const MID_LETTER: u8 = 7;
    pub(super) const MID_NUM: u8 = 8;
    pub(super) const MID_NUM_LET: u8 = 9;
    pub(super) const SINGLE_QUOTE: u8 = 10;
    pub(super) const DOUBLE_QUOTE: u8 = 11;
    /// A single quote that a Hebrew letter already holds; no character has this class of its own.
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

/// Whether a character is a letter or a digit, for text that is cut by characters.
pub(super) fn each_alphanumeric(text: &str, mut each: impl FnMut(usize, char)) {
    let classes = classes();
    for (at, c) in text.char_indices() {
        let alnum =
            classes.get(c as usize).map_or_else(|| c.is_alphanumeric(), |class| class & kind::ALNUM != 0);
        if alnum {
            each(at, c);
        }
    }
}

/// What two neighbours do (UAX #29, WB5 to WB13b).
enum Join {
    Apart,
    Together,
    /// Together if the next one is of this kind: a middle character holds only between two of a kind.
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

/// A stretch of text that will not be cut.
#[derive(Clone, Copy)]
struct Stretch {
    start: usize,
    alnum: bool,
    digit: bool,
}

fn unicode_words(text: &str, each: &mut impl FnMut(usize, usize, bool)) {
    let classes = classes();
    let mut emit = |stretch: Stretch, end: usize| {
        if stretch.alnum {
            each(stretch.start, end, stretch.digit);
        }
    };
    let mut current = Stretch { start: 0, alnum: false, digit: false };
    let mut before = kind::OTHER;
    // A middle character waiting for what follows: the kind it needs, and the stretch it would begin alone.
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use unicode_segmentation::UnicodeSegmentation;

    fn ours(text: &str) -> Vec<&str> {
        let mut words = Vec::new();
        each_word(text, |start, end, _| words.push(&text[start..end]));
        words
    }

    #[test]
    fn words_are_those_of_uax_29() {
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
    fn digits_are_noticed() {
        let mut seen = Vec::new();
        for text in ["covid19 three 3", "कोविड19 तीन 3"] {
            each_word(text, |_, _, digit| seen.push(digit));
        }
        assert_eq!(seen, [true, false, true, true, false, true]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn ascii_boundaries_equal_the_crate(text in "[ -~]{0,60}") {
            prop_assert_eq!(ours(&text), text.unicode_words().collect::<Vec<_>>());
        }

        #[test]
        fn boundaries_equal_the_crate(text in "[a-c1-2 .,:;'\"_\u{308}\u{5d0}-\u{5d2}\u{30a0}-\u{30a5}\u{3042}\u{4e00}\u{915}-\u{91a}\u{93e}\u{94d}\u{e01}\u{1100}\u{1f600}]{0,24}") {
            // Canonical text has no two spaces in a row, so the rule that keeps them together has no say.
            let text = text.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
            prop_assert_eq!(ours(&text), text.unicode_words().collect::<Vec<_>>());
        }
    }
}
