//! Topics are created with the settings that the guarantee depends on, checked setting by setting, and corrected by one
//! command.

use rdkafka::admin::{AdminClient, AdminOptions, AlterConfig, ResourceSpecifier};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::RDKafkaErrorCode;
use serde_json::json;

use super::broker::{Broker, shared};
use super::bus::{Deliveries, PATIENCE, Record, Writer, block_on, send};
use super::stage::Bench;

fn admin(broker: &Broker) -> AdminClient<DefaultClientContext> {
    broker.client().create().unwrap()
}

/// The value of a setting.
fn setting(broker: &Broker, topic: &str, key: &str) -> String {
    let options = AdminOptions::new();
    let answers =
        block_on(admin(broker).describe_configs(&[ResourceSpecifier::Topic(topic)], &options)).unwrap();
    let answer = answers.into_iter().next().unwrap().unwrap();
    answer.get(key).unwrap().value.clone().unwrap()
}

/// Sets exactly these settings on a topic.
fn alter(broker: &Broker, topic: &str, settings: &[(&str, &str)]) {
    let mut alter = AlterConfig::new(ResourceSpecifier::Topic(topic));
    for (key, value) in settings {
        alter = alter.set(key, value);
    }
    for answer in block_on(admin(broker).alter_configs([&alter], &AdminOptions::new())).unwrap() {
        answer.unwrap();
    }
}

// Topics were created with one replica, and retention.bytes, time limits, min.insync.replicas and unclean leader
// election were neither set nor checked: a broker with other defaults deleted routed articles before they were judged.
#[test]
fn every_required_topic_setting_is_set_checked_and_corrected() {
    let broker = shared();
    let bench = Bench::without_topics(broker, "settings", "", "");
    let (status, printed) = bench.samestory(&["topics", "--create", "--check"]);
    assert!(status.success(), "one broker is enough to start with: {printed}");
    let (routed, changelog, unique) =
        (bench.topic("routed"), bench.topic("changelog"), bench.topic("unique"));
    for part in [
        "warning: the new topics have 1 replica(s), and the cluster has 1 broker(s)".to_owned(),
        format!("warning: topic {changelog} has 1 replica; it should have 2"),
        "add brokers to the cluster: it has 1".to_owned(),
        format!("advice: topic {} has compression.type=producer", bench.topic("raw")),
        format!(
            "kafka-configs.sh --bootstrap-server {} --alter --entity-type topics --entity-name {} --add-config \
             compression.type=uncompressed",
            broker.bootstrap(),
            bench.topic("raw")
        ),
    ] {
        assert!(printed.contains(&part), "no {part:?} in {printed}");
    }
    let any_time = i64::MAX.to_string();
    let after = "message.timestamp.after.max.ms";
    for (topic, key, value) in [
        (&routed, "retention.bytes", "-1"),
        (&routed, "retention.ms", "-1"),
        (&routed, after, any_time.as_str()),
        (&routed, "message.timestamp.before.max.ms", &any_time),
        (&routed, "unclean.leader.election.enable", "false"),
        (&unique, after, &any_time),
        (&changelog, "cleanup.policy", "compact"),
        (&changelog, "message.timestamp.type", "LogAppendTime"),
        (&changelog, "min.insync.replicas", "1"),
    ] {
        assert_eq!(setting(broker, topic, key), value, "{topic} {key}");
    }

    // Change settings that the guarantee depends on. segment.bytes may be chosen freely.
    let wrong = [
        ("max.message.bytes", "4194304"),
        ("retention.bytes", "1000000"),
        ("retention.ms", "3600000"),
        (after, "3600000"),
        ("min.insync.replicas", "2"),
        ("segment.bytes", "2097152"),
    ];
    alter(broker, &routed, &wrong);
    alter(broker, &unique, &[("max.message.bytes", "4194304"), (after, "3600000")]);
    let (status, printed) = bench.samestory(&["topics", "--check"]);
    assert_eq!(status.code(), Some(1));
    for (key, found, expected) in [
        ("retention.bytes", "1000000", "-1"),
        ("retention.ms", "3600000", "-1"),
        (after, "3600000", &any_time),
        ("min.insync.replicas", "2", "1"),
    ] {
        let error = format!("error: topic {routed} has {key}={found}; it must be {expected}");
        let fix =
            format!("--entity-name {routed} --add-config {key}={expected}   # or: samestory topics --fix");
        assert!(printed.contains(&error) && printed.contains(&fix), "no {error:?} in {printed}");
    }
    assert!(
        printed.contains(&format!("warning: topic {unique} has {after}=3600000; it should be")),
        "{printed}"
    );
    let mut running = bench.run(&[]);
    assert_eq!(running.wait().code(), Some(1));
    let printed = running.log();
    assert!(
        printed.contains("retention.bytes=1000000") && printed.contains("samestory topics --fix"),
        "{printed}"
    );

    let (status, printed) = bench.samestory(&["topics", "--fix", "--check"]);
    assert!(
        status.success() && printed.contains(&format!("corrected: topic {routed} has retention.ms=3600000")),
        "{printed}"
    );
    assert_eq!(setting(broker, &routed, "retention.ms"), "-1");
    assert_eq!(setting(broker, &unique, after), any_time);
    assert_eq!(setting(broker, &routed, "segment.bytes"), "2097152", "other settings are kept");
    let (status, printed) = bench.samestory(&["topics", "--fix"]);
    assert!(status.success() && printed.contains("no setting needs to be corrected"), "{printed}");
}

// Raw times are preserved, and since Kafka 4.0 a topic refuses records more than an hour ahead by default: one crawler
// with a wrong clock made the whole transaction fail, again and again.
#[test]
fn an_article_with_any_time_fits_on_our_topics() {
    let bench = Bench::new(shared(), "any-time", "", "");
    let any_time = i64::MAX.to_string();
    let limits = [
        ("message.timestamp.after.max.ms", any_time.as_str()),
        ("message.timestamp.before.max.ms", &any_time),
    ];
    alter(bench.broker, &bench.topic("raw"), &limits);
    // The year 2100, and the second day of 1970.
    let times = [4_102_444_800_000, 86_400_000];
    let article = |(n, time): (usize, &i64)| {
        let text: Vec<String> = (0..80).map(|at| format!("w{n}x{at}")).collect();
        let value = json!({"id": format!("a{n}"), "language": "en", "body": text.join(" ")}).to_string();
        Record { partition: Some(0), timestamp: Some(*time), ..Record::new(&format!("a{n}"), &value) }
    };
    bench.produce(&times.iter().enumerate().map(article).collect::<Vec<_>>());
    let running = bench.run(&[]);
    let mut found: Vec<_> =
        bench.wait_for(&["unique"], 2, &running).iter().map(|row| (row.id(), row.timestamp)).collect();
    found.sort();
    assert_eq!(found, [("a0".to_owned(), Some(times[0])), ("a1".to_owned(), Some(times[1]))]);
    assert!(running.stop().success());
}

/// The documented settings for the raw topic work: with them the broker refuses a compression bomb.
#[test]
fn a_raw_topic_set_up_as_advised_refuses_a_compression_bomb() {
    let produce = |compression: &str| {
        let settings = [("compression.type", compression), ("max.message.bytes", "1000000")];
        let topic = shared().create_topic("bomb", 1, &settings);
        let mut client = shared().client();
        client.set("compression.type", "zstd").set("message.max.bytes", "20000000");
        let writer: Writer = client.create_with_context(Deliveries::default()).unwrap();
        let bomb = Record { value: Some(vec![b' '; 8_000_000]), ..Record::default() };
        let delivered = send(&writer, &topic, &[bomb]).remove(0);
        delivered.map_err(|error| error.rdkafka_error_code())
    };
    assert_eq!(produce("producer"), Ok((0, 0)));
    assert_eq!(produce("uncompressed"), Err(Some(RDKafkaErrorCode::MessageSizeTooLarge)));
}

#[test]
fn on_three_brokers_topics_get_three_replicas_and_two_in_sync() {
    let cluster = Broker::start(&["--nodes", "3"]);
    let bench = Bench::without_topics(&cluster, "three", "", "");
    let (status, printed) = bench.samestory(&["topics", "--create", "--check"]);
    assert!(status.success() && !printed.contains("warning"), "{printed}");
    let consumer: BaseConsumer = cluster.client().create().unwrap();
    for name in ["raw", "routed", "changelog", "unique", "near", "clusters", "dead"] {
        let topic = bench.topic(name);
        let metadata = consumer.fetch_metadata(Some(&topic), PATIENCE).unwrap();
        let replicas = metadata.topics()[0].partitions().iter().map(|partition| partition.replicas().len());
        assert!(replicas.eq(vec![3; metadata.topics()[0].partitions().len()]), "{topic}");
        assert_eq!(setting(&cluster, &topic, "min.insync.replicas"), "2", "{topic}");
    }
    // For an existing topic, fewer replicas and a lower minimum cause a warning, each with the command that corrects it.
    let other = Bench::without_topics(&cluster, "fewer", "", "[topics]\nreplication = 2\n");
    assert!(other.samestory(&["topics", "--create"]).0.success());
    let settings = std::fs::read_to_string(other.config()).unwrap().replace("replication = 2\n", "");
    std::fs::write(other.config(), settings).unwrap();
    let (status, printed) = other.samestory(&["topics", "--check"]);
    let changelog = other.topic("changelog");
    assert!(
        status.success()
            && printed.contains(&format!("warning: topic {changelog} has 2 replicas; it should have 3")),
        "{printed}"
    );
    assert!(printed.contains("kafka-reassign-partitions.sh --bootstrap-server"), "{printed}");
}
