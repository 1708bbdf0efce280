//! The consumer that people copy, against what is true: `examples/consumer.py` reads the topics when everything is over, and
//! its table of cards must be the one that follows from what was fed and what the replay says.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use samestory::kafka::tools::replay::Sent;
use serde_json::Value;

use super::articles::Fate;
use super::oracle::{Findings, Place};
use super::scene::Scene;

/// Story → the article that represents it, how many tell it, from where.
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

/// What the last record of a cluster says.
#[derive(Default)]
struct Told {
    canonical: Option<String>,
    hosts: Vec<String>,
}

/// What follows from what was fed: the last word about each article, and the clusters as they are in the end. Expiry
/// retracts no article: a story has the articles that name it, whatever is left of its cluster.
fn cards(scene: &Scene, expected: &[Vec<Sent>]) -> Cards {
    let clusters_topic = &scene.config.bus.topics.clusters;
    let mut clusters: BTreeMap<String, Told> = BTreeMap::new();
    let mut tagged: BTreeMap<Place, &Sent> = BTreeMap::new();
    let mut retracted: BTreeSet<Place> = BTreeSet::new();
    for sent in expected.iter().flatten() {
        if sent.topic == *clusters_topic {
            let told = match &sent.value {
                Some(value) => told(&serde_json::from_slice(value).unwrap()),
                None => {
                    let canonical = header(sent, "samestory-canonical").map(str::to_owned);
                    Told { canonical, hosts: Vec::new() }
                }
            };
            clusters.insert(text(sent.key.as_deref()), told);
        } else {
            let number = |name| header(sent, name).unwrap().parse::<i64>().unwrap();
            let place = (i32::try_from(number("samestory-partition")).unwrap(), number("samestory-offset"));
            match sent.value {
                Some(_) => drop(tagged.insert(place, sent)),
                None => drop(retracted.insert(place)),
            }
        }
    }
    let mut last: BTreeMap<String, (i64, Option<&Sent>)> = BTreeMap::new();
    for fed in scene.fed.lock().unwrap().iter() {
        let Some(key) = &fed.record.key else { continue };
        let article = tagged.get(&(fed.partition, fed.offset)).copied();
        // What became a dead letter says nothing about its article, and neither does the delete of one that is expired:
        // nobody knows it any more.
        let deleted = fed.fate == Fate::Delete && retracted.contains(&(fed.partition, fed.offset));
        if article.is_none() && !deleted {
            continue;
        }
        let held = last.entry(text(Some(key))).or_insert((-1, None));
        if held.0 < fed.offset {
            *held = (fed.offset, article);
        }
    }
    // By story, its articles with their offsets, and the canonical that each of them names.
    let mut stories: BTreeMap<String, BTreeMap<(i64, String), String>> = BTreeMap::new();
    for (id, (offset, article)) in last {
        let Some(article) = article else { continue };
        let named = |name| header(article, name).unwrap().to_owned();
        let story = stories.entry(named("samestory-cluster")).or_default();
        story.insert((offset, id), named("samestory-canonical"));
    }
    let mut cards = Cards::new();
    for (story, articles) in stories {
        let told = clusters.remove(&story).unwrap_or_default();
        let ids: BTreeSet<&String> = articles.keys().map(|(_, id)| id).collect();
        let named = told.canonical.iter().chain(articles.values().rev());
        let first = articles.keys().next().map(|(_, id)| id);
        let canonical = named.into_iter().find(|id| ids.contains(id)).or(first).unwrap();
        cards.insert(story, (canonical.clone(), ids.len() as u64, told.hosts));
    }
    cards
}

fn told(cluster: &Value) -> Told {
    let hosts = cluster["hosts"].as_array().unwrap().iter().map(|host| host.as_str().unwrap().to_owned());
    let mut hosts: Vec<String> = hosts.collect();
    hosts.sort();
    Told { canonical: Some(cluster["canonical_id"].as_str().unwrap().to_owned()), hosts }
}

/// What the consumer makes of the topics.
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
