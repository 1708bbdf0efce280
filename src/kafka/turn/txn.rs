//! Transactions. librdkafka's errors are classified here, and nowhere else, by the reaction that they need.
//!
//! A transaction is a value: it borrows the producer, so a second one cannot be opened, and committing consumes it.
//! Dropping it aborts. A commit returns the proof without which no state can be changed.

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

use samestory_engine::index::{Attestor, Committed};

use super::record::{Epochs, Outgoing};
use crate::kafka::admin::ids;
use crate::kafka::client as clients;
use crate::kafka::faults::{FAULTS, Faults, Mutant, Point};

/// Why a transaction did not commit.
#[derive(Debug)]
pub(crate) enum TxnError {
    /// Nothing became visible: seek back and retry the batch.
    Retry(KafkaError),
    /// The broker refuses one of the records, and would refuse it again. Nothing became visible.
    Refused(KafkaError),
    /// The partitions may have another owner, or the commit may have succeeded: drop the tasks and take the partitions
    /// over as a new owner would.
    OutcomeUnknown(KafkaError),
    /// Another process uses this transactional id: exit and leave the partitions to it.
    Fenced(KafkaError),
    /// The producer failed for good: exit. The next start takes the partitions over.
    Fatal(KafkaError),
}

impl fmt::Display for TxnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TxnError::Retry(error) => write!(f, "aborted: {error}"),
            TxnError::Refused(error) => write!(f, "a record was refused: {error}"),
            TxnError::OutcomeUnknown(error) => write!(f, "outcome unknown: {error}"),
            TxnError::Fenced(error) => write!(f, "fenced by another process: {error}"),
            TxnError::Fatal(error) => write!(f, "{error}"),
        }
    }
}

/// The phase of the transaction in which a call failed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TxnStep {
    Init,
    Within,
    Commit,
}

/// Classifies an error. The order of the checks matters: after a fatal error librdkafka marks some follow-up errors as
/// retriable, so a loop that checks for retriable first never ends.
fn classify(error: KafkaError, step: TxnStep, age: Duration, timeout: Duration) -> TxnError {
    use RDKafkaErrorCode as Code;
    match &error {
        KafkaError::Transaction(cause) if cause.is_retriable() && FAULTS.has(Mutant::RetryBeforeFatal) => {
            TxnError::Retry(error)
        }
        KafkaError::Transaction(cause) if cause.is_fatal() && is_fence(cause.code()) => {
            fenced(error, step, age, timeout)
        }
        KafkaError::Transaction(cause) if cause.is_fatal() => match cause.code() {
            Code::InvalidProducerIdMapping | Code::UnknownProducerId => TxnError::OutcomeUnknown(error),
            _ => TxnError::Fatal(error),
        },
        KafkaError::Transaction(cause) if cause.txn_requires_abort() => TxnError::Retry(error),
        // A commit that was interrupted may have reached the broker.
        KafkaError::Transaction(cause) if cause.is_retriable() => match step {
            TxnStep::Commit => TxnError::OutcomeUnknown(error),
            TxnStep::Init | TxnStep::Within => TxnError::Retry(error),
        },
        KafkaError::Transaction(_) => TxnError::Fatal(error),
        record_error if is_refusal(record_error) => TxnError::Refused(error),
        // A commit begins with a flush, whose errors carry no flags. The commit request has not been sent yet.
        KafkaError::Flush(_) | KafkaError::MessageProduction(_) => TxnError::Retry(error),
        _ => TxnError::Fatal(error),
    }
}

/// True if the broker refused a record because of its content, and not because of the broker's own state.
fn is_refusal(error: &KafkaError) -> bool {
    use RDKafkaErrorCode as Code;
    if FAULTS.has(Mutant::RetryRefused) {
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

/// The broker uses one code for a transaction that timed out and for one whose transactional id another producer has
/// taken. Only the second can happen before the timeout.
fn fenced(error: KafkaError, step: TxnStep, age: Duration, timeout: Duration) -> TxnError {
    if step != TxnStep::Init && age < timeout.mul_f64(0.9) {
        TxnError::Fenced(error)
    } else {
        TxnError::OutcomeUnknown(error)
    }
}

/// The producer's context: collects the delivery reports of a transaction.
pub(crate) struct Deliveries {
    changelog: String,
    reported: Mutex<Reported>,
    /// The producer was left behind in a call that does not return. Its successor fences it, which is expected.
    abandoned: AtomicBool,
}

#[derive(Default)]
struct Reported {
    /// By changelog partition, the offset after the last record.
    changelog: BTreeMap<i32, u64>,
    failed: Option<KafkaError>,
    /// The last connection error.
    connection_error: Option<String>,
}

impl Deliveries {
    fn reported(&self) -> std::sync::MutexGuard<'_, Reported> {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientContext for Deliveries {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        match self.abandoned.load(Ordering::Relaxed) {
            true => tracing::debug!(facility, "librdkafka, abandoned producer: {message}"),
            false => clients::log(level, facility, message),
        }
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::debug!(%error, reason, "producer error");
        self.reported().connection_error = Some(reason.to_owned());
    }
}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, _: ()) {
        let mut reported = self.reported();
        match result {
            Ok(message) if message.topic() == self.changelog => {
                if let Ok(offset) = u64::try_from(message.offset()) {
                    let end = reported.changelog.entry(message.partition()).or_default();
                    *end = (*end).max(offset + 1);
                }
            }
            Ok(_) => {}
            Err((error, message)) => {
                let (topic, partition) = (message.topic(), message.partition());
                // The first failure tells the cause. Later ones follow from it, and purged records from an abort.
                let purged = matches!(
                    error.rdkafka_error_code(),
                    Some(RDKafkaErrorCode::PurgeQueue | RDKafkaErrorCode::PurgeInflight)
                );
                match reported.failed.is_some() || purged {
                    true => tracing::debug!(%error, topic, partition, "a record was not delivered"),
                    false => tracing::warn!(%error, topic, partition, "a record was not delivered"),
                }
                // A refusal explains more than the errors that come with it.
                if is_refusal(error) && !reported.failed.as_ref().is_some_and(is_refusal) {
                    reported.failed = Some(error.clone());
                }
                reported.failed.get_or_insert_with(|| error.clone());
            }
        }
    }
}

/// Why a producer could not be set up.
pub(crate) enum ConnectError {
    /// The broker is unreachable or rejects the login; the text is the best known cause. Retry.
    Away(String),
    Failed(TxnError),
}

/// Sends in transactions.
pub(crate) struct TxnProducer {
    /// Shared with the thread that sends offsets, for as long as that takes.
    producer: Arc<BaseProducer<Deliveries>>,
    /// Passes offsets to that thread, which ends with this producer.
    offsets: mpsc::Sender<OffsetsJob>,
    timeout: Duration,
    /// False once a transaction could not be ended: later records might become part of it.
    usable: bool,
}

impl TxnProducer {
    /// Connects, and fences the previous producer with this transactional id.
    pub(crate) fn connect(
        config: &ClientConfig,
        changelog: &str,
        timeout: Duration,
    ) -> Result<TxnProducer, ConnectError> {
        /// More events than librdkafka queues in ten seconds.
        const EVENTS: usize = 200;
        let failed = ConnectError::Failed;
        let deliveries = Deliveries {
            changelog: changelog.to_owned(),
            reported: Mutex::default(),
            abandoned: AtomicBool::new(false),
        };
        let producer: BaseProducer<Deliveries> =
            config.create_with_context(deliveries).map_err(|error| failed(TxnError::Fatal(error)))?;
        match producer.init_transactions(Duration::from_secs(10)) {
            Ok(()) => {
                let offsets = OffsetsJob::start_thread().map_err(|error| {
                    ConnectError::Away(format!("cannot start the thread that sends offsets: {error}"))
                })?;
                Ok(TxnProducer { producer: Arc::new(producer), offsets, timeout, usable: true })
            }
            Err(error) => Err(match classify(error, TxnStep::Init, Duration::ZERO, timeout) {
                TxnError::Retry(error) => {
                    // Polling delivers the connection errors, one event at a time. Without them a wrong password looks
                    // like an unreachable broker.
                    (0..EVENTS).for_each(|_| producer.poll(Duration::ZERO));
                    let cause = producer.context().reported().connection_error.take();
                    ConnectError::Away(cause.unwrap_or_else(|| error.to_string()))
                }
                error => failed(error),
            }),
        }
    }

    /// True if it can begin another transaction.
    pub(crate) fn is_usable(&self) -> bool {
        self.usable
    }

    /// Opens a transaction.
    ///
    /// Neither a second transaction while one is open nor a second commit compiles: `Txn` borrows the producer mutably,
    /// and committing consumes it.
    pub(crate) fn begin(&mut self) -> Result<Txn<'_>, TxnError> {
        let began = Instant::now();
        *self.producer.context().reported() = Reported::default();
        self.producer
            .begin_transaction()
            .map_err(|error| classify(error, TxnStep::Within, Duration::ZERO, self.timeout))?;
        FAULTS.reach(Point::Begin);
        Ok(Txn { producer: self, began, settled: false })
    }

    /// Serves delivery reports until none is outstanding. Waiting in `commit_transaction` instead would cost 100 ms.
    /// librdkafka's own poll busy-waits for the last millisecond, and would take CPU from a broker on the same machine.
    fn drain(&self, deadline: Instant) -> Result<(), KafkaError> {
        const IDLE: Duration = Duration::from_micros(200);
        while self.producer.in_flight_count() > 0 {
            if Instant::now() > deadline {
                return Err(KafkaError::Flush(RDKafkaErrorCode::OperationTimedOut));
            }
            let before = self.producer.in_flight_count();
            self.producer.poll(Duration::ZERO);
            if self.producer.in_flight_count() == before {
                std::thread::sleep(IDLE);
            }
        }
        Ok(())
    }
}

/// A commit that begins late still has the time for a question and its answer.
const COMMIT_AT_LEAST: Duration = Duration::from_secs(2);

/// The result of sending offsets.
enum OffsetsSent {
    Answered(Result<(), KafkaError>),
    /// Nothing, in time.
    Abandoned,
}

/// Offsets to add to a transaction, for a thread of their own: while the group's coordinator is away, librdkafka ignores
/// the time limit of this call, and nothing interrupts it (librdkafka#5456, #5511).
struct OffsetsJob {
    producer: Arc<BaseProducer<Deliveries>>,
    list: TopicPartitionList,
    membership: Arc<ConsumerGroupMetadata>,
    patience: Duration,
    answer: mpsc::SyncSender<Result<(), KafkaError>>,
}

impl OffsetsJob {
    fn start_thread() -> std::io::Result<mpsc::Sender<OffsetsJob>> {
        let (jobs, accepted) = mpsc::channel::<OffsetsJob>();
        let work = move || accepted.into_iter().for_each(OffsetsJob::run);
        std::thread::Builder::new().name("send-offsets".into()).spawn(work).map(|_detached| jobs)
    }

    fn run(self) {
        let OffsetsJob { producer, list, membership, patience, answer } = self;
        let sent = producer.send_offsets_to_transaction(&list, &membership, patience);
        // Dropped before the answer is sent: its receiver may then drop the last other reference to the producer.
        drop(producer);
        let _nobody_waits = answer.send(sent);
    }
}

/// An open transaction: nothing sent through it is visible until it commits.
#[must_use = "commit it; dropping it aborts"]
pub(crate) struct Txn<'p> {
    producer: &'p mut TxnProducer,
    began: Instant,
    settled: bool,
}

/// Input offsets to commit with a transaction, on behalf of a group member.
pub(crate) struct Offsets<'a> {
    pub(crate) topic: &'a str,
    /// By partition, the offset to read next.
    pub(crate) next: &'a BTreeMap<i32, i64>,
    /// The leader epochs of the records before that.
    pub(crate) epochs: &'a Epochs,
    /// Captured when the batch was read, in the assignment it was read in.
    pub(crate) membership: &'a Arc<ConsumerGroupMetadata>,
}

impl Txn<'_> {
    /// Adds a record to the transaction.
    pub(crate) fn send(&mut self, record: &Outgoing<'_>) -> Result<(), TxnError> {
        let mut outgoing: BaseRecord<'_, [u8], [u8]> = BaseRecord::to(record.topic);
        outgoing.headers = (!record.headers.is_empty()).then(|| {
            let headers = OwnedHeaders::new_with_capacity(record.headers.len());
            record.headers.iter().fold(headers, |headers, (key, value)| {
                headers.insert(Header { key, value: value.as_deref() })
            })
        });
        outgoing.partition = record.partition;
        outgoing.key = record.key.as_deref();
        outgoing.payload = record.value.as_deref();
        outgoing.timestamp = record.time.map(|time| time.millis());
        loop {
            match self.producer.producer.send(outgoing) {
                Ok(()) => {
                    FAULTS.reach(Point::Produce);
                    return Ok(());
                }
                // A full queue is no reason to abort: poll until there is room.
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back))
                    if self.began.elapsed() < self.producer.timeout =>
                {
                    self.producer.producer.poll(Duration::from_millis(1));
                    outgoing = back;
                }
                Err((error, _)) => {
                    tracing::warn!(%error, topic = record.topic, "a record was not queued");
                    if !is_refusal(&error) {
                        // librdkafka accepts no records after the broker has refused one. Draining fetches the report
                        // that names the refusal.
                        let _drained = self.producer.drain(Instant::now() + Duration::from_secs(2));
                    }
                    return Err(self.classified(error, TxnStep::Within));
                }
            }
        }
    }

    /// Commits: all records and offsets become visible at once.
    ///
    /// # Errors
    /// See [`TxnError`]. If the transaction could be aborted, it has been when this returns.
    pub(crate) fn commit(self, offsets: &Offsets<'_>) -> Result<CommittedTxn, TxnError> {
        self.commit_all(std::slice::from_ref(offsets))
    }

    /// Commits with the offsets of several groups: if one group refuses its member, nothing becomes visible.
    ///
    /// # Errors
    /// As [`Txn::commit`].
    pub(crate) fn commit_all(mut self, offsets: &[Offsets<'_>]) -> Result<CommittedTxn, TxnError> {
        let deadline = self.began + self.producer.timeout;
        self.producer.drain(deadline).map_err(|error| self.classified(error, TxnStep::Within))?;
        // Not inside the condition: that would hold the lock while `classified` takes it again.
        let failed = self.producer.producer.context().reported().failed.take();
        if let Some(error) = failed {
            return Err(self.classified(error, TxnStep::Within));
        }
        FAULTS.reach(Point::Flush);
        for offsets in offsets {
            let mut list = TopicPartitionList::with_capacity(offsets.next.len());
            for (&partition, &next) in offsets.next {
                list.add_partition_offset(offsets.topic, partition, Offset::Offset(next))
                    .map_err(|error| self.classified(error, TxnStep::Within))?;
                if let Some(epoch) = offsets.epochs.before(partition, next) {
                    ids::set_leader_epoch(&mut list, offsets.topic, partition, epoch);
                }
            }
            match self.send_offsets(list, offsets.membership, deadline) {
                OffsetsSent::Answered(answer) => {
                    answer.map_err(|error| self.classified(error, TxnStep::Within))?
                }
                OffsetsSent::Abandoned => {
                    // The call that hangs keeps the transaction: it cannot be aborted, and its successor fences it.
                    (self.settled, self.producer.usable) = (true, false);
                    return Err(TxnError::OutcomeUnknown(KafkaError::ConsumerCommit(
                        RDKafkaErrorCode::OperationTimedOut,
                    )));
                }
            }
        }
        FAULTS.reach(Point::Offsets);
        // Without a limit librdkafka would ask an absent coordinator forever. Once the transaction's time is over, the broker
        // has decided, and only a new owner can find out how.
        let patience = match FAULTS.has(Mutant::UnboundedCalls) {
            true => Timeout::Never,
            false => Timeout::After(crate::kafka::client::left_until(deadline).max(COMMIT_AT_LEAST)),
        };
        self.producer.producer.commit_transaction(patience).map_err(|error| {
            let classified = self.classified(error, TxnStep::Commit);
            // Whatever it is now, it is not ours to abort unless librdkafka asks for that.
            self.settled = !matches!(classified, TxnError::Retry(_));
            self.producer.usable = !self.settled;
            classified
        })?;
        self.settled = true;
        FAULTS.reach(Point::Commit);
        let changelog = std::mem::take(&mut self.producer.producer.context().reported().changelog);
        Ok(CommittedTxn { changelog })
    }

    /// Adds offsets to the transaction. A call that does not return in time keeps the producer until it does. What it may
    /// send then is of an epoch that its successor has ended.
    fn send_offsets(
        &self,
        list: TopicPartitionList,
        membership: &Arc<ConsumerGroupMetadata>,
        deadline: Instant,
    ) -> OffsetsSent {
        /// For the answer of a call that keeps its time limit.
        const GRACE: Duration = Duration::from_millis(500);
        let patience = crate::kafka::client::left_until(deadline);
        let (answer, answered) = mpsc::sync_channel(1);
        let job = OffsetsJob {
            producer: Arc::clone(&self.producer.producer),
            list,
            membership: Arc::clone(membership),
            patience,
            answer,
        };
        if self.producer.offsets.send(job).is_err() {
            // The thread has panicked; the producer is replaced.
            return OffsetsSent::Abandoned;
        }
        let grace = if FAULTS.has(Mutant::UnboundedCalls) { Duration::from_secs(3600) } else { GRACE };
        match answered.recv_timeout(patience + grace) {
            Ok(sent) => OffsetsSent::Answered(sent),
            Err(mpsc::RecvTimeoutError::Timeout) => {
                self.producer.producer.context().abandoned.store(true, Ordering::Relaxed);
                OffsetsSent::Abandoned
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => OffsetsSent::Answered(Err(KafkaError::Canceled)),
        }
    }

    fn classified(&self, error: KafkaError, step: TxnStep) -> TxnError {
        let age = self.began.elapsed();
        let refusal = self.producer.producer.context().reported().failed.clone().filter(is_refusal);
        let error = refusal.filter(|_| step == TxnStep::Within).unwrap_or(error);
        // A fenced producer first reports the records that it purged, and the fence only after them.
        let fatal = self.producer.producer.client().fatal_error();
        match fatal {
            Some((code, _)) if is_fence(code) => fenced(error, step, age, self.producer.timeout),
            _ => classify(error, step, age, self.producer.timeout),
        }
    }
}

/// A committed transaction. Only [`Txn::commit`] makes one, and only it turns a store's [`Attestor`] into proof.
#[derive(Debug)]
pub(crate) struct CommittedTxn {
    /// By changelog partition, the offset after the last record.
    changelog: BTreeMap<i32, u64>,
}

impl CommittedTxn {
    /// Proof that the changelog of a partition holds what this transaction wrote; none if it wrote nothing there.
    pub(crate) fn proof(&self, partition: i32, attestor: &Attestor) -> Option<Committed> {
        self.changelog.get(&partition).map(|&next| attestor.attest(next))
    }
}

impl Drop for Txn<'_> {
    fn drop(&mut self) {
        if self.settled {
            return;
        }
        let producer = &self.producer.producer;
        // An abort waits for delivery reports that nobody serves, so records in flight are purged first.
        producer.purge(PurgeConfig::default().queue().inflight());
        let drained = self.producer.drain(Instant::now() + Duration::from_secs(2));
        let aborted = producer.abort_transaction(Duration::from_secs(5));
        if let Err(error) = drained.and(aborted) {
            tracing::debug!(%error, "a transaction could not be aborted; replacing the producer");
            self.producer.usable = false;
        }
    }
}
