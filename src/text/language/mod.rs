//! The LANGUAGES table, and choosing a language for an article.
//!
//! The language decides where an article is compared and how its text is cut, so it is untrusted input made safe:
//! whatever is declared and whatever the text, the answer is a row of a closed table, found in bounded time.

mod detect;
mod neighbours;
mod script;
mod table;

pub use script::Script;
pub use table::LANGUAGES;

use crate::model::{Lang, LanguageSource};
use script::{Census, Sample};

/// How a language's text is cut into tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Segment {
    /// UAX #29 words, for scripts that put spaces between them.
    Words,
    /// Letters and digits one by one, for scripts that do not.
    Characters,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Language {
    /// The language.
    pub lang: Lang,
    /// Its name in English.
    pub name: &'static str,
    /// Other codes it goes by: ISO 639-2 and 639-3, and retired ones.
    pub aliases: &'static [&'static str],
    /// The scripts it is written in.
    pub scripts: &'static [Script],
    /// How its text is cut.
    pub segment: Segment,
    /// Tokens per shingle.
    pub shingle: usize,
    /// The words that hold its sentences together, by which it is told from others of its script.
    pub words: &'static str,
    /// The letters its own words use beyond a to z; for a script other than Latin, its whole alphabet.
    pub letters: &'static str,
    /// A sentence that is recognised as this language.
    pub sample: &'static str,
}

/// A declared language is honoured where at least this part of the letters is in one of its scripts (a Latin letter
/// counts half, see `Script::weight`). A Hindi
/// article full of English names stays Hindi; an article in Hindi that calls itself English, with one product
/// name in it, does not become English.
const HONOUR_SHARE: f32 = 0.2;

/// Below this a guess is not used. Two languages that explain a page equally well leave just this much: then the
/// earlier row, which more people write, is the better guess.
const CONFIDENCE_FLOOR: f32 = 0.5;

/// Looked at to check a declared language, three times: a line shows the script. Where the half of it is in
/// another one, as much is looked at as for recognising.
const GLANCE_WINDOW: usize = 64;

/// Looked at to recognise a language, three times: together some hundred words.
const DETECT_WINDOW: usize = 768;

/// Longer tags are nobody's language (RFC 5646 asks for room for 35).
const LONGEST_TAG: usize = 64;

/// What became of the language an article declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tag {
    /// None was declared (or an empty one, or `und`).
    Absent,
    /// It is the language chosen.
    Honoured,
    /// It is not in the table.
    Unknown,
    /// It is in the table, but the text is in another script.
    Contradicted,
}

/// The language chosen for an article.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chosen {
    /// The language.
    pub lang: Lang,
    /// How it became known.
    pub source: LanguageSource,
    /// How sure we are, from 0 to 1: 1 for a declared language, 0 for none.
    pub confidence: f32,
    /// What became of the declared one.
    pub tag: Tag,
}

/// The row of a BCP 47 tag: any case, `_` for `-`, and the codes of ISO 639-2 and 639-3 too.
pub fn find(tag: &str) -> Option<&'static Language> {
    let tag = tag.trim_ascii();
    if tag.len() > LONGEST_TAG {
        return None;
    }
    let primary = tag.split(['-', '_', '.', '@']).next().unwrap_or(tag);
    if !matches!(primary.len(), 2 | 3) {
        return None;
    }
    let same = |code: &&str| code.eq_ignore_ascii_case(primary);
    LANGUAGES
        .iter()
        .find(|language| same(&language.lang.code()))
        .or_else(|| LANGUAGES.iter().find(|language| language.aliases.iter().any(same)))
}

/// The row of a language.
pub fn row(lang: Lang) -> &'static Language {
    LANGUAGES.iter().find(|language| language.lang == lang).unwrap_or(&LANGUAGES[0])
}

/// Chooses the language of an article: the declared one if the table has it and the text is in its script, else
/// the one recognised from the text, else `und`.
///
/// It is a function of its two arguments alone, and looks at a bounded part of the text.
pub fn choose(declared: Option<&str>, canonical_text: &str) -> Chosen {
    let tag = match declared.map(|tag| (tag, find(tag))) {
        None => Tag::Absent,
        Some((tag, None)) if tag.trim_ascii().is_empty() => Tag::Absent,
        Some((_, None)) => Tag::Unknown,
        Some((_, Some(language))) if language.lang == Lang::UND => Tag::Absent,
        Some((_, Some(language))) => {
            let share = |window| Census::of(&Sample::of(canonical_text, window)).share(language.scripts);
            if share(GLANCE_WINDOW) >= 0.5 || share(DETECT_WINDOW) >= HONOUR_SHARE {
                return Chosen {
                    lang: language.lang,
                    source: LanguageSource::Declared,
                    confidence: 1.0,
                    tag: Tag::Honoured,
                };
            }
            Tag::Contradicted
        }
    };
    match recognise(canonical_text) {
        Some((lang, confidence)) => Chosen { lang, source: LanguageSource::Detected, confidence, tag },
        None => Chosen { lang: Lang::UND, source: LanguageSource::None, confidence: 0.0, tag },
    }
}

/// The language of a canonical text, and how sure that is; `None` below the confidence floor.
pub fn recognise(canonical_text: &str) -> Option<(Lang, f32)> {
    let guess = detect::detect(&Sample::of(canonical_text, DETECT_WINDOW));
    (guess.row != 0 && guess.confidence >= CONFIDENCE_FLOOR)
        .then(|| (LANGUAGES[guess.row].lang, guess.confidence))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As far as telling languages apart goes, what canonical text does.
    fn canonical(text: &str) -> String {
        text.to_lowercase().replace(['\u{200c}', '\u{200d}'], "")
    }

    fn codes(tag: &str) -> Option<&'static str> {
        find(tag).map(|language| language.lang.code())
    }

    #[test]
    fn every_language_recognises_its_own_sample() {
        for language in &LANGUAGES[1..] {
            let found = recognise(&canonical(language.sample)).map(|(lang, _)| lang);
            assert_eq!(found, Some(language.lang), "add a clearer sample for {}", language.lang);
        }
    }

    #[test]
    fn the_first_row_is_und_and_no_code_is_used_twice() {
        assert_eq!(LANGUAGES[0].lang, Lang::UND);
        let mut codes: Vec<&str> =
            LANGUAGES.iter().flat_map(|row| [&[row.lang.code()], row.aliases].concat()).collect();
        codes.sort_unstable();
        let all = codes.len();
        codes.dedup();
        assert_eq!(codes.len(), all);
    }

    #[test]
    fn every_row_can_be_found_by_its_language() {
        for language in LANGUAGES {
            assert_eq!(row(language.lang).lang, language.lang);
            assert_eq!(codes(language.lang.code()), Some(language.lang.code()));
        }
    }

    #[test]
    fn a_tag_is_read_by_its_primary_subtag_in_any_case() {
        for (tag, code) in [
            ("en", "en"),
            ("EN-us", "en"),
            ("en_GB.UTF-8", "en"),
            (" hi-IN ", "hi"),
            ("zh-Hant", "zh"),
            ("ZH_hans_cn", "zh"),
            ("sr-Latn-RS", "sr"),
            ("iw", "he"),
            ("in-ID", "id"),
            ("eng", "en"),
            ("HIN", "hi"),
            ("jpn", "ja"),
            ("ger", "de"),
            ("nb-NO", "no"),
            ("nn", "no"),
            ("und", "und"),
        ] {
            assert_eq!(codes(tag), Some(code), "{tag}");
        }
    }

    #[test]
    fn a_tag_that_is_no_language_of_ours_is_none() {
        let long = format!("en-{}", "x".repeat(4096));
        for tag in ["", " ", "-", "x-klingon", "e", "english", "tlh", "e\u{301}n", "日本", "i-default", &long]
        {
            assert_eq!(codes(tag), None, "{tag}");
        }
    }

    #[test]
    fn a_declared_language_is_honoured_where_its_script_occurs() {
        let hindi = row(Lang::from_table("hi")).sample;
        let chosen = choose(Some("hi-IN"), hindi);
        assert_eq!(
            (chosen.lang.code(), chosen.source, chosen.tag),
            ("hi", LanguageSource::Declared, Tag::Honoured)
        );
        // Marathi shares the script: whoever published it knows better.
        assert_eq!(choose(Some("mr"), hindi).lang.code(), "mr");
        // Full of names, and still Hindi.
        let names =
            format!("{hindi} samsung galaxy s24 ultra और apple iphone 15 pro max google pixel microsoft");
        assert_eq!(choose(Some("hi"), &names).lang.code(), "hi");
    }

    #[test]
    fn a_declared_language_is_not_honoured_in_a_text_without_its_script() {
        let english = canonical(row(Lang::from_table("en")).sample);
        let chosen = choose(Some("hi"), &english);
        assert_eq!(
            (chosen.lang.code(), chosen.source, chosen.tag),
            ("en", LanguageSource::Detected, Tag::Contradicted)
        );
        let hindi = format!("{} iphone", row(Lang::from_table("hi")).sample);
        assert_eq!(choose(Some("en"), &hindi).lang.code(), "hi");
    }

    #[test]
    fn an_unknown_tag_leaves_the_choice_to_the_text() {
        let english = canonical(row(Lang::from_table("en")).sample);
        let chosen = choose(Some("x-klingon"), &english);
        assert_eq!((chosen.lang.code(), chosen.tag), ("en", Tag::Unknown));
        for absent in [None, Some(""), Some("  "), Some("und")] {
            assert_eq!(choose(absent, &english).tag, Tag::Absent);
        }
    }

    #[test]
    fn a_text_without_letters_has_no_language() {
        for text in ["", " ", "2024 17.5 % – 3", "🎉🔥😂👍🏽", "\u{301}\u{301}\u{308}", "\u{fffd}\u{fffd}"]
        {
            for declared in [None, Some("en"), Some("hi")] {
                let chosen = choose(declared, text);
                assert_eq!((chosen.lang, chosen.source), (Lang::UND, LanguageSource::None), "{text:?}");
                assert_eq!(chosen.confidence, 0.0);
            }
        }
    }
}
