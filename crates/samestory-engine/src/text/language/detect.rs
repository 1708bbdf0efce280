//! Recognising a language from the text: by its script, and among the languages of one script by the small words
//! that hold sentences together, and by letters that are foreign to it.
//!
//! A page of prose uses dozens of the hundred commonest words of its language and, by accident, a few of any
//! other's. So the language with the most *different* ones in some hundred words wins, which costs a hash and a
//! look-up a word. Different ones, because a language that has "a" or "i" for its commonest word would otherwise pass
//! for half of Europe, and a page footer repeated ten times for an article. A language must also account for most of
//! the *running* words, so that an English page frame does not decide for the article inside it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::neighbours::NEIGHBOURS;
use super::script::{Census, Sample, Script};
use super::table::LANGUAGES;
use crate::text::chars::keyboard;

/// A row of [`LANGUAGES`], and how sure of it we are, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Guess {
    pub(super) row: usize,
    pub(super) confidence: f32,
}

const NOTHING: Guess = Guess { row: 0, confidence: 0.0 };

/// A letter foreign to a language tells against it as much as two of its words tell for it. Between one and four
/// it makes no difference to a page, and little to a line.
const LETTER_WEIGHT: i32 = 2;

/// Recognises the language of a sample.
pub(super) fn detect(sample: &Sample<'_>) -> Guess {
    let Some((script, share)) = Census::of(sample).dominant() else { return NOTHING };
    let speakers = MODEL.speakers[script as usize];
    let guess = match speakers.count_ones() {
        0 => NOTHING,
        1 => Guess { row: speakers.trailing_zeros() as usize, confidence: 1.0 },
        _ => MODEL.weigh(sample, speakers, script).guess(script),
    };
    Guess { confidence: guess.confidence * share, ..guess }
}

/// The row of English.
const ENGLISH: usize = 1;

/// A set of languages: bit i is row i of [`LANGUAGES`], and after them the neighbours.
type Set = u128;

const _: () = assert!(LANGUAGES.len() + NEIGHBOURS.len() <= Set::BITS as usize, "widen Set");

fn each(mut set: Set, mut found: impl FnMut(usize)) {
    while set != 0 {
        found(set.trailing_zeros() as usize);
        set &= set - 1;
    }
}

/// Letters below this (Latin to Devanagari) are known one by one.
const LETTERS: usize = 0x980;

/// Slots for words: a power of two, at least twice as many as there are words.
const SLOTS: usize = 1 << 14;

struct Model {
    /// The row that names each one's home.
    homes: Vec<usize>,
    /// Who writes in a script.
    speakers: [Set; Script::COUNT],
    /// Who does *not* write a letter of their script. A letter that no row lists tells against nobody.
    strangers: Vec<Set>,
    /// A hash table of words, open addressing: the upper half of the hash (0 is a free slot) …
    tags: Vec<u32>,
    /// … where in `sets` its users are …
    users: Vec<u16>,
    /// … and the sets, each once.
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
                if let (Some(at), Some(script)) = (place(c), Script::of(c)) {
                    letters.entry(at).or_insert((script, 0)).1 |= bit;
                }
            }
            each_word(list, |_| (), |hash| *words.entry(hash).or_default() |= bit);
        }
        // Japanese is told from Chinese by its kana, which count as a script of their own.
        speakers[Script::Han as usize] &= !speakers[Script::Kana as usize];

        let mut strangers = vec![0; LETTERS + 1];
        for (at, (script, writers)) in letters {
            strangers[at] = speakers[script as usize] & !writers;
        }
        assert!(words.len() <= SLOTS / 2, "{} words: make SLOTS larger", words.len());
        let (mut tags, mut users, mut sets) = (vec![0; SLOTS], vec![0; SLOTS], Vec::new());
        for (hash, set) in words {
            let mut slot = home(hash);
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
        Model { homes: homes.collect(), speakers, strangers, tags, users, sets }
    }

    /// The slot of a word, if it is anyone's.
    #[inline]
    fn slot(&self, hash: u64) -> Option<usize> {
        let mut slot = home(hash);
        loop {
            match self.tags[slot] {
                0 => return None,
                found if found == tag(hash) => return Some(slot),
                _ => slot = (slot + 1) % SLOTS,
            }
        }
    }

    /// Counts what a sample holds of each of `speakers`.
    fn count(&self, sample: &Sample<'_>, speakers: Set) -> Counts {
        let mut words = 0;
        let mut tallies = vec![Tally::default(); self.sets.len()];
        let mut seen_words = Seen([0u64; SLOTS / 64]);
        let mut seen_letters = Seen([0u64; LETTERS / 64 + 1]);
        let mut rows = [Row::default(); Set::BITS as usize];
        for window in sample.windows() {
            each_word(
                window,
                |c| {
                    if let Some(at) = place(c).filter(|&at| seen_letters.first(at)) {
                        each(self.strangers[at] & speakers, |row| rows[row].letters += 1);
                    }
                },
                |hash| {
                    words += 1;
                    if let Some(slot) = self.slot(hash) {
                        let tally = &mut tallies[self.users[slot] as usize];
                        tally.running += 1;
                        tally.distinct += i32::from(seen_words.first(slot));
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
        Counts { words: words.max(1) as f32, rows }
    }

    /// Finds the language among `speakers` that explains the sample best.
    fn weigh(&self, sample: &Sample<'_>, speakers: Set, script: Script) -> Evidence {
        let counts = self.count(sample, speakers);
        let mut best = 0.0f32;
        each(speakers & !(1 << ENGLISH), |row| best = best.max(counts.share(row, counts.words)));
        let mut points = [i32::MIN; Set::BITS as usize];
        let mut winner = 0;
        each(speakers, |row| {
            // Only Latin has furniture and strangers in such numbers.
            if script == Script::Latin && !counts.covers(row, best) {
                return;
            }
            points[row] = counts.rows[row].distinct - LETTER_WEIGHT * counts.rows[row].letters;
            // Strictly more: of equals the earlier row stays.
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
        Evidence { row: winner, words: counts.own_words(winner), hits: counts.rows[winner].distinct, lead }
    }
}

/// How often the words of one set of languages occur.
#[derive(Clone, Copy, Default)]
struct Tally {
    distinct: i32,
    running: i32,
}

/// What a sample holds of one language.
#[derive(Clone, Copy, Default)]
struct Row {
    /// Different words from its list.
    distinct: i32,
    /// All words from its list, …
    running: i32,
    /// … and those of them that are in the English list too.
    english: i32,
    /// Different letters that the language does not write.
    letters: i32,
}

struct Counts {
    words: f32,
    rows: [Row; Set::BITS as usize],
}

impl Counts {
    /// The words that are not English page furniture around a text in this language: at least half.
    fn own_words(&self, row: usize) -> f32 {
        let furniture = self.rows[ENGLISH].running - self.rows[row].english;
        (self.words - furniture as f32 / LANGUAGES[ENGLISH].coverage).max(self.words / 2.0)
    }

    /// Which part of so many words is in this language: about 1 for its own news.
    fn share(&self, row: usize, words: f32) -> f32 {
        let Some(language) = LANGUAGES.get(row) else { return 0.0 };
        self.rows[row].running as f32 / (words * language.coverage)
    }

    /// Whether the running text may be in this language, and not just the frame around it.
    ///
    /// English must cover three quarters, since its page furniture surrounds every language; the others half, and no
    /// less than 0.7 of what the best of them covers. Chance is allowed for: 1.64 standard deviations.
    fn covers(&self, row: usize, best: f32) -> bool {
        // A neighbour only ever leads to `und`.
        let Some(language) = LANGUAGES.get(row) else { return true };
        let (expected, words) = (language.coverage, self.own_words(row));
        let deviation = ((1.0 - expected) / (expected * words)).sqrt();
        let enough = if row == ENGLISH { 0.75 } else { 0.5 };
        self.share(row, words) >= enough - 1.64 * deviation && self.share(row, self.words) >= 0.7 * best
    }
}

/// What speaks for the language that explains a sample best.
#[derive(Clone, Copy, Debug)]
struct Evidence {
    row: usize,
    /// Words in the sample, less the furniture.
    words: f32,
    /// How many different words of the language are among them.
    hits: i32,
    /// Points ahead of the next language of another home.
    lead: i32,
}

impl Evidence {
    /// A neighbour is a guess at `und`.
    fn guess(&self, script: Script) -> Guess {
        if self.row >= LANGUAGES.len() || self.hits == 0 {
            return NOTHING;
        }
        // The number of different words in a text grows about as the root of its length. Scripts other than Latin
        // have fewer strangers to be wary of.
        let enough = if script == Script::Latin { 0.6 } else { 0.25 };
        // One word alone may be anyone's, however short the text.
        let density = self.hits as f32 / self.words.max(8.0).sqrt();
        // Each point of lead halves the doubt that is left; no lead at all is a toss.
        let doubt = 0.5f32.powi(self.lead.clamp(0, 20) + 1);
        Guess { row: self.row, confidence: (density / enough).min(1.0) * (1.0 - doubt) }
    }
}

/// The share of a text's words that are in a language's list.
pub(super) fn coverage(row: usize, sample: &Sample<'_>) -> f32 {
    let counts = MODEL.count(sample, 1 << row);
    counts.rows[row].running as f32 / counts.words
}

/// Which numbers have come up.
struct Seen<const N: usize>([u64; N]);

impl<const N: usize> Seen<N> {
    /// Whether this is the first time, and remembers it.
    #[inline]
    fn first(&mut self, number: usize) -> bool {
        let (cell, bit) = (&mut self.0[number / 64], 1 << (number % 64));
        let first = *cell & bit == 0;
        *cell |= bit;
        first
    }
}

fn home(hash: u64) -> usize {
    hash as usize % SLOTS
}

/// Never 0, which marks a free slot.
fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32 | 1
}

/// Calls `letter` with each letter beyond ASCII and `word` with the hash of each word: a run of letters.
#[inline]
fn each_word(text: &str, mut letter: impl FnMut(char), mut word: impl FnMut(u64)) {
    // Multiply and rotate, as FxHash does; the words are ours, so nobody gains by making them collide.
    const START: u64 = 0xcbf2_9ce4_8422_2325;
    let mut hash = START;
    for c in text.chars() {
        if Script::of(c).is_some() {
            if !c.is_ascii() {
                letter(c);
            }
            hash = (hash.rotate_left(5) ^ u64::from(fold(c))).wrapping_mul(0x517c_c1b7_2722_0a95);
        } else if hash != START && !is_mark(c) {
            word(hash ^ (hash >> 29));
            hash = START;
        }
    }
    if hash != START {
        word(hash ^ (hash >> 29));
    }
}

/// A combining mark of no script: it neither ends a word nor changes which one it is.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}')
}

/// Makes one of letters that a single language spells in two ways: normalised text may hold a dotless i or not, and
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

/// Where a letter stands in `strangers`.
#[inline]
fn place(c: char) -> Option<usize> {
    match fold(c) {
        // Latin letters with two marks: in the table only Vietnamese has them, so one place is enough.
        '\u{1e00}'..='\u{1eff}' => Some(LETTERS),
        c => Some(c as usize).filter(|&at| at < LETTERS),
    }
}
