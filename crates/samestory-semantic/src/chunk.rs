//! Cuts a long text into parts that a model can read, at paragraphs, sentences or words.
//!
//! A chunk is a slice of the text, so nothing is lost or rewritten: without overlap the chunks are the text.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

/// Where a text is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkMode {
    /// Between any two words: fewest chunks.
    FixedTokens,
    /// Between sentences; a sentence longer than a chunk is cut between words.
    SentenceBounded,
    /// Between paragraphs; a longer one is cut between sentences, and a longer sentence between words.
    Recursive,
}

/// How a text is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkingStrategy {
    /// The longest chunk, in tokens.
    pub max_tokens: usize,
    /// How many tokens of a chunk the next one repeats, at most.
    pub overlap: usize,
    /// Where it is cut.
    pub mode: ChunkMode,
}

impl Default for ChunkingStrategy {
    fn default() -> ChunkingStrategy {
        ChunkingStrategy { max_tokens: 256, overlap: 32, mode: ChunkMode::SentenceBounded }
    }
}

/// Cuts a text with about 1.3 tokens to a word. [`LocalProvider`](crate::LocalProvider) counts its own tokens instead.
///
/// ```
/// use samestory_semantic::{ChunkMode, ChunkingStrategy, chunk_for_model};
///
/// let strategy = ChunkingStrategy { max_tokens: 6, overlap: 0, mode: ChunkMode::SentenceBounded };
/// let chunks = chunk_for_model("The ferry sails again. The island is glad.", &strategy);
/// assert_eq!(chunks, ["The ferry sails again. ", "The island is glad."]);
/// ```
pub fn chunk_for_model<'a>(text: &'a str, strategy: &ChunkingStrategy) -> Vec<&'a str> {
    // In tenths of a token, so that nothing is rounded.
    let tenths = |tokens: usize| tokens.saturating_mul(10);
    let strategy = ChunkingStrategy {
        max_tokens: tenths(strategy.max_tokens),
        overlap: tenths(strategy.overlap),
        mode: strategy.mode,
    };
    chunk(text, &strategy, &|part| part.unicode_words().count() * 13)
}

/// Cuts a text, given how many tokens a part of it has.
pub(crate) fn chunk<'a>(
    text: &'a str,
    strategy: &ChunkingStrategy,
    count: &dyn Fn(&str) -> usize,
) -> Vec<&'a str> {
    let cutter = Cutter { text, limit: strategy.max_tokens, overlap: strategy.overlap, count };
    let level = match strategy.mode {
        ChunkMode::FixedTokens => Level::Word,
        ChunkMode::SentenceBounded => Level::Sentence,
        ChunkMode::Recursive => Level::Paragraph,
    };
    let mut pieces = Vec::new();
    if strategy.max_tokens > 0 && !text.trim().is_empty() {
        cutter.split(0..text.len(), level, &mut pieces);
    }
    cutter.pack(&pieces).into_iter().map(|range| &text[range]).collect()
}

/// What a text is cut into, from the largest to the smallest.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Paragraph,
    Sentence,
    Word,
    Character,
}

struct Cutter<'a, 'b> {
    text: &'a str,
    limit: usize,
    overlap: usize,
    count: &'b dyn Fn(&str) -> usize,
}

/// A part that is not cut, and its tokens.
struct Piece {
    at: Range<usize>,
    tokens: usize,
}

impl Cutter<'_, '_> {
    /// The parts of a range, each as large as the level and the limit allow.
    fn split(&self, range: Range<usize>, level: Level, pieces: &mut Vec<Piece>) {
        let part = &self.text[range.clone()];
        let at = |from: usize, length: usize| range.start + from..range.start + from + length;
        let (parts, below): (Vec<Range<usize>>, Level) = match level {
            Level::Paragraph => {
                (paragraphs(part).map(|(from, one)| at(from, one.len())).collect(), Level::Sentence)
            }
            Level::Sentence => (
                part.split_sentence_bound_indices().map(|(from, one)| at(from, one.len())).collect(),
                Level::Word,
            ),
            Level::Word => (
                part.split_word_bound_indices().map(|(from, one)| at(from, one.len())).collect(),
                Level::Character,
            ),
            Level::Character => (
                part.grapheme_indices(true).map(|(from, one)| at(from, one.len())).collect(),
                Level::Character,
            ),
        };
        for at in parts {
            let tokens = (self.count)(&self.text[at.clone()]);
            if tokens > self.limit && level != Level::Character {
                self.split(at, below, pieces);
            } else {
                pieces.push(Piece { at, tokens });
            }
        }
    }

    /// Fills chunks with pieces, in order. A piece that alone is over the limit, one character of many tokens, is a chunk.
    fn pack(&self, pieces: &[Piece]) -> Vec<Range<usize>> {
        let mut chunks: Vec<Range<usize>> = Vec::new();
        let mut open: Option<(Range<usize>, usize)> = None;
        for piece in pieces {
            open = Some(match open {
                None => (piece.at.clone(), piece.tokens),
                Some((range, tokens)) if tokens + piece.tokens <= self.limit => {
                    (range.start..piece.at.end, tokens + piece.tokens)
                }
                Some((range, _)) => {
                    let room = self.overlap.min(self.limit.saturating_sub(piece.tokens));
                    let (start, repeated) = self.tail(range.clone(), room);
                    chunks.push(range);
                    (start..piece.at.end, repeated + piece.tokens)
                }
            });
        }
        chunks.extend(open.map(|(range, _)| range));
        chunks
    }

    /// Where the last words of a range with at most `room` tokens begin, and how many tokens they have. The whole range is
    /// never repeated.
    fn tail(&self, range: Range<usize>, room: usize) -> (usize, usize) {
        let (mut start, mut tokens) = (range.end, 0);
        for (from, word) in self.text[range.clone()].split_word_bound_indices().rev() {
            let more = (self.count)(word);
            if tokens + more > room || from == 0 {
                break;
            }
            // Spaces alone are not worth repeating.
            if more > 0 {
                (start, tokens) = (range.start + from, tokens + more);
            }
        }
        (start, tokens)
    }
}

/// Paragraphs with the empty lines after them.
fn paragraphs(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let rest = text.get(from..).filter(|rest| !rest.is_empty())?;
        let blank = rest
            .find("\n\n")
            .map_or(rest.len(), |at| at + rest[at..].bytes().take_while(|byte| *byte == b'\n').count());
        let found = (from, &rest[..blank]);
        from += blank;
        Some(found)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MODES: [ChunkMode; 3] = [ChunkMode::FixedTokens, ChunkMode::SentenceBounded, ChunkMode::Recursive];

    /// One token per word or punctuation mark, as a simple tokeniser counts: additive, so sums are exact.
    fn words(part: &str) -> usize {
        part.split_word_bounds().filter(|word| !word.trim().is_empty()).count()
    }

    fn cut(text: &str, max_tokens: usize, overlap: usize, mode: ChunkMode) -> Vec<&str> {
        chunk(text, &ChunkingStrategy { max_tokens, overlap, mode }, &words)
    }

    #[test]
    fn nothing_gives_no_chunk_and_a_short_text_one() {
        for mode in MODES {
            assert!(cut(" \n\n ", 5, 0, mode).is_empty());
            assert!(cut("a b c", 0, 0, mode).is_empty());
            assert_eq!(cut("One. Two.\n\nThree.", 100, 10, mode), ["One. Two.\n\nThree."]);
        }
    }

    #[test]
    fn each_mode_cuts_at_its_own_borders() {
        let text = "One two. Three four.\n\nFive six. Seven eight nine.";
        assert_eq!(
            cut(text, 4, 0, ChunkMode::FixedTokens),
            ["One two. Three ", "four.\n\nFive six", ". Seven eight nine", "."]
        );
        assert_eq!(
            cut(text, 6, 0, ChunkMode::SentenceBounded),
            ["One two. Three four.\n\n", "Five six. ", "Seven eight nine."]
        );
        assert_eq!(
            cut(text, 7, 0, ChunkMode::Recursive),
            ["One two. Three four.\n\n", "Five six. Seven eight nine."]
        );
        let texts = ["One two. ", "Three four.\n\n", "Five six. ", "Seven eight nine", "."];
        assert_eq!(cut(text, 3, 0, ChunkMode::Recursive), texts);
    }

    #[test]
    fn a_chunk_repeats_the_last_words_of_the_one_before() {
        let text = "One two three. Four five six. Seven eight nine.";
        assert_eq!(
            cut(text, 6, 2, ChunkMode::SentenceBounded),
            ["One two three. ", "three. Four five six. ", "six. Seven eight nine."]
        );
        assert_eq!(cut(text, 6, 100, ChunkMode::SentenceBounded).len(), 3);
    }

    #[test]
    fn the_estimate_is_one_and_three_tenths_of_a_token_to_a_word() {
        let text = "word ".repeat(1000);
        let strategy = ChunkingStrategy { max_tokens: 130, overlap: 0, mode: ChunkMode::FixedTokens };
        let chunks = chunk_for_model(&text, &strategy);
        assert_eq!(chunks.len(), 10);
        assert!(chunks.iter().all(|part| part.unicode_words().count() == 100));
        assert_eq!(chunks.concat(), text);
    }

    proptest! {
        #[test]
        fn chunks_are_slices_within_the_limit_that_cover_the_text(
            text in "([a-c]{1,3}[ .]{1,2}|\n\n|東京。|\\PC){0,60}",
            max_tokens in 1_usize..12,
            overlap in 0_usize..20,
        ) {
            for mode in MODES {
                let chunks = cut(&text, max_tokens, overlap, mode);
                let start = |part: &str| part.as_ptr() as usize - text.as_ptr() as usize;
                let mut covered = 0;
                for (number, part) in chunks.iter().enumerate() {
                    prop_assert!(words(part) <= max_tokens, "{mode:?} {part:?}");
                    let from = start(part);
                    prop_assert!(from <= covered, "a gap before {part:?}");
                    prop_assert!(overlap > 0 || from == covered, "{part:?} repeats");
                    prop_assert!(from + part.len() > covered, "{part:?} adds nothing");
                    prop_assert!(number == 0 || from > start(chunks[number - 1]));
                    covered = from + part.len();
                }
                prop_assert!(chunks.is_empty() == text.trim().is_empty());
                prop_assert!(chunks.is_empty() || covered == text.len());
            }
        }
    }
}
