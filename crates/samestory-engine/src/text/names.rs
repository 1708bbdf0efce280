//! Finds the names in a text: words that are capitalised inside a sentence.
//!
//! Names are evidence: a form report on another company keeps its phrases and changes its names. They are
//! read from plain text, because normalised text has no case. Scripts without case yield no names, and
//! neither does a text in capitals: then there is no evidence, and the pair is not penalised.

use xxhash_rust::xxh3::xxh3_64;

use super::block::{BLOCK, word_bits};
use super::normalize::normalize;
use super::words::alphanumeric;

/// Letters of a name that count. A case ending (`Merkel`, `Merkels`) leaves the stem alone.
const STEM: usize = 6;
/// A full stop after a longer capitalised word ends the sentence; a shorter word may be a title (`Mr.`,
/// `Gen.`).
const LONGEST_TITLE: usize = 3;

/// The hashes of a text's names, one per occurrence.
pub(super) fn names(plain: &str) -> Vec<u16> {
    if plain.is_ascii() { ascii_names(plain) } else { unicode_names(plain) }
}

/// As [`unicode_names`], without a look at every letter: only words with a capital are examined.
fn ascii_names(plain: &str) -> Vec<u16> {
    let bytes = plain.as_bytes();
    let mut found = Vec::new();
    let (mut words, mut in_capitals) = (0usize, 0usize);
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    let mut last = [b' '; BLOCK];
    last[..rest.len()].copy_from_slice(rest);
    // True if the previous block ended inside a word.
    let mut open = 0;
    for (block, base) in blocks.iter().chain([&last]).zip((0usize..).step_by(BLOCK)) {
        let bits = word_bits(block);
        let word = bits.word & !bits.underscore;
        let mut starts = word & !(word << 1 | open);
        open = word >> 63;
        words += starts.count_ones() as usize;
        while starts != 0 {
            let at = base.wrapping_add(starts.trailing_zeros() as usize);
            starts &= starts.wrapping_sub(1);
            if !bytes[at].is_ascii_uppercase() {
                continue;
            }
            let after = &bytes[at + 1..];
            let more = after.iter().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(after.len());
            if more > 0 {
                let name = &plain[at..=at + more];
                in_capitals += usize::from(!name.bytes().any(|byte| byte.is_ascii_lowercase()));
                if !starts_sentence(&bytes[..at]) {
                    found.push(stem(name));
                }
            }
        }
    }
    if 2 * in_capitals > words {
        found.clear();
    }
    found
}

/// True if the word after these bytes begins a sentence.
fn starts_sentence(before: &[u8]) -> bool {
    let Some(word_end) = before.iter().rposition(u8::is_ascii_alphanumeric) else { return true };
    let (to_word, gap) = before.split_at(word_end + 1);
    let word_start =
        to_word.iter().rev().take(LONGEST_TITLE + 1).take_while(|byte| byte.is_ascii_alphanumeric());
    let length = word_start.count();
    let title = length <= LONGEST_TITLE && to_word[to_word.len() - length].is_ascii_uppercase();
    let gap = gap.strip_prefix(b".").filter(|_| title).unwrap_or(gap);
    gap.iter().any(|&byte| ends_sentence(char::from(byte)))
}

fn unicode_names(plain: &str) -> Vec<u16> {
    let is_alphanumeric = alphanumeric();
    let mut found = Vec::new();
    let (mut words, mut in_capitals) = (0usize, 0usize);
    let mut starts_sentence = true;
    // Where the current word starts, and whether with a capital.
    let mut current: Option<(usize, bool)> = None;
    for (at, c) in plain.char_indices().chain([(plain.len(), ' ')]) {
        if is_alphanumeric(c) {
            current = current.or_else(|| Some((at, is_capital(c))));
            continue;
        }
        let mut title = false;
        if let Some((start, upper)) = current.take() {
            let word = &plain[start..at];
            words += 1;
            if upper && word.len() > 1 {
                in_capitals += usize::from(!word.chars().any(char::is_lowercase));
                if !starts_sentence {
                    found.push(stem(word));
                }
            }
            starts_sentence = false;
            // "Mr. Smith" is one sentence, "the end. Smith" is two.
            title = upper && word.len() <= LONGEST_TITLE && c == '.';
        }
        starts_sentence |= !title && ends_sentence(c);
    }
    if 2 * in_capitals > words {
        found.clear();
    }
    found
}

/// True if a letter is a capital. Most scripts have none, and a look at the code point is cheaper than one at the tables.
fn is_capital(c: char) -> bool {
    match c {
        '\0'..='\u{7f}' => c.is_ascii_uppercase(),
        // Hebrew to Myanmar, Hangul Jamo and Ethiopic, the ideographs and what surrounds them, Hangul syllables.
        '\u{590}'..='\u{109f}'
        | '\u{1100}'..='\u{139f}'
        | '\u{2e80}'..='\u{a63f}'
        | '\u{ac00}'..='\u{d7ff}' => false,
        _ => c.is_uppercase(),
    }
}

fn ends_sentence(c: char) -> bool {
    matches!(
        c,
        '.' | '!'
            | '?'
            | ':'
            | '\n'
            | '"'
            | '“'
            | '”'
            | '«'
            | '»'
            | '„'
            | '|'
            | '•'
            | '…'
            | '·'
            | ';'
            | '؟'
            | '。'
    )
}

/// The hash of a word's first letters, ignoring case.
pub(crate) fn stem(word: &str) -> u16 {
    if word.is_ascii() {
        let mut letters = [0u8; STEM];
        let kept = word.len().min(STEM);
        letters[..kept].copy_from_slice(&word.as_bytes()[..kept]);
        letters.make_ascii_lowercase();
        return hash(&letters[..kept]);
    }
    let beginning: String = word.chars().take(STEM).collect();
    // A handful of letters stays far below the limit; the fallback is the text as it is.
    let folded = normalize(&beginning, 1 << 10).unwrap_or(beginning);
    hash(folded.as_bytes())
}

fn hash(bytes: &[u8]) -> u16 {
    (xxh3_64(bytes) >> 48) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ascii_text_has_the_same_names_by_blocks_as_by_letters() {
        const PARTS: [&str; 24] = [
            "Smith", "the", "MI5", "A", "a1", "Mr", "Gen", "Dept", "X", "_", ". ", ".", ".. ", "! ", "\n",
            " ", "  ", ", ", "\"", ": ", "'s ", "-", "1st ", "USA ",
        ];
        let mut state = 7u64;
        let mut below = |end: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % end
        };
        let mut some = 0;
        for _ in 0..20_000 {
            let text: String = (0..below(60)).map(|_| PARTS[below(PARTS.len())]).collect();
            some += ascii_names(&text).len();
            assert_eq!(ascii_names(&text), unicode_names(&text), "{text:?}");
        }
        assert!(some > 20_000, "{some} names");
    }

    #[test]
    fn a_capitalised_word_inside_a_sentence_is_a_name() {
        let found = names("Yesterday Mr. Smith met Angela Merkel in Paris. They talked.");
        // A form of address counts as well, because it goes with the name.
        assert_eq!(found, ["mr", "smith", "angela", "merkel", "paris"].map(stem));
    }

    #[test]
    fn no_letter_of_a_script_without_capitals_is_one() {
        for c in '\0'..=char::MAX {
            assert_eq!(is_capital(c), c.is_uppercase(), "{c:?}");
        }
    }

    #[test]
    fn a_form_of_address_does_not_end_a_sentence() {
        assert_eq!(names("he met Dr. Smith. Then he left"), ["dr", "smith"].map(stem));
        assert_eq!(names("they met in Paris. Smith left"), ["paris"].map(stem));
        assert_eq!(names("they met at MI5"), ["mi5"].map(stem));
    }

    #[test]
    fn case_endings_do_not_make_another_name() {
        assert_eq!(names("сказал Владимир Зеленский"), names("по словам Владимира Зеленского"));
    }

    #[test]
    fn a_text_in_capitals_has_no_names() {
        assert!(names("THE COMPANY SAID THAT Smith WOULD LEAVE").is_empty());
        assert!(names("سيارة جديدة في القاهرة").is_empty());
    }
}
