//! Decisions → records: topics, keys, values and headers as the contract has them.

use crate::config::{TopicNames, ValueForm};
use crate::detect::{Decided, Output};
use crate::event::avro::{self, ArticlePart};
use crate::event::{DeadLetter, Tagged, json};
use crate::model::{Position, Verdict};
use crate::store::{Change, Outlet};

use super::payload::{Form, Placed};
use super::record::{Headers, Outgoing, Record};

/// What begins so is ours; whatever came in under such a name is not passed on.
const OURS: &str = "samestory-";
const ERRORS: &str = "__samestory.errors.";

/// Writes decisions as records.
#[derive(Clone, Debug)]
pub(super) struct Writer {
    pub(super) topics: TopicNames,
    pub(super) form: ValueForm,
    pub(super) wire: Wire,
}

/// How values of ours are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    /// As JSON.
    Json,
    /// As Avro, with the ids that our schemas have in the registry.
    Avro { unique: u32, near_duplicate: u32, clusters: u32 },
}

/// An input as it came, for what goes out with it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Original<'a> {
    pub(super) record: &'a Record,
    /// Where the article is in the record's value.
    pub(super) placed: Placed,
}

impl Original<'_> {
    fn value(&self) -> Option<&[u8]> {
        self.record.value.as_deref().and_then(|value| value.get(self.placed.from..))
    }

    fn headers(&self) -> impl Iterator<Item = (String, Option<Vec<u8>>)> {
        let own = |name: &str| name.starts_with(OURS) || name.starts_with(ERRORS);
        self.record.headers.iter().filter(move |(name, _)| !own(name)).cloned()
    }
}

impl Writer {
    /// What goes out for one input, in order.
    pub(super) fn decided<'a>(
        &'a self,
        decided: &Decided,
        original: Original<'_>,
        out: &mut Vec<Outgoing<'a>>,
    ) {
        let single = self.topics.unique == self.topics.near_duplicate;
        let tagged = decided.outputs.iter().any(|output| matches!(output, Output::Tagged(_)));
        let mut nulled = false;
        for output in &decided.outputs {
            match output {
                Output::Tagged(tagged) => out.push(self.tagged(tagged, original)),
                // On one topic for all, the article itself says where it moved; only what is gone is taken back.
                Output::Null { .. } if single && (tagged || std::mem::replace(&mut nulled, true)) => {}
                Output::Null { id, outlet } => out.push(Outgoing {
                    topic: match outlet {
                        Outlet::NearDuplicate => &self.topics.near_duplicate,
                        Outlet::Unique | Outlet::None => &self.topics.unique,
                    },
                    key: Some(id.as_str().into()),
                    headers: position(&decided.position),
                    // A forget has a time of its own: which record it travels with is an accident.
                    time: decided.time,
                    ..Outgoing::default()
                }),
                Output::Cluster(cluster) => {
                    let value = match self.wire {
                        Wire::Json => {
                            let mut value = Vec::new();
                            json::write_cluster(cluster, &mut value);
                            value.pop();
                            value
                        }
                        Wire::Avro { clusters, .. } => {
                            let mut value = avro::frame(clusters, 1024);
                            avro::write_cluster(cluster, &mut value);
                            value
                        }
                    };
                    out.push(self.cluster(cluster.id.to_string(), Some(value), &decided.position));
                }
                Output::NoCluster(id) => out.push(self.cluster(id.to_string(), None, &decided.position)),
                Output::DeadLetter(letter) => out.push(self.dead_letter(letter, original)),
            }
        }
    }

    fn tagged(&self, tagged: &Tagged, original: Original<'_>) -> Outgoing<'_> {
        let article = original.value().unwrap_or_default();
        let value = match (self.form, self.wire) {
            (ValueForm::Passthrough, _) => article.to_vec(),
            (ValueForm::Envelope, Wire::Json) => enveloped_json(tagged, article, original.placed.form),
            (ValueForm::Envelope, Wire::Avro { unique, near_duplicate, .. }) => {
                let id = if tagged.verdict == Verdict::Unique { unique } else { near_duplicate };
                let mut value = avro::frame(id, article.len() + 1024);
                let article = match original.placed.form {
                    Form::Mapped => ArticlePart::Mapped(article),
                    Form::Own | Form::Json => ArticlePart::Original(article),
                };
                avro::write_envelope(tagged, article, &mut value);
                value
            }
        };
        let mut headers: Headers = original.headers().collect();
        verdict(tagged, &mut headers);
        headers.extend(position(&tagged.input));
        Outgoing {
            topic: match tagged.verdict {
                Verdict::Unique => &self.topics.unique,
                Verdict::NearDuplicate | Verdict::ExactDuplicate => &self.topics.near_duplicate,
            },
            partition: None,
            key: Some(tagged.id.as_str().into()),
            value: Some(value),
            headers,
            time: original.record.time,
        }
    }

    fn cluster(&self, id: String, value: Option<Vec<u8>>, from: &Position) -> Outgoing<'_> {
        let (key, headers) = (Some(id.into_bytes()), position(from));
        Outgoing { topic: &self.topics.clusters, key, value, headers, ..Outgoing::default() }
    }

    /// The record as it came, with the reason beside it.
    pub(super) fn dead_letter(&self, letter: &DeadLetter, original: Original<'_>) -> Outgoing<'_> {
        let record = original.record;
        let mut headers: Headers = original.headers().collect();
        let mut say = |suffix: &str, value: String| {
            headers.push((format!("{ERRORS}{suffix}"), Some(value.into_bytes())));
        };
        if let Position::Topic { topic, partition, offset } = &letter.position {
            say("topic", topic.to_string());
            say("partition", partition.to_string());
            say("offset", offset.to_string());
        }
        say("stage", "decode".into());
        say("exception.class.name", letter.reason.as_str().into());
        say("exception.message", letter.message.clone());
        let value = original.value().map(<[u8]>::to_vec);
        let mut out = Outgoing {
            topic: &self.topics.dead_letter,
            partition: None,
            key: record.key.clone(),
            value,
            headers,
            time: record.time,
        };
        let limit = self.topics.max_message_bytes as usize;
        if out.bytes() > limit {
            let bytes = out.value.take().map_or(0, |value| value.len());
            out.headers.push((format!("{ERRORS}value.dropped.bytes"), Some(bytes.to_string().into_bytes())));
        }
        // What came in is almost too large by its key and headers alone.
        if out.bytes() > limit {
            out.headers.retain(|(name, _)| name.starts_with(ERRORS));
            out.key = None;
            out.headers.push((format!("{ERRORS}headers.dropped"), Some(b"true".to_vec())));
        }
        out
    }

    /// A change as its changelog record.
    pub(super) fn change(&self, change: &Change, partition: i32) -> Outgoing<'_> {
        let (key, value) = change.encode();
        let topic = &self.topics.changelog;
        Outgoing { topic, partition: Some(partition), key: Some(key), value, ..Outgoing::default() }
    }
}

/// What is not JSON can only come from before the settings were changed: it goes out as a text of digits, not lost.
fn enveloped_json(tagged: &Tagged, article: &[u8], form: Form) -> Vec<u8> {
    let is_json = match form {
        Form::Json => true,
        Form::Own => !avro::is_framed(article),
        Form::Mapped => false,
    };
    if is_json {
        return json::enveloped(tagged, article);
    }
    let digits: String = article.iter().map(|byte| format!("{byte:02x}")).collect();
    json::enveloped(tagged, format!("\"{digits}\"").as_bytes())
}

/// The verdict as headers, so that a reader can filter without decoding.
fn verdict(tagged: &Tagged, headers: &mut Headers) {
    let mut say =
        |name: &str, value: String| headers.push((format!("{OURS}{name}"), Some(value.into_bytes())));
    say("verdict", tagged.verdict.as_str().into());
    if let Some(kind) = tagged.match_type {
        say("match-type", kind.as_str().into());
    }
    if let Some(id) = &tagged.duplicate_of {
        say("duplicate-of", id.to_string());
    }
    say("cluster", tagged.cluster.to_string());
    say("canonical", tagged.canonical_id.to_string());
    say("similarity", tagged.similarity.get().to_string());
    say("confidence", tagged.confidence.get().to_string());
    say("language", tagged.language.to_string());
    say("revision", tagged.revision.to_string());
    if !tagged.flags.is_empty() {
        let flags: Vec<&str> = tagged.flags.iter().map(|flag| flag.as_str()).collect();
        say("flags", flags.join(","));
    }
    if !tagged.related.is_empty() {
        say("related", json::related(&tagged.related));
    }
}

/// Where the input was that a record goes out for.
fn position(position: &Position) -> Headers {
    let Position::Topic { topic, partition, offset } = position else { return Headers::new() };
    let say = |name: &str, value: String| (format!("{OURS}{name}"), Some(value.into_bytes()));
    vec![
        say("topic", topic.to_string()),
        say("partition", partition.to_string()),
        say("offset", offset.to_string()),
    ]
}
