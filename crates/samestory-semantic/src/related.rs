//! Adds the relation `same-story` to judged articles: earlier ones whose embeddings are close.
//!
//! It reads what `samestory file` wrote and writes the same lines, byte for byte, except for `related` where it found a story.
//! Verdicts, clusters and everything else stay as they are.

use std::borrow::Cow;
use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::io::{BufRead, Write};

use samestory_engine::TextOptions;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::{ChunkingStrategy, Embedding, EmbeddingProvider, Error, semantic_similarity};

/// The relation's name in `related`.
pub const SAME_STORY: &str = "same-story";

/// How stories are looked for.
#[derive(Clone, Debug)]
pub struct RelateOptions {
    /// From this cosine on, two articles tell the same story. It depends on the model: measure it on pairs you know.
    pub min_similarity: f32,
    /// How many earlier articles are named at most, the closest first.
    pub most: usize,
    /// How many unique articles are remembered. Each article is compared with all of them.
    pub window: usize,
    /// The name of the articles' body; otherwise the first of the usual names.
    pub body: Option<String>,
    /// How long texts are cut.
    pub chunking: ChunkingStrategy,
}

impl Default for RelateOptions {
    fn default() -> RelateOptions {
        RelateOptions {
            min_similarity: 0.8,
            most: 5,
            window: 50_000,
            body: None,
            chunking: ChunkingStrategy::default(),
        }
    }
}

/// What a run did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Lines read and written.
    pub lines: u64,
    /// Unique articles that were embedded.
    pub embedded: u64,
    /// Unique articles without a text that could be embedded. Their lines stay as they are.
    pub skipped: u64,
    /// Articles that got a relation.
    pub related: u64,
}

/// Copies judged articles and adds their relations. Only unique articles are compared, each with the unique ones before it: a
/// duplicate belongs to the story of what it repeats.
///
/// # Errors
/// [`Error::Line`] for a line that is not a judged article with its text; errors of the model and of reading or writing.
pub fn relate(
    provider: &dyn EmbeddingProvider,
    mut input: impl BufRead,
    mut output: impl Write,
    options: &RelateOptions,
) -> Result<Counts, Error> {
    let mut counts = Counts::default();
    let mut earlier: VecDeque<(String, Embedding)> = VecDeque::new();
    let mut line = String::new();
    loop {
        line.clear();
        if input.read_line(&mut line)? == 0 {
            break;
        }
        counts.lines += 1;
        let text = line.trim_end_matches(['\r', '\n']);
        if text.is_empty() {
            output.write_all(line.as_bytes())?;
            continue;
        }
        let bad = |message: String| Error::Line { line: counts.lines, message };
        let judged = Judged::read(text).map_err(bad)?;
        // An id that comes again replaces its earlier text, whatever the new verdict is.
        earlier.retain(|(id, _)| *id != judged.id);
        let mut relations = Vec::new();
        if judged.is_unique {
            match embed(provider, &judged, options).map_err(|error| error.at(counts.lines))? {
                Some(embedding) => {
                    counts.embedded += 1;
                    relations = closest(&embedding, &earlier, &judged.related, options)?;
                    if earlier.len() >= options.window {
                        earlier.pop_front();
                    }
                    earlier.push_back((judged.id.clone(), embedding));
                }
                None => counts.skipped += 1,
            }
        }
        if relations.is_empty() {
            output.write_all(line.as_bytes())?;
        } else {
            counts.related += 1;
            judged.write_with(&relations, &mut output)?;
            output.write_all(&line.as_bytes()[text.len()..])?;
        }
    }
    output.flush()?;
    Ok(counts)
}

/// Why an article has no embedding.
enum EmbedError {
    /// Its line lacks what is needed.
    Line(String),
    /// The model failed.
    Provider(Error),
}

impl EmbedError {
    fn at(self, line: u64) -> Error {
        match self {
            EmbedError::Line(message) => Error::Line { line, message },
            EmbedError::Provider(error) => error,
        }
    }
}

/// The embedding of an article's headline and body. None if there is no text in it.
fn embed(
    provider: &dyn EmbeddingProvider,
    judged: &Judged<'_>,
    options: &RelateOptions,
) -> Result<Option<Embedding>, EmbedError> {
    let Some(article) = judged.article else {
        return Err(EmbedError::Line(
            "it has no article; run samestory file without --no-article".to_owned(),
        ));
    };
    let article: Map<String, Value> =
        serde_json::from_str(article.get()).map_err(|error| EmbedError::Line(error.to_string()))?;
    let Some(text) = text_of(&article, options.body.as_deref()) else { return Ok(None) };
    match provider.embed_document(&text, &options.chunking) {
        Ok(embedding) if embedding.vector().iter().all(|value| *value == 0.0) => Ok(None),
        Ok(embedding) => Ok(Some(embedding)),
        Err(Error::NoTokens) => Ok(None),
        Err(error) => Err(EmbedError::Provider(error)),
    }
}

/// The usual names of the body and of the headline; docs/files.md lists what `samestory file` knows.
const BODIES: [&str; 8] =
    ["body", "text", "content", "article_body", "body_text", "article_text", "full_text", "main_text"];
const TITLES: [&str; 3] = ["title", "headline", "subject"];

/// Headline and body without markup. None if there is no body, or one over the engine's limits.
fn text_of(article: &Map<String, Value>, body: Option<&str>) -> Option<String> {
    use samestory_engine::text::{markup::ContentType, plain};

    let string = |name: &str| article.get(name)?.as_str().filter(|value| !value.trim().is_empty());
    let body = match body {
        Some(name) => string(name),
        None => BODIES.into_iter().find_map(string),
    }?;
    let content_type = string("content_type").and_then(ContentType::parse);
    let body: Cow<'_, str> = plain(body, content_type, &TextOptions::DEFAULT).ok()?;
    Some(match TITLES.into_iter().find_map(string) {
        Some(title) => format!("{}\n\n{}", title.trim(), body.trim()),
        None => body.trim().to_owned(),
    })
}

/// The closest earlier articles that are not related already.
fn closest(
    embedding: &Embedding,
    earlier: &VecDeque<(String, Embedding)>,
    related: &HashSet<String>,
    options: &RelateOptions,
) -> Result<Vec<Value>, Error> {
    let mut close = Vec::new();
    for (id, other) in earlier {
        let similarity = semantic_similarity(embedding, other)?;
        if similarity >= options.min_similarity && !related.contains(id) {
            close.push((similarity, id));
        }
    }
    close.sort_by(|(a, first), (b, second)| b.total_cmp(a).then_with(|| first.cmp(second)));
    close.truncate(options.most);
    let written = close.into_iter().map(|(similarity, id)| {
        let similarity = (f64::from(similarity.clamp(0.0, 1.0)) * 10_000.0).round() / 10_000.0;
        json!({ "id": id, "relation": SAME_STORY, "similarity": similarity })
    });
    Ok(written.collect())
}

/// A line of `samestory file`, with its fields as they were written.
struct Judged<'a> {
    fields: Vec<(String, &'a RawValue)>,
    id: String,
    is_unique: bool,
    article: Option<&'a RawValue>,
    /// The articles that it is related to already.
    related: HashSet<String>,
}

impl<'a> Judged<'a> {
    fn read(line: &'a str) -> Result<Judged<'a>, String> {
        let Fields(fields) = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let find = |name: &str| fields.iter().find(|(key, _)| key == name).map(|(_, value)| *value);
        let string = |name: &str| {
            let value = find(name).ok_or_else(|| format!("it has no {name}"))?;
            serde_json::from_str::<String>(value.get()).map_err(|error| format!("{name}: {error}"))
        };
        let (id, verdict) = (string("id")?, string("verdict")?);
        let article = find("article").filter(|article| article.get() != "null");
        #[derive(Deserialize)]
        struct One {
            id: String,
        }
        let related: Option<Vec<One>> = match find("related") {
            Some(value) => serde_json::from_str(value.get()).map_err(|error| format!("related: {error}"))?,
            None => None,
        };
        let related = related.unwrap_or_default().into_iter().map(|one| one.id).collect();
        Ok(Judged { id, is_unique: verdict == "unique", article, related, fields })
    }

    /// Writes the line with more relations after those that it has.
    fn write_with(&self, relations: &[Value], output: &mut impl Write) -> Result<(), Error> {
        let more: Vec<String> = relations.iter().map(Value::to_string).collect();
        let more = more.join(",");
        let mut separator = "{";
        let mut written = false;
        for (key, value) in &self.fields {
            write!(output, "{separator}{}:", Value::from(key.as_str()))?;
            separator = ",";
            if key == "related" && !written {
                written = true;
                let before = value.get().strip_suffix(']').filter(|_| !self.related.is_empty());
                match before {
                    Some(before) => write!(output, "{before},{more}]")?,
                    None => write!(output, "[{more}]")?,
                }
            } else {
                write!(output, "{}", value.get())?;
            }
        }
        if !written {
            write!(output, "{separator}\"related\":[{more}]")?;
        }
        write!(output, "}}")?;
        Ok(())
    }
}

/// An object's fields in their order, each value as it was written.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(InOrder).map(Fields)
    }
}
