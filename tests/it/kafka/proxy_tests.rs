//! The effects of the proxy on a real client of a real broker. Each test has its own listener and proxy.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::producer::Producer;

use super::broker::Broker;
use super::bus::{Isolation, PATIENCE, Record, Writer, client, send, transactional};
use super::proxy::{Mode, Proxy, Way};

const SOON: Duration = Duration::from_millis(1500);

/// One broker with a proxied listener per test.
struct Rig {
    broker: Broker,
    proxies: Vec<Proxy>,
}

fn rig(test: usize) -> (&'static Broker, &'static Proxy) {
    static RIG: OnceLock<Rig> = OnceLock::new();
    let rig = RIG.get_or_init(|| {
        let proxies: Vec<Proxy> = (0..5).map(|_| Proxy::new()).collect();
        let name = |at: usize| format!("P{at}");
        let listeners: Vec<String> =
            proxies.iter().enumerate().map(|(at, proxy)| format!("{}={}", name(at), proxy.port())).collect();
        let options: Vec<&str> = listeners.iter().flat_map(|listener| ["--listener", listener]).collect();
        let broker = Broker::start(&options);
        for (at, proxy) in proxies.iter().enumerate() {
            proxy.connect(&broker.listener(&name(at)));
        }
        Rig { broker, proxies }
    });
    (&rig.broker, &rig.proxies[test])
}

fn open(writer: &Writer, topic: &str, value: &str) {
    writer.begin_transaction().unwrap();
    send(writer, topic, &[Record::new("a", value)]).remove(0).unwrap();
}

fn timed_out(result: KafkaResult<()>) -> bool {
    matches!(result, Err(KafkaError::Transaction(error)) if error.code() == RDKafkaErrorCode::OperationTimedOut)
}

fn metadata_through(proxy: &Proxy, patience: Duration) -> KafkaResult<Duration> {
    let begun = Instant::now();
    let consumer: BaseConsumer = client(&proxy.bootstrap()).create()?;
    consumer.fetch_metadata(None, patience)?;
    Ok(begun.elapsed())
}

#[test]
fn a_commit_whose_response_is_lost_is_committed_but_the_client_cannot_know() {
    let (broker, proxy) = rig(0);
    let topic = broker.create_topic("ambiguous", 1, &[]);
    let writer = transactional(&client(&proxy.bootstrap()), &topic);
    open(&writer, &topic, "answered");
    writer.commit_transaction(PATIENCE).unwrap();
    assert_eq!(proxy.lost(), 0);

    proxy.set(Mode::LoseAnswerToEndTxn);
    open(&writer, &topic, "unanswered");
    assert!(timed_out(writer.commit_transaction(SOON)));
    assert!(proxy.lost() > 0);
    assert_eq!(broker.read(&topic, Isolation::Committed).len(), 2);

    // The client retries on a new connection and learns the outcome.
    proxy.set(Mode::Pass);
    writer.commit_transaction(PATIENCE).unwrap();
    assert_eq!(broker.read(&topic, Isolation::Committed).len(), 2);
}

#[test]
fn a_stalled_request_reaches_the_broker_once_the_network_heals() {
    let (broker, proxy) = rig(1);
    let topic = broker.create_topic("stalled", 1, &[]);
    let writer = transactional(&client(&proxy.bootstrap()), &topic);
    for (count, stalled) in [Some(Way::Requests), None].into_iter().enumerate() {
        open(&writer, &topic, "late");
        proxy.set(Mode::Stall(stalled));
        assert!(timed_out(writer.commit_transaction(SOON)));
        // The transaction is still open: the broker has not received its end.
        let [settled, written] = [Isolation::Committed, Isolation::Uncommitted]
            .map(|isolation| broker.ends(&topic, isolation)[&0]);
        assert_eq!(written - settled, 1);
        proxy.set(Mode::Pass);
        writer.commit_transaction(PATIENCE).unwrap();
        assert_eq!(broker.read(&topic, Isolation::Committed).len(), count + 1);
    }
}

#[test]
fn a_stalled_response_leaves_the_broker_ahead_of_the_client() {
    let (broker, proxy) = rig(2);
    let topic = broker.create_topic("stalled-answers", 1, &[]);
    let writer = transactional(&client(&proxy.bootstrap()), &topic);
    open(&writer, &topic, "done");
    proxy.set(Mode::Stall(Some(Way::Answers)));
    assert!(timed_out(writer.commit_transaction(SOON)));
    assert_eq!(broker.read(&topic, Isolation::Committed).len(), 1);
    proxy.set(Mode::Pass);
    writer.commit_transaction(PATIENCE).unwrap();
}

#[test]
fn a_delay_applies_to_every_response() {
    let (_, proxy) = rig(3);
    metadata_through(proxy, PATIENCE).unwrap();
    proxy.set(Mode::Delay(Duration::from_millis(200)));
    // Two round trips: API versions and metadata.
    assert!(metadata_through(proxy, PATIENCE).unwrap() >= Duration::from_millis(800));
}

#[test]
fn a_client_survives_the_loss_of_its_connections() {
    let (broker, proxy) = rig(4);
    let topic = broker.create_topic("reset", 1, &[]);
    let writer = transactional(&client(&proxy.bootstrap()), &topic);
    open(&writer, &topic, "before");
    let before = proxy.made();
    assert!(before > 0);
    proxy.reset();
    writer.commit_transaction(PATIENCE).unwrap();
    assert!(proxy.made() > before);

    proxy.set(Mode::Cut);
    let before = proxy.made();
    assert!(metadata_through(proxy, SOON).is_err());
    assert_eq!(proxy.made(), before);
    proxy.set(Mode::Pass);
    open(&writer, &topic, "after");
    writer.commit_transaction(PATIENCE).unwrap();
    assert_eq!(broker.read(&topic, Isolation::Committed).len(), 2);
}
