//! Hostile markup: every input has an outcome, and work grows no worse than linearly.

use proptest::prelude::*;
use samestory_engine::text::TooLarge;
use samestory_engine::text::markup::ContentType::{Html, Markdown};
use samestory_engine::text::markup::{ContentType, sniff, to_text};

use crate::fuzz_checks::fuzz_markup;
use crate::growth;

const ROOM: usize = 16 << 20;

/// The pieces of HTML bombs.
#[rustfmt::skip]
const HTML: &[&str] = &[
    "<div>", "<nav>", "</nav>", "<nav></div>", "<nav>x</nav>", "<p hidden>", "<li hidden>x", "<a>x",
    "<b><i>x</b>", "<article>x</article>", "<article>", "<h1>x</h1>", "<table><td>", "<svg>",
    "<svg><title/>", "<x y=z ", "<x ", "<", "</", "<!", "<!--", "<?", "&", "&a", "&#1", "&#x10ffff;",
    "&CounterClockwiseContourIntegral", "\0", "\r", "<![CDATA[", "<script>", "<script><!--<script>",
    "</script", "<title>", "<textarea></textare>", " \n<br>", "<p>word word word</p>\n",
    "<span aria-hidden=true>", "<p <p ", "<p>x</p><p>",
];

/// The pieces of Markdown bombs.
#[rustfmt::skip]
const MARKDOWN: &[&str] = &[
    ">", "> ", "- ", "* ", "1. ", "> - ", ">a\n", "-\n", "- a\n\n", "[", "![", "[]", "[a](", "[a](<b",
    "[a](b 'c", "[a]:\n", "[a]: b 'c\n", "[^", "[^a]", "[^a]: ", "*a_ ", "*a **a ", "_a __a ***a ~~a ",
    "*", "`a``b```c", "<", "<a ", "a<!--", "a<?", "a<!A ", "a<![CDATA[", "a<a b='\n", "&", "&aaaaaaa",
    "|a", "a|b\n", "a|b\n-|-\n", "---\n", "a\n-\n", "```\n", "> ```\n", "\\", "# ", "# a\n", "<div>\n\n",
    "<nav>x\n\n", "a <script>\n\n", "<script>\n", "\t", " ", "\0", "\r",
];

/// Pieces of markup.
#[rustfmt::skip]
const SOUP: &[&str] = &[
    "<", ">", "</", "/>", "=", "\"", "'", "&", ";", "#", "!", "--", "[", "]", "(", ")", "*", "_", "`",
    "```", "~~", "|", "-", "\\", "\n", "\n\n", " ", "    ", "\t", "\r", "\0", "> ", "- ", "1. ", "# ",
    "---\n", "[^a]", "[^a]: ", "|-|-|\n", "![", "](", "<p>", "</p>", "<p hidden>", "<div>", "</div>",
    "<nav>", "</nav>", "<aside>", "</aside>", "<article>", "</article>", "<main>", "<li>", "<li hidden>",
    "</ul>", "<ul>", "<table>", "<td>", "</table>", "<h1>", "</h1>", "<br>", "<a href=x>", "</a>",
    "<script>", "</script>", "<title>", "</title>", "<textarea>", "<svg>", "<title/>", "</svg>", "<!--",
    "-->", "<![CDATA[", "]]>", "<span aria-hidden=true>", "</span>", "<div itemprop=articleBody>", "<rt>",
    "</ruby>", "&amp;", "&#x41;", "&ngE;", "&nbsp", "word", "é", "漢", "\u{10ffff}", "\u{feff}",
    "Enough words in one paragraph to count as a long one, which takes some two hundred bytes, so that it reads like a \
         part of a story and not like a teaser, a caption or a menu, of which pages have plenty.",
];

fn text(raw: &str, kind: ContentType) -> String {
    to_text(raw, kind, ROOM).unwrap().into_owned()
}

#[test]
fn html_bombs_have_their_defined_outcome() {
    let n = 100_000;
    assert_eq!(text(&("<div>".repeat(n) + "deep"), Html), "deep");
    assert_eq!(text(&("<div>".repeat(n) + "deep" + &"</div>".repeat(n) + "<nav>a</nav>b"), Html), "deep\nb");
    assert_eq!(text(&("<nav>".repeat(n) + "story"), Html), "story");
    assert_eq!(text(&("<nav>x".repeat(3) + "<p>story"), Html), "x\nx\nx\nstory");
    assert_eq!(text(&format!("story<{}>end", "a".repeat(1 << 20)), Html), "storyend");
    assert_eq!(text(&format!("story<p {}>end", "a=b ".repeat(1 << 18)), Html), "story\nend");
    assert_eq!(text(&format!("story<p class='{}'>end", "ad-".repeat(1 << 18)), Html), "story\nend");
    assert_eq!(text(&("story<script>".to_owned() + &"x<p>".repeat(n)), Html), "story");
    assert_eq!(text(&"&amp;".repeat(n), Html), "&".repeat(n));
    assert_eq!(text(&"&ngE;".repeat(n), Html), "≧\u{338}".repeat(n));
    assert_eq!(text(&("<".repeat(n) + "\0\0"), Html), "<".repeat(n));
    assert_eq!(text(&"<![CDATA[x]]>".repeat(n), Html), "");
}

#[test]
fn markdown_bombs_have_their_defined_outcome() {
    let n = 100_000;
    assert!(text(&(">".repeat(n) + " story"), Markdown).ends_with("> story"));
    assert!(text(&("- ".repeat(n) + "story"), Markdown).ends_with("- story"));
    assert_eq!(text(&("[".repeat(n) + "story"), Markdown), "[".repeat(n) + "story");
    assert!(text(&("*a_ ".repeat(n) + "story"), Markdown).ends_with("story"));
}

#[test]
fn output_never_exceeds_its_limit() {
    for kind in [ContentType::Plain, Html, Markdown] {
        assert_eq!(to_text(&"word ".repeat(1000), kind, 999), Err(TooLarge { limit: 999 }));
    }
    assert_eq!(to_text(&"&ngE;".repeat(1000), Html, 4999), Err(TooLarge { limit: 4999 }));
    assert_eq!(to_text(&"&ngE;".repeat(1000), Html, 5000).unwrap().len(), 5000);
}

fn assert_linear(kind: ContentType, name: &str, input: impl Fn(usize) -> String) {
    growth::assert_linear(&format!("{kind:?} {name:?}"), 8_000, input, |raw| {
        std::hint::black_box((sniff(raw), to_text(raw, kind, ROOM).is_ok()));
    });
}

/// `head` once, then `body` repeatedly.
fn repeated(head: &str, body: &str, size: usize) -> String {
    head.to_owned() + &body.repeat(size / body.len())
}

#[test]
fn work_on_html_grows_linearly() {
    for &piece in HTML {
        assert_linear(Html, piece, |size| repeated("", piece, size));
        // The same below as many open elements as are tracked, none of which it closes.
        assert_linear(Html, piece, |size| repeated(&"<em><nav>".repeat(600), piece, size));
        assert_linear(Html, piece, |size| repeated("<script>", piece, size));
    }
    assert_linear(Html, "one tag name", |size| format!("<{}>", "a".repeat(size)));
    assert_linear(Html, "one upper case tag name", |size| format!("<{}>", "A".repeat(size)));
    assert_linear(Html, "one attribute", |size| format!("<p class='{}'>", "ad ".repeat(size / 3)));
    assert_linear(Html, "open, then close", |size| "<div>".repeat(size / 11) + &"</div>".repeat(size / 11));
    assert_linear(Html, "stray ends", |size| "<div>".repeat(511) + &"</x>".repeat(size / 4));
    assert_linear(Html, "stray ends of blocks", |size| "<div>".repeat(511) + &"</ul>".repeat(size / 5));
}

#[test]
fn work_on_markdown_grows_linearly() {
    for &piece in MARKDOWN {
        assert_linear(Markdown, piece, |size| repeated("", piece, size));
    }
    // Lines that are tried against every block open above them.
    for nest in [">", "> ", "- ", "+\t", "1. ", "> - ", "1) > * "] {
        for line in ["b\n", "\n", ">b\n", "> > b\n", "- b\n", "  b\n"] {
            let name = format!("{nest} then {line}");
            assert_linear(Markdown, &name, |size| {
                nest.repeat(size / 2 / nest.len()) + "a\n" + &repeated("", line, size / 2)
            });
        }
    }
    let root = |size: usize| (size as f64).sqrt() as usize;
    assert_linear(Markdown, "stairs", |size| (0..root(2 * size)).map(|i| " ".repeat(i) + "- a\n").collect());
    assert_linear(Markdown, "quoted stairs", |size| {
        (0..root(2 * size)).map(|i| ">".repeat(i) + "a\n").collect()
    });
    assert_linear(Markdown, "stairs of ticks", |size| {
        (0..root(2 * size)).map(|i| "`".repeat(i) + " ").collect()
    });
    assert_linear(Markdown, "brackets", |size| "[".repeat(size / 2) + &"]".repeat(size / 2));
    assert_linear(Markdown, "definitions", |size| (0..size / 12).map(|i| format!("[a{i}]: /u\n")).collect());
    assert_linear(Markdown, "uses", |size| {
        format!("[x]: {}\n\n", "u".repeat(size / 2)) + &"[x]".repeat(size / 6)
    });
    assert_linear(Markdown, "notes", |size| (0..size / 14).map(|i| format!("[^{i}]: a\n\n")).collect());
    assert_linear(Markdown, "wide table", |size| {
        format!("{}\n{}\n{}", "|a".repeat(size / 6), "|-".repeat(size / 6), "a\n".repeat(size / 6))
    });
}

/// The pieces in any order, which reaches states that random characters never do.
fn soup() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(SOUP);
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn any_soup_of_markup_passes_the_fuzz_check(control: u8, raw in soup()) {
        fuzz_markup(&[&[control], raw.as_bytes()].concat());
    }

    #[test]
    fn any_bytes_pass_the_fuzz_check(data in prop::collection::vec(any::<u8>(), 0..400)) {
        fuzz_markup(&data);
    }

    #[test]
    fn any_characters_pass_the_fuzz_check(control: u8, raw in "\\PC{0,200}") {
        fuzz_markup(&[&[control], raw.as_bytes()].concat());
    }

    #[test]
    fn text_without_markup_characters_is_unchanged(raw in "[^<&\r\0]{0,200}") {
        prop_assert_eq!(text(&raw, Html), raw);
    }

    #[test]
    fn escaped_text_in_paragraphs_comes_back(lines in prop::collection::vec("[a-zé漢<>&\"']{1,20}( [a-z<>&]{1,9}){0,9}", 1..9)) {
        let escape = |line: &String| line.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let page: String = lines.iter().map(|line| format!("<p>{}</p>\n", escape(line))).collect();
        prop_assert_eq!(text(&page, Html), lines.join("\n"));
    }
}
