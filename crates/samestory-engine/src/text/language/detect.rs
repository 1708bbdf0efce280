//! Recognises the language of a text by its script and, among languages that share a script, by function
//! words and by letters that are foreign to it.
//!
//! A page of prose uses dozens of the hundred most common words of its language and, by accident, a few of
//! any other's. The language with the most *distinct* ones in some hundred words therefore wins, at the cost
//! of one hash and one lookup per word. They must be distinct, because otherwise a language whose most common
//! word is "a" or "i" would pass for half of Europe, and a page footer repeated ten times would pass for an
//! article. A language must also account for most of the *running* words, so that an English page frame does
//! not decide for the article inside it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::neighbours::NEIGHBOURS;
use super::script::{Census, Excerpt, Script};
use super::table::LANGUAGES;
use crate::text::block::{BLOCK, word_bits};
use crate::text::chars::keyboard;

/// A row of [`LANGUAGES`] with a confidence between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Guess {
    pub(super) row: usize,
    pub(super) confidence: f32,
}

const NO_GUESS: Guess = Guess { row: 0, confidence: 0.0 };

/// A letter foreign to a language counts against it as much as two of its words count for it. Any value
/// between one and four makes no difference to a page, and little to a line.
const LETTER_WEIGHT: i32 = 2;

/// Recognises the language of an excerpt.
pub(super) fn detect(excerpt: &Excerpt<'_>) -> Guess {
    let Some((script, share)) = Census::count(excerpt).dominant() else { return NO_GUESS };
    let speakers = MODEL.speakers[script as usize];
    let guess = match speakers.count_ones() {
        0 => NO_GUESS,
        1 => Guess { row: speakers.trailing_zeros() as usize, confidence: 1.0 },
        _ => MODEL.weigh(excerpt, speakers, script).guess(script),
    };
    Guess { confidence: guess.confidence * share, ..guess }
}

/// The row of English.
const ENGLISH: usize = 1;

/// A set of languages: bit i is row i of [`LANGUAGES`]; the neighbours follow.
type Set = u128;

const _: () = assert!(LANGUAGES.len() + NEIGHBOURS.len() <= Set::BITS as usize, "widen Set");

fn each(mut set: Set, mut found: impl FnMut(usize)) {
    while set != 0 {
        found(set.trailing_zeros() as usize);
        set &= set - 1;
    }
}

/// Letters below this code point (Latin to Devanagari) have an entry of their own.
const LETTERS: usize = 0x980;

/// Bits that tell most words that no language lists.
const KNOWN: usize = 1 << 16;

fn known_bit(hash: u64) -> usize {
    (hash >> 16) as usize % KNOWN
}

/// Slots of the word table: a power of two, at least twice the number of words.
const SLOTS: usize = 1 << 14;

struct Model {
    /// Per language, the row that names its home.
    homes: Vec<usize>,
    /// Per script, the languages written in it.
    speakers: [Set; Script::COUNT],
    /// Per letter, the languages of its script that do *not* use it. A letter that no row lists counts
    /// against none.
    strangers: Vec<Set>,
    /// A bit for each value of some bits of a word's hash: most words of a text are in no list, and this fits into the
    /// first-level cache.
    known: BitSet<{ KNOWN / 64 }>,
    /// Hash table of words with open addressing: the upper half of the hash (0 is a free slot) …
    tags: Vec<u32>,
    /// … the index of its languages in `sets` …
    users: Vec<u16>,
    /// … and the distinct sets.
    sets: Vec<Set>,
}

static MODEL: LazyLock<Model> = LazyLock::new(Model::build);

impl Model {
    fn build() -> Model {
        let mut speakers = [0; Script::COUNT];
        let mut letters = BTreeMap::<usize, (Script, Set)>::new();
        let mut words = BTreeMap::<u64, Set>::new();
        let rows = LANGUAGES.iter().map(|row| (row.scripts, row.words, row.letters));
        let neighbours =
            NEIGHBOURS.iter().map(|one| (std::slice::from_ref(&one.script), one.words, one.letters));
        for (index, (scripts, list, alphabet)) in rows.chain(neighbours).enumerate() {
            let bit = 1 << index;
            for &script in scripts {
                speakers[script as usize] |= bit;
            }
            for c in alphabet.chars() {
                if let (Some(at), Some(script)) = (letter_index(c), Script::of_letter(c)) {
                    letters.entry(at).or_insert((script, 0)).1 |= bit;
                }
            }
            each_word(list, |_| (), |hash| *words.entry(hash).or_default() |= bit);
        }
        // Japanese is distinguished from Chinese by its kana, which count as a separate script.
        speakers[Script::Han as usize] &= !speakers[Script::Kana as usize];

        let mut strangers = vec![0; LETTERS + 1];
        for (at, (script, writers)) in letters {
            strangers[at] = speakers[script as usize] & !writers;
        }
        assert!(words.len() <= SLOTS / 2, "{} words: make SLOTS larger", words.len());
        let mut known = BitSet([0; KNOWN / 64]);
        let (mut tags, mut users, mut sets) = (vec![0; SLOTS], vec![0; SLOTS], Vec::new());
        for (hash, set) in words {
            known.insert(known_bit(hash));
            let mut slot = first_slot(hash);
            while tags[slot] != 0 {
                slot = (slot + 1) % SLOTS;
            }
            tags[slot] = tag(hash);
            users[slot] = sets.iter().position(|&known| known == set).unwrap_or(sets.len()) as u16;
            if users[slot] as usize == sets.len() {
                sets.push(set);
            }
        }
        let homes = (0..LANGUAGES.len() + NEIGHBOURS.len()).map(|row| {
            let shared = LANGUAGES.get(row).and_then(|language| language.home);
            shared.and_then(|home| LANGUAGES.iter().position(|language| language.lang == home)).unwrap_or(row)
        });
        Model { homes: homes.collect(), speakers, strangers, known, tags, users, sets }
    }

    /// The slot of a word, if any language lists it.
    #[inline]
    fn slot(&self, hash: u64) -> Option<usize> {
        if !self.known.contains(known_bit(hash)) {
            return None;
        }
        let mut slot = first_slot(hash);
        loop {
            match self.tags[slot] {
                0 => return None,
                found if found == tag(hash) => return Some(slot),
                _ => slot = (slot + 1) % SLOTS,
            }
        }
    }

    /// Counts the evidence in an excerpt for each of `speakers`.
    fn count(&self, excerpt: &Excerpt<'_>, speakers: Set) -> SpeakerCounts {
        let mut words = 0;
        let mut tallies = vec![Tally::default(); self.sets.len()];
        let mut seen_words = BitSet([0u64; SLOTS / 64]);
        let mut seen_letters = BitSet([0u64; LETTERS / 64 + 1]);
        let mut rows = [SpeakerRow::default(); Set::BITS as usize];
        for window in excerpt.windows() {
            each_word(
                window,
                |c| {
                    if let Some(at) = letter_index(c).filter(|&at| seen_letters.insert(at)) {
                        each(self.strangers[at] & speakers, |row| rows[row].letters += 1);
                    }
                },
                |hash| {
                    words += 1;
                    if let Some(slot) = self.slot(hash) {
                        let tally = &mut tallies[self.users[slot] as usize];
                        tally.running += 1;
                        tally.distinct += i32::from(seen_words.insert(slot));
                    }
                },
            );
        }
        for (tally, set) in tallies.iter().zip(&self.sets).filter(|(tally, _)| tally.running > 0) {
            let english = i32::from(set & 1 << ENGLISH != 0) * tally.running;
            each(set & speakers, |row| {
                rows[row].distinct += tally.distinct;
                rows[row].running += tally.running;
                rows[row].english += english;
            });
        }
        SpeakerCounts { words: words.max(1) as f32, rows }
    }

    /// Finds the language among `speakers` that explains the excerpt best.
    fn weigh(&self, excerpt: &Excerpt<'_>, speakers: Set, script: Script) -> DetectionEvidence {
        let counts = self.count(excerpt, speakers);
        let mut best = 0.0f32;
        each(speakers & !(1 << ENGLISH), |row| best = best.max(counts.share(row, counts.words)));
        let mut points = [i32::MIN; Set::BITS as usize];
        let mut winner = 0;
        each(speakers, |row| {
            // Only Latin script has enough page furniture and unlisted languages to matter.
            if script == Script::Latin && !counts.covers(row, best) {
                return;
            }
            points[row] = counts.rows[row].distinct - LETTER_WEIGHT * counts.rows[row].letters;
            // Strictly more: among equals the earlier row wins.
            if points[row] > points[winner] {
                winner = row;
            }
        });
        let mut next = i32::MIN;
        each(speakers, |row| {
            if self.homes[row] != self.homes[winner] {
                next = next.max(points[row]);
            }
        });
        let lead = points[winner].saturating_sub(next);
        DetectionEvidence {
            row: winner,
            words: counts.own_words(winner),
            hits: counts.rows[winner].distinct,
            lead,
        }
    }
}

/// Occurrences of the words that one set of languages shares.
#[derive(Clone, Copy, Default)]
struct Tally {
    distinct: i32,
    running: i32,
}

/// The evidence of an excerpt for one language.
#[derive(Clone, Copy, Default)]
struct SpeakerRow {
    /// Distinct words from its list.
    distinct: i32,
    /// Running words from its list …
    running: i32,
    /// … and those of them that are also in the English list.
    english: i32,
    /// Distinct letters that the language does not use.
    letters: i32,
}

struct SpeakerCounts {
    words: f32,
    rows: [SpeakerRow; Set::BITS as usize],
}

impl SpeakerCounts {
    /// The number of words without the English page furniture around a text in this language; at least half
    /// of all.
    fn own_words(&self, row: usize) -> f32 {
        let furniture = self.rows[ENGLISH].running - self.rows[row].english;
        (self.words - furniture as f32 / LANGUAGES[ENGLISH].coverage).max(self.words / 2.0)
    }

    /// The fraction of `words` that is in this language: about 1 for its own news.
    fn share(&self, row: usize, words: f32) -> f32 {
        let Some(language) = LANGUAGES.get(row) else { return 0.0 };
        self.rows[row].running as f32 / (words * language.coverage)
    }

    /// True if the running text may be in this language, rather than just the frame around it.
    ///
    /// English must cover three quarters, because English page furniture surrounds every language; the others
    /// must cover half, and at least 0.7 of what the best of them covers. The test allows for chance: 1.64
    /// standard deviations.
    fn covers(&self, row: usize, best: f32) -> bool {
        // A neighbour only ever leads to `und`.
        let Some(language) = LANGUAGES.get(row) else { return true };
        let (expected, words) = (language.coverage, self.own_words(row));
        let deviation = ((1.0 - expected) / (expected * words)).sqrt();
        let enough = if row == ENGLISH { 0.75 } else { 0.5 };
        self.share(row, words) >= enough - 1.64 * deviation && self.share(row, self.words) >= 0.7 * best
    }
}

/// The evidence for the language that explains an excerpt best.
#[derive(Clone, Copy, Debug)]
struct DetectionEvidence {
    row: usize,
    /// Words in the excerpt, without page furniture.
    words: f32,
    /// Distinct words of the language among them.
    hits: i32,
    /// Points ahead of the next language with another home.
    lead: i32,
}

impl DetectionEvidence {
    /// A neighbour becomes a guess at `und`.
    fn guess(&self, script: Script) -> Guess {
        if self.row >= LANGUAGES.len() || self.hits == 0 {
            return NO_GUESS;
        }
        // The number of distinct words in a text grows roughly as the square root of its length. Scripts
        // other than Latin have fewer unlisted languages to guard against.
        let enough = if script == Script::Latin { 0.6 } else { 0.25 };
        // A single word may belong to any language, however short the text.
        let density = self.hits as f32 / self.words.max(8.0).sqrt();
        // Each point of lead halves the remaining doubt; no lead at all is a coin toss.
        let doubt = 0.5f32.powi(self.lead.clamp(0, 20) + 1);
        Guess { row: self.row, confidence: (density / enough).min(1.0) * (1.0 - doubt) }
    }
}

/// The fraction of a text's words that are in a language's list.
pub(super) fn coverage(row: usize, excerpt: &Excerpt<'_>) -> f32 {
    let counts = MODEL.count(excerpt, 1 << row);
    counts.rows[row].running as f32 / counts.words
}

/// A set of small numbers.
struct BitSet<const N: usize>([u64; N]);

impl<const N: usize> BitSet<N> {
    #[inline]
    fn contains(&self, number: usize) -> bool {
        self.0[number / 64] >> (number % 64) & 1 == 1
    }

    /// Adds a number; returns whether it was absent.
    #[inline]
    fn insert(&mut self, number: usize) -> bool {
        let (cell, bit) = (&mut self.0[number / 64], 1 << (number % 64));
        let absent = *cell & bit == 0;
        *cell |= bit;
        absent
    }
}

fn first_slot(hash: u64) -> usize {
    hash as usize % SLOTS
}

/// Never 0, which marks a free slot.
fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32 | 1
}

/// Calls `letter` with each non-ASCII letter and `word` with the hash of each word, that is, each run of
/// letters.
#[inline]
fn each_word(text: &str, letter: impl FnMut(char), word: impl FnMut(u64)) {
    if text.is_ascii() {
        each_ascii_word(text.as_bytes(), word)
    } else {
        each_unicode_word(text, letter, word)
    }
}

/// Words start and end where a bit changes, so that nothing looks at single letters.
#[inline]
fn each_ascii_word(bytes: &[u8], mut word: impl FnMut(u64)) {
    let (blocks, rest) = bytes.as_chunks::<BLOCK>();
    // Padded with at least one space, which ends the last word.
    let mut last = [b' '; BLOCK];
    last[..rest.len()].copy_from_slice(rest);
    let (mut start, mut open) = (None, 0);
    for (block, base) in blocks.iter().chain([&last]).zip((0usize..).step_by(BLOCK)) {
        let bits = word_bits(block);
        let letters = bits.word & !bits.digit & !bits.underscore;
        let mut changes = letters ^ (letters << 1 | open);
        open = letters >> 63;
        while changes != 0 {
            let at = base.wrapping_add(changes.trailing_zeros() as usize);
            changes &= changes.wrapping_sub(1);
            match start.take() {
                None => start = Some(at),
                Some(start) => word(WordHash::of_range(bytes, start, at)),
            }
        }
    }
}

fn each_unicode_word(text: &str, mut letter: impl FnMut(char), mut word: impl FnMut(u64)) {
    let mut hash: Option<WordHash> = None;
    for c in text.chars() {
        if Script::of_letter(c).is_some() {
            if !c.is_ascii() {
                letter(c);
            }
            hash.get_or_insert_default().push(fold(c));
        } else if !is_mark(c)
            && let Some(hash) = hash.take()
        {
            word(hash.finish());
        }
    }
    if let Some(hash) = hash {
        word(hash.finish());
    }
}

/// Hashes the bytes of a word, eight at a time. The lists are ours, so crafted collisions gain nothing.
struct WordHash {
    hash: u64,
    /// Up to seven bytes that are not mixed in yet, and how many bits they take.
    rest: u64,
    filled: u32,
}

impl Default for WordHash {
    fn default() -> WordHash {
        WordHash { hash: 0xcbf2_9ce4_8422_2325, rest: 0, filled: 0 }
    }
}

impl WordHash {
    /// The hash of `bytes[start..end]`. It reads beyond the end where there is more, because eight bytes at once are one
    /// instruction and single ones a loop.
    #[inline]
    fn of_range(bytes: &[u8], start: usize, end: usize) -> u64 {
        let (mut hash, mut at) = (WordHash::default(), start);
        while at < end {
            let from_here = bytes.get(at..).unwrap_or_default();
            let eight = from_here.first_chunk().copied().unwrap_or_else(|| {
                let mut eight = [0; 8];
                eight[..from_here.len()].copy_from_slice(from_here);
                eight
            });
            let beyond = 8usize.saturating_sub(end.wrapping_sub(at)) * 8;
            hash.mix(u64::from_le_bytes(eight) << beyond >> beyond);
            at += 8;
        }
        hash.hash
    }

    fn push(&mut self, c: char) {
        c.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| self.byte(byte));
    }

    #[inline]
    fn byte(&mut self, byte: u8) {
        self.rest |= u64::from(byte) << self.filled;
        self.filled += 8;
        if self.filled == 64 {
            let eight = std::mem::take(&mut self.rest);
            self.filled = 0;
            self.mix(eight);
        }
    }

    #[inline]
    fn mix(&mut self, eight: u64) {
        let product = u128::from(self.hash ^ eight).wrapping_mul(0x517c_c1b7_2722_0a95);
        self.hash = (product >> 64) as u64 ^ product as u64;
    }

    #[inline]
    fn finish(mut self) -> u64 {
        if self.filled > 0 {
            let rest = self.rest;
            self.mix(rest);
        }
        self.hash
    }
}

/// A combining mark that belongs to no script: it neither ends a word nor changes it.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}')
}

/// Unifies letters that one language spells in two ways: normalised text may contain a dotless i or not, and
/// half of Romania writes a cedilla for the comma. Normalised text has one yeh, one kaf and one heh.
#[inline]
fn fold(c: char) -> char {
    match c {
        'ı' => 'i',
        'ş' => 'ș',
        'ţ' => 'ț',
        '\u{649}'..='\u{6cc}' => keyboard(c).and_then(|text| text.chars().next()).unwrap_or(c),
        _ => c,
    }
}

/// Index of a letter in `strangers`.
#[inline]
fn letter_index(c: char) -> Option<usize> {
    match fold(c) {
        // Latin letters with two marks: only Vietnamese has them in the table, so one entry is enough.
        '\u{1e00}'..='\u{1eff}' => Some(LETTERS),
        c => Some(c as usize).filter(|&at| at < LETTERS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ascii_text_has_the_same_words_by_blocks_as_by_letters() {
        let mut state = 3u64;
        let mut below = |end: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % end
        };
        let mut some = 0;
        for _ in 0..20_000 {
            let letters = b"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz ,._19'AZ\n";
            let text: Vec<u8> = (0..below(200)).map(|_| letters[below(letters.len())]).collect();
            let text = String::from_utf8(text).unwrap();
            let (mut by_blocks, mut by_letters) = (Vec::new(), Vec::new());
            each_ascii_word(text.as_bytes(), |hash| by_blocks.push(hash));
            each_unicode_word(&text, |c| panic!("{c:?} is ASCII"), |hash| by_letters.push(hash));
            some += by_blocks.len();
            assert_eq!(by_blocks, by_letters, "{text:?}");
        }
        assert!(some > 100_000, "{some} words");
    }
}
