//! How the program runs on the bus: topics, groups, batches, and what is passed on to the client library.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::formats::time;
use samestory_engine::model::{EventTime, Lang};
use samestory_engine::text::language;
use samestory_engine::text::language::Language;

use super::check::duration;
use super::registry::{self, Formats, RegistryConfig};
use super::written::{Kept, Property, Settings, TopicSettings};
use super::{ConfigError, invalid};

/// How the program runs on the bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bus {
    /// Names groups, clients and transactions.
    pub app: String,
    /// Which making of the state this is; each has groups, internal topics and state of its own.
    pub generation: u32,
    /// Tells the processes of one application apart.
    pub instance: String,
    /// Whether articles are brought together by language first.
    pub mode: Mode,
    /// Threads of each role.
    pub workers: u16,
    /// Where state is kept, a directory for each partition.
    pub state: PathBuf,
    /// `und`, then the languages of `stage.languages`; [`home`](super::home) finds the partition of each.
    pub languages: Vec<Lang>,
    /// Whether the broker assigns partitions itself (KIP-848).
    pub broker_assigns: bool,
    /// Keep partitions through a short restart.
    pub static_membership: bool,
    /// A transaction that takes longer is aborted by the broker.
    pub transaction_timeout: Duration,
    /// How long a stop may take.
    pub shutdown: Duration,
    /// Whether routed records that are done with are deleted.
    pub purge: bool,
    /// Where a topic that was never read is read from.
    pub start: StartAt,
    /// How long a batch of the raw topic that cannot be read is tried before it is skipped; nothing: for ever.
    pub unreadable_after: Option<Duration>,
    /// What the topics are called.
    pub topics: TopicNames,
    /// How tagged articles are written.
    pub value: ValueForm,
    /// How values are written.
    pub formats: Formats,
    /// Where schemas are kept, if anywhere.
    pub registry: Option<RegistryConfig>,
    /// What is committed together.
    pub batch: BatchLimits,
    /// Properties of the client library.
    pub properties: BTreeMap<String, Secret>,
}

/// Whether articles are brought together by language first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// By the route stage, through a topic of its own.
    Routed,
    /// They come by language.
    Direct,
}

/// Where a topic that was never read is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartAt {
    /// From its first record.
    Earliest,
    /// From what comes next.
    Latest,
    /// From the first record of this time.
    Time(EventTime),
}

/// How a tagged article is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueForm {
    /// Verdict and article in one object.
    Envelope,
    /// The article's own bytes; the verdict is in the headers.
    Passthrough,
}

/// What the topics are called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicNames {
    /// Where crawlers write.
    pub raw: String,
    /// From route to match.
    pub routed: String,
    /// The same in the first generation.
    pub routed_first: String,
    /// Articles whose text is new.
    pub unique: String,
    /// Near and exact duplicates; the same topic where there is one for all.
    pub near_duplicate: String,
    /// The clusters as they are now.
    pub clusters: String,
    /// The state's write-ahead log.
    pub changelog: String,
    /// The same in the first generation.
    pub changelog_first: String,
    /// What could not be judged.
    pub dead_letter: String,
    /// Where each generation that has ended says how far it has published.
    pub generations: String,
    /// Partitions of the routed topic and the changelog, when they are made.
    pub partitions: u16,
    /// Partitions of the topics that others read, when they are made.
    pub output_partitions: u16,
    /// Replicas of each, when they are made; without it, as many as the cluster allows, up to three.
    pub replication: Option<u16>,
    /// The largest record that any of them takes.
    pub max_message_bytes: u32,
}

fn of_generation(name: &str, generation: u32) -> String {
    if generation > 1 { format!("{name}.g{generation}") } else { name.to_owned() }
}

/// What is committed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchLimits {
    /// Articles at most.
    pub articles: usize,
    /// Bytes at most, as read.
    pub bytes: usize,
    /// How long to wait for more after the first.
    pub linger: Duration,
}

/// A value that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// For whoever it is meant for, and nobody else.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// Properties that the guarantee rests on, or that have a setting of their own.
const OWNED: &[&str] = &[
    "acks",
    "allow.auto.create.topics",
    "auto.offset.reset",
    "client.id",
    // The proof of a commit is made of delivery reports.
    "delivery.report.only.error",
    "enable.auto.commit",
    "enable.auto.offset.store",
    "enable.idempotence",
    "enable.partition.eof",
    "group.id",
    "group.instance.id",
    "group.protocol",
    "group.protocol.type",
    "group.remote.assignor",
    "isolation.level",
    "message.max.bytes",
    "message.timeout.ms",
    "offset.store.method",
    "offset.store.path",
    "partition.assignment.strategy",
    "partitioner",
    "transaction.timeout.ms",
    "transactional.id",
];

/// Second names of properties, from librdkafka's CONFIGURATION.md, each with the name that the clients set it by. Where a
/// client has a property under both names, which of the two values counts is a matter of chance.
pub(crate) const ALIASES: &[(&str, &str)] = &[
    ("auto.commit.enable", "enable.auto.commit"),
    ("compression.codec", "compression.type"),
    ("delivery.timeout.ms", "message.timeout.ms"),
    ("max.in.flight", "max.in.flight.requests.per.connection"),
    ("max.partition.fetch.bytes", "fetch.message.max.bytes"),
    ("message.send.max.retries", "retries"),
    ("metadata.broker.list", "bootstrap.servers"),
    ("queue.buffering.max.ms", "linger.ms"),
    ("request.required.acks", "acks"),
    ("sasl.mechanisms", "sasl.mechanism"),
    ("sasl.oauthbearer.client.credentials.client.id", "sasl.oauthbearer.client.id"),
    ("sasl.oauthbearer.client.credentials.client.secret", "sasl.oauthbearer.client.secret"),
];

/// The one name of a property. librdkafka also takes properties of topics with `topic.` in front; a few properties of
/// clients begin like that themselves (`topic.metadata.refresh.interval.ms`, `topic.blacklist`).
fn property_name(written: &str) -> &str {
    let of_topics = |rest: &&str| !rest.starts_with("metadata.") && *rest != "blacklist";
    let name = written.strip_prefix("topic.").filter(of_topics).unwrap_or(written);
    ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| name)
}

impl Bus {
    /// The same application in another generation: its groups and its internal topics.
    pub fn of_generation(&self, generation: u32) -> Bus {
        let mut bus = self.clone();
        bus.generation = generation;
        bus.topics.routed = of_generation(&bus.topics.routed_first, generation);
        bus.topics.changelog = of_generation(&bus.topics.changelog_first, generation);
        bus
    }

    pub(super) fn checked(settings: &Settings) -> Result<Bus, ConfigError> {
        let stage = &settings.stage;
        let app = name("stage.app", stage.app.as_deref().unwrap_or("samestory"))?;
        let from_environment = std::env::var("SAMESTORY_INSTANCE").ok();
        let instance = stage.instance.as_deref().or(from_environment.as_deref()).unwrap_or("0");
        let mode = match stage.mode.as_deref().unwrap_or("routed") {
            "routed" => Mode::Routed,
            "direct" => Mode::Direct,
            other => return Err(invalid("stage.mode", other, "write routed or direct")),
        };
        let workers = at_least_one("stage.workers", stage.workers, 1)?;
        let generation = at_least_one("stage.generation", stage.generation, 1)?;
        let broker_assigns = match stage.group_protocol.as_deref().unwrap_or("classic") {
            "classic" => false,
            "consumer" => true,
            other => return Err(invalid("stage.group_protocol", other, "write classic or consumer")),
        };
        let span = |key: &str, written: &Option<String>, default: u64| match written {
            Some(text) => duration(key, text).map(Duration::from_millis),
            None => Ok(Duration::from_millis(default)),
        };
        let start = match settings.input.start.as_deref().unwrap_or("earliest") {
            "earliest" => StartAt::Earliest,
            "latest" => StartAt::Latest,
            other => {
                let fix = "write earliest, latest or a time such as 2026-03-02T06:00:00Z";
                StartAt::Time(time::parse(other).ok_or_else(|| invalid("input.start", other, fix))?)
            }
        };
        let unreadable_after = match settings.input.unreadable_after.as_deref() {
            Some("never") => None,
            Some(text) => Some(Duration::from_millis(duration("input.unreadable_after", text)?)),
            None => Some(Duration::from_secs(300)),
        };
        let value = match settings.output.value.as_deref().unwrap_or("envelope") {
            "envelope" => ValueForm::Envelope,
            "passthrough" => ValueForm::Passthrough,
            other => return Err(invalid("output.value", other, "write envelope or passthrough")),
        };
        let single = match settings.output.topics.as_deref().unwrap_or("split") {
            "split" => false,
            "single" => true,
            other => return Err(invalid("output.topics", other, "write split or single")),
        };
        let batch = &settings.batch;
        let batch = BatchLimits {
            articles: at_least_one("batch.max_articles", batch.max_articles, 2000)? as usize,
            bytes: at_least_one("batch.max_bytes", batch.max_bytes, 8 << 20)?,
            linger: Duration::from_millis(batch.linger_ms.unwrap_or(20)),
        };
        let mut properties = BTreeMap::new();
        let mut written = BTreeMap::new();
        for (key, value) in &settings.kafka {
            let (name, value) = property(key, value)?;
            if let Some(other) = written.insert(name.clone(), key) {
                let both = format!("kafka.\"{other}\" and kafka.\"{key}\"");
                return Err(invalid(&both, "…", "these are two names of one property; take one line out"));
            }
            properties.insert(name, value);
        }
        Ok(Bus {
            app,
            generation,
            instance: name("stage.instance", instance)?,
            mode,
            workers,
            state: stage.state.clone().unwrap_or_else(|| PathBuf::from("state")),
            languages: languages(stage.languages.as_deref())?,
            broker_assigns,
            static_membership: stage.static_membership.unwrap_or(false),
            transaction_timeout: span("stage.transaction_timeout", &stage.transaction_timeout, 10_000)?,
            shutdown: span("stage.shutdown", &stage.shutdown, 20_000)?,
            purge: stage.purge.unwrap_or(true),
            start,
            unreadable_after,
            topics: topics(&settings.topics, single, generation)?,
            value,
            formats: registry::formats(settings)?,
            registry: registry::registry(&settings.registry)?,
            batch,
            properties,
        })
    }
}

fn topics(written: &TopicSettings, single: bool, generation: u32) -> Result<TopicNames, ConfigError> {
    let topic = |key: &str, written: &Option<String>, default: &str| {
        name(&format!("topics.{key}"), written.as_deref().unwrap_or(default))
    };
    let tagged = topic("tagged", &written.tagged, "samestory.tagged")?;
    let unique = topic("unique", &written.unique, "samestory.unique")?;
    let near_duplicate = topic("near_duplicate", &written.near_duplicate, "samestory.near-duplicate")?;
    let routed_first = topic("routed", &written.routed, "samestory.routed")?;
    let changelog_first = topic("changelog", &written.changelog, "samestory.changelog")?;
    let names = TopicNames {
        raw: topic("raw", &written.raw, "articles.raw")?,
        routed: of_generation(&routed_first, generation),
        routed_first,
        unique: if single { tagged.clone() } else { unique },
        near_duplicate: if single { tagged } else { near_duplicate },
        clusters: topic("clusters", &written.clusters, "samestory.clusters")?,
        changelog: of_generation(&changelog_first, generation),
        changelog_first,
        dead_letter: topic("dead_letter", &written.dead_letter, "samestory.dead-letter")?,
        generations: topic("generations", &written.generations, "samestory.generations")?,
        partitions: at_least_one("topics.partitions", written.partitions, 4)?,
        output_partitions: at_least_one("topics.output_partitions", written.output_partitions, 4)?,
        replication: match written.replication {
            None => None,
            written => Some(at_least_one("topics.replication", written, 1)?),
        },
        max_message_bytes: at_least_one("topics.max_message_bytes", written.max_message_bytes, 4 << 20)?,
    };
    let mut all = vec![&names.raw, &names.routed, &names.unique, &names.clusters, &names.changelog];
    all.extend([&names.dead_letter, &names.generations]);
    all.extend((!single).then_some(&names.near_duplicate));
    all.sort_unstable();
    match all.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(invalid("topics", pair[0], "two topics have this name; give each its own")),
        None => Ok(names),
    }
}

/// `und`, then the homes of those written.
fn languages(written: Option<&[String]>) -> Result<Vec<Lang>, ConfigError> {
    let mut languages = vec![Lang::UND];
    for code in written.unwrap_or_default() {
        let known = language::find(code)
            .map(Language::home)
            .ok_or_else(|| invalid("stage.languages", code, "take codes that `samestory languages` lists"))?;
        if languages.contains(&known) {
            let why = format!("{known}, the home of {code}, is named twice; und is always the first");
            return Err(ConfigError::Override { place: "stage.languages".to_owned(), why });
        }
        languages.push(known);
    }
    Ok(languages)
}

/// What may stand in names of topics and groups.
fn name(key: &str, text: &str) -> Result<String, ConfigError> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    match (1..=249).contains(&text.len()) && text.chars().all(allowed) {
        true => Ok(text.to_owned()),
        false => Err(invalid(key, text, "use up to 249 letters, digits, dots, hyphens and underscores")),
    }
}

fn at_least_one<T: Copy + Default + PartialEq + ToString>(
    key: &str,
    written: Option<T>,
    default: T,
) -> Result<T, ConfigError> {
    match written {
        Some(value) if value == T::default() => Err(invalid(key, value, "give a number, at least 1")),
        value => Ok(value.unwrap_or(default)),
    }
}

fn property(key: &str, value: &Property) -> Result<(String, Secret), ConfigError> {
    let full = format!("kafka.\"{key}\"");
    let name = property_name(key);
    if OWNED.contains(&name) {
        return Err(invalid(&full, "…", "this property is samestory's own; take the line out"));
    }
    Ok((name.to_owned(), kept(&full, value)?))
}

/// The value, wherever it is kept.
pub(super) fn kept(full: &str, value: &Property) -> Result<Secret, ConfigError> {
    let value = match value {
        Property::Text(text) => text.clone(),
        Property::Number(number) => number.to_string(),
        Property::Flag(flag) => flag.to_string(),
        Property::Kept(Kept::Env(variable)) => std::env::var(variable)
            .map_err(|_| invalid(full, format!("env {variable}"), "set this environment variable"))?,
        Property::Kept(Kept::File(path)) => {
            let content = std::fs::read_to_string(path)
                .map_err(|error| ConfigError::Unreadable { path: path.clone(), error })?;
            content.trim_end_matches(['\n', '\r']).to_owned()
        }
    };
    Ok(Secret(value))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{config, refusal};
    use super::*;

    #[test]
    fn what_the_guarantee_rests_on_is_refused_by_name() {
        for owned in OWNED {
            let refusal = refusal(&format!("[kafka]\n\"{owned}\" = \"x\""));
            assert!(refusal.contains(owned) && refusal.contains("take the line out"), "{refusal}");
        }
        let passed =
            config("[kafka]\n\"bootstrap.servers\" = \"k:9092\"\n\"socket.nagle.disable\" = true").unwrap();
        assert_eq!(passed.bus.properties["bootstrap.servers"].reveal(), "k:9092");
        assert_eq!(passed.bus.properties["socket.nagle.disable"].reveal(), "true");
    }

    // Only the names in the table were refused. `topic.acks` and `delivery.timeout.ms` are the same properties to librdkafka,
    // and it took whichever of the two values came last out of a hash map.
    #[test]
    fn no_second_name_leads_past_the_refusal() {
        let second = ALIASES.iter().filter(|(_, name)| OWNED.contains(name)).map(|(alias, _)| *alias);
        let prefixed: Vec<String> = OWNED.iter().map(|name| format!("topic.{name}")).collect();
        let all: Vec<&str> = second.chain(prefixed.iter().map(String::as_str)).collect();
        assert!(all.contains(&"request.required.acks") && all.contains(&"delivery.timeout.ms"));
        for name in all.into_iter().chain(["topic.request.required.acks"]) {
            let refusal = refusal(&format!("[kafka]\n\"{name}\" = \"x\""));
            assert!(refusal.contains(name) && refusal.contains("take the line out"), "{refusal}");
        }
    }

    // `metadata.broker.list` met our own default for `bootstrap.servers`, and which of the two won was chance.
    #[test]
    fn a_property_has_one_name_and_one_value() {
        let passed = config("[kafka]\n\"metadata.broker.list\" = \"k:9092\"").unwrap().bus.properties;
        assert_eq!(passed["bootstrap.servers"].reveal(), "k:9092");
        // `topic.` was cut off here as well, and librdkafka refused what was left.
        let own = config("[kafka]\n\"topic.metadata.refresh.interval.ms\" = 5000").unwrap().bus.properties;
        assert_eq!(own["topic.metadata.refresh.interval.ms"].reveal(), "5000");
        let twice = refusal("[kafka]\n\"linger.ms\" = 5\n\"queue.buffering.max.ms\" = 7");
        assert!(twice.contains("linger.ms") && twice.contains("queue.buffering.max.ms"), "{twice}");
    }

    #[test]
    fn secrets_come_from_elsewhere_and_are_never_shown() {
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("LICENSE");
        let text =
            format!("[kafka]\n\"sasl.password\" = {{ file = {file:?} }}\n\"sasl.username\" = \"hush\"");
        let config = config(&text).unwrap();
        assert!(config.bus.properties["sasl.password"].reveal().contains("Apache"));
        assert!(!format!("{config:?}").contains("hush"));
        assert!(!format!("{:?}", toml::from_str::<Settings>(&text).unwrap()).contains("hush"));
        let missing = refusal("[kafka]\n\"sasl.password\" = { env = \"SAMESTORY_TEST_NOT_SET\" }");
        assert!(missing.contains("SAMESTORY_TEST_NOT_SET"), "{missing}");
    }

    #[test]
    fn languages_are_und_and_then_those_written() {
        let languages = config("[stage]\nlanguages = [\"hi\", \"en\"]").unwrap().bus.languages;
        let codes: Vec<&str> = languages.iter().map(|lang| lang.code()).collect();
        assert_eq!(codes, ["und", "hi", "en"]);
        assert!(refusal("[stage]\nlanguages = [\"hi\", \"hi\"]").contains("named twice"));
        assert!(
            refusal("[stage]\nlanguages = [\"no\", \"da\"]").contains("no, the home of da, is named twice")
        );
        assert!(refusal("[stage]\nlanguages = [\"klingon\"]").contains("samestory languages"));
    }

    #[test]
    fn topics_are_told_apart() {
        assert!(refusal("[topics]\nunique = \"articles.raw\"").contains("articles.raw"));
        assert!(refusal("[topics]\nraw = \"a b\"").contains("topics.raw = a b"));
        let single = config("[output]\ntopics = \"single\"").unwrap().bus.topics;
        assert_eq!(
            (single.unique.as_str(), single.near_duplicate.as_str()),
            ("samestory.tagged", "samestory.tagged")
        );
    }

    #[test]
    fn refusals_name_key_value_and_fix() {
        assert!(refusal("[stage]\nmode = \"sideways\"").contains("stage.mode = sideways"));
        assert!(refusal("[stage]\nworkers = 0").contains("stage.workers = 0"));
        assert!(refusal("[batch]\nmax_articles = 0").contains("batch.max_articles"));
        assert!(refusal("[input]\nstart = \"soon\"").contains("input.start = soon"));
        assert!(refusal("[input]\nunreadable_after = \"soon\"").contains("input.unreadable_after"));
        assert!(refusal("[output]\nvalue = \"xml\"").contains("output.value = xml"));
        assert!(refusal("[stage]\ntransaction_timeout = \"10\"").contains("stage.transaction_timeout"));
    }
}
