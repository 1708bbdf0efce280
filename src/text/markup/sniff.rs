//! Is undeclared text HTML? A look at its beginning, and only a clear yes counts: an article about `<div>` or a
//! line of code must stay as it is.

use super::ContentType;
use super::tag::{Gap, Kind};

/// How much of the text is looked at.
const WINDOW: usize = 8192;

/// Says [`ContentType::Html`] of what is convincingly HTML, otherwise [`ContentType::Plain`]. Convincing is
///
/// * a doctype, `<html`, `<head` or `<body` at the start (after whitespace, comments and an XML declaration), or
/// * a block's tag at the start and a second one later, or
/// * an inline tag at the start and three blocks' tags later, or
/// * in text that starts without a tag, twice a paragraph's end followed by a paragraph, or a double `<br>`.
///
/// Markdown is never guessed: nearly all prose is Markdown.
#[must_use]
pub fn sniff(text: &str) -> ContentType {
    let bytes = &text.as_bytes()[..text.len().min(WINDOW)];
    if is_html(bytes) { ContentType::Html } else { ContentType::Plain }
}

fn is_html(bytes: &[u8]) -> bool {
    let start = skip_preamble(bytes);
    if starts_with(start, b"<!doctype html") {
        return true;
    }
    let first = Tag::at(start);
    if first.is_some_and(|tag| [&b"html"[..], b"head", b"body"].iter().any(|root| tag.is(root))) {
        return true;
    }
    let needed = match first {
        Some(tag) if tag.is_block() => 2,
        Some(tag) if tag.is_inline() => 3,
        _ => usize::MAX,
    };
    let (mut blocks, mut seams) = (0, 0);
    let mut rest = start;
    while let Some(at) = rest.iter().position(|&byte| byte == b'<') {
        rest = &rest[at..];
        let Some(tag) = Tag::at(rest) else {
            rest = &rest[1..];
            continue;
        };
        rest = &rest[tag.length..];
        blocks += usize::from(tag.is_block());
        if let Some(next) = Tag::at(rest.trim_ascii_start()) {
            let paragraph = tag.is(b"p") && tag.is_end && next.is(b"p") && !next.is_end;
            seams += usize::from(paragraph || (tag.is(b"br") && next.is(b"br")));
        }
        if blocks >= needed || seams >= 2 {
            return true;
        }
    }
    false
}

/// What is left after a byte order mark, whitespace, comments and `<?xml … ?>`.
fn skip_preamble(bytes: &[u8]) -> &[u8] {
    let mut rest = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    loop {
        rest = rest.trim_ascii_start();
        let end: &[u8] = match rest {
            [b'<', b'!', b'-', b'-', ..] => b"-->",
            [b'<', b'?', ..] => b"?>",
            _ => return rest,
        };
        match rest.windows(end.len()).position(|window| window == end) {
            Some(at) => rest = &rest[at + end.len()..],
            None => return &[],
        }
    }
}

fn starts_with(bytes: &[u8], lower: &[u8]) -> bool {
    bytes.get(..lower.len()).is_some_and(|start| start.eq_ignore_ascii_case(lower))
}

/// A complete tag: `<name>`, `</name>`, `<name …>`.
#[derive(Clone, Copy)]
struct Tag<'a> {
    name: &'a [u8],
    is_end: bool,
    length: usize,
}

impl<'a> Tag<'a> {
    /// Bytes a tag may have here. Bounds the search for its `>`, so that `<p <p <p` stays linear.
    const LONGEST: usize = 512;

    fn at(bytes: &'a [u8]) -> Option<Self> {
        let after = bytes.strip_prefix(b"<")?;
        let is_end = after.first() == Some(&b'/');
        let named = &after[usize::from(is_end)..];
        let name = &named[..named.iter().take(16).take_while(|byte| byte.is_ascii_alphanumeric()).count()];
        let edge = *named.get(name.len())?;
        if name.is_empty() || !(edge.is_ascii_whitespace() || edge == b'>' || edge == b'/') {
            return None;
        }
        let end =
            bytes.iter().take(Self::LONGEST).skip(1).position(|&byte| byte == b'>' || byte == b'<')? + 1;
        (bytes[end] == b'>').then_some(Tag { name, is_end, length: end + 1 })
    }

    fn is(&self, name: &[u8]) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    fn is_block(&self) -> bool {
        let kind = Kind::of(&self.name.to_ascii_lowercase());
        kind.gap > Gap::None
    }

    fn is_inline(&self) -> bool {
        const INLINE: [&[u8]; 12] = [
            b"a", b"b", b"i", b"em", b"strong", b"span", b"img", b"font", b"small", b"u", b"iframe",
            b"script",
        ];
        INLINE.iter().any(|name| self.is(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_and_fragments_are_html() {
        for html in [
            "<!DOCTYPE html><p>x",
            "\u{feff}\n <?xml version='1.0'?><!-- a --> <html lang=en>",
            "<HTML>",
            "<body class=\"x\">text",
            "<p>One paragraph.</p>",
            "<div class=\"story\"><p>One</div>",
            "<b>LONDON</b> (Wire) Text<br><br>More text<p>End",
            "LONDON (Wire) Text</p>\n<p>More</p><p>End",
            "Text<br/><br/>More<br />\n<br />End",
        ] {
            assert_eq!(sniff(html), ContentType::Html, "{html}");
        }
    }

    #[test]
    fn prose_and_code_are_plain() {
        for text in [
            "",
            "<",
            "<p",
            "<p>",
            "If a < b and c > d, then <b> is odd.",
            "The <p> tag opens and </p> closes a paragraph; <div> and </div> do a box.",
            "fn f<T>(v: Vec<T>) -> Option<T> { v.into_iter().next() }",
            "const x = <div><p>Hi</p><ul><li>1</li></ul></div>;",
            "<T> is a type and <U> another.",
            "<pathological> tags </pathological>",
            "<!-- never closed <p>a</p><p>b</p>",
            "# Heading\n\n* item [link](x)",
            "<3 this <3 that",
            "कखग < घ",
        ] {
            assert_eq!(sniff(text), ContentType::Plain, "{text}");
        }
    }

    #[test]
    fn only_the_beginning_is_looked_at() {
        assert_eq!(sniff(&format!("{}</p><p>a</p><p>b", "x".repeat(WINDOW))), ContentType::Plain);
        // The window may end inside a character.
        assert_eq!(sniff(&"é".repeat(WINDOW)), ContentType::Plain);
        assert_eq!(sniff(&format!("x{}", "é".repeat(WINDOW))), ContentType::Plain);
    }
}
