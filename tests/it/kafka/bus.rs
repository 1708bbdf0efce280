//! Plain Kafka clients for tests: create topics, write records, read whole topics, look up offsets. It uses nothing of
//! the crate under test, so it is an independent witness.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use rdkafka::admin::{
    AdminClient, AdminOptions, AlterConfig, ConfigSource, NewPartitions, NewTopic, ResourceSpecifier,
    TopicReplication,
};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Header, Headers, Message, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};
use rdkafka::{ClientConfig, ClientContext, Offset, TopicPartitionList};

use super::broker::Broker;

/// Most time that anything may take on a healthy broker and a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The isolation level of a consumer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Isolation {
    Committed,
    Uncommitted,
}

/// A record to write. For fields that are `None` the client decides: partition by key, timestamp now.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Record {
    pub(crate) partition: Option<i32>,
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) headers: Vec<(String, Option<Vec<u8>>)>,
    pub(crate) timestamp: Option<i64>,
}

impl Record {
    pub(crate) fn new(key: &str, value: &str) -> Record {
        Record { key: Some(key.into()), value: Some(value.into()), ..Record::default() }
    }
}

/// A record as it was read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) partition: i32,
    pub(crate) offset: i64,
    pub(crate) timestamp: Option<i64>,
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) headers: Vec<(String, Option<Vec<u8>>)>,
}

/// Offsets by partition.
pub(crate) type Offsets = BTreeMap<i32, i64>;

/// The partition and offset of a delivered record.
pub(crate) type Delivery = Result<(i32, i64), KafkaError>;

/// Collects delivery results by the number of the record in sending order.
#[derive(Default)]
pub(crate) struct Deliveries(Mutex<BTreeMap<usize, Delivery>>);

impl ClientContext for Deliveries {}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = Box<usize>;

    fn delivery(&self, result: &DeliveryResult<'_>, place: Box<usize>) {
        let result = match result {
            Ok(message) => Ok((message.partition(), message.offset())),
            Err((error, _)) => Err(error.clone()),
        };
        self.0.lock().unwrap().insert(*place, result);
    }
}

/// A producer that collects its delivery results.
pub(crate) type Writer = BaseProducer<Deliveries>;

/// Sends records and waits for their delivery results, which are in the order of the records.
///
/// # Panics
///
/// If results are missing after [`PATIENCE`].
pub(crate) fn send(writer: &Writer, topic: &str, records: &[Record]) -> Vec<Delivery> {
    let first = writer.context().0.lock().unwrap().last_key_value().map_or(0, |(place, _)| place + 1);
    // Longer than PATIENCE: the broker may be frozen, killed and restarted meanwhile.
    let deadline = Instant::now() + PATIENCE * 4;
    for (place, record) in records.iter().enumerate() {
        let mut headers = OwnedHeaders::new_with_capacity(record.headers.len());
        for (key, value) in &record.headers {
            headers = headers.insert(Header { key, value: value.as_deref() });
        }
        let mut next = BaseRecord::with_opaque_to(topic, Box::new(first + place)).headers(headers);
        next.key = record.key.as_deref();
        next.payload = record.value.as_deref();
        next.partition = record.partition;
        next.timestamp = record.timestamp;
        while let Err((error, again)) = writer.send::<[u8], [u8]>(next) {
            // A new partition is unknown until the next metadata refresh.
            let waits = [RDKafkaErrorCode::QueueFull, RDKafkaErrorCode::UnknownPartition];
            assert!(error.rdkafka_error_code().is_some_and(|code| waits.contains(&code)), "{error}");
            assert!(Instant::now() < deadline, "not taken: {error}");
            writer.poll(Duration::from_millis(1));
            next = again;
        }
    }
    while writer.in_flight_count() > 0 {
        assert!(Instant::now() < deadline, "{} records without an answer", writer.in_flight_count());
        writer.poll(Duration::ZERO);
        std::thread::sleep(Duration::from_micros(300));
    }
    writer.context().0.lock().unwrap().split_off(&first).into_values().collect()
}

impl Broker {
    /// Client settings for the plain listener.
    pub(crate) fn client(&self) -> ClientConfig {
        client(self.bootstrap())
    }

    /// Creates a topic with a unique name that begins with `prefix`; returns when it is usable.
    pub(crate) fn create_topic(&self, prefix: &str, partitions: i32, settings: &[(&str, &str)]) -> String {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let name = format!("{prefix}-{}", MADE.fetch_add(1, Ordering::Relaxed));
        self.create_named(&name, partitions, settings);
        name
    }

    /// Creates a topic of this name.
    pub(crate) fn create_named(&self, name: &str, partitions: i32, settings: &[(&str, &str)]) {
        let replicas = TopicReplication::Fixed(i32::try_from(self.nodes().min(3)).unwrap());
        let mut topic = NewTopic::new(name, partitions, replicas);
        for (key, value) in settings {
            topic = topic.set(key, value);
        }
        let admin: AdminClient<DefaultClientContext> = self.client().create().unwrap();
        let options = AdminOptions::new().operation_timeout(Some(PATIENCE));
        let made = block_on(admin.create_topics([&topic], &options)).unwrap();
        assert_eq!(made, [Ok(name.to_owned())]);
        let deadline = Instant::now() + PATIENCE;
        while self.partitions(name) != partitions {
            assert!(Instant::now() < deadline, "topic {name} does not appear");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Deletes a topic, and returns when it is gone.
    pub(crate) fn delete_topic(&self, topic: &str) {
        let admin: AdminClient<DefaultClientContext> = self.client().create().unwrap();
        let options = AdminOptions::new().operation_timeout(Some(PATIENCE));
        let deleted = block_on(admin.delete_topics(&[topic], &options)).unwrap();
        assert_eq!(deleted, [Ok(topic.to_owned())]);
        let client: BaseConsumer = self.client().create().unwrap();
        let deadline = Instant::now() + PATIENCE;
        while client
            .fetch_metadata(None, PATIENCE)
            .unwrap()
            .topics()
            .iter()
            .any(|found| found.name() == topic)
        {
            assert!(Instant::now() < deadline, "topic {topic} does not go away");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Changes one setting of a topic and keeps the others.
    pub(crate) fn set_topic(&self, topic: &str, key: &str, value: &str) {
        let admin: AdminClient<DefaultClientContext> = self.client().create().unwrap();
        let resource = ResourceSpecifier::Topic(topic);
        let found = block_on(admin.describe_configs([&resource], &AdminOptions::new())).unwrap();
        let found = found.into_iter().next().unwrap().unwrap();
        // AlterConfigs replaces all settings.
        let mut alter = AlterConfig::new(resource);
        let own = found.entries.iter().filter(|entry| entry.source == ConfigSource::DynamicTopic);
        for entry in own.filter(|entry| entry.name != key) {
            alter = alter.set(&entry.name, entry.value.as_deref().unwrap());
        }
        let alter = alter.set(key, value);
        let altered = block_on(admin.alter_configs([&alter], &AdminOptions::new())).unwrap();
        assert!(altered.iter().all(Result::is_ok), "{altered:?}");
    }

    /// The node that leads a partition, counted from 1; `None` if it has no leader.
    pub(crate) fn leader(&self, topic: &str, partition: i32) -> Option<usize> {
        let client: BaseConsumer = self.client().create().unwrap();
        let metadata = client.fetch_metadata(Some(topic), PATIENCE).unwrap();
        let found = metadata.topics()[0].partitions().iter().find(|found| found.id() == partition)?;
        usize::try_from(found.leader()).ok().filter(|node| *node > 0)
    }

    /// The node that coordinates a group: the leader of its partition of the offsets topic.
    pub(crate) fn group_coordinator(&self, group: &str) -> Option<usize> {
        self.leader("__consumer_offsets", coordinated_by(group))
    }

    /// The node that coordinates the transactions of an id.
    pub(crate) fn transaction_coordinator(&self, id: &str) -> Option<usize> {
        self.leader("__transaction_state", coordinated_by(id))
    }

    /// Adds partitions to a topic.
    pub(crate) fn add_partitions(&self, topic: &str, partitions: usize) {
        let admin: AdminClient<DefaultClientContext> = self.client().create().unwrap();
        let more = NewPartitions::new(topic, partitions);
        let made = block_on(admin.create_partitions([&more], &AdminOptions::new())).unwrap();
        assert!(made.iter().all(Result::is_ok), "{made:?}");
    }

    /// Number of partitions of the topic that have a leader.
    fn partitions(&self, topic: &str) -> i32 {
        let client: BaseConsumer = self.client().create().unwrap();
        let metadata = client.fetch_metadata(Some(topic), PATIENCE).unwrap();
        let led = metadata.topics()[0].partitions().iter().filter(|partition| partition.leader() >= 0);
        i32::try_from(led.count()).unwrap()
    }

    /// Writes records without a transaction. Returns the partition and offset of each.
    pub(crate) fn produce(&self, topic: &str, records: &[Record]) -> Vec<(i32, i64)> {
        let writer: Writer = self
            .client()
            .set("enable.idempotence", "true")
            .set("linger.ms", "1")
            .set("message.max.bytes", "4000000")
            .create_with_context(Deliveries::default())
            .unwrap();
        send(&writer, topic, records).into_iter().map(Result::unwrap).collect()
    }

    /// An initialised transactional producer; earlier ones with this id are fenced.
    pub(crate) fn transactional(&self, id: &str) -> Writer {
        transactional(&self.client(), id)
    }

    /// The end offsets of a topic's partitions: the last stable offsets or the high watermarks.
    pub(crate) fn ends(&self, topic: &str, isolation: Isolation) -> Offsets {
        let client = self.reader(isolation);
        // A new topic takes a moment to be known everywhere.
        let deadline = Instant::now() + PATIENCE;
        let end = |partition| loop {
            match client.fetch_watermarks(topic, partition, PATIENCE) {
                Ok((_, end)) => return (partition, end),
                Err(error) => assert!(Instant::now() < deadline, "{topic}: {error}"),
            }
            thread::sleep(Duration::from_millis(50));
        };
        (0..self.partitions(topic)).map(end).collect()
    }

    /// The sum of a topic's end offsets, asked by one client that the caller keeps. No fewer than its records: aborted records
    /// and markers have offsets too. `None` without an answer.
    pub(crate) fn sum_of_ends(client: &BaseConsumer, topic: &str) -> Option<i64> {
        let metadata = client.fetch_metadata(Some(topic), PATIENCE).ok()?;
        let partitions = metadata.topics().first()?.partitions().iter();
        let end = |id| Some(client.fetch_watermarks(topic, id, PATIENCE).ok()?.1);
        partitions.map(|partition| end(partition.id())).sum()
    }

    /// All records of a topic, by partition and offset, up to the current high watermarks.
    ///
    /// # Panics
    ///
    /// If the end is not reached within [`PATIENCE`]: a transaction is still open. If that is intended, use
    /// [`Broker::read_to`] with the ends of [`Isolation::Committed`].
    pub(crate) fn read(&self, topic: &str, isolation: Isolation) -> Vec<Row> {
        self.read_to(topic, isolation, &self.ends(topic, Isolation::Uncommitted))
    }

    /// All records of a topic up to these end offsets.
    pub(crate) fn read_to(&self, topic: &str, isolation: Isolation, ends: &Offsets) -> Vec<Row> {
        let reader = self.reader(isolation);
        let mut list = TopicPartitionList::new();
        for partition in ends.keys() {
            list.add_partition_offset(topic, *partition, Offset::Beginning).unwrap();
        }
        reader.assign(&list).unwrap();
        let deadline = Instant::now() + PATIENCE;
        let mut rows = Vec::new();
        // Markers and aborted records occupy offsets too, so only the consumer's position tells whether the end is
        // reached. The end-of-partition event moves it past them; an empty partition has no position.
        let passed = |(partition, end): (&i32, &i64)| {
            let position = reader.position().unwrap();
            let at = position.find_partition(topic, *partition).map(|place| place.offset());
            *end == 0 || matches!(at, Some(Offset::Offset(at)) if at >= *end)
        };
        let mut quiet = true;
        while !(quiet && ends.iter().all(passed)) {
            assert!(
                Instant::now() < deadline,
                "{topic} {isolation:?}: not at {ends:?}: an open transaction?"
            );
            let next = reader.poll(Duration::from_millis(50));
            quiet = !matches!(next, Some(Ok(_)));
            match next {
                Some(Ok(message)) if message.offset() < ends[&message.partition()] => {
                    rows.push(row(&message))
                }
                None | Some(Ok(_) | Err(KafkaError::PartitionEOF(_))) => {}
                Some(Err(error)) => panic!("{topic}: {error}"),
            }
        }
        rows.sort_by_key(|row| (row.partition, row.offset));
        rows
    }

    /// The committed offsets of a group in a topic; partitions without one are left out.
    pub(crate) fn committed(&self, group: &str, topic: &str) -> Offsets {
        let client: BaseConsumer = self.client().set("group.id", group).create().unwrap();
        let mut list = TopicPartitionList::new();
        list.add_partition_range(topic, 0, self.partitions(topic) - 1);
        // The first who asks for a group meets a coordinator that does not know it yet, and coordinators move.
        let deadline = Instant::now() + PATIENCE;
        let committed = loop {
            match client.committed_offsets(list.clone(), PATIENCE) {
                Ok(committed) => break committed,
                Err(error) => assert!(Instant::now() < deadline, "{group}: {error}"),
            }
            thread::sleep(Duration::from_millis(100));
        };
        let places = committed.elements();
        let known = places.iter().filter_map(|place| Some((place.partition(), place.offset().to_raw()?)));
        known.filter(|(_, offset)| *offset >= 0).collect()
    }

    /// Deletes a group and its committed offsets, once it has no members.
    pub(crate) fn delete_group(&self, group: &str) {
        let admin: AdminClient<DefaultClientContext> = self.client().create().unwrap();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let deleted = block_on(admin.delete_groups(&[group], &AdminOptions::new())).unwrap();
            match &deleted[..] {
                [Ok(_)] => return,
                other => assert!(Instant::now() < deadline, "{group}: {other:?}"),
            }
            thread::sleep(Duration::from_millis(200));
        }
    }

    /// The leader epoch of a group's committed offset; -1 if there is none.
    #[allow(unsafe_code)]
    pub(crate) fn committed_epoch(&self, group: &str, topic: &str, partition: i32) -> i32 {
        let client: BaseConsumer = self.client().set("group.id", group).create().unwrap();
        let mut list = TopicPartitionList::new();
        list.add_partition(topic, partition);
        let committed = client.committed_offsets(list, PATIENCE).unwrap();
        assert_eq!(committed.count(), 1);
        // SAFETY: the list has one element and lives through the call.
        unsafe { rdkafka::bindings::rd_kafka_topic_partition_get_leader_epoch((*committed.ptr()).elems) }
    }

    /// Number of members of a group; `None` until the group is stable.
    pub(crate) fn members(&self, group: &str) -> Option<usize> {
        let list = self.reader(Isolation::Committed).fetch_group_list(Some(group), PATIENCE).unwrap();
        let found = list.groups().iter().find(|found| found.name() == group)?;
        (found.state() == "Stable").then(|| found.members().len())
    }

    /// A consumer that belongs to no group.
    pub(crate) fn reader(&self, isolation: Isolation) -> BaseConsumer {
        let level = match isolation {
            Isolation::Committed => "read_committed",
            Isolation::Uncommitted => "read_uncommitted",
        };
        self.client()
            .set("isolation.level", level)
            // librdkafka requires a group id; nobody joins the group.
            .set("group.id", "bystander")
            .set("enable.auto.commit", "false")
            .set("enable.partition.eof", "true")
            .set("auto.offset.reset", "error")
            .set("check.crcs", "true")
            // The end of a partition shows in an empty fetch response, which the broker delays by this long.
            .set("fetch.wait.max.ms", "10")
            .create()
            .unwrap()
    }
}

/// The partition of an internal topic that a name belongs to: Java's string hash, modulo the four partitions of
/// `dev/kafka`.
fn coordinated_by(name: &str) -> i32 {
    let hash = name.bytes().fold(0_i32, |hash, byte| hash.wrapping_mul(31).wrapping_add(i32::from(byte)));
    i32::try_from(hash.unsigned_abs() % 4).unwrap()
}

/// Client settings for the listener at `bootstrap`.
pub(crate) fn client(bootstrap: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", bootstrap).set("broker.address.family", "v4");
    config
}

/// An initialised transactional producer with these settings.
pub(crate) fn transactional(config: &ClientConfig, id: &str) -> Writer {
    let writer: Writer = config
        .clone()
        .set("transactional.id", id)
        .set("retry.backoff.ms", "1")
        .set("retry.backoff.max.ms", "50")
        .set("linger.ms", "1")
        .create_with_context(Deliveries::default())
        .unwrap();
    writer.init_transactions(PATIENCE).unwrap();
    writer
}

pub(crate) fn row(message: &impl Message<Headers: Headers>) -> Row {
    let headers = message.headers().into_iter().flat_map(Headers::iter);
    Row {
        partition: message.partition(),
        offset: message.offset(),
        timestamp: message.timestamp().to_millis(),
        key: message.key().map(<[u8]>::to_vec),
        value: message.payload().map(<[u8]>::to_vec),
        headers: headers.map(|header| (header.key.to_owned(), header.value.map(<[u8]>::to_vec))).collect(),
    }
}

/// Waits for a future on this thread: rdkafka's admin calls are futures, and these tests have no runtime.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        thread::park();
    }
}
