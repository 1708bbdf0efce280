//! What stands for the article in what goes out: made where the article is read, so that whoever writes the envelope
//! need not read it again.

use crate::config::{EnvelopeArticle, InputFormat, OutputFormat, ValueForm};
use crate::formats::{avro, json};
use samestory_engine::model::Article;

samestory_engine::listed! {
/// How the article's bytes are to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PayloadEncoding {
    /// The raw record's value, as it came.
    Own,
    /// JSON: the article in our own fields, or what came as Avro.
    Json,
    /// Avro: the article in our own fields, `raw-article.avsc`. Should that schema change, this is another form.
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

/// Where an article begins in a record's value, and how it is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArticleSlice {
    pub(crate) from: usize,
    pub(crate) form: PayloadEncoding,
}

impl ArticleSlice {
    /// The whole value, as it came.
    pub(crate) const WHOLE: ArticleSlice = ArticleSlice { from: 0, form: PayloadEncoding::Own };
}

/// Other bytes than the record's own, and how they are to be taken.
pub(crate) type Payload = Option<(PayloadEncoding, Vec<u8>)>;

/// What settings ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Own,
    /// JSON, whatever came.
    Readable,
    MappedJson,
    MappedAvro,
}

impl Wanted {
    pub(crate) fn new(value: ValueForm, formats: crate::config::Formats) -> Wanted {
        match (value, formats.article, formats.output) {
            (ValueForm::Passthrough, _, _) => Wanted::Own,
            (ValueForm::Envelope, EnvelopeArticle::Mapped, OutputFormat::Avro) => Wanted::MappedAvro,
            (ValueForm::Envelope, EnvelopeArticle::Mapped, OutputFormat::Json) => Wanted::MappedJson,
            (ValueForm::Envelope, EnvelopeArticle::Original, OutputFormat::Avro) => Wanted::Own,
            (ValueForm::Envelope, EnvelopeArticle::Original, OutputFormat::Json) => match formats.input {
                InputFormat::Json => Wanted::Own,
                InputFormat::Avro | InputFormat::Auto => Wanted::Readable,
            },
        }
    }

    /// What goes out for an article that came so; nothing where its own bytes do.
    pub(crate) fn payload(self, article: &Article, came: Option<&avro::Datum<'_>>) -> Payload {
        match (self, came) {
            (Wanted::Own, _) | (Wanted::Readable, None) => None,
            (Wanted::Readable, Some(datum)) => Some((PayloadEncoding::Json, avro::as_json(datum))),
            (Wanted::MappedJson, _) => Some((PayloadEncoding::Json, json::mapped(article))),
            (Wanted::MappedAvro, _) => {
                let mut bytes = Vec::with_capacity(article.body.len() + 512);
                avro::write_article(article, &mut bytes);
                Some((PayloadEncoding::Mapped, bytes))
            }
        }
    }
}
