//! Measures how well homes keep edited copies together, on files of articles.
//!
//! Articles are placed by their text alone, because that is the rule under test; declared languages only name
//! the rows.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::labelled::LabelledError;
use samestory_engine::model::Lang;
use samestory_engine::text;
use samestory_engine::text::language;
use samestory_engine::text::language::{Segmentation, Trust};
use samestory_engine::text::markup::ContentType;
use samestory_engine::text::{Options, Oversized};

/// The measurements for the articles that declare one language.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct HomeCounts {
    /// Articles that are not copies of another.
    pub articles: u32,
    /// How many of them are placed in the home of their language, or in `und` if the table lacks it.
    pub at_home: u32,
    /// Edited copies, recognised by their `source_id`.
    pub copies: u32,
    /// How many of them share the home of their original.
    pub copies_together: u32,
    /// Passages of 24 to 50 words, cut out of the articles. Passages in another script are left out.
    pub extracts: u32,
    /// How many of them share the home of their article.
    pub extracts_together: u32,
    /// The fraction of running words that are in the language's list: the value for its row of the table.
    pub coverage: f64,
}

#[derive(Deserialize)]
struct Line {
    id: String,
    body: String,
    #[serde(alias = "language")]
    lang: Option<String>,
    content_type: Option<String>,
    source_id: Option<String>,
}

/// Measures a file with one JSON article per line, by declared language. Adds the results to `all`.
///
/// # Errors
/// Names the file, the line and what is expected there.
pub fn measure(path: &Path, all: &mut BTreeMap<String, HomeCounts>) -> Result<(), LabelledError> {
    let content =
        fs::read_to_string(path).map_err(|error| LabelledError::Unreadable { path: path.into(), error })?;
    let lines = content.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).map(|(at, line)| {
        let problem = |error: serde_json::Error| LabelledError::Line {
            path: path.into(),
            line: at + 1,
            problem: error.to_string(),
        };
        serde_json::from_str::<Line>(line).map_err(problem)
    });
    let (copies, originals): (Vec<Line>, Vec<Line>) = lines
        .collect::<Result<Vec<Line>, _>>()?
        .into_iter()
        .partition(|line| line.source_id.as_ref().is_some_and(|source| *source != line.id));
    let mut homes = BTreeMap::new();
    for line in &originals {
        let content_type = line.content_type.as_deref().and_then(ContentType::parse);
        // An article over the limit has no home.
        let Ok((home, normalized)) = find_home(&line.body, content_type) else { continue };
        homes.insert(line.id.as_str(), home);
        let row = line.lang.as_deref().and_then(language::find);
        let measured = all.entry(name(line)).or_default();
        let before = f64::from(measured.articles);
        measured.articles += 1;
        measured.at_home += u32::from(home == row.map_or(Lang::UND, language::Language::home));
        let coverage = row.map_or(0.0, |row| language::coverage(row.lang, &normalized));
        measured.coverage = (measured.coverage * before + f64::from(coverage)) / (before + 1.0);
        let home_row = language::row(home);
        let passages = extracts(&normalized, home_row.segment).into_iter();
        // An English passage of a bilingual Kurdish article belongs with English texts.
        for extract in passages.filter(|passage| language::is_in_script_of(home_row, passage)) {
            measured.extracts += 1;
            let extract = find_home(&extract, Some(ContentType::Plain));
            measured.extracts_together += u32::from(extract.is_ok_and(|(found, _)| found == home));
        }
    }
    for line in &copies {
        let content_type = line.content_type.as_deref().and_then(ContentType::parse);
        let source = line.source_id.as_deref().and_then(|source| homes.get(source));
        if let (Some(&source), Ok((home, _))) = (source, find_home(&line.body, content_type)) {
            let measured = all.entry(name(line)).or_default();
            measured.copies += 1;
            measured.copies_together += u32::from(home == source);
        }
    }
    Ok(())
}

fn name(line: &Line) -> String {
    line.lang.clone().unwrap_or_else(|| "und".to_owned())
}

fn find_home(body: &str, content_type: Option<ContentType>) -> Result<(Lang, String), Oversized> {
    let options = Options { trust: Trust::Text, ..Options::default() };
    let text = text::prepare(body, content_type, None, &options)?;
    Ok((text.language.home, text.normalized))
}

/// Three passages spread over the text; none where the text is too short.
fn extracts(normalized: &str, segment: Segmentation) -> Vec<String> {
    let (pieces, between): (Vec<&str>, _) = match segment {
        Segmentation::Words => (normalized.split(' ').collect(), " "),
        // Two characters correspond to about one word.
        Segmentation::Characters => {
            (normalized.char_indices().map(|(at, c)| &normalized[at..at + c.len_utf8()]).collect(), "")
        }
    };
    let scale = if between.is_empty() { 2 } else { 1 };
    let cut = |(start, words): (usize, usize)| pieces.get(start..start + words * scale);
    let passages = [(pieces.len() / 4, 24), (pieces.len() / 3, 36), (pieces.len() / 2, 50)];
    passages.into_iter().filter_map(cut).map(|passage| passage.join(between)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use samestory_engine::text::language::LANGUAGES;

    #[test]
    fn copies_and_extracts_are_counted_by_declared_language() {
        let english = LANGUAGES[1].sample;
        let lines = [
            ("a", "en", "a", english.repeat(5)),
            ("b", "en", "a", english.repeat(4)),
            ("c", "fr", "a", LANGUAGES[2].sample.repeat(5)),
            ("d", "tlh", "d", "…".to_owned()),
        ]
        .map(|(id, lang, source, body)| {
            serde_json::json!({ "id": id, "lang": lang, "source_id": source, "body": body }).to_string()
        });
        let path = std::env::temp_dir().join(format!("samestory-homes-{}.ndjson", std::process::id()));
        fs::write(&path, lines.join("\n")).unwrap();
        let mut all = BTreeMap::new();
        measure(&path, &mut all).unwrap();
        fs::remove_file(path).unwrap();
        let counted = |code: &str| {
            let HomeCounts {
                articles, at_home, copies, copies_together, extracts, extracts_together, ..
            } = all[code];
            [articles, at_home, copies, copies_together, extracts, extracts_together]
        };
        assert_eq!(counted("en"), [1, 1, 1, 1, 3, 3]);
        assert_eq!(counted("fr"), [0, 0, 1, 0, 0, 0]);
        assert_eq!(counted("tlh"), [1, 1, 0, 0, 0, 0]);
        assert!(all["en"].coverage > 0.3);
    }
}
