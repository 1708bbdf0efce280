//! Kafka transactions as consumers of both isolation levels see them. The exactly-once guarantee relies on this
//! behaviour.

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::producer::Producer;
use rdkafka::{Offset, TopicPartitionList};

use super::broker::shared;
use super::bus::{Isolation, PATIENCE, Record, Row, send};

fn values(rows: &[Row]) -> Vec<&str> {
    rows.iter().map(|row| str::from_utf8(row.value.as_ref().unwrap()).unwrap()).collect()
}

#[test]
fn aborted_records_are_visible_to_read_uncommitted_consumers_only() {
    let broker = shared();
    let topic = broker.create_topic("transactions", 1, &[]);
    let writer = broker.transactional(&topic);
    for (value, commit) in [("kept", true), ("dropped", false), ("kept too", true), ("dropped too", false)] {
        writer.begin_transaction().unwrap();
        send(&writer, &topic, &[Record::new("a", value)]).remove(0).unwrap();
        let ended =
            if commit { writer.commit_transaction(PATIENCE) } else { writer.abort_transaction(PATIENCE) };
        ended.unwrap();
    }
    let committed = broker.read(&topic, Isolation::Committed);
    assert_eq!(values(&committed), ["kept", "kept too"]);
    // Each transaction ends with a marker, which occupies an offset.
    assert_eq!(committed.iter().map(|row| row.offset).collect::<Vec<_>>(), [0, 4]);
    let all = broker.read(&topic, Isolation::Uncommitted);
    assert_eq!(values(&all), ["kept", "dropped", "kept too", "dropped too"]);
    assert_eq!(broker.ends(&topic, Isolation::Uncommitted)[&0], 8);
}

#[test]
fn an_open_transaction_holds_back_read_committed_consumers() {
    let broker = shared();
    let topic = broker.create_topic("open", 1, &[]);
    let writer = broker.transactional(&topic);
    writer.begin_transaction().unwrap();
    send(&writer, &topic, &[Record::new("a", "pending")]).remove(0).unwrap();
    broker.produce(&topic, &[Record::new("b", "beside it")]);
    let settled = broker.ends(&topic, Isolation::Committed);
    assert_eq!((settled[&0], broker.ends(&topic, Isolation::Uncommitted)[&0]), (0, 2));
    assert_eq!(broker.read_to(&topic, Isolation::Committed, &settled), []);
    assert_eq!(values(&broker.read(&topic, Isolation::Uncommitted)), ["pending", "beside it"]);
    writer.commit_transaction(PATIENCE).unwrap();
    assert_eq!(values(&broker.read(&topic, Isolation::Committed)), ["pending", "beside it"]);
}

#[test]
fn offsets_sent_with_a_transaction_take_effect_when_it_commits() {
    let broker = shared();
    let topic = broker.create_topic("offsets", 2, &[]);
    let group = format!("{topic}.group");
    let consumer: BaseConsumer = broker.client().set("group.id", &group).create().unwrap();
    let metadata = consumer.group_metadata().unwrap();
    let writer = broker.transactional(&topic);
    for (offset, commit) in [(5, true), (9, false)] {
        let mut offsets = TopicPartitionList::new();
        offsets.add_partition_offset(&topic, 1, Offset::Offset(offset)).unwrap();
        writer.begin_transaction().unwrap();
        writer.send_offsets_to_transaction(&offsets, &metadata, PATIENCE).unwrap();
        let ended =
            if commit { writer.commit_transaction(PATIENCE) } else { writer.abort_transaction(PATIENCE) };
        ended.unwrap();
    }
    assert_eq!(broker.committed(&group, &topic), [(1, 5)].into());
}

#[test]
fn a_record_is_read_as_it_was_written() {
    let broker = shared();
    let topic =
        broker.create_topic("records", 3, &[("compression.type", "zstd"), ("cleanup.policy", "compact")]);
    let headers = vec![("h".to_owned(), Some(b"1".to_vec())), ("h".to_owned(), None)];
    let full = Record {
        partition: Some(2),
        timestamp: Some(1_600_000_000_000),
        headers: headers.clone(),
        ..Record::new("key", "value")
    };
    let deleted = Record { partition: Some(0), key: Some(b"key".to_vec()), ..Record::default() };
    assert_eq!(broker.produce(&topic, &[full.clone(), deleted, full.clone()]), [(2, 0), (0, 0), (2, 1)]);
    let rows = broker.read(&topic, Isolation::Committed);
    assert_eq!(
        rows.iter().map(|row| (row.partition, row.offset)).collect::<Vec<_>>(),
        [(0, 0), (2, 0), (2, 1)]
    );
    assert_eq!((rows[0].key.as_deref(), rows[0].value.as_deref()), (Some(&b"key"[..]), None));
    let expected =
        Row { partition: 2, offset: 0, timestamp: full.timestamp, key: full.key, value: full.value, headers };
    assert_eq!(rows[1], expected);
}
