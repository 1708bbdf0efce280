//! Every rule of a verdict in isolation: the rows of the table, clusters, updates, deletes, times.

use samestory_engine::engine::{Algorithm, CanonicalPolicy, Incoming, LanguageSettings, Output, Settings};
use samestory_engine::index::{OutputTopic, Retention, View};
use samestory_engine::model::{EventTime, Fraction, MatchType, TopicId, VerdictKind};
use samestory_engine::model::{Flag, RawArticle, RelationKind, Verdict};
use samestory_engine::text::language::find;

use super::engine_fixture::{
    EngineFixture, article, at, clusters, headline, id, news, rewrite, tagged, window, word,
};

/// A story of eighty words without repetition, from the middle of an endless one.
fn story(family: u64) -> String {
    window(family, 100, 80, 0, 0)
}

/// The text with every number replaced by a round one: exact figures in common would speak for a copy.
fn without_figures(text: &str) -> String {
    let is_number = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
    text.split(' ').map(|word| if is_number(word) { "40" } else { word }).collect::<Vec<_>>().join(" ")
}

fn fixture() -> EngineFixture {
    EngineFixture::new(Settings::default())
}

fn timed(article: RawArticle, millis: i64) -> RawArticle {
    RawArticle { fetched_at: at(millis), ..article }
}

fn summary(tagged: &Verdict) -> (VerdictKind, Option<MatchType>, Option<&str>) {
    (tagged.kind, tagged.match_type, tagged.duplicate_of.as_ref().map(|id| id.as_str()))
}

/// The tombstone for an article that moved to the other topic.
fn moved_tombstone(name: &str, outlet: OutputTopic) -> Output {
    Output::Tombstone { id: id(name), outlet, lives: true }
}

/// The tombstone for a deleted article.
fn deletion_tombstone(name: &str, outlet: OutputTopic) -> Output {
    Output::Tombstone { id: id(name), outlet, lives: false }
}

#[test]
fn another_article_with_the_same_content_is_exact() {
    let mut fixture = fixture();
    let first = fixture.tag(&article("a", &story(1)));
    assert_eq!(summary(&first), (VerdictKind::Unique, None, None));
    assert_eq!((first.cluster.to_string().as_str(), first.canonical_id.as_str()), ("en:0:0", "a"));
    let second = fixture.tag(&article("b", &story(1).to_uppercase()));
    assert_eq!(summary(&second), (VerdictKind::ExactDuplicate, Some(MatchType::Exact), Some("a")));
    assert_eq!((second.cluster.to_string().as_str(), second.canonical_id.as_str()), ("en:0:0", "a"));
    assert_eq!([second.similarity, second.containment, second.confidence], [Fraction::new(1.0); 3]);
}

#[test]
fn a_few_words_changed_is_near() {
    let mut fixture = fixture();
    fixture.tag(&article("a", &story(1)));
    let near = fixture.tag(&article("b", &window(1, 100, 80, 0, 20)));
    assert_eq!(summary(&near), (VerdictKind::NearDuplicate, Some(MatchType::Near), Some("a")));
    assert!(near.similarity > Fraction::new(0.8) && near.similarity < Fraction::new(1.0), "{near:?}");
}

#[test]
fn a_part_and_a_whole_that_adds_little_are_partial() {
    let mut fixture = fixture();
    fixture.tag(&article("a", &window(1, 100, 240, 0, 0)));
    let part = fixture.tag(&article("part", &window(1, 160, 60, 0, 0)));
    assert_eq!(summary(&part), (VerdictKind::NearDuplicate, Some(MatchType::Partial), Some("a")));
    assert!(part.containment > Fraction::new(0.9), "{part:?}");
    let whole = fixture.tag(&article("whole", &window(1, 100, 400, 0, 0)));
    assert_eq!(summary(&whole), (VerdictKind::NearDuplicate, Some(MatchType::Partial), Some("a")));
}

#[test]
fn a_whole_that_adds_more_than_it_repeats_is_unique_and_extends() {
    let mut fixture = fixture();
    fixture.tag(&article("a", &story(1)));
    let whole = fixture.tag(&article("whole", &window(1, 0, 300, 0, 0)));
    assert_eq!(summary(&whole), (VerdictKind::Unique, None, None));
    let related: Vec<_> = whole.related.iter().map(|it| (it.id.as_str(), it.relation)).collect();
    assert_eq!(related, [("a", RelationKind::Extends)]);
    assert_eq!(whole.cluster.to_string(), "en:0:1");
}

#[test]
fn other_numbers_in_the_same_wording_are_the_same_template() {
    let mut fixture = fixture();
    fixture.tag(&article("monday", &window(1, 100, 80, 0, 0)));
    let tuesday = fixture.tag(&article("tuesday", &window(1, 100, 80, 1, 0)));
    assert_eq!(summary(&tuesday), (VerdictKind::Unique, None, None));
    let related: Vec<_> = tuesday.related.iter().map(|it| (it.id.as_str(), it.relation)).collect();
    assert_eq!(related, [("monday", RelationKind::SameTemplate)]);
}

#[test]
fn the_best_match_has_the_most_evidence_not_the_highest_similarity() {
    // A hundred and twenty words, four of them numbers.
    let report = |day: u64| {
        let at = |place: u64| match place % 30 {
            7 => (1_000 + 10 * place + day).to_string(),
            _ => word(place),
        };
        (0..120).map(at).collect::<Vec<_>>().join(" ")
    };
    let words = |text: &str, every: usize| -> String {
        let words = text.split(' ').enumerate();
        let edited =
            words.map(|(at, old)| if at % every == 3 { word(1 << 40 | at as u64) } else { old.to_owned() });
        edited.collect::<Vec<_>>().join(" ")
    };
    let titled = |name: &str, title: &str, body: &str| RawArticle {
        title: Some(title.to_owned()),
        ..article(name, body)
    };
    let mut fixture = fixture();
    fixture.tag(&titled("monday", "Harbour traffic on Monday", &report(0)));
    // Shares the numbers, and fewer of the words than Monday's report does.
    fixture.tag(&titled("tuesday", "Harbour traffic on Tuesday", &words(&report(1), 12)));
    let copy = fixture.tag(&titled("copy", "Harbour traffic on Tuesday", &report(1)));
    assert_eq!((copy.kind, copy.duplicate_of.clone()), (VerdictKind::NearDuplicate, Some(id("tuesday"))));
    let [related] = &copy.related[..] else { panic!("{copy:?}") };
    assert_eq!((related.id.as_str(), related.relation), ("monday", RelationKind::SameTemplate));
    assert!(related.similarity > copy.similarity, "{copy:?}");
}

#[test]
fn the_same_item_in_other_words_is_rewritten_if_its_phrases_are_rare() {
    let mut fixture = fixture();
    fixture.tag(&article("a", &rewrite(&story(1), 1)));
    let copy = fixture.tag(&article("b", &rewrite(&story(1), 2)));
    assert_eq!(summary(&copy), (VerdictKind::NearDuplicate, Some(MatchType::Rewritten), Some("a")));
    assert!(copy.similarity < Fraction::new(0.4), "{copy:?}");
    assert_eq!(copy.cluster.to_string(), "en:0:0");
}

#[test]
fn reports_from_one_form_are_not_rewritten() {
    // Without the second opinion each is a unique story, as it is if the form is well known.
    let alone = LanguageSettings { algorithm: Algorithm::Minhash, ..LanguageSettings::default() };
    let mut fixture = EngineFixture::new(Settings { default: alone, ..Settings::default() });
    let form = without_figures(&story(1));
    for own in 1..12 {
        let report = fixture.tag(&article(&format!("form-{own}"), &rewrite(&form, own)));
        assert_eq!(report.kind, VerdictKind::Unique);
    }
    fixture.restart(Settings::default());
    let report = fixture.tag(&article("form-12", &rewrite(&form, 12)));
    assert_eq!(summary(&report), (VerdictKind::Unique, None, None), "other clusters have these phrases");
    assert!(report.similarity > Fraction::new(0.13), "{report:?}");
}

#[test]
fn a_rewrite_has_the_same_numbers() {
    let report = |edition: u64| window(1, 100, 200, edition, 0);
    let mut fixture = fixture();
    fixture.tag(&article("a", &report(0)));
    let copy = fixture.tag(&article("b", &rewrite(&report(0), 3)));
    assert_eq!(copy.duplicate_of, Some(id("a")));
    let other = fixture.tag(&article("c", &rewrite(&report(1), 2)));
    assert_eq!(summary(&other), (VerdictKind::Unique, None, None));
    assert!(other.similarity > Fraction::new(0.13), "{other:?}");
}

#[test]
fn a_story_with_the_same_opening_that_continues_is_a_version_of_it() {
    let titled = |name: &str, words: u64| RawArticle {
        title: Some("Council votes for a new bridge".to_owned()),
        ..article(name, &news(1, words))
    };
    let mut fixture = fixture();
    fixture.tag(&titled("first", 120));
    let grown = fixture.tag(&titled("grown", 320));
    assert_eq!(summary(&grown), (VerdictKind::NearDuplicate, Some(MatchType::Partial), Some("first")));
}

#[test]
fn a_page_with_an_article_in_it_is_no_rewrite_of_its_other_content() {
    let page = format!("{} {}", rewrite(&window(2, 100, 200, 0, 0), 5), window(1, 100, 125, 0, 0));
    let titled = |name: &str, title: u64, body: &str| RawArticle {
        title: Some(headline(title)),
        ..article(name, body)
    };
    let mut fixture = fixture();
    fixture.tag(&titled("beside", 1, &window(2, 100, 215, 0, 0)));
    fixture.tag(&titled("inside", 2, &window(1, 100, 122, 0, 0)));
    let page = fixture.tag(&titled("page", 3, &page));
    assert_eq!(page.kind, VerdictKind::Unique, "{page:?}");
    assert_eq!(page.related.first().map(|related| related.relation), Some(RelationKind::Extends));
}

#[test]
fn half_of_an_article_is_a_part_even_after_another_half() {
    let half = |edit: u64| window(1, 100, 60, 0, edit);
    let mut fixture = fixture();
    fixture.tag(&article("whole", &window(1, 100, 240, 0, 0)));
    fixture.tag(&article("wire", &window(1, 100, 240, 0, 30)));
    assert_eq!(fixture.tag(&article("half", &half(0))).match_type, Some(MatchType::Partial));
    let other = fixture.tag(&article("other half", &half(20)));
    assert_eq!(summary(&other), (VerdictKind::NearDuplicate, Some(MatchType::Partial), Some("half")));
    let copy = fixture.tag(&article("copy", &window(1, 100, 240, 0, 20)));
    assert_eq!(copy.match_type, Some(MatchType::Near), "the halves are parts of it, not the other way round");
}

#[test]
fn ties_go_to_the_lowest_number() {
    let mut fixture = fixture();
    for name in ["z", "a", "m"] {
        fixture.tag(&article(name, &story(1)));
    }
    let near = fixture.tag(&article("near", &window(1, 100, 80, 0, 20)));
    assert_eq!(near.duplicate_of, Some(id("z")));
}

#[test]
fn short_texts_need_more_evidence_and_empty_ones_never_match() {
    let mut fixture = fixture();
    let short = window(1, 100, 49, 0, 0);
    assert_eq!(fixture.tag(&article("a", &short)).flags, [Flag::ShortText]);
    let flash = fixture.tag(&article("b", &window(1, 100, 49, 0, 20)));
    assert_eq!(
        summary(&flash),
        (VerdictKind::NearDuplicate, Some(MatchType::Near), Some("a")),
        "one word differs"
    );
    let short = without_figures(&short);
    fixture.tag(&article("round", &short));
    let rewritten = fixture.tag(&article("rewritten", &rewrite(&short, 2)));
    assert_eq!(summary(&rewritten), (VerdictKind::Unique, None, None), "every fifth word differs");
    fixture.tag(&article("long", &window(2, 100, 240, 0, 0)));
    let teaser = fixture.tag(&article("teaser", &window(2, 120, 40, 0, 0)));
    assert_eq!(summary(&teaser), (VerdictKind::NearDuplicate, Some(MatchType::Partial), Some("long")));
    let figures = fixture.tag(&article("figures", &window(2, 120, 40, 1, 0)));
    assert_eq!(summary(&figures), (VerdictKind::Unique, None, None), "its numbers differ");
    fixture.tag(&article("word", &window(3, 100, 7, 0, 0)));
    let part = fixture.tag(&article("brief", &window(3, 100, 6, 0, 0)));
    assert_eq!(summary(&part), (VerdictKind::Unique, None, None), "too short to be compared");
    let copy = fixture.tag(&article("c", &window(1, 100, 49, 0, 0)));
    assert_eq!(summary(&copy), (VerdictKind::ExactDuplicate, Some(MatchType::Exact), Some("a")));
    for name in ["empty", "void"] {
        let empty = fixture.tag(&article(name, " … "));
        assert_eq!((empty.kind, &empty.flags[..]), (VerdictKind::Unique, &[Flag::NoText][..]));
    }
    assert_eq!(
        fixture.tag(&article("void", "")).kind,
        VerdictKind::Unique,
        "different blanks are different content"
    );
}

#[test]
fn the_same_article_again_changes_nothing() {
    let mut fixture = fixture();
    fixture.tag(&timed(article("a", &story(1)), 1_000));
    fixture.tag(&timed(article("b", &story(1)), 2_000));
    fixture.tag(&timed(article("b", &story(1)), 2_500));
    let before = fixture.store().dump().unwrap();
    let outputs = fixture.article(&timed(article("b", &story(1)), 3_000));
    let again = tagged(&outputs).unwrap();
    assert_eq!(summary(again), (VerdictKind::ExactDuplicate, Some(MatchType::SameArticle), Some("b")));
    assert_eq!((again.cluster.to_string().as_str(), again.canonical_id.as_str()), ("en:0:0", "a"));
    assert_eq!(outputs.len(), 1);
    let after = fixture.store().dump().unwrap();
    let changed: Vec<_> = after.iter().filter(|row| !before.contains(row)).map(|row| &row.family).collect();
    assert_eq!(changed, ["meta"], "only stream time");
}

#[test]
fn last_seen_advances_in_eighths_of_the_retention() {
    let mut fixture = fixture();
    let seen = |fixture: &EngineFixture| {
        let english = find("en").unwrap().lang;
        fixture
            .store()
            .document(english, samestory_engine::model::DocumentNumber(0))
            .unwrap()
            .unwrap()
            .last_seen
            .millis()
    };
    let eighth = 7 * 24 * 60 * 60 * 1000 / 8;
    fixture.tag(&timed(article("a", &story(1)), 0));
    assert_eq!(seen(&fixture), 0);
    fixture.tag(&timed(article("a", &story(1)), 1));
    assert_eq!(seen(&fixture), eighth + 1, "rounded up");
    fixture.tag(&timed(article("a", &story(1)), eighth + 1));
    assert_eq!(seen(&fixture), eighth + 1, "not written again within an eighth");
    fixture.tag(&timed(article("a", &story(1)), eighth + 2));
    assert_eq!(seen(&fixture), 2 * eighth + 2);
    fixture.tag(&timed(article("a", &story(1)), 5));
    assert_eq!(seen(&fixture), 2 * eighth + 2, "a late article moves nothing back");
}

// `last_seen` advanced in steps and was rounded down: an article resent just before a step was forgotten up
// to an eighth of the retention early, and its next copy was published as unique.
#[test]
fn an_article_sent_again_is_remembered_for_its_whole_retention() {
    const DAY: i64 = 24 * 60 * 60 * 1000;
    let mut fixture = with_retention(8 * DAY as u64);
    fixture.tag(&timed(article("a", &story(1)), 0));
    fixture.tag(&timed(article("a", &story(1)), DAY - 1));
    fixture.set_stream_time(9 * DAY - 2);
    let copy = fixture.tag(&timed(article("b", &story(1)), 9 * DAY - 2));
    assert_eq!(summary(&copy), (VerdictKind::ExactDuplicate, Some(MatchType::Exact), Some("a")));
}

// An unchanged resend goes to near-duplicate while the article stays on unique. The document only recorded
// unique, so a later version left the resend on near-duplicate for good.
#[test]
fn a_change_retracts_what_a_resend_left_on_the_other_topic() {
    let mut fixture = fixture();
    fixture.tag(&article("a", &story(1)));
    fixture.tag(&article("b", &story(2)));
    assert_eq!(fixture.tag(&article("b", &story(2))).match_type, Some(MatchType::SameArticle));
    let outputs = fixture.article(&article("b", &story(3)));
    assert_eq!(tagged(&outputs).unwrap().kind, VerdictKind::Unique);
    assert_eq!(outputs[1..], [moved_tombstone("b", OutputTopic::NearDuplicate)]);
    let outputs = fixture.article(&article("b", &story(4)));
    assert_eq!(outputs.len(), 1, "there is nothing left to retract: {outputs:?}");
    fixture.tag(&article("b", &story(4)));
    let outputs = fixture.article(&article("b", &window(1, 100, 80, 0, 20)));
    assert_eq!(tagged(&outputs).unwrap().kind, VerdictKind::NearDuplicate);
    assert_eq!(outputs[1], moved_tombstone("b", OutputTopic::Unique));
}

#[test]
fn an_update_removes_the_old_fingerprint() {
    let mut fixture = fixture();
    fixture.tag(&article("a", &story(1)));
    let updated = fixture.tag(&article("a", &story(2)));
    assert_eq!((updated.kind, updated.revision), (VerdictKind::Unique, 1));
    assert_eq!(
        fixture.tag(&article("b", &story(1))).kind,
        VerdictKind::Unique,
        "no document has that text any more"
    );
    assert_eq!(fixture.tag(&article("c", &story(2))).duplicate_of, Some(id("a")));
}

#[test]
fn an_update_that_moves_leaves_a_tombstone_behind() {
    let mut fixture = fixture();
    fixture.tag(&article("a", &story(1)));
    fixture.tag(&article("b", &story(2)));
    let outputs = fixture.article(&article("b", &window(1, 100, 80, 0, 20)));
    assert_eq!(tagged(&outputs).unwrap().kind, VerdictKind::NearDuplicate);
    assert_eq!(outputs[1], moved_tombstone("b", OutputTopic::Unique));
    let outputs = fixture.article(&article("b", &story(3)));
    assert_eq!(tagged(&outputs).unwrap().revision, 2);
    assert_eq!(outputs[1], moved_tombstone("b", OutputTopic::NearDuplicate));
    let outputs = fixture.article(&article("b", &story(4)));
    assert_eq!(outputs.len(), 1, "it stays where it was: {outputs:?}");
}

#[test]
fn a_founder_that_changes_leaves_its_number_to_the_cluster() {
    let mut fixture = fixture();
    fixture.tag(&article("a", &story(1)));
    fixture.tag(&article("b", &story(1)));
    let outputs = fixture.article(&article("a", &story(2)));
    let changed = tagged(&outputs).unwrap();
    assert_eq!(changed.cluster.to_string(), "en:0:2", "a number is never reused");
    let Output::ClusterDeleted { id: gone, remaining } = &outputs[1] else { panic!("{outputs:?}") };
    assert_eq!((gone.to_string().as_str(), remaining), ("en:0:0", &Some(id("b"))));
    let outputs = fixture.article(&article("c", &story(1)));
    assert_eq!(tagged(&outputs).unwrap().cluster.to_string(), "en:0:0");
    let [cluster] = clusters(&outputs)[..] else { panic!("{outputs:?}") };
    assert_eq!((cluster.canonical.as_str(), cluster.canonical_changed_from.clone()), ("b", Some(id("a"))));
}

#[test]
fn a_delete_leaves_tombstones_and_nothing_else() {
    let mut fixture = fixture();
    for name in ["a", "b", "c"] {
        fixture.tag(&article(name, &story(1)));
    }
    let outputs = fixture.delete("a");
    assert_eq!(
        outputs[..2],
        [deletion_tombstone("a", OutputTopic::Unique), deletion_tombstone("a", OutputTopic::NearDuplicate)]
    );
    let [cluster] = clusters(&outputs)[..] else { panic!("{outputs:?}") };
    assert_eq!((cluster.canonical.as_str(), cluster.size), ("b", 2));
    assert_eq!(cluster.canonical_changed_from, Some(id("a")));
    assert_eq!(fixture.delete("a"), [], "it is already deleted");
    fixture.delete("b");
    fixture.delete("c");
    assert!(fixture.store().dump().unwrap().iter().all(|row| row.family == "meta"));
    assert_eq!(fixture.tag(&article("d", &story(1))).kind, VerdictKind::Unique);
}

#[test]
fn deletes_of_unknown_ids_are_counted() {
    let mut fixture = fixture();
    let items = vec![
        fixture.item(None, Incoming::Delete(id("nobody"))),
        fixture.item(None, Incoming::Forget { ids: vec![id("x")], to: 1, raw: TopicId::UNKNOWN }),
    ];
    let plan = fixture.run(items);
    assert_eq!((plan.stats.unknown_deletes, plan.outputs().count()), (1, 0));
}

#[test]
fn an_update_in_another_language_leaves_the_first() {
    let mut fixture = fixture();
    fixture.tag(&article("a", &story(1)));
    fixture.tag(&article("b", &story(1)));
    let german = RawArticle { language: Some("de".to_owned()), ..article("b", &story(1)) };
    let outputs = fixture.article(&german);
    let moved = tagged(&outputs).unwrap();
    assert_eq!((moved.kind, moved.cluster.to_string().as_str()), (VerdictKind::Unique, "de:0:0"));
    assert_eq!(outputs[1], moved_tombstone("b", OutputTopic::NearDuplicate));
    assert_eq!(fixture.store().languages_of(&id("b")).unwrap(), [find("de").unwrap().lang]);
}

#[test]
fn a_chain_of_versions_splits_where_it_leaves_the_canonical() {
    // Each continues where the previous one ends, and drops as much at its beginning. They contain no
    // numbers.
    let version =
        |n: u64| (80 * n..80 * n + 200).map(|place| word(7 << 20 | place)).collect::<Vec<_>>().join(" ");
    let mut fixture = fixture();
    let outputs: Vec<Verdict> =
        (0..3).map(|n| fixture.tag(&article(&format!("v{n}"), &version(n)))).collect();
    assert_eq!(outputs[1].cluster.to_string(), "en:0:0");
    assert_eq!(
        (outputs[2].kind, outputs[2].duplicate_of.clone()),
        (VerdictKind::NearDuplicate, Some(id("v1")))
    );
    assert_eq!((outputs[2].cluster.to_string().as_str(), outputs[2].canonical_id.as_str()), ("en:0:2", "v2"));
    let joined = fixture.article(&article("v3", &format!("{} {}", version(2), word(9))));
    let [cluster] = clusters(&joined)[..] else { panic!("{joined:?}") };
    assert_eq!(cluster.split_from.as_ref().unwrap().to_string(), "en:0:0");
}

fn with_policy(canonical: CanonicalPolicy) -> EngineFixture {
    EngineFixture::new(Settings { canonical, ..Settings::default() })
}

#[test]
fn each_policy_has_its_own_canonical() {
    let published = |name: &str, words: u64, millis: i64| RawArticle {
        published_at: at(millis),
        ..article(name, &window(1, 100, words, 0, 0))
    };
    let articles = [published("a", 80, 500), published("b", 90, 100), published("c", 85, 900)];
    for (policy, stands) in [
        (CanonicalPolicy::FirstSeen, ["a", "a", "a"]),
        (CanonicalPolicy::FirstPublished, ["a", "b", "b"]),
        (CanonicalPolicy::Newest, ["a", "b", "c"]),
        (CanonicalPolicy::Longest, ["a", "b", "b"]),
    ] {
        let mut fixture = with_policy(policy);
        let canonicals: Vec<String> =
            articles.iter().map(|it| fixture.tag(it).canonical_id.to_string()).collect();
        assert_eq!(canonicals, stands, "{policy:?}");
        let leaves = fixture.delete(stands[2]);
        let [cluster] = clusters(&leaves)[..] else { panic!("{leaves:?}") };
        let next = match policy {
            CanonicalPolicy::FirstSeen | CanonicalPolicy::Newest => "b",
            CanonicalPolicy::FirstPublished => "a",
            CanonicalPolicy::Longest => "c",
        };
        assert_eq!(cluster.canonical.as_str(), next, "{policy:?}");
        assert_eq!(cluster.canonical_changed_from, Some(id(stands[2])));
    }
}

#[test]
fn a_cluster_record_is_published_with_the_second_member_and_lists_the_newest() {
    let mut fixture = fixture();
    assert_eq!(fixture.article(&article("a", &story(1))).len(), 1);
    let outputs = fixture.article(&article("b", &story(1)));
    let [cluster] = clusters(&outputs)[..] else { panic!("{outputs:?}") };
    assert_eq!(
        (cluster.size, &cluster.hosts[..]),
        (2, &["a.example".to_owned(), "b.example".to_owned()][..])
    );
    let members: Vec<_> =
        cluster.members.iter().map(|member| (member.id.as_str(), member.match_type)).collect();
    assert_eq!(members, [("b", Some(MatchType::Exact)), ("a", None)]);
    assert_eq!(cluster.members[0].title.as_deref(), Some("About b"));
    let mut last = Vec::new();
    for n in 0..60 {
        last = fixture.article(&article(&format!("c{n}"), &story(1)));
    }
    let [cluster] = clusters(&last)[..] else { panic!("{last:?}") };
    assert_eq!((cluster.size, cluster.members.len(), cluster.hosts.len()), (62, 50, 32));
    assert_eq!((cluster.members[0].id.as_str(), cluster.members[49].id.as_str()), ("c59", "c10"));
}

fn with_retention(millis: u64) -> EngineFixture {
    let default = LanguageSettings { retention: Retention::Millis(millis), ..LanguageSettings::default() };
    EngineFixture::new(Settings { default, ..Settings::default() })
}

#[test]
fn expired_documents_do_not_match_even_before_removal() {
    let mut fixture = with_retention(1_000);
    for n in 0..7 {
        fixture.tag(&timed(article(&format!("a{n}"), &story(n)), n as i64));
    }
    fixture.set_stream_time(1_005);
    let late = fixture.tag(&timed(article("late", &story(6)), 1_005));
    assert_eq!(late.duplicate_of, Some(id("a6")), "six are overdue, the seventh is not");
    let english = find("en").unwrap().lang;
    let left = |fixture: &EngineFixture| {
        fixture.store().overdue(english, EventTime::from_millis(5), 9).unwrap().len()
    };
    assert_eq!(left(&fixture), 2, "four are removed at a time");
    let again = fixture.tag(&timed(article("again", &story(5)), 1_005));
    assert_eq!((again.kind, left(&fixture)), (VerdictKind::Unique, 0));
}

#[test]
fn an_expired_canonical_is_replaced() {
    let mut fixture = with_retention(1_000);
    for n in 0..6 {
        fixture.tag(&timed(article(&format!("other{n}"), &story(n + 10)), 0));
    }
    fixture.tag(&timed(article("a", &story(1)), 1));
    fixture.tag(&timed(article("b", &story(1)), 500));
    fixture.set_stream_time(1_001);
    // All of the first seven are overdue; four are removed, and a is not among them.
    let outputs = fixture.article(&timed(article("c", &story(1)), 1_001));
    let copy = tagged(&outputs).unwrap();
    assert_eq!((copy.duplicate_of.clone(), copy.canonical_id.as_str()), (Some(id("b")), "b"));
    let [cluster] = clusters(&outputs)[..] else { panic!("{outputs:?}") };
    assert_eq!((cluster.canonical.as_str(), cluster.size), ("b", 2));
    assert_eq!(cluster.canonical_changed_from, Some(id("a")));
}

/// A tombstone without a canonical is final, but a cluster of sixty got one while its founder was live: only
/// its newest fifty members were examined, and all of them were overdue.
#[test]
fn a_large_cluster_with_a_live_member_is_not_gone() {
    let mut fixture = with_retention(1_000);
    for n in 0..60 {
        fixture.tag(&timed(article(&format!("copy{n}"), &story(1)), 1));
    }
    fixture.tag(&timed(article("copy0", &story(1)), 900));
    fixture.set_stream_time(1_002);
    let mut last = None;
    for n in 0..20 {
        let outputs = fixture.article(&timed(article(&format!("other{n}"), &story(100 + n)), 1_002));
        for output in outputs {
            match output {
                Output::Cluster(cluster) => assert_eq!(cluster.canonical, id("copy0")),
                Output::ClusterDeleted { remaining, .. } => last = Some(remaining),
                _ => {}
            }
            assert_ne!(last, Some(None), "after {n} articles");
        }
    }
    assert_eq!(last, Some(Some(id("copy0"))));
    let joins = fixture.article(&timed(article("late", &story(1)), 1_003));
    let [cluster] = clusters(&joins)[..] else { panic!("{joins:?}") };
    assert_eq!((cluster.id.to_string().as_str(), cluster.size), ("en:0:0", 2));
}

#[test]
fn an_article_that_arrives_expired_is_judged_and_not_stored() {
    let mut fixture = with_retention(1_000);
    fixture.tag(&timed(article("a", &story(1)), 5_000));
    fixture.set_stream_time(5_000);
    let late = fixture.tag(&timed(article("late", &story(1)), 4_000));
    assert_eq!(summary(&late), (VerdictKind::ExactDuplicate, Some(MatchType::Exact), Some("a")));
    assert_eq!((&late.flags[..], late.cluster.to_string().as_str()), (&[Flag::Expired][..], "en:0:0"));
    assert_eq!(fixture.store().languages_of(&id("late")).unwrap(), []);
    let stored = fixture.tag(&timed(article("b", &story(2)), 4_001));
    assert_eq!(
        (&stored.flags[..], stored.cluster.to_string().as_str()),
        (&[][..], "en:0:2"),
        "a number is used once"
    );
}

#[test]
fn a_time_far_ahead_expires_nothing() {
    let mut fixture = with_retention(10_000_000);
    let give = |fixture: &mut EngineFixture, name: &str, fetched: i64, record: i64| {
        let article = timed(article(name, &story(1)), fetched);
        let prepared = samestory_engine::engine::Preparer::new(super::engine_fixture::trust_declared())
            .prepare(&article, &super::engine_fixture::line(1))
            .unwrap();
        tagged(&fixture.submit(at(record), Incoming::Article(Box::new(prepared)))).cloned().unwrap()
    };
    give(&mut fixture, "a", 1_000, 1_000);
    let ahead = give(&mut fixture, "ahead", 253_370_764_800_000, 2_000);
    assert_eq!((ahead.kind, &ahead.flags[..]), (VerdictKind::ExactDuplicate, &[Flag::ClampedTime][..]));
    let next = give(&mut fixture, "next", 3_000, 3_000);
    assert_eq!((next.duplicate_of, &next.flags[..]), (Some(id("a")), &[][..]));
    let before_all = give(&mut fixture, "early", -5, 3_000);
    assert_eq!(
        (before_all.kind, &before_all.flags[..]),
        (VerdictKind::ExactDuplicate, &[Flag::ClampedTime][..])
    );
}

#[test]
fn a_hot_bucket_is_flagged_and_the_canonical_is_examined() {
    let mut fixture = EngineFixture::new(Settings { max_bucket: 8, ..Settings::default() });
    let first = fixture.tag(&article("first", &story(1)));
    assert_eq!(first.flags, []);
    let mut last = None;
    for n in 0..100 {
        last = Some(fixture.tag(&article(&format!("copy{n}"), &story(1))));
    }
    let last = last.unwrap();
    assert_eq!((last.duplicate_of, &last.flags[..]), (Some(id("first")), &[Flag::Capped][..]));
    let prepared = samestory_engine::engine::Preparer::new(super::engine_fixture::trust_declared());
    let near = prepared
        .prepare(&article("near", &window(1, 100, 80, 0, 20)), &super::engine_fixture::line(1))
        .unwrap();
    let item = fixture.item(None, Incoming::Article(Box::new(near)));
    let plan = fixture.run(vec![item]);
    assert!(plan.stats.capped_buckets > 0 && plan.stats.candidates <= 9, "{:?}", plan.stats);
    assert_eq!(tagged(&plan.decided[0].outputs).unwrap().duplicate_of, Some(id("first")));
}

/// The canonical of a hot bucket leaves its cluster: by a new version of the same article, by expiry, or for
/// another language. The article that causes it is compared with the new canonical.
#[test]
fn a_hot_bucket_whose_canonical_leaves_with_the_current_article_gets_another() {
    let retention = Retention::Millis(1_000);
    let default = LanguageSettings { retention, ..LanguageSettings::default() };
    let mut fixture =
        EngineFixture::new(Settings { max_bucket: 4, default, review: None, ..Settings::default() });
    for n in 0..12 {
        fixture.article(&timed(article(&format!("copy{n}"), &story(1)), 10 * n));
    }
    // A new version of the first, still very similar to the others.
    let changed = fixture.tag(&timed(article("copy0", &window(1, 100, 74, 0, 0)), 200));
    assert_eq!(
        (changed.kind, changed.canonical_id, &changed.flags[..]),
        (VerdictKind::NearDuplicate, id("copy1"), &[Flag::Capped][..])
    );
    // The next two are overdue when another copy arrives.
    fixture.set_stream_time(1_021);
    let late = fixture.tag(&timed(article("late", &story(1)), 1_021));
    assert_eq!((late.kind, late.canonical_id), (VerdictKind::ExactDuplicate, id("copy3")));
    let foreign = RawArticle { language: Some("de".into()), ..article("copy3", &story(1)) };
    assert_eq!(fixture.tag(&timed(foreign, 1_022)).kind, VerdictKind::Unique);
    let next = fixture.tag(&timed(article("next", &story(1)), 1_023));
    assert_eq!((next.kind, next.canonical_id), (VerdictKind::ExactDuplicate, id("copy4")));
}

/// Outputs without the hash of the settings, which differs where settings differ.
fn without_config(outputs: Vec<Output>) -> Vec<Output> {
    let without = |output: Output| match output {
        Output::Tagged(verdict) => Output::Tagged(Box::new(Verdict { config: 0, ..*verdict })),
        other => other,
    };
    outputs.into_iter().map(without).collect()
}

#[test]
fn history_changes_state_and_publishes_nothing() {
    let from = |publish_from| Settings { publish_from, ..Settings::default() };
    let (mut live, mut backfilled) = (EngineFixture::new(from(None)), EngineFixture::new(from(at(1_000))));
    for (name, family, millis) in [("a", 1, 10), ("b", 1, 20), ("a", 1, 30), ("c", 2, 40), ("c", 1, 50)] {
        let article = timed(article(name, &story(family)), millis);
        live.article(&article);
        assert_eq!(backfilled.article(&article), [], "{name}");
    }
    assert_eq!(backfilled.submit(at(60), Incoming::Delete(id("b"))), []);
    live.submit(at(60), Incoming::Delete(id("b")));
    let article = timed(article("d", &story(1)), 1_000);
    assert_eq!(without_config(backfilled.article(&article)), without_config(live.article(&article)));
    // It was published nowhere, so nothing is retracted.
    let changed = timed(super::engine_fixture::article("a", &story(5)), 1_001);
    assert!(!backfilled.article(&changed).contains(&moved_tombstone("a", OutputTopic::Unique)));
}

#[test]
fn doubtful_duplicates_are_flagged_for_review() {
    let between = |low, high| {
        let review = Some((Fraction::new(low), Fraction::new(high)));
        let mut fixture = EngineFixture::new(Settings { review, ..Settings::default() });
        let first = fixture.tag(&article("a", &story(1)));
        assert_eq!(first.flags, [], "a unique article needs no review");
        fixture.tag(&article("b", &window(1, 100, 80, 0, 20))).flags
    };
    assert_eq!(between(0.0, 1.0), [Flag::Review]);
    assert_eq!(between(0.0, 0.1), []);
    assert_eq!(Settings::default().review, Some((Fraction::new(0.5), Fraction::new(0.9))));
}

#[test]
fn under_simhash_the_hamming_distance_decides() {
    let with = |algorithm, hamming| {
        let default = LanguageSettings { algorithm, hamming, ..LanguageSettings::default() };
        let mut fixture = EngineFixture::new(Settings { default, ..Settings::default() });
        fixture.tag(&article("a", &story(1)));
        fixture.tag(&article("b", &window(1, 100, 80, 0, 20)))
    };
    for algorithm in [Algorithm::Simhash128, Algorithm::Simhash64] {
        let far = with(algorithm, 0);
        assert_eq!(
            summary(&far),
            (VerdictKind::Unique, None, None),
            "bits differ, whatever lies in the other: {far:?}"
        );
        let near = with(algorithm, 40);
        assert_eq!(summary(&near), (VerdictKind::NearDuplicate, Some(MatchType::Near), Some("a")));
        let bits = if algorithm == Algorithm::Simhash128 { 128.0 } else { 64.0 };
        assert_eq!((near.similarity.get() * bits * 10.0).round() % 10.0, 0.0, "whole bits: {near:?}");
    }
    let combined = with(Algorithm::Combined, 0);
    assert_eq!(combined.match_type, Some(MatchType::Near));
    let other = with(Algorithm::Combined, 40);
    assert_eq!(
        Verdict { config: 0, ..combined },
        Verdict { config: 0, ..other },
        "the distance does not decide"
    );
}
