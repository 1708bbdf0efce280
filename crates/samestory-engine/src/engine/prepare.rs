//! An article → what is compared and kept of it. A plain function, so it runs on as many threads as there are.

use crate::fingerprint::{Fingerprint, config_hash, of_text};
use crate::model::{Article, DeadLetter, DeadLetterReason, Flag};
use crate::model::{ArticleId, EventTime, Host, Lang, LanguageSource, LanguageTag, Position, Title, Url};
use crate::text::language::{self, Tag};
use crate::text::markup::ContentType;
use crate::text::{self, Options};

/// All that a verdict needs of an article, without its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// Its name.
    pub id: ArticleId,
    /// Its home: the language, or group of close relatives, that it is compared in.
    pub language: Lang,
    /// The language that is reported, one of that home.
    pub reported_language: Lang,
    /// How the home became known.
    pub language_source: LanguageSource,
    /// The language it declares, as it came.
    pub declared_language: Option<LanguageTag>,
    /// Its text's fingerprint.
    pub fingerprint: Fingerprint,
    /// For display.
    pub title: Option<Title>,
    /// For display: as given, or from the URL.
    pub host: Option<Host>,
    /// For display.
    pub url: Option<Url>,
    /// Ranks canonicals.
    pub published_at: Option<EventTime>,
    /// Its event time, not clamped yet.
    pub fetched_at: Option<EventTime>,
    /// What is to be said of its text and language, ascending.
    pub flags: Vec<Flag>,
}

impl Prepared {
    /// Whether there is anything to compare.
    pub fn has_text(&self) -> bool {
        self.fingerprint.tokens > 0
    }
}

/// Prepares articles in one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preparer {
    options: Options,
    config: u32,
}

impl Preparer {
    /// Texts are prepared with these options.
    pub fn new(options: Options) -> Preparer {
        Preparer { options, config: config_hash(&options) }
    }

    /// The hash of the options, which every fingerprint carries.
    pub fn config(&self) -> u32 {
        self.config
    }

    /// Takes the markup off, chooses a language, makes the fingerprint.
    ///
    /// # Errors
    /// The text is over the limit: the dead letter that goes out in its place.
    pub fn prepare(&self, article: &Article, position: &Position) -> Result<Prepared, DeadLetter> {
        let content_type = article.content_type.as_deref().and_then(ContentType::parse);
        let text = text::prepare(&article.body, content_type, article.language.as_deref(), &self.options)
            .map_err(|error| DeadLetter {
                position: position.clone(),
                reason: DeadLetterReason::TooLarge,
                message: error.to_string(),
            })?;
        let title = kept(article.title.as_deref());
        let row = language::row(text.language.home);
        let words = title.map(|title| text::title_words(title, row, &self.options)).unwrap_or_default();
        let fingerprint = of_text(&text, self.config).with_title(words);
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
        Ok(Prepared {
            id: article.id.clone(),
            language: text.language.home,
            reported_language: text.language.lang,
            language_source: text.language.source,
            declared_language: kept(article.language.as_deref()).map(LanguageTag::new),
            fingerprint,
            title: title.map(Title::new),
            host: kept(article.site()).map(Host::new),
            url: kept(article.url.as_deref()).map(Url::new),
            published_at: article.published_at,
            fetched_at: article.fetched_at,
            flags,
        })
    }
}

/// What is empty is not there.
fn kept(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::BoundedStr;
    use crate::text::language::Trust;

    fn article(body: &str) -> Article {
        Article {
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
    fn a_host_is_told_from_the_url() {
        let prepared =
            Preparer::new(Options::default()).prepare(&article("Some text."), &position()).unwrap();
        assert_eq!(prepared.host.unwrap().as_str(), "news.example");
        assert_eq!(prepared.title, None, "what is empty is not there");
    }

    #[test]
    fn what_is_odd_about_a_text_is_flagged() {
        let flags = |body: &str, language: &str| {
            let article = Article { language: Some(language.to_owned()), ..article(body) };
            Preparer::new(Options::default()).prepare(&article, &position()).unwrap().flags
        };
        assert_eq!(flags("The storm is over and the ferries run again.", "en"), []);
        assert_eq!(flags("The storm is over.", "x-klingon"), [Flag::UnknownLanguage]);
        assert_eq!(flags("The storm is over and the ferries run again.", "hi"), [Flag::LanguageMismatch]);
        assert_eq!(flags("The storm is over and the ferries run again.", "fr"), [Flag::LanguageMismatch]);
        assert_eq!(flags("…", "hi"), [Flag::NoText]);
    }

    #[test]
    fn the_declared_language_is_kept_and_does_not_place_the_article() {
        let body = "The city council said on Monday that the old bridge would be closed for repairs.";
        let prepared = |language: &str, trust| {
            let article = Article { language: Some(language.to_owned()), ..article(body) };
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
