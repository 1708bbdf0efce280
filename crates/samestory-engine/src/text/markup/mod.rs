//! Extracts plain text from HTML and Markdown. `text::prepare` calls [`to_text`], after `sniff` if no
//! content type is declared. Work and memory are linear in the input for any input; no tree is built and
//! nothing recurses.
//!
//! Words come out as a reader sees them: entities decoded, blocks on separate lines, table cells separated,
//! nothing inserted between inline elements, nothing that is hidden. White space is left for
//! [normalisation](super) to collapse.

mod html;
mod markdown;
mod page;
mod sniff;
mod style;
mod tag;

use std::borrow::Cow;

use super::TooLarge;

pub use sniff::sniff;

/// The format of an article's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ContentType {
    /// Plain text.
    Plain,
    /// An HTML page or fragment.
    Html,
    /// CommonMark with tables, footnotes and front matter.
    Markdown,
}

impl ContentType {
    /// Parses a MIME type such as `text/html; charset=utf-8`; `None` if it is not a text format we can read.
    #[must_use]
    pub fn parse(mime: &str) -> Option<Self> {
        const NAMES: [(&str, ContentType); 8] = [
            ("text/plain", ContentType::Plain),
            ("text", ContentType::Plain),
            ("text/html", ContentType::Html),
            ("application/xhtml+xml", ContentType::Html),
            ("html", ContentType::Html),
            ("text/markdown", ContentType::Markdown),
            ("text/x-markdown", ContentType::Markdown),
            ("markdown", ContentType::Markdown),
        ];
        let essence = mime.split(';').next().unwrap_or_default().trim();
        NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(essence)).map(|&(_, kind)| kind)
    }
}

/// Extracts the text of `raw`, at most `limit` bytes. Borrows plain text, and HTML without a single tag or
/// entity.
///
/// # Errors
/// [`TooLarge`], as soon as that is certain; at most `limit` bytes of text are ever held.
pub fn to_text<'a>(raw: &'a str, kind: ContentType, limit: usize) -> Result<Cow<'a, str>, TooLarge> {
    match kind {
        ContentType::Plain if raw.len() > limit => Err(TooLarge { limit }),
        ContentType::Plain => Ok(Cow::Borrowed(raw)),
        ContentType::Html if !html::has_markup(raw) => to_text(raw, ContentType::Plain, limit),
        ContentType::Html => html::to_text(raw, limit).map(Cow::Owned),
        ContentType::Markdown => markdown::to_text(raw, limit).map(Cow::Owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mime_type_is_recognised_in_any_case_and_with_parameters() {
        assert_eq!(ContentType::parse("text/html; charset=utf-8"), Some(ContentType::Html));
        assert_eq!(ContentType::parse(" TEXT/HTML"), Some(ContentType::Html));
        assert_eq!(ContentType::parse("application/xhtml+xml"), Some(ContentType::Html));
        assert_eq!(ContentType::parse("text/markdown;variant=GFM"), Some(ContentType::Markdown));
        assert_eq!(ContentType::parse("text/plain"), Some(ContentType::Plain));
        for unknown in ["", ";", "image/png", "text/htmlx", "text/csv", "html/text"] {
            assert_eq!(ContentType::parse(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn text_without_markup_is_borrowed() {
        for kind in [ContentType::Plain, ContentType::Html] {
            assert!(matches!(to_text(" a > b\n\n c ", kind, 100), Ok(Cow::Borrowed(" a > b\n\n c "))));
        }
    }

    #[test]
    fn plain_text_is_bounded_too() {
        assert_eq!(to_text("abc", ContentType::Plain, 2), Err(TooLarge { limit: 2 }));
        assert_eq!(to_text("abc", ContentType::Html, 2), Err(TooLarge { limit: 2 }));
        assert_eq!(TooLarge { limit: 2 }.to_string(), "text is longer than 2 bytes");
    }
}
