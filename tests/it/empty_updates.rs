//! Updates without a text erase nothing that is known.

use samestory_engine::engine::{EmptyUpdate, Incoming, Output, Preparer, Settings};
use samestory_engine::model::{DeadLetter, DeadLetterReason, Flag, RawArticle};
use samestory_engine::model::{MatchType, VerdictKind};
use samestory_engine::text::Options;

use super::engine_fixture::{EngineFixture, article, clusters, id, line, tagged, window};
use super::folder::{Folder, story, verdicts};

fn fixture(empty_update: EmptyUpdate) -> EngineFixture {
    let mut fixture = EngineFixture::new(Settings { empty_update, ..Settings::default() });
    for name in ["a", "b"] {
        fixture.tag(&article(name, &window(1, 100, 80, 0, 0)));
    }
    fixture
}

/// Without a language either: a sender without a text cannot be relied on for that.
fn empty(name: &str, title: &str) -> RawArticle {
    RawArticle { language: None, url: None, title: Some(title.to_owned()), ..article(name, "") }
}

fn without_body(fixture: &mut EngineFixture, name: &str) -> Vec<Output> {
    let prepared = Preparer::new(Options::default()).prepare(&empty(name, "New"), &line(9)).unwrap();
    let (reason, message) = (DeadLetterReason::NoBody, "missing field".to_owned());
    let refusal = DeadLetter { position: line(9), reason, message };
    fixture.submit(None, Incoming::Bodiless { article: Box::new(prepared), refusal })
}

/// A crawler glitch, an update with an empty body, replaced a known article's fingerprint with nothing: the
/// article moved to `und`, left its cluster, and its next copy was `unique`.
#[test]
fn an_update_with_an_empty_body_keeps_the_text() {
    let mut fixture = fixture(EmptyUpdate::Keep);
    let outputs = fixture.article(&empty("b", "Corrected"));
    let kept = tagged(&outputs).unwrap();
    assert_eq!((kept.kind, kept.match_type), (VerdictKind::ExactDuplicate, Some(MatchType::SameArticle)));
    assert_eq!((&kept.flags[..], kept.revision), (&[Flag::KeptText][..], 0));
    assert_eq!((kept.language.code(), kept.cluster.to_string().as_str()), ("en", "en:0:0"));
    // Its new title is published; missing fields stay as they were.
    let [cluster] = clusters(&outputs)[..] else { panic!("{outputs:?}") };
    let member = &cluster.members[0];
    assert_eq!((member.id.as_str(), member.title.as_deref()), ("b", Some("Corrected")));
    assert_eq!(member.url.as_deref(), Some("https://b.example/news"));
    assert!(clusters(&fixture.article(&empty("b", "Corrected"))).is_empty(), "nothing new to publish");
    let copy = fixture.tag(&article("c", &window(1, 100, 80, 0, 0)));
    assert_eq!((copy.kind, copy.canonical_id), (VerdictKind::ExactDuplicate, id("a")));
}

#[test]
fn an_update_without_a_body_does_the_same_and_others_are_refused() {
    let mut fixture = fixture(EmptyUpdate::Keep);
    let kept = without_body(&mut fixture, "a");
    assert_eq!(tagged(&kept).unwrap().flags, [Flag::KeptText]);
    let unknown = without_body(&mut fixture, "nobody");
    assert!(
        matches!(&unknown[..], [Output::DeadLetter(letter)] if letter.message == "missing field"),
        "{unknown:?}"
    );
    let bare = fixture.tag(&empty("nobody", "A gallery"));
    assert_eq!((bare.kind, &bare.flags[..]), (VerdictKind::Unique, &[Flag::NoText][..]));
    assert_eq!(fixture.tag(&empty("nobody", "A gallery")).flags, [Flag::NoText], "there is no text to keep");
}

#[test]
fn updates_without_a_text_can_be_refused() {
    let mut fixture = fixture(EmptyUpdate::Refuse);
    for outputs in [fixture.article(&empty("b", "New")), without_body(&mut fixture, "b")] {
        assert!(
            matches!(&outputs[..], [Output::DeadLetter(letter)] if letter.reason == DeadLetterReason::NoBody),
            "{outputs:?}"
        );
    }
    assert_eq!(fixture.tag(&empty("nobody", "A gallery")).kind, VerdictKind::Unique);
    assert_eq!(fixture.tag(&article("c", &window(1, 100, 80, 0, 0))).kind, VerdictKind::ExactDuplicate);
}

#[test]
fn a_file_keeps_texts_too() {
    let folder = Folder::new("kept-text");
    let text = story(1, "");
    let lines = format!(
        "{{\"id\":\"a\",\"body\":{text:?}}}\n{{\"id\":\"a\",\"title\":\"New\"}}\n{{\"id\":\"a\",\"body\":\"\"}}\n{{\"id\":\"b\",\"body\":{text:?}}}\n{{\"id\":\"x\"}}\n"
    );
    folder.write("a.ndjson", lines.as_bytes());
    let printed = folder.run(&["file", "a.ndjson", "--max-errors", "100", "--dead-letters", "dead.ndjson"]);
    let expected = ["a unique -", "a exact-duplicate a", "a exact-duplicate a", "b exact-duplicate a"];
    assert_eq!(verdicts(&printed.stdout), expected, "{}", printed.stderr);
    assert_eq!(printed.stdout.matches("\"kept-text\"").count(), 2);
    assert!(
        folder.read("dead.ndjson").contains("\"original\":\"{\\\"id\\\":\\\"x\\\"}\""),
        "{}",
        folder.read("dead.ndjson")
    );
    let printed =
        folder.run(&["--set", "input.empty_update=refuse", "file", "a.ndjson", "--max-errors", "100"]);
    assert_eq!(verdicts(&printed.stdout), ["a unique -", "b exact-duplicate a"]);
    assert!(printed.stderr.contains("3 no-body"), "{}", printed.stderr);
}
