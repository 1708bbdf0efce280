//! Reads the `--pairs` file of an editor's decisions: two ids and `same` or `different` per line, separated
//! by tabs.
//!
//! The pairs become the engine's [`Constraints`]. A state records a hash of the pairs it was built with, and
//! a run with other pairs is refused.

use std::fs;
use std::path::Path;

use samestory_engine::engine::{Bond, Constraints};
use samestory_engine::index::PairList;
use samestory_engine::model::ArticleId;
use samestory_eval::LabelledError;

/// Why a `--pairs` file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PairsError {
    /// It cannot be read, or a line is malformed or contradicts an earlier one.
    #[error(transparent)]
    File(#[from] LabelledError),
    /// The state was built with other pairs; all verdicts of a state must follow from one list.
    #[error(
        "the state was built with {}, so its verdicts do not follow from these pairs; pass the same --pairs, or start with a new --state directory",
        built_with(*known)
    )]
    Others {
        /// How many pairs the state was built with.
        known: u64,
    },
}

fn built_with(pairs: u64) -> String {
    match pairs {
        0 => "no --pairs".to_owned(),
        1 => "other --pairs (1 pair)".to_owned(),
        pairs => format!("other --pairs ({pairs} pairs)"),
    }
}

/// Reads a `--pairs` file. The first line may be a header; columns after the third are ignored.
///
/// # Errors
/// The file is unreadable, or a line is malformed; the error names the line.
pub fn read_pairs(path: &Path) -> Result<Constraints, PairsError> {
    let text = fs::read_to_string(path)
        .map_err(|error| LabelledError::Unreadable { path: path.to_owned(), error })?;
    parse(&text)
        .map_err(|(line, problem)| LabelledError::Line { path: path.to_owned(), line, problem }.into())
}

fn parse(text: &str) -> Result<Constraints, (usize, String)> {
    let mut constraints = Constraints::default();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |problem: String| (at + 1, problem);
        let mut columns = line.split('\t');
        let (Some(a), Some(b), Some(word)) = (columns.next(), columns.next(), columns.next()) else {
            return Err(wrong("expected two ids and `same` or `different`, separated by tabs".to_owned()));
        };
        let bond = match word.trim().to_ascii_lowercase().as_str() {
            "same" | "must-link" => Bond::Same,
            "different" | "cannot-link" => Bond::Different,
            "label" if at == 0 => continue,
            other => return Err(wrong(format!("expected `same` or `different`, not {other:?}"))),
        };
        let id = |id: &str| ArticleId::new(id).map_err(|error| wrong(error.to_string()));
        let pair = constraints.insert(&id(a)?, &id(b)?, bond);
        pair.map_err(|error| wrong(format!("{a} and {b}: {error}")))?;
    }
    Ok(constraints)
}

/// The summary of the pairs that a state keeps; `None` without pairs.
pub(super) fn list(constraints: &Constraints) -> Option<PairList> {
    let list = PairList { count: constraints.len() as u64, hash: constraints.hash() };
    (!constraints.is_empty()).then_some(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_extra_columns_and_both_spellings_are_accepted() {
        let text = "\u{feff}id1\tid2\tlabel\r\na\tb\tsame\tseen by us\r\n\nc\td\tCannot-link\n";
        assert_eq!(parse(text).unwrap().len(), 2);
        assert!(parse("").unwrap().is_empty());
    }

    #[test]
    fn an_error_names_the_line_and_the_problem() {
        for (text, line, problem) in [
            ("a\tb\tsame\na b same\n", 2, "expected two ids"),
            ("a\tb\tmaybe\n", 1, "not \"maybe\""),
            ("a\tb\tsame\nx\ty\tlabel\n", 2, "not \"label\""),
            ("a\ta\tsame\n", 1, "a and a: both are the same article"),
            ("a\tb\tsame\n\nb\ta\tdifferent\n", 3, "the opposite"),
            ("\tb\tsame\n", 1, "an id of 0 bytes"),
        ] {
            let (at, message) = parse(text).unwrap_err();
            assert!(at == line && message.contains(problem), "{at}: {message}");
        }
    }
}
