//! Barely usable articles: each has a defined outcome. Texts that consist of a title or a stub, and
//! meaningless titles, are in `evidence`; odd characters and sizes are in `hostile`.

use std::path::Path;

use samestory_engine::engine::{Incoming, Preparer, Settings};
use samestory_engine::model::{Flag, RawArticle, Verdict};
use samestory_engine::model::{MatchType, VerdictKind};
use samestory_engine::text::Options;

use super::engine_fixture::{EngineFixture, article, headline, id, line, news, tagged};

/// Judges an article as the program does by default, with the language of its text.
fn tag(fixture: &mut EngineFixture, article: &RawArticle) -> Verdict {
    let prepared = Preparer::new(Options::default()).prepare(article, &line(1)).unwrap();
    tagged(&fixture.submit(None, Incoming::Article(Box::new(prepared)))).cloned().unwrap()
}

fn fixture() -> EngineFixture {
    EngineFixture::new(Settings::default())
}

/// An article that declares neither its language nor its content type.
fn plain(name: &str, title: &str, body: &str) -> RawArticle {
    RawArticle { title: Some(title.to_owned()), language: None, content_type: None, ..article(name, body) }
}

fn declared(language: &str, article: RawArticle) -> RawArticle {
    RawArticle { language: Some(language.to_owned()), ..article }
}

/// Our own paragraphs in a language.
fn paragraphs(code: &str) -> String {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/language");
    std::fs::read_to_string(directory.join(code).with_extension("txt")).unwrap()
}

/// A page that consists of links only: their labels are its text.
fn links(from: u64, count: u64) -> String {
    let link = |n: u64| format!("<li><a href=\"https://news.example/{n}\">{}</a></li>", headline(n));
    format!("<html><body><ul>{}</ul></body></html>", (from..from + count).map(link).collect::<String>())
}

#[test]
fn a_page_of_links_matches_the_same_links_but_no_linked_article() {
    let mut fixture = fixture();
    for n in 0..20 {
        let body = format!("{}. {}", headline(n), news(n, 120));
        assert_eq!(
            tag(&mut fixture, &plain(&format!("a{n}"), &headline(n), &body)).kind,
            VerdictKind::Unique
        );
    }
    let page = tag(&mut fixture, &plain("page", "All the news", &links(0, 60)));
    assert_eq!((page.kind, page.duplicate_of), (VerdictKind::Unique, None));
    let copy = tag(&mut fixture, &plain("copy", "All the news", &links(0, 60)));
    assert_eq!((copy.kind, copy.duplicate_of), (VerdictKind::ExactDuplicate, Some(id("page"))));
    // The page an hour later: a tenth of the links are new.
    let later = tag(&mut fixture, &plain("later", "All the news", &links(6, 60)));
    assert_eq!((later.kind, later.duplicate_of), (VerdictKind::NearDuplicate, Some(id("page"))));
    let other = tag(&mut fixture, &plain("other", "All the news", &links(1_000, 60)));
    assert_eq!((other.kind, other.duplicate_of), (VerdictKind::Unique, None));
}

#[test]
fn a_body_of_another_articles_title_and_a_link_is_at_most_a_part_of_it() {
    let title = "Council votes to close the old harbour bridge for repairs until spring";
    let english = paragraphs("en");
    for (name, body) in [
        ("text", format!("{title} https://news.example/2026/bridge")),
        ("html", format!("<p>{title}</p><a href=\"https://news.example/2026/bridge\">Read more</a>")),
        ("markdown", format!("{title}\n\n[Read more](https://news.example/2026/bridge)")),
    ] {
        let mut fixture = fixture();
        for (name, body) in [("a", english.clone()), ("b", format!("{title}\n\n{english}"))] {
            tag(&mut fixture, &plain(name, title, &body));
        }
        let teaser = tag(&mut fixture, &plain(name, title, &body));
        // Only `b` contains its words. Whether a teaser suffices as a part of it is up to the evidence.
        match teaser.duplicate_of {
            None => assert_eq!(teaser.kind, VerdictKind::Unique, "{name}"),
            Some(of) => assert_eq!((of, teaser.match_type), (id("b"), Some(MatchType::Partial)), "{name}"),
        }
        assert!(teaser.flags.contains(&Flag::ShortText), "{name}: {:?}", teaser.flags);
        let again = tag(&mut fixture, &plain(&format!("{name} again"), title, &body));
        assert_eq!((again.kind, again.duplicate_of), (VerdictKind::ExactDuplicate, Some(id(name))));
    }
}

#[test]
fn a_declared_language_of_another_script_is_flagged_and_ignored() {
    let mut fixture = fixture();
    let english = paragraphs("en");
    let first = tag(&mut fixture, &plain("first", "Bridge", &english));
    for language in ["hi", "ja", "ar", "ru", "zh-Hant", "el"] {
        let copy = tag(&mut fixture, &declared(language, plain(language, "Bridge", &english)));
        assert_eq!(
            (copy.kind, copy.duplicate_of.as_ref()),
            (VerdictKind::ExactDuplicate, Some(&id("first")))
        );
        assert_eq!((copy.language.code(), &copy.cluster), ("en", &first.cluster), "{language}");
        assert!(copy.flags.contains(&Flag::LanguageMismatch), "{language}: {:?}", copy.flags);
    }
    let hindi = tag(&mut fixture, &declared("en", plain("hindi", "पुल", &paragraphs("hi"))));
    assert_eq!((hindi.kind, hindi.language.code()), (VerdictKind::Unique, "hi"));
    assert!(hindi.flags.contains(&Flag::LanguageMismatch), "{:?}", hindi.flags);
}

#[test]
fn a_copy_with_look_alike_letters_is_a_copy() {
    let mut fixture = fixture();
    let english = paragraphs("en");
    tag(&mut fixture, &plain("a", "Bridge", &english));
    // Every vowel that has a Cyrillic double; then every other one, so that words mix scripts.
    let all = english.replace('a', "а").replace('e', "е").replace('o', "о");
    let mut odd = false;
    let some: String = english
        .chars()
        .map(|c| {
            odd ^= "aeo".contains(c);
            if odd {
                c
            } else {
                c.to_string().replace('a', "а").replace('e', "е").chars().next().unwrap_or(c)
            }
        })
        .collect();
    for (name, body) in [("all", all), ("some", some)] {
        assert_ne!(body, english);
        let copy = tag(&mut fixture, &plain(name, "Bridge", &body));
        assert_eq!((copy.kind, copy.duplicate_of), (VerdictKind::ExactDuplicate, Some(id("a"))), "{name}");
        assert_eq!(copy.language.code(), "en");
    }
}

#[test]
fn a_text_in_two_languages_has_one_home_and_meets_its_copies() {
    for (one, other) in [("en", "de"), ("de", "en"), ("en", "hi"), ("ja", "en"), ("ru", "uk"), ("ar", "fr")] {
        let mut fixture = fixture();
        let (first, second) = (paragraphs(one), paragraphs(other));
        let both = format!("{}\n\n{}", first.trim(), second.trim());
        for (name, body) in [(one, &first), (other, &second)] {
            assert_eq!(tag(&mut fixture, &plain(name, name, body)).kind, VerdictKind::Unique);
        }
        let mixed = tag(&mut fixture, &plain("mixed", "Both", &both));
        let language = mixed.language.code();
        assert!([one, other].contains(&language), "{one} and {other}: {language}");
        // It is compared only with the half in its own language, and adds as much as it repeats.
        let duplicate = mixed.kind != VerdictKind::Unique;
        assert!(!duplicate || mixed.match_type == Some(MatchType::Partial), "{one} and {other}: {mixed:?}");
        for claim in [one, other, "und"] {
            let copy = tag(&mut fixture, &declared(claim, plain(&format!("copy {claim}"), "Both", &both)));
            assert_eq!(copy.kind, VerdictKind::ExactDuplicate, "{one} and {other}, declared {claim}");
            assert_eq!(copy.duplicate_of, Some(id("mixed")), "{one} and {other}, declared {claim}");
        }
    }
}
