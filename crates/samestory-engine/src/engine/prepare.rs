//! Prepares an article: strips markup, detects the language and computes the fingerprint.
//!
//! The `text` and `fingerprint` modules do the work; the planner in `batch` consumes the result. Preparing
//! is a pure function of the article and the options, so it runs on any number of threads.

use crate::fingerprint::{Fingerprint, config_hash, of_text};
use crate::index::Document;
use crate::model::{ArticleId, EventTime, Host, Lang, LanguageSource, LanguageTag, Position, Title, Url};
use crate::model::{ContentKind, DeadLetter, DeadLetterReason, Flag, RawArticle};
use crate::text::language::{self, Tag};
use crate::text::markup::ContentType;
use crate::text::{self, Options};

/// Everything that a verdict needs to know about an article; the body itself is dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// The article's id.
    pub id: ArticleId,
    /// Home language: the language, or group of closely related languages, whose store the article is
    /// compared in.
    pub language: Lang,
    /// The language that the verdict reports; it belongs to the home.
    pub reported_language: Lang,
    /// How the language was determined.
    pub language_source: LanguageSource,
    /// The language that the article declares, verbatim.
    pub declared_language: Option<LanguageTag>,
    /// Fingerprint of the normalised text and the title.
    pub fingerprint: Fingerprint,
    /// Title, for display.
    pub title: Option<Title>,
    /// Host for display: as given, or taken from the URL.
    pub host: Option<Host>,
    /// URL, for display.
    pub url: Option<Url>,
    /// Publication time as the article states it; used to rank canonicals.
    pub published_at: Option<EventTime>,
    /// Fetch time as the article states it; clamped later to give the event time.
    pub fetched_at: Option<EventTime>,
    /// The kind of content of the text.
    pub content_kind: ContentKind,
    /// Flags about the text and the language, ascending.
    pub flags: Vec<Flag>,
}

/// A stored document as if it arrived again: what it is compared by, and what is shown of it.
impl From<Document> for Prepared {
    fn from(document: Document) -> Prepared {
        Prepared {
            content_kind: document.content_kind(),
            id: document.id,
            language: document.language,
            reported_language: document.language,
            language_source: LanguageSource::Text,
            declared_language: None,
            fingerprint: document.fingerprint,
            title: document.title,
            host: document.host,
            url: document.url,
            published_at: document.published_at,
            fetched_at: None,
            flags: Vec::new(),
        }
    }
}

impl Prepared {
    /// True if the article has any text to compare.
    pub fn has_text(&self) -> bool {
        self.fingerprint.tokens > 0
    }
}

/// Prepares articles with one set of options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preparer {
    options: Options,
    config: u32,
}

impl Preparer {
    /// Creates a preparer with these options.
    pub fn new(options: Options) -> Preparer {
        Preparer { config: config_hash(&options), options }
    }

    /// The hash of the options, which every fingerprint carries.
    pub fn config(&self) -> u32 {
        self.config
    }

    /// Strips the markup, chooses a language and computes the fingerprint.
    ///
    /// # Errors
    /// The text exceeds `max_bytes`; the error is the dead letter to publish instead.
    pub fn prepare(&self, article: &RawArticle, position: &Position) -> Result<Prepared, DeadLetter> {
        let content_type = article.content_type.as_deref().and_then(ContentType::parse);
        let text = text::prepare(&article.body, content_type, article.language.as_deref(), &self.options)
            .map_err(|error| DeadLetter {
                position: position.clone(),
                reason: DeadLetterReason::TooLarge,
                message: error.to_string(),
            })?;
        let title = non_blank(article.title.as_deref());
        let row = language::row(text.language.home);
        let words = title.map(|title| text::title_words(title, row, &self.options)).unwrap_or_default();
        let fingerprint = of_text(&text, self.config).with_title(words);
        let foreign = fingerprint.tokens > 0
            && fingerprint.tokens < text::LONGEST_STUB
            && title.is_some_and(|title| text::is_foreign(title, &text, row, &self.options));
        let fingerprint = fingerprint.with_foreign_headline(foreign);
        let mut flags = Vec::new();
        if fingerprint.tokens == 0 {
            flags.push(Flag::NoText);
        }
        match text.language.tag {
            Tag::Unknown => flags.push(Flag::UnknownLanguage),
            // Without text there is nothing that could contradict the tag.
            Tag::Contradicted if fingerprint.tokens > 0 => flags.push(Flag::LanguageMismatch),
            Tag::Contradicted | Tag::Absent | Tag::Honoured => {}
        }
        let content_kind = text.content_kind(fingerprint.tokens);
        Ok(Prepared {
            id: article.id.clone(),
            language: text.language.home,
            reported_language: text.language.lang,
            language_source: text.language.source,
            declared_language: non_blank(article.language.as_deref()).map(LanguageTag::new),
            fingerprint,
            title: title.map(Title::new),
            host: non_blank(article.site()).map(Host::new),
            url: non_blank(article.url.as_deref()).map(Url::new),
            published_at: article.published_at,
            fetched_at: article.fetched_at,
            content_kind,
            flags,
        })
    }
}

/// Trims a field; blank counts as absent.
fn non_blank(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::BoundedStr;
    use crate::text::language::Trust;

    fn article(body: &str) -> RawArticle {
        RawArticle {
            id: ArticleId::new("a").unwrap(),
            body: body.to_owned(),
            title: Some(" ".to_owned()),
            url: Some("https://user@news.example:8080/a?b".to_owned()),
            host: None,
            language: Some("en".to_owned()),
            content_type: None,
            published_at: None,
            fetched_at: None,
        }
    }

    fn position() -> Position {
        Position::File { file: BoundedStr::new("a.ndjson"), line: 1 }
    }

    #[test]
    fn the_host_is_taken_from_the_url() {
        let prepared =
            Preparer::new(Options::default()).prepare(&article("Some text."), &position()).unwrap();
        assert_eq!(prepared.host.unwrap().as_str(), "news.example");
        assert_eq!(prepared.title, None, "a blank title counts as absent");
    }

    #[test]
    fn problems_with_text_and_language_are_flagged() {
        let flags = |body: &str, language: &str| {
            let article = RawArticle { language: Some(language.to_owned()), ..article(body) };
            Preparer::new(Options::default()).prepare(&article, &position()).unwrap().flags
        };
        assert_eq!(flags("The storm is over and the ferries run again.", "en"), []);
        assert_eq!(flags("The storm is over.", "x-klingon"), [Flag::UnknownLanguage]);
        assert_eq!(flags("The storm is over and the ferries run again.", "hi"), [Flag::LanguageMismatch]);
        assert_eq!(flags("The storm is over and the ferries run again.", "fr"), [Flag::LanguageMismatch]);
        assert_eq!(flags("…", "hi"), [Flag::NoText]);
    }

    #[test]
    fn the_declared_language_is_kept_but_does_not_decide_the_home() {
        let body = "The city council said on Monday that the old bridge would be closed for repairs.";
        let prepared = |language: &str, trust| {
            let article = RawArticle { language: Some(language.to_owned()), ..article(body) };
            Preparer::new(Options { trust, ..Options::default() }).prepare(&article, &position()).unwrap()
        };
        let french = prepared(" fr-CA ", Trust::Text);
        assert_eq!((french.language.code(), french.language_source), ("en", LanguageSource::Text));
        assert_eq!(french.declared_language.unwrap().as_str(), "fr-CA");
        let trusted = prepared("fr-CA", Trust::Declared);
        assert_eq!((trusted.language.code(), trusted.language_source), ("fr", LanguageSource::Declared));
        assert_eq!(trusted.flags, []);
    }

    #[test]
    fn a_text_over_the_limit_is_a_dead_letter() {
        let preparer = Preparer::new(Options { max_bytes: 10, ..Options::default() });
        let letter = preparer.prepare(&article("More than ten bytes."), &position()).unwrap_err();
        assert_eq!((letter.reason, letter.position), (DeadLetterReason::TooLarge, position()));
        assert_eq!(letter.message, "text is longer than 10 bytes (text.max_bytes)");
    }
}
