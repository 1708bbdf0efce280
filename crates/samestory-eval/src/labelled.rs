//! Labelled articles and pairs, as they are read from files. `docs/labelled-data.md` describes them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use samestory_engine::model::Article;
use samestory_engine::model::ArticleId;

use super::pairs;

/// What a person expects of an article's verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Expect {
    /// A copy of an earlier article of its group.
    Dup,
    /// People may differ: reported, and no part of any score.
    Gray,
    /// A text of its own.
    Unique,
}

/// One article and what is known of it.
#[derive(Clone, Debug)]
pub struct Labelled {
    /// The article, with the language it declares.
    pub article: Article,
    /// Articles of one group have the same text; none where nothing is known.
    pub group: Option<String>,
    /// What is expected of it, if anything.
    pub expect: Option<Expect>,
    /// What was done to the text.
    pub kind: String,
    /// How strongly.
    pub level: String,
    /// The language its file names, even where the engine is not told.
    pub language: String,
}

/// What is known of two articles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Label {
    /// They have the same text, or tell the same story.
    Same,
    /// People may differ.
    Gray,
    /// They must not be brought together.
    Different,
}

/// Two articles and what is known of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Place of the earlier article in its set.
    pub old: usize,
    /// Place of the later one.
    pub new: usize,
    /// What is known.
    pub label: Label,
    /// What kind of pair it is: rows of the report.
    pub kind: String,
}

/// A file of articles in their order, with the pairs that are listed beside it.
#[derive(Clone, Debug)]
pub struct Set {
    /// The file's name.
    pub name: String,
    /// In stream order.
    pub articles: Vec<Labelled>,
    /// Those of which both articles are there.
    pub pairs: Vec<Pair>,
}

/// Why a labelled file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LabelledError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// A line is not what it should be.
    #[error("{}:{line}: {problem}", path.display())]
    Line {
        /// Which file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong and what is expected.
        problem: String,
    },
    /// There is nothing to measure.
    #[error("{}: no labels: give articles a `cluster` or a `source_id` with `expect`, or list pairs in {} (docs/labelled-data.md)", path.display(), pairs.display())]
    NoLabels {
        /// Which file.
        path: PathBuf,
        /// Where pairs would be listed.
        pairs: PathBuf,
    },
}

#[derive(Deserialize)]
struct Line {
    id: String,
    body: String,
    #[serde(alias = "language")]
    lang: Option<String>,
    title: Option<String>,
    content_type: Option<String>,
    cluster: Option<String>,
    source_id: Option<String>,
    expect: Option<Expecting>,
    #[serde(alias = "human_label")]
    kind: Option<String>,
    level: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Expecting {
    Dup,
    Gray,
    Unique,
}

impl Set {
    /// Reads a file of articles and the pairs beside it.
    ///
    /// # Errors
    /// Names the file, the line and what is expected there.
    pub fn read(path: &Path) -> Result<Set, LabelledError> {
        let text = read(path)?;
        let mut articles = Vec::new();
        // An article is expected to be a copy if its cluster has been seen before.
        let mut seen = BTreeSet::new();
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let problem = |problem: String| LabelledError::Line { path: path.into(), line: at + 1, problem };
            let line: Line = serde_json::from_str(line).map_err(|error| problem(error.to_string()))?;
            let labelled = labelled(line, &mut seen).map_err(problem)?;
            articles.push(labelled);
        }
        let places: BTreeMap<&str, usize> =
            articles.iter().enumerate().map(|(at, labelled)| (labelled.article.id.as_str(), at)).collect();
        let mut pairs = Vec::new();
        for beside in pairs::beside(path) {
            pairs.extend(pairs::read(&beside, &read(&beside)?, &places)?);
        }
        if pairs.is_empty() && articles.iter().all(|labelled| labelled.expect.is_none()) {
            return Err(LabelledError::NoLabels {
                path: path.into(),
                pairs: path.with_extension("pairs.tsv"),
            });
        }
        Ok(Set { name: path.display().to_string(), articles, pairs })
    }
}

fn read(path: &Path) -> Result<String, LabelledError> {
    fs::read_to_string(path).map_err(|error| LabelledError::Unreadable { path: path.into(), error })
}

fn labelled(line: Line, seen: &mut BTreeSet<String>) -> Result<Labelled, String> {
    let id = ArticleId::new(&line.id).map_err(|error| error.to_string())?;
    let group = line.source_id.or(line.cluster);
    let expect = match (line.expect, &group) {
        (Some(Expecting::Dup), _) => Some(Expect::Dup),
        (Some(Expecting::Gray), _) => Some(Expect::Gray),
        (Some(Expecting::Unique), _) => Some(Expect::Unique),
        (None, Some(group)) if seen.contains(group) => Some(Expect::Dup),
        (None, Some(_)) => Some(Expect::Unique),
        (None, None) => None,
    };
    seen.extend(group.clone());
    Ok(Labelled {
        article: Article {
            id,
            body: line.body,
            title: line.title,
            url: None,
            host: None,
            language: line.lang.clone(),
            content_type: line.content_type,
            // Labels do not age.
            published_at: None,
            fetched_at: None,
        },
        group,
        expect,
        kind: line.kind.unwrap_or_else(|| "cluster".to_owned()),
        level: line.level.unwrap_or_default(),
        language: line.lang.unwrap_or_else(|| "und".to_owned()),
    })
}
