//! HTML and Markdown → plain text. Work and memory grow linearly with the input, whatever it is; no tree is built
//! and nothing recurses.
//!
//! Words come out as a reader sees them: entities decoded, blocks on their own lines, table cells apart, nothing
//! added between inline elements, nothing that is hidden. Whitespace is left for [normalised text](super) to settle.

mod html;
mod markdown;
mod page;
mod sniff;
mod style;
mod tag;

use std::borrow::Cow;

use super::TooLarge;

pub use sniff::sniff;

/// How an article's body is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ContentType {
    /// Text as it is.
    Plain,
    /// A page or a fragment of one.
    Html,
    /// CommonMark with tables, footnotes and front matter.
    Markdown,
}

impl ContentType {
    /// Reads a MIME type such as `text/html; charset=utf-8`. `None` for one that is not about text we can read.
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

/// The text of `raw`, at most `limit` bytes of it. Plain text, and HTML without a single tag or entity, is borrowed.
///
/// # Errors
/// [`TooLarge`] as soon as it is certain; never more than `limit` bytes of text are held.
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
    fn a_mime_type_is_read_whatever_surrounds_it() {
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
