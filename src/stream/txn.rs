//! Transactions. The library's errors are sorted here, and nowhere else, into what is to be done about them.
//!
//! A transaction is a value: it borrows the producer, so a second cannot be opened, and it ends by being consumed.
//! Dropping one aborts it. The proof that state may follow is made by committing.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerGroupMetadata;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Header, Message, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext, PurgeConfig};
use rdkafka::util::Timeout;
use rdkafka::{ClientConfig, ClientContext, Offset, TopicPartitionList};

use crate::store::Committed;

use super::record::{Epochs, Outgoing};
use super::{clients, faults, ids};

/// Why a transaction did not commit.
#[derive(Debug)]
pub(super) enum TxnError {
    /// Nothing became visible: seek back and run the batch again.
    Retry(KafkaError),
    /// The broker refuses one of the records, and will refuse it again: nothing became visible.
    Refused(KafkaError),
    /// The partitions belong to someone else now, or nobody can say whether it committed: drop the tasks and take
    /// the partitions over as a new owner would.
    Lost(KafkaError),
    /// Another process uses this name: leave it the field.
    Usurped(KafkaError),
    /// This producer is finished: exit, and restore on the way back up.
    Fatal(KafkaError),
}

impl fmt::Display for TxnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TxnError::Retry(error) => write!(f, "aborted: {error}"),
            TxnError::Refused(error) => write!(f, "a record was refused: {error}"),
            TxnError::Lost(error) => write!(f, "outcome not known: {error}"),
            TxnError::Usurped(error) => write!(f, "fenced by another process: {error}"),
            TxnError::Fatal(error) => write!(f, "{error}"),
        }
    }
}

/// What was being done when it failed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Init,
    Within,
    Commit,
}

/// Sorts an error. The order of the questions matters: after a fatal error the library calls some that follow from
/// it retriable, and a loop that asks for that first never ends.
fn sort(error: KafkaError, step: Step, age: Duration, timeout: Duration) -> TxnError {
    use RDKafkaErrorCode as Code;
    match &error {
        KafkaError::Transaction(cause) if cause.is_retriable() && faults::mutant("retry-before-fatal") => {
            TxnError::Retry(error)
        }
        KafkaError::Transaction(cause) if cause.is_fatal() && is_fence(cause.code()) => {
            fenced(error, step, age, timeout)
        }
        KafkaError::Transaction(cause) if cause.is_fatal() => match cause.code() {
            Code::InvalidProducerIdMapping | Code::UnknownProducerId => TxnError::Lost(error),
            _ => TxnError::Fatal(error),
        },
        KafkaError::Transaction(cause) if cause.txn_requires_abort() => TxnError::Retry(error),
        // A commit that was interrupted may have reached the broker.
        KafkaError::Transaction(cause) if cause.is_retriable() => match step {
            Step::Commit => TxnError::Lost(error),
            Step::Init | Step::Within => TxnError::Retry(error),
        },
        KafkaError::Transaction(_) => TxnError::Fatal(error),
        error_of_record if is_refusal(error_of_record) => TxnError::Refused(error),
        // Committing begins with a flush that has no flags of its own: nothing was decided yet.
        KafkaError::Flush(_) | KafkaError::MessageProduction(_) => TxnError::Retry(error),
        _ => TxnError::Fatal(error),
    }
}

/// Whether a record was refused for what it is, not for the state that the broker is in.
fn is_refusal(error: &KafkaError) -> bool {
    use RDKafkaErrorCode as Code;
    if faults::mutant("retry-refused") {
        return false;
    }
    matches!(
        error,
        KafkaError::MessageProduction(
            Code::MessageSizeTooLarge
                | Code::InvalidMessageSize
                | Code::MessageBatchTooLarge
                | Code::InvalidTimestamp
                | Code::InvalidRecord
                | Code::UnsupportedForMessageFormat
        )
    )
}

fn is_fence(code: RDKafkaErrorCode) -> bool {
    use RDKafkaErrorCode as Code;
    matches!(code, Code::Fenced | Code::ProducerFenced | Code::InvalidProducerEpoch)
}

/// The broker fences a transaction that has taken too long with the same code as one whose name somebody else has
/// taken. Only the second can happen early.
fn fenced(error: KafkaError, step: Step, age: Duration, timeout: Duration) -> TxnError {
    if step != Step::Init && age < timeout.mul_f64(0.9) {
        TxnError::Usurped(error)
    } else {
        TxnError::Lost(error)
    }
}

/// Hears where records went.
pub(super) struct Deliveries {
    changelog: String,
    heard: Mutex<Heard>,
    /// The producer was left behind in a call that does not return. That its successor fences it is no news.
    abandoned: AtomicBool,
}

#[derive(Default)]
struct Heard {
    /// By changelog partition, the offset after the last record.
    changelog: BTreeMap<i32, u64>,
    failed: Option<KafkaError>,
    /// What the library said last about its connections.
    trouble: Option<String>,
}

impl Deliveries {
    fn heard(&self) -> std::sync::MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientContext for Deliveries {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        match self.abandoned.load(Ordering::Relaxed) {
            true => tracing::debug!(facility, "client library, of an abandoned producer: {message}"),
            false => clients::log(level, facility, message),
        }
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::debug!(%error, reason, "producer");
        self.heard().trouble = Some(reason.to_owned());
    }
}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, _: ()) {
        let mut heard = self.heard();
        match result {
            Ok(message) if message.topic() == self.changelog => {
                if let Ok(offset) = u64::try_from(message.offset()) {
                    let end = heard.changelog.entry(message.partition()).or_default();
                    *end = (*end).max(offset + 1);
                }
            }
            Ok(_) => {}
            Err((error, message)) => {
                let (topic, partition) = (message.topic(), message.partition());
                // The first tells what is wrong; the others share its fate, as do those that are given up in an abort.
                let given_up = matches!(
                    error.rdkafka_error_code(),
                    Some(RDKafkaErrorCode::PurgeQueue | RDKafkaErrorCode::PurgeInflight)
                );
                match heard.failed.is_some() || given_up {
                    true => tracing::debug!(%error, topic, partition, "a record was not delivered"),
                    false => tracing::warn!(%error, topic, partition, "a record was not delivered"),
                }
                // A refusal explains more than whatever failed with it.
                if is_refusal(error) && !heard.failed.as_ref().is_some_and(is_refusal) {
                    heard.failed = Some(error.clone());
                }
                heard.failed.get_or_insert_with(|| error.clone());
            }
        }
    }
}

/// Why there is no producer.
pub(super) enum ConnectError {
    /// The broker does not answer, or does not let us in; this is the matter, as far as is known. Try again.
    Away(String),
    Failed(TxnError),
}

/// Sends in transactions.
pub(super) struct TxnProducer {
    /// Shared with a thread that sends offsets, for as long as that takes.
    producer: Arc<BaseProducer<Deliveries>>,
    timeout: Duration,
    /// False once a transaction could not be ended: what follows might become part of it.
    usable: bool,
}

impl TxnProducer {
    /// Connects, and fences whoever used this name before.
    pub(super) fn connect(
        config: &ClientConfig,
        changelog: &str,
        timeout: Duration,
    ) -> Result<TxnProducer, ConnectError> {
        /// More than the library has to say about ten seconds.
        const EVENTS: usize = 200;
        let failed = ConnectError::Failed;
        let deliveries = Deliveries {
            changelog: changelog.to_owned(),
            heard: Mutex::default(),
            abandoned: AtomicBool::new(false),
        };
        let producer: BaseProducer<Deliveries> =
            config.create_with_context(deliveries).map_err(|error| failed(TxnError::Fatal(error)))?;
        match producer.init_transactions(Duration::from_secs(10)) {
            Ok(()) => Ok(TxnProducer { producer: Arc::new(producer), timeout, usable: true }),
            Err(error) => Err(match sort(error, Step::Init, Duration::ZERO, timeout) {
                TxnError::Retry(error) => {
                    // Only now is heard what it met meanwhile, one event at a time: without, a wrong password looks
                    // like no answer.
                    (0..EVENTS).for_each(|_| producer.poll(Duration::ZERO));
                    let trouble = producer.context().heard().trouble.take();
                    ConnectError::Away(trouble.unwrap_or_else(|| error.to_string()))
                }
                error => failed(error),
            }),
        }
    }

    /// Whether it can begin another transaction.
    pub(super) fn is_usable(&self) -> bool {
        self.usable
    }

    /// Opens a transaction.
    ///
    /// A second while the first is open does not compile, and neither does committing twice: both need the whole
    /// of the producer or of the transaction.
    pub(super) fn begin(&mut self) -> Result<Txn<'_>, TxnError> {
        let began = Instant::now();
        *self.producer.context().heard() = Heard::default();
        self.producer
            .begin_transaction()
            .map_err(|error| sort(error, Step::Within, Duration::ZERO, self.timeout))?;
        faults::point("begin");
        Ok(Txn { producer: self, began, settled: false })
    }

    /// Serves reports until none is outstanding. Waiting in `commit_transaction` instead would cost 100 ms. The library's
    /// own waiting turns in circles for the last millisecond, and would take from a broker on the same machine what it
    /// needs to answer.
    fn drain(&self, deadline: Instant) -> Result<(), KafkaError> {
        const MOMENT: Duration = Duration::from_micros(200);
        while self.producer.in_flight_count() > 0 {
            if Instant::now() > deadline {
                return Err(KafkaError::Flush(RDKafkaErrorCode::OperationTimedOut));
            }
            let before = self.producer.in_flight_count();
            self.producer.poll(Duration::ZERO);
            if self.producer.in_flight_count() == before {
                std::thread::sleep(MOMENT);
            }
        }
        Ok(())
    }
}

/// A commit that begins late still has the time for a question and its answer.
const COMMIT_AT_LEAST: Duration = Duration::from_secs(2);

/// What became of offsets that were sent.
enum Sent {
    Answered(Result<(), KafkaError>),
    /// Nothing, in time.
    Abandoned,
}

/// An open transaction: nothing sent through it is visible until it commits.
#[must_use = "commit it; dropping it aborts"]
pub(super) struct Txn<'p> {
    producer: &'p mut TxnProducer,
    began: Instant,
    settled: bool,
}

/// Which records of which topic are done with, and by whom.
pub(super) struct Offsets<'a> {
    pub(super) topic: &'a str,
    /// By partition, the offset to read next.
    pub(super) next: &'a BTreeMap<i32, i64>,
    /// The leader epochs of the records before that.
    pub(super) epochs: &'a Epochs,
    /// Captured when the batch was read, in the assignment it was read in.
    pub(super) membership: &'a Arc<ConsumerGroupMetadata>,
}

impl Txn<'_> {
    /// Hands a record over.
    pub(super) fn send(&mut self, record: &Outgoing<'_>) -> Result<(), TxnError> {
        let headers = record
            .headers
            .iter()
            .fold(OwnedHeaders::new_with_capacity(record.headers.len()), |headers, (key, value)| {
                headers.insert(Header { key, value: value.as_deref() })
            });
        let mut outgoing: BaseRecord<'_, [u8], [u8]> = BaseRecord::to(record.topic).headers(headers);
        outgoing.partition = record.partition;
        outgoing.key = record.key.as_deref();
        outgoing.payload = record.value.as_deref();
        outgoing.timestamp = record.time.map(|time| time.millis());
        loop {
            match self.producer.producer.send(outgoing) {
                Ok(()) => {
                    faults::point("produce");
                    return Ok(());
                }
                // Too much is waiting: help it along. This is no reason to abort.
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back))
                    if self.began.elapsed() < self.producer.timeout =>
                {
                    self.producer.producer.poll(Duration::from_millis(1));
                    outgoing = back;
                }
                Err((error, _)) => {
                    tracing::warn!(%error, topic = record.topic, "a record was not taken");
                    if !is_refusal(&error) {
                        // After a refusal librdkafka takes nothing more; its report says which it was.
                        let _drained = self.producer.drain(Instant::now() + Duration::from_secs(2));
                    }
                    return Err(self.sorted(error, Step::Within));
                }
            }
        }
    }

    /// Makes everything visible at once, and the offsets with it.
    ///
    /// # Errors
    /// See [`TxnError`]. Whatever can be aborted has been when this returns.
    pub(super) fn commit(self, offsets: &Offsets<'_>) -> Result<Committed, TxnError> {
        self.commit_all(std::slice::from_ref(offsets))
    }

    /// The same with the offsets of several groups: if one of them refuses its member, nothing becomes visible.
    ///
    /// # Errors
    /// As [`Txn::commit`].
    pub(super) fn commit_all(mut self, offsets: &[Offsets<'_>]) -> Result<Committed, TxnError> {
        let deadline = self.began + self.producer.timeout;
        self.producer.drain(deadline).map_err(|error| self.sorted(error, Step::Within))?;
        // Not inside the condition: the lock would be held while the error is sorted, which takes it again.
        let failed = self.producer.producer.context().heard().failed.take();
        if let Some(error) = failed {
            return Err(self.sorted(error, Step::Within));
        }
        faults::point("flush");
        for offsets in offsets {
            let mut list = TopicPartitionList::with_capacity(offsets.next.len());
            for (&partition, &next) in offsets.next {
                list.add_partition_offset(offsets.topic, partition, Offset::Offset(next))
                    .map_err(|error| self.sorted(error, Step::Within))?;
                if let Some(epoch) = offsets.epochs.before(partition, next) {
                    ids::set_leader_epoch(&mut list, offsets.topic, partition, epoch);
                }
            }
            match self.send_offsets(list, offsets.membership, deadline) {
                Sent::Answered(answer) => answer.map_err(|error| self.sorted(error, Step::Within))?,
                Sent::Abandoned => {
                    // The call that hangs keeps the transaction: it cannot be aborted, and its successor fences it.
                    (self.settled, self.producer.usable) = (true, false);
                    return Err(TxnError::Lost(KafkaError::ConsumerCommit(
                        RDKafkaErrorCode::OperationTimedOut,
                    )));
                }
            }
        }
        faults::point("offsets");
        // Without a limit librdkafka would ask an absent coordinator for ever. Once the transaction's time is over, the broker
        // has decided, and only a new owner can find out how.
        let patience = match faults::mutant("unbounded-calls") {
            true => Timeout::Never,
            false => Timeout::After(clients::left_until(deadline).max(COMMIT_AT_LEAST)),
        };
        self.producer.producer.commit_transaction(patience).map_err(|error| {
            let sorted = self.sorted(error, Step::Commit);
            // Whatever it is now, it is not ours to abort unless the library asks for that.
            self.settled = !matches!(sorted, TxnError::Retry(_));
            self.producer.usable = !self.settled;
            sorted
        })?;
        self.settled = true;
        faults::point("commit");
        let changelog = std::mem::take(&mut self.producer.producer.context().heard().changelog);
        Ok(Committed::attest(changelog))
    }

    /// Adds offsets to the transaction, in a thread of its own: while the group's coordinator is away, librdkafka ignores the
    /// time limit of this call, and nothing interrupts it (librdkafka#5456, #5511). A thread that does not return in
    /// time keeps the producer until it does. What it may send then is of an epoch that its successor has ended.
    fn send_offsets(
        &self,
        list: TopicPartitionList,
        membership: &Arc<ConsumerGroupMetadata>,
        deadline: Instant,
    ) -> Sent {
        /// For the answer of a call that keeps its time limit.
        const GRACE: Duration = Duration::from_millis(500);
        let patience = clients::left_until(deadline);
        let (producer, membership) = (Arc::clone(&self.producer.producer), Arc::clone(membership));
        let (answer, answered) = mpsc::sync_channel(1);
        let send = move || {
            let sent = producer.send_offsets_to_transaction(&list, &membership, patience);
            // Before the answer: whoever gets it may be about to drop the last producer but this.
            drop(producer);
            let _nobody_waits = answer.send(sent);
        };
        let thread = std::thread::Builder::new().name("send-offsets".into()).spawn(send);
        if let Err(error) = thread {
            tracing::warn!(%error, "cannot start a thread; the batch is done again");
            return Sent::Answered(Err(KafkaError::Flush(RDKafkaErrorCode::Fail)));
        }
        let grace = if faults::mutant("unbounded-calls") { Duration::from_secs(3600) } else { GRACE };
        match answered.recv_timeout(patience + grace) {
            Ok(sent) => Sent::Answered(sent),
            Err(mpsc::RecvTimeoutError::Timeout) => {
                self.producer.producer.context().abandoned.store(true, Ordering::Relaxed);
                Sent::Abandoned
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => Sent::Answered(Err(KafkaError::Canceled)),
        }
    }

    fn sorted(&self, error: KafkaError, step: Step) -> TxnError {
        let age = self.began.elapsed();
        let refusal = self.producer.producer.context().heard().failed.clone().filter(is_refusal);
        let error = refusal.filter(|_| step == Step::Within).unwrap_or(error);
        // A producer that was fenced reports the records it gave up first, and only then why.
        let fatal = self.producer.producer.client().fatal_error();
        match fatal {
            Some((code, _)) if is_fence(code) => fenced(error, step, age, self.producer.timeout),
            _ => sort(error, step, age, self.producer.timeout),
        }
    }
}

impl Drop for Txn<'_> {
    fn drop(&mut self) {
        if self.settled {
            return;
        }
        let producer = &self.producer.producer;
        // An abort waits for reports that nobody serves; so what is on its way is given up first.
        producer.purge(PurgeConfig::default().queue().inflight());
        let drained = self.producer.drain(Instant::now() + Duration::from_secs(2));
        let aborted = producer.abort_transaction(Duration::from_secs(5));
        if let Err(error) = drained.and(aborted) {
            tracing::debug!(%error, "a transaction could not be aborted; its producer is replaced");
            self.producer.usable = false;
        }
    }
}
