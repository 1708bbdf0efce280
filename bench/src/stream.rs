//! A synthetic stream of articles that needs no storage: article n is a function of n and a seed.
//!
//! Words follow Zipf's law, and every article carries the boilerplate of its site. One in five articles is a
//! copy of an earlier one from anywhere in the stream, with every 30th word replaced and another site's
//! boilerplate in front.
//!
//! Frequent phrases and boilerplate produce candidates that are not copies: 14 per article among ten
//! thousand. Reuters has 16 there (Reuters-21578, 10,238 articles, default settings).

/// Distinct words. The k-th most frequent word occurs 1/k times as often as the first.
const VOCABULARY: usize = 50_000;
/// Size of the table that words are drawn from.
const SLOTS: usize = 1 << 20;
const SITES: u64 = 200;
/// Average number of words per article, including boilerplate.
pub const WORDS: usize = 400;
const BOILERPLATE: usize = 20;
/// One article in this many is a copy.
const COPIES: u64 = 5;
/// In a copy, one word in this many is replaced.
const EDITS: u64 = 30;
/// One word in this many is a number.
const NUMBERS: u64 = 60;
const SEED: u64 = 0x5eed_0f5a_3e57_0217;

/// SplitMix64: small, fast, and identical on every platform.
#[derive(Clone)]
struct Draw(u64);

impl Draw {
    fn new(kind: u64, n: u64) -> Draw {
        let mut draw = Draw(SEED ^ kind.wrapping_mul(0xd1b5_4a32_d192_ed03));
        draw.0 ^= draw.next().wrapping_add(n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        draw
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }
}

// Purposes of random draws; each has its own sequence.
const WORD: u64 = 1;
const SITE: u64 = 2;
const FATE: u64 = 3;
const BODY: u64 = 4;
const EDIT: u64 = 5;

/// A word padded to sixteen bytes: copying a fixed length is faster than copying the exact one.
struct Word {
    bytes: [u8; 16],
    len: usize,
}

pub struct Stream {
    /// Average number of words per article, including boilerplate.
    length: usize,
    /// One article in this many is a copy.
    copies: u64,
    words: Vec<Word>,
    /// Maps a draw to a word, by index into `words`.
    slots: Vec<u16>,
    boilerplate: Vec<Vec<u8>>,
}

impl Stream {
    pub fn new() -> Stream {
        Stream::with(WORDS, COPIES)
    }

    /// Articles of so many words on average, and of so many one that is a copy.
    pub fn with(length: usize, copies: u64) -> Stream {
        let padded = |rank| {
            let word: String = word(rank);
            let mut bytes = [b' '; 16];
            bytes[..word.len()].copy_from_slice(word.as_bytes());
            Word { bytes, len: word.len() }
        };
        let words: Vec<Word> = (0..VOCABULARY).map(padded).collect();
        let harmonic: f64 = (1..=VOCABULARY).map(|rank| 1.0 / rank as f64).sum();
        let mut slots = Vec::with_capacity(SLOTS);
        let mut share = 0.0;
        for rank in 0..VOCABULARY {
            share += 1.0 / (rank + 1) as f64 / harmonic;
            while (slots.len() as f64) < share * SLOTS as f64 && slots.len() < SLOTS {
                slots.push(rank as u16);
            }
        }
        slots.resize(SLOTS, 0);
        let mut stream = Stream { length, copies, words, slots, boilerplate: Vec::new() };
        stream.boilerplate = (0..SITES)
            .map(|site| {
                let mut text = Vec::new();
                let mut draw = Draw::new(SITE, site);
                (0..BOILERPLATE).for_each(|at| stream.push(&mut text, at, draw.next()));
                text
            })
            .collect();
        stream
    }

    /// Replaces `into` with the text of article n.
    pub fn write(&self, n: u64, into: &mut String) {
        let mut text = std::mem::take(into).into_bytes();
        text.clear();
        let mut fate = Draw::new(FATE, n);
        let copied = copied(&mut fate, n, self.copies);
        let site = fate.below(SITES) as usize;
        let mut body = Draw::new(BODY, copied.unwrap_or(n));
        let mut edit = copied.map(|_| Draw::new(EDIT, n));
        // Between half and one and a half times the average length.
        let words = self.length / 2 + body.below(self.length as u64 + 1) as usize - BOILERPLATE;
        let boilerplate = &self.boilerplate[site];
        text.extend_from_slice(boilerplate);
        text.extend_from_slice(b".\n");
        for at in 0..words {
            let drawn = body.next();
            let edited = edit.as_mut().map(Draw::next).filter(|drawn| drawn.is_multiple_of(EDITS));
            self.push(&mut text, at, edited.unwrap_or(drawn));
        }
        text.extend_from_slice(b".\n");
        *into = String::from_utf8(text).expect("words are ASCII");
    }

    fn push(&self, text: &mut Vec<u8>, at: usize, drawn: u64) {
        if at > 0 {
            text.extend_from_slice(if at.is_multiple_of(17) { b". " } else { b" " });
        }
        if (drawn >> 20).is_multiple_of(NUMBERS) {
            text.extend_from_slice(((drawn >> 40) % 10_000).to_string().as_bytes());
        } else {
            let word = &self.words[usize::from(self.slots[drawn as usize % SLOTS])];
            text.extend_from_slice(&word.bytes);
            text.truncate(text.len() - (word.bytes.len() - word.len));
        }
    }
}

/// The original that article n is a copy of.
fn copied(fate: &mut Draw, n: u64, copies: u64) -> Option<u64> {
    if !fate.next().is_multiple_of(copies) || n == 0 {
        return None;
    }
    let mut original = fate.below(n);
    // A copy of a copy would drift from the original, so step back to an article that is none. Article 0
    // never is.
    while original > 0 && Draw::new(FATE, original).next().is_multiple_of(copies) {
        original -= 1;
    }
    Some(original)
}

/// A pronounceable word; frequent words are short.
fn word(rank: usize) -> String {
    const ONSETS: [&str; 16] =
        ["b", "c", "d", "f", "g", "h", "l", "m", "n", "p", "r", "s", "t", "v", "st", "tr"];
    const VOWELS: [&str; 6] = ["a", "e", "i", "o", "u", "ea"];
    let mut draw = Draw::new(WORD, rank as u64);
    let mut rest = rank;
    let mut word = String::new();
    // The syllables spell the rank, so no two words are equal.
    loop {
        word.push_str(ONSETS[rest % 16]);
        rest /= 16;
        word.push_str(VOWELS[rest % 6]);
        rest /= 6;
        if rest == 0 {
            break;
        }
    }
    if draw.next().is_multiple_of(3) {
        word.push('n');
    }
    word
}
