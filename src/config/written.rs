//! The settings file, exactly as written. Unknown keys are refused; whether the values make sense is decided in
//! [`super`].

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;

/// The file, exactly as written. Unknown keys are refused.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// `[input]`: what comes in.
    pub input: InputSettings,
    /// `[text]`: from article to normalised text.
    pub text: TextSettings,
    /// `[language]`: where an article lives.
    pub language: PlacementSettings,
    /// `[match]`: when two texts count as the same.
    #[serde(rename = "match")]
    pub matching: MatchSettings,
    /// `[lsh]`: which texts are looked at together.
    pub lsh: LshSettings,
    /// `[clusters]`: who stands for whom.
    pub clusters: ClusterSettings,
    /// `[review]`: which verdicts people look at.
    pub review: ReviewSettings,
    /// `[output]`: what goes out.
    pub output: OutputSettings,
    /// `[envelope]`: what goes out around the article.
    pub envelope: EnvelopeSettings,
    /// `[registry]`: where schemas are kept.
    pub registry: RegistrySettings,
    /// `[languages.<code>]`: what differs for a language.
    pub languages: BTreeMap<String, MatchSettings>,
    /// `[stage]`: how the program runs on the bus.
    pub stage: StageSettings,
    /// `[topics]`: what the topics are called.
    pub topics: TopicSettings,
    /// `[batch]`: what is committed together.
    pub batch: BatchSettings,
    /// `[http]`: where the stage is asked how it is.
    pub http: HttpSettings,
    /// `[kafka]`: properties of the client library, as its manual names them.
    pub kafka: BTreeMap<String, Property>,
}

impl Settings {
    /// The same, with nothing in place of what is kept elsewhere: for looking at settings where the secrets are not.
    pub fn without_secrets(mut self) -> Settings {
        let registry = self.registry.password.as_mut().into_iter().chain(self.registry.token.as_mut());
        let secrets = self.kafka.values_mut().chain(self.http.token.as_mut()).chain(registry);
        for value in secrets.filter(|value| matches!(value, Property::Kept(_))) {
            *value = Property::Text("not looked for".into());
        }
        self
    }
}

/// `[input]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct InputSettings {
    /// Our field names → paths in the crawler's articles.
    pub fields: BTreeMap<String, Paths>,
    /// How far an article's time may lie ahead of its record's.
    pub skew: Option<String>,
    /// What becomes of an update without a text.
    pub empty_update: Option<String>,
    /// Who may write about an id: `none`, `host` or `header:NAME`.
    pub owner: Option<String>,
    /// Where a topic that was never read is read from.
    pub start: Option<String>,
    /// `auto`, `json` or `avro`.
    pub format: Option<String>,
    /// How long a batch that cannot be read is tried before it is skipped, or `never`.
    pub unreadable_after: Option<String>,
}

/// One path, or several in order of preference.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Paths {
    /// One.
    One(String),
    /// Several.
    Several(Vec<String>),
}

impl Paths {
    /// In order of preference.
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
    /// The longest body that is parsed, in bytes.
    pub max_raw_bytes: Option<usize>,
    /// The longest text that is looked at, in bytes.
    pub max_bytes: Option<usize>,
    /// Merge look-alike characters (UTS #39).
    pub skeleton: Option<bool>,
    /// Drop the accents of Latin letters.
    pub fold_accents: Option<bool>,
    /// Read Serbian in Latin letters.
    pub fold_serbian: Option<bool>,
    /// Read Chinese in simplified characters.
    pub fold_han: Option<bool>,
}

/// `[match.weights]`: what `make fit` writes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WeightSettings {
    /// Log-odds of a pair of which nothing is known.
    pub prior: Option<f64>,
    /// A curve for each measure that is weighed in another way.
    pub measures: BTreeMap<String, CurveSettings>,
}

/// `[match.weights.measures.<name>]`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CurveSettings {
    /// What is gained from one knot to the next: 0, 0.2, 0.4, 0.6, 0.8, 1.
    pub steps: [f64; 5],
    /// The share that contributes nothing.
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
    /// Similarity from which on texts are near-duplicates.
    pub threshold: Option<f64>,
    /// Share of a text that must be in another to be a part of it.
    pub coverage: Option<f64>,
    /// Confidence from which on an article is a duplicate.
    pub min_confidence: Option<f64>,
    /// Texts with fewer tokens are short: flagged, and never a copy under an unrelated headline.
    pub min_tokens: Option<u32>,
    /// Texts with fewer tokens are page furniture if they appear under several unrelated headlines.
    pub wall_tokens: Option<u32>,
    /// Weights of the evidence other than those that come with the program.
    pub weights: Option<WeightSettings>,
    /// What finds and verifies.
    pub algorithm: Option<String>,
    /// SimHashes that differ in at most so many bits agree.
    pub hamming: Option<u32>,
    /// Similarity to a cluster's canonical that its members need.
    pub floor: Option<f64>,
    /// How long an article is remembered after it was last seen.
    pub retention: Option<String>,
}

/// `[lsh]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LshSettings {
    /// Share of pairs at the threshold that bands must find.
    pub recall: Option<f64>,
    /// Bands, if chosen by hand.
    pub bands: Option<u16>,
    /// Rows, if chosen by hand.
    pub rows: Option<u16>,
    /// Documents of a bucket that are examined at most.
    pub max_bucket: Option<usize>,
}

/// `[clusters]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClusterSettings {
    /// Which member stands for a cluster.
    pub canonical: Option<String>,
    /// How long before it was fetched an article may have been published to be believed.
    pub published_within: Option<String>,
}

/// `[review]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReviewSettings {
    /// Verdicts with a confidence in here are flagged.
    pub between: Option<[f64; 2]>,
}

/// `[output]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OutputSettings {
    /// Articles from before this time change state and are not published.
    pub publish_from: Option<String>,
    /// Whether verdicts carry what speaks for and against them.
    pub evidence: Option<bool>,
    /// One topic for all verdicts, or one for each kind.
    pub topics: Option<String>,
    /// The article inside an envelope, or its bytes untouched.
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
    /// Where it is.
    pub url: Option<String>,
    /// Basic authentication: the name.
    pub username: Option<String>,
    /// Basic authentication: the password.
    pub password: Option<Property>,
    /// A bearer token.
    pub token: Option<Property>,
    /// A file of certificates that its own must lead to.
    pub ca: Option<PathBuf>,
    /// How long one question may take.
    pub timeout: Option<String>,
    /// The largest answer, in bytes.
    pub max_bytes: Option<u64>,
    /// How many schemas are remembered.
    pub cache: Option<usize>,
    /// How long a schema that is not there is not asked for again.
    pub negative_cache: Option<String>,
    /// Whether `run` registers our schemas by itself.
    pub auto_register: Option<bool>,
}

/// `[stage]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StageSettings {
    /// Names groups, clients and transactions.
    pub app: Option<String>,
    /// Which making of the state this is.
    pub generation: Option<u32>,
    /// Tells the processes of one application apart.
    pub instance: Option<String>,
    /// `routed` or `direct`.
    pub mode: Option<String>,
    /// Threads of each role.
    pub workers: Option<u16>,
    /// Where state is kept.
    pub state: Option<PathBuf>,
    /// Languages in the order that spreads them over partitions.
    pub languages: Option<Vec<String>>,
    /// `classic` or `consumer`.
    pub group_protocol: Option<String>,
    /// Keep partitions through a restart that is shorter than the session timeout.
    pub static_membership: Option<bool>,
    /// A transaction that takes longer is aborted by the broker.
    pub transaction_timeout: Option<String>,
    /// How long a stop may take.
    pub shutdown: Option<String>,
    /// Whether routed records that are done with are deleted.
    pub purge: Option<bool>,
}

/// `[topics]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TopicSettings {
    /// Where crawlers write.
    pub raw: Option<String>,
    /// From route to match.
    pub routed: Option<String>,
    /// Articles whose text is new.
    pub unique: Option<String>,
    /// Near and exact duplicates.
    pub near_duplicate: Option<String>,
    /// All of them, where `output.topics` is `single`.
    pub tagged: Option<String>,
    /// The clusters as they are now.
    pub clusters: Option<String>,
    /// The state's write-ahead log.
    pub changelog: Option<String>,
    /// What could not be judged.
    pub dead_letter: Option<String>,
    /// Where each generation that has ended says how far it has published.
    pub generations: Option<String>,
    /// Partitions of the routed topic and the changelog, when they are made.
    pub partitions: Option<u16>,
    /// Partitions of the topics that others read, when they are made.
    pub output_partitions: Option<u16>,
    /// Copies of each, when they are made.
    pub replication: Option<u16>,
    /// The largest record, in bytes.
    pub max_message_bytes: Option<u32>,
}

/// `[batch]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BatchSettings {
    /// Articles at most.
    pub max_articles: Option<u32>,
    /// Bytes at most.
    pub max_bytes: Option<usize>,
    /// How long to wait for more.
    pub linger_ms: Option<u64>,
}

/// `[http]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpSettings {
    /// Where health, readiness and metrics are served, or `off`.
    pub listen: Option<String>,
    /// Where questions to the state are answered, or `off`.
    pub query: Option<String>,
    /// Who asks must have it.
    pub token: Option<Property>,
    /// Names that the query API goes by.
    pub hosts: Option<Paths>,
    /// The other processes, which hold what this one does not.
    pub peers: Option<Paths>,
    /// How long a peer may take to answer.
    pub peer_timeout: Option<String>,
}

/// A property of the client library: the value, or where it is kept.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
pub enum Property {
    /// A text.
    Text(String),
    /// A number.
    Number(i64),
    /// Yes or no.
    Flag(bool),
    /// Elsewhere, because it is secret.
    Kept(Kept),
}

/// Where a secret is kept.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
pub enum Kept {
    /// In this environment variable.
    Env(String),
    /// In this file.
    File(PathBuf),
}

impl fmt::Debug for Property {
    /// A value may be a secret, whoever wrote it here.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}
