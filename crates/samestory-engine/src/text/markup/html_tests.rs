//! The text of HTML pages: each test states one rule and checks it on a few pages.

use super::*;

fn text(html: &str) -> String {
    to_text(html, 1 << 20).unwrap()
}

#[test]
fn blocks_break_lines_and_inline_elements_do_not_break_words() {
    assert_eq!(
        text("<p>One <b>t</b>wo<wbr>three</p>\n\n<div>four<br>five<hr>six</div>"),
        "One twothree\nfour\nfive\nsix"
    );
    assert_eq!(
        text("<ul><li>a<li>b</ul><table><tr><td>c</td> <td>d<tr><th>e<th>f</table>"),
        "a\nb\nc\td\ne\tf"
    );
}

#[test]
fn source_indentation_between_blocks_is_dropped() {
    assert_eq!(text("\n  <div>\n    <p>\n  a  b\n </p>\n\n </div> \n"), "a  b");
}

#[test]
fn entities_are_decoded_valid_or_not() {
    assert_eq!(text("&lt;p&gt; &amp;amp; &nbsp;&copy;&#x2013;&#8211;&eacute"), "<p> &amp; \u{a0}©––é");
    assert_eq!(
        text("&bogus; &#0; &#xD800; &#x110000; &#99999999999; &#; &#x; & &"),
        "&bogus; \u{fffd} \u{fffd} \u{fffd} \u{fffd} &#; &#x; & &"
    );
    assert_eq!(text("&#x92;&#150;"), "’–");
}

#[test]
fn elements_that_are_not_text_are_dropped() {
    let page = "a<script>if (a<b) '</p>'</script><style>p{}</style><!-- c --><svg><title/><text>d</text></svg>\
        <template><p>e</p></template><noscript><p>f</noscript><iframe><p>g</iframe><button>h</button>\
        <select><option>i<option>j</select><textarea><p>k</textarea><label>l</label><video>m</video>\
        <img alt=n><input value=o><![CDATA[p]]><?q?>z";
    assert_eq!(text(page), "az");
    assert_eq!(text("<head><title>a</title><meta content=b></head><body>c"), "c");
    assert_eq!(text("<ruby>漢<rp>(<rt>かん<rp>)</ruby>字"), "漢字");
}

#[test]
fn chrome_is_dropped_where_the_page_says_so() {
    for chrome in [
        "<nav><ul><li>x</ul></nav>",
        "<aside><article>x</article></aside>",
        "<footer>x</footer>",
        "<header>x</header>",
        "<div role=navigation><div>x</div></div>",
        "<div ROLE='Banner'>x</div>",
        "<span aria-hidden=\"true\">x <span>y</span></span>",
        "<div class='box ad'>x</div>",
        "<div role=dialog aria-modal=true><p>x</p></div>",
    ] {
        assert_eq!(text(&format!("<p>a</p>{chrome}<p>b</p>")), "a\nb", "{chrome}");
    }
    for content in [
        "<div class='lead headers shadow'>x</div>",
        "<div hidden=until-found>x</div>",
        "<div aria-hidden=false>x</div>",
        "<article><header>x</header></article>",
        "<main class=ad>x</main>",
        "<div style='display: block'>x</div>",
    ] {
        assert_eq!(text(&format!("<p>a</p>{content}<p>b</p>")), "a\nx\nb", "{content}");
    }
}

/// Ways to hide the text at `@`.
#[rustfmt::skip]
const HIDDEN: &[&str] = &[
    "<section hidden>@</section>", "<p hidden>@<p>", "<ul><li hidden>@<li></ul>", "<h1 class=sr-only>@</h1>",
    "<article hidden>@</article>", "<main style='display:none'>@</main>", "<div popover>@</div>",
    "<div style='color: red; display : NONE'>@</div>", "<div style='visibility:hidden'>@</div>",
    "<div style='font-size:0'>@</div>", "<p style='font-size:0px'>@", "<div style='opacity:0'>@</div>",
    "<div style='position:absolute;left:-9999px'>@</div>", "<p style='text-indent:-9999px'>@</p>",
    "<div style='color:#fff;background:#ffffff'>@</div>", "<div style='&#100;isplay:none'>@</div>",
    "<div style='visibility:hidden'><p style='font-size:16px'>@</p></div>", "<dialog>@</dialog>",
    "<div style='display:none'><p style='display:block'>@</p></div>", "<template>@<div>@</template>",
    "<template><table><tr><td>@</template>", "<noscript>@<table>@</noscript>", "<!-- @ -->",
];

#[test]
fn hidden_text_never_counts() {
    // A page of spam with a hidden story took the story's place: hidden text of five paragraphs was kept, and
    // so was everything that was never closed or nested beyond the tracked depth.
    let story = format!("<p>{}</p>", "Words of a story. ".repeat(15)).repeat(6);
    for &hidden in HIDDEN {
        let short = hidden.replace('@', "x");
        assert_eq!(text(&format!("<p>a</p>{short}<p>b</p>")), "a\nb", "{hidden}");
        // `<p>` cannot contain paragraphs.
        if !hidden.starts_with("<p ") {
            let long = hidden.replace('@', &story);
            assert_eq!(text(&format!("<p>a</p>{long}<p>b</p>")), "a\nb", "{hidden}");
        }
        let deep = format!("{}a{short}{}<p>b", "<div>".repeat(600), "</div>".repeat(600));
        assert_eq!(text(&deep), "a\nb", "{hidden}");
    }
    for open in
        ["<div hidden>", "<span style='display:none'>", "<p hidden>", "<template>", "<div style='opacity:0'>"]
    {
        assert_eq!(
            text(&format!("<div><p>a</p>{open}x</div><p>b</p>")),
            "a\nb",
            "{open} closed by its parent"
        );
        assert_eq!(text(&format!("<p>a</p>{open}x")), "a", "{open} never closed");
    }
    // Hidden text does not count towards the limit.
    assert_eq!(to_text(&format!("<div hidden>{story}</div>abc"), 3), Ok("abc".into()));
}

#[test]
fn text_that_is_shown_again_counts() {
    for shown in [
        "<div style='font-size:0'><p style='font-size:16px'>x</p></div>",
        "<div style='visibility:hidden'><p style='visibility:visible'>x</p></div>",
        "<div style='color:transparent'><p style='color:#333'>x</p></div>",
        "<dialog open><main>x</main></dialog>",
        "<div style='display:none'/><p>x</p>",
        "<div hidden></div><div>x</div>",
        "<details><p>x</p></details>",
    ] {
        let page = format!("<p>a</p>{shown}<p>b</p>");
        let expected = if shown.starts_with("<dialog") { "a\nb" } else { "a\nx\nb" };
        assert_eq!(text(&page), expected, "{shown}");
    }
    assert_eq!(text("<p>a<p hidden>x <b>y <i>z<p>b"), "a\nb", "a paragraph ends a hidden one");
    // Pages hide themselves until their script has run.
    assert_eq!(text("<html style='display:none'><body style='opacity:0'><p>a</p></body></html>"), "a");
}

#[test]
fn a_page_of_links_is_their_text_unless_it_says_navigation() {
    let links: String = (1..50).map(|n| format!("<li><a href=/{n}>Story {n}</a>")).collect();
    let lines: Vec<String> = (1..50).map(|n| format!("Story {n}")).collect();
    assert_eq!(text(&format!("<ul>{links}</ul>")), lines.join("\n"));
    assert_eq!(text(&format!("<nav><ul>{links}</ul></nav>")), "");
}

#[test]
fn chrome_that_is_never_closed_keeps_its_text() {
    assert_eq!(text("<nav>menu<p>story"), "menu\nstory");
    assert_eq!(text("<div><aside>share</div><p>story</p>"), "share\nstory");
    assert_eq!(text("<div><nav>menu</div><p>story</p></nav><p>end"), "menu\nstory\nend");
    assert_eq!(text("<nav/><p>story</p>"), "story");
    // Closed chrome inside unclosed chrome is still dropped.
    assert_eq!(text("<nav>menu<aside>related</aside><nav>more</nav><p>story"), "menu\nstory");
}

#[test]
fn stray_end_tags_do_nothing() {
    assert_eq!(text("</nav>a</b>b<nav>c</b></section>d</nav></p>e"), "ab\ne");
    assert_eq!(text("<nav><table><tr><td>a</nav>b</table>c</nav>d"), "d");
}

#[test]
fn chrome_that_reads_like_an_article_is_kept() {
    let story = format!("<p>{}</p>", "Words of a story. ".repeat(15)).repeat(5);
    assert!(text(&format!("<p>a</p><aside>{story}</aside>")).contains("Words"));
    let links = story.replace("<p>", "<p><a href=x>").replace("</p>", "</a></p>");
    assert_eq!(text(&format!("<p>a</p><aside>{links}</aside>")), "a");
    assert_eq!(text(&format!("<p>a</p><noscript>{story}</noscript>")), "a");
}

#[test]
fn the_dominant_element_is_the_page() {
    let story = "Words of a story. ".repeat(40);
    let story = story.trim();
    let page =
        format!("<div>Cookies?</div><article><h1>Title</h1><p>{story}</p></article><ul><li>Related</ul>");
    assert_eq!(text(&page), story);
    let body = page
        .replace("<p>", "<p>By A. Writer</p><div itemprop='articleBody'><p>")
        .replace("</p></art", "</p></div></art");
    assert_eq!(text(&body), story);
    // Cards do not dominate one another, nor does a short one dominate a long page.
    let cards = format!("<article>{story}</article>").repeat(3);
    assert_eq!(text(&format!("a{cards}b")), format!("a\n{story}\n{story}\n{story}\nb"));
    let promo = format!("<article>{story}</article><p>{}", "Other words. ".repeat(300));
    assert!(text(&promo).contains("Other words."));
    // A dropped element does not count.
    assert_eq!(text(&format!("<p>a<aside><article>{}</article></aside>b", story)), "a\nb");
}

#[test]
fn a_page_that_is_all_headline_keeps_it() {
    assert_eq!(text("<h1>Title</h1>"), "Title");
    assert_eq!(text("<h1>Title</h1><p>Text"), "Title\nText");
    assert_eq!(text("<h1>Title</h1><p>Text that goes on for longer"), "Text that goes on for longer");
}

#[test]
fn deep_content_is_still_text() {
    let page = format!("{}a<nav>b</nav>{}c<nav>d</nav>", "<div>".repeat(1000), "</div>".repeat(1000));
    assert_eq!(text(&page), "a\nb\nc");
}

#[test]
fn malformed_input_reads_as_in_a_browser() {
    assert_eq!(text("a < b <3 <é </é> c<"), "a < b <3 <é  c<");
    assert_eq!(text("a<script>b<p>c"), "a");
    assert_eq!(text("a<!-- b<p>c"), "a");
    assert_eq!(text("a<p title=\"b<p>c"), "a");
    assert_eq!(text("a\0b\r\nc"), "ab\nc");
    assert_eq!(text("<b\0>a</b>b"), "ab");
    assert_eq!(text("<script/>a</script>b"), "b");
}

#[test]
fn the_limit_applies_to_the_text_that_is_kept() {
    assert_eq!(to_text("<b>abc</b>", 3), Ok("abc".into()));
    assert_eq!(to_text("<b>abc</b>d", 3), Err(TooLarge { limit: 3 }));
    // A menu beyond the limit matters only if it turns out to be text.
    assert_eq!(to_text("<nav>menu <aside>more</aside></nav>abc", 3), Ok("abc".into()));
    assert_eq!(to_text("<nav>menu <aside>more</aside>abc", 3), Err(TooLarge { limit: 3 }));
    assert_eq!(to_text("<nav><aside>menu</nav>abc", 3), Ok("abc".into()));
    assert_eq!(to_text("<div><aside>menu</div>abc", 3), Err(TooLarge { limit: 3 }));
}

#[test]
fn a_republished_page_yields_the_article_and_nothing_else() {
    let story: Vec<String> = (1..8)
        .map(|n| format!("Paragraph {n} of a story about a harbour, a storm & the people who \u{201c}stayed\u{201d} behind."))
        .collect();
    let paragraphs: String = story
        .iter()
        .map(|line| {
            format!(
                "      <p>{}</p>\n",
                line.replace('&', "&amp;").replace("story", "<a href='/t'>sto</a>ry")
            )
        })
        .collect();
    let page = format!(
        r##"<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Harbour &mdash; Example</title>
<link rel="stylesheet" href="x.css"><script type="application/ld+json">{{"headline": "Harbour"}}</script></head>
<body class="single post">
  <a class="skip-link" href="#main">Skip to content</a>
  <div id="consent" role="dialog" aria-modal="true"><p>We value your privacy.</p><button>Accept</button></div>
  <header class="site"><div class="logo">Example News</div><nav><ul><li><a href="/">Home</a><li>World</ul></nav></header>
  <main id="main">
    <article>
      <header><h1>Storm over the harbour</h1></header>
      <div class="share"><a href="x">Share</a> <a href="y">Tweet</a></div>
      <figure><img src="h.jpg" alt="The harbour"><noscript><img src="h.jpg"></noscript></figure>
{paragraphs}
      <aside><h3>Read more</h3><ul><li><a href="1">Another storm</a></ul></aside>
      <footer>Filed under: weather</footer>
    </article>
    <section class="comments"><h2>2 comments</h2>
      <article class="comment"><p>Great piece.</p></article><article class="comment"><p>I was there.</p></article>
    </section>
  </main>
  <footer>&copy; 2024 Example News <a href="/terms">Terms</a></footer>
  <script>track("<p>" + 1 < 2)</script>
</body></html>"##
    );
    assert_eq!(text(&page), story.join("\n"));
    // Without a closing tag that matters, noise comes in but the story stays complete.
    for forgotten in
        ["</nav>", "</aside>", "</header>", "</article>", "</footer>", "</main>", "</section>", "</div>"]
    {
        let text = text(&page.replace(forgotten, ""));
        assert!(story.iter().all(|line| text.contains(line.as_str())), "without {forgotten}: {text}");
    }
}
