//! Postings in memory: for each bucket the documents in it.
//!
//! Most buckets hold one document for ever, so that takes no more room than its key and its number.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hash, Hasher};

use crate::lsh::BandKey;
use crate::model::DocumentNumber;

use crate::index::format::key;
use crate::index::format::key::{BUCKET, POSTING};
use crate::index::read::rows::{PostingList, Span};
use crate::index::write_set::staged_postings::Spread;

/// A bucket, in as few bytes as it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bucket([u8; BUCKET]);

impl Hash for Bucket {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let [b0, b1, hash @ ..] = self.0;
        state.write_u16(u16::from_be_bytes([b0, b1]));
        state.write_u64(u64::from_be_bytes(hash));
    }
}

/// A number, or this bit and a place in the list of those that hold several.
#[derive(Clone, Copy, Debug)]
struct Holds([u8; 8]);

const SEVERAL: u64 = 1 << 63;

enum Held {
    One(DocumentNumber),
    Several(usize),
}

impl Holds {
    fn get(self) -> Held {
        match u64::from_le_bytes(self.0) {
            number if number & SEVERAL == 0 => Held::One(DocumentNumber(number)),
            place => Held::Several((place ^ SEVERAL) as usize),
        }
    }

    fn one(number: DocumentNumber) -> Option<Holds> {
        (number.0 & SEVERAL == 0).then(|| Holds(number.0.to_le_bytes()))
    }

    fn several(place: usize) -> Holds {
        Holds((place as u64 | SEVERAL).to_le_bytes())
    }
}

/// Postings of one language.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buckets {
    /// Only ever asked for one bucket, or sorted first: its order never shows.
    all: HashMap<Bucket, Holds, BuildHasherDefault<Spread>>,
    /// Ascending numbers.
    several: Vec<VecDeque<DocumentNumber>>,
    /// Places in that list that are free.
    free: Vec<usize>,
}

impl Buckets {
    pub(crate) fn set(&mut self, key: BandKey, number: DocumentNumber, there: bool) {
        if there { self.insert(key, number) } else { self.remove(key, number) }
    }

    fn insert(&mut self, key: BandKey, number: DocumentNumber) {
        let bucket = Bucket(key::bucket(key));
        let numbers = match (self.all.get(&bucket).map(|holds| holds.get()), Holds::one(number)) {
            (None, Some(one)) => {
                self.all.insert(bucket, one);
                return;
            }
            (None, None) => VecDeque::from([number]),
            (Some(Held::One(other)), _) if other == number => return,
            (Some(Held::One(other)), _) => VecDeque::from([other.min(number), other.max(number)]),
            (Some(Held::Several(place)), _) => {
                let numbers = &mut self.several[place];
                // The newest comes last, and nearly always is the one that comes.
                if numbers.back().is_none_or(|last| *last < number) {
                    numbers.push_back(number);
                } else if let Err(at) = numbers.binary_search(&number) {
                    numbers.insert(at, number);
                }
                return;
            }
        };
        let place = self.free.pop().unwrap_or(self.several.len());
        if place == self.several.len() {
            self.several.push(numbers);
        } else {
            self.several[place] = numbers;
        }
        self.all.insert(bucket, Holds::several(place));
    }

    fn remove(&mut self, key: BandKey, number: DocumentNumber) {
        let bucket = Bucket(key::bucket(key));
        match self.all.get(&bucket).map(|holds| holds.get()) {
            Some(Held::One(other)) if other == number => drop(self.all.remove(&bucket)),
            Some(Held::Several(place)) => {
                let numbers = &mut self.several[place];
                if let Ok(at) = numbers.binary_search(&number) {
                    numbers.remove(at);
                }
                if numbers.is_empty() {
                    self.free.push(place);
                    self.all.remove(&bucket);
                }
            }
            _ => {}
        }
    }

    /// The newest documents of a bucket; nothing where it is empty.
    pub(crate) fn page(&self, key: BandKey, cap: usize) -> Option<PostingList> {
        Some(match self.all.get(&Bucket(key::bucket(key)))?.get() {
            Held::One(number) if cap > 0 => PostingList { numbers: vec![number], more: false },
            Held::One(_) => PostingList { numbers: Vec::new(), more: true },
            Held::Several(place) => {
                let numbers = &self.several[place];
                PostingList {
                    numbers: numbers.iter().rev().take(cap).copied().collect(),
                    more: numbers.len() > cap,
                }
            }
        })
    }

    pub(crate) fn contains(&self, key: BandKey, number: DocumentNumber) -> bool {
        match self.all.get(&Bucket(key::bucket(key))).map(|holds| holds.get()) {
            Some(Held::One(other)) => other == number,
            Some(Held::Several(place)) => self.several[place].binary_search(&number).is_ok(),
            None => false,
        }
    }

    /// The postings of a span, in the order of their bytes. Takes long unless the span lies in one bucket.
    pub(crate) fn span(&self, span: &Span) -> Vec<[u8; POSTING]> {
        let mut postings = Vec::new();
        let mut add = |bucket: Bucket, holds: Holds| {
            let mut posting = [0; POSTING];
            posting[..BUCKET].copy_from_slice(&bucket.0);
            let key = key::bucket_of(&posting);
            match holds.get() {
                Held::One(number) => postings.push(key::posting(key, number)),
                Held::Several(place) => {
                    postings.extend(self.several[place].iter().map(|&number| key::posting(key, number)));
                }
            }
        };
        match key::bucket_in(span) {
            Some(key) => {
                let bucket = Bucket(key::bucket(key));
                if let Some(&holds) = self.all.get(&bucket) {
                    add(bucket, holds);
                }
            }
            None => self.all.iter().for_each(|(&bucket, &holds)| add(bucket, holds)),
        }
        postings.retain(|posting| span.holds(posting));
        postings.sort_unstable();
        postings
    }
}
