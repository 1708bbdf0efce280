//! Candidate lookup: finds the earlier documents that a text is worth comparing with.
//!
//! Three routes lead to a document: equal content, a shared band of the signature, and shared sampled
//! shingles. A shared bucket is never proof, only a reason to compare. Of a hot bucket only the newest
//! `max_bucket` live documents are examined. `rank` chooses among the documents that the buckets name,
//! `compare` measures them, and `read_ahead` fetches the buckets of a whole batch early.
//!
//! Sampled shingles find excerpts and the texts that contain them, because their signatures have little in
//! common. A document posts the smallest few of its sampled shingles (16: [`Engine::POSTED_SAMPLES`]), and a text
//! looks up somewhat more of its own ([`LOOKED_UP`]):
//!
//! - The old text is the whole. Any of the whole's smallest shingles that the part contains is also among the
//!   part's smallest, so looking up those few is enough. A quarter of a text contains each of 16 with
//!   probability ¼: at least one of them in 99 of 100 cases, two in 94; bands find half of the rest.
//! - The new text is the whole. If it is n times as long as the part, one in n of its smallest 24 shingles
//!   comes from the part, and is among the part's posted ones while n is small. It has two or more of a
//!   third's in all but one of 1,300 cases, and one or more of an eighth's in 96 of 100 cases. Every
//!   additional shingle is one more bucket to read.
//!
//! Samples find whole texts too: two texts of equal length and similarity ½ share ten of the sixteen, so
//! hardly any of the pairs that the bands miss is missed altogether.

pub(crate) mod rank;
pub(crate) mod read_ahead;

use std::borrow::Cow;
use std::sync::Arc;

use crate::fingerprint::{Fingerprint, SAMPLE};
use crate::index::{
    Document, DocumentSummary, IndexScheme, IndexSchemes, PostingKind, PostingList, StoreError, View,
};
use crate::lsh::BandKey;
use crate::model::{DocumentNumber, EventTime, Lang};

use super::compare::index_evidence::{Phrase, holds_several};
use super::compare::{Comparison, Relation};
use super::settings::{Algorithm, LanguageSettings};
use super::{Engine, Prepared};
use rank::CandidateHits;

/// Sampled shingles that are looked up, smallest first; the module header explains the number.
const LOOKED_UP: usize = 24;

/// A text is compared with at most this many times `max_bucket` documents.
const EXAMINED_BUCKETS: usize = 4;
/// Sampled shingles that are looked up for a long text, at most.
const MOST_LOOKED_UP: usize = 64;
/// How many reads of one hot bucket may search for live documents.
const MAX_READS: usize = 4;

/// An earlier document, and how the newer text compares with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The earlier document.
    pub document: Arc<Document>,
    /// The comparison of the newer text with it.
    pub comparison: Comparison,
}

impl Candidate {
    /// True if the texts are related at all.
    fn is_alike(&self) -> bool {
        self.comparison.relation != Relation::Different
    }
}

/// The documents that a text was compared with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Candidates {
    /// Live candidates by document number, ascending.
    pub all: Vec<Candidate>,
    /// True if the text is a digest: it contains several of them, from different clusters.
    pub digest: bool,
    /// True if a match may have been missed because a bucket held more documents than are examined.
    pub capped: bool,
    /// How many buckets held more documents than are examined. Buckets of sampled shingles are not counted: a
    /// common phrase is enough to fill one.
    pub capped_buckets: u64,
}

impl Engine {
    /// Finds and compares the earlier documents that may match a text. Documents last seen at or before
    /// `horizon` are expired and left out.
    ///
    /// # Errors
    /// The index could not be read.
    pub fn candidates(
        &self,
        state: &impl View,
        article: &Prepared,
        horizon: Option<EventTime>,
    ) -> Result<Candidates, StoreError> {
        let keys = self.looked_up(state.postings(), article);
        let lists = state.posting_lists(article.language, &keys, self.read_limit())?;
        let lists = (0..keys.len()).map(|at| lists.get(at).map(Cow::Borrowed).unwrap_or_default());
        self.candidates_in(state, article, horizon, &keys, lists.collect())
    }

    /// The same, from posting lists that have already been read.
    pub(super) fn candidates_in(
        &self,
        state: &impl View,
        article: &Prepared,
        horizon: Option<EventTime>,
        keys: &[BandKey],
        lists: Vec<Cow<'_, PostingList>>,
    ) -> Result<Candidates, StoreError> {
        let cap = self.settings().max_bucket.max(1);
        let mut search = Search { state, language: article.language, horizon, cap, read: Vec::new() };
        search.run(keys, lists, &article.fingerprint, self.settings_for(article.language))
    }

    /// How many document numbers to read from a bucket: one more than the cap, to distinguish a full bucket
    /// from one that holds more.
    pub(super) fn read_limit(&self) -> usize {
        self.settings().max_bucket.max(1) + 1
    }

    /// The keys of the buckets to look up for an article.
    pub(super) fn looked_up(&self, postings: &IndexSchemes, article: &Prepared) -> Vec<BandKey> {
        keys(postings.for_language(article.language), &article.fingerprint)
    }
}

fn keys(posting: &IndexScheme, fingerprint: &Fingerprint) -> Vec<BandKey> {
    match fingerprint.tokens {
        0 => Vec::new(),
        tokens if tokens < posting.shortest => {
            vec![IndexScheme::content(fingerprint)]
        }
        _ => {
            let mut keys = posting.keys(fingerprint);
            if posting.samples > 0 {
                let looked_up = looked_up(fingerprint).iter();
                let others = looked_up.skip(posting.samples_of(fingerprint));
                keys.extend(others.map(|&value| IndexScheme::sample(value)));
            }
            keys
        }
    }
}

/// The sampled shingles to look up. A long text keeps a larger sample and looks up proportionally more.
pub(super) fn looked_up(fingerprint: &Fingerprint) -> &[u32] {
    let sample = fingerprint.sample.values();
    let count = (LOOKED_UP * sample.len() / SAMPLE).clamp(LOOKED_UP, MOST_LOOKED_UP);
    &sample[..count.min(sample.len())]
}

/// The documents that a text would be compared with if nothing changed before it is judged.
pub(super) fn probable<'p>(
    keys: &[BandKey],
    lists: impl Iterator<Item = Option<&'p PostingList>>,
    cap: usize,
) -> impl Iterator<Item = DocumentNumber> {
    let lists: Vec<Option<&PostingList>> = lists.collect();
    let mut seen =
        CandidateHits::with_room(lists.iter().flatten().map(|list| list.numbers.len().min(cap)).sum());
    for (&key, list) in keys.iter().zip(lists) {
        let numbers = list.map(|list| &list.numbers[..list.numbers.len().min(cap)]).unwrap_or_default();
        seen.see(IndexScheme::kind(key), numbers);
    }
    seen.choose().into_iter()
}

/// Sorts and deduplicates.
pub(super) fn ascending(numbers: impl Iterator<Item = DocumentNumber>) -> Vec<DocumentNumber> {
    let mut numbers: Vec<DocumentNumber> = numbers.collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

pub(super) struct Search<'a, V> {
    pub(super) state: &'a V,
    pub(super) language: Lang,
    horizon: Option<EventTime>,
    cap: usize,
    /// Every document read so far, by number, ascending; `None` for an expired one.
    read: Vec<(DocumentNumber, Option<Arc<Document>>)>,
}

impl<V: View> Search<'_, V> {
    fn run(
        &mut self,
        keys: &[BandKey],
        lists: Vec<Cow<'_, PostingList>>,
        fingerprint: &Fingerprint,
        settings: &LanguageSettings,
    ) -> Result<Candidates, StoreError> {
        let room = lists.iter().map(|list| list.numbers.len().min(self.cap)).sum();
        let mut seen = CandidateHits::with_room(room);
        let mut phrases: Vec<&[DocumentNumber]> = Vec::new();
        // `common`: a phrase that many documents share. `crowded`: a hot bucket of texts that may be alike as
        // a whole.
        let (mut common, mut crowded, mut capped_buckets) = (false, false, 0);
        for (&key, list) in keys.iter().zip(&lists) {
            let kind = IndexScheme::kind(key);
            let live;
            let numbers: &[DocumentNumber] = if list.numbers.len() <= self.cap {
                &list.numbers
            } else if kind == PostingKind::Sample {
                common = true;
                &list.numbers[..self.cap]
            } else {
                crowded = true;
                let capped;
                (live, capped) = self.newest_live(key, list.as_ref().clone())?;
                capped_buckets += u64::from(capped);
                &live
            };
            seen.see(kind, numbers);
            if kind == PostingKind::Sample {
                phrases.push(&list.numbers[..list.numbers.len().min(self.cap)]);
            }
        }
        let mut chosen = seen.choose();
        let most = self.cap * EXAMINED_BUCKETS;
        let capped = capped_buckets > 0 || chosen.len() > most;
        crowded |= chosen.len() > most;
        chosen.truncate(most);
        let numbers = ascending(chosen.into_iter());
        let mut found =
            Candidates { all: Vec::with_capacity(numbers.len()), digest: false, capped, capped_buckets };
        self.examine(&numbers, fingerprint, settings, &mut found.all)?;
        if common || crowded {
            // A cluster's canonical may lie beyond the newest documents of a bucket. Most documents that
            // share only a common phrase are unrelated to the text, and so are their clusters.
            let alike = found.all.iter().filter(|candidate| crowded || candidate.is_alike());
            let founders = ascending(alike.map(|candidate| candidate.document.cluster));
            let canonicals = self.state.canonicals(self.language, &founders)?.into_iter().flatten();
            let others = canonicals.filter(|number| numbers.binary_search(number).is_err());
            self.examine(&ascending(others), fingerprint, settings, &mut found.all)?;
            found.all.sort_unstable_by_key(|candidate| candidate.document.number);
        }
        if settings.algorithm == Algorithm::Combined {
            let mut phrases: Vec<Phrase<'_>> = looked_up(fingerprint)
                .iter()
                .zip(phrases)
                .map(|(&shingle, posted)| Phrase::new(shingle, posted))
                .collect();
            found.digest = holds_several(&found.all, fingerprint, settings);
            self.add_index_evidence(&mut found, fingerprint, &mut phrases, settings)?;
        }
        Ok(found)
    }

    /// Compares the text with these documents, skipping expired ones.
    fn examine(
        &mut self,
        numbers: &[DocumentNumber],
        fingerprint: &Fingerprint,
        settings: &LanguageSettings,
        into: &mut Vec<Candidate>,
    ) -> Result<(), StoreError> {
        self.load(numbers)?;
        for &number in numbers {
            if let Some(document) = self.live(number).cloned() {
                let comparison = settings.compare(&document.fingerprint, fingerprint);
                into.push(Candidate { document, comparison });
            }
        }
        Ok(())
    }

    /// The newest live documents of a hot bucket, and whether there are more.
    fn newest_live(
        &mut self,
        key: BandKey,
        first: PostingList,
    ) -> Result<(Vec<DocumentNumber>, bool), StoreError> {
        let (mut live, mut list) = (Vec::new(), first);
        for turn in 0.. {
            self.load(&ascending(list.numbers.iter().copied()))?;
            live.extend(list.numbers.iter().filter(|&&number| self.live(number).is_some()));
            if live.len() > self.cap {
                live.truncate(self.cap);
                return Ok((live, true));
            }
            let Some(&last) = list.numbers.last().filter(|_| list.more) else { break };
            if turn + 1 == MAX_READS {
                return Ok((live, true));
            }
            list = self.state.bucket(self.language, key, Some(last), self.cap + 1)?;
        }
        Ok((live, false))
    }

    fn position_of(&self, number: DocumentNumber) -> Result<usize, usize> {
        self.read.binary_search_by_key(&number, |&(number, _)| number)
    }

    /// A document that has been read and is live.
    pub(super) fn live(&self, number: DocumentNumber) -> Option<&Arc<Document>> {
        self.position_of(number).ok().and_then(|at| self.read[at].1.as_ref())
    }

    /// Reads the documents that have not been read yet. `numbers` is ascending.
    pub(super) fn load(&mut self, numbers: &[DocumentNumber]) -> Result<(), StoreError> {
        let missing: Vec<DocumentNumber> =
            numbers.iter().copied().filter(|&number| self.position_of(number).is_err()).collect();
        let documents = self.state.shared_documents(self.language, &missing)?;
        for (number, document) in missing.into_iter().zip(documents) {
            let document = document.ok_or_else(|| self.missing(number))?;
            self.read.push((number, (!self.is_expired(document.last_seen)).then_some(document)));
        }
        self.read.sort_unstable_by_key(|&(number, _)| number);
        Ok(())
    }

    /// The clusters of documents; `None` for an expired one.
    pub(super) fn live_clusters(
        &self,
        numbers: &[DocumentNumber],
    ) -> Result<Vec<Option<DocumentNumber>>, StoreError> {
        let summaries = self.state.summaries(self.language, numbers)?;
        let cluster = |(summary, &number): (Option<DocumentSummary>, &DocumentNumber)| {
            let summary = summary.ok_or_else(|| self.missing(number))?;
            Ok((!self.is_expired(summary.last_seen)).then_some(summary.cluster))
        };
        summaries.into_iter().zip(numbers).map(cluster).collect()
    }

    fn is_expired(&self, last_seen: EventTime) -> bool {
        self.horizon.is_some_and(|horizon| last_seen <= horizon)
    }

    /// A posting names a document that is not there. Skipping it would silently give a wrong verdict.
    fn missing(&self, number: DocumentNumber) -> StoreError {
        let detail = format!("docs:{} document {number} is missing, but a posting names it", self.language);
        StoreError::Corrupt { place: self.state.place().into(), detail }
    }
}
