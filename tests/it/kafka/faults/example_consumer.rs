//! Checks the example that users copy: `examples/consumer.py` reads the topics at the end of a run, and its
//! table of stories must be the one that follows from the fed records and the replay.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use samestory::kafka::tools::replay::Sent;
use serde_json::Value;

use super::articles::Fate;
use super::oracle::{Findings, RawPosition};
use super::scene::Scene;

/// Cluster → its canonical article, the number of its articles, and their hosts.
type Cards = BTreeMap<String, (String, u64, Vec<String>)>;

pub(crate) fn check(scene: &Scene, expected: &[Vec<Sent>], findings: &mut Findings) {
    let wanted = cards(scene, expected);
    let found = consumer(scene);
    let mut wrong: Vec<String> = Vec::new();
    for (story, card) in &wanted {
        match found.get(story) {
            Some(other) if other == card => {}
            other => wrong.push(format!("{story}: {other:?}, not {card:?}")),
        }
    }
    wrong.extend(
        found.keys().filter(|story| !wanted.contains_key(*story)).map(|story| format!("{story}: made up")),
    );
    if !wrong.is_empty() {
        let first = wrong[..wrong.len().min(3)].join("; ");
        findings.push(format!(
            "cards of examples/consumer.py: {} of {} wrong, first {first}",
            wrong.len(),
            wanted.len()
        ));
    }
    if wanted.len() < 20 {
        findings.push(format!("void: only {} cards", wanted.len()));
    }
}

fn header<'s>(sent: &'s Sent, name: &str) -> Option<&'s str> {
    let (_, value) = sent.headers.iter().find(|(key, _)| key == name)?;
    str::from_utf8(value.as_deref()?).ok()
}

fn text(bytes: Option<&[u8]>) -> String {
    String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
}

/// The content of the last record of a cluster.
#[derive(Default)]
struct LastRecord {
    canonical: Option<String>,
    hosts: Vec<String>,
}

/// The expected table, from the last record of each article and of each cluster. Expiry retracts no article,
/// so a story keeps the articles that name it, whatever is left of its cluster.
fn cards(scene: &Scene, expected: &[Vec<Sent>]) -> Cards {
    let clusters_topic = &scene.config.bus.topics.clusters;
    let mut clusters: BTreeMap<String, LastRecord> = BTreeMap::new();
    let mut tagged: BTreeMap<RawPosition, &Sent> = BTreeMap::new();
    let mut retracted: BTreeSet<RawPosition> = BTreeSet::new();
    for sent in expected.iter().flatten() {
        if sent.topic == *clusters_topic {
            let record = match &sent.value {
                Some(value) => last_record(&serde_json::from_slice(value).unwrap()),
                None => {
                    let canonical = header(sent, "samestory-canonical").map(str::to_owned);
                    LastRecord { canonical, hosts: Vec::new() }
                }
            };
            clusters.insert(text(sent.key.as_deref()), record);
        } else {
            let number = |name| header(sent, name).unwrap().parse::<i64>().unwrap();
            let position =
                (i32::try_from(number("samestory-partition")).unwrap(), number("samestory-offset"));
            match sent.value {
                Some(_) => drop(tagged.insert(position, sent)),
                None => drop(retracted.insert(position)),
            }
        }
    }
    let mut last: BTreeMap<String, (i64, Option<&Sent>)> = BTreeMap::new();
    for fed in scene.fed.lock().unwrap().iter() {
        let Some(key) = &fed.record.key else { continue };
        let article = tagged.get(&(fed.partition, fed.offset)).copied();
        // A dead letter does not change its article, and neither does the delete of an expired one, which is
        // no longer indexed.
        let deleted = fed.fate == Fate::Delete && retracted.contains(&(fed.partition, fed.offset));
        if article.is_none() && !deleted {
            continue;
        }
        let held = last.entry(text(Some(key))).or_insert((-1, None));
        if held.0 < fed.offset {
            *held = (fed.offset, article);
        }
    }
    // By story: its articles with their offsets, and the canonical that each names.
    let mut stories: BTreeMap<String, BTreeMap<(i64, String), String>> = BTreeMap::new();
    for (id, (offset, article)) in last {
        let Some(article) = article else { continue };
        let named = |name| header(article, name).unwrap().to_owned();
        let story = stories.entry(named("samestory-cluster")).or_default();
        story.insert((offset, id), named("samestory-canonical"));
    }
    let mut cards = Cards::new();
    for (story, articles) in stories {
        let record = clusters.remove(&story).unwrap_or_default();
        let ids: BTreeSet<&String> = articles.keys().map(|(_, id)| id).collect();
        let named = record.canonical.iter().chain(articles.values().rev());
        let first = articles.keys().next().map(|(_, id)| id);
        let canonical = named.into_iter().find(|id| ids.contains(id)).or(first).unwrap();
        cards.insert(story, (canonical.clone(), ids.len() as u64, record.hosts));
    }
    cards
}

fn last_record(cluster: &Value) -> LastRecord {
    let hosts = cluster["hosts"].as_array().unwrap().iter().map(|host| host.as_str().unwrap().to_owned());
    let mut hosts: Vec<String> = hosts.collect();
    hosts.sort();
    LastRecord { canonical: Some(cluster["canonical_id"].as_str().unwrap().to_owned()), hosts }
}

/// The table that the example consumer prints.
fn consumer(scene: &Scene) -> Cards {
    let names = &scene.config.bus.topics;
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(root.join("dev/interop"))
        .arg("run")
        .arg(root.join("examples/consumer.py"))
        .args(["--until-end", "--bootstrap", scene.broker.bootstrap(), "--unique", &names.unique])
        .args(["--near-duplicate", &names.near_duplicate, "--clusters", &names.clusters])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}
