//! Markdown to text: what a reader of the rendered page sees. It drives the same `PageText` as HTML does.
//!
//! Link text stays and URLs go, images go with their alternative text, code stays (it is text on the rendered
//! page too, so both forms of an article agree), front matter and footnote references go, footnotes stay
//! where they are written. Embedded HTML is parsed as HTML.
//!
//! The parser is linear with one exception: it tries a line without markers against every open block, so
//! `>>>>…` followed by many lines is quadratic. [`limit_nesting`] removes excessive depth first.

use std::borrow::Cow;

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::TooLarge;
use super::html::{self, Context};
use super::page::{Hints, PageText};
use super::tag::Gap;

/// Maximum nesting at the start of a line, in columns: 32 nested quotes or lists.
const NESTING: usize = 64;

pub(super) fn to_text(raw: &str, limit: usize) -> Result<String, TooLarge> {
    let source = limit_nesting(raw);
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS;
    let mut page = PageText::new(limit);
    let mut block = String::new();
    // Images and front matter that are currently open.
    let mut skipped = 0_usize;
    for event in Parser::new_ext(&source, options) {
        match event {
            Event::Start(Tag::Image { .. } | Tag::MetadataBlock(_)) => skipped += 1,
            Event::End(TagEnd::Image | TagEnd::MetadataBlock(_)) => skipped = skipped.saturating_sub(1),
            _ if skipped > 0 => {}
            Event::Start(Tag::TableCell) | Event::End(TagEnd::TableCell) => page.separate(Gap::Cell),
            Event::Start(tag) if is_inline(&tag.to_end()) => {}
            Event::End(tag) if is_inline(&tag) => {}
            Event::Start(Tag::Heading { level: HeadingLevel::H1, .. }) => {
                page.start(b"h1", Hints::default(), false);
            }
            Event::Start(_) => page.separate(Gap::Line),
            Event::End(tag) => {
                if tag == TagEnd::HtmlBlock {
                    html::read(&block, &mut page, Context::Page);
                    block.clear();
                }
                // A `<script>` that nothing closed ends with its block.
                page.end_raw();
                match tag {
                    TagEnd::Heading(HeadingLevel::H1) => page.end(b"h1"),
                    _ => page.separate(Gap::Line),
                }
            }
            Event::Text(text) | Event::Code(text) => page.text(text.as_bytes()),
            // The lines of a block arrive one by one, and a tag may span several.
            Event::Html(line) => block.push_str(&line),
            Event::InlineHtml(tag) => html::read(&tag, &mut page, Context::Inline),
            Event::SoftBreak => page.text(b"\n"),
            Event::HardBreak | Event::Rule => page.separate(Gap::Line),
            Event::FootnoteReference(_) | Event::TaskListMarker(_) => {}
            Event::InlineMath(text) | Event::DisplayMath(text) => page.text(text.as_bytes()),
        }
        if page.is_too_large() {
            break;
        }
    }
    page.finish()
}

fn is_inline(tag: &TagEnd) -> bool {
    matches!(
        tag,
        TagEnd::Emphasis
            | TagEnd::Strong
            | TagEnd::Strikethrough
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::Link
    )
}

/// Limits the nesting of every line to [`NESTING`]: escapes the first marker beyond it, which turns the rest
/// of the line into text, and collapses indentation beyond it to one space.
fn limit_nesting(raw: &str) -> Cow<'_, str> {
    let bytes = raw.as_bytes();
    let mut out = String::new();
    let mut copied = 0;
    let mut line = 0;
    while line < bytes.len() {
        let length = bytes[line..].iter().position(|&byte| matches!(byte, b'\n' | b'\r'));
        let end = length.map_or(bytes.len(), |length| line + length);
        if let Some(at) = too_deep(&bytes[line..end]) {
            // Everything before it is ASCII, so this is a character boundary.
            out.push_str(&raw[copied..line + at]);
            let blanks = bytes[line + at..end].iter().take_while(|byte| is_blank(**byte)).count();
            out.push_str(if blanks > 0 { " " } else { "\\" });
            copied = line + at + blanks;
            // A marker may follow the indentation.
            if blanks > 0 && bytes[copied..end].first().is_some_and(|byte| is_marker(*byte)) {
                out.push('\\');
            }
        }
        line = end + 1;
    }
    if copied == 0 {
        return Cow::Borrowed(raw);
    }
    out.push_str(&raw[copied..]);
    Cow::Owned(out)
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn is_marker(byte: u8) -> bool {
    matches!(byte, b'>' | b'-' | b'+' | b'*' | b'.' | b')')
}

/// Where the markers and indentation at the start of a line exceed [`NESTING`]. One level is a quote mark, a
/// list marker followed by a blank, or two columns of indentation; `-----` is a rule, not five lists.
fn too_deep(line: &[u8]) -> Option<usize> {
    let mut columns = 0;
    for (at, &byte) in line.iter().enumerate() {
        columns += match byte {
            b'\t' => 4,
            b' ' => 1,
            b'>' => 2,
            _ if is_marker(byte) => usize::from(line.get(at + 1).is_some_and(|next| is_blank(*next))),
            _ if byte.is_ascii_digit() => 0,
            _ => return None,
        };
        if columns > NESTING {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(markdown: &str) -> String {
        to_text(markdown, 1 << 20).unwrap()
    }

    #[test]
    fn visible_text_is_kept_and_urls_are_dropped() {
        assert_eq!(
            text("A *very* [good](http://e.org/x \"t\") day\\.\n\nAt `noon` &amp; after."),
            "A very good day.\nAt noon & after."
        );
        assert_eq!(text("See <https://e.org>."), "See https://e.org.");
    }

    #[test]
    fn images_are_dropped_with_their_alternative_text() {
        assert_eq!(text("Before ![a *cat* [x](y)](c.png) after"), "Before  after");
    }

    #[test]
    fn blocks_are_lines_and_cells_are_apart() {
        assert_eq!(
            text("- one\n- two\n\n> three\n\n| a | b |\n|---|---|\n| c | d |"),
            "one\ntwo\nthree\na\tb\nc\td"
        );
        assert_eq!(text("one  \ntwo\nthree\n\n---\n\nfour"), "one\ntwo\nthree\nfour");
    }

    #[test]
    fn code_is_text() {
        assert_eq!(text("Run:\n\n```sh\nls <p>\n```\n\nDone."), "Run:\nls <p>\nDone.");
    }

    #[test]
    fn footnotes_stay_and_their_references_go() {
        assert_eq!(text("A claim[^1] made.\n\n[^1]: A source."), "A claim made.\nA source.");
    }

    #[test]
    fn front_matter_and_the_first_heading_are_not_the_body() {
        let body = "A body of some length that goes on for a while, certainly longer than its headline.";
        assert_eq!(text(&format!("---\ntitle: x\n---\n\n# The headline\n\n{body}")), body);
    }

    #[test]
    fn embedded_html_is_parsed_as_html() {
        assert_eq!(text("<aside>\n\nA *menu*\n\n</aside>\n\nThe story."), "The story.");
        assert_eq!(
            text("<div\n class='x'>In&nbsp;a box</div>\n\nThe <b>story</b><br>goes on."),
            "In\u{a0}a box\nThe story\ngoes on."
        );
    }

    #[test]
    fn a_script_ends_with_its_block_at_the_latest() {
        assert_eq!(text("Before <script>alert(1)</script> after"), "Before  after");
        assert_eq!(text("Before <script>alert(1)\n\nNext."), "Before\nNext.");
        assert_eq!(text("<style>\np {}\n</style>\n\nNext."), "Next.");
    }

    #[test]
    fn ordinary_nesting_is_left_alone() {
        for source in [
            "> > - 1. text",
            "-----------------------------------------------------------------------",
            "a\n\n    code",
        ] {
            assert!(matches!(limit_nesting(source), Cow::Borrowed(_)), "{source}");
        }
    }

    #[test]
    fn deep_nesting_becomes_text_without_losing_words() {
        assert_eq!(
            limit_nesting(&format!("{}word\nnext", ">".repeat(40))),
            format!("{}\\{}word\nnext", ">".repeat(32), ">".repeat(8))
        );
        assert_eq!(
            limit_nesting(&format!("x\n{}word", " ".repeat(90))),
            format!("x\n{} word", " ".repeat(64))
        );
        assert_eq!(
            limit_nesting(&format!("{}- word", " ".repeat(90))),
            format!("{} \\- word", " ".repeat(64))
        );
        let counted: String = (1..60).map(|n| format!("{n}. ")).collect();
        assert_eq!(limit_nesting(&format!("{counted}é")).replace('\\', ""), format!("{counted}é"));
    }

    #[test]
    fn the_limit_holds() {
        assert_eq!(to_text("*abc* def", 7), Ok("abc def".into()));
        assert_eq!(to_text("*abc* def", 6), Err(TooLarge { limit: 6 }));
    }
}
