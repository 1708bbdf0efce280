//! Describes every topic as it must be: partitions, replicas, settings, and how severe a deviation is. `topics` creates
//! and checks topics by it. A deviation that could break exactly-once is an error, and the stage does not start.

use crate::config::{Bus, Mode};

/// Replicas if the cluster has enough brokers: writes continue while one broker is down and another restarts.
const REPLICAS: u16 = 3;
/// Articles keep the timestamps of their raw records, so no timestamp may be refused.
const ANY_TIME: &str = "9223372036854775807";
/// The two timestamp limits since Kafka 3.6.
const TIME_LIMITS: [&str; 2] = ["message.timestamp.before.max.ms", "message.timestamp.after.max.ms"];
/// The only timestamp limit of older brokers.
const OLD_TIME_LIMIT: &str = "message.timestamp.difference.max.ms";
const TIME_TYPE: &str = "message.timestamp.type";

/// How severe it is if a setting deviates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The stage is safer with the setting, but the topic belongs to someone else.
    Advice,
    /// Data is less durable, or single articles become dead letters.
    Warning,
    /// The guarantee depends on it, so the stage does not start.
    Error,
}

impl Severity {
    /// The word that is printed.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Advice => "advice",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// How the value of a setting is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compare {
    Equal,
    AtLeast,
    AtMost,
    /// Not compared; only new topics get the value.
    Any,
    /// A codec that bounds how far a batch expands on decompression. New topics get the broker's default.
    BoundedExpansion,
}

/// A required setting of a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicSetting {
    /// Kafka's name for the setting.
    pub key: &'static str,
    /// The value that new topics get.
    pub value: String,
    /// How severe a deviation is.
    pub severity: Severity,
    /// Why the setting matters.
    pub why: &'static str,
    compare: Compare,
}

impl TopicSetting {
    fn holds(&self, found: &str) -> bool {
        let number = |text: &str| text.parse::<i64>().ok();
        match self.compare {
            Compare::Equal => found == self.value,
            Compare::AtLeast => number(found) >= number(&self.value),
            Compare::AtMost => number(found) <= number(&self.value),
            Compare::Any => true,
            Compare::BoundedExpansion => matches!(found, "uncompressed" | "snappy"),
        }
    }
}

/// A topic as it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicSpec {
    /// Name of the topic.
    pub name: String,
    /// Partitions of a new topic.
    pub partitions: i32,
    /// Replicas of a new topic.
    pub replication: u16,
    /// Required settings.
    pub settings: Vec<TopicSetting>,
    /// The topic belongs to the crawlers; deviations are only advice.
    pub foreign: bool,
}

/// A setting whose value is not the required one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Deviation {
    pub(crate) key: &'static str,
    pub(crate) found: String,
    pub(crate) expected: String,
    pub(crate) severity: Severity,
    pub(crate) why: &'static str,
}

impl TopicSpec {
    /// Settings of a new topic. Brokers before 3.6 have one timestamp limit instead of two, and refuse unknown names.
    pub fn at_creation(&self, old_broker: bool) -> Vec<(&'static str, &str)> {
        let ours = self.settings.iter().filter(|setting| setting.compare != Compare::BoundedExpansion);
        let mut all: Vec<(&'static str, &str)> =
            ours.map(|setting| (setting.key, setting.value.as_str())).collect();
        if old_broker {
            let limited = all.iter().any(|(key, _)| TIME_LIMITS.contains(key));
            all.retain(|(key, _)| !TIME_LIMITS.contains(key));
            all.extend(limited.then_some((OLD_TIME_LIMIT, ANY_TIME)));
        }
        all
    }

    /// Compares an existing topic with `replicas` replicas. `found` gives the value of a setting, or `None` if the
    /// broker does not know it.
    pub(crate) fn deviations(&self, found: impl Fn(&str) -> Option<String>, replicas: u16) -> Vec<Deviation> {
        let mut deviations = Vec::new();
        // With LogAppendTime the broker never refuses a timestamp.
        let own_clock = found(TIME_TYPE).as_deref() == Some("LogAppendTime");
        for setting in &self.settings {
            let is_limit = TIME_LIMITS.contains(&setting.key);
            if is_limit && own_clock {
                continue;
            }
            let mut setting = setting.clone();
            if is_limit && found(setting.key).is_none() {
                setting.key = OLD_TIME_LIMIT;
            }
            if setting.key == "min.insync.replicas" {
                // Judged by the replicas that the topic has; too few replicas are reported as a problem of their own.
                setting.value = in_sync(replicas).to_string();
                if let Some(value) = found(setting.key)
                    && setting.severity > Severity::Advice
                    && value.parse().is_ok_and(|least: u16| least > replicas)
                {
                    setting.compare = Compare::AtMost;
                    setting.severity = Severity::Error;
                    setting.why = "it is more than the topic has replicas, so nothing can be written";
                }
            }
            if setting.key == "unclean.leader.election.enable" && replicas < 2 {
                setting.severity = setting.severity.min(Severity::Warning);
            }
            match found(setting.key) {
                Some(value) if !setting.holds(&value) => deviations.push(Deviation {
                    key: setting.key,
                    found: value,
                    expected: setting.value,
                    severity: setting.severity,
                    why: setting.why,
                }),
                _ => {}
            }
        }
        deviations.dedup();
        deviations
    }
}

/// Replicas of a new topic in a cluster with `brokers` brokers, unless the settings say otherwise.
pub(crate) fn replication(configured: Option<u16>, brokers: usize) -> u16 {
    configured.unwrap_or_else(|| u16::try_from(brokers).unwrap_or(REPLICAS).clamp(1, REPLICAS))
}

/// The value of `min.insync.replicas`: all replicas but one.
fn in_sync(replication: u16) -> u16 {
    replication.saturating_sub(1).max(1)
}

/// All topics of these settings, as they must be in a cluster with `brokers` brokers.
pub fn wanted(bus: &Bus, brokers: usize) -> Vec<TopicSpec> {
    let names = &bus.topics;
    let (inner, outer) = (i32::from(names.partitions), i32::from(names.output_partitions));
    let replication = replication(names.replication, brokers);
    let equal = |key, value: &str, severity, why| TopicSetting {
        key,
        value: value.to_owned(),
        severity,
        why,
        compare: Compare::Equal,
    };
    let must = |key, value, why| equal(key, value, Severity::Error, why);
    let largest = TopicSetting {
        key: "max.message.bytes",
        value: names.max_message_bytes.to_string(),
        severity: Severity::Error,
        why: "records up to topics.max_message_bytes are written",
        compare: Compare::AtLeast,
    };
    let any_time = |severity, why| TIME_LIMITS.map(|key| equal(key, ANY_TIME, severity, why));
    let topic = |name: &str, partitions, settings: Vec<TopicSetting>| TopicSpec {
        name: name.to_owned(),
        partitions,
        replication,
        settings: settings.into_iter().chain(durable(replication)).chain([largest.clone()]).collect(),
        foreign: false,
    };
    let kept = "only match may delete records, after it has committed them";
    let tagged = "articles keep their timestamps, and one outside the limits becomes a dead letter";
    let output = |name: &str| {
        let mut settings = vec![must("cleanup.policy", "delete", "compaction would delete verdicts")];
        settings.extend(any_time(Severity::Warning, tagged));
        topic(name, outer, settings)
    };
    let compacted = "the last record of every key must be kept forever";
    let mut all = vec![raw(bus, inner, replication)];
    if bus.mode == Mode::Routed {
        let mut settings = vec![
            must("cleanup.policy", "delete", "every record must be kept until match has committed it"),
            must("retention.ms", "-1", kept),
            must("retention.bytes", "-1", kept),
            must(TIME_TYPE, "CreateTime", "articles keep their original timestamps"),
        ];
        settings.extend(any_time(
            Severity::Error,
            "articles keep their original timestamps, and none may be refused",
        ));
        all.push(topic(&names.routed, inner, settings));
    }
    all.push(topic(
        &names.changelog,
        inner,
        vec![
            must("cleanup.policy", "compact", compacted),
            must(
                TIME_TYPE,
                "LogAppendTime",
                "the age of records shows which tombstones a state may have missed, and the clock of a pod may be wrong",
            ),
            // It deletes nothing as long as cleanup.policy is compact, hence only a warning.
            equal("retention.bytes", "-1", Severity::Warning, compacted),
        ],
    ));
    all.push(output(&names.unique));
    if names.near_duplicate != names.unique {
        all.push(output(&names.near_duplicate));
    }
    all.push(topic(&names.clusters, outer, vec![must("cleanup.policy", "compact", compacted)]));
    all.push(output(&names.dead_letter));
    all.push(topic(&names.generations, 1, vec![must("cleanup.policy", "compact", compacted)]));
    all
}

/// The settings that keep committed records when a broker is lost.
fn durable(replication: u16) -> [TopicSetting; 2] {
    [
        TopicSetting {
            key: "min.insync.replicas",
            value: in_sync(replication).to_string(),
            severity: Severity::Warning,
            why: "a record on only one replica is lost with that replica's disk",
            compare: Compare::AtLeast,
        },
        TopicSetting {
            key: "unclean.leader.election.enable",
            value: "false".to_owned(),
            severity: Severity::Error,
            why: "a replica that missed records may become leader, and committed records are lost",
            compare: Compare::Equal,
        },
    ]
}

/// The raw topic. If it exists it belongs to the crawlers, so deviations are only advice.
fn raw(bus: &Bus, partitions: i32, replication: u16) -> TopicSpec {
    let advice = |key, value: String, compare, why| TopicSetting {
        key,
        value,
        severity: Severity::Advice,
        why,
        compare,
    };
    let durable = durable(replication).map(|setting| TopicSetting { severity: Severity::Advice, ..setting });
    let mut settings = vec![
        advice("cleanup.policy", "delete".to_owned(), Compare::Any, "crawlers decide what is kept"),
        advice(
            "compression.type",
            "uncompressed".to_owned(),
            Compare::BoundedExpansion,
            "a batch of a few kB may decompress to gigabytes; with uncompressed the broker checks its full size against \
             max.message.bytes when it is produced (snappy expands 21 times at most)",
        ),
        advice(
            "max.message.bytes",
            bus.topics.max_message_bytes.to_string(),
            Compare::AtMost,
            "larger records can only become dead letters without their value",
        ),
    ];
    settings.extend(durable);
    TopicSpec { name: bus.topics.raw.clone(), partitions, replication, settings, foreign: true }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn bus(text: &str) -> Bus {
        Config::try_from(toml::from_str::<crate::config::Settings>(text).unwrap()).unwrap().bus
    }

    fn named<'a>(all: &'a [TopicSpec], name: &str) -> &'a TopicSpec {
        all.iter().find(|topic| topic.name == name).unwrap()
    }

    fn value(topic: &TopicSpec, key: &str) -> Option<String> {
        topic.settings.iter().find(|setting| setting.key == key).map(|setting| setting.value.clone())
    }

    // Topics used to be created with one replica on every cluster: one lost disk lost the changelog, and with it the
    // state, the positions and every verdict that nobody had read yet.
    #[test]
    fn replication_follows_the_cluster_unless_it_is_configured() {
        let automatic: Vec<u16> = [0, 1, 2, 3, 12].map(|brokers| replication(None, brokers)).into();
        assert_eq!(automatic, [1, 1, 2, 3, 3]);
        assert_eq!(replication(Some(1), 9), 1);
        assert_eq!(replication(Some(5), 3), 5);
        let least: Vec<u16> = [1, 2, 3, 5].map(in_sync).into();
        assert_eq!(least, [1, 1, 2, 4]);
        for (brokers, replicas, least) in [(1, 1, "1"), (3, 3, "2")] {
            for topic in wanted(&bus(""), brokers).iter().filter(|topic| !topic.foreign) {
                assert_eq!(
                    (topic.replication, value(topic, "min.insync.replicas").unwrap().as_str()),
                    (replicas, least)
                );
                assert_eq!(value(topic, "unclean.leader.election.enable").unwrap(), "false");
            }
        }
    }

    #[test]
    fn an_old_broker_gets_the_one_timestamp_limit_that_it_knows() {
        let all = wanted(&bus(""), 3);
        let routed = named(&all, "samestory.routed");
        let new = routed.at_creation(false);
        assert!(TIME_LIMITS.iter().all(|key| new.contains(&(*key, ANY_TIME))));
        let old = routed.at_creation(true);
        assert!(old.contains(&(OLD_TIME_LIMIT, ANY_TIME)));
        assert!(!old.iter().any(|(key, _)| TIME_LIMITS.contains(key)));
        let changelog = named(&all, "samestory.changelog").at_creation(true);
        assert!(!changelog.iter().any(|(key, _)| *key == OLD_TIME_LIMIT));
        // The owner of the raw topic decides whether the broker decompresses its batches.
        let raw = named(&all, "articles.raw").at_creation(false);
        assert!(
            raw.contains(&("max.message.bytes", "4194304")) && raw.contains(&("cleanup.policy", "delete"))
        );
        assert!(!raw.iter().any(|(key, _)| *key == "compression.type"));
    }

    /// The settings of an existing topic: the required ones, with changes.
    fn found<'a>(
        topic: &'a TopicSpec,
        changes: &'a [(&'a str, Option<&'a str>)],
    ) -> impl Fn(&str) -> Option<String> + 'a {
        move |key| match changes.iter().find(|(changed, _)| *changed == key) {
            Some((_, value)) => value.map(str::to_owned),
            None => value(topic, key),
        }
    }

    #[test]
    fn each_deviation_has_its_severity() {
        let all = wanted(&bus(""), 3);
        let (routed, unique) = (named(&all, "samestory.routed"), named(&all, "samestory.unique"));
        assert_eq!(routed.deviations(found(routed, &[]), 3), []);
        let one = |topic: &TopicSpec, key: &'static str, value: &str, replicas| {
            let found = topic.deviations(found(topic, &[(key, Some(value))]), replicas);
            let [deviation] = &found[..] else { panic!("{key}={value}: {found:?}") };
            assert_eq!((deviation.key, deviation.found.as_str()), (key, value));
            deviation.severity
        };
        for (key, value) in [
            ("cleanup.policy", "compact"),
            ("retention.ms", "604800000"),
            ("retention.bytes", "1000000"),
            ("message.timestamp.after.max.ms", "3600000"),
            ("message.timestamp.before.max.ms", "3600000"),
            ("unclean.leader.election.enable", "true"),
            ("max.message.bytes", "1048588"),
            ("min.insync.replicas", "4"),
        ] {
            assert_eq!(one(routed, key, value, 3), Severity::Error, "{key}");
        }
        assert_eq!(one(routed, "min.insync.replicas", "1", 3), Severity::Warning);
        assert_eq!(one(unique, "message.timestamp.after.max.ms", "3600000", 3), Severity::Warning);
        // A single broker: there is no other leader to elect, and only one replica can be in sync.
        assert_eq!(one(routed, "min.insync.replicas", "2", 1), Severity::Error);
        let dev = [("min.insync.replicas", Some("1")), ("unclean.leader.election.enable", Some("true"))];
        let single = routed.deviations(found(routed, &dev), 1);
        assert_eq!(
            single.iter().map(|deviation| deviation.severity).collect::<Vec<_>>(),
            [Severity::Warning]
        );
        // A larger limit than needed is fine, and so are timestamp limits if the broker stamps records itself.
        assert_eq!(routed.deviations(found(routed, &[("max.message.bytes", Some("9000000"))]), 3), []);
        let own = [(TIME_TYPE, Some("LogAppendTime")), ("message.timestamp.after.max.ms", Some("1"))];
        assert_eq!(unique.deviations(found(unique, &own), 3), []);
        // A broker before 3.6.
        let old = [(TIME_LIMITS[0], None), (TIME_LIMITS[1], None), (OLD_TIME_LIMIT, Some("1000"))];
        let [deviation] = &routed.deviations(found(routed, &old), 3)[..] else { panic!("one limit") };
        assert_eq!((deviation.key, deviation.expected.as_str()), (OLD_TIME_LIMIT, ANY_TIME));
    }

    // The age of changelog records used to depend on the clocks of the pods that had written them. A clock one day
    // ahead made a state that had missed tombstones look fresh, and deleted articles came back.
    #[test]
    fn the_broker_stamps_the_changelog() {
        let all = wanted(&bus(""), 3);
        let changelog = named(&all, "samestory.changelog");
        assert!(changelog.at_creation(false).contains(&(TIME_TYPE, "LogAppendTime")));
        let deviations = changelog.deviations(found(changelog, &[(TIME_TYPE, Some("CreateTime"))]), 3);
        let [deviation] = &deviations[..] else { panic!("{deviations:?}") };
        assert_eq!((deviation.key, deviation.severity), (TIME_TYPE, Severity::Error));
        assert_eq!(changelog.deviations(found(changelog, &[]), 3), []);
    }

    #[test]
    fn deviations_of_the_raw_topic_are_advice() {
        let all = wanted(&bus(""), 3);
        let raw = named(&all, "articles.raw");
        let found = |compression: &'static str, largest: &'static str| {
            raw.deviations(
                move |key| match key {
                    "compression.type" => Some(compression.to_owned()),
                    "max.message.bytes" => Some(largest.to_owned()),
                    _ => None,
                },
                1,
            )
        };
        assert_eq!(found("uncompressed", "4194304"), []);
        assert_eq!(found("snappy", "1000"), []);
        let advised = found("producer", "8000000");
        assert!(advised.len() == 2 && advised.iter().all(|deviation| deviation.severity == Severity::Advice));
    }
}
