//! Candidate ranking: chooses which of the documents found in buckets to compare a text with.
//!
//! [`Search`](super::Search) adds the buckets one by one and then asks for the ranking. Every document that
//! shares a band or the content may be alike as a whole, and is compared. Sampled shingles lead to excerpts
//! and their wholes but, in a large store, also to dozens of texts that merely share a phrase; only the few
//! with the strongest evidence are compared.

use std::cmp::Reverse;

use crate::index::PostingKind;
use crate::model::DocumentNumber;

/// One shared sampled shingle is enough if at most this many documents posted it: then it is not a common
/// phrase, and the work stays small. Eight instead of two would find one in a hundred more quarter-length
/// excerpts, and would compare nearly twice as many unrelated documents in a large store.
const RARE: u32 = 2;
/// This many common shingles must be shared.
const COMMON: u32 = 2;
/// How many documents are compared because of sampled shingles alone: those with the strongest evidence. In a
/// large store every text shares a phrase or two with dozens of others, and hardly ever is one of them a part
/// of it.
const PARTS: usize = 9;
/// How many of those may share the same shingles: a page may contain parts of several texts, each with many
/// copies.
const SAME_PART: u8 = 3;

/// The evidence for comparing the text with a document.
#[derive(Clone, Copy, Default)]
struct Hits {
    content: bool,
    // Small because many are sorted; a text has at most 136 bands.
    bands: u16,
    /// Total weight of the shared samples; a sample weighs more, the fewer documents have it.
    weight: u32,
    /// Bit set of the shared samples.
    samples: u64,
}

/// Weight of a sampled shingle that one document has; if n documents have it, it weighs one n-th of this.
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

    /// True if the texts may be alike as a whole.
    fn is_whole(self) -> bool {
        self.content || self.bands > 0
    }

    /// True if one text may be a part of the other.
    fn is_part(self) -> bool {
        self.samples.count_ones() >= COMMON || self.weight >= WEIGHT / RARE
    }
}

/// The documents found in a text's buckets, with the evidence for each.
pub(crate) struct CandidateHits {
    documents: Vec<(DocumentNumber, Hits)>,
    /// The weight of each sample.
    weights: Vec<u32>,
}

impl CandidateHits {
    pub(crate) fn with_room(room: usize) -> CandidateHits {
        CandidateHits { documents: Vec::with_capacity(room), weights: Vec::new() }
    }

    /// Records the documents of one bucket.
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

    /// The documents worth comparing, strongest evidence first.
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
        let mut left = SampleQuota::new(&self.weights);
        parts.retain(|&(reason, _)| left.takes(reason));
        wholes.into_iter().chain(parts).map(|(_, number)| number).collect()
    }
}

/// How many more documents may be compared because of sampled shingles alone.
struct SampleQuota<'a> {
    weights: &'a [u32],
    /// Remaining quota of each sample.
    of: [u8; 64],
    all: usize,
}

impl SampleQuota<'_> {
    fn new(weights: &[u32]) -> SampleQuota<'_> {
        SampleQuota { weights, of: [SAME_PART; 64], all: PARTS }
    }

    /// True if a document is to be compared: the samples it shares must not have used up their quota on other
    /// documents.
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
    fn every_document_that_shares_a_band_is_chosen() {
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
    fn rare_shingles_weigh_most() {
        let buckets = [numbers(0..3), numbers(8..10), numbers(10..11)];
        let chosen = chosen(&buckets.map(|numbers| (PostingKind::Sample, numbers)));
        assert_eq!(chosen, [10, 9, 8], "a phrase that three documents have is not rare");
    }

    #[test]
    fn many_copies_of_one_part_leave_room_for_another() {
        // A page contains parts of two texts; the first has ten copies, which share more with the page.
        let first = std::iter::repeat_n((PostingKind::Sample, numbers(0..10)), 9);
        let second = std::iter::repeat_n((PostingKind::Sample, numbers(10..22)), 3);
        let buckets: Vec<_> = first.chain(second).collect();
        let chosen = chosen(&buckets);
        assert_eq!(chosen, [9, 8, 7, 21, 20, 19]);
    }
}
