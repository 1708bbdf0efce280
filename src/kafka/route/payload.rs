//! The bytes that represent the article in the output. [`super::decode`] produces them while it has the article
//! decoded, and [`crate::kafka::matching::outgoing`] copies them into the envelope, so no article is parsed twice.
//! Without a payload the record's own value goes out, byte for byte.

use crate::config::{EnvelopeArticle, InputFormat, ValueForm, ValueFormat};
use crate::formats::{avro, json};
use samestory_engine::model::RawArticle;

samestory_engine::listed! {
/// The encoding of the article's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PayloadEncoding {
    /// The raw record's value, unchanged.
    Own,
    /// JSON: the article in our own fields, or an Avro value converted.
    Json,
    /// Avro: the article in our own fields, `raw-article.avsc`. If that schema changes, it needs another variant.
    Mapped,
}
}

impl PayloadEncoding {
    pub(crate) fn number(self) -> u8 {
        match self {
            PayloadEncoding::Own => 0,
            PayloadEncoding::Json => 1,
            PayloadEncoding::Mapped => 2,
        }
    }

    pub(crate) fn from_number(number: u8) -> Option<PayloadEncoding> {
        PayloadEncoding::ALL.get(usize::from(number)).copied()
    }
}

/// Where an article begins in a record's value, and how it is encoded. It extends to the end of the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArticleSlice {
    pub(crate) from: usize,
    pub(crate) encoding: PayloadEncoding,
}

impl ArticleSlice {
    /// The whole value, unchanged.
    pub(crate) const WHOLE: ArticleSlice = ArticleSlice { from: 0, encoding: PayloadEncoding::Own };
}

/// Bytes that replace the record's own in the output, if any, and their encoding.
pub(crate) type Payload = Option<(PayloadEncoding, Vec<u8>)>;

/// The payload that the settings ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PayloadPolicy {
    Own,
    /// JSON; Avro values are converted.
    Readable,
    MappedJson,
    MappedAvro,
}

impl PayloadPolicy {
    pub(crate) fn new(value: ValueForm, formats: crate::config::Formats) -> PayloadPolicy {
        match (value, formats.article, formats.output) {
            (ValueForm::Passthrough, _, _) => PayloadPolicy::Own,
            (ValueForm::Envelope, EnvelopeArticle::Mapped, ValueFormat::Avro) => PayloadPolicy::MappedAvro,
            (ValueForm::Envelope, EnvelopeArticle::Mapped, ValueFormat::Json) => PayloadPolicy::MappedJson,
            (ValueForm::Envelope, EnvelopeArticle::Original, ValueFormat::Avro) => PayloadPolicy::Own,
            (ValueForm::Envelope, EnvelopeArticle::Original, ValueFormat::Json) => match formats.input {
                InputFormat::Json => PayloadPolicy::Own,
                InputFormat::Avro | InputFormat::Auto => PayloadPolicy::Readable,
            },
        }
    }

    /// The payload of an article; `None` if the record's own bytes go out. `datum` is set if the record was Avro.
    pub(crate) fn payload(self, article: &RawArticle, datum: Option<&avro::Datum<'_>>) -> Payload {
        match (self, datum) {
            (PayloadPolicy::Own, _) | (PayloadPolicy::Readable, None) => None,
            (PayloadPolicy::Readable, Some(datum)) => Some((PayloadEncoding::Json, avro::as_json(datum))),
            (PayloadPolicy::MappedJson, _) => Some((PayloadEncoding::Json, json::mapped(article))),
            (PayloadPolicy::MappedAvro, _) => {
                let mut bytes = Vec::with_capacity(article.body.len() + 512);
                avro::write_article(article, &mut bytes);
                Some((PayloadEncoding::Mapped, bytes))
            }
        }
    }
}
