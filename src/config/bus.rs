//! Settings of `samestory run`: topics, consumer groups, transactions and librdkafka properties. [`Bus::checked`] refuses the
//! properties that exactly-once depends on, under all their names, so no setting can weaken the guarantee.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use crate::formats::time;
use samestory_engine::model::{EventTime, Lang};
use samestory_engine::text::language;
use samestory_engine::text::language::Language;

use super::check::{choice, duration};
use super::registry::{self, Formats, RegistryConfig};
use super::retry::Retry;
use super::written::{Property, SecretSource, Settings, TopicSettings};
use super::{ConfigError, invalid};

/// Settings of the stage on Kafka.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bus {
    /// Prefix of consumer groups, client ids and transactional ids.
    pub app: String,
    /// State generation; each has its own groups, internal topics and state.
    pub generation: u32,
    /// Name of this process within the application.
    pub instance: String,
    /// True if the route stage runs before match.
    pub mode: Mode,
    /// Threads per role.
    pub workers: u16,
    /// Directory of the state, with a subdirectory per partition.
    pub state: PathBuf,
    /// `und`, then the languages of `stage.languages`; [`home`](super::home) maps each to its partition.
    pub languages: Vec<Lang>,
    /// True if the broker assigns partitions (KIP-848).
    pub broker_assigns: bool,
    /// True if partitions stay assigned through a short restart.
    pub static_membership: bool,
    /// The broker aborts a transaction that takes longer.
    pub transaction_timeout: Duration,
    /// How long a shutdown may take.
    pub shutdown: Duration,
    /// True if routed records are deleted after match has committed them.
    pub purge: bool,
    /// Where to start reading a topic without a committed offset.
    pub start: StartAt,
    /// How long to retry an unreadable batch of the raw topic before skipping it; `None` retries forever.
    pub unreadable_after: Option<Duration>,
    /// Names and layout of the topics.
    pub topics: TopicNames,
    /// The values of tagged articles.
    pub value: ValueForm,
    /// Formats of values.
    pub formats: Formats,
    /// The schema registry, if there is one.
    pub registry: Option<RegistryConfig>,
    /// Limits of one transaction.
    pub batch: BatchLimits,
    /// How failures are retried.
    pub retry: Retry,
    /// librdkafka properties under the names that the clients set.
    pub properties: BTreeMap<String, Secret>,
}

/// How articles of one language come together on one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// The route stage sends them there through an internal topic.
    Routed,
    /// The raw topic is already keyed by language.
    Direct,
}

/// Where to start reading a topic without a committed offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartAt {
    /// At its first record.
    Earliest,
    /// After its last record.
    Latest,
    /// At the first record with this timestamp or a later one.
    Time(EventTime),
}

/// The value of a tagged article.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ValueForm {
    /// Verdict and article in one object.
    Envelope,
    /// The article's original bytes; the verdict is in the headers.
    Passthrough,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum GroupProtocol {
    Classic,
    Consumer,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum OutputTopics {
    Split,
    Single,
}

/// Names and layout of the topics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicNames {
    /// Topic that crawlers write to.
    pub raw: String,
    /// Internal topic from route to match, of this generation.
    pub routed: String,
    /// The routed topic of the first generation.
    pub routed_first: String,
    /// Topic for articles whose text is new.
    pub unique: String,
    /// Topic for near and exact duplicates; equal to `unique` where `output.topics` is `single`.
    pub near_duplicate: String,
    /// Topic for the current state of clusters.
    pub clusters: String,
    /// The state's write-ahead log, of this generation.
    pub changelog: String,
    /// The changelog of the first generation.
    pub changelog_first: String,
    /// Topic for records that could not be judged.
    pub dead_letter: String,
    /// Topic for generation-end records.
    pub generations: String,
    /// Partitions of a new routed topic and changelog.
    pub partitions: u16,
    /// Partitions of new output topics.
    pub output_partitions: u16,
    /// Replicas of new topics; `None` means as many as the cluster allows, up to three.
    pub replication: Option<u16>,
    /// The largest record that new topics accept, in bytes.
    pub max_message_bytes: u32,
}

fn of_generation(name: &str, generation: u32) -> String {
    if generation > 1 { format!("{name}.g{generation}") } else { name.to_owned() }
}

/// Limits of one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchLimits {
    /// The most articles.
    pub articles: usize,
    /// The most bytes, as read.
    pub bytes: usize,
    /// How long a batch waits for more records after the first.
    pub linger: Duration,
}

/// A value that `Debug` does not show.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The value, for the client or server that needs it; never log it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// Properties that exactly-once depends on, or that have a setting of their own.
const OWNED: &[&str] = &[
    "acks",
    "allow.auto.create.topics",
    "auto.offset.reset",
    "client.id",
    // `Committed` is built from delivery reports, so none may be left out.
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

/// Aliases of properties in librdkafka's CONFIGURATION.md, each with the name that the clients set. If a client sets a property
/// under both names, hash-map order decides which value wins.
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

/// The name that the clients set a property by. librdkafka accepts topic properties with the prefix `topic.`, but some global
/// properties begin like that too (`topic.metadata.refresh.interval.ms`, `topic.blacklist`).
fn property_name(written: &str) -> &str {
    let is_topic_property = |rest: &&str| !rest.starts_with("metadata.") && *rest != "blacklist";
    let name = written.strip_prefix("topic.").filter(is_topic_property).unwrap_or(written);
    ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| name)
}

impl Bus {
    /// The settings of the same application in another generation, with that generation's groups and internal topics.
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
        let mode = choice("stage.mode", stage.mode.as_deref(), Mode::Routed)?;
        let workers = at_least_one("stage.workers", stage.workers, 1)?;
        let generation = at_least_one("stage.generation", stage.generation, 1)?;
        let group_protocol = stage.group_protocol.as_deref();
        let group_protocol = choice("stage.group_protocol", group_protocol, GroupProtocol::Classic)?;
        let millis = |key: &str, written: &Option<String>, default: u64| match written {
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
        let output = &settings.output;
        let value = choice("output.value", output.value.as_deref(), ValueForm::Envelope)?;
        let output_topics = choice("output.topics", output.topics.as_deref(), OutputTopics::Split)?;
        let batch = &settings.batch;
        let batch = BatchLimits {
            articles: at_least_one("batch.max_articles", batch.max_articles, 2000)? as usize,
            bytes: at_least_one("batch.max_bytes", batch.max_bytes, 8 << 20)?,
            linger: Duration::from_millis(batch.linger_ms.unwrap_or(20)),
        };
        let mut properties = BTreeMap::new();
        let mut written_keys = BTreeMap::new();
        for (key, value) in &settings.kafka {
            let (name, value) = property(key, value)?;
            if let Some(other) = written_keys.insert(name.clone(), key) {
                let both = format!("kafka.\"{other}\" and kafka.\"{key}\"");
                return Err(invalid(&both, "…", "these are two names of one property; remove one line"));
            }
            properties.insert(name, value);
        }
        login(&properties)?;
        Ok(Bus {
            app,
            generation,
            instance: name("stage.instance", instance)?,
            mode,
            workers,
            state: stage.state.clone().unwrap_or_else(|| PathBuf::from("state")),
            languages: languages(stage.languages.as_deref())?,
            broker_assigns: group_protocol == GroupProtocol::Consumer,
            static_membership: stage.static_membership.unwrap_or(false),
            transaction_timeout: millis("stage.transaction_timeout", &stage.transaction_timeout, 10_000)?,
            shutdown: millis("stage.shutdown", &stage.shutdown, 20_000)?,
            purge: stage.purge.unwrap_or(true),
            start,
            unreadable_after,
            topics: topics(&settings.topics, output_topics, generation)?,
            value,
            formats: registry::formats(settings)?,
            registry: registry::registry(&settings.registry)?,
            batch,
            retry: Retry::checked(&settings.retry)?,
            properties,
        })
    }
}

/// Refuses a mechanism that librdkafka is built without, or that needs tokens which nothing here fetches: the process would
/// start, and fail every login forever.
fn login(properties: &BTreeMap<String, Secret>) -> Result<(), ConfigError> {
    let Some(mechanism) = properties.get("sasl.mechanism") else { return Ok(()) };
    let mechanism = mechanism.reveal();
    if mechanism.eq_ignore_ascii_case("OAUTHBEARER") || mechanism.eq_ignore_ascii_case("GSSAPI") {
        let fix = "this build has no tokens (OIDC, AWS IAM) and no Kerberos; use SCRAM-SHA-512, SCRAM-SHA-256 or PLAIN, \
                   or a client certificate (ssl.certificate.location, ssl.key.location)";
        return Err(invalid("kafka.\"sasl.mechanism\"", mechanism, fix));
    }
    Ok(())
}

fn topics(
    written: &TopicSettings,
    output_topics: OutputTopics,
    generation: u32,
) -> Result<TopicNames, ConfigError> {
    let single = output_topics == OutputTopics::Single;
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

/// `und`, then the homes of the languages in `stage.languages`.
fn languages(written: Option<&[String]>) -> Result<Vec<Lang>, ConfigError> {
    let mut languages = vec![Lang::UND];
    for code in written.unwrap_or_default() {
        let home = language::find(code)
            .map(Language::home)
            .ok_or_else(|| invalid("stage.languages", code, "use the codes of `samestory languages`"))?;
        if languages.contains(&home) {
            let why = format!("{home}, the home of {code}, is listed twice; und is always first");
            return Err(ConfigError::Rejected { origin: "stage.languages".to_owned(), why });
        }
        languages.push(home);
    }
    Ok(languages)
}

/// A valid name of a topic, a group or a client.
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
        Some(value) if value == T::default() => Err(invalid(key, value, "use a number, at least 1")),
        value => Ok(value.unwrap_or(default)),
    }
}

fn property(key: &str, value: &Property) -> Result<(String, Secret), ConfigError> {
    let full = format!("kafka.\"{key}\"");
    let name = property_name(key);
    if OWNED.contains(&name) {
        return Err(invalid(&full, "…", "samestory sets this property itself; remove the line"));
    }
    Ok((name.to_owned(), resolve_secret(&full, value)?))
}

/// The value itself, or the content of the variable or file that it refers to.
pub(super) fn resolve_secret(key: &str, value: &Property) -> Result<Secret, ConfigError> {
    let value = match value {
        Property::Text(text) => text.clone(),
        Property::Number(number) => number.to_string(),
        Property::Flag(flag) => flag.to_string(),
        Property::Secret(SecretSource::Env(variable)) => std::env::var(variable)
            .map_err(|_| invalid(key, format!("env {variable}"), "set this environment variable"))?,
        Property::Secret(SecretSource::File(path)) => {
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
    fn properties_that_exactly_once_depends_on_are_refused() {
        for owned in OWNED {
            let refusal = refusal(&format!("[kafka]\n\"{owned}\" = \"x\""));
            assert!(refusal.contains(owned) && refusal.contains("remove the line"), "{refusal}");
        }
        let passed =
            config("[kafka]\n\"bootstrap.servers\" = \"k:9092\"\n\"socket.nagle.disable\" = true").unwrap();
        assert_eq!(passed.bus.properties["bootstrap.servers"].reveal(), "k:9092");
        assert_eq!(passed.bus.properties["socket.nagle.disable"].reveal(), "true");
    }

    // `config check` accepted OAUTHBEARER, and then every login failed, forever: nothing here fetches a token.
    #[test]
    fn a_login_that_this_build_cannot_perform_is_refused() {
        for (name, mechanism) in [
            ("sasl.mechanism", "OAUTHBEARER"),
            ("sasl.mechanisms", "oauthbearer"),
            ("sasl.mechanism", "GSSAPI"),
        ] {
            let refusal = refusal(&format!("[kafka]\n\"{name}\" = \"{mechanism}\""));
            assert!(refusal.contains(mechanism) && refusal.contains("SCRAM-SHA-512"), "{refusal}");
        }
        for mechanism in ["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"] {
            assert!(config(&format!("[kafka]\n\"sasl.mechanisms\" = \"{mechanism}\"")).is_ok());
        }
    }

    // Only the names in OWNED were refused. `topic.acks` and `delivery.timeout.ms` set the same properties in librdkafka, and
    // the value that came last out of a hash map won.
    #[test]
    fn an_alias_does_not_bypass_the_refusal() {
        let aliases = ALIASES.iter().filter(|(_, name)| OWNED.contains(name)).map(|(alias, _)| *alias);
        let prefixed: Vec<String> = OWNED.iter().map(|name| format!("topic.{name}")).collect();
        let all: Vec<&str> = aliases.chain(prefixed.iter().map(String::as_str)).collect();
        assert!(all.contains(&"request.required.acks") && all.contains(&"delivery.timeout.ms"));
        for name in all.into_iter().chain(["topic.request.required.acks"]) {
            let refusal = refusal(&format!("[kafka]\n\"{name}\" = \"x\""));
            assert!(refusal.contains(name) && refusal.contains("remove the line"), "{refusal}");
        }
    }

    // With `metadata.broker.list` set, the default of `bootstrap.servers` was set too, and either of the two won by chance.
    #[test]
    fn a_property_has_one_name_and_one_value() {
        let passed = config("[kafka]\n\"metadata.broker.list\" = \"k:9092\"").unwrap().bus.properties;
        assert_eq!(passed["bootstrap.servers"].reveal(), "k:9092");
        // The prefix `topic.` was stripped here too, and librdkafka refused the remaining name.
        let own = config("[kafka]\n\"topic.metadata.refresh.interval.ms\" = 5000").unwrap().bus.properties;
        assert_eq!(own["topic.metadata.refresh.interval.ms"].reveal(), "5000");
        let twice = refusal("[kafka]\n\"linger.ms\" = 5\n\"queue.buffering.max.ms\" = 7");
        assert!(twice.contains("linger.ms") && twice.contains("queue.buffering.max.ms"), "{twice}");
    }

    #[test]
    fn secrets_are_resolved_and_never_shown() {
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
    fn languages_are_und_and_then_the_listed_ones() {
        let languages = config("[stage]\nlanguages = [\"hi\", \"en\"]").unwrap().bus.languages;
        let codes: Vec<&str> = languages.iter().map(|lang| lang.code()).collect();
        assert_eq!(codes, ["und", "hi", "en"]);
        assert!(refusal("[stage]\nlanguages = [\"hi\", \"hi\"]").contains("listed twice"));
        assert!(
            refusal("[stage]\nlanguages = [\"no\", \"da\"]").contains("no, the home of da, is listed twice")
        );
        assert!(refusal("[stage]\nlanguages = [\"klingon\"]").contains("samestory languages"));
    }

    #[test]
    fn two_topics_cannot_have_one_name() {
        assert!(refusal("[topics]\nunique = \"articles.raw\"").contains("articles.raw"));
        assert!(refusal("[topics]\nraw = \"a b\"").contains("topics.raw = a b"));
        let single = config("[output]\ntopics = \"single\"").unwrap().bus.topics;
        assert_eq!(
            (single.unique.as_str(), single.near_duplicate.as_str()),
            ("samestory.tagged", "samestory.tagged")
        );
    }

    #[test]
    fn errors_name_key_value_and_fix() {
        assert_eq!(refusal("[stage]\nmode = \"sideways\""), "stage.mode = sideways: write routed or direct");
        assert!(refusal("[stage]\ngroup_protocol = \"new\"").contains("write classic or consumer"));
        assert!(refusal("[output]\ntopics = \"many\"").contains("write split or single"));
        assert!(refusal("[stage]\nworkers = 0").contains("stage.workers = 0"));
        assert!(refusal("[batch]\nmax_articles = 0").contains("batch.max_articles"));
        assert!(refusal("[input]\nstart = \"soon\"").contains("input.start = soon"));
        assert!(refusal("[input]\nunreadable_after = \"soon\"").contains("input.unreadable_after"));
        assert!(refusal("[output]\nvalue = \"xml\"").contains("output.value = xml"));
        assert!(refusal("[stage]\ntransaction_timeout = \"10\"").contains("stage.transaction_timeout"));
    }
}
