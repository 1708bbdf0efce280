//! Decides whether a text without a declared content type is HTML. Only a clear yes at its beginning counts:
//! an article about `<div>`, or a line of code, must stay as it is.

use super::ContentType;
use super::tag::{Gap, TagKind};

/// Bytes that are examined.
const WINDOW: usize = 8192;

/// Returns [`ContentType::Html`] for convincing HTML, otherwise [`ContentType::Plain`]. Convincing is
///
/// * a doctype, `<html`, `<head` or `<body` at the start (after whitespace, comments and an XML declaration), or
/// * a block tag at the start, followed by text that it opens or by a second block tag, or
/// * an inline tag at the start and three block tags later, or
/// * a tag that does something where it stands: a block tag adjacent to the text it opens or closes, an element
///   with a quoted attribute, an inline element adjacent to its text on both sides, or
/// * two paragraph ends followed by paragraphs, or two double `<br>`s.
///
/// A tag between spaces or quotes is mentioned, not used. A tag after `=`, `(` or `return` is code.
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
    let first = SniffedTag::at(start);
    if first.is_some_and(|tag| [&b"html"[..], b"head", b"body"].iter().any(|root| tag.is(root))) {
        return true;
    }
    if first.is_some_and(|tag| !tag.is_end && tag.is_block() && opens_text(&start[tag.length..])) {
        return true;
    }
    let needed = match first {
        Some(tag) if tag.is_block() => 2,
        Some(tag) if tag.is_inline() => 3,
        _ => usize::MAX,
    };
    let (mut blocks, mut seams, mut searches) = (0, 0, 0);
    let mut code = false;
    // Where the previous tag ended.
    let mut after_tag = 0;
    let mut at = 0;
    while let Some(ahead) = start[at..].iter().position(|&byte| byte == b'<') {
        at += ahead;
        let Some(tag) = SniffedTag::at(&start[at..]) else {
            at += 1;
            continue;
        };
        let (before, rest) = (&start[..at], &start[at + tag.length..]);
        code |= at > after_tag && is_code(before);
        blocks += usize::from(tag.is_block());
        if let Some(next) = SniffedTag::at(rest.trim_ascii_start()) {
            let paragraph = tag.is(b"p") && tag.is_end && next.is(b"p") && !next.is_end;
            seams += usize::from(paragraph || (tag.is(b"br") && next.is(b"br")));
        }
        if blocks >= needed || seams >= 2 || (!code && tag.is_used(before, rest, &mut searches)) {
            return true;
        }
        at += tag.length;
        after_tag = at;
    }
    false
}

/// True if a tag is followed by its content, rather than by a sentence about the tag.
fn opens_text(rest: &[u8]) -> bool {
    match rest {
        [b' ', next, ..] if next.is_ascii_lowercase() => false,
        _ => !rest.trim_ascii().is_empty(),
    }
}

/// True if a tag is preceded by code.
fn is_code(before: &[u8]) -> bool {
    let before = before.trim_ascii_end();
    before.ends_with(b"return") || before.last().is_some_and(|byte| b"=({[,|&?:".contains(byte))
}

/// A letter or digit, or part of a non-ASCII character.
fn is_text(byte: Option<&u8>) -> bool {
    byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii())
}

fn is_quote(byte: Option<&u8>) -> bool {
    byte.is_some_and(|byte| b"\"'`".contains(byte))
}

/// Skips a byte order mark, white space, comments and `<?xml … ?>`.
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
struct SniffedTag<'a> {
    name: &'a [u8],
    is_end: bool,
    length: usize,
    /// Has an attribute with a quoted value.
    quotes: bool,
}

impl<'a> SniffedTag<'a> {
    /// Maximum length of a tag here. Bounds the search for its `>`, so that `<p <p <p` stays linear.
    const LONGEST: usize = 2048;
    /// Maximum number of searches for end tags.
    const SEARCHES: usize = 8;

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
        let quotes = || bytes[..end].windows(2).any(|two| matches!(two, b"=\"" | b"='"));
        (bytes[end] == b'>').then(|| SniffedTag { name, is_end, length: end + 1, quotes: quotes() })
    }

    fn is(&self, name: &[u8]) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    fn is_block(&self) -> bool {
        let kind = TagKind::of_element(&self.name.to_ascii_lowercase());
        kind.gap > Gap::None
    }

    /// True if the tag does something between its neighbours.
    fn is_used(&self, before: &[u8], after: &[u8], searches: &mut usize) -> bool {
        let (left, right) = (before.last(), after.first());
        let ends_sentence = left.is_some_and(|byte| b".!?,;:)".contains(byte));
        let is_mentioned = left.is_some_and(|&byte| byte == b'(') || (is_quote(left) && is_quote(right));
        if is_mentioned {
            return false;
        }
        if self.quotes && !self.is_end && (self.is_inline() || self.is_block()) {
            return self.is(b"img") || self.end_in(after, searches).is_some();
        }
        if self.is_text_block() {
            return match (self.is_end, self.is(b"br")) {
                (true, _) => is_text(left) || ends_sentence || is_quote(left),
                (false, true) => is_text(left) || ends_sentence || is_text(right),
                (false, false) => {
                    let alone = matches!(left, None | Some(b'\n')) && matches!(right, Some(b'\n' | b'\r'));
                    let next = is_text(right) || right.is_some_and(|byte| b"\"&".contains(byte));
                    // `i<p>j` compares.
                    let compares = is_text(left) && right.is_some_and(u8::is_ascii_lowercase);
                    alone || (next && !is_quote(left) && !compares) || (ends_sentence && right == Some(&b' '))
                }
            };
        }
        // The content touches both tags.
        self.is_inline()
            && !self.is_end
            && is_text(right)
            && self
                .end_in(after, searches)
                .is_some_and(|at| after[..at].last().is_some_and(|byte| !byte.is_ascii_whitespace()))
    }

    /// Where this element ends in `after`. Searches at most [`Self::SEARCHES`] times for all tags of a text
    /// together.
    fn end_in(&self, after: &[u8], searches: &mut usize) -> Option<usize> {
        *searches += 1;
        if *searches > Self::SEARCHES {
            return None;
        }
        let named = |bytes: &[u8]| SniffedTag::at(bytes).is_some_and(|tag| tag.is_end && tag.is(self.name));
        (0..after.len()).find(|&at| after[at..].starts_with(b"</") && named(&after[at..]))
    }

    /// A block that plain text has no placeholder for: `<option>` and `<title>` also occur in manuals.
    fn is_text_block(&self) -> bool {
        const TEXT_BLOCKS: [&[u8]; 21] = [
            b"p",
            b"br",
            b"div",
            b"li",
            b"ul",
            b"ol",
            b"h1",
            b"h2",
            b"h3",
            b"h4",
            b"h5",
            b"h6",
            b"blockquote",
            b"table",
            b"tr",
            b"td",
            b"section",
            b"article",
            b"figure",
            b"figcaption",
            b"pre",
        ];
        TEXT_BLOCKS.iter().any(|name| self.is(name))
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
            // One tag suffices if it does something.
            "<p>One paragraph without an end.",
            "<div>\nOne paragraph\n</div>",
            "<h2>Überschrift",
            "A first paragraph.<p>A second one.",
            "A first line.<br>A second one.",
            "A first line<br />\nA second one",
            "Intro.\n<p>\nText\n",
            "The end of a story.</p>",
            "\"Quoted,\" he said.\n<p>\"More,\" she said.",
            "Text with <b>bold</b> words",
            "Text with a <a href=\"https://e.org/\">link</a> in it",
            "A story <span style=\"display:none\">and what nobody sees</span>",
            "एक कहानी<p>दूसरा अनुच्छेद",
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
            "A. Writer <a.writer@e.org> wrote to <p@e.org> and <https://e.org/p>",
            "a<b and b>c, x <y> z, 1 < 2 > 1",
            "<p> is the tag of a paragraph",
            "Use `<br>` or \"<p>\" (<div>) or '</p>'",
            "A line ends with <br> in HTML.",
            "impl<P> Walk<P> for Path<P> { fn go<P>(p: P) {} }",
            "return <div class=\"a\">{x}</div>",
            "usage: tool <option> <title> [<address>]",
            "if (i<p>j) {}",
            "कखग < घ",
        ] {
            assert_eq!(sniff(text), ContentType::Plain, "{text}");
        }
    }

    #[test]
    fn only_the_beginning_is_examined() {
        assert_eq!(sniff(&format!("{}</p><p>a</p><p>b", "x".repeat(WINDOW))), ContentType::Plain);
        // The window may end inside a character.
        assert_eq!(sniff(&"é".repeat(WINDOW)), ContentType::Plain);
        assert_eq!(sniff(&format!("x{}", "é".repeat(WINDOW))), ContentType::Plain);
    }
}
