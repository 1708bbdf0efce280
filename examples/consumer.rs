//! One card per story, from samestory's output topics: `examples/consumer.py` in Rust. All of the logic is in [`Cards`]; copy
//! that type. docs/consumers.md explains the rules.
//!
//!     cargo run --example consumer -- --bootstrap localhost:9092 [--registry http://localhost:8081/apis/ccompat/v7]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::error::Error;
use std::time::Duration;

use apache_avro::Schema;
use apache_avro::reader::datum::GenericDatumReader;
use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, Headers as _, Message};
use rdkafka::{Offset, TopicPartitionList};
use serde_json::{Value, json};

type Headers = HashMap<String, String>;

/// The current articles and clusters.
#[derive(Default)]
struct Cards {
    /// Article id -> source offset, and headers; no headers if it is deleted.
    articles: BTreeMap<String, (i64, Option<Headers>)>,
    /// Cluster id -> its hosts.
    hosts: BTreeMap<String, Vec<String>>,
    /// Cluster id -> the article that represents it, by the last record of the cluster.
    canonicals: BTreeMap<String, Option<String>>,
}

impl Cards {
    /// A record of the unique or the near-duplicate topic. The larger source offset is newer; a tombstone with the offset that
    /// we hold only says that the same version left the other topic.
    fn article(&mut self, id: String, is_tombstone: bool, headers: Headers) -> Result<(), Box<dyn Error>> {
        let offset: i64 = headers.get("samestory-offset").ok_or("no samestory-offset")?.parse()?;
        let held = self.articles.get(&id).map_or(-1, |(offset, _)| *offset);
        if offset > held || (offset == held && !is_tombstone) {
            self.articles.insert(id, (offset, (!is_tombstone).then_some(headers)));
        }
        Ok(())
    }

    /// A record of the clusters topic. The header of a tombstone names the member that is left, if there is one.
    fn cluster(&mut self, id: String, cluster: Option<&Value>, mut headers: Headers) {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let (hosts, canonical) = match cluster {
            Some(cluster) => {
                let hosts = cluster["hosts"].as_array().into_iter().flatten().filter_map(text);
                (BTreeSet::from_iter(hosts).into_iter().collect(), text(&cluster["canonical_id"]))
            }
            None => (Vec::new(), headers.remove("samestory-canonical")),
        };
        self.hosts.insert(id.clone(), hosts);
        self.canonicals.insert(id, canonical);
    }

    /// Story -> the article that represents it, how many tell it, and where.
    fn cards(&self) -> BTreeMap<&str, Value> {
        let mut stories: BTreeMap<&str, Vec<(i64, &str, &Headers)>> = BTreeMap::new();
        for (id, (offset, headers)) in &self.articles {
            if let Some(headers) = headers {
                stories.entry(&headers["samestory-cluster"]).or_default().push((*offset, id, headers));
            }
        }
        let card = |(story, mut members): (_, Vec<(i64, &str, &Headers)>)| {
            members.sort_by_key(|&(offset, id, _)| std::cmp::Reverse((offset, id)));
            let ids: Vec<&str> = members.iter().map(|&(_, id, _)| id).collect();
            let by_cluster = self.canonicals.get(story).and_then(Option::as_deref);
            let by_members = members.iter().map(|(_, _, headers)| headers["samestory-canonical"].as_str());
            let named = by_cluster.into_iter().chain(by_members).find(|named| ids.contains(named));
            let hosts = self.hosts.get(story).cloned().unwrap_or_default();
            (story, json!([named.or(ids.last().copied()), ids.len(), hosts]))
        };
        stories.into_iter().map(card).collect()
    }
}

/// Decodes values: a zero byte and a schema id introduce Avro, anything else is JSON.
#[derive(Default)]
struct Values {
    registry: String,
    schemas: HashMap<[u8; 4], Schema>,
}

impl Values {
    fn decode(&mut self, value: &[u8]) -> Result<Value, Box<dyn Error>> {
        let [0, a, b, c, d, datum @ ..] = value else { return Ok(serde_json::from_slice(value)?) };
        let id = [*a, *b, *c, *d];
        if !self.schemas.contains_key(&id) {
            if self.registry.is_empty() {
                return Err("the values are Avro: name the schema registry with --registry URL".into());
            }
            let url = format!("{}/schemas/ids/{}", self.registry, u32::from_be_bytes(id));
            let answer: Value = serde_json::from_str(&ureq::get(&url).call()?.body_mut().read_to_string()?)?;
            self.schemas.insert(id, Schema::parse_str(answer["schema"].as_str().ok_or("no schema")?)?);
        }
        let reader = GenericDatumReader::builder(&self.schemas[&id]).build()?;
        Ok(reader.read_value(&mut &datum[..])?.try_into()?)
    }
}

fn headers_of(message: &BorrowedMessage<'_>) -> Headers {
    let headers = message.headers().into_iter().flat_map(|headers| headers.iter());
    headers
        .map(|header| {
            let value = String::from_utf8_lossy(header.value.unwrap_or_default());
            (header.key.to_owned(), value.into_owned())
        })
        .collect()
}

fn main() -> Result<(), Box<dyn Error>> {
    let given: Vec<String> = std::env::args().collect();
    let option = |name: &str, default: &str| {
        let at = given.iter().position(|word| word == name);
        at.and_then(|at| given.get(at + 1)).map_or(default, String::as_str).to_owned()
    };
    let until_end = given.iter().any(|word| word == "--until-end");
    let clusters = option("--clusters", "samestory.clusters");
    let near_duplicate = option("--near-duplicate", "samestory.near-duplicate");
    let topics = BTreeSet::from([option("--unique", "samestory.unique"), near_duplicate, clusters.clone()]);

    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", option("--bootstrap", "localhost:9092"))
        .set("group.id", "cards-example") // never joined: partitions are assigned by hand below
        .set("isolation.level", "read_committed") // skips records of aborted transactions
        .set("enable.auto.commit", "false")
        .set("enable.partition.eof", "true")
        .create()?;
    let (mut list, mut unread) = (TopicPartitionList::new(), 0);
    for topic in &topics {
        let metadata = consumer.fetch_metadata(Some(topic), Duration::from_secs(10))?;
        for partition in metadata.topics().iter().flat_map(|topic| topic.partitions()) {
            list.add_partition_offset(topic, partition.id(), Offset::Beginning)?;
            unread += 1;
        }
    }
    consumer.assign(&list)?;

    let mut cards = Cards::default();
    let mut values = Values { registry: option("--registry", ""), ..Values::default() };
    while !(until_end && unread == 0) {
        let message = match consumer.poll(Duration::from_secs(1)) {
            None => continue,
            Some(Err(KafkaError::PartitionEOF(_))) => {
                unread -= i32::from(until_end);
                continue;
            }
            Some(message) => message?,
        };
        let id = String::from_utf8(message.key().unwrap_or_default().to_vec())?;
        let headers = headers_of(&message);
        if message.topic() == clusters {
            let cluster = message.payload().map(|value| values.decode(value)).transpose()?;
            if let (Some(cluster), false) = (&cluster, until_end) {
                println!(
                    "* {} ({}x; also from {})",
                    cluster["canonical_id"], cluster["size"], cluster["hosts"]
                );
            }
            cards.cluster(id, cluster.as_ref(), headers);
        } else {
            if !until_end && headers.get("samestory-verdict").is_some_and(|verdict| verdict == "unique") {
                println!("+ {id}");
            }
            cards.article(id, message.payload().is_none(), headers)?;
        }
    }
    println!("{}", serde_json::to_string_pretty(&cards.cards())?);
    Ok(())
}
