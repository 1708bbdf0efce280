//! Results of the engine as immutable Python objects.

use pyo3::prelude::*;
use samestory_engine as engine;

/// The verdict on an article that was inserted.
#[pyclass(frozen, get_all, module = "samestory")]
#[derive(Clone)]
pub(crate) struct Verdict {
    id: String,
    verdict: &'static str,
    match_type: Option<&'static str>,
    duplicate_of: Option<String>,
    similarity: f64,
    containment: f64,
    confidence: f64,
    cluster_id: String,
    canonical_id: String,
    revision: u32,
    language: String,
    content_kind: &'static str,
    flags: Vec<&'static str>,
}

impl From<engine::Verdict> for Verdict {
    fn from(verdict: engine::Verdict) -> Verdict {
        Verdict {
            id: verdict.id.to_string(),
            verdict: verdict.kind.as_str(),
            match_type: verdict.match_type.map(|kind| kind.as_str()),
            duplicate_of: verdict.duplicate_of.map(|id| id.to_string()),
            similarity: verdict.similarity.get(),
            containment: verdict.containment.get(),
            confidence: verdict.confidence.get(),
            cluster_id: verdict.cluster.to_string(),
            canonical_id: verdict.canonical_id.to_string(),
            revision: verdict.revision,
            language: verdict.language.to_string(),
            content_kind: verdict.content_kind.as_str(),
            flags: verdict.flags.into_iter().map(|flag| flag.as_str()).collect(),
        }
    }
}

#[pymethods]
impl Verdict {
    /// True if the article repeats another one.
    #[getter]
    fn is_duplicate(&self) -> bool {
        self.duplicate_of.is_some()
    }

    fn __repr__(&self) -> String {
        repr(
            "Verdict",
            Some(&self.id),
            self.verdict,
            self.match_type,
            self.duplicate_of.as_deref(),
            self.confidence,
        )
    }
}

/// The verdict that a text would get if it were inserted now.
#[pyclass(frozen, get_all, module = "samestory")]
pub(crate) struct Answer {
    verdict: &'static str,
    match_type: Option<&'static str>,
    duplicate_of: Option<String>,
    similarity: f64,
    containment: f64,
    confidence: f64,
    content_kind: &'static str,
}

impl From<engine::Answer> for Answer {
    fn from(answer: engine::Answer) -> Answer {
        Answer {
            verdict: answer.kind.as_str(),
            match_type: answer.match_type.map(|kind| kind.as_str()),
            duplicate_of: answer.duplicate_of.map(|id| id.to_string()),
            similarity: answer.similarity.get(),
            containment: answer.containment.get(),
            confidence: answer.confidence.get(),
            content_kind: answer.content_kind.as_str(),
        }
    }
}

#[pymethods]
impl Answer {
    /// True if the text repeats an article.
    #[getter]
    fn is_duplicate(&self) -> bool {
        self.duplicate_of.is_some()
    }

    fn __repr__(&self) -> String {
        repr("Answer", None, self.verdict, self.match_type, self.duplicate_of.as_deref(), self.confidence)
    }
}

/// An indexed article that resembles a text.
#[pyclass(frozen, get_all, module = "samestory")]
pub(crate) struct Similar {
    id: String,
    title: Option<String>,
    host: Option<String>,
    similarity: f64,
    relation: &'static str,
}

impl From<engine::Similar> for Similar {
    fn from(similar: engine::Similar) -> Similar {
        Similar {
            id: similar.id.to_string(),
            title: similar.title,
            host: similar.host,
            similarity: similar.similarity.get(),
            relation: similar.relation.as_str(),
        }
    }
}

#[pymethods]
impl Similar {
    fn __repr__(&self) -> String {
        format!("Similar(id={:?}, relation={:?}, similarity={:.3})", self.id, self.relation, self.similarity)
    }
}

/// How two texts are related.
#[pyclass(frozen, get_all, module = "samestory")]
pub(crate) struct Comparison {
    relation: &'static str,
    is_duplicate: bool,
    similarity: f64,
    containment: f64,
    confidence: f64,
}

impl From<engine::Comparison> for Comparison {
    fn from(comparison: engine::Comparison) -> Comparison {
        Comparison {
            relation: comparison.relation.as_str(),
            is_duplicate: comparison.relation.is_duplicate(),
            similarity: comparison.similarity,
            containment: comparison.containment,
            confidence: comparison.confidence.get(),
        }
    }
}

#[pymethods]
impl Comparison {
    fn __repr__(&self) -> String {
        format!(
            "Comparison(relation={:?}, similarity={:.3}, confidence={:.3})",
            self.relation, self.similarity, self.confidence
        )
    }
}

/// The parts of a text that are compared.
#[pyclass(frozen, get_all, module = "samestory")]
pub(crate) struct Fingerprint {
    language: String,
    content_hash: String,
    simhash128: String,
    simhash64: String,
    minhash: Vec<u16>,
    tokens: u32,
    shingles: u32,
}

impl Fingerprint {
    pub(crate) fn new(language: engine::Lang, print: &engine::Fingerprint) -> Fingerprint {
        Fingerprint {
            language: language.to_string(),
            content_hash: format!("{:032x}", print.content),
            simhash128: format!("{:032x}", print.simhash),
            simhash64: format!("{:016x}", print.simhash64()),
            minhash: print.minhash.to_vec(),
            tokens: print.tokens,
            shingles: print.shingles,
        }
    }
}

#[pymethods]
impl Fingerprint {
    fn __repr__(&self) -> String {
        format!(
            "Fingerprint(language={:?}, content_hash={:?}, tokens={})",
            self.language, self.content_hash, self.tokens
        )
    }
}

fn repr(
    class: &str,
    id: Option<&str>,
    verdict: &str,
    match_type: Option<&str>,
    duplicate_of: Option<&str>,
    confidence: f64,
) -> String {
    let id = id.map(|id| format!("id={id:?}, ")).unwrap_or_default();
    match (match_type, duplicate_of) {
        (Some(kind), Some(of)) => format!(
            "{class}({id}verdict={verdict:?}, match_type={kind:?}, duplicate_of={of:?}, confidence={confidence:.3})"
        ),
        _ => format!("{class}({id}verdict={verdict:?})"),
    }
}
