//! Checks that only the current home of an id retracts it, and what a reader that treats a tombstone as a
//! delete ends up with.

use std::collections::BTreeMap;

use samestory::kafka::tools::replay::Sent;
use samestory::kafka::tools::route_model::{ArticleVersion, RouteModel, is_notice};
use samestory_engine::index::{Memory, OutputTopic, Retention, View};
use samestory_engine::model::ArticleId;

use crate::kafka::bus::Row;

use super::oracle::{Findings, report, source};
use super::scene::Scene;

/// Each routed partition holds exactly the relocation notices that the replays of the other partitions send.
pub(super) fn notices_are_those_of_the_replay(
    scene: &Scene,
    expected: &[Sent],
    routed: &[Row],
    findings: &mut Findings,
) {
    let mut left: BTreeMap<(i32, &[u8]), i64> = BTreeMap::new();
    for notice in expected {
        *left.entry((notice.partition.unwrap(), notice.value.as_deref().unwrap())).or_default() += 1;
    }
    for row in routed {
        let value = row.value.as_deref().unwrap();
        if is_notice(value).unwrap() {
            *left.entry((row.partition, value)).or_default() -= 1;
        }
    }
    let wrong = left.iter().filter(|(_, count)| **count != 0);
    let wrong = wrong
        .map(|((partition, value), count)| format!("to {partition}: {count:+} of {}", value.escape_ascii()));
    report(findings, "relocation notices are not those of the replay", &wrong.collect::<Vec<_>>());
    scene.say(&format!("{} relocation notices", expected.len()));
}

/// One article on one topic, as seen by a reader that treats a tombstone as a delete.
#[derive(Default)]
struct TopicView {
    /// The source offset of the live record.
    live: Option<i64>,
    /// The latest source offset, and whether it is a record rather than a tombstone.
    last: Option<(i64, bool)>,
    /// A tombstone that removed a record of its own version or a later one, and that version.
    wrong: Option<(i64, i64)>,
}

impl TopicView {
    fn take(&mut self, offset: i64, is_record: bool) {
        match (is_record, self.live) {
            (true, _) => (self.live, self.wrong) = (Some(offset), None),
            (false, Some(later)) if later >= offset => {
                (self.live, self.wrong) = (None, Some((offset, later)))
            }
            (false, _) => self.live = None,
        }
        if self.last.is_none_or(|(last, _)| last <= offset) {
            self.last = Some((offset, is_record));
        }
    }
}

/// The topics end up with what the current home published. A live article may be missing only if the
/// tombstone of a lagging partition came after its record: the article had moved on, or was deleted, between
/// the two versions.
pub(super) fn a_tombstone_deletes_no_live_article(
    scene: &Scene,
    raw: &RouteModel,
    stores: &[Memory],
    outputs: &[(String, Row)],
    findings: &mut Findings,
) {
    let names = &scene.config.bus.topics;
    let outlets = [(&names.unique, OutputTopic::Unique), (&names.near_duplicate, OutputTopic::NearDuplicate)];
    let mut held: BTreeMap<(OutputTopic, String), TopicView> = BTreeMap::new();
    for (topic, row) in outputs {
        let Some((_, outlet)) = outlets.iter().find(|(name, _)| *name == topic) else { continue };
        let Some((_, offset)) = source(row, "samestory-") else { continue };
        let key = String::from_utf8_lossy(row.key.as_deref().unwrap_or_default()).into_owned();
        held.entry((*outlet, key)).or_default().take(offset, row.value.is_some());
    }
    let (mut lost, mut left, mut lagged) = (Vec::new(), Vec::new(), 0);
    for (id, versions) in raw.versions() {
        let name = ArticleId::new(&id).unwrap();
        let home = versions.last().and_then(|version| version.home);
        let document = home.and_then(|home| {
            let store = &stores[home as usize];
            let language = *store.languages_of(&name).unwrap().first()?;
            let number = store.number_of(language, &name).unwrap()?;
            store.document(language, number).unwrap()
        });
        for (_, outlet) in outlets {
            let Some(held) = held.get(&(outlet, id.clone())) else { continue };
            let Some(document) = &document else { continue };
            let belongs = document.outlet.and(outlet) == document.outlet;
            match (belongs, held.live) {
                (true, None) => match held.wrong {
                    Some((tombstone, record)) if is_lag(&versions, tombstone, record) => lagged += 1,
                    wrong => lost.push(format!("{id} lives on {outlet:?} and is not there: {wrong:?}")),
                },
                (false, Some(offset)) if !was_forgotten(scene, &versions, offset) => {
                    left.push(format!(
                        "{id} of {offset} is still on {outlet:?}, but is on {:?}",
                        document.outlet
                    ));
                }
                _ => {}
            }
        }
    }
    report(findings, "a tombstone deleted a live article", &lost);
    report(findings, "nobody retracted an article that moved away", &left);
    scene.say(&format!("{lagged} tombstones of partitions that lagged behind two moves"));
}

/// True if an article left its partition, or was deleted, between two versions. A partition that has not read
/// that yet still acts as the home.
fn is_lag(versions: &[ArticleVersion], tombstone: i64, record: i64) -> bool {
    let home = versions.iter().find(|version| version.offset == tombstone).and_then(|version| version.home);
    let between = versions.iter().filter(|version| (tombstone..=record).contains(&version.offset));
    between.into_iter().any(|version| version.home.is_none() || version.home != home)
}

/// True if a record may be left over from an article that expired before its next version came: then nothing
/// is retracted.
fn was_forgotten(scene: &Scene, versions: &[ArticleVersion], offset: i64) -> bool {
    let Retention::Millis(retention) = scene.config.engine.default.retention else { return false };
    let later: Vec<&ArticleVersion> = versions.iter().filter(|version| version.offset >= offset).collect();
    later.windows(2).any(|pair| {
        let (Some(one), Some(next)) = (pair[0].time, pair[1].time) else { return true };
        next - one >= retention as i64 / 2
    })
}
