//! Reads published verdicts and delivers them to the configured HTTP server, for `samestory webhook run`.
//!
//! It is a consumer group of its own at `read_committed`, so it sees what other readers see and the stage never waits for it.
//! Offsets are committed after the events before them are delivered or kept as dead letters: at least once.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant};

use rdkafka::Message;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::BorrowedMessage;
use rdkafka::{Offset, TopicPartitionList};
use serde_json::json;

use crate::config::{Bus, Config, DeadLetterTarget, Webhook};
use crate::kafka::client as clients;
use crate::kafka::client::Quiet;
use crate::kafka::clock;
use crate::kafka::turn::source::owned;
use crate::metrics;
use crate::stop::Stop;
use crate::webhook::body::WebhookPayload;
use crate::webhook::deliver::{Channel, Delivery, RetryPolicy, deliver};
use crate::webhook::event::{Published, VerdictEvent};
use crate::webhook::http::{Server, WebhookAnswer};

use super::produce::Sender;

/// Why the delivery ended.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// There is nothing to deliver to.
    #[error("webhook.url is not set: there is no server to deliver to")]
    NoUrl,
    /// The settings cannot be used.
    #[error("{0}")]
    Settings(String),
    /// Kafka.
    #[error("Kafka: {0}")]
    Client(#[from] KafkaError),
    /// A refused event cannot be kept, and must not be lost.
    #[error(
        "cannot write the dead letter of a refused event: {0}; nothing is lost, its offset is not committed"
    )]
    DeadLetter(String),
    /// The server does not accept a sample event.
    #[error("the server does not accept a sample event: {0}")]
    Test(String),
}

/// How long one poll may take; a stop is noticed after it.
const POLL: Duration = Duration::from_millis(200);

/// Offsets of records that are no events are committed no more often than this.
const IDLE_COMMIT: Duration = Duration::from_secs(5);

/// Sends one sample event and describes the answer.
///
/// # Errors
/// There is no server, or it does not answer with 2xx.
pub fn test(config: &Config) -> Result<String, WebhookError> {
    let hook = config.webhook.as_ref().ok_or(WebhookError::NoUrl)?;
    let server = Server::new(hook).map_err(WebhookError::Settings)?;
    let event = VerdictEvent {
        id: "sample/0/0".into(),
        kind: "verdict",
        article_id: "samestory-test".into(),
        verdict: Some("near-duplicate".into()),
        match_type: Some("near".into()),
        duplicate_of: Some("samestory-test-original".into()),
        cluster_id: Some("en:0:0".into()),
        canonical_id: Some("samestory-test-original".into()),
        similarity: Some(0.83),
        confidence: Some(0.97),
        language: Some("en".into()),
        revision: Some(0),
        flags: Vec::new(),
        title: Some("A test of the webhook of samestory".into()),
        url: None,
    };
    let payload = crate::webhook::body::payload(hook.format, &[event]);
    match server.send(&payload, seconds()) {
        WebhookAnswer::Status { status, text, .. } => {
            let answer =
                if text.is_empty() { format!("HTTP {status}") } else { format!("HTTP {status}: {text}") };
            if (200..300).contains(&status) { Ok(answer) } else { Err(WebhookError::Test(answer)) }
        }
        WebhookAnswer::None { why } => Err(WebhookError::Test(why)),
    }
}

/// Delivers events until the process is to stop.
///
/// # Errors
/// The settings cannot be used, a dead letter cannot be kept, or Kafka has failed for good.
pub fn run(config: &Config, stop: &Stop) -> Result<(), WebhookError> {
    let hook = config.webhook.as_ref().ok_or(WebhookError::NoUrl)?;
    let server = Server::new(hook).map_err(WebhookError::Settings)?;
    let bus = &config.bus;
    let mut topics = vec![bus.topics.unique.as_str(), bus.topics.near_duplicate.as_str()];
    topics.dedup();
    let consumer: BaseConsumer<Quiet> =
        clients::webhook(bus, hook.start.as_str()).create_with_context(Quiet)?;
    consumer.subscribe(&topics)?;
    let mut courier = Courier { bus, hook, server, consumer, stop, longest: config.max_record() };
    metrics::webhook_events(0, 0);
    let policy = RetryPolicy::from(hook);
    let mut committed = Instant::now();
    let mut next: BTreeMap<(String, i32), i64> = BTreeMap::new();
    while !stop.is_requested() {
        let events = courier.collect(&mut next)?;
        if !events.is_empty() {
            match deliver(hook.format, policy, &events, &mut courier).map_err(WebhookError::DeadLetter)? {
                Delivery::Stopped => break,
                Delivery::Done { delivered, refused } => metrics::webhook_events(delivered, refused),
            }
        }
        if !next.is_empty() && (!events.is_empty() || committed.elapsed() > IDLE_COMMIT) {
            courier.commit(&next);
            next.clear();
            committed = Instant::now();
        }
    }
    if courier.stop.is_requested() {
        tracing::info!("stopping; events that are not delivered are sent by the next process");
    }
    Ok(())
}

fn seconds() -> i64 {
    clock::now().millis() / 1000
}

struct Courier<'a> {
    bus: &'a Bus,
    hook: &'a Webhook,
    server: Server,
    consumer: BaseConsumer<Quiet>,
    stop: &'a Stop,
    longest: usize,
}

impl Courier<'_> {
    /// The next events, and in `next` the offsets after the records that were read for them.
    fn collect(
        &mut self,
        next: &mut BTreeMap<(String, i32), i64>,
    ) -> Result<Vec<VerdictEvent>, WebhookError> {
        let mut events = Vec::new();
        let mut deadline: Option<Instant> = None;
        let start = Instant::now();
        loop {
            let over = deadline.map_or(start.elapsed() > POLL, |deadline| Instant::now() >= deadline);
            if events.len() >= self.hook.batch || over || self.stop.is_requested() {
                return Ok(events);
            }
            let message = match self.consumer.poll(POLL) {
                None => continue,
                Some(Ok(message)) => message,
                Some(Err(error)) => {
                    if let Some((_, why)) = self.consumer.client().fatal_error() {
                        tracing::error!(%error, why, "the webhook's consumer has failed");
                        return Err(error.into());
                    }
                    tracing::warn!(%error, "cannot read verdicts, retrying");
                    continue;
                }
            };
            let (partition, record) = owned(&message, self.longest.saturating_mul(2));
            let topic = message.topic();
            next.insert((topic.to_owned(), partition), record.offset + 1);
            let published = Published {
                position: (topic, partition, record.offset),
                key: record.key.as_deref().unwrap_or_default(),
                headers: &record.headers,
                // A value that is too long to copy is not a tombstone.
                value: record.value.as_deref().or(message.payload().map(|_| &[][..])),
            };
            if let Some(event) = published.event(&self.hook.events) {
                events.push(event);
                deadline.get_or_insert_with(|| Instant::now() + self.hook.linger);
            }
        }
    }

    /// After a rebalance another member delivers the same events again, so a failed commit loses nothing.
    fn commit(&self, next: &BTreeMap<(String, i32), i64>) {
        let mut list = TopicPartitionList::new();
        for ((topic, partition), offset) in next {
            if let Err(error) = list.add_partition_offset(topic, *partition, Offset::Offset(*offset)) {
                tracing::warn!(%error, topic, partition, "cannot commit an offset of the webhook");
            }
        }
        if let Err(error) = self.consumer.commit(&list, CommitMode::Sync) {
            tracing::warn!(%error, "the webhook's offsets are not committed; events may be sent again");
        }
    }

    /// Puts back a record that arrived while a request waits, and pauses what was assigned meanwhile.
    fn put_back(&self, message: &BorrowedMessage<'_>) -> Result<(), KafkaError> {
        self.consumer.pause(&self.consumer.assignment()?)?;
        let offset = Offset::Offset(message.offset());
        self.consumer.seek(message.topic(), message.partition(), offset, Duration::from_secs(5))
    }
}

impl Channel for Courier<'_> {
    fn send(&mut self, payload: &WebhookPayload) -> WebhookAnswer {
        let start = Instant::now();
        let answer = self.server.send(payload, seconds());
        let result = match &answer {
            WebhookAnswer::Status { status: 200..=299, .. } => "accepted",
            WebhookAnswer::Status { .. } => "refused",
            WebhookAnswer::None { .. } => "failed",
        };
        metrics::webhook_attempt(result, start.elapsed());
        answer
    }

    /// Polls while it waits: a member that does not poll for five minutes loses its partitions.
    fn wait(&mut self, pause: Duration, why: &str) -> bool {
        tracing::warn!(why, pause_ms = pause.as_millis() as u64, "the webhook is not accepted, retrying");
        let deadline = Instant::now() + pause;
        let paused = self.consumer.assignment().and_then(|assigned| self.consumer.pause(&assigned));
        if let Err(error) = paused {
            tracing::debug!(%error, "cannot pause");
        }
        while Instant::now() < deadline && !self.stop.is_requested() {
            let left = deadline.saturating_duration_since(Instant::now()).min(POLL);
            if let Some(Ok(message)) = self.consumer.poll(left.max(Duration::from_millis(1)))
                && let Err(error) = self.put_back(&message)
            {
                tracing::warn!(%error, "cannot put back a verdict; it is read again after a restart");
            }
        }
        let resumed = self.consumer.assignment().and_then(|assigned| self.consumer.resume(&assigned));
        if let Err(error) = resumed {
            tracing::debug!(%error, "cannot resume");
        }
        !self.stop.is_requested()
    }

    fn refuse(&mut self, event: &VerdictEvent, why: &str) -> Result<(), String> {
        tracing::error!(event = event.id, why, "the webhook refuses an event; it becomes a dead letter");
        let line = json!({ "error": why, "at": clock::now().to_string(), "event": event }).to_string();
        match &self.hook.dead_letters {
            DeadLetterTarget::File(path) => {
                let failed = |error: std::io::Error| format!("{}: {error}", path.display());
                let mut file = File::options().append(true).create(true).open(path).map_err(failed)?;
                file.write_all(format!("{line}\n").as_bytes()).map_err(failed)?;
                file.sync_data().map_err(failed)
            }
            DeadLetterTarget::Topic(topic) => {
                let failed = |error: KafkaError| format!("topic {topic}: {error}");
                let sender = Sender::new(self.bus, topic).map_err(failed)?;
                sender
                    .send(Some(event.article_id.as_bytes()), Some(line.as_bytes()), None)
                    .map_err(failed)?;
                sender.finish().map_err(failed)
            }
        }
    }
}
