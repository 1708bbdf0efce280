//! Reads labelled articles and pairs from files. `docs/labelled-data.md` describes the format.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use samestory_engine::model::ArticleId;
use samestory_engine::model::RawArticle;

use super::pairs;

/// The verdict that a person expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Expect {
    /// A copy of an earlier article of its group.
    Dup,
    /// People may disagree: reported, but not part of any score.
    Gray,
    /// Not a copy of anything.
    Unique,
}

/// An article with its labels.
#[derive(Clone, Debug)]
pub struct Labelled {
    /// The article, with its declared language.
    pub article: RawArticle,
    /// Articles of the same group have the same text; `None` if unlabelled.
    pub group: Option<String>,
    /// The expected verdict, if labelled.
    pub expect: Option<Expect>,
    /// How the text was edited.
    pub kind: String,
    /// How strongly it was edited.
    pub level: String,
    /// The language in the file, even if it is withheld from the engine.
    pub language: String,
}

/// How two articles relate, according to people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Label {
    /// They have the same text, or tell the same story.
    Same,
    /// People may disagree.
    Gray,
    /// They must not be brought together.
    Different,
}

/// Two articles with a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelledPair {
    /// Index of the earlier article in its set.
    pub old: usize,
    /// Index of the later one.
    pub new: usize,
    /// The label.
    pub label: Label,
    /// The kind of pair, which is a row of the report.
    pub kind: String,
}

/// A file of articles in stream order, with the pairs listed in the files beside it.
#[derive(Clone, Debug)]
pub struct Set {
    /// The file's name.
    pub name: String,
    /// In stream order.
    pub articles: Vec<Labelled>,
    /// The pairs whose articles are both in the file.
    pub pairs: Vec<LabelledPair>,
}

/// Why a labelled file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LabelledError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        error: io::Error,
    },
    /// A line is malformed.
    #[error("{}:{line}: {problem}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Line number, starting at 1.
        line: usize,
        /// The problem, and the expected form.
        problem: String,
    },
    /// The file has no labels, so there is nothing to measure.
    #[error("{}: no labels: give articles a `cluster` or a `source_id` with `expect`, or list pairs in {} (docs/labelled-data.md)", path.display(), pairs.display())]
    NoLabels {
        /// The file.
        path: PathBuf,
        /// Where pairs could be listed.
        pairs: PathBuf,
    },
}

#[derive(Deserialize)]
struct LabelledLine {
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
    /// The files that [`Set::read`] reads: the articles, and the existing lists of pairs beside them.
    pub fn files(path: &Path) -> Vec<PathBuf> {
        let mut files = vec![path.to_owned()];
        files.extend(pairs::beside(path));
        files
    }

    /// Reads a file of articles, and the lists of pairs beside it.
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
            let line: LabelledLine =
                serde_json::from_str(line).map_err(|error| problem(error.to_string()))?;
            let labelled = labelled(line, &mut seen).map_err(problem)?;
            articles.push(labelled);
        }
        let index_of: BTreeMap<&str, usize> =
            articles.iter().enumerate().map(|(at, labelled)| (labelled.article.id.as_str(), at)).collect();
        let mut pairs = Vec::new();
        for beside in pairs::beside(path) {
            pairs.extend(pairs::read(&beside, &read(&beside)?, &index_of)?);
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

fn labelled(line: LabelledLine, seen: &mut BTreeSet<String>) -> Result<Labelled, String> {
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
        article: RawArticle {
            id,
            body: line.body,
            title: line.title,
            url: None,
            host: None,
            language: line.lang.clone(),
            content_type: line.content_type,
            // No times: labels do not expire.
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
