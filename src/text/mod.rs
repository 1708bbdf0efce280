//! An article's text: from what the crawler fetched to what is compared.
//!
//! Markup is taken off, what remains becomes canonical text, and a language is chosen for it. Everything is
//! bounded by [`Options::max_raw_bytes`] and [`Options::max_bytes`], whatever the article says.

mod block;
pub mod canonical;
mod chars;
pub mod language;
mod look_alikes;
pub mod markup;
mod names;
mod notices;
mod numbers;
pub mod passages;
pub mod shingle;
mod spelling;
mod words;

use std::borrow::Cow;

use language::{Chosen, Trust};
use markup::ContentType;
pub(crate) use numbers::{is_figure, notice_mark};

/// How article text is prepared. A change here changes fingerprints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The longest body that is read, in bytes, with its markup.
    pub max_raw_bytes: usize,
    /// The longest text that is looked at, in bytes, without markup and after it is normalised.
    pub max_bytes: usize,
    /// Merge look-alike characters of different scripts (UTS #39).
    pub skeleton: bool,
    /// What decides where an article lives.
    pub trust: Trust,
    /// Latin letters with and without accents are one.
    pub fold_accents: bool,
    /// Serbian in Cyrillic and in Latin letters is one.
    pub fold_serbian: bool,
    /// Traditional and simplified Chinese characters are one.
    pub fold_han: bool,
}

impl Options {
    /// What holds unless the settings say otherwise.
    pub const DEFAULT: Options = Options {
        max_raw_bytes: 4 << 20,
        max_bytes: 1 << 20,
        skeleton: false,
        fold_accents: false,
        fold_serbian: false,
        fold_han: false,
        trust: Trust::Text,
    };
}

impl Default for Options {
    fn default() -> Options {
        Options::DEFAULT
    }
}

/// An article that is longer than it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Oversized {
    /// Before anything is parsed.
    #[error("body of {length} bytes; at most {limit} are parsed (text.max_raw_bytes)")]
    Raw {
        /// Of the body, in bytes.
        length: usize,
        /// The bound, in bytes.
        limit: usize,
    },
    /// Without its markup, or once it is normalised.
    #[error("{0} (text.max_bytes)")]
    Text(#[from] TooLarge),
}

/// The text grew past the bound that was set for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("text is longer than {limit} bytes")]
pub struct TooLarge {
    /// The bound, in bytes.
    pub limit: usize,
}

/// A text ready to be fingerprinted.
#[derive(Clone, Debug)]
pub struct Text {
    /// Canonical text.
    pub canonical: String,
    /// Its language, and how that became known.
    pub language: Chosen,
    /// The hashes of its names, one for each occurrence.
    pub names: Vec<u16>,
}

/// Prepares an article's body.
///
/// `declared` is the language the article claims. It decides where the article lives only under [`Trust::Declared`].
///
/// # Errors
/// The body or its text is [`Oversized`]: it was not read to its end, and has no fingerprint under this limit.
pub fn prepare(
    body: &str,
    content_type: Option<ContentType>,
    declared: Option<&str>,
    options: &Options,
) -> Result<Text, Oversized> {
    let plain = plain(body, content_type, options)?;
    let canonical = canonical::canonical(&plain, options.max_bytes)?;
    // Before look-alikes are merged: a skeleton mixes scripts.
    let language = language::choose(declared, &canonical, options.trust);
    let (canonical, language) = respelled(canonical, language, declared, options)?;
    let canonical =
        if options.skeleton { canonical::skeleton(&canonical, options.max_bytes)? } else { canonical };
    Ok(Text { canonical, language, names: names::names(&plain) })
}

/// The hashes of a headline's words: evidence beside the text. Words of one or two letters say nothing.
pub fn title_words(title: &str, language: &language::Language, options: &Options) -> Vec<u16> {
    let Ok(normalised) = canonical::canonical(title, options.max_bytes) else { return Vec::new() };
    if language.segment == language::Segment::Characters {
        return shingle::shingles(&normalised, language)
            .words
            .iter()
            .map(|word| (word >> 48) as u16)
            .collect();
    }
    let words = normalised.split(|c: char| !c.is_alphanumeric());
    words.filter(|word| word.chars().nth(2).is_some()).map(names::stem).collect()
}

/// The text in the spelling that the settings ask for, and its language.
fn respelled(
    text: String,
    language: Chosen,
    declared: Option<&str>,
    options: &Options,
) -> Result<(String, Chosen), TooLarge> {
    let (mut text, mut language) = (text, language);
    if options.fold_serbian && matches!(language.lang.code(), "sr" | "hr") {
        text = canonical::canonical(&spelling::serbian_in_latin(&text), options.max_bytes)?;
        // Both scripts must come out in the same place, so what is compared decides.
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

/// An article's body without markup, as a person would read it.
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
    fn the_body_and_its_text_have_limits_of_their_own() {
        // A page of two megabytes with a story of one kilobyte was a dead letter, because the limit of the text was
        // checked before the markup was taken off.
        let page = format!("<p>A story.</p><script>{}</script>", "x".repeat(2 << 20));
        assert_eq!(text(&page, &Options::DEFAULT).canonical, "a story.");
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
    fn spellings_are_folded_where_the_settings_ask_for_it() {
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
            assert_eq!(text(a, &options).canonical, text(b, &options).canonical);
            assert_ne!(text(a, &Options::DEFAULT).canonical, text(b, &Options::DEFAULT).canonical);
            let again = text(&text(a, &options).canonical, &options);
            assert_eq!(again.canonical, text(a, &options).canonical);
        }
        let both = Options { fold_serbian: true, ..Options::DEFAULT };
        assert_eq!(text(in_cyrillic, &both).language.lang, text(in_latin, &both).language.lang);
        // Japanese keeps its characters, Russian its script.
        let all = Options { fold_serbian: true, fold_han: true, ..Options::DEFAULT };
        for other in [
            "市は月曜日、古い橋を閉鎖し、學校の鐵道も止まると發表した。",
            "Старый мост закрыли на ремонт, автобусы пойдут в объезд до конца года.",
        ] {
            assert_eq!(text(other, &all).canonical, text(other, &Options::DEFAULT).canonical);
        }
    }
}
