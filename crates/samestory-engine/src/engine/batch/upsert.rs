//! Upserts: judges a new or updated article, sets the flags of its verdict, and stores it.
//!
//! [`Planner::article`] is the entry point; it removes what the article replaces, asks the candidate lookup
//! and the judge, and joins a cluster. An unchanged article only refreshes `last_seen`.

use std::sync::Arc;

use crate::index::{
    Change, Document, Judgement, OutputTopic, Residence, Retention, StoreError, View, Whereabouts,
};
use crate::model::{DeadLetter, Flag, Verdict};
use crate::model::{DocumentNumber, EventTime, Fraction, Lang, MatchType, Position, VerdictKind};

use super::Output;
use super::empty_update::TextSource;
use super::planner::Planner;
use super::stream_time as times;
use super::stream_time::{RecordTimes, Timed};
use crate::engine::LanguageSettings;
use crate::engine::candidates::read_ahead::ArticleBuckets;
use crate::engine::cluster::ClusterRef;
use crate::engine::cluster::canonical::is_part;
use crate::engine::judge::Judged;
use crate::engine::prepare::Prepared;

/// `last_seen` advances in steps of the retention divided by this, so that an article fetched every minute is
/// not written every minute. It is rounded up: an article that is sent again is kept for its full retention,
/// and at most one step longer.
const STEPS: u64 = 8;

impl<V: View> Planner<'_, V> {
    pub(crate) fn article(
        &mut self,
        position: &Position,
        times: RecordTimes,
        mut article: Prepared,
        refusal: Option<DeadLetter>,
        buckets: ArticleBuckets<'_>,
    ) -> Result<Vec<Output>, StoreError> {
        let keeps_text = match self.text_source(position, &article, refusal.as_ref())? {
            TextSource::Own => false,
            TextSource::Kept(language) => {
                (article.language, article.reported_language) = (language, language);
                true
            }
            TextSource::Missing(letter) => return Ok(vec![Output::DeadLetter(letter)]),
        };
        self.stats.articles += 1;
        let (language, settings) = (article.language, *self.engine.settings_for(article.language));
        let timed = self.advance_stream_time(&article, times);
        self.remove_overdue(language)?;
        let mut previous = self.leave_other_languages(&article)?;
        if let Some(held) = self.held(language, &article.id)? {
            if !self.is_live(&held) {
                self.remove(&held)?;
                self.stats.expired += 1;
            } else if keeps_text {
                let held = self.update_metadata(held, &article)?;
                article.fingerprint = held.fingerprint.clone();
                article.content_kind = held.content_kind();
                article.flags = vec![Flag::KeptText];
                return self.unchanged(position, &article, timed, held, &settings);
            } else if held.fingerprint.content == article.fingerprint.content {
                return self.unchanged(position, &article, timed, held, &settings);
            } else {
                self.remove(&held)?;
                previous.push((held.outlet, held.revision + 1));
            }
        }
        match refusal {
            // The known text expired at this very moment.
            Some(refusal) => Ok(vec![Output::DeadLetter(refusal)]),
            None => self.judge_and_store(position, article, timed, previous, buckets),
        }
    }

    /// Computes an article's event time and lets it vote on stream time.
    fn advance_stream_time(&mut self, article: &Prepared, times: RecordTimes) -> Timed {
        let counters = self.progress.languages.entry(article.language).or_default();
        let skew = self.engine.settings().max_clock_skew_millis;
        let timed = times::event_time(article.fetched_at, times, counters.stream_time, skew);
        if timed.is_stated {
            times::vote(counters, &article.id, timed.at);
            self.item_time = Some(timed.at);
        }
        timed
    }

    /// True if the article is so far ahead that stream time would expire everything else if it followed.
    fn is_ahead(&self, language: Lang, timed: Timed, settings: &LanguageSettings) -> bool {
        let retention = match settings.retention {
            Retention::Millis(retention) => retention,
            Retention::Forever => return false,
        };
        let stream = self.stream_time(language).map(EventTime::millis);
        stream.is_some_and(|now| timed.at.millis() > now.saturating_add_unsigned(retention))
    }

    /// The article is unchanged: only `last_seen` is updated, and not even that every time.
    fn unchanged(
        &mut self,
        position: &Position,
        article: &Prepared,
        timed: Timed,
        held: Document,
        settings: &LanguageSettings,
    ) -> Result<Vec<Output>, StoreError> {
        let cluster = self.edit_cluster(held.language, held.cluster)?.id.clone();
        let canonical = self
            .current_canonical(held.language, held.cluster)?
            .map_or_else(|| held.id.clone(), |document| document.id.clone());
        let judged = Judged {
            verdict: VerdictKind::ExactDuplicate,
            match_type: Some(MatchType::SameArticle),
            best: None,
            similarity: Fraction::new(1.0),
            containment: Fraction::new(1.0),
            confidence: Fraction::new(1.0),
            related: Vec::new(),
            evidence: None,
            digest: false,
            capped: false,
            candidates: 0,
            capped_buckets: 0,
        };
        let flags = self.flags(article, &judged, timed, false, settings);
        let mut tagged =
            self.tagged(position, article, &judged, ClusterRef { cluster, canonical }, held.revision, flags);
        tagged.duplicate_of = Some(article.id.clone());
        let publishes = self.publishes(Some(timed.at));
        let last_seen = match settings.retention {
            Retention::Millis(retention) if timed.at > held.last_seen => {
                EventTime::from_millis(timed.at.millis().saturating_add_unsigned(retention / STEPS))
            }
            _ => held.last_seen,
        };
        let outlet = if publishes { held.outlet.and(OutputTopic::NearDuplicate) } else { held.outlet };
        if (last_seen, outlet) != (held.last_seen, held.outlet) {
            self.change(Change::Document(Arc::new(Document { last_seen, outlet, ..held })))?;
        }
        if !publishes {
            self.stats.backfilled += 1;
            return Ok(Vec::new());
        }
        Ok(vec![Output::Tagged(Box::new(tagged))])
    }

    fn judge_and_store(
        &mut self,
        position: &Position,
        article: Prepared,
        timed: Timed,
        mut previous: Vec<(OutputTopic, u32)>,
        buckets: ArticleBuckets<'_>,
    ) -> Result<Vec<Output>, StoreError> {
        let residence = self.state.residence(&article.id)?;
        if let Some(Residence { whereabouts: Whereabouts::Published(outlet), language, since, .. }) =
            &residence
            && self.is_within(*language, *since)
        {
            previous.push((*outlet, 0));
        }
        let (language, horizon) = (article.language, self.horizon(article.language));
        let settings = self.engine.settings_for(language);
        let (keys, lists) = buckets.posting_lists(&self.state, language)?;
        let mut candidates = self.engine.candidates_in(&self.state, &article, horizon, keys, lists)?;
        let same = self.constrain(&article, &mut candidates)?;
        let judged = self.engine.judge_among(&article, candidates);
        let judged = match same {
            Some(same) => self.reviewed(&article, same, judged),
            None => judged,
        };
        self.stats.candidates += judged.candidates;
        self.stats.capped_buckets += judged.capped_buckets;
        let number = self.next_number(language);
        let expired = horizon.is_some_and(|horizon| timed.at <= horizon);
        self.stats.arrived_expired += u64::from(expired);
        let publishes = self.publishes(Some(timed.at));
        self.stats.backfilled += u64::from(!publishes);
        let outlet = judged.outlet();
        let before = previous.iter().fold(OutputTopic::None, |before, &(outlet, _)| before.and(outlet));
        let revision = previous.iter().map(|&(_, revision)| revision).max().unwrap_or(0);
        let flags = self.flags(&article, &judged, timed, expired, settings);
        let (published_at, _) = times::published(article.published_at);
        let document = Document {
            number,
            id: article.id.clone(),
            language,
            fingerprint: article.fingerprint.clone(),
            title: article.title.clone(),
            host: article.host.clone(),
            url: article.url.clone(),
            published_at,
            event_time: timed.at,
            last_seen: timed.at,
            position: position.clone(),
            cluster: number,
            revision,
            // A backfilled version leaves earlier records in place.
            outlet: if publishes { outlet } else { before },
            judgement: Judgement {
                verdict: judged.verdict,
                match_type: judged.match_type,
                is_part: is_part(&judged),
                duplicate_of: judged.best.as_ref().map(|best| best.document.number),
                similarity: judged.similarity,
                confidence: judged.confidence,
            },
            flags: bits(&flags) | article.content_kind.bits(),
        };
        let cluster_ref = if expired {
            self.not_stored(&document, residence.as_ref())?;
            self.would_join(&document, judged.best.as_ref(), settings)?
        } else {
            if residence.is_some() {
                self.change(Change::NoResidence(document.id.clone()))?;
            }
            self.join_cluster(document, judged.best.as_ref(), settings)?
        };
        let tagged = self.tagged(position, &article, &judged, cluster_ref, revision, flags);
        if !publishes {
            return Ok(Vec::new());
        }
        let mut outputs = vec![Output::Tagged(Box::new(tagged))];
        let gone = before.topics().filter(|&topic| topic != outlet);
        outputs.extend(gone.map(|outlet| Output::Tombstone { id: article.id.clone(), outlet, lives: true }));
        Ok(outputs)
    }

    /// An article that is not stored uses up a number too, because a cluster id could contain it.
    fn next_number(&mut self, language: Lang) -> DocumentNumber {
        let counters = self.progress.languages.entry(language).or_default();
        let number = DocumentNumber(counters.next_number);
        counters.next_number += 1;
        number
    }

    /// All flags of the verdict, ascending.
    fn flags(
        &mut self,
        article: &Prepared,
        judged: &Judged,
        timed: Timed,
        expired: bool,
        settings: &LanguageSettings,
    ) -> Vec<Flag> {
        let clamped = timed.clamped || times::published(article.published_at).1;
        self.stats.clamped_times += u64::from(clamped);
        let ahead = self.is_ahead(article.language, timed, settings);
        self.stats.ahead_of_stream += u64::from(ahead);
        let review = self.engine.settings().review;
        let own = [
            (Flag::ShortText, (1..settings.rules.min_tokens).contains(&article.fingerprint.tokens)),
            (Flag::ClampedTime, clamped),
            (Flag::Capped, judged.capped),
            (Flag::Expired, expired),
            (
                Flag::Review,
                judged.match_type.is_some()
                    && review.is_some_and(|(low, high)| (low..=high).contains(&judged.confidence)),
            ),
            (Flag::AheadOfStream, ahead),
            (Flag::Digest, judged.digest),
        ];
        let own = own.into_iter().filter(|&(_, raised)| raised).map(|(flag, _)| flag);
        let mut flags: Vec<Flag> = article.flags.iter().copied().chain(own).collect();
        flags.sort_unstable();
        flags.dedup();
        flags
    }

    fn tagged(
        &self,
        position: &Position,
        article: &Prepared,
        judged: &Judged,
        cluster_ref: ClusterRef,
        revision: u32,
        flags: Vec<Flag>,
    ) -> Verdict {
        let ClusterRef { cluster, canonical } = cluster_ref;
        Verdict {
            id: article.id.clone(),
            kind: judged.verdict,
            match_type: judged.match_type,
            duplicate_of: judged.best.as_ref().map(|best| best.document.id.clone()),
            similarity: judged.similarity,
            containment: judged.containment,
            confidence: judged.confidence,
            cluster,
            canonical_id: canonical,
            revision,
            language: article.reported_language,
            language_source: article.language_source,
            declared_language: article.declared_language.clone(),
            content_kind: article.content_kind,
            related: judged.related.clone(),
            evidence: match self.engine.settings().evidence {
                true => judged.contributions(self.engine.settings_for(article.language)),
                false => Vec::new(),
            },
            flags,
            config: self.engine.settings().config,
            input: position.clone(),
            // The planner adds it to every verdict.
            received_at: None,
        }
    }
}

/// The flags as a bit set, as documents store them.
fn bits(flags: &[Flag]) -> u32 {
    Flag::ALL
        .iter()
        .enumerate()
        .filter(|(_, flag)| flags.contains(flag))
        .fold(0, |bits, (at, _)| bits | 1 << at)
}
