//! Finds the names in a text: words that are capitalised inside a sentence.
//!
//! Names are evidence: a form report on another company keeps its phrases and changes its names. They are
//! read from plain text, because normalised text has no case. Scripts without case yield no names, and
//! neither does a text in capitals: then there is no evidence, and the pair is not penalised.

use xxhash_rust::xxh3::xxh3_64;

use super::normalize::normalize;

/// Letters of a name that count. A case ending (`Merkel`, `Merkels`) leaves the stem alone.
const STEM: usize = 6;
/// A full stop after a longer capitalised word ends the sentence; a shorter word may be a title (`Mr.`,
/// `Gen.`).
const LONGEST_TITLE: usize = 3;

/// The hashes of a text's names, one per occurrence.
pub(super) fn names(plain: &str) -> Vec<u16> {
    let mut found = Vec::new();
    let (mut words, mut in_capitals) = (0usize, 0usize);
    let mut starts_sentence = true;
    let mut rest = plain;
    while let Some(start) = rest.find(char::is_alphanumeric) {
        starts_sentence |= ends_sentence(&rest[..start]);
        let word = &rest[start..];
        let end = word.find(|c: char| !c.is_alphanumeric()).unwrap_or(word.len());
        let (word, after) = word.split_at(end);
        let upper = word.starts_with(char::is_uppercase);
        words += 1;
        if upper && word.len() > 1 {
            in_capitals += usize::from(!word.chars().any(char::is_lowercase));
            if !starts_sentence {
                found.push(stem(word));
            }
        }
        // "Mr. Smith" is one sentence, "the end. Smith" is two.
        let title = upper && word.len() <= LONGEST_TITLE && after.starts_with('.');
        rest = if title { &after[1..] } else { after };
        starts_sentence = false;
    }
    if 2 * in_capitals > words {
        found.clear();
    }
    found
}

fn ends_sentence(between: &str) -> bool {
    between.contains([
        '.', '!', '?', ':', '\n', '"', '“', '”', '«', '»', '„', '|', '•', '…', '·', ';', '؟', '。',
    ])
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
    fn a_capitalised_word_inside_a_sentence_is_a_name() {
        let found = names("Yesterday Mr. Smith met Angela Merkel in Paris. They talked.");
        // A form of address counts as well, because it goes with the name.
        assert_eq!(found, ["mr", "smith", "angela", "merkel", "paris"].map(stem));
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
