//! Loads the texts of the articles on the page by reading their input files again.
//!
//! Standard input cannot be read twice, so its articles are kept during the run, up to a limit. An article
//! that cannot be loaded is shown without its text.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use serde_json::value::RawValue;

use crate::formats::{Event, json};
use samestory_engine::model::RawArticle;
use samestory_engine::model::{BoundedStr, EventTime, Position};
use samestory_engine::text;
use samestory_engine::text::Options;
use samestory_engine::text::markup::ContentType;

use super::Side;
use crate::files::records::Records;
use crate::files::source::Source;
use crate::files::stage::InputSpec;

/// Bytes of standard input kept for the page.
const KEPT_BYTES: usize = 256 << 20;

/// Articles from standard input, which cannot be read again.
#[derive(Debug)]
pub(super) struct ReportTexts {
    articles: HashMap<(BoundedStr<1024>, u64), Box<RawValue>>,
    /// The inputs that cannot be read again.
    pipes: Vec<String>,
    room: usize,
}

/// An article as the page shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ShownArticle {
    pub(super) title: Option<String>,
    pub(super) host: Option<String>,
    pub(super) url: Option<String>,
    pub(super) published_at: Option<EventTime>,
    /// The body without markup.
    pub(super) text: String,
}

impl ReportTexts {
    pub(super) fn new(reading: &InputSpec) -> ReportTexts {
        let pipes = reading.sources.iter().filter(|source| !source.is_readable_again()).map(Source::name);
        let pipes: Vec<String> = pipes.collect();
        let room = if pipes.is_empty() { 0 } else { KEPT_BYTES };
        ReportTexts { articles: HashMap::new(), pipes, room }
    }

    /// Keeps an article from a pipe while there is room.
    pub(super) fn keep(&mut self, position: &Position, article: &RawValue) {
        let size = article.get().len();
        if let Position::File { file, line } = position
            && self.pipes.iter().any(|pipe| pipe == file.as_str())
            && size <= self.room
        {
            self.room -= size;
            self.articles.insert((file.clone(), *line), article.to_owned());
        }
    }

    /// Loads the wanted articles. Those that cannot be read are missing from the result.
    pub(super) fn load<'a>(
        self,
        wanted: impl Iterator<Item = &'a Side>,
        reading: &InputSpec,
        options: &Options,
    ) -> BTreeMap<Side, ShownArticle> {
        let mut files: BTreeMap<&str, BTreeMap<u64, BTreeSet<&Side>>> = BTreeMap::new();
        for side in wanted {
            if let Position::File { file, line } = &side.position {
                files.entry(file.as_str()).or_default().entry(*line).or_default().insert(side);
            }
        }
        let mut shown = BTreeMap::new();
        for (file, mut lines) in files {
            if self.pipes.iter().any(|pipe| pipe == file) {
                for (&line, sides) in &lines {
                    if let Some(article) = self.articles.get(&(BoundedStr::new(file), line)) {
                        show(article.get().as_bytes(), line, sides, reading, options, &mut shown);
                    }
                }
                continue;
            }
            let source = Source::File(Path::new(file).to_path_buf());
            let Ok((mut records, _)) = Records::open(&source, reading, &Arc::new(AtomicU64::new(0))) else {
                continue;
            };
            while let (false, Ok(Some(record))) = (lines.is_empty(), records.next()) {
                // Several records may start on one line; the id tells them apart.
                while lines.first_key_value().is_some_and(|(&line, _)| line < record.line) {
                    lines.pop_first();
                }
                if let (Some(sides), Ok(bytes)) = (lines.get(&record.line), &record.content) {
                    show(bytes, record.line, sides, reading, options, &mut shown);
                }
            }
        }
        shown
    }
}

fn show(
    bytes: &[u8],
    line: u64,
    sides: &BTreeSet<&Side>,
    reading: &InputSpec,
    options: &Options,
    shown: &mut BTreeMap<Side, ShownArticle>,
) {
    let Ok(record) = json::JsonRecord::parse(bytes) else { return };
    // An article without an id was named by its line; accept that name only if the report asks for it.
    let by_line = || {
        sides.first().map(|side| side.id.as_str().to_owned()).filter(|id| id.ends_with(&format!(":{line}")))
    };
    let Ok(Event::Article(article)) = json::decode(&record, &reading.fields, by_line) else { return };
    if let Some(&side) = sides.iter().find(|side| side.id == article.id) {
        shown.insert(side.clone(), plain(*article, options));
    }
}

fn plain(article: RawArticle, options: &Options) -> ShownArticle {
    let content_type = article.content_type.as_deref().and_then(ContentType::parse);
    let text =
        text::plain(&article.body, content_type, options).map(|text| text.into_owned()).unwrap_or_default();
    let host = article.site().map(str::to_owned);
    ShownArticle { title: article.title, host, url: article.url, published_at: article.published_at, text }
}
