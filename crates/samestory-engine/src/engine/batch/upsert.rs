//! How an article comes in: judged, tagged, stored.

use std::sync::Arc;

use crate::index::{
    Change, Document, Judgement, OutputTopic, Residence, Retention, StoreError, View, Whereabouts,
};
use crate::model::{DeadLetter, Flag, Tagged};
use crate::model::{DocumentNumber, EventTime, Fraction, Lang, MatchType, Position, Verdict};

use super::Output;
use super::empty_update::Text;
use super::planner::Planner;
use super::stream_time as times;
use super::stream_time::{RecordTimes, Timed};
use crate::engine::LanguageSettings;
use crate::engine::candidates::read_ahead::Found;
use crate::engine::cluster::Home;
use crate::engine::cluster::canonical::is_part;
use crate::engine::judge::Judged;
use crate::engine::prepare::Prepared;

/// `last_seen` moves in this part of the retention: an article fetched every minute is not written every minute. It is
/// rounded up, so that an article that is sent again is remembered for its whole retention, and at most a step longer.
const STEPS: u64 = 8;

impl<V: View> Planner<'_, V> {
    pub(crate) fn article(
        &mut self,
        position: &Position,
        times: RecordTimes,
        mut article: Prepared,
        refusal: Option<DeadLetter>,
        found: Found<'_>,
    ) -> Result<Vec<Output>, StoreError> {
        let keeps = match self.text_kept(position, &article, refusal.as_ref())? {
            Text::Own => false,
            Text::Kept(language) => {
                (article.language, article.reported_language) = (language, language);
                true
            }
            Text::Missing(letter) => return Ok(vec![Output::DeadLetter(letter)]),
        };
        self.stats.articles += 1;
        let (language, settings) = (article.language, *self.engine.of(article.language));
        let timed = self.arrive(&article, times);
        self.remove_overdue(language)?;
        let mut left = self.leave_other_languages(&article)?;
        if let Some(held) = self.held(language, &article.id)? {
            if !self.is_live(&held) {
                self.remove(&held)?;
                self.stats.expired += 1;
            } else if keeps {
                let held = self.describe(held, &article)?;
                article.fingerprint = held.fingerprint.clone();
                article.flags = vec![Flag::KeptText];
                return self.unchanged(position, &article, timed, held, &settings);
            } else if held.fingerprint.content == article.fingerprint.content {
                return self.unchanged(position, &article, timed, held, &settings);
            } else {
                self.remove(&held)?;
                left.push((held.outlet, held.revision + 1));
            }
        }
        match refusal {
            // Its text has expired at this very moment.
            Some(refusal) => Ok(vec![Output::DeadLetter(refusal)]),
            None => self.judge_and_store(position, article, timed, left, found),
        }
    }

    /// Takes note of an article's time.
    fn arrive(&mut self, article: &Prepared, times: RecordTimes) -> Timed {
        let counters = self.progress.languages.entry(article.language).or_default();
        let max_clock_skew = self.engine.settings().max_clock_skew_millis;
        let timed = times::event_time(article.fetched_at, times, counters.stream_time, max_clock_skew);
        if timed.told {
            times::vote(counters, &article.id, timed.at);
            self.item_time = Some(timed.at);
        }
        timed
    }

    /// Whether stream time would expire everything else if it followed this article.
    fn is_ahead(&self, language: Lang, timed: Timed, settings: &LanguageSettings) -> bool {
        let retention = match settings.retention {
            Retention::Millis(retention) => retention,
            Retention::Forever => return false,
        };
        let stream = self.stream_time(language).map(EventTime::millis);
        stream.is_some_and(|now| timed.at.millis() > now.saturating_add_unsigned(retention))
    }

    /// The same article, unchanged: that it was seen is all there is to remember, and not even that every time.
    fn unchanged(
        &mut self,
        position: &Position,
        article: &Prepared,
        timed: Timed,
        held: Document,
        settings: &LanguageSettings,
    ) -> Result<Vec<Output>, StoreError> {
        let cluster = self.touch(held.language, held.cluster)?.id.clone();
        let canonical = self
            .standing(held.language, held.cluster)?
            .map_or_else(|| held.id.clone(), |document| document.id.clone());
        let judged = Judged {
            verdict: Verdict::ExactDuplicate,
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
            self.tagged(position, article, &judged, Home { cluster, canonical }, held.revision, flags);
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
        mut left: Vec<(OutputTopic, u32)>,
        found: Found<'_>,
    ) -> Result<Vec<Output>, StoreError> {
        let residence = self.state.residence(&article.id)?;
        if let Some(Residence { stay: Whereabouts::Published(outlet), language, since, .. }) = &residence
            && self.is_within(*language, *since)
        {
            left.push((*outlet, 0));
        }
        let (language, horizon) = (article.language, self.horizon(article.language));
        let settings = self.engine.of(language);
        let (keys, pages) = found.pages(&self.state, language)?;
        let mut candidates = self.engine.candidates_in(&self.state, &article, horizon, keys, pages)?;
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
        let before = left.iter().fold(OutputTopic::None, |before, &(outlet, _)| before.and(outlet));
        let revision = left.iter().map(|&(_, revision)| revision).max().unwrap_or(0);
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
            // What is not published leaves what was published where it stands.
            outlet: if publishes { outlet } else { before },
            judgement: Judgement {
                verdict: judged.verdict,
                match_type: judged.match_type,
                is_part: is_part(&judged),
                duplicate_of: judged.best.as_ref().map(|best| best.document.number),
                similarity: judged.similarity,
                confidence: judged.confidence,
            },
            flags: bits(&flags),
        };
        let home = if expired {
            self.not_stored(&document, residence.as_ref())?;
            self.would_join(&document, judged.best.as_ref(), settings)?
        } else {
            if residence.is_some() {
                self.change(Change::NoResidence(document.id.clone()))?;
            }
            self.join_cluster(document, judged.best.as_ref(), settings)?
        };
        let tagged = self.tagged(position, &article, &judged, home, revision, flags);
        if !publishes {
            return Ok(Vec::new());
        }
        let mut outputs = vec![Output::Tagged(Box::new(tagged))];
        let gone = before.topics().filter(|&topic| topic != outlet);
        outputs.extend(gone.map(|outlet| Output::Tombstone { id: article.id.clone(), outlet, lives: true }));
        Ok(outputs)
    }

    /// A number is used up even by an article that is not stored: a cluster id could name it.
    fn next_number(&mut self, language: Lang) -> DocumentNumber {
        let counters = self.progress.languages.entry(language).or_default();
        let number = DocumentNumber(counters.next_number);
        counters.next_number += 1;
        number
    }

    /// All flags, ascending.
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
        home: Home,
        revision: u32,
        flags: Vec<Flag>,
    ) -> Tagged {
        let Home { cluster, canonical } = home;
        Tagged {
            id: article.id.clone(),
            verdict: judged.verdict,
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
            related: judged.related.clone(),
            evidence: match self.engine.settings().evidence {
                true => judged.contributions(self.engine.of(article.language)),
                false => Vec::new(),
            },
            flags,
            config: self.engine.settings().config,
            input: position.clone(),
        }
    }
}

/// Flags as a document keeps them.
fn bits(flags: &[Flag]) -> u32 {
    Flag::ALL
        .iter()
        .enumerate()
        .filter(|(_, flag)| flags.contains(flag))
        .fold(0, |bits, (at, _)| bits | 1 << at)
}
