//! The limits of the topics: the largest record, and the oldest and newest timestamp. Workers read them at startup and
//! again after a refusal. They are an input of every plan, so that no record is sent that the broker would refuse.

use std::collections::BTreeMap;
use std::time::Duration;

use rdkafka::admin::{AdminClient, AdminOptions, ConfigResource, ResourceSpecifier};
use rdkafka::client::DefaultClientContext;
use rdkafka::error::KafkaError;

use crate::config::{Bus, Mode, TopicNames};
use crate::stop::{Poll, Polled, Stop};
use samestory_engine::model::EventTime;

use super::{survey, topics};
use crate::kafka::client as clients;
use crate::kafka::faults::{FAULTS, Faults, Mutant};
use crate::kafka::turn::record::Outgoing;

/// How long the broker may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The broker compares timestamps with its own clock, which may differ from ours by this much.
const CLOCK_SKEW: i64 = 60_000;
/// Header with a record's original timestamp, if the topic would refuse it.
const RECORD_TIME: &str = "samestory-record-time";

/// The limits of every topic that the stage writes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    topics: BTreeMap<String, TopicLimits>,
    /// Assumed for topics whose settings this user may not read.
    otherwise: TopicLimits,
}

/// The limits of one topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TopicLimits {
    /// `max.message.bytes`, but at most what the producer sends.
    pub(crate) bytes: usize,
    /// `message.timestamp.before.max.ms`; `None` if the broker does not check timestamps.
    before: Option<i64>,
    /// `message.timestamp.after.max.ms`.
    after: Option<i64>,
}

impl Limits {
    /// The limits according to the settings, as `samestory topics --create` would set them.
    pub(crate) fn of_settings(names: &TopicNames) -> Limits {
        let otherwise = TopicLimits { bytes: names.max_message_bytes as usize, before: None, after: None };
        Limits { topics: BTreeMap::new(), otherwise }
    }

    /// Reads the current limits from the broker.
    pub(crate) fn read(bus: &Bus) -> Result<Limits, KafkaError> {
        let admin: AdminClient<DefaultClientContext> = clients::base(bus, "samestory-limits").create()?;
        let names = &bus.topics;
        let mut written =
            vec![&names.changelog, &names.unique, &names.near_duplicate, &names.clusters, &names.dead_letter];
        written.extend((bus.mode == Mode::Routed).then_some(&names.routed));
        written.sort_unstable();
        written.dedup();
        let resources: Vec<_> = written.iter().map(|name| ResourceSpecifier::Topic(name)).collect();
        let options = AdminOptions::new().request_timeout(Some(PATIENCE));
        let answers = topics::block_on(admin.describe_configs(&resources, &options))?;
        let mut limits = Limits::of_settings(names);
        for (name, answer) in written.into_iter().zip(answers) {
            match answer {
                Ok(answer) => {
                    limits.topics.insert(name.clone(), TopicLimits::read(&answer, limits.otherwise));
                }
                Err(code) => tracing::warn!(
                    topic = name,
                    %code,
                    "cannot read the topic's limits, assuming those of the settings"
                ),
            }
        }
        Ok(limits)
    }

    /// Reads the limits at startup: waits for an unreachable broker, and assumes the settings if the broker refuses.
    pub(crate) fn await_read(bus: &Bus, stop: &Stop) -> Limits {
        let read = Poll::until_stopped(stop, bus.retry.broker).ask(|| match Limits::read(bus) {
            Ok(limits) => Ok(Polled::Final(limits)),
            Err(error) if survey::is_transient(&error) => Ok(Polled::NotYet),
            Err(error) => Err(error),
        });
        let read = read.unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot read the topic limits, assuming those of the settings");
            None
        });
        read.unwrap_or_else(|| Limits::of_settings(&bus.topics))
    }

    pub(crate) fn for_topic(&self, topic: &str) -> TopicLimits {
        self.topics.get(topic).copied().unwrap_or(self.otherwise)
    }

    /// The smallest record limit of all topics: a producer batch must not exceed it either.
    pub(crate) fn smallest(&self) -> usize {
        self.topics.values().map(|topic| topic.bytes).min().unwrap_or(self.otherwise.bytes)
    }

    /// Moves a timestamp that the topic would refuse into a header. The record is then stamped with the time of
    /// sending.
    pub(crate) fn admit_time(&self, record: &mut Outgoing<'_>, now: EventTime) {
        if let Some(time) = record.time
            && !self.for_topic(record.topic).accepts(time, now)
            && !FAULTS.has(Mutant::Unmeasured)
        {
            record.time = None;
            record.headers.push((RECORD_TIME.into(), Some(time.millis().to_string().into_bytes().into())));
        }
    }
}

impl TopicLimits {
    fn read(answer: &ConfigResource, otherwise: TopicLimits) -> TopicLimits {
        let found = |key: &str| answer.get(key).and_then(|entry| entry.value.clone());
        let number = |key: &str| found(key).and_then(|value| value.parse::<i64>().ok());
        let bytes = number("max.message.bytes").and_then(|bytes| usize::try_from(bytes).ok());
        let stamped_by_broker = found("message.timestamp.type").as_deref() == Some("LogAppendTime");
        // Before Kafka 3.6 there is one limit for both directions.
        let either = number("message.timestamp.difference.max.ms");
        let limit = |key: &str| {
            let millis = number(key).or(either)?;
            (!stamped_by_broker && millis < i64::MAX).then_some(millis)
        };
        TopicLimits {
            bytes: bytes.unwrap_or(otherwise.bytes).min(otherwise.bytes),
            before: limit("message.timestamp.before.max.ms"),
            after: limit("message.timestamp.after.max.ms"),
        }
    }

    /// True if the broker accepts a record with this timestamp now, even if its clock differs from ours.
    fn accepts(&self, time: EventTime, now: EventTime) -> bool {
        let ahead = time.millis().saturating_sub(now.millis());
        let within = |distance: i64, limit: Option<i64>| {
            limit.is_none_or(|limit| distance <= 0 || distance <= limit.saturating_sub(CLOCK_SKEW))
        };
        within(ahead, self.after) && within(ahead.saturating_neg(), self.before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;

    fn limits(before: Option<i64>, after: Option<i64>) -> TopicLimits {
        TopicLimits { bytes: 1000, before, after }
    }

    #[test]
    fn a_timestamp_near_a_limit_counts_as_refused() {
        let now = EventTime::from_millis(1_772_000_000_000);
        let at = |delta: i64| EventTime::from_millis(now.millis() + delta);
        let hour = limits(Some(HOUR), Some(HOUR));
        for (delta, accepted) in
            [(0, true), (HOUR / 2, true), (HOUR, false), (HOUR + 1, false), (-HOUR / 2, true), (-HOUR, false)]
        {
            assert_eq!(hour.accepts(at(delta), now), accepted, "{delta}");
        }
        let free = limits(None, None);
        assert!(free.accepts(EventTime::from_millis(i64::MAX), now));
        assert!(free.accepts(EventTime::from_millis(i64::MIN), now));
        assert!(!hour.accepts(EventTime::from_millis(i64::MIN), now));
        // With a limit smaller than the skew, only timestamps in the past are safe.
        assert!(limits(None, Some(1000)).accepts(at(-1), now));
    }

    #[test]
    fn a_refused_timestamp_moves_into_a_header() {
        let now = EventTime::from_millis(1_772_000_000_000);
        let mut limits = Limits {
            topics: BTreeMap::new(),
            otherwise: TopicLimits { bytes: 1000, before: None, after: Some(HOUR) },
        };
        let far = EventTime::from_millis(now.millis() + 2 * HOUR);
        let mut record = Outgoing { topic: "t", time: Some(far), ..Outgoing::default() };
        limits.admit_time(&mut record, now);
        assert_eq!((record.time, record.headers.len()), (None, 1));
        assert_eq!(
            record.headers[0],
            (RECORD_TIME.into(), Some(far.millis().to_string().into_bytes().into()))
        );
        limits.otherwise.after = None;
        let mut record = Outgoing { topic: "t", time: Some(far), ..Outgoing::default() };
        limits.admit_time(&mut record, now);
        assert_eq!((record.time, record.headers.len()), (Some(far), 0));
    }
}
