//! When an article happened. Times are untrusted: one far ahead would expire everything before it.

use crate::model::EventTime;

/// 2100 began. No clock that is right says more, and one that counts microseconds says much more.
const LATEST: i64 = 4_102_444_800_000;

/// An article's event time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timed {
    /// When it happened.
    pub(super) at: EventTime,
    /// Whether the article or its record told; else stream time stands still.
    pub(super) told: bool,
    /// Whether what was told had to be clamped.
    pub(super) clamped: bool,
}

/// `fetched_at`, else the record's time, but never more than `skew` after the record.
///
/// What cannot be a time is as good as none: the stream's own time is taken, which moves nothing.
pub(super) fn event_time(
    fetched_at: Option<EventTime>,
    record: Option<EventTime>,
    stream: Option<EventTime>,
    skew_millis: u64,
) -> Timed {
    // Kafka writes -1 for "none": that is no mistake of anybody's.
    let record = record.map(EventTime::millis).filter(|record| *record >= 0);
    let (record, absurd) = match record {
        Some(record) if record > LATEST => (None, true),
        record => (record, false),
    };
    let untold = stream.map_or(0, EventTime::millis);
    let latest = record.map_or(LATEST, |record| record.saturating_add_unsigned(skew_millis));
    let (at, told, clamped) = match (fetched_at.map(EventTime::millis), record) {
        (None, None) => (untold, false, absurd),
        (None, Some(record)) => (record, true, absurd),
        (Some(fetched), None) if fetched > LATEST => (untold, false, true),
        (Some(fetched), _) => {
            let at = fetched.clamp(0, latest);
            (at, true, absurd || at != fetched)
        }
    };
    Timed { at: EventTime::from_millis(at), told, clamped }
}

/// A time of publication that can be ranked, and whether it had to be clamped.
///
/// Publishers run ahead of their records by time zones and embargoes; only what no calendar says is clamped.
pub(super) fn published(at: Option<EventTime>) -> (Option<EventTime>, bool) {
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
        let timed = event_time(fetched, record, stream, HOUR as u64);
        (timed.at.millis(), timed.told, timed.clamped)
    }

    #[test]
    fn the_article_knows_best_and_its_record_next() {
        assert_eq!(at(Some(NOON - HOUR), Some(NOON), None), (NOON - HOUR, true, false));
        assert_eq!(at(None, Some(NOON), None), (NOON, true, false));
        assert_eq!(at(Some(NOON), None, None), (NOON, true, false));
    }

    #[test]
    fn nobody_is_further_ahead_than_the_skew() {
        assert_eq!(at(Some(NOON + HOUR), Some(NOON), None), (NOON + HOUR, true, false));
        assert_eq!(at(Some(NOON + HOUR + 1), Some(NOON), None), (NOON + HOUR, true, true));
        assert_eq!(at(Some(YEAR_9999), Some(NOON), Some(NOON)), (NOON + HOUR, true, true));
    }

    #[test]
    fn what_cannot_be_a_time_moves_nothing() {
        assert_eq!(at(Some(YEAR_9999), None, Some(NOON)), (NOON, false, true));
        assert_eq!(at(None, Some(YEAR_9999), Some(NOON)), (NOON, false, true));
        assert_eq!(at(Some(YEAR_9999), Some(YEAR_9999), None), (0, false, true));
        assert_eq!(at(Some(i64::MAX), Some(i64::MAX), Some(NOON)), (NOON, false, true));
        assert_eq!(at(None, Some(-1), Some(NOON)), (NOON, false, false));
        assert_eq!(at(None, None, None), (0, false, false));
    }

    #[test]
    fn before_1970_is_1970() {
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
