//! Finds the passages that two texts have in common, as byte ranges of the original texts.
//!
//! The report and the `compare` command show them to people. Words are compared in normalised form, so curly
//! quotes, case and invisible characters do not hide a passage. Work is linear in the length of both texts.

use std::collections::HashMap;
use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;
use xxhash_rust::xxh3::xxh3_64;

use super::language::{Language, Segmentation};
use super::normalize::normalize;

/// A run of tokens that occurs in both texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Byte range in the first text.
    pub a: Range<usize>,
    /// Byte range in the second text.
    pub b: Range<usize>,
    /// Length in tokens.
    pub tokens: usize,
}

/// A phrase that repeats is compared at its first few occurrences only, which keeps the work linear.
const MAX_OCCURRENCES: usize = 8;
/// No word of any language is longer; longer tokens are compared by their beginning.
const LONGEST_WORD: usize = 1024;

struct Token {
    key: u64,
    at: Range<usize>,
}

/// The common passages in the order of the second text, each as long as possible.
///
/// A passage must be at least one token longer than a shingle; shorter ones are chance.
pub fn common_passages(a: &str, b: &str, language: &Language) -> Vec<Passage> {
    let (a, b) = (tokens(a, language.segment), tokens(b, language.segment));
    let least = language.shingle + 1;
    let mut occurrences: HashMap<Vec<u64>, Vec<usize>> = HashMap::new();
    for (at, run) in a.windows(least).enumerate() {
        let starts = occurrences.entry(keys(run)).or_default();
        if starts.len() < MAX_OCCURRENCES {
            starts.push(at);
        }
    }
    let mut passages = Vec::new();
    let mut at = 0;
    while let Some(run) = b.get(at..at + least) {
        let longest = occurrences
            .get(&keys(run))
            .into_iter()
            .flatten()
            .map(|&from| {
                let equal = a[from..].iter().zip(&b[at..]).take_while(|(a, b)| a.key == b.key).count();
                (equal, std::cmp::Reverse(from))
            })
            .max();
        match longest {
            Some((equal, std::cmp::Reverse(from))) => {
                passages.push(Passage {
                    a: a[from].at.start..a[from + equal - 1].at.end,
                    b: b[at].at.start..b[at + equal - 1].at.end,
                    tokens: equal,
                });
                at += equal;
            }
            None => at += 1,
        }
    }
    passages
}

fn keys(run: &[Token]) -> Vec<u64> {
    run.iter().map(|token| token.key).collect()
}

fn tokens(text: &str, segment: Segmentation) -> Vec<Token> {
    let token = |at: usize, part: &str| {
        let mut end = part.len().min(LONGEST_WORD);
        while !part.is_char_boundary(end) {
            end -= 1;
        }
        // No part of this length reaches the limit: a character expands to eighteen at most.
        let normalized = normalize(&part[..end], LONGEST_WORD * 64).unwrap_or_default();
        (!normalized.is_empty())
            .then(|| Token { key: xxh3_64(normalized.as_bytes()), at: at..at + part.len() })
    };
    match segment {
        Segmentation::Words => text.unicode_word_indices().filter_map(|(at, word)| token(at, word)).collect(),
        Segmentation::Characters => text
            .char_indices()
            .filter(|(_, c)| c.is_alphanumeric())
            .filter_map(|(at, c)| token(at, &text[at..at + c.len_utf8()]))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::language::LANGUAGES;
    use super::*;

    fn words() -> Language {
        Language { segment: Segmentation::Words, shingle: 3, ..LANGUAGES[0] }
    }

    #[test]
    fn passages_are_ranges_of_the_original_texts() {
        let a = "First of all, the Old Lighthouse “reopens” on Monday. Nobody objected.";
        let b = "BREAKING: the old lighthouse \"reopens\" on Monday! Everybody came. first of all others";
        let found = common_passages(a, b, &words());
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(&a[found[0].a.clone()], "the Old Lighthouse “reopens” on Monday");
        assert_eq!(&b[found[0].b.clone()], "the old lighthouse \"reopens\" on Monday");
        assert_eq!(found[0].tokens, 6);
    }

    #[test]
    fn equal_texts_are_one_passage() {
        let text = "one two three four five six seven";
        let found = common_passages(text, text, &words());
        assert_eq!(found, [Passage { a: 0..text.len(), b: 0..text.len(), tokens: 7 }]);
    }

    #[test]
    fn scripts_without_spaces_are_compared_by_characters() {
        let language = Language { segment: Segmentation::Characters, shingle: 5, ..LANGUAGES[0] };
        let (a, b) = ("灯台が月曜日に再開した。", "速報：灯台が、月曜日に再開する");
        let found = common_passages(a, b, &language);
        assert_eq!(found.len(), 1);
        assert_eq!(&a[found[0].a.clone()], "灯台が月曜日に再開");
    }

    #[test]
    fn nothing_in_common_is_no_passage() {
        assert_eq!(common_passages("", "one two three four", &words()), []);
        assert_eq!(common_passages("a b c d e", "f g h i j", &words()), []);
    }
}
