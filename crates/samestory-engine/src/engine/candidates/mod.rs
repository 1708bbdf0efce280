//! Which earlier documents a text is compared with. A shared bucket is never a proof, only a reason to look.
//!
//! Three ways lead to a document: the same content, a shared band of the signature, and shared sampled shingles.
//! The last is for parts and wholes, whose signatures have little in common. A document posts the least few of its
//! sampled shingles (16: [`Engine::SAMPLES`]), and a text looks for somewhat more of its own ([`LOOKED_UP`]):
//!
//! - The old one is the whole. A shingle among its least that the part has is among the part's least too, so nothing
//!   beyond those few need be looked for. A quarter of a text has each of 16 with probability ¼: at least one of
//!   them in 99 of 100 cases, two in 94; bands find half of the rest.
//! - The new one is the whole. Of its least 24 shingles every n-th is the part's if it is n times as long, and
//!   among the part's posted ones while n is small. Of a third it has two or more but once in 1,300, of an eighth
//!   one or more in 96 of 100 cases. Every shingle more is a bucket more to read.
//!
//! They find whole texts too: two texts of one length and similarity ½ share ten of the sixteen, and of those that
//! bands miss hardly any is missed. Which of the documents that buckets name are looked at: [`crate::engine::candidates::rank`].

pub(crate) mod rank;
pub(crate) mod read_ahead;

use std::borrow::Cow;
use std::sync::Arc;

use crate::fingerprint::{Fingerprint, SAMPLE};
use crate::index::{Document, IndexScheme, IndexSchemes, PostingKind, PostingList, StoreError, View};
use crate::lsh::BandKey;
use crate::model::{DocumentNumber, EventTime, Lang};

use super::compare::index_evidence::{Phrase, holds_several};
use super::compare::{Comparison, Relation};
use super::settings::{Algorithm, LanguageSettings};
use super::{Engine, Prepared};
use rank::CandidateHits;

/// Sampled shingles that are looked for, the least first; why so many, see above.
const LOOKED_UP: usize = 24;

/// A text is compared with at most so many times what a bucket may hold.
const EXAMINED_BUCKETS: usize = 4;
/// Sampled shingles of a long text that are looked for.
const MOST_LOOKED_UP: usize = 64;
/// A bucket is paged through at most so often for documents that are not expired.
const PAGES: usize = 4;

/// An earlier document, and what the newer text is to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The document.
    pub document: Arc<Document>,
    /// What was measured.
    pub comparison: Comparison,
}

impl Candidate {
    /// Whether the texts have to do with each other at all.
    fn is_alike(&self) -> bool {
        self.comparison.relation != Relation::Different
    }
}

/// What a text is compared with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Candidates {
    /// By number, ascending. None is expired.
    pub all: Vec<Candidate>,
    /// Whether the text holds several of them, of different clusters: a digest.
    pub digest: bool,
    /// Whether a match may have been missed because a bucket held more than is examined.
    pub capped: bool,
    /// How many buckets held more than is examined; those of sampled shingles are not counted, where a common phrase
    /// is enough.
    pub capped_buckets: u64,
}

impl Engine {
    /// The earlier documents that a text is compared with. Those last seen at `horizon` or before are expired.
    ///
    /// # Errors
    /// The state could not be read.
    pub fn candidates(
        &self,
        state: &impl View,
        article: &Prepared,
        horizon: Option<EventTime>,
    ) -> Result<Candidates, StoreError> {
        let keys = self.looked_up(state.postings(), article);
        let pages = state.pages(article.language, &keys, self.page_size())?;
        let pages = (0..keys.len()).map(|at| pages.of(at).map(Cow::Borrowed).unwrap_or_default());
        self.candidates_in(state, article, horizon, &keys, pages.collect())
    }

    /// The same, from pages that have been read.
    pub(super) fn candidates_in(
        &self,
        state: &impl View,
        article: &Prepared,
        horizon: Option<EventTime>,
        keys: &[BandKey],
        pages: Vec<Cow<'_, PostingList>>,
    ) -> Result<Candidates, StoreError> {
        let cap = self.settings().max_bucket.max(1);
        let mut search = Search { state, language: article.language, horizon, cap, read: Vec::new() };
        search.run(keys, pages, &article.fingerprint, self.of(article.language))
    }

    /// How much is read of a bucket: one more than the cap, so that a full bucket is told from an overfull one.
    pub(super) fn page_size(&self) -> usize {
        self.settings().max_bucket.max(1) + 1
    }

    /// The buckets to look into.
    pub(super) fn looked_up(&self, postings: &IndexSchemes, article: &Prepared) -> Vec<BandKey> {
        keys(postings.of(article.language), &article.fingerprint)
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

/// The sampled shingles that are looked for: more of a long text, as many more as it keeps.
pub(super) fn looked_up(fingerprint: &Fingerprint) -> &[u32] {
    let sample = fingerprint.sample.values();
    let count = (LOOKED_UP * sample.len() / SAMPLE).clamp(LOOKED_UP, MOST_LOOKED_UP);
    &sample[..count.min(sample.len())]
}

/// The documents that a text will probably be compared with: those it would be, did nothing else change.
pub(super) fn probable<'p>(
    keys: &[BandKey],
    pages: impl Iterator<Item = Option<&'p PostingList>>,
    cap: usize,
) -> impl Iterator<Item = DocumentNumber> {
    let pages: Vec<Option<&PostingList>> = pages.collect();
    let mut seen =
        CandidateHits::with_room(pages.iter().flatten().map(|page| page.numbers.len().min(cap)).sum());
    for (&key, page) in keys.iter().zip(pages) {
        let numbers = page.map(|page| &page.numbers[..page.numbers.len().min(cap)]).unwrap_or_default();
        seen.see(IndexScheme::kind(key), numbers);
    }
    seen.choose().into_iter()
}

/// Each once, the least first.
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
    /// Every document read so far that is not expired; nothing for one that is. By number, ascending.
    read: Vec<(DocumentNumber, Option<Arc<Document>>)>,
}

impl<V: View> Search<'_, V> {
    fn run(
        &mut self,
        keys: &[BandKey],
        pages: Vec<Cow<'_, PostingList>>,
        fingerprint: &Fingerprint,
        settings: &LanguageSettings,
    ) -> Result<Candidates, StoreError> {
        let room = pages.iter().map(|page| page.numbers.len().min(self.cap)).sum();
        let mut seen = CandidateHits::with_room(room);
        let mut phrases: Vec<&[DocumentNumber]> = Vec::new();
        // Phrases that many have, and buckets of texts alike as a whole.
        let (mut common, mut crowded, mut capped_buckets) = (false, false, 0);
        for (&key, page) in keys.iter().zip(&pages) {
            let kind = IndexScheme::kind(key);
            let live;
            let numbers: &[DocumentNumber] = if page.numbers.len() <= self.cap {
                &page.numbers
            } else if kind == PostingKind::Sample {
                common = true;
                &page.numbers[..self.cap]
            } else {
                crowded = true;
                let capped;
                (live, capped) = self.newest_live(key, page.as_ref().clone())?;
                capped_buckets += u64::from(capped);
                &live
            };
            seen.see(kind, numbers);
            if kind == PostingKind::Sample {
                phrases.push(&page.numbers[..page.numbers.len().min(self.cap)]);
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
            // Who stands for a cluster may lie beyond the newest. Of those that a common phrase led to, most have nothing
            // else to do with the text, and neither has their cluster.
            let alike = found.all.iter().filter(|candidate| crowded || candidate.is_alike());
            let founders = ascending(alike.map(|candidate| candidate.document.cluster));
            let canonicals = self.state.canonicals(self.language, &founders)?.into_iter().flatten();
            let others = canonicals.filter(|number| numbers.binary_search(number).is_err());
            self.examine(&ascending(others), fingerprint, settings, &mut found.all)?;
            found.all.sort_unstable_by_key(|candidate| candidate.document.number);
        }
        if settings.algorithm == Algorithm::Combined {
            let phrases: Vec<Phrase<'_>> = looked_up(fingerprint)
                .iter()
                .zip(phrases)
                .map(|(&shingle, posted)| Phrase { shingle, posted })
                .collect();
            found.digest = holds_several(&found.all, fingerprint, settings);
            self.weigh(&mut found, fingerprint, &phrases, settings)?;
        }
        Ok(found)
    }

    /// Compares with documents, by number, unless they are expired.
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

    /// The newest documents of an overfull bucket that are not expired, and whether there are more.
    fn newest_live(
        &mut self,
        key: BandKey,
        first: PostingList,
    ) -> Result<(Vec<DocumentNumber>, bool), StoreError> {
        let (mut live, mut page) = (Vec::new(), first);
        for turn in 0.. {
            self.load(&ascending(page.numbers.iter().copied()))?;
            live.extend(page.numbers.iter().filter(|&&number| self.live(number).is_some()));
            if live.len() > self.cap {
                live.truncate(self.cap);
                return Ok((live, true));
            }
            let Some(&last) = page.numbers.last().filter(|_| page.more) else { break };
            if turn + 1 == PAGES {
                return Ok((live, true));
            }
            page = self.state.bucket(self.language, key, Some(last), self.cap + 1)?;
        }
        Ok((live, false))
    }

    fn place(&self, number: DocumentNumber) -> Result<usize, usize> {
        self.read.binary_search_by_key(&number, |&(number, _)| number)
    }

    /// A document that was read and is not expired.
    pub(super) fn live(&self, number: DocumentNumber) -> Option<&Arc<Document>> {
        self.place(number).ok().and_then(|at| self.read[at].1.as_ref())
    }

    /// Reads those that have not been read. The numbers are ascending.
    pub(super) fn load(&mut self, numbers: &[DocumentNumber]) -> Result<(), StoreError> {
        let missing: Vec<DocumentNumber> =
            numbers.iter().copied().filter(|&number| self.place(number).is_err()).collect();
        let documents = self.state.shared_documents(self.language, &missing)?;
        for (number, document) in missing.into_iter().zip(documents) {
            let Some(document) = document else {
                // Skipping it would be a wrong verdict that nobody notices.
                return Err(StoreError::Corrupt {
                    place: self.state.place().into(),
                    detail: format!(
                        "docs:{} document {number} is missing, but a posting names it",
                        self.language
                    ),
                });
            };
            let expired = self.horizon.is_some_and(|horizon| document.last_seen <= horizon);
            self.read.push((number, (!expired).then_some(document)));
        }
        self.read.sort_unstable_by_key(|&(number, _)| number);
        Ok(())
    }
}
