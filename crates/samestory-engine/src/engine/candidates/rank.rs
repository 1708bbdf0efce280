//! Which of the documents that buckets name a text is compared with.
//!
//! Whatever shares a band or the content may be alike as a whole, and is looked at. Sampled shingles lead to parts and
//! wholes, and in a large store to dozens of texts that have a phrase in common: of those, the few for which most
//! speaks.

use std::cmp::Reverse;

use crate::index::PostingKind;
use crate::model::DocumentNumber;

/// One shared sampled shingle is enough where at most so many documents posted it: it is no common phrase, and the
/// work stays small. With eight in place of two, of quarters of articles one in a hundred more is found, and nearly twice
/// as many strangers are looked at in a large store.
const RARE: u32 = 2;
/// Of a common one, so many must be shared.
const COMMON: u32 = 2;
/// Of the documents for which sampled shingles alone speak, so many are looked at: those for which they say most. In a
/// large store every text shares a phrase or two with dozens of others, and hardly ever is one of them its part.
const PARTS: usize = 9;
/// So many of them for the sake of the same shingles: a page may have parts of several texts, each with many copies.
const SAME_PART: u8 = 3;

/// What speaks for looking at a document.
#[derive(Clone, Copy, Default)]
struct Hits {
    content: bool,
    // Small, for many are sorted: a text has at most 136 bands.
    bands: u16,
    /// How much the shared samples say: each the more, the fewer documents have it.
    weight: u32,
    /// Which samples are shared, a bit for each.
    samples: u64,
}

/// What a sampled shingle says that a single document has; one that n documents have says an n-th of it.
const WEIGHT: u32 = 1 << 16;

impl Hits {
    fn and(self, other: &Hits) -> Hits {
        Hits {
            content: self.content || other.content,
            bands: self.bands + other.bands,
            weight: self.weight + other.weight,
            samples: self.samples | other.samples,
        }
    }

    /// Whether the texts may be alike as a whole.
    fn is_whole(self) -> bool {
        self.content || self.bands > 0
    }

    /// Whether one may be a part of the other.
    fn is_part(self) -> bool {
        self.samples.count_ones() >= COMMON || self.weight >= WEIGHT / RARE
    }
}

/// What buckets say of the documents in them.
pub(crate) struct CandidateHits {
    documents: Vec<(DocumentNumber, Hits)>,
    /// What each sample says.
    weights: Vec<u32>,
}

impl CandidateHits {
    /// With room for so many documents.
    pub(crate) fn with_room(room: usize) -> CandidateHits {
        CandidateHits { documents: Vec::with_capacity(room), weights: Vec::new() }
    }

    /// Takes note of the documents in a bucket.
    pub(crate) fn see(&mut self, kind: PostingKind, numbers: &[DocumentNumber]) {
        let mut reason = Hits::default();
        match kind {
            PostingKind::Content => reason.content = true,
            PostingKind::MinHash | PostingKind::SimHash => reason.bands = 1,
            PostingKind::Sample => {
                reason.samples = 1u64.wrapping_shl(self.weights.len() as u32);
                reason.weight = WEIGHT / (numbers.len() as u32).max(1);
                self.weights.push(reason.weight);
            }
        }
        self.documents.extend(numbers.iter().map(|&number| (number, reason)));
    }

    /// The documents for which enough speaks, the most promising first.
    pub(crate) fn choose(mut self) -> Vec<DocumentNumber> {
        self.documents.sort_unstable_by_key(|&(number, _)| number);
        let all = self
            .documents
            .chunk_by(|(a, _), (b, _)| a == b)
            .map(|same| (same.iter().fold(Hits::default(), |all, (_, reason)| all.and(reason)), same[0].0));
        let (mut wholes, mut parts): (Vec<_>, Vec<_>) = all
            .filter(|(reason, _)| reason.is_whole() || reason.is_part())
            .partition(|(reason, _)| reason.is_whole());
        let rank = |&(reason, number): &(Hits, DocumentNumber)| {
            Reverse((reason.content, reason.bands, reason.weight, number))
        };
        wholes.sort_unstable_by_key(rank);
        parts.sort_unstable_by_key(rank);
        let mut left = SampleQuota::of(&self.weights);
        parts.retain(|&(reason, _)| left.takes(reason));
        wholes.into_iter().chain(parts).map(|(_, number)| number).collect()
    }
}

/// How many documents more are looked at for the sake of sampled shingles alone.
struct SampleQuota<'a> {
    weights: &'a [u32],
    /// For each sample.
    of: [u8; 64],
    all: usize,
}

impl SampleQuota<'_> {
    fn of(weights: &[u32]) -> SampleQuota<'_> {
        SampleQuota { weights, of: [SAME_PART; 64], all: PARTS }
    }

    /// Whether a document is looked at: what it shares must not have led to others already.
    fn takes(&mut self, reason: Hits) -> bool {
        if self.all == 0 {
            return false;
        }
        let samples = || (0..64).filter(|at| reason.samples >> at & 1 == 1);
        let open = samples().filter(|&at| self.of[at] > 0);
        let fresh = open.fold(Hits::default(), |fresh, at| {
            let weight = self.weights.get(at).copied().unwrap_or_default();
            fresh.and(&Hits { samples: 1 << at, weight, ..Hits::default() })
        });
        if !fresh.is_part() {
            return false;
        }
        self.all -= 1;
        for at in samples() {
            self.of[at] = self.of[at].saturating_sub(1);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(numbers: impl IntoIterator<Item = u64>) -> Vec<DocumentNumber> {
        numbers.into_iter().map(DocumentNumber).collect()
    }

    fn chosen(buckets: &[(PostingKind, Vec<DocumentNumber>)]) -> Vec<u64> {
        let mut seen = CandidateHits::with_room(0);
        buckets.iter().for_each(|(kind, numbers)| seen.see(*kind, numbers));
        seen.choose().into_iter().map(|number| number.0).collect()
    }

    #[test]
    fn what_shares_a_band_is_looked_at_however_many_they_are() {
        let crowd = (PostingKind::MinHash, numbers(0..50));
        assert_eq!(chosen(&[crowd]).len(), 50);
    }

    #[test]
    fn a_common_phrase_is_not_enough_but_two_are_and_so_is_a_rare_one() {
        let common = |from: u64| (PostingKind::Sample, numbers([1].into_iter().chain(from..from + 20)));
        assert!(chosen(&[common(100)]).is_empty());
        assert_eq!(chosen(&[common(100), common(200)]), [1]);
        assert_eq!(chosen(&[(PostingKind::Sample, numbers([1, 7]))]), [7, 1]);
    }

    #[test]
    fn shingles_that_few_have_say_most() {
        let buckets = [numbers(0..3), numbers(8..10), numbers(10..11)];
        let chosen = chosen(&buckets.map(|numbers| (PostingKind::Sample, numbers)));
        assert_eq!(chosen, [10, 9, 8], "what three have is no rare phrase");
    }

    #[test]
    fn many_copies_of_one_part_leave_room_for_another() {
        // A page with a part of two texts; the first has ten copies, which share more with it.
        let first = std::iter::repeat_n((PostingKind::Sample, numbers(0..10)), 9);
        let second = std::iter::repeat_n((PostingKind::Sample, numbers(10..22)), 3);
        let buckets: Vec<_> = first.chain(second).collect();
        let chosen = chosen(&buckets);
        assert_eq!(chosen, [9, 8, 7, 21, 20, 19]);
    }
}
