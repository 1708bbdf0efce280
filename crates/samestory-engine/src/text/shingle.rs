//! Cuts normalised text into the hashes that fingerprints are built from: tokens, shingles of k consecutive
//! tokens, and numbers.
//!
//! MinHash and the samples treat shingles as a set, so neither order nor repetition matters to them. The
//! opening is the start of the list, and SimHash counts how often a word occurs.

use xxhash_rust::xxh3::xxh3_64;

use super::language::{Language, Segmentation};
use super::notices;
use super::numbers::{ListedWord, NumberWords, hashed, notice_mark};
use super::words::{each_alphanumeric, words};

/// The hashes of one text, in text order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shingles {
    /// Number of tokens: words, or letters and digits where the script does not space its words.
    pub tokens: u32,
    /// One hash per run of k tokens; a text of fewer than k tokens has one hash for all of them.
    pub shingles: Vec<u64>,
    /// One hash per word; where the script has no spaces, one per pair of characters.
    pub words: Vec<u64>,
    /// One hash for each number in the text, written `1,000` or `1000` or in words, and for each word of direction; a mark
    /// if the text is a page notice.
    pub numerals: Vec<u32>,
}

/// Cuts normalised text by words or characters, as its language requires.
pub fn shingles(text: &str, language: &Language) -> Shingles {
    let mut result = Shingles::default();
    match language.segment {
        Segmentation::Words => by_words(text, language, &mut result),
        Segmentation::Characters => by_characters(text, language.shingle, &mut result),
    }
    result
}

fn by_words(text: &str, language: &Language, result: &mut Shingles) {
    let bytes = text.as_bytes();
    let words = words(text);
    let spans = words.spans();
    result.tokens = saturate(spans.len());
    result.words = spans.iter().map(|&[start, end]| word(bytes, start, end)).collect();
    result.shingles = windows(&result.words, language.shingle);
    for &index in &words.with_digit {
        let [start, end] = spans[index];
        each_run(&bytes[start..end], |run| result.numerals.push(numeral(run)));
    }
    let number_words = NumberWords::for_language(language, |text| long_or_last(text.as_bytes()));
    let mut notice = notices::NoticeWords::default();
    for &word in &result.words {
        match number_words.get(word) {
            Some(ListedWord::Number(number)) => result.numerals.push(number),
            Some(ListedWord::Notice) => notice.notice.push(word),
            Some(ListedWord::Reader) => notice.reader.push(word),
            None => {}
        }
    }
    if notice.make_a_notice(spans.len()) {
        result.numerals.push(notice_mark());
    }
}

fn by_characters(text: &str, k: usize, result: &mut Shingles) {
    let bytes = text.as_bytes();
    let mut characters = Vec::with_capacity(text.len() / 3);
    let mut numeral_end = 0;
    each_alphanumeric(text, |at, c| {
        characters.push(character(c));
        if c.is_ascii_digit() && at >= numeral_end {
            numeral_end = at + run_of_digits(&bytes[at..]);
            result.numerals.push(numeral(&bytes[at..numeral_end]));
        }
    });
    result.tokens = saturate(characters.len());
    result.words = windows(&characters, 2);
    result.shingles = windows(&characters, k);
}

fn saturate(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// An odd constant with well-spread bits (2^64 divided by the golden ratio).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The hash of the word `bytes[start..end]`.
///
/// Words of up to 16 bytes are read in one piece and multiplied twice, the way XXH3 folds 16 bytes, but
/// without its branches on the length: those change from word to word, and a misprediction costs more than
/// the hashing. XXH3 hashes longer words.
#[inline(always)]
fn word(bytes: &[u8], start: usize, end: usize) -> u64 {
    let length = end.wrapping_sub(start);
    match (WORD_MASKS.get(length), bytes.get(start..).and_then(|rest| rest.first_chunk())) {
        (Some(mask), Some(piece)) => short(piece, mask, length),
        _ => long_or_last(&bytes[start..end]),
    }
}

/// A word that is too long for one piece, or too close to the end of the text to read a whole piece.
#[inline(never)]
fn long_or_last(word: &[u8]) -> u64 {
    let Some(mask) = WORD_MASKS.get(word.len()) else { return xxh3_64(word) };
    let mut piece = [0; PIECE];
    piece[..word.len()].copy_from_slice(word);
    short(&piece, mask, word.len())
}

/// `mask` selects the bytes of the piece that belong to the word.
#[inline(always)]
fn short(piece: &[u8; PIECE], mask: &[u64; 2], length: usize) -> u64 {
    let [low, high] = halves(piece);
    let first = fold((low & mask[0]) ^ 0x2d35_8dcc_aa6c_78a5, (high & mask[1]) ^ 0x8bb8_4b93_962e_acc9);
    fold(first ^ length as u64, SPREAD)
}

/// Bytes of a word that are read in one piece.
const PIECE: usize = 16;

/// For each word length, the masks that select its bytes in the two halves of a piece.
const WORD_MASKS: [[u64; 2]; PIECE + 1] = {
    let mut masks = [[0; 2]; PIECE + 1];
    let mut length = 0;
    while length <= PIECE {
        let all = if length == PIECE { u128::MAX } else { (1u128 << (8 * length)) - 1 };
        masks[length] = [all as u64, (all >> 64) as u64];
        length += 1;
    }
    masks
};

#[inline(always)]
fn halves(piece: &[u8; PIECE]) -> [u64; 2] {
    let whole = u128::from_le_bytes(*piece);
    [whole as u64, (whole >> 64) as u64]
}

/// The two halves of the 128-bit product, XORed.
#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a).wrapping_mul(u128::from(b));
    product as u64 ^ (product >> 64) as u64
}

/// A code point as a token hash: any bijection will do, because [`mix`] scrambles it.
fn character(c: char) -> u64 {
    (c as u64 + 1).wrapping_mul(SPREAD)
}

/// Combines k consecutive token hashes into one.
///
/// The token hashes are already well mixed, so one multiplication and rotation each is as good as hashing
/// their bytes again, in a third of the time.
fn mix(tokens: &[u64]) -> u64 {
    let hash = tokens
        .iter()
        .fold(SPREAD, |hash, &token| (hash.rotate_left(25) ^ token).wrapping_mul(0xd6e8_feb8_6659_fd93));
    hash ^ (hash >> 32)
}

pub(super) fn windows(tokens: &[u64], k: usize) -> Vec<u64> {
    match (k, tokens.len()) {
        (_, 0) => Vec::new(),
        (k, n) if n <= k => vec![mix(tokens)],
        // The usual lengths are spelled out so that the compiler unrolls them.
        (2, _) => tokens.array_windows::<2>().map(|window| mix(window)).collect(),
        (3, _) => tokens.array_windows::<3>().map(|window| mix(window)).collect(),
        (5, _) => tokens.array_windows::<5>().map(|window| mix(window)).collect(),
        _ => tokens.windows(k).map(mix).collect(),
    }
}

/// Calls `with` for each number inside a word. Letters attached to a number do not belong to it: `20km`,
/// `4th`, and the following word in much Urdu and Kurdish copy, which omits the space.
fn each_run(word: &[u8], mut with: impl FnMut(&[u8])) {
    let mut rest = word;
    while let Some(start) = rest.iter().position(u8::is_ascii_digit) {
        let run;
        (run, rest) = rest[start..].split_at(run_of_digits(&rest[start..]));
        with(run);
    }
}

/// Length of the number that starts here: digits, with single separators between them.
fn run_of_digits(bytes: &[u8]) -> usize {
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let mut at = 0;
    while digit(at) || (at > 0 && bytes.get(at).is_some_and(|&byte| separates(byte)) && digit(at + 1)) {
        at += 1;
    }
    at
}

/// True if a byte between two digits belongs to the number.
fn separates(byte: u8) -> bool {
    matches!(byte, b',' | b'.' | b'\'')
}

/// The hash of a number as a reader understands it: grouping is style (`1,000` is `1000`), `1,5` is `1.5`.
fn numeral(token: &[u8]) -> u32 {
    let mut buffer = [0u8; 32];
    if token.len() <= buffer.len() && !token.iter().any(|&byte| separates(byte)) {
        return hashed(token);
    }
    let mut len = 0;
    for (at, &byte) in token.iter().enumerate() {
        let separator = separates(byte);
        let rest = &token[at + 1..];
        let groups = rest.iter().take_while(|byte| byte.is_ascii_digit()).count() == 3;
        if separator && groups {
            continue;
        }
        let Some(slot) = buffer.get_mut(len) else { break };
        *slot = if separator { b'.' } else { byte };
        len += 1;
    }
    hashed(&buffer[..len])
}

#[cfg(test)]
mod tests {
    use super::super::language::LANGUAGES;
    use super::*;

    fn row(segment: Segmentation, shingle: usize) -> Language {
        Language { segment, shingle, ..LANGUAGES[0] }
    }

    #[test]
    fn a_text_of_n_tokens_has_n_minus_k_plus_one_shingles() {
        let cut = shingles("one two three four five", &row(Segmentation::Words, 3));
        assert_eq!((cut.tokens, cut.shingles.len()), (5, 3));
        let cut = shingles("滋賀県の地方紙、休刊", &row(Segmentation::Characters, 5));
        assert_eq!((cut.tokens, cut.shingles.len()), (9, 5));
        assert_eq!(shingles("one two", &row(Segmentation::Words, 3)).shingles.len(), 1);
        assert_eq!(shingles("", &row(Segmentation::Words, 3)), Shingles::default());
    }

    #[test]
    fn punctuation_between_words_does_not_matter() {
        let plain = shingles("one two three four", &row(Segmentation::Words, 3));
        assert_eq!(shingles("one, two - three; \"four\"!", &row(Segmentation::Words, 3)), plain);
    }

    #[test]
    fn the_order_of_tokens_matters() {
        let [a, b] = ["one two three", "three two one"]
            .map(|text| shingles(text, &row(Segmentation::Words, 3)).shingles);
        assert_ne!(a, b);
    }

    #[test]
    fn numbers_are_hashed_as_readers_understand_them() {
        let numerals = |text| shingles(text, &row(Segmentation::Words, 3)).numerals;
        assert_eq!(numerals("1,000 1.5"), numerals("1000 1,5"));
        assert_eq!(numerals("1,234,567"), numerals("1234567"));
        assert_ne!(numerals("1.5"), numerals("15"));
        assert_eq!(numerals("20km 4th q1"), numerals("20 4 1"));
        assert_eq!(numerals("20سال"), numerals("20 سال"));
        assert!(numerals("no numbers here").is_empty());
        let by_character = |text| shingles(text, &row(Segmentation::Characters, 5)).numerals;
        assert_eq!(by_character("2020年に1,500人"), numerals("2020 1500"));
    }
}
