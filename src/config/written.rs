//! Settings as written: one struct per table of the TOML file, with an `Option` per key. serde refuses unknown keys and wrong
//! types here; [`Config`](super::Config) fills in defaults and checks values.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;

/// All settings as written; an absent key is `None`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// `[input]`: how articles are read.
    pub input: InputSettings,
    /// `[text]`: how text is normalised.
    pub text: TextSettings,
    /// `[language]`: which language decides an article's home.
    pub language: PlacementSettings,
    /// `[match]`: when two texts are duplicates.
    #[serde(rename = "match")]
    pub matching: MatchSettings,
    /// `[lsh]`: which texts are compared.
    pub lsh: LshSettings,
    /// `[clusters]`: which article is canonical.
    pub clusters: ClusterSettings,
    /// `[review]`: which verdicts are flagged for review.
    pub review: ReviewSettings,
    /// `[output]`: what is published.
    pub output: OutputSettings,
    /// `[envelope]`: the article inside a published value.
    pub envelope: EnvelopeSettings,
    /// `[registry]`: the schema registry.
    pub registry: RegistrySettings,
    /// `[languages.<code>]`: overrides for one language.
    pub languages: BTreeMap<String, MatchSettings>,
    /// `[stage]`: how `samestory run` works.
    pub stage: StageSettings,
    /// `[retry]`: how `samestory run` repeats what has failed.
    pub retry: RetrySettings,
    /// `[store]`
    pub store: StoreSettings,
    /// `[topics]`: names and layout of topics.
    pub topics: TopicSettings,
    /// `[batch]`: limits of one transaction.
    pub batch: BatchSettings,
    /// `[http]`: the HTTP endpoints.
    pub http: HttpSettings,
    /// `[metrics]`: what is measured beside the work itself.
    pub metrics: MetricsSettings,
    /// `[webhook]`: delivery of verdicts over HTTP.
    pub webhook: WebhookSettings,
    /// `[kafka]`: librdkafka properties under the names of its manual.
    pub kafka: BTreeMap<String, Property>,
}

impl Settings {
    /// Replaces references to secrets by a placeholder, to check settings on a machine that does not have the secrets.
    pub fn without_secrets(mut self) -> Settings {
        // An address must look like one.
        if matches!(self.webhook.url, Some(Property::Secret(_))) {
            self.webhook.url = Some(Property::Text("https://not-resolved.example".into()));
        }
        let registry = self.registry.password.as_mut().into_iter().chain(self.registry.token.as_mut());
        let secrets = self.kafka.values_mut().chain(self.http.token.as_mut()).chain(registry);
        let secrets = secrets.chain(self.webhook.secret.as_mut());
        for value in secrets.filter(|value| matches!(value, Property::Secret(_))) {
            *value = Property::Text("not resolved".into());
        }
        self
    }
}

/// `[input]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct InputSettings {
    /// Field name → paths in the crawler's articles.
    pub fields: BTreeMap<String, Paths>,
    /// How far an article's time may be ahead of the log's clock.
    #[serde(alias = "skew")]
    pub max_clock_skew: Option<String>,
    /// `keep` or `refuse`: an update without a text.
    pub empty_update: Option<String>,
    /// Owner of an id: `none`, `host` or `header:NAME`.
    pub owner: Option<String>,
    /// Where to start reading without a committed offset: `earliest`, `latest` or a time.
    pub start: Option<String>,
    /// `auto`, `json` or `avro`.
    pub format: Option<String>,
    /// How long to retry an unreadable batch before skipping it, or `never`.
    pub unreadable_after: Option<String>,
}

/// One path, or several in order of preference.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Paths {
    /// A single path.
    One(String),
    /// Paths in order of preference.
    Several(Vec<String>),
}

impl Paths {
    /// The paths in order of preference.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let paths = match self {
            Paths::One(path) => std::slice::from_ref(path),
            Paths::Several(paths) => paths,
        };
        paths.iter().map(String::as_str)
    }
}

/// `[text]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TextSettings {
    /// The longest body that is parsed, in bytes with markup.
    pub max_raw_bytes: Option<usize>,
    /// The longest text that is judged, in bytes without markup.
    pub max_bytes: Option<usize>,
    /// Fold look-alike characters of different scripts (UTS #39).
    pub skeleton: Option<bool>,
    /// Fold accents of Latin letters.
    pub fold_accents: Option<bool>,
    /// Fold Serbian Cyrillic to Latin.
    pub fold_serbian: Option<bool>,
    /// Fold traditional Chinese to simplified.
    pub fold_han: Option<bool>,
}

/// `[match.weights]`, as `make fit` writes it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WeightSettings {
    /// Log-odds of a pair before any measure.
    pub prior: Option<f64>,
    /// Measures whose curve replaces the built-in one.
    pub measures: BTreeMap<String, CurveSettings>,
}

/// `[match.weights.measures.<name>]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CurveSettings {
    /// Increase of the log-odds between the knots 0, 0.2, 0.4, 0.6, 0.8 and 1.
    pub steps: [f64; 5],
    /// The value that contributes nothing.
    pub neutral: f64,
}

/// `[language]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PlacementSettings {
    /// `text` or `declared`.
    pub trust: Option<String>,
}

/// `[match]` and `[languages.<code>]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MatchSettings {
    /// Similarity at which texts are mostly the same wording.
    pub threshold: Option<f64>,
    /// Containment at which a text is a part of another.
    #[serde(alias = "coverage")]
    pub containment_threshold: Option<f64>,
    /// Confidence at which an article is a duplicate.
    pub min_confidence: Option<f64>,
    /// Texts with fewer tokens are flagged as short, and are never copies under unrelated headlines.
    pub min_tokens: Option<u32>,
    /// Texts with fewer tokens are page furniture once they appear under several unrelated headlines.
    pub wall_tokens: Option<u32>,
    /// Weights of the evidence that replace the built-in ones.
    pub weights: Option<WeightSettings>,
    /// `combined`, `minhash`, `simhash128` or `simhash64`.
    pub algorithm: Option<String>,
    /// The most bits in which two SimHashes that agree may differ.
    pub hamming: Option<u32>,
    /// Similarity to the cluster's canonical that a member needs.
    #[serde(alias = "floor")]
    pub cluster_threshold: Option<f64>,
    /// How long an article is remembered after it was last seen, or `forever`.
    pub retention: Option<String>,
    /// How texts are cut into shingles, in place of the language table.
    pub shingle: Option<ShingleSettings>,
}

/// `shingle`: one of these keys.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ShingleSettings {
    /// Words per shingle.
    Words(usize),
    /// Letters and digits per shingle.
    Characters(usize),
    /// A tokeniser by name.
    Tokenizer(String),
}

/// `[lsh]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LshSettings {
    /// Fraction of pairs at the threshold that bands must find.
    pub recall: Option<f64>,
    /// Number of bands; overrides `recall` together with `rows`.
    pub bands: Option<u16>,
    /// Rows per band; overrides `recall` together with `bands`.
    pub rows: Option<u16>,
    /// The most documents of one bucket that are examined.
    pub max_bucket: Option<usize>,
}

/// `[clusters]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClusterSettings {
    /// `first-seen`, `first-published`, `newest` or `longest`.
    pub canonical: Option<String>,
    /// Publication times earlier than this before the fetch are ignored.
    pub published_within: Option<String>,
}

/// `[review]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReviewSettings {
    /// Duplicates with a confidence in this range are flagged.
    pub between: Option<[f64; 2]>,
}

/// `[output]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OutputSettings {
    /// Articles before this event time update the state but are not published.
    pub publish_from: Option<String>,
    /// True if verdicts carry their evidence.
    pub evidence: Option<bool>,
    /// `split` or `single`.
    pub topics: Option<String>,
    /// `envelope` or `passthrough`.
    pub value: Option<String>,
    /// `json` or `avro`.
    pub format: Option<String>,
}

/// `[envelope]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EnvelopeSettings {
    /// `mapped` or `original`.
    pub article: Option<String>,
}

/// `[registry]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RegistrySettings {
    /// Its URL.
    pub url: Option<String>,
    /// User name for basic authentication.
    pub username: Option<String>,
    /// Password for basic authentication.
    pub password: Option<Property>,
    /// Bearer token, instead of user name and password.
    pub token: Option<Property>,
    /// CA certificates that the registry's certificate is verified against.
    pub ca: Option<PathBuf>,
    /// Timeout of one request.
    pub timeout: Option<String>,
    /// The largest response, in bytes.
    pub max_bytes: Option<u64>,
    /// How many schemas are cached.
    pub cache: Option<usize>,
    /// How long a missing schema is not requested again.
    pub negative_cache: Option<String>,
    /// True if `samestory run` registers the output schemas.
    pub auto_register: Option<bool>,
}

/// `[stage]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StageSettings {
    /// Prefix of consumer groups, client ids and transactional ids.
    pub app: Option<String>,
    /// State generation.
    pub generation: Option<u32>,
    /// Name of this process within the application.
    pub instance: Option<String>,
    /// `routed` or `direct`.
    pub mode: Option<String>,
    /// Threads per role.
    pub workers: Option<u16>,
    /// Directory of the state.
    pub state: Option<PathBuf>,
    /// Order in which languages are spread over partitions.
    pub languages: Option<Vec<String>>,
    /// `classic` or `consumer`.
    pub group_protocol: Option<String>,
    /// Keep partitions assigned through a restart that is shorter than the session timeout.
    pub static_membership: Option<bool>,
    /// The broker aborts a transaction that takes longer.
    pub transaction_timeout: Option<String>,
    /// How long a shutdown may take.
    pub shutdown: Option<String>,
    /// True if routed records are deleted after match has committed them.
    pub purge: Option<bool>,
}

/// `[retry]`: each pair is the first and the longest pause.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RetrySettings {
    /// While no broker answers.
    pub broker: Option<Vec<String>>,
    /// Between attempts to take a partition over.
    pub takeover: Option<String>,
    /// While the schema registry does not answer.
    pub registry: Option<Vec<String>>,
    /// Between attempts of an aborted batch.
    pub transaction: Option<Vec<String>>,
    /// Aborts in a row that are retried before the worker restarts.
    pub transaction_retries: Option<u32>,
    /// Between restarts of a worker.
    pub worker: Option<Vec<String>>,
    /// Restarts in a row before the process exits.
    pub worker_restarts: Option<u32>,
    /// Between attempts to open a store again.
    pub store: Option<Vec<String>>,
    /// Store failures in a row that are retried before the process exits.
    pub store_retries: Option<u32>,
}

/// `[store]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StoreSettings {
    /// Bytes of memory that all stores share.
    pub memory: Option<usize>,
}

/// `[topics]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TopicSettings {
    /// Topic that crawlers write to.
    pub raw: Option<String>,
    /// Internal topic from route to match.
    pub routed: Option<String>,
    /// Topic for articles whose text is new.
    pub unique: Option<String>,
    /// Topic for near and exact duplicates.
    pub near_duplicate: Option<String>,
    /// Topic for all articles, where `output.topics` is `single`.
    pub tagged: Option<String>,
    /// Topic for the current state of clusters.
    pub clusters: Option<String>,
    /// Internal topic: the state's write-ahead log.
    pub changelog: Option<String>,
    /// Topic for records that could not be judged.
    pub dead_letter: Option<String>,
    /// Topic for generation-end records.
    pub generations: Option<String>,
    /// Partitions of a new routed topic and changelog.
    pub partitions: Option<u16>,
    /// Partitions of new output topics.
    pub output_partitions: Option<u16>,
    /// Replicas of new topics.
    pub replication: Option<u16>,
    /// The largest record, in bytes.
    pub max_message_bytes: Option<u32>,
}

/// `[batch]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BatchSettings {
    /// The most articles.
    pub max_articles: Option<u32>,
    /// The most bytes.
    pub max_bytes: Option<usize>,
    /// How long a batch waits for more records, in milliseconds.
    pub linger_ms: Option<u64>,
}

/// `[http]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpSettings {
    /// Address of health, readiness and metrics, or `off`.
    pub listen: Option<String>,
    /// Address of the query API, or `off`.
    pub query: Option<String>,
    /// Bearer token that every query must send.
    pub token: Option<Property>,
    /// Host names that the query API accepts.
    pub hosts: Option<Paths>,
    /// Query addresses of the other processes of the stage.
    pub peers: Option<Paths>,
    /// How long to wait for peers.
    pub peer_timeout: Option<String>,
}

/// `[metrics]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MetricsSettings {
    /// A file of articles that people have judged.
    pub judged: Option<PathBuf>,
}

/// `[webhook]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WebhookSettings {
    /// Where events are sent.
    pub url: Option<Property>,
    /// Which events are sent.
    pub events: Option<Vec<String>>,
    /// Key of the signature.
    pub secret: Option<Property>,
    /// The most events in one request.
    pub batch: Option<usize>,
    /// How long a request waits for more events after the first.
    pub linger: Option<String>,
    /// How long one attempt may take.
    pub timeout: Option<String>,
    /// How often a request is repeated before its events become dead letters.
    pub retries: Option<u32>,
    /// The first and the longest pause between attempts.
    pub backoff: Option<Vec<String>>,
    /// `json` or `slack`.
    pub format: Option<String>,
    /// A file, or `topic:NAME`.
    pub dead_letters: Option<String>,
    /// `earliest` or `latest`.
    pub start: Option<String>,
    /// CA certificates that the server's certificate is verified against.
    pub ca: Option<PathBuf>,
}

/// A value that may be secret: the value itself, or where it is kept.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
pub enum Property {
    /// A string.
    Text(String),
    /// An integer.
    Number(i64),
    /// A boolean.
    Flag(bool),
    /// A reference, which keeps the secret out of the settings.
    Secret(SecretSource),
}

/// Where a secret is kept.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
pub enum SecretSource {
    /// In this environment variable.
    Env(String),
    /// In this file.
    File(PathBuf),
}

impl fmt::Debug for Property {
    /// Hides the value, which may be a secret written in plain text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}
