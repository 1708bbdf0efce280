//! Cluster ids, topic ids and leader epochs, which only librdkafka's C interface provides.
//!
//! rust-rdkafka 0.39 has no wrapper for topic ids and leader epochs, and its `fetch_cluster_id` leaks the answer. This
//! module holds the only unsafe code of `kafka`. Every request has a time limit, and every object that librdkafka
//! allocates here is freed by the guard that holds it.
#![allow(unsafe_code, reason = "librdkafka's C interface; each block says why it is sound")]

use std::ffi::{CStr, CString, c_char};
use std::time::Duration;

use rdkafka::bindings as c;
use rdkafka::client::Client;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::BorrowedMessage;
use rdkafka::{ClientContext, Offset, TopicPartitionList};

use samestory_engine::index::{TopicIdentity, TopicName};
use samestory_engine::model::TopicId;

/// The current ids of the cluster, the changelog and the input topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClusterIds {
    pub(crate) cluster: Option<TopicName>,
    pub(crate) changelog: Option<TopicId>,
    pub(crate) input: Option<TopicId>,
}

impl ClusterIds {
    /// Asks the broker.
    ///
    /// # Errors
    /// As [`topic_id`].
    pub(crate) fn ask<C: ClientContext>(
        client: &Client<C>,
        changelog: &str,
        input: &str,
        patience: Duration,
    ) -> Result<ClusterIds, KafkaError> {
        let ids = topic_ids(client, &[changelog, input], patience)?;
        let [changelog, input] = ids[..] else {
            return Err(KafkaError::AdminOp(RDKafkaErrorCode::UnknownTopicOrPartition));
        };
        let cluster = cluster_id(client, patience).map(|id| TopicName::new(&id));
        Ok(ClusterIds { cluster, changelog, input })
    }

    /// The identity of the changelog.
    pub(crate) fn changelog(&self) -> TopicIdentity {
        TopicIdentity { cluster: self.cluster.clone(), id: self.changelog }
    }

    /// True if one of the topics is certainly another one. Unknown ids are not compared.
    pub(crate) fn differs(&self, other: &ClusterIds) -> bool {
        let input = |here: &ClusterIds| TopicIdentity { cluster: here.cluster.clone(), id: here.input };
        self.changelog().differs(&other.changelog()) || input(self).differs(&input(other))
    }
}

/// The id of the Kafka cluster, or `None` if the broker has none or did not answer in time.
pub(crate) fn cluster_id<C: ClientContext>(client: &Client<C>, patience: Duration) -> Option<String> {
    let rk = client.native_ptr();
    // SAFETY: `rk` is valid for as long as `client`, which is borrowed here.
    let text = unsafe { c::rd_kafka_clusterid(rk, millis(patience)) };
    if text.is_null() {
        return None;
    }
    // SAFETY: librdkafka returns a NUL-terminated string that is ours until we free it. It is copied before that.
    unsafe {
        let id = CStr::from_ptr(text).to_string_lossy().into_owned();
        c::rd_kafka_mem_free(rk, text.cast());
        Some(id)
    }
}

/// The id of a topic, or `None` if the broker gives topics no ids (Apache Kafka before 2.8).
///
/// # Errors
/// The topic does not exist, or the broker did not answer in time.
pub(crate) fn topic_id<C: ClientContext>(
    client: &Client<C>,
    topic: &str,
    patience: Duration,
) -> Result<Option<TopicId>, KafkaError> {
    let ids = topic_ids(client, &[topic], patience)?;
    Ok(ids.into_iter().next().flatten())
}

/// The ids of several topics, requested at once and returned in the order of `topics`.
///
/// # Errors
/// As [`topic_id`].
pub(crate) fn topic_ids<C: ClientContext>(
    client: &Client<C>,
    topics: &[&str],
    patience: Duration,
) -> Result<Vec<Option<TopicId>>, KafkaError> {
    let failed = KafkaError::AdminOp;
    let names: Vec<CString> = topics.iter().map(|&topic| CString::new(topic)).collect::<Result<_, _>>()?;
    let mut pointers: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
    let rk = client.native_ptr();
    // SAFETY: `rk` is valid while `client` is borrowed. The names are NUL-terminated, live until the end of this
    // function, and are copied by the call. Each object is freed once, by its own destructor, and before `client` ends.
    let (collection, options, queue) = unsafe {
        let named = c::rd_kafka_TopicCollection_of_topic_names(pointers.as_mut_ptr(), pointers.len());
        let describe = c::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DESCRIBETOPICS;
        (
            Owned(named, c::rd_kafka_TopicCollection_destroy),
            Owned(c::rd_kafka_AdminOptions_new(rk, describe), c::rd_kafka_AdminOptions_destroy),
            Owned(c::rd_kafka_queue_new(rk), c::rd_kafka_queue_destroy),
        )
    };
    if collection.0.is_null() || options.0.is_null() || queue.0.is_null() {
        return Err(failed(RDKafkaErrorCode::CriticalSystemResource));
    }
    let mut why: [c_char; 128] = [0; 128];
    // SAFETY: all four pointers are valid, as above; the buffer has the length that is given. The answer arrives on our
    // own queue as an event, which nobody else takes. The queue is polled a little longer than the request may last.
    let event = unsafe {
        let code = c::rd_kafka_AdminOptions_set_request_timeout(
            options.0,
            millis(patience),
            why.as_mut_ptr(),
            why.len(),
        );
        if code != c::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR {
            return Err(failed(code.into()));
        }
        c::rd_kafka_DescribeTopics(rk, collection.0, options.0, queue.0);
        let event = c::rd_kafka_queue_poll(queue.0, millis(patience).saturating_add(200));
        Owned(event, c::rd_kafka_event_destroy)
    };
    if event.0.is_null() {
        return Err(failed(RDKafkaErrorCode::OperationTimedOut));
    }
    // SAFETY: the event is valid until it is dropped at the end of this function. Everything read here belongs to it
    // and is copied out before that. The result is null unless the event is the answer to this kind of request, and
    // its array has `count` elements.
    unsafe {
        let code = c::rd_kafka_event_error(event.0);
        if code != c::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR {
            return Err(failed(code.into()));
        }
        let result = c::rd_kafka_event_DescribeTopics_result(event.0);
        if result.is_null() {
            return Err(failed(RDKafkaErrorCode::Fail));
        }
        let mut count = 0;
        let described = c::rd_kafka_DescribeTopics_result_topics(result, &raw mut count);
        let mut ids = Vec::with_capacity(count);
        for at in 0..count {
            let topic = *described.add(at);
            if topic.is_null() {
                return Err(failed(RDKafkaErrorCode::UnknownTopicOrPartition));
            }
            let error = c::rd_kafka_TopicDescription_error(topic);
            if !error.is_null() {
                return Err(failed(c::rd_kafka_error_code(error).into()));
            }
            let id = c::rd_kafka_TopicDescription_topic_id(topic);
            let halves = match id.is_null() {
                true => (0, 0),
                false => {
                    (c::rd_kafka_Uuid_most_significant_bits(id), c::rd_kafka_Uuid_least_significant_bits(id))
                }
            };
            ids.push((halves != (0, 0)).then(|| TopicId::from_halves(halves.0, halves.1)));
        }
        match ids.len() == topics.len() {
            true => Ok(ids),
            false => Err(failed(RDKafkaErrorCode::UnknownTopicOrPartition)),
        }
    }
}

/// The leader epoch under which a record was written, if the broker reports it.
pub(crate) fn leader_epoch(message: &BorrowedMessage<'_>) -> Option<i32> {
    // SAFETY: the message is borrowed, so its pointer is valid; the call only reads from it.
    let epoch = unsafe { c::rd_kafka_message_leader_epoch(message.ptr()) };
    (epoch >= 0).then_some(epoch)
}

/// Sets the leader epoch of a partition in the list: that of the last record before its offset, with which the broker
/// can tell whether the log still holds that record. Does nothing if the list does not have the partition.
pub(crate) fn set_leader_epoch(list: &mut TopicPartitionList, topic: &str, partition: i32, epoch: i32) {
    let Ok(name) = CString::new(topic) else { return };
    // SAFETY: the list is borrowed mutably, so nobody else uses it. The element belongs to the list, or is null.
    unsafe {
        let element = c::rd_kafka_topic_partition_list_find(list.ptr(), name.as_ptr(), partition);
        if !element.is_null() {
            c::rd_kafka_topic_partition_set_leader_epoch(element, epoch);
        }
    }
}

/// The leader epoch at the end of a partition, if the broker reports it.
///
/// # Errors
/// The broker did not answer.
pub(crate) fn epoch_at_the_end<C: ConsumerContext>(
    consumer: &BaseConsumer<C>,
    topic: &str,
    partition: i32,
    patience: Duration,
) -> Result<Option<i32>, KafkaError> {
    let mut list = TopicPartitionList::new();
    // In the protocol the timestamp -1 asks for the end, and `Offset::End` is -1.
    list.add_partition_offset(topic, partition, Offset::End)?;
    let answer = consumer.offsets_for_times(list, patience)?;
    let name = CString::new(topic)?;
    // SAFETY: the answer is ours and lives through the block; the element belongs to it, or is null.
    let epoch = unsafe {
        let element = c::rd_kafka_topic_partition_list_find(answer.ptr(), name.as_ptr(), partition);
        if element.is_null() { -1 } else { c::rd_kafka_topic_partition_get_leader_epoch(element) }
    };
    Ok((epoch >= 0).then_some(epoch))
}

/// Owns an object of librdkafka, with the function that frees it.
struct Owned<T>(*mut T, unsafe extern "C" fn(*mut T));

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: the pointer came from the constructor that this destructor belongs to, and is freed only here.
            unsafe { (self.1)(self.0) }
        }
    }
}

fn millis(time: Duration) -> i32 {
    i32::try_from(time.as_millis()).unwrap_or(i32::MAX)
}
