//! Posting lists in memory.
//!
//! [`super::Memory`] keeps one [`Buckets`] per language. Most buckets hold a single document forever, so such
//! a bucket takes no more memory than its key and that document's number.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hash, Hasher};

use crate::lsh::BandKey;
use crate::model::DocumentNumber;

use crate::index::format::key;
use crate::index::format::key::{BUCKET, POSTING};
use crate::index::read::rows::{PostingList, Span};
use crate::index::write_set::staged_postings::Spread;

/// A bucket's key in its compact byte form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bucket([u8; BUCKET]);

impl Hash for Bucket {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let [b0, b1, hash @ ..] = self.0;
        state.write_u16(u16::from_be_bytes([b0, b1]));
        state.write_u64(u64::from_be_bytes(hash));
    }
}

/// A single document number, or, with the `SEVERAL` bit set, an index into `Buckets::several`.
#[derive(Clone, Copy, Debug)]
struct PackedBucket([u8; 8]);

const SEVERAL: u64 = 1 << 63;

enum BucketContent {
    One(DocumentNumber),
    Several(usize),
}

impl PackedBucket {
    fn get(self) -> BucketContent {
        match u64::from_le_bytes(self.0) {
            number if number & SEVERAL == 0 => BucketContent::One(DocumentNumber(number)),
            index => BucketContent::Several((index ^ SEVERAL) as usize),
        }
    }

    fn one(number: DocumentNumber) -> Option<PackedBucket> {
        (number.0 & SEVERAL == 0).then(|| PackedBucket(number.0.to_le_bytes()))
    }

    fn several(index: usize) -> PackedBucket {
        PackedBucket((index as u64 | SEVERAL).to_le_bytes())
    }
}

/// The posting lists of one language.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buckets {
    /// Only looked up or sorted before use, so its order does not matter.
    all: HashMap<Bucket, PackedBucket, BuildHasherDefault<Spread>>,
    /// Lists of ascending numbers.
    several: Vec<VecDeque<DocumentNumber>>,
    /// Free indexes of `several`.
    free: Vec<usize>,
}

impl Buckets {
    pub(crate) fn set(&mut self, key: BandKey, number: DocumentNumber, present: bool) {
        if present { self.insert(key, number) } else { self.remove(key, number) }
    }

    fn insert(&mut self, key: BandKey, number: DocumentNumber) {
        let bucket = Bucket(key::bucket(key));
        let numbers = match (self.all.get(&bucket).map(|packed| packed.get()), PackedBucket::one(number)) {
            (None, Some(one)) => {
                self.all.insert(bucket, one);
                return;
            }
            (None, None) => VecDeque::from([number]),
            (Some(BucketContent::One(other)), _) if other == number => return,
            (Some(BucketContent::One(other)), _) => VecDeque::from([other.min(number), other.max(number)]),
            (Some(BucketContent::Several(index)), _) => {
                let numbers = &mut self.several[index];
                // New documents have the highest number, so they nearly always go to the end.
                if numbers.back().is_none_or(|last| *last < number) {
                    numbers.push_back(number);
                } else if let Err(at) = numbers.binary_search(&number) {
                    numbers.insert(at, number);
                }
                return;
            }
        };
        let index = self.free.pop().unwrap_or(self.several.len());
        if index == self.several.len() {
            self.several.push(numbers);
        } else {
            self.several[index] = numbers;
        }
        self.all.insert(bucket, PackedBucket::several(index));
    }

    fn remove(&mut self, key: BandKey, number: DocumentNumber) {
        let bucket = Bucket(key::bucket(key));
        match self.all.get(&bucket).map(|packed| packed.get()) {
            Some(BucketContent::One(other)) if other == number => drop(self.all.remove(&bucket)),
            Some(BucketContent::Several(index)) => {
                let numbers = &mut self.several[index];
                if let Ok(at) = numbers.binary_search(&number) {
                    numbers.remove(at);
                }
                if numbers.is_empty() {
                    self.free.push(index);
                    self.all.remove(&bucket);
                }
            }
            _ => {}
        }
    }

    /// The newest documents of a bucket; `None` if it is empty.
    pub(crate) fn posting_list(&self, key: BandKey, cap: usize) -> Option<PostingList> {
        Some(match self.all.get(&Bucket(key::bucket(key)))?.get() {
            BucketContent::One(number) if cap > 0 => PostingList { numbers: vec![number], more: false },
            BucketContent::One(_) => PostingList { numbers: Vec::new(), more: true },
            BucketContent::Several(index) => {
                let numbers = &self.several[index];
                PostingList {
                    numbers: numbers.iter().rev().take(cap).copied().collect(),
                    more: numbers.len() > cap,
                }
            }
        })
    }

    pub(crate) fn contains(&self, key: BandKey, number: DocumentNumber) -> bool {
        match self.all.get(&Bucket(key::bucket(key))).map(|packed| packed.get()) {
            Some(BucketContent::One(other)) => other == number,
            Some(BucketContent::Several(index)) => self.several[index].binary_search(&number).is_ok(),
            None => false,
        }
    }

    /// The postings of a range, in byte order. Slow unless the range lies within one bucket.
    pub(crate) fn span(&self, span: &Span) -> Vec<[u8; POSTING]> {
        let mut postings = Vec::new();
        let mut add = |bucket: Bucket, packed: PackedBucket| {
            let mut posting = [0; POSTING];
            posting[..BUCKET].copy_from_slice(&bucket.0);
            let key = key::bucket_of(&posting);
            match packed.get() {
                BucketContent::One(number) => postings.push(key::posting(key, number)),
                BucketContent::Several(index) => {
                    postings.extend(self.several[index].iter().map(|&number| key::posting(key, number)));
                }
            }
        };
        match key::bucket_in(span) {
            Some(key) => {
                let bucket = Bucket(key::bucket(key));
                if let Some(&packed) = self.all.get(&bucket) {
                    add(bucket, packed);
                }
            }
            None => self.all.iter().for_each(|(&bucket, &packed)| add(bucket, packed)),
        }
        postings.retain(|posting| span.holds(posting));
        postings.sort_unstable();
        postings
    }
}
