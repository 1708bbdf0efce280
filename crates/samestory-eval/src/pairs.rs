//! Reads lists of labelled pairs: tab-separated files whose header names the columns.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::labelled::{Label, LabelledError, LabelledPair};

/// From this exact Jaccard similarity on, a pair counts as the same text.
const SAME_JACCARD: f64 = 0.7;
/// From this score on (1 is the same story, 4 another one), a pair must not be brought together.
const DIFFERENT_SCORE: f64 = 2.5;

/// The existing lists of pairs beside a file of articles.
pub(crate) fn beside(articles: &Path) -> Vec<PathBuf> {
    let mut negative = articles.as_os_str().to_owned();
    negative.push(".negpairs.tsv");
    let named = ["pairs.tsv", "jaccard.tsv"].map(|ending| articles.with_extension(ending));
    named.into_iter().chain([PathBuf::from(negative)]).filter(|path| path.is_file()).collect()
}

/// Reads the pairs whose articles are both in the set, the earlier one first.
pub(crate) fn read(
    path: &Path,
    text: &str,
    index_of: &BTreeMap<&str, usize>,
) -> Result<Vec<LabelledPair>, LabelledError> {
    let problem = |line, problem: String| LabelledError::Line { path: path.into(), line, problem };
    let mut lines = text.lines().enumerate();
    let header: Vec<&str> = lines.next().map(|(_, line)| line.split('\t').collect()).unwrap_or_default();
    let column = |name: &str| header.iter().position(|&column| column == name || column.starts_with(name));
    let meaning = ["label", "overall", "jaccard", "why"]
        .into_iter()
        .find_map(|name| column(name).map(|at| (name, at)))
        .ok_or_else(|| {
            problem(1, "expected a header `id1<TAB>id2<TAB>…` with label, overall, jaccard or why".into())
        })?;
    let translated = column("machine_translated");
    let mut pairs = Vec::new();
    for (at, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let fields: Vec<&str> = line.split('\t').collect();
        let value = *fields
            .get(meaning.1)
            .ok_or_else(|| problem(at + 1, format!("found {} of {} columns", fields.len(), header.len())))?;
        let (label, mut kind) = label(meaning.0, value).ok_or_else(|| {
            problem(at + 1, format!("{} = {value}: expected OK, BAD or a number", meaning.0))
        })?;
        if translated.and_then(|at| fields.get(at)) == Some(&"1") {
            kind = format!("{kind}, machine-translated");
        }
        if let (Some(&a), Some(&b)) = (index_of.get(fields[0]), index_of.get(fields[1])) {
            pairs.push(LabelledPair { old: a.min(b), new: a.max(b), label, kind });
        }
    }
    Ok(pairs)
}

fn label(column: &str, value: &str) -> Option<(Label, String)> {
    let number = || value.parse::<f64>().ok();
    Some(match column {
        "label" => match value {
            "OK" | "same" => (Label::Same, "labelled the same".to_owned()),
            "BAD" | "different" => (Label::Different, "labelled different".to_owned()),
            _ => return None,
        },
        "overall" if number()? >= DIFFERENT_SCORE => (Label::Different, "score 2.5 to 4 (different)".into()),
        "overall" => (Label::Gray, "score 1 to 2.5 (same story, other words)".into()),
        "jaccard" => {
            let jaccard = number()?;
            let label = if jaccard >= SAME_JACCARD { Label::Same } else { Label::Gray };
            let from = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4].into_iter().find(|&from| jaccard >= from);
            (label, format!("exact similarity from {:.1}", from.unwrap_or(0.0)))
        }
        _ => (Label::Different, format!("{value} pairs")),
    })
}
