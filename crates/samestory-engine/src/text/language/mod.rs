//! The table of languages, and the choice of a language and a home for each article.
//!
//! An article is only compared with articles of its home: a language, or a few close relatives that cannot be
//! told apart well enough to keep edited copies together. The home is a function of the text, so identical
//! texts always share one, whatever they declare. For any text, the answer is a row of a closed table, found
//! in bounded time.

mod detect;
mod neighbours;
mod script;
mod table;

pub use script::Script;
pub use table::LANGUAGES;

use crate::model::{Lang, LanguageSource};
use script::{Census, Excerpt};

/// How a language's text is cut into tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Segmentation {
    /// UAX #29 words, for scripts that put spaces between them.
    Words,
    /// Letters and digits one by one, for scripts that do not.
    Characters,
}

/// One row of the language table.
#[derive(Clone, Copy, Debug)]
pub struct Language {
    /// The code.
    pub lang: Lang,
    /// The language whose home it shares, if it has none of its own.
    pub home: Option<Lang>,
    /// Its name in English.
    pub name: &'static str,
    /// Other codes for it: ISO 639-2 and 639-3, and retired ones.
    pub aliases: &'static [&'static str],
    /// The scripts it is written in.
    pub scripts: &'static [Script],
    /// How its text is cut into tokens.
    pub segment: Segmentation,
    /// Tokens per shingle.
    pub shingle: usize,
    /// Its most common function words, which distinguish it from other languages of its script.
    pub words: &'static str,
    /// The fraction of running words in news that are in `words`, as reported by `samestory languages
    /// --measure`.
    pub coverage: f32,
    /// The letters of its own words beyond a to z; for a script other than Latin, its whole alphabet.
    pub letters: &'static str,
    /// A sentence that must be recognised as this language.
    pub sample: &'static str,
}

impl Language {
    /// The language that names its home, which has one store, one stream time and one row of settings.
    pub fn home(&self) -> Lang {
        self.home.unwrap_or(self.lang)
    }
}

/// Version of the words, letters and homes in the table. It is part of every fingerprint's config hash,
/// because articles placed by another table are not found. Increase it with every change; a test compares the
/// table with `TABLE_HASH`.
pub const TABLE_VERSION: u32 = 2;

/// Hash of the table at this version.
#[cfg(test)]
const TABLE_HASH: u64 = 0x8fb0_7435_9a4c_89d6;

/// The language that decides the home of an article (`language.trust`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trust {
    /// The text alone.
    #[default]
    Text,
    /// The declared language, if the table has it and the text is in one of its scripts; otherwise the text.
    Declared,
}

impl Trust {
    /// As written in the settings.
    pub const fn as_str(self) -> &'static str {
        match self {
            Trust::Text => "text",
            Trust::Declared => "declared",
        }
    }
}

/// Under [`Trust::Declared`], the minimum fraction of letters in one of the declared language's scripts (a
/// Latin letter weighs less, see `Script::weight`). A Hindi article full of English names stays Hindi; a
/// Hindi article that declares English and contains one product name does not become English.
const HONOUR_SHARE: f32 = 0.2;

/// Guesses below this confidence are discarded. Two languages that explain a page equally well score exactly
/// this: the earlier row, which more people write, is then the better guess.
const CONFIDENCE_FLOOR: f32 = 0.5;

/// Bytes per window for checking the script of a declared language. If less than half of these letters match,
/// the windows for recognition are checked instead.
const GLANCE_WINDOW: usize = 64;

/// Bytes per window for recognising a language: three windows hold some hundred words.
const DETECT_WINDOW: usize = 768;

/// Longer tags are not languages (RFC 5646 asks for room for 35).
const LONGEST_TAG: usize = 64;

/// How the declared language compares with the chosen one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tag {
    /// None was declared (or an empty one, or `und`).
    Absent,
    /// It names the chosen home.
    Honoured,
    /// It is not in the table.
    Unknown,
    /// It is in the table but names another home.
    Contradicted,
}

/// The language chosen for an article.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chosen {
    /// The home that owns the article.
    pub home: Lang,
    /// The reported language: the declared one if it shares the home, otherwise the recognised one.
    pub lang: Lang,
    /// How the home was determined.
    pub source: LanguageSource,
    /// Between 0 and 1: 1 for a declared language that was honoured, 0 for none.
    pub confidence: f32,
    /// How the declared language compares.
    pub tag: Tag,
}

/// Looks up a BCP 47 tag in any case, with `_` or `-`, or an ISO 639-2 or 639-3 code.
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

/// The table row of a language.
pub fn row(lang: Lang) -> &'static Language {
    LANGUAGES.iter().find(|language| language.lang == lang).unwrap_or(&LANGUAGES[0])
}

/// The home of a language.
pub fn home(lang: Lang) -> Lang {
    row(lang).home()
}

/// Chooses the home of an article and the language that is reported.
///
/// Depends on its arguments alone and examines a bounded part of the text. Under [`Trust::Text`], `declared`
/// does not influence the home.
pub fn choose(declared: Option<&str>, normalized_text: &str, trust: Trust) -> Chosen {
    let declared = declared.map(str::trim_ascii).filter(|tag| !tag.is_empty());
    let known = declared.and_then(find);
    if let Some(language) = known.filter(|language| trust == Trust::Declared && language.lang != Lang::UND) {
        let share = |window| Census::count(&Excerpt::new(normalized_text, window)).share(language.scripts);
        if share(GLANCE_WINDOW) >= 0.5 || share(DETECT_WINDOW) >= HONOUR_SHARE {
            return Chosen {
                home: language.home(),
                lang: language.lang,
                source: LanguageSource::Declared,
                confidence: 1.0,
                tag: Tag::Honoured,
            };
        }
    }
    let (lang, source, confidence) = match recognise(normalized_text) {
        Some((lang, confidence)) => (lang, LanguageSource::Text, confidence),
        None => (Lang::UND, LanguageSource::None, 0.0),
    };
    let home = home(lang);
    let (lang, tag) = match known {
        None if declared.is_some() => (lang, Tag::Unknown),
        None => (lang, Tag::Absent),
        Some(language) if language.lang == Lang::UND => (lang, Tag::Absent),
        Some(language) if language.home() == home => (language.lang, Tag::Honoured),
        Some(_) => (lang, Tag::Contradicted),
    };
    Chosen { home, lang, source, confidence, tag }
}

/// Recognises the language of a normalised text, with a confidence; `None` below the confidence floor.
pub fn recognise(normalized_text: &str) -> Option<(Lang, f32)> {
    let guess = detect::detect(&Excerpt::new(normalized_text, DETECT_WINDOW));
    (guess.row != 0 && guess.confidence >= CONFIDENCE_FLOOR)
        .then(|| (LANGUAGES[guess.row].lang, guess.confidence))
}

/// True if at least half of a text is in a script of the language. The row of unknown languages names no script, so every text is in its.
pub fn is_in_script_of(language: &Language, normalized_text: &str) -> bool {
    let share = || Census::count(&Excerpt::new(normalized_text, DETECT_WINDOW)).share(language.scripts);
    language.scripts.is_empty() || share() >= 0.5
}

/// The fraction of a text's words that are in a language's list; the table's `coverage` is the mean of it.
pub fn coverage(lang: Lang, normalized_text: &str) -> f32 {
    let row = LANGUAGES.iter().position(|row| row.lang == lang).unwrap_or(0);
    detect::coverage(row, &Excerpt::new(normalized_text, DETECT_WINDOW))
}

#[cfg(test)]
mod tests {
    use super::neighbours::Neighbour;
    use super::*;

    /// The part of normalisation that language detection depends on.
    fn normalize(text: &str) -> String {
        text.to_lowercase().replace(['\u{200c}', '\u{200d}'], "")
    }

    fn codes(tag: &str) -> Option<&'static str> {
        find(tag).map(|language| language.lang.code())
    }

    #[test]
    fn every_language_recognises_its_own_sample() {
        for language in &LANGUAGES[1..] {
            let found = recognise(&normalize(language.sample)).map(|(lang, _)| lang);
            assert_eq!(found, Some(language.lang), "add a clearer sample for {}", language.lang);
        }
    }

    #[test]
    fn the_first_row_is_und_and_codes_are_distinct() {
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
    fn a_tag_outside_the_table_is_not_found() {
        let long = format!("en-{}", "x".repeat(4096));
        for tag in ["", " ", "-", "x-klingon", "e", "english", "tlh", "e\u{301}n", "日本", "i-default", &long]
        {
            assert_eq!(codes(tag), None, "{tag}");
        }
    }

    /// Byte-identical copies were missed if their language fields differed (en/fr, hi/mr, hr/sr, or none at
    /// all), because the field used to pick the store.
    #[test]
    fn identical_texts_share_a_home_whatever_they_declare() {
        for language in &LANGUAGES[1..] {
            let text = normalize(language.sample);
            let home = choose(None, &text, Trust::Text).home;
            assert_eq!(home, language.home());
            for other in LANGUAGES {
                let chosen = choose(Some(other.lang.code()), &text, Trust::Text);
                assert_eq!(chosen.home, home, "{} declared as {}", language.lang, other.lang);
                let tag = match other.home() {
                    Lang::UND => Tag::Absent,
                    own if own == home => Tag::Honoured,
                    _ => Tag::Contradicted,
                };
                assert_eq!(chosen.tag, tag, "{} declared as {}", language.lang, other.lang);
            }
        }
    }

    #[test]
    fn the_declared_language_names_a_relative_inside_its_home() {
        let croatian = normalize(row(Lang::from_table("hr")).sample);
        let named = |declared| {
            let chosen = choose(declared, &croatian, Trust::Text);
            (chosen.home.code(), chosen.lang.code())
        };
        assert_eq!(named(None), ("hr", "hr"));
        assert_eq!(named(Some("sr-Latn")), ("hr", "sr"));
        assert_eq!(named(Some("bs")), ("hr", "hr"));
        assert_eq!(named(Some("en")), ("hr", "hr"));
    }

    #[test]
    fn relatives_in_one_home_are_cut_alike() {
        for language in LANGUAGES {
            let home = row(language.home());
            assert_eq!(home.home, None, "{}", language.lang);
            assert_eq!(
                (home.segment, home.shingle),
                (language.segment, language.shingle),
                "{}",
                language.lang
            );
        }
    }

    #[test]
    fn the_table_matches_its_version() {
        let mut all = String::new();
        for Language { lang, home, aliases, scripts, words, coverage, letters, .. } in LANGUAGES {
            let home = home.map_or("", Lang::code);
            all += &format!("{} {home} {aliases:?} {scripts:?} {words} {coverage} {letters}\n", lang.code());
        }
        for Neighbour { script, words, letters, .. } in neighbours::NEIGHBOURS {
            all += &format!("{script:?} {words} {letters}\n");
        }
        let hash = xxhash_rust::xxh3::xxh3_64(all.as_bytes());
        assert_eq!(hash, TABLE_HASH, "raise TABLE_VERSION and set TABLE_HASH to {hash:#018x}");
    }

    #[test]
    fn a_trusted_language_is_honoured_where_its_script_occurs() {
        let hindi = row(Lang::from_table("hi")).sample;
        let chosen = choose(Some("hi-IN"), hindi, Trust::Declared);
        assert_eq!(
            (chosen.lang.code(), chosen.source, chosen.tag),
            ("hi", LanguageSource::Declared, Tag::Honoured)
        );
        // Marathi shares the script, so the publisher knows better.
        assert_eq!(choose(Some("mr"), hindi, Trust::Declared).home.code(), "mr");
        // Full of foreign names, and still Hindi.
        let names =
            format!("{hindi} samsung galaxy s24 ultra और apple iphone 15 pro max google pixel microsoft");
        assert_eq!(choose(Some("hi"), &names, Trust::Declared).home.code(), "hi");
    }

    #[test]
    fn a_trusted_language_is_not_honoured_in_a_text_without_its_script() {
        let english = normalize(row(Lang::from_table("en")).sample);
        let chosen = choose(Some("hi"), &english, Trust::Declared);
        assert_eq!(
            (chosen.home.code(), chosen.source, chosen.tag),
            ("en", LanguageSource::Text, Tag::Contradicted)
        );
        let hindi = format!("{} iphone", row(Lang::from_table("hi")).sample);
        assert_eq!(choose(Some("en"), &hindi, Trust::Declared).home.code(), "hi");
    }

    /// A short article in a page with a long English frame was placed in English, the language of its frame.
    /// English must cover the running text, not just occur in it.
    #[test]
    fn an_english_frame_does_not_decide_for_the_article_inside() {
        let frame = "share this article on facebook and twitter or by email. sign up to our free daily newsletter for \
                     the stories that matter, delivered to your inbox every morning. you can unsubscribe at any time.";
        for language in &LANGUAGES[2..] {
            let framed = format!("{} {frame}", normalize(language.sample).repeat(4));
            let chosen = choose(None, &framed, Trust::Text);
            assert_eq!(chosen.home, language.home(), "{}", language.lang);
        }
        // Ilocano, which is not in the table.
        let unknown = "iti daytoy nga aldaw naipakaammo ti gobierno a maserraan ti daan a rangtay tapno matarimaan, ket \
                       dagiti bus agdaliasatda iti sabali a kalsada agingga a malpas ti trabaho dagiti trabahador."
            .repeat(3);
        assert_eq!(choose(None, &unknown, Trust::Text).home, Lang::UND);
        assert_eq!(choose(None, &format!("{frame} {unknown} {frame}"), Trust::Text).home, Lang::UND);
    }

    /// 641 tokens of English became `und`, because results and tables contain few function words. The list
    /// now has the words of tables too, and foreign letters in names do not count against the running text.
    #[test]
    fn english_full_of_names_and_numbers_is_english() {
        let results = "leeds beat bristol 2-1 on saturday, half time 1-0, with goals by núñez (12), müller (54) and søren \
                       (80). points after 14 games: leeds 31, exeter 28, cardiff 27, norwich 25. coach ibrahimović said the \
                       team had won at home for the third time this season. next week: leeds v cardiff. ";
        let table = "first quarter net profit 3,014,000 vs loss 656,000, sales 22.7 million vs 23.6 million, share 49 cents \
                     vs 10 cents, dividend six cents vs five. year net income 93.1 million vs 90.4 million. ";
        let names = "the song contest was won by françois núñez of spain, who sang before håkan sørensen of norway and \
                     łukasz dvořák of poland. the jury gave second place to gülşen çelik, while ibrahimović and žižek \
                     shared the third. the others were björk þórsdóttir, ștefan țepeș, māris bērziņš and jānis ķēniņš. ";
        for text in
            [results.repeat(8), table.repeat(12), names.repeat(4), format!("{results}{table}").repeat(6)]
        {
            assert_eq!(choose(None, &text, Trust::Text).home.code(), "en", "{text}");
        }
    }

    #[test]
    fn a_text_in_two_languages_belongs_to_the_one_with_more_text() {
        let sample = |code: &str| normalize(find(code).unwrap().sample);
        let home = |text: &str| choose(None, text, Trust::Text).home.code();
        for (more, less) in [("de", "fr"), ("es", "en"), ("en", "es"), ("hi", "en"), ("ru", "en")] {
            let (more_text, less_text) = (sample(more).repeat(5), sample(less));
            assert_eq!(home(&format!("{more_text} {less_text}")), more);
            assert_eq!(home(&format!("{less_text} {more_text}")), more);
        }
        // Half and half: either of the two or neither, but independent of the order.
        let (german, french) = (sample("de"), sample("fr"));
        let halves = home(&format!("{german} {french}"));
        assert_eq!(halves, home(&format!("{french} {german}")));
        assert!(["de", "fr", "und"].contains(&halves), "{halves}");
    }

    #[test]
    fn an_unknown_tag_leaves_the_choice_to_the_text() {
        let english = normalize(row(Lang::from_table("en")).sample);
        let chosen = choose(Some("x-klingon"), &english, Trust::Text);
        assert_eq!((chosen.lang.code(), chosen.tag), ("en", Tag::Unknown));
        for absent in [None, Some(""), Some("  "), Some("und")] {
            assert_eq!(choose(absent, &english, Trust::Text).tag, Tag::Absent);
        }
    }

    #[test]
    fn a_text_without_letters_has_no_language() {
        for text in ["", " ", "2024 17.5 % – 3", "🎉🔥😂👍🏽", "\u{301}\u{301}\u{308}", "\u{fffd}\u{fffd}"]
        {
            for declared in [None, Some("en"), Some("hi")] {
                for trust in [Trust::Text, Trust::Declared] {
                    let chosen = choose(declared, text, trust);
                    assert_eq!((chosen.home, chosen.source), (Lang::UND, LanguageSource::None), "{text:?}");
                    assert_eq!((chosen.lang, chosen.confidence), (Lang::UND, 0.0));
                }
            }
        }
    }
}
