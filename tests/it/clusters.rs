//! Cluster ids, and which member is the canonical.

use samestory_engine::engine::{Batch, CanonicalPolicy, Incoming, Preparer, Settings};
use samestory_engine::index::{BusPosition, Store, TopicName};
use samestory_engine::model::RawArticle;
use samestory_engine::model::{MatchType, VerdictKind};

use super::engine_fixture::{EngineFixture, article, at, clusters, id, line, tagged, trust_declared, window};

const POLICIES: [CanonicalPolicy; 4] = [
    CanonicalPolicy::FirstSeen,
    CanonicalPolicy::FirstPublished,
    CanonicalPolicy::Newest,
    CanonicalPolicy::Longest,
];

fn fixture(canonical: CanonicalPolicy) -> EngineFixture {
    EngineFixture::new(Settings { canonical, ..Settings::default() })
}

fn complete(name: &str) -> RawArticle {
    article(name, &window(1, 100, 240, 0, 0))
}

fn half(name: &str) -> RawArticle {
    article(name, &window(1, 160, 60, 0, 0))
}

/// A cluster's id used to contain its founder's id, which stayed in later records after the founder had been
/// deleted. Erasing an article must erase its id too.
#[test]
fn a_cluster_does_not_name_its_deleted_founder() {
    let mut fixture = fixture(CanonicalPolicy::FirstSeen);
    for name in ["secret", "b", "c"] {
        fixture.tag(&complete(name));
    }
    fixture.delete("secret");
    let joins = fixture.article(&complete("d"));
    let [cluster] = clusters(&joins)[..] else { panic!("{joins:?}") };
    assert_eq!((cluster.id.to_string().as_str(), cluster.canonical.as_str()), ("en:0:0", "b"));
    assert_eq!(tagged(&joins).unwrap().cluster, cluster.id);
}

/// In `direct` mode one language may arrive in two partitions, each of which numbers its own documents. Both
/// named their first cluster `en:a:0`, and the clusters topic is compacted by that key.
#[test]
fn clusters_of_two_partitions_have_different_ids() {
    let name = |partition: i32| {
        let mut fixture = fixture(CanonicalPolicy::FirstSeen);
        let prepared = Preparer::new(trust_declared()).prepare(&complete("a"), &line(1)).unwrap();
        let first = fixture.item(None, Incoming::Article(Box::new(prepared)));
        let bus = BusPosition {
            application: TopicName::new("samestory"),
            cluster: None,
            changelog: None,
            topic: TopicName::new("articles.raw"),
            topic_id: None,
            partition,
            next: 1,
            leader_epoch: None,
        };
        let batch = Batch { items: vec![first], bus: Some(bus), ..Batch::default() };
        let plan = fixture.dedup.plan(batch).unwrap().0;
        fixture.dedup.store_mut().apply_own_changes(&plan.changes).unwrap();
        // Later calls know the partition from the state.
        let joins = fixture.tag(&complete("b")).cluster;
        let founds = &plan.decided[0].outputs;
        assert_eq!(tagged(founds).unwrap().cluster, joins);
        joins.to_string()
    };
    assert_eq!([name(0), name(3)], ["en:0:0", "en:3:0"]);
}

/// After the canonical was deleted, a truncated half that came second was elected although a complete copy
/// existed. A reader of the cluster was then shown half of the story.
#[test]
fn a_part_is_not_the_canonical_while_there_is_a_complete_copy() {
    for policy in POLICIES {
        let mut fixture = fixture(policy);
        fixture.tag(&complete("a"));
        let part = fixture.tag(&half("part"));
        assert_eq!((part.kind, part.match_type), (VerdictKind::NearDuplicate, Some(MatchType::Partial)));
        assert_eq!(part.canonical_id, id("a"), "{policy:?}");
        fixture.tag(&complete("b"));
        fixture.tag(&half("other-part"));
        let leaves = fixture.delete("a");
        let [cluster] = clusters(&leaves)[..] else { panic!("{leaves:?}") };
        assert_eq!(cluster.canonical, id("b"), "{policy:?}");
        // Only parts are left; then the next complete copy replaces them.
        let leaves = fixture.delete("b");
        let [cluster] = clusters(&leaves)[..] else { panic!("{leaves:?}") };
        assert!(cluster.canonical.as_str().ends_with("part"), "{policy:?}");
        let back = fixture.tag(&article("c", &window(1, 160, 100, 0, 0)));
        assert_eq!((back.cluster.to_string().as_str(), back.canonical_id), ("en:0:0", id("c")), "{policy:?}");
    }
}

/// Under `first-published`, an article that claimed to be from 1990 became the canonical of any cluster it
/// joined. A claim that long before the fetch is not believed, but kept for display.
#[test]
fn a_publication_long_before_the_fetch_does_not_rank() {
    const NOW: i64 = 1_772_000_000_000;
    const DAY: i64 = 86_400_000;
    let published = |name: &str, millis: i64| RawArticle {
        published_at: at(millis),
        fetched_at: at(NOW),
        ..complete(name)
    };
    let mut fixture = fixture(CanonicalPolicy::FirstPublished);
    fixture.tag(&published("a", NOW - DAY));
    let old = fixture.article(&published("of-1990", 631_152_000_000));
    assert_eq!(tagged(&old).unwrap().canonical_id, id("a"));
    let [cluster] = clusters(&old)[..] else { panic!("{old:?}") };
    assert_eq!(cluster.members[0].published_at, at(631_152_000_000));
    assert_eq!(fixture.tag(&published("b", NOW - 31 * DAY)).canonical_id, id("a"));
    assert_eq!(fixture.tag(&published("c", NOW - 30 * DAY)).canonical_id, id("c"), "the limit is inclusive");
}
