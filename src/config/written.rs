//! The settings file, exactly as written. Unknown keys are refused; whether the values make sense is decided in
//! [`super`].

use std::collections::BTreeMap;

use serde::Deserialize;

/// The file, exactly as written. Unknown keys are refused.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// `[input]`: what comes in.
    pub input: InputSettings,
    /// `[text]`: from article to canonical text.
    pub text: TextSettings,
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
    /// `[languages.<code>]`: what differs for a language.
    pub languages: BTreeMap<String, MatchSettings>,
}

/// `[input]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct InputSettings {
    /// Our field names → paths in the crawler's articles.
    pub fields: BTreeMap<String, Paths>,
    /// How far an article's time may lie ahead of its record's.
    pub skew: Option<String>,
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
    /// The longest text that is looked at, in bytes.
    pub max_bytes: Option<usize>,
    /// Merge look-alike characters (UTS #39).
    pub skeleton: Option<bool>,
}

/// `[match]` and `[languages.<code>]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MatchSettings {
    /// Similarity from which on texts are near-duplicates.
    pub threshold: Option<f64>,
    /// Share of a text that must be in another to be a part of it.
    pub coverage: Option<f64>,
    /// Similarity from which on texts with the same words and numbers are near-duplicates too.
    pub rewritten: Option<f64>,
    /// Shingles that a page may add to an article and still be that article.
    pub furniture: Option<u32>,
    /// Texts with fewer tokens are copies only as a whole.
    pub min_tokens: Option<u32>,
    /// Texts with fewer tokens are compared word for word only.
    pub brief: Option<u32>,
    /// Distinct numbers both texts must have for the numerals guard to speak.
    pub numerals: Option<u32>,
    /// Share of numbers below which the guard calls it the same template.
    pub numerals_share: Option<f64>,
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
    /// Share of pairs at the threshold that must be found.
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
}
