//! Every topic as it must be: partitions, replicas, settings, and what depends on each setting.

use crate::config::{Bus, Mode};

/// Replicas where the cluster has brokers enough: one may fail, another may be restarted, and writes go on.
const REPLICAS: u16 = 3;
/// Times of raw records are preserved, so no time may be refused.
const ANY_TIME: &str = "9223372036854775807";
/// The two limits for times, since Kafka 3.6.
const TIME_LIMITS: [&str; 2] = ["message.timestamp.before.max.ms", "message.timestamp.after.max.ms"];
/// The one limit of older brokers.
const OLD_TIME_LIMIT: &str = "message.timestamp.difference.max.ms";
const TIME_TYPE: &str = "message.timestamp.type";

/// What depends on a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The stage is safer with it; somebody else may have reasons.
    Advice,
    /// Data is less durable, or single articles become dead letters.
    Warning,
    /// The guarantee: the stage does not start.
    Error,
}

impl Severity {
    /// As it is printed.
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
    /// Only new topics get the value.
    Any,
    /// One of those that bound how far a batch can expand when it is decompressed. New topics get the broker's default.
    BoundedExpansion,
}

/// A setting of a topic, as it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Kafka's name for it.
    pub key: &'static str,
    /// The value that new topics get.
    pub value: String,
    /// What depends on it.
    pub severity: Severity,
    /// What it protects from.
    pub why: &'static str,
    compare: Compare,
}

impl Setting {
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
pub struct Wanted {
    /// Its name.
    pub name: String,
    /// How many partitions it gets.
    pub partitions: i32,
    /// How many replicas it gets.
    pub replication: u16,
    /// How it is set up.
    pub settings: Vec<Setting>,
    /// Others may have made it as they like.
    pub foreign: bool,
}

/// A setting that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Deviation {
    pub(crate) key: &'static str,
    pub(crate) found: String,
    pub(crate) expected: String,
    pub(crate) severity: Severity,
    pub(crate) why: &'static str,
}

impl Wanted {
    /// Settings of a new topic. Older brokers have one limit for times instead of two, and refuse names that they do not know.
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

    /// Compares a topic that has so many replicas. `found` is the value of a setting, nothing where the broker does not know it.
    pub(crate) fn deviations(&self, found: impl Fn(&str) -> Option<String>, replicas: u16) -> Vec<Deviation> {
        let mut deviations = Vec::new();
        // The broker's own clock passes its own limits.
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
                // As many as there are, not as many as there should be: that is another problem.
                setting.value = in_sync(replicas).to_string();
                if let Some(value) = found(setting.key)
                    && setting.severity > Severity::Advice
                    && value.parse().is_ok_and(|least: u16| least > replicas)
                {
                    setting.compare = Compare::AtMost;
                    setting.severity = Severity::Error;
                    setting.why = "more than there are replicas, so nothing can be written";
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

/// Replicas that a topic gets in a cluster of so many brokers.
pub(crate) fn replication(written: Option<u16>, brokers: usize) -> u16 {
    written.unwrap_or_else(|| u16::try_from(brokers).unwrap_or(REPLICAS).clamp(1, REPLICAS))
}

/// Replicas that must have a record before it is acknowledged: one may be away.
fn in_sync(replication: u16) -> u16 {
    replication.saturating_sub(1).max(1)
}

/// All topics of these settings, as they must be in a cluster of so many brokers.
pub fn wanted(bus: &Bus, brokers: usize) -> Vec<Wanted> {
    let names = &bus.topics;
    let (inner, outer) = (i32::from(names.partitions), i32::from(names.output_partitions));
    let replication = replication(names.replication, brokers);
    let equal = |key, value: &str, severity, why| Setting {
        key,
        value: value.to_owned(),
        severity,
        why,
        compare: Compare::Equal,
    };
    let must = |key, value, why| equal(key, value, Severity::Error, why);
    let largest = Setting {
        key: "max.message.bytes",
        value: names.max_message_bytes.to_string(),
        severity: Severity::Error,
        why: "records up to topics.max_message_bytes are written",
        compare: Compare::AtLeast,
    };
    let any_time = |severity, why| TIME_LIMITS.map(|key| equal(key, ANY_TIME, severity, why));
    let topic = |name: &str, partitions, settings: Vec<Setting>| Wanted {
        name: name.to_owned(),
        partitions,
        replication,
        settings: settings.into_iter().chain(durable(replication)).chain([largest.clone()]).collect(),
        foreign: false,
    };
    let kept = "records are deleted by match alone, when it has committed them";
    let tagged = "articles keep their time; one outside the limits becomes a dead letter";
    let output = |name: &str| {
        let mut settings = vec![must("cleanup.policy", "delete", "a compacted topic forgets verdicts")];
        settings.extend(any_time(Severity::Warning, tagged));
        topic(name, outer, settings)
    };
    let compacted = "every key's last record is kept for ever";
    let mut all = vec![raw(bus, inner, replication)];
    if bus.mode == Mode::Routed {
        let mut settings = vec![
            must("cleanup.policy", "delete", "every record is kept until match has committed it"),
            must("retention.ms", "-1", kept),
            must("retention.bytes", "-1", kept),
            must(TIME_TYPE, "CreateTime", "articles keep the time they came with"),
        ];
        settings.extend(any_time(
            Severity::Error,
            "articles keep the time they came with, and none may be refused",
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
                "the age of records tells which tombstones a state may have missed, and the clock of a pod may be wrong",
            ),
            // Only together with another cleanup.policy would it delete anything.
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

/// What keeps committed records through the loss of a broker.
fn durable(replication: u16) -> [Setting; 2] {
    [
        Setting {
            key: "min.insync.replicas",
            value: in_sync(replication).to_string(),
            severity: Severity::Warning,
            why: "a record that only one replica has is lost with that replica's disk",
            compare: Compare::AtLeast,
        },
        Setting {
            key: "unclean.leader.election.enable",
            value: "false".to_owned(),
            severity: Severity::Error,
            why: "a replica that missed records may become leader, and committed records are lost",
            compare: Compare::Equal,
        },
    ]
}

/// The crawlers' topic. Where it exists it is theirs, and only advised on.
fn raw(bus: &Bus, partitions: i32, replication: u16) -> Wanted {
    let advice =
        |key, value: String, compare, why| Setting { key, value, severity: Severity::Advice, why, compare };
    let durable = durable(replication).map(|setting| Setting { severity: Severity::Advice, ..setting });
    let mut settings = vec![
        advice("cleanup.policy", "delete".to_owned(), Compare::Any, "crawlers decide what is kept"),
        advice(
            "compression.type",
            "uncompressed".to_owned(),
            Compare::BoundedExpansion,
            "a batch of a few kB may decompress to gigabytes; with uncompressed the broker measures it against max.message.bytes \
             when it is produced (snappy expands 21 times at most)",
        ),
        advice(
            "max.message.bytes",
            bus.topics.max_message_bytes.to_string(),
            Compare::AtMost,
            "larger records can only become dead letters without their value",
        ),
    ];
    settings.extend(durable);
    Wanted { name: bus.topics.raw.clone(), partitions, replication, settings, foreign: true }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn bus(text: &str) -> Bus {
        Config::try_from(toml::from_str::<crate::config::Settings>(text).unwrap()).unwrap().bus
    }

    fn named<'a>(all: &'a [Wanted], name: &str) -> &'a Wanted {
        all.iter().find(|topic| topic.name == name).unwrap()
    }

    fn value(topic: &Wanted, key: &str) -> Option<String> {
        topic.settings.iter().find(|setting| setting.key == key).map(|setting| setting.value.clone())
    }

    // Topics used to be created with one replica whatever the cluster was: one lost disk lost the changelog, and with it
    // the state, the positions and every verdict that nobody had read yet.
    #[test]
    fn replication_follows_the_cluster_unless_it_is_written() {
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
    fn an_old_broker_gets_the_one_limit_that_it_knows() {
        let all = wanted(&bus(""), 3);
        let routed = named(&all, "samestory.routed");
        let new = routed.at_creation(false);
        assert!(TIME_LIMITS.iter().all(|key| new.contains(&(*key, ANY_TIME))));
        let old = routed.at_creation(true);
        assert!(old.contains(&(OLD_TIME_LIMIT, ANY_TIME)));
        assert!(!old.iter().any(|(key, _)| TIME_LIMITS.contains(key)));
        let changelog = named(&all, "samestory.changelog").at_creation(true);
        assert!(!changelog.iter().any(|(key, _)| *key == OLD_TIME_LIMIT));
        // Whether the crawlers' batches are decompressed by the broker is for its owner to decide.
        let raw = named(&all, "articles.raw").at_creation(false);
        assert!(
            raw.contains(&("max.message.bytes", "4194304")) && raw.contains(&("cleanup.policy", "delete"))
        );
        assert!(!raw.iter().any(|(key, _)| *key == "compression.type"));
    }

    /// What a topic of this cluster has, with changes.
    fn found<'a>(
        topic: &'a Wanted,
        changes: &'a [(&'a str, Option<&'a str>)],
    ) -> impl Fn(&str) -> Option<String> + 'a {
        move |key| match changes.iter().find(|(changed, _)| *changed == key) {
            Some((_, value)) => value.map(str::to_owned),
            None => value(topic, key),
        }
    }

    #[test]
    fn each_setting_is_compared_and_weighed() {
        let all = wanted(&bus(""), 3);
        let (routed, unique) = (named(&all, "samestory.routed"), named(&all, "samestory.unique"));
        assert_eq!(routed.deviations(found(routed, &[]), 3), []);
        let one = |topic: &Wanted, key: &'static str, value: &str, replicas| {
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
        // A single broker: nothing to elect, and one replica in sync is all there are.
        assert_eq!(one(routed, "min.insync.replicas", "2", 1), Severity::Error);
        let dev = [("min.insync.replicas", Some("1")), ("unclean.leader.election.enable", Some("true"))];
        let single = routed.deviations(found(routed, &dev), 1);
        assert_eq!(
            single.iter().map(|deviation| deviation.severity).collect::<Vec<_>>(),
            [Severity::Warning]
        );
        // Larger than needed is right, and so are limits where the broker stamps its own time.
        assert_eq!(routed.deviations(found(routed, &[("max.message.bytes", Some("9000000"))]), 3), []);
        let own = [(TIME_TYPE, Some("LogAppendTime")), ("message.timestamp.after.max.ms", Some("1"))];
        assert_eq!(unique.deviations(found(unique, &own), 3), []);
        // An old broker.
        let old = [(TIME_LIMITS[0], None), (TIME_LIMITS[1], None), (OLD_TIME_LIMIT, Some("1000"))];
        let [deviation] = &routed.deviations(found(routed, &old), 3)[..] else { panic!("one limit") };
        assert_eq!((deviation.key, deviation.expected.as_str()), (OLD_TIME_LIMIT, ANY_TIME));
    }

    // The age of changelog records went by the clocks of the pods that had written them. One that ran a day ahead made a
    // state that had missed tombstones look fresh, and deleted articles came back.
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
    fn the_raw_topic_is_advised_on() {
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
