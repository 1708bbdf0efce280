//! Deletes routed records that match is done with, as Kafka Streams does with its repartition topics: the topic
//! itself keeps everything for ever, so nothing is lost that was not judged.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rdkafka::admin::{AdminClient, AdminOptions};
use rdkafka::client::DefaultClientContext;
use rdkafka::{Offset, TopicPartitionList};

use crate::config::Bus;

use super::clients::{self, Worker};

/// How often records are deleted.
const EVERY: Duration = Duration::from_secs(30);

/// Starts a thread that takes offsets up to which a partition is done with.
pub(super) fn start(bus: &Bus, worker: &Worker, stop: Arc<AtomicBool>) -> Sender<(i32, i64)> {
    let (send, receive) = channel();
    let config = clients::base(bus, &format!("{}-purge", worker.id(bus)));
    let topic = bus.topics.routed.clone();
    std::thread::spawn(move || {
        let Ok(admin) = config.create::<AdminClient<DefaultClientContext>>() else { return };
        let mut done: BTreeMap<i32, i64> = BTreeMap::new();
        let mut last = Instant::now();
        loop {
            match receive.recv_timeout(Duration::from_millis(200)) {
                Ok((partition, next)) => {
                    done.insert(partition, next);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if stop.load(Ordering::Relaxed) {
                return;
            }
            if last.elapsed() < EVERY || done.is_empty() {
                continue;
            }
            last = Instant::now();
            purge(&admin, &topic, &std::mem::take(&mut done));
        }
    });
    send
}

/// A purge that fails is made up for by the next.
fn purge(admin: &AdminClient<DefaultClientContext>, topic: &str, done: &BTreeMap<i32, i64>) {
    let mut list = TopicPartitionList::new();
    for (&partition, &next) in done {
        if let Err(error) = list.add_partition_offset(topic, partition, Offset::Offset(next)) {
            tracing::debug!(%error, "purge");
        }
    }
    let options = AdminOptions::new().operation_timeout(Some(Duration::from_secs(10)));
    match super::topics::block_on(admin.delete_records(&list, &options)) {
        Ok(_) => tracing::debug!(?done, "routed records deleted"),
        Err(error) => tracing::debug!(%error, "routed records could not be deleted; it is tried again"),
    }
}
