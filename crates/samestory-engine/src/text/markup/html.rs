//! HTML to text: a tokenizer that follows the WHATWG states, without a tree behind it. It drives a
//! `PageText`, which decides what belongs to the article.
//!
//! Malformed input reads as it does in a browser's tokenizer: a `<script>`, comment or quoted attribute that
//! never ends swallows the rest of the page; `a < b` is text; an unknown entity is text; NUL is dropped;
//! CDATA is a comment.

use html5gum::{Emitter, Error, State, Tokenizer};

use super::TooLarge;
use super::page::{Hints, PageText};
use super::style::StyleVisibility;
use super::tag::Landmark;

/// Bytes kept of a tag name; no known element has a longer one.
const NAME: usize = 32;
/// Bytes kept of an attribute value.
const VALUE: usize = 4096;

/// Roles and classes that explicitly mark an element as not part of the article. Classes are compared in
/// full: a substring such as `ad` would also match `header`, `shadow` and `lead`.
#[rustfmt::skip]
const CHROME_ROLES: [&str; 13] = [
    "navigation", "banner", "contentinfo", "complementary", "search", "dialog", "alertdialog", "menu",
    "menubar", "toolbar", "tablist", "tooltip", "button",
];
#[rustfmt::skip]
const CHROME_CLASSES: [&str; 27] = [
    "ad", "ads", "advert", "advertisement", "sponsored", "share", "sharing", "share-buttons", "share-bar",
    "social", "social-share", "sharedaddy", "breadcrumb", "breadcrumbs", "related", "related-posts",
    "related-articles", "related-links", "newsletter", "newsletter-signup", "cookie-banner",
    "cookie-notice", "cookie-consent", "pagination", "skip-link", "noprint", "no-print",
];
/// Customary classes for text that only screen readers announce.
const HIDDEN_CLASSES: [&str; 3] = ["sr-only", "visually-hidden", "screen-reader-text"];

/// True if parsing `raw` as HTML could give anything but `raw`.
pub(super) fn has_markup(raw: &str) -> bool {
    raw.bytes().any(|byte| matches!(byte, b'<' | b'&' | b'\r' | b'\0'))
}

pub(super) fn to_text(raw: &str, limit: usize) -> Result<String, TooLarge> {
    let mut page = PageText::new(limit);
    read(raw, &mut page, Context::Page);
    page.finish()
}

/// The context that a piece of HTML comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Context {
    /// A whole HTML document.
    Page,
    /// Markdown: single tags within text, so a raw element must not swallow what follows.
    Inline,
}

/// Feeds `html` into `page`, stopping as soon as it is certain that the text is too large.
pub(super) fn read(html: &str, page: &mut PageText, context: Context) {
    let reader = TagReader {
        page,
        context,
        name: Bounded::new(NAME),
        raw: Bounded::new(NAME),
        attribute: Bounded::new(NAME),
        value: Bounded::new(VALUE),
        hints: Hints::default(),
        is_end: false,
        self_closing: false,
    };
    // The only token means "stop", and reading a string cannot fail.
    let _stopped = Tokenizer::new_with_emitter(html, reader).next();
}

/// A buffer that keeps the first bytes and records whether there were more.
struct Bounded {
    bytes: Vec<u8>,
    cap: usize,
    more: bool,
}

impl Bounded {
    fn new(cap: usize) -> Self {
        Bounded { bytes: Vec::new(), cap, more: false }
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.more = false;
    }

    fn push(&mut self, bytes: &[u8]) {
        let room = self.cap - self.bytes.len();
        self.more |= bytes.len() > room;
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// The words in it, without one that was truncated.
    fn words(&self) -> impl Iterator<Item = &[u8]> {
        let whole = match self.more {
            true => self.bytes.iter().rposition(u8::is_ascii_whitespace).unwrap_or(0),
            false => self.bytes.len(),
        };
        self.bytes[..whole].split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
    }

    fn is(&self, value: &str) -> bool {
        !self.more && self.bytes.trim_ascii().eq_ignore_ascii_case(value.as_bytes())
    }
}

/// Assembles tags from the tokenizer's calls and passes them to the page.
struct TagReader<'p> {
    page: &'p mut PageText,
    context: Context,
    name: Bounded,
    /// The open raw element, which only its own end tag closes.
    raw: Bounded,
    attribute: Bounded,
    value: Bounded,
    hints: Hints,
    is_end: bool,
    self_closing: bool,
}

impl TagReader<'_> {
    fn begin_tag(&mut self, is_end: bool) {
        self.is_end = is_end;
        self.self_closing = false;
        self.hints = Hints::default();
        self.name.clear();
        self.attribute.clear();
        self.value.clear();
    }

    fn end_attribute(&mut self) {
        let (attribute, value) = (&self.attribute, &self.value);
        let any = |list: &[&str]| {
            value.words().any(|word| list.iter().any(|item| word.eq_ignore_ascii_case(item.as_bytes())))
        };
        match attribute.bytes.as_slice() {
            // A section collapsed until the reader searches in it is part of the page.
            b"hidden" => self.hints.hidden |= !value.is("until-found"),
            b"popover" => self.hints.hidden = true,
            b"open" => self.hints.open = true,
            // Chrome rather than hidden: pages set it on everything behind an open dialog.
            b"aria-hidden" | b"aria-modal" => self.hints.chrome |= value.is("true"),
            b"class" => {
                self.hints.chrome |= any(&CHROME_CLASSES);
                self.hints.hidden |= any(&HIDDEN_CLASSES);
            }
            b"style" => {
                let style = StyleVisibility::read(&value.bytes);
                self.hints.hidden |= style.invisible;
                self.hints.chrome |= style.fades_in;
                self.hints.hides |= style.hides;
                self.hints.shows |= style.shows;
            }
            b"role" => {
                self.hints.chrome |= any(&CHROME_ROLES);
                let main = if any(&["main"]) { Some(Landmark::Main) } else { None };
                self.hints.landmark = self.hints.landmark.or(main);
            }
            b"itemprop" if any(&["articleBody"]) => self.hints.landmark = Some(Landmark::Body),
            _ => {}
        }
        self.attribute.clear();
        self.value.clear();
    }
}

impl Emitter for TagReader<'_> {
    type Token = ();

    fn pop_token(&mut self) -> Option<()> {
        self.page.is_too_large().then_some(())
    }

    fn should_emit_errors(&mut self) -> bool {
        false
    }

    fn emit_string(&mut self, piece: &[u8]) {
        if piece != b"\0" {
            self.page.text(piece);
        }
    }

    fn init_start_tag(&mut self) {
        self.begin_tag(false);
    }

    fn init_end_tag(&mut self) {
        self.begin_tag(true);
    }

    fn push_tag_name(&mut self, piece: &[u8]) {
        self.name.push(piece);
    }

    fn set_self_closing(&mut self) {
        self.self_closing = true;
    }

    fn init_attribute(&mut self) {
        self.end_attribute();
    }

    fn push_attribute_name(&mut self, piece: &[u8]) {
        self.attribute.push(piece);
    }

    fn push_attribute_value(&mut self, piece: &[u8]) {
        self.value.push(piece);
    }

    fn emit_current_tag(&mut self) -> Option<State> {
        self.end_attribute();
        let name = self.name.bytes.as_slice();
        if self.is_end {
            self.page.end(name);
            return None;
        }
        if !self.page.start(name, self.hints, self.self_closing) || self.context == Context::Inline {
            return None;
        }
        std::mem::swap(&mut self.raw, &mut self.name);
        match self.raw.bytes.as_slice() {
            b"script" => Some(State::ScriptData),
            b"title" | b"textarea" => Some(State::RcData),
            _ => Some(State::RawText),
        }
    }

    fn current_is_appropriate_end_tag_token(&mut self) -> bool {
        self.is_end && !self.raw.bytes.is_empty() && self.name.bytes == self.raw.bytes
    }

    // Comments, doctypes and errors are ignored.
    fn set_last_start_tag(&mut self, _: Option<&[u8]>) {}
    fn emit_eof(&mut self) {}
    fn emit_error(&mut self, _: Error) {}
    fn init_comment(&mut self) {}
    fn emit_current_comment(&mut self) {}
    fn push_comment(&mut self, _: &[u8]) {}
    fn init_doctype(&mut self) {}
    fn emit_current_doctype(&mut self) {}
    fn set_force_quirks(&mut self) {}
    fn push_doctype_name(&mut self, _: &[u8]) {}
    fn set_doctype_public_identifier(&mut self, _: &[u8]) {}
    fn set_doctype_system_identifier(&mut self, _: &[u8]) {}
    fn push_doctype_public_identifier(&mut self, _: &[u8]) {}
    fn push_doctype_system_identifier(&mut self, _: &[u8]) {}
}

#[cfg(test)]
#[path = "html_tests.rs"]
mod tests;
