//! From the body that the crawler fetched to the text that is compared.
//!
//! [`prepare`] strips the markup, normalises the rest and determines its language; `fingerprint` reads the result.
//! Every step is a pure function, bounded by [`Options::max_raw_bytes`] and [`Options::max_bytes`] for any input.

mod block;
mod chars;
mod form;
pub mod language;
mod look_alikes;
pub mod markup;
mod names;
pub mod normalize;
mod notices;
mod numbers;
pub mod passages;
pub mod shingle;
pub mod shingling;
mod spelling;
mod words;

use std::borrow::Cow;
use std::sync::Arc;

use crate::model::ContentKind;
use language::{Chosen, Trust};
use markup::ContentType;
pub(crate) use numbers::{is_figure, notice_mark};
use shingling::{Shingling, Shinglings};

/// How article text is prepared. Changing anything but the limits changes fingerprints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The longest accepted body, in bytes, including markup.
    pub max_raw_bytes: usize,
    /// The longest accepted text, in bytes, both without markup and after normalisation.
    pub max_bytes: usize,
    /// Merge look-alike characters of different scripts (UTS #39).
    pub skeleton: bool,
    /// The language that decides an article's home: that of its text, or the declared one.
    pub trust: Trust,
    /// Remove accents from Latin letters.
    pub fold_accents: bool,
    /// Transliterate Serbian to Latin letters.
    pub fold_serbian: bool,
    /// Convert traditional Chinese characters to simplified ones.
    pub fold_han: bool,
    /// The languages whose shingles are cut otherwise than the language table says.
    #[doc(hidden)]
    pub shinglings: Shinglings,
}

impl Options {
    /// The defaults of the settings file.
    pub const DEFAULT: Options = Options {
        max_raw_bytes: 4 << 20,
        max_bytes: 1 << 20,
        skeleton: false,
        fold_accents: false,
        fold_serbian: false,
        fold_han: false,
        trust: Trust::Text,
        shinglings: Shinglings::NONE,
    };
}

impl Default for Options {
    fn default() -> Options {
        Options::DEFAULT
    }
}

/// An article that exceeds a length limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Oversized {
    /// The body exceeds [`Options::max_raw_bytes`]; nothing was parsed.
    #[error("body of {length} bytes; at most {limit} are parsed (text.max_raw_bytes)")]
    Raw {
        /// Length of the body, in bytes.
        length: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The text exceeds [`Options::max_bytes`], without markup or after normalisation.
    #[error("{0} (text.max_bytes)")]
    Text(#[from] TooLarge),
}

/// A text grew past its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("text is longer than {limit} bytes")]
pub struct TooLarge {
    /// The limit, in bytes.
    pub limit: usize,
}

/// A text ready to be fingerprinted.
#[derive(Clone, Debug)]
pub struct Text {
    /// The normalised text.
    pub normalized: String,
    /// Its language, and how it was determined.
    pub language: Chosen,
    /// The hashes of its names, one per occurrence.
    pub names: Vec<u16>,
    /// How its shingles are cut, if not as the language table says.
    pub shingling: Option<Arc<Shingling>>,
    /// What its lines look like: ordinary, a list or a table.
    form: ContentKind,
}

impl Text {
    /// What kind of content it is, with as many tokens as its fingerprint has.
    pub fn content_kind(&self, tokens: u32) -> ContentKind {
        self.form.of_length(tokens, self.language.home)
    }
}

/// Prepares an article's body.
///
/// `declared` is the article's declared language. It decides the home only under [`Trust::Declared`].
///
/// # Errors
/// The body or its text is [`Oversized`], so it has no fingerprint under these limits.
pub fn prepare(
    body: &str,
    content_type: Option<ContentType>,
    declared: Option<&str>,
    options: &Options,
) -> Result<Text, Oversized> {
    let plain = plain(body, content_type, options)?;
    let normalized = normalize::normalize(&plain, options.max_bytes)?;
    // Before look-alikes are merged, because a skeleton mixes scripts.
    let language = language::choose(declared, &normalized, options.trust);
    let (normalized, language) = respell(normalized, language, declared, options)?;
    let normalized =
        if options.skeleton { normalize::skeleton(&normalized, options.max_bytes)? } else { normalized };
    Ok(Text {
        names: names::names(&plain),
        shingling: options.shinglings.of(language.home).cloned(),
        form: form::form(&plain, &normalized, language::row(language.home).segment),
        normalized,
        language,
    })
}

/// The hashes of a headline's words, which are evidence beside the text. Words of one or two letters are skipped.
pub fn title_words(title: &str, language: &language::Language, options: &Options) -> Vec<u16> {
    let Ok(normalized) = normalize::normalize(title, options.max_bytes) else { return Vec::new() };
    if language.segment == language::Segmentation::Characters {
        return shingle::shingles(&normalized, language)
            .words
            .iter()
            .map(|word| (word >> 48) as u16)
            .collect();
    }
    let words = normalized.split(|c: char| !c.is_alphanumeric());
    words.filter(|word| word.chars().nth(2).is_some()).map(names::stem).collect()
}

/// Longer texts are articles, whatever their headlines say.
pub const LONGEST_STUB: u32 = 200;

/// True if a text contains nothing of its headline. Hardly any article is like that, but a consent text, a disclaimer or a paywall
/// stub under the headline of the article that it hides is.
pub fn is_foreign(title: &str, text: &Text, language: &language::Language, options: &Options) -> bool {
    /// Shorter words occur in any text. Of longer ones only this many letters count, so that an ending does not make another word.
    const STEM: usize = 5;
    /// With fewer words or pairs of characters there is no telling.
    const ENOUGH: usize = 3;
    let respelled =
        normalize::normalize(title, options.max_bytes)
            .and_then(|title| respell(title, text.language, None, options))
            .and_then(|(title, _)| {
                if options.skeleton { normalize::skeleton(&title, options.max_bytes) } else { Ok(title) }
            });
    let Ok(title) = respelled else { return false };
    let stems: Vec<String> = if language.segment == language::Segmentation::Characters {
        let letters: Vec<char> = title.chars().filter(|c| c.is_alphanumeric()).collect();
        letters.windows(2).map(|pair| pair.iter().collect()).collect()
    } else {
        let words =
            title.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().nth(STEM - 1).is_some());
        words.map(|word| word.chars().take(STEM).collect()).collect()
    };
    stems.len() >= ENOUGH && !stems.iter().any(|stem| text.normalized.contains(stem.as_str()))
}

/// Applies the optional folds to a text, and determines its language again if a fold may change it.
fn respell(
    text: String,
    language: Chosen,
    declared: Option<&str>,
    options: &Options,
) -> Result<(String, Chosen), TooLarge> {
    let (mut text, mut language) = (text, language);
    if options.fold_serbian && matches!(language.lang.code(), "sr" | "hr") {
        text = normalize::normalize(&spelling::serbian_in_latin(&text), options.max_bytes)?;
        // Both scripts must end up in the same home, so the folded text decides.
        language = language::choose(declared, &text, options.trust);
    }
    if options.fold_han && language.lang.code() == "zh" {
        text = spelling::simplified(&text).into_owned();
    }
    if options.fold_accents {
        text = spelling::without_accents(&text, options.max_bytes)?;
    }
    if text.len() > options.max_bytes {
        return Err(TooLarge { limit: options.max_bytes });
    }
    Ok((text, language))
}

/// An article's body without markup, as a reader sees it.
///
/// # Errors
/// As [`prepare`].
pub fn plain<'a>(
    body: &'a str,
    content_type: Option<ContentType>,
    options: &Options,
) -> Result<Cow<'a, str>, Oversized> {
    if body.len() > options.max_raw_bytes {
        return Err(Oversized::Raw { length: body.len(), limit: options.max_raw_bytes });
    }
    Ok(markup::to_text(body, content_type.unwrap_or_else(|| markup::sniff(body)), options.max_bytes)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(body: &str, options: &Options) -> Text {
        prepare(body, None, None, options).unwrap()
    }

    #[test]
    fn the_body_and_its_text_have_separate_limits() {
        // A page of two megabytes with a story of one kilobyte became a dead letter, because the limit for
        // the text was checked before the markup was stripped.
        let page = format!("<p>A story.</p><script>{}</script>", "x".repeat(2 << 20));
        assert_eq!(text(&page, &Options::DEFAULT).normalized, "a story.");
        let page = format!("<p>A story.</p><script>{}</script>", "x".repeat(4 << 20));
        let refused = prepare(&page, None, None, &Options::DEFAULT).unwrap_err();
        assert_eq!(refused, Oversized::Raw { length: page.len(), limit: 4 << 20 });
        assert_eq!(
            refused.to_string(),
            "body of 4194336 bytes; at most 4194304 are parsed (text.max_raw_bytes)"
        );
        let story = format!("<p>{}</p>", "story ".repeat(1 << 18));
        let refused = prepare(&story, None, None, &Options::DEFAULT).unwrap_err();
        assert_eq!(refused, Oversized::Text(TooLarge { limit: 1 << 20 }));
        assert_eq!(refused.to_string(), "text is longer than 1048576 bytes (text.max_bytes)");
    }

    #[test]
    fn a_headline_is_foreign_to_a_text_that_has_none_of_its_words() {
        let foreign = |title: &str, body: &str| {
            let text = text(body, &Options::DEFAULT);
            is_foreign(title, &text, language::row(text.language.home), &Options::DEFAULT)
        };
        let stub =
            "You have read all of your free articles this month. Please log in or subscribe to continue.";
        assert!(foreign("Council closes harbour bridge for repairs", stub));
        assert!(!foreign("Free articles this month", stub));
        assert!(!foreign("Bridge closed", stub), "two words are too few to tell");
        let story = "The old bridge over the harbour will be closed from Monday, the council said.";
        assert!(!foreign("Council closes harbour bridge for repairs", story));
        let (headline, notice) =
            ("神戸の旧橋を閉鎖、市が発表", "この記事は会員限定です。続きを読むにはログインしてください。");
        assert!(foreign(headline, notice));
        assert!(!foreign(headline, "神戸市は月曜日、老朽化した旧橋を閉鎖すると発表した。"));
    }

    #[test]
    fn spellings_are_folded_if_the_settings_say_so() {
        let in_cyrillic = "Град је у понедељак саопштио да ће стари мост бити затворен због поправке и да ће аутобуси \
            возити другим путем док се радови не заврше, рекао је градоначелник после седнице.";
        let in_latin = "Grad je u ponedeljak saopštio da će stari most biti zatvoren zbog popravke i da će autobusi \
            voziti drugim putem dok se radovi ne završe, rekao je gradonačelnik posle sednice.";
        let (traditional, simplified) = (
            "市政府星期一表示，舊橋將關閉維修，公共汽車將改走其他路線。",
            "市政府星期一表示，旧桥将关闭维修，公共汽车将改走其他路线。",
        );
        let (accents, none) =
            ("Le maire a été élu à Orléans l'été dernier", "Le maire a ete elu a Orleans l'ete dernier");
        for (a, b, options) in [
            (in_cyrillic, in_latin, Options { fold_serbian: true, ..Options::DEFAULT }),
            (traditional, simplified, Options { fold_han: true, ..Options::DEFAULT }),
            (accents, none, Options { fold_accents: true, ..Options::DEFAULT }),
        ] {
            assert_eq!(text(a, &options).normalized, text(b, &options).normalized);
            assert_ne!(text(a, &Options::DEFAULT).normalized, text(b, &Options::DEFAULT).normalized);
            let again = text(&text(a, &options).normalized, &options);
            assert_eq!(again.normalized, text(a, &options).normalized);
        }
        let both = Options { fold_serbian: true, ..Options::DEFAULT };
        assert_eq!(text(in_cyrillic, &both).language.lang, text(in_latin, &both).language.lang);
        // Japanese keeps its characters, Russian its script.
        let all = Options { fold_serbian: true, fold_han: true, ..Options::DEFAULT };
        for other in [
            "市は月曜日、古い橋を閉鎖し、學校の鐵道も止まると發表した。",
            "Старый мост закрыли на ремонт, автобусы пойдут в объезд до конца года.",
        ] {
            assert_eq!(text(other, &all).normalized, text(other, &Options::DEFAULT).normalized);
        }
    }
}
