//! An article's text: from what the crawler fetched to what is compared.
//!
//! Markup is taken off, what remains becomes canonical text, and a language is chosen for it. Everything is
//! bounded by [`Options::max_bytes`], whatever the article says.

mod block;
pub mod canonical;
mod chars;
pub mod language;
pub mod markup;
pub mod passages;
pub mod shingle;
mod words;

use std::borrow::Cow;

use language::Chosen;
use markup::ContentType;

/// How article text is prepared. A change here changes fingerprints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The longest text that is looked at, in bytes, before and after it is made canonical.
    pub max_bytes: usize,
    /// Merge look-alike characters of different scripts (UTS #39).
    pub skeleton: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { max_bytes: 1 << 20, skeleton: false }
    }
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
}

/// Prepares an article's body.
///
/// `declared` is the language the article claims; it is believed only if it is known and its script occurs.
///
/// # Errors
/// The text is [`TooLarge`]: it was not read to its end, and has no fingerprint under this limit.
pub fn prepare(
    body: &str,
    content_type: Option<ContentType>,
    declared: Option<&str>,
    options: &Options,
) -> Result<Text, TooLarge> {
    let plain = plain(body, content_type, options)?;
    let canonical = canonical::canonical(&plain, options.max_bytes)?;
    // Before look-alikes are merged: a skeleton mixes scripts.
    let language = language::choose(declared, &canonical);
    let canonical =
        if options.skeleton { canonical::skeleton(&canonical, options.max_bytes)? } else { canonical };
    Ok(Text { canonical, language })
}

/// An article's body without markup, as a person would read it.
///
/// # Errors
/// As [`prepare`].
pub fn plain<'a>(
    body: &'a str,
    content_type: Option<ContentType>,
    options: &Options,
) -> Result<Cow<'a, str>, TooLarge> {
    if body.len() > options.max_bytes {
        return Err(TooLarge { limit: options.max_bytes });
    }
    markup::to_text(body, content_type.unwrap_or_else(|| markup::sniff(body)), options.max_bytes)
}
