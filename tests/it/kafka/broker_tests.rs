//! The test broker itself: it survives the fault tests, it ends with its process, and it admits only authorised users.

use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::RDKafkaErrorCode;

use super::broker::{Broker, breakable, dev_kafka, secure, try_dev_kafka};
use super::bus::{Deliveries, Isolation, PATIENCE, Record, Writer, send};

const SOON: Duration = Duration::from_secs(1);

#[test]
fn a_broker_keeps_its_records_through_a_crash_and_a_pause() {
    let broker = breakable();
    let topic = broker.create_topic("kept", 2, &[]);
    let large = "x".repeat(1_500_000);
    let config = |size: &str| broker.client().set("message.max.bytes", size).clone();
    let writer: Writer = config("2000000").create_with_context(Deliveries::default()).unwrap();
    send(&writer, &topic, &[Record::new("a", &large)]).remove(0).unwrap();
    let before = broker.read(&topic, Isolation::Committed);

    broker.kill();
    let consumer: BaseConsumer = broker.client().create().unwrap();
    assert!(consumer.fetch_metadata(None, SOON).is_err());
    broker.restart();
    assert_eq!(broker.read(&topic, Isolation::Committed), before);

    broker.pause();
    let consumer: BaseConsumer = broker.client().create().unwrap();
    assert!(consumer.fetch_metadata(None, SOON).is_err());
    let dir = broker.dir().to_str().unwrap();
    assert_eq!(try_dev_kafka(&["status", dir]), (false, "not answering".to_owned()));
    broker.resume();
    consumer.fetch_metadata(None, PATIENCE).unwrap();
    assert_eq!(dev_kafka(&["status", dir]), format!("running {}", broker.bootstrap()));
}

#[test]
fn a_broker_ends_with_the_process_that_it_was_started_for() {
    let mut process = Command::new("sleep").arg("300").stdout(Stdio::null()).spawn().unwrap();
    let broker = Broker::start_with_pid(process.id(), &[]);
    let pid = broker.file("pid");
    assert!(runs(&pid));
    // Killed but not waited for, so it remains as a zombie.
    process.kill().unwrap();
    let deadline = Instant::now() + PATIENCE;
    while runs(&pid) || broker.dir().exists() {
        assert!(Instant::now() < deadline, "the broker outlives its process");
        thread::sleep(Duration::from_millis(50));
    }
    process.wait().unwrap();
}

/// True if a process with this id exists and is not a zombie.
fn runs(pid: &str) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
}

#[test]
fn the_secure_listener_requires_a_password_and_a_right() {
    let broker = secure();
    let topic = broker.create_topic("secured", 1, &[]);
    let grant = ["--add", "--allow-principal", "User:stage", "--operation", "Write", "--topic", &topic];
    broker.tool("org.apache.kafka.tools.AclCommand", &grant);
    let mut config = ClientConfig::new();
    for line in broker.file("client.properties").lines() {
        let (key, value) = line.split_once('=').unwrap();
        config.set(key, value);
    }
    let write = |config: &ClientConfig| {
        let writer: Writer = config.create_with_context(Deliveries::default()).unwrap();
        let sent = send(&writer, &topic, &[Record::new("a", "secret")]).remove(0);
        sent.map_err(|error| error.rdkafka_error_code().unwrap())
    };
    assert_eq!(write(&config), Ok((0, 0)));
    let no_right = config.clone().set("sasl.username", "guest").set("sasl.password", "guest").clone();
    assert_eq!(write(&no_right), Err(RDKafkaErrorCode::TopicAuthorizationFailed));
    // A client without access retries until the record times out.
    config.set("message.timeout.ms", "2000");
    let no_password = config.clone().set("sasl.password", "guess").clone();
    assert_eq!(write(&no_password), Err(RDKafkaErrorCode::MessageTimedOut));
    let mut no_trust = config.clone();
    no_trust.remove("ssl.ca.location");
    assert_eq!(write(&no_trust), Err(RDKafkaErrorCode::MessageTimedOut));
    assert_eq!(broker.read(&topic, Isolation::Committed).len(), 1);
}
