//! Event time and stream time. Times are untrusted: if stream time followed a single wrong clock, it would
//! expire a whole language.
//!
//! [`super::upsert`] computes an article's event time here and votes with it. The event time is `fetched_at`,
//! else the time of the record, but at most `max_clock_skew` after the clock in the log. Stream time is the latest
//! event time that [`QUORUM`] of the last [`WINDOW`] articles of the language have reached: the fifth
//! largest. There is no bound on how far it may jump, so an archive with gaps of months moves it too, four
//! articles late; and four wrong clocks do not move it. Before the fifth article there is no stream time, and
//! nothing expires.

use crate::index::{Counters, Vote};
use crate::model::{ArticleId, EventTime};

/// 1 January 2100. No correct clock shows a later time, and a clock that counts microseconds shows a far
/// later one.
const LATEST: i64 = 4_102_444_800_000;

/// How many articles must have reached a time before stream time does.
const QUORUM: usize = 5;

/// A vote expires after this many more articles of its language.
///
/// Otherwise wrong clocks would accumulate over years: five in a billion articles would be enough. With it,
/// 2% of the articles have to be wrong. It counts articles rather than time, because time is what is in
/// question.
const WINDOW: u16 = 256;

/// The times that a record carries besides the article's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RecordTimes {
    /// The timestamp of the record, which its producer may have set.
    pub(crate) record: Option<EventTime>,
    /// When the record was written, by a clock that the log itself records.
    pub(crate) log: Option<EventTime>,
}

/// An article's event time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timed {
    /// The event time.
    pub(crate) at: EventTime,
    /// True if it came from the article or its record; otherwise stream time does not move.
    pub(crate) is_stated: bool,
    /// True if the stated time was clamped.
    pub(crate) clamped: bool,
}

/// An article's event time: `fetched_at`, else the record's time, but at most `max_clock_skew` after the log's clock,
/// or after the record's if the log has no clock.
///
/// An impossible time counts as missing: the article gets the current stream time and does not move it.
pub(crate) fn event_time(
    fetched_at: Option<EventTime>,
    times: RecordTimes,
    stream: Option<EventTime>,
    max_clock_skew_millis: u64,
) -> Timed {
    let possible = |time: &i64| (0..=LATEST).contains(time);
    let log = times.log.map(EventTime::millis).filter(possible);
    // Kafka writes -1 for a record without a timestamp; that is not an error.
    let record = times.record.map(EventTime::millis).filter(|record| *record >= 0);
    let clock = log.or(record.filter(possible));
    let latest =
        clock.map_or(LATEST, |clock| clock.saturating_add_unsigned(max_clock_skew_millis).min(LATEST));
    let (at, is_stated, clamped) = match fetched_at.map(EventTime::millis).or(record) {
        Some(stated) if clock.is_some() || stated <= LATEST => {
            let at = stated.clamp(0, latest);
            (at, true, at != stated || record.is_some_and(|record| record > latest))
        }
        stated => (stream.map_or(0, EventTime::millis), false, stated.is_some()),
    };
    Timed { at: EventTime::from_millis(at), is_stated, clamped }
}

/// Records an article's event time, and advances stream time if enough articles have reached a later one.
pub(crate) fn vote(counters: &mut Counters, article: &ArticleId, at: EventTime) {
    let Counters { stream_time, votes, .. } = counters;
    votes.retain_mut(|vote| {
        vote.left = vote.left.saturating_sub(1);
        vote.left > 0
    });
    // Only an article's latest vote counts: one article must not make a quorum.
    let article = xxhash_rust::xxh3::xxh3_64(article.as_str().as_bytes());
    votes.retain(|vote| vote.article != article);
    if stream_time.is_some_and(|now| at <= now) {
        return;
    }
    votes.push(Vote { article, at, left: WINDOW });
    if votes.len() >= QUORUM {
        *stream_time = votes.iter().map(|vote| vote.at).min();
        votes.retain(|vote| Some(vote.at) > *stream_time);
    }
}

/// A publication time fit for ranking, and whether it was clamped.
///
/// Time zones and embargoes put publication times ahead of their records; only impossible dates are clamped.
pub(crate) fn published(at: Option<EventTime>) -> (Option<EventTime>, bool) {
    let clamped = at.map(|at| EventTime::from_millis(at.millis().clamp(0, LATEST)));
    (clamped, clamped != at)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;
    const NOON: i64 = 1_772_000_000_000;
    const YEAR_9999: i64 = 253_370_764_800_000;

    fn at(fetched: Option<i64>, record: Option<i64>, stream: Option<i64>) -> (i64, bool, bool) {
        let [fetched, record, stream] =
            [fetched, record, stream].map(|time| time.map(EventTime::from_millis));
        let timed = event_time(fetched, RecordTimes { record, log: None }, stream, HOUR as u64);
        (timed.at.millis(), timed.is_stated, timed.clamped)
    }

    /// The same on a log that has a clock.
    fn logged(fetched: Option<i64>, record: Option<i64>, log: i64) -> (i64, bool, bool) {
        let [fetched, record, log] =
            [fetched, record, Some(log)].map(|time| time.map(EventTime::from_millis));
        let timed = event_time(fetched, RecordTimes { record, log }, None, HOUR as u64);
        (timed.at.millis(), timed.is_stated, timed.clamped)
    }

    #[test]
    fn the_clock_in_the_log_bounds_the_article_and_its_record() {
        const YEAR_2031: i64 = 1_924_992_000_000;
        assert_eq!(logged(None, Some(YEAR_2031), NOON), (NOON + HOUR, true, true));
        assert_eq!(logged(Some(YEAR_2031), Some(YEAR_2031), NOON), (NOON + HOUR, true, true));
        assert_eq!(logged(None, Some(YEAR_9999), NOON), (NOON + HOUR, true, true));
        assert_eq!(
            logged(Some(NOON), Some(YEAR_2031), NOON),
            (NOON, true, true),
            "the record's clock is wrong"
        );
        assert_eq!(
            logged(Some(NOON), Some(0), NOON),
            (NOON, true, false),
            "a record's time does not bound it here"
        );
        assert_eq!(
            logged(None, Some(NOON - 100 * HOUR), NOON),
            (NOON - 100 * HOUR, true, false),
            "a backfill"
        );
        assert_eq!(logged(None, None, NOON), (0, false, false));
        // An impossible clock counts as none.
        assert_eq!(logged(Some(NOON), Some(NOON), YEAR_9999), (NOON, true, false));
        assert_eq!(logged(Some(NOON), Some(NOON), -1), (NOON, true, false));
    }

    fn after(votes: impl IntoIterator<Item = (String, i64)>) -> Counters {
        let mut counters = Counters::default();
        for (article, at) in votes {
            vote(&mut counters, &ArticleId::new(&article).unwrap(), EventTime::from_millis(at));
        }
        counters
    }

    fn stream_time(votes: impl IntoIterator<Item = (String, i64)>) -> Option<i64> {
        after(votes).stream_time.map(EventTime::millis)
    }

    #[test]
    fn stream_time_is_the_fifth_largest_and_needs_five_articles() {
        let named = |times: &[i64]| -> Vec<(String, i64)> {
            times.iter().enumerate().map(|(at, &time)| (format!("a{at}"), time)).collect()
        };
        assert_eq!(stream_time(named(&[9, 8, 7, 6])), None);
        assert_eq!(stream_time(named(&[9, 8, 7, 6, 5])), Some(5));
        assert_eq!(stream_time(named(&[5, 6, 7, 8, 9, 10, 11])), Some(7));
        assert_eq!(stream_time(named(&[YEAR_9999, YEAR_9999, YEAR_9999, YEAR_9999, 5, 6, 7])), Some(7));
        assert_eq!(stream_time(named(&[5; 40])), Some(5));
        assert_eq!(stream_time(named(&[5, 5, 5, 5, 5, 4, 3, 2, 1])), Some(5), "it does not go back");
        assert!(after(named(&[1; 5])).votes.is_empty());
    }

    #[test]
    fn an_article_that_comes_again_votes_once() {
        let again = (0..300).map(|at| ("a".to_owned(), at));
        assert_eq!(stream_time(again), None);
    }

    #[test]
    fn wrong_clocks_that_are_rare_do_not_add_up() {
        // One in a hundred is years ahead.
        let wrong_each = |each: i64| {
            stream_time((0..10_000).map(|at| (format!("a{at}"), if at % each == 7 { NOON + at } else { at })))
        };
        assert!((9_990..10_000).contains(&wrong_each(100).unwrap()));
        assert!(wrong_each(10).unwrap() > NOON, "a tenth of the articles is enough to agree");
    }

    #[test]
    fn a_sparse_archive_moves_four_articles_late() {
        let month = 30 * 24 * HOUR;
        let archive = (0..120).map(|at| (format!("a{at}"), at * month));
        assert_eq!(stream_time(archive), Some(115 * month));
    }

    #[test]
    fn the_articles_own_time_wins_then_the_records() {
        assert_eq!(at(Some(NOON - HOUR), Some(NOON), None), (NOON - HOUR, true, false));
        assert_eq!(at(None, Some(NOON), None), (NOON, true, false));
        assert_eq!(at(Some(NOON), None, None), (NOON, true, false));
    }

    #[test]
    fn no_event_time_is_further_ahead_than_the_skew() {
        assert_eq!(at(Some(NOON + HOUR), Some(NOON), None), (NOON + HOUR, true, false));
        assert_eq!(at(Some(NOON + HOUR + 1), Some(NOON), None), (NOON + HOUR, true, true));
        assert_eq!(at(Some(YEAR_9999), Some(NOON), Some(NOON)), (NOON + HOUR, true, true));
    }

    #[test]
    fn an_impossible_time_does_not_move_stream_time() {
        assert_eq!(at(Some(YEAR_9999), None, Some(NOON)), (NOON, false, true));
        assert_eq!(at(None, Some(YEAR_9999), Some(NOON)), (NOON, false, true));
        assert_eq!(at(Some(YEAR_9999), Some(YEAR_9999), None), (0, false, true));
        assert_eq!(at(Some(i64::MAX), Some(i64::MAX), Some(NOON)), (NOON, false, true));
        assert_eq!(at(None, Some(-1), Some(NOON)), (NOON, false, false));
        assert_eq!(at(None, None, None), (0, false, false));
    }

    #[test]
    fn times_before_1970_become_1970() {
        assert_eq!(at(Some(-5), Some(NOON), None), (0, true, true));
        assert_eq!(at(Some(i64::MIN), None, None), (0, true, true));
        assert_eq!(published(Some(EventTime::from_millis(-5))), (Some(EventTime::from_millis(0)), true));
        assert_eq!(
            published(Some(EventTime::from_millis(NOON))),
            (Some(EventTime::from_millis(NOON)), false)
        );
        assert_eq!(published(None), (None, false));
    }
}
