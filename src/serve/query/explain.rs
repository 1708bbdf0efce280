//! Explains a comparison: every measure of two texts, next to the threshold it is held against.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::answer::{FingerprintAnswer, InputAnswer};
use super::library::Library;
use crate::serve::problem::ProblemDetails;
use samestory_engine::engine::compare::Relation;
use samestory_engine::fingerprint::{Fingerprint, LANES, of_text};
use samestory_engine::index::{IndexScheme, PostingKind};
use samestory_engine::model::{ContentKind, Lang};
use samestory_engine::text;
use samestory_engine::text::language;
use samestory_engine::text::markup::ContentType;
use samestory_engine::text::passages::{Passage, common_passages};

/// The body of an explain request.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExplainRequest {
    /// The earlier text.
    pub(super) a: ExplainSide,
    /// The later text.
    pub(super) b: ExplainSide,
}

/// A stored article, or a text.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExplainSide {
    id: Option<String>,
    text: Option<String>,
    language: Option<String>,
    content_type: Option<String>,
}

impl ExplainRequest {
    pub(super) fn parse(body: &[u8]) -> Result<ExplainRequest, ProblemDetails> {
        let pair: ExplainRequest = serde_json::from_slice(body).map_err(|error| {
            ProblemDetails::bad_request(format!("{error}; write {{\"a\":{{\"id\":…}},\"b\":{{\"text\":…}}}}"))
        })?;
        if [&pair.a, &pair.b].iter().any(|side| side.id.is_some() == side.text.is_some()) {
            return Err(ProblemDetails::bad_request(
                "each of a and b is {\"id\":…} or {\"text\":…}, not both",
            ));
        }
        Ok(pair)
    }
}

impl ExplainSide {
    /// The article's id, if this side is a stored article.
    pub(super) fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }
}

/// Everything that was measured about two texts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Explanation {
    relation: &'static str,
    duplicate: bool,
    similarity: f64,
    lanes: EqualLanes,
    bands: SharedBands,
    containment: BothWays<f64>,
    numerals: Option<f64>,
    simhash_distance: u32,
    tokens: Sides<u32>,
    content_kinds: Sides<ContentKind>,
    languages: Sides<Lang>,
    thresholds: Thresholds,
    config: String,
    passages: Option<Vec<CommonPassage>>,
    /// Why there are no passages.
    passages_reason: Option<String>,
    /// Peers that did not answer.
    pub(super) unanswered: BTreeSet<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct EqualLanes {
    equal: u64,
    of: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct SharedBands {
    shared: usize,
    of: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct BothWays<T> {
    a_in_b: T,
    b_in_a: T,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Sides<T> {
    a: T,
    b: T,
}

/// The thresholds that the measures are compared with.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Thresholds {
    threshold: f64,
    coverage: f64,
    min_confidence: f64,
    hamming: u32,
    min_tokens: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct CommonPassage {
    a: [usize; 2],
    b: [usize; 2],
    tokens: usize,
    text: String,
}

/// One side, ready to be compared.
struct Comparable {
    language: Lang,
    fingerprint: Fingerprint,
    content_kind: ContentKind,
    /// The text without markup, or the reason why it is not available.
    plain: Result<String, String>,
}

impl Library {
    /// Compares the two sides. `known` holds the answers to `Question::Fingerprint` for sides that
    /// are stored articles.
    pub(super) fn explain(
        &self,
        pair: ExplainRequest,
        known: [Option<&FingerprintAnswer>; 2],
    ) -> Result<Explanation, ProblemDetails> {
        let (a, b) = (self.comparable(pair.a, known[0])?, self.comparable(pair.b, known[1])?);
        let language = b.language;
        let settings = self.dedup.engine().settings_for(language);
        let mut pair = settings.compare_alone(&a.fingerprint, &b.fingerprint);
        if a.language != b.language {
            pair.relation = Relation::Different;
        }
        let posting = self.config.postings.for_language(language);
        let bands = |fingerprint: &Fingerprint| {
            let keys = posting.keys(fingerprint).into_iter();
            keys.filter(|&key| IndexScheme::kind(key) == PostingKind::MinHash).collect::<Vec<_>>()
        };
        let (in_a, in_b) = (bands(&a.fingerprint), bands(&b.fingerprint));
        let shared = in_a.iter().filter(|key| in_b.contains(key)).count();
        let (passages, reason) = match (&a.plain, &b.plain) {
            (Ok(old), Ok(new)) => {
                let found = common_passages(old, new, language::row(language));
                let passage = |passage: Passage| CommonPassage {
                    a: [passage.a.start, passage.a.end],
                    b: [passage.b.start, passage.b.end],
                    tokens: passage.tokens,
                    text: new[passage.b].to_owned(),
                };
                (Some(found.into_iter().map(passage).collect()), None)
            }
            (Err(why), _) | (_, Err(why)) => (None, Some(why.clone())),
        };
        let rules = &settings.rules;
        Ok(Explanation {
            relation: pair.relation.as_str(),
            duplicate: pair.relation.is_duplicate(),
            similarity: round(pair.similarity),
            lanes: EqualLanes { equal: (pair.similarity * LANES as f64).round() as u64, of: LANES },
            bands: SharedBands { shared, of: in_b.len() },
            containment: BothWays { a_in_b: round(pair.containment_of_old), b_in_a: round(pair.containment) },
            numerals: pair.numerals.map(round),
            simhash_distance: pair.distance,
            tokens: Sides { a: a.fingerprint.tokens, b: b.fingerprint.tokens },
            content_kinds: Sides { a: a.content_kind, b: b.content_kind },
            languages: Sides { a: a.language, b: b.language },
            thresholds: Thresholds {
                threshold: rules.threshold,
                coverage: rules.containment_threshold,
                min_confidence: rules.min_confidence,
                hamming: settings.hamming,
                min_tokens: rules.min_tokens,
            },
            config: format!("{:08x}", self.config.engine.config),
            passages,
            passages_reason: reason,
            unanswered: BTreeSet::new(),
        })
    }

    fn comparable(
        &self,
        side: ExplainSide,
        known: Option<&FingerprintAnswer>,
    ) -> Result<Comparable, ProblemDetails> {
        if let Some(known) = known {
            return from_answer(known).ok_or_else(ProblemDetails::internal);
        }
        let ExplainSide { text, language, content_type, .. } = side;
        let body = text.unwrap_or_default();
        let content_type = content_type.as_deref().and_then(ContentType::parse);
        let too_large = |error: text::Oversized| ProblemDetails::bad_request(error.to_string());
        let options = &self.config.text;
        let text = text::prepare(&body, content_type, language.as_deref(), options).map_err(too_large)?;
        let plain = text::plain(&body, content_type, options).map_err(too_large)?;
        let fingerprint = of_text(&text, self.dedup.preparer().config());
        Ok(Comparable {
            language: text.language.home,
            content_kind: text.content_kind(fingerprint.tokens),
            fingerprint,
            plain: Ok(plain.into_owned()),
        })
    }
}

/// One side from the answer to a fingerprint question, of this process or a peer.
fn from_answer(known: &FingerprintAnswer) -> Option<Comparable> {
    let position = match &known.input {
        InputAnswer::Topic { topic, partition, offset } => {
            format!("{topic}, partition {partition}, offset {offset}")
        }
        InputAnswer::File { file, line } => format!("{file}, line {line}"),
    };
    Some(Comparable {
        language: known.language,
        content_kind: known.content_kind,
        fingerprint: Fingerprint::decode(&hex::decode(&known.fingerprint).ok()?).ok()?,
        plain: Err(format!("the text of \"{}\" is not stored; it was read at {position}", known.id)),
    })
}

fn round(fraction: f64) -> f64 {
    (fraction * 10_000.0).round() / 10_000.0
}
