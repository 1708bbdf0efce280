//! Writes articles to a topic, for backfills, demonstrations and tests. [`Sender`] is an idempotent producer without
//! transactions: each record arrives once and in order, and the first delivery error ends the run.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rdkafka::ClientContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};

use crate::config::Bus;
use samestory_engine::model::EventTime;

use crate::kafka::client as clients;

/// Sends records to one topic and reports those that could not be delivered.
pub struct Sender {
    producer: BaseProducer<FirstDeliveryError>,
    topic: String,
}

/// The first delivery error.
#[derive(Default)]
struct FirstDeliveryError(Mutex<Option<KafkaError>>);

impl ClientContext for FirstDeliveryError {
    fn log(&self, level: rdkafka::config::RDKafkaLogLevel, facility: &str, message: &str) {
        clients::log(level, facility, message);
    }
}

impl ProducerContext for FirstDeliveryError {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, _: ()) {
        if let Err((error, _)) = result {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| error.clone());
        }
    }
}

impl Sender {
    /// Creates a producer for a topic.
    ///
    /// # Errors
    /// librdkafka refuses the settings.
    pub fn new(bus: &Bus, topic: &str) -> Result<Sender, KafkaError> {
        let mut config = clients::base(bus, "samestory-produce");
        config
            .set("enable.idempotence", "true")
            .set("partitioner", "murmur2_random")
            .set("linger.ms", "5")
            .set("compression.type", "lz4")
            .set("message.max.bytes", bus.topics.max_message_bytes.to_string());
        let producer = config.create_with_context(FirstDeliveryError::default())?;
        Ok(Sender { producer, topic: topic.to_owned() })
    }

    /// Queues a record; waits while the queue is full.
    ///
    /// # Errors
    /// This record or an earlier one could not be delivered.
    pub fn send(
        &self,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        time: Option<EventTime>,
    ) -> Result<(), KafkaError> {
        self.send_to(None, key, value, time, None)
    }

    /// As [`Sender::send`], to a partition and with headers.
    ///
    /// # Errors
    /// As [`Sender::send`].
    pub(crate) fn send_to(
        &self,
        partition: Option<i32>,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        time: Option<EventTime>,
        headers: Option<OwnedHeaders>,
    ) -> Result<(), KafkaError> {
        let mut record: BaseRecord<'_, [u8], [u8]> = BaseRecord::to(&self.topic);
        record.partition = partition;
        record.headers = headers;
        record.key = key;
        record.payload = value;
        record.timestamp = time.map(EventTime::millis);
        loop {
            match self.producer.send(record) {
                Ok(()) => break,
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back)) => {
                    self.producer.poll(Duration::from_millis(5));
                    record = back;
                }
                Err((error, _)) => return Err(error),
            }
        }
        self.producer.poll(Duration::ZERO);
        self.delivery_result()
    }

    /// Waits until all records are delivered.
    ///
    /// # Errors
    /// A record could not be delivered.
    pub fn finish(self) -> Result<(), KafkaError> {
        self.producer.flush(Duration::from_secs(60))?;
        self.delivery_result()
    }

    fn delivery_result(&self) -> Result<(), KafkaError> {
        let error = self.producer.context().0.lock().unwrap_or_else(PoisonError::into_inner).take();
        error.map_or(Ok(()), Err)
    }
}
