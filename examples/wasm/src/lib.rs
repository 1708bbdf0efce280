//! Two texts compared, as JSON. The page calls it as WebAssembly; tests call the same function natively.

pub mod door;

use std::ops::Range;

use samestory_engine::fingerprint::{config_hash, of_text};
use samestory_engine::text::markup::ContentType;
use samestory_engine::text::{Oversized, Text, language, passages, plain, prepare};
use samestory_engine::{Deduplicator, Fingerprint, Measure, Options, Relation, TextOptions};
use serde::Serialize;
use serde_json::{Value, json};

/// The limits are those of [`TextOptions::DEFAULT`].
const TOO_LONG: &str = "A text is too long: at most 1 MiB are compared, and 4 MiB with markup.";

/// A piece of a text, and the number of the passage that it is, if the other text has it too.
#[derive(Serialize)]
struct Piece<'a> {
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    passage: Option<usize>,
}

/// Compares two texts as `samestory compare` does: the relation, the evidence, and both texts in pieces. In the browser there is
/// no byte offset to go wrong: the pieces of a text, one after the other, are the text.
pub fn compare(older: &str, newer: &str) -> Value {
    let engine = Deduplicator::in_memory(Options::default());
    let (Ok(older), Ok(newer)) = (read(older), read(newer)) else {
        return json!({ "error": TOO_LONG });
    };
    let home = newer.text.language.home;
    let mut comparison =
        engine.engine().settings_for(home).compare_alone(&older.fingerprint, &newer.fingerprint);
    if older.text.language.home != home {
        comparison.relation = Relation::Different;
    }
    let common = passages::common_passages(&older.plain, &newer.plain, language::row(home));
    let evidence = Measure::ALL.into_iter().filter_map(|measure| {
        let share = comparison.evidence.get(measure)?;
        Some(json!({ "measure": measure.as_str(), "share": rounded(share) }))
    });
    json!({
        "relation": comparison.relation.as_str(),
        "duplicate": comparison.relation.is_duplicate(),
        "confidence": comparison.confidence.get(),
        "similarity": rounded(comparison.similarity),
        "containment": {
            "older_in_newer": rounded(comparison.containment_of_old),
            "newer_in_older": rounded(comparison.containment),
        },
        "languages": [older.text.language.lang, newer.text.language.lang],
        "evidence": evidence.collect::<Vec<Value>>(),
        "older": pieces(&older.plain, common.iter().map(|one| one.a.clone())),
        "newer": pieces(&newer.plain, common.iter().map(|one| one.b.clone())),
    })
}

/// A text, and what of it is compared.
struct Read {
    plain: String,
    text: Text,
    fingerprint: Fingerprint,
}

/// Strips markup once. What looks like markup afterwards is text.
fn read(body: &str) -> Result<Read, Oversized> {
    let options = TextOptions::DEFAULT;
    let plain = plain(body, None, &options)?.into_owned();
    let text = prepare(&plain, Some(ContentType::Plain), None, &options)?;
    let fingerprint = of_text(&text, config_hash(&options));
    Ok(Read { plain, text, fingerprint })
}

fn rounded(share: f64) -> f64 {
    (share * 10_000.0).round() / 10_000.0
}

/// Cuts a text at its passages. Where two of them overlap, the first one in the text has the common part.
fn pieces(text: &str, passages: impl Iterator<Item = Range<usize>>) -> Vec<Piece<'_>> {
    let mut numbered: Vec<(usize, Range<usize>)> = passages.enumerate().collect();
    numbered.sort_by_key(|(_, at)| (at.start, at.end));
    let (mut pieces, mut done) = (Vec::new(), 0);
    for (number, at) in numbered {
        let start = at.start.max(done);
        if start >= at.end {
            continue;
        }
        if done < start {
            pieces.push(Piece { text: &text[done..start], passage: None });
        }
        pieces.push(Piece { text: &text[start..at.end], passage: Some(number) });
        done = at.end;
    }
    if done < text.len() {
        pieces.push(Piece { text: &text[done..], passage: None });
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    const FERRY: &str = "The ferry between Saltmere and Gull Island will run again from Monday after six weeks of repairs, the operator \
                         said on Thursday. Engineers replaced both engines and a cracked propeller shaft at the yard in Tarn Bay.";

    fn text_of(pieces: &Value) -> String {
        let pieces = pieces.as_array().unwrap().iter();
        pieces.map(|piece| piece["text"].as_str().unwrap()).collect()
    }

    #[test]
    fn an_edited_copy_is_a_duplicate_with_its_passages() {
        let edited = FERRY.replace("Thursday", "Friday evening");
        let answer = compare(FERRY, &edited);
        assert_eq!((&answer["duplicate"], &answer["languages"]), (&json!(true), &json!(["en", "en"])));
        assert_eq!(answer["relation"], "near", "{answer}");
        assert_eq!((text_of(&answer["older"]), text_of(&answer["newer"])), (FERRY.to_owned(), edited));
        let passages: Vec<&Value> =
            answer["newer"].as_array().unwrap().iter().filter(|piece| piece["passage"].is_u64()).collect();
        assert_eq!(passages.len(), 2, "{answer}");
    }

    #[test]
    fn the_answer_is_that_of_the_engine() {
        let other =
            "Farmers in the Vale expect the smallest apple harvest since 1998 after a late frost in May.";
        for (older, newer) in [(FERRY, FERRY), (FERRY, other), ("", ""), (FERRY, "")] {
            let (answer, expected) = (compare(older, newer), samestory_engine::compare(older, newer));
            assert_eq!(answer["relation"], expected.relation.as_str());
            assert_eq!(answer["confidence"], expected.confidence.get());
        }
    }

    #[test]
    fn markup_is_stripped_once_and_what_remains_is_text() {
        let hostile = "<p>5 &lt; 6 &lt;img src=x onerror=alert(1)&gt; is written so.</p>";
        let answer = compare(hostile, hostile);
        assert_eq!(text_of(&answer["older"]).trim(), "5 < 6 <img src=x onerror=alert(1)> is written so.");
    }

    #[test]
    fn pieces_are_the_text_in_every_script_however_passages_overlap() {
        let text = "東京の港で船が出る。";
        let every: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        for a in &every {
            for b in &every {
                let passages = [*a..(*b).max(*a), 3..9, 6..15];
                let cut = pieces(text, passages.into_iter());
                assert_eq!(cut.iter().map(|piece| piece.text).collect::<String>(), text);
                assert!(cut.iter().all(|piece| !piece.text.is_empty()));
            }
        }
    }

    #[test]
    fn a_text_over_the_limit_is_an_answer_too() {
        assert_eq!((TextOptions::DEFAULT.max_bytes, TextOptions::DEFAULT.max_raw_bytes), (1 << 20, 4 << 20));
        for bytes in [TextOptions::DEFAULT.max_bytes, TextOptions::DEFAULT.max_raw_bytes] {
            assert_eq!(compare(&"x".repeat(bytes + 1), FERRY)["error"], TOO_LONG);
        }
    }
}
