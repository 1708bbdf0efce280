//! `samestory generation end`: ends a generation from inside its consumer groups.
//!
//! The command joins the old generation's group as an ordinary member and waits until it holds every partition, so that
//! no other process reads. Then it writes the generation-end record and the final offsets in one transaction, under
//! that membership (KIP-447): if a member of the old generation has come back meanwhile, the broker refuses the offsets
//! and the transaction aborts. In mode `routed` the command first holds route's partitions, waits until match has
//! judged everything that was routed, and then holds match's partitions too. The one transaction commits under both
//! memberships.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerGroupMetadata};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message;

use crate::config::{Backoff, Bus, Mode};
use crate::formats::GenerationEnd;
use crate::stop::{Poll, Polled, Stop};
use samestory_engine::model::{Position, TopicId};

use super::{EndLog, LookError, backlog, offsets_of};
use crate::kafka::admin::preflight::Preflight;
use crate::kafka::admin::{ids, preflight};
use crate::kafka::client as clients;
use crate::kafka::client::{PATIENCE, Quiet, Role, WorkerId};
use crate::kafka::clock;
use crate::kafka::faults::{FAULTS, Faults, Mutant, Point};
use crate::kafka::route::routed;
use crate::kafka::route::routed::{RoutedEvent, RoutedRecord};
use crate::kafka::turn::record::{Epochs, Outgoing};
use crate::kafka::turn::source::{AssignmentChange, RecordSource};
use crate::kafka::turn::txn::{ConnectError, Offsets, TxnError, TxnProducer};

/// If the backlog does not shrink for this long, no match process seems to run, and the command joins match's group.
const STALLED: Duration = Duration::from_secs(5);
/// Time between two identical messages to the operator.
const REPEAT_INTERVAL: Duration = Duration::from_secs(10);
/// Unjudged records that are counted exactly before the command refuses.
const COUNTED: usize = 10_000;

/// Which generation to end, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndRequest {
    /// The generation to end; by default the one before that of the settings.
    pub generation: Option<u32>,
    /// How long to wait until no other process holds a partition.
    pub timeout: Duration,
    /// End even if articles will be published twice, and count them.
    pub accept_repeats: bool,
}

/// The generation-end record, and who wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// This command wrote the record.
    Now(GenerationEnd),
    /// An earlier command had written it.
    Before(GenerationEnd),
}

/// Why the generation has not ended.
#[derive(Debug, thiserror::Error)]
pub enum EndError {
    /// The settings are those of the first generation.
    #[error(
        "the settings are of generation 1, and no generation comes before it: use the settings of the new generation, or name one with --generation"
    )]
    NoneBefore,
    /// Generations must end in order.
    #[error(
        "generation {0} has not ended, so what it has published is not known: end it first with --generation {0}"
    )]
    EarlierIsOpen(u32),
    /// A topic of the old generation is missing.
    #[error("topic {topic} does not exist, or this user may not see it (docs/security.md): {error}")]
    NoTopic {
        /// The missing topic.
        topic: String,
        /// The client's error.
        error: KafkaError,
    },
    /// Other processes still hold partitions.
    #[error(
        "generation {generation} has not ended: after {seconds} s {waiting}. Stop the processes of the old generation and try again, or increase --timeout"
    )]
    Held {
        /// The generation to end.
        generation: u32,
        /// How long the command waited.
        seconds: u64,
        /// The condition that it waited for.
        waiting: String,
    },
    /// Routed records are left, and no match process judges them.
    #[error(
        "generation {generation} has not ended: {records} records of {topic} are routed and not judged, and no match process is running to judge them. Start the old generation once more with --role match until its lag is 0, or give --accept-repeats to have the new generation publish them"
    )]
    Backlog {
        /// The generation to end.
        generation: u32,
        /// The routed topic.
        topic: String,
        /// The number of unjudged records, or a lower bound ("at least …").
        records: String,
    },
    /// A partition without a committed offset.
    #[error(
        "generation {generation} has not ended: group {group} has no committed offset for partitions {partitions:?} (never read, or expired). Start the old generation once more, which recovers and commits its offsets, or give --accept-repeats to have the new generation publish all of them"
    )]
    NoOffset {
        /// The generation to end.
        generation: u32,
        /// The group without the offsets.
        group: String,
        /// The partitions without an offset.
        partitions: Vec<i32>,
    },
    /// A topic holds records that this version cannot read.
    #[error("{0}")]
    Unreadable(String),
    /// A second `generation end` runs at the same time.
    #[error("another `samestory generation end` for this generation is running; let it finish")]
    Fenced,
    /// The command was interrupted.
    #[error("interrupted; nothing was written")]
    Stopped,
    /// The Kafka client failed.
    #[error("Kafka: {0}")]
    Client(#[from] KafkaError),
}

/// Ends a generation. `say` receives progress lines for the operator.
///
/// # Errors
/// See [`EndError`]. The generation has not ended then.
pub fn end(
    bus: &Bus,
    request: &EndRequest,
    stop: &Stop,
    say: &mut dyn FnMut(&str),
) -> Result<Ended, EndError> {
    let before = bus.generation.checked_sub(1).filter(|&before| before > 0);
    let generation = request.generation.or(before).ok_or(EndError::NoneBefore)?;
    let mut old = bus.of_generation(generation);
    // Its own instance id: with a worker's it would fence that worker's transactions.
    old.instance = "generation-end".to_owned();
    old.static_membership = false;
    let worker = WorkerId { role: reader(&old), number: 0 };
    let surveyor = clients::surveyor(&old, &format!("{}-survey", worker.id(&old)));
    let mut ending = Ending {
        surveyor: surveyor.create_with_context(Quiet)?,
        ends: EndLog::new(&old, &worker),
        bus: old,
        request: *request,
        deadline: Instant::now() + request.timeout,
        stop,
        say,
        last_said: (String::new(), Instant::now()),
        groups: Vec::new(),
    };
    let ended = ending.run();
    for group in &mut ending.groups {
        group.source.leave(Instant::now() + Duration::from_secs(5));
    }
    ended
}

/// The role that reads the raw topic.
fn reader(bus: &Bus) -> Role {
    match bus.mode {
        Mode::Routed => Role::Route,
        Mode::Direct => Role::Direct,
    }
}

/// The command's membership in one of the old generation's groups.
struct OldGroup {
    id: String,
    role: Role,
    topic: String,
    partitions: i32,
    source: RecordSource,
    held: BTreeSet<i32>,
}

impl OldGroup {
    fn join(bus: &Bus, role: Role, topic: &str, partitions: i32) -> Result<OldGroup, KafkaError> {
        let worker = WorkerId { role, number: 0 };
        let source = RecordSource::join(&clients::consumer(bus, &worker), topic, bus.batch, usize::MAX)?;
        let (id, topic) = (clients::group(bus, role), topic.to_owned());
        Ok(OldGroup { id, role, topic, partitions, source, held: BTreeSet::new() })
    }

    fn poll(&mut self) -> Result<(), EndError> {
        let changes = self.source.collect(Duration::from_millis(100));
        for change in changes.map_err(|error| EndError::Unreadable(error.to_string()))? {
            match change {
                AssignmentChange::Assigned(partitions) => self.held.extend(partitions),
                AssignmentChange::Revoked(partitions) => {
                    self.held.retain(|held| !partitions.contains(held));
                }
            }
        }
        Ok(())
    }

    fn missing(&self) -> Vec<i32> {
        (0..self.partitions).filter(|partition| !self.held.contains(partition)).collect()
    }
}

/// Partitions and offsets of records on the raw topic.
type RawRecords = BTreeSet<(i32, i64)>;

/// The generation-end record, and the final offsets of each group.
struct Finals {
    end: GenerationEnd,
    offsets: Vec<BTreeMap<i32, i64>>,
}

struct Ending<'a> {
    /// The settings of the generation to end.
    bus: Bus,
    request: EndRequest,
    deadline: Instant,
    stop: &'a Stop,
    say: &'a mut dyn FnMut(&str),
    last_said: (String, Instant),
    surveyor: BaseConsumer<Quiet>,
    ends: EndLog,
    /// The group that reads the raw topic and, in mode `routed`, the match group.
    groups: Vec<OldGroup>,
}

impl Ending<'_> {
    fn run(&mut self) -> Result<Ended, EndError> {
        let generation = self.bus.generation;
        let mut unknown_outcome = false;
        let mut producer = None;
        loop {
            let ends = self.read_ends()?;
            if let Some(end) = ends.get(&generation) {
                let ended = if unknown_outcome { Ended::Now } else { Ended::Before };
                return Ok(ended(end.clone()));
            }
            let earlier = match generation {
                0 | 1 => None,
                later => Some(ends.get(&(later - 1)).cloned().ok_or(EndError::EarlierIsOpen(later - 1))?),
            };
            let mut connected = match producer.take() {
                Some(connected) => connected,
                None => self.connect()?,
            };
            self.hold()?;
            // Memberships before offsets: the offsets are final only as long as these memberships last.
            let Some(memberships) = self.memberships()? else {
                producer = Some(connected);
                self.wait("the group membership was lost, joining again")?;
                continue;
            };
            let finals = self.finals(earlier.as_ref())?;
            FAULTS.reach(Point::GenerationEnd);
            match self.write(&mut connected, &finals, &memberships) {
                Ok(()) => return Ok(Ended::Now(finals.end)),
                Err(TxnError::Retry(error)) => {
                    (self.say)(&format!("the transaction was aborted ({error}), retrying"));
                }
                // The record may be written all the same; the next round reads the topic and finds out.
                Err(TxnError::OutcomeUnknown(error)) => {
                    unknown_outcome = true;
                    (self.say)(&format!("the outcome of the transaction is unknown ({error}), checking"));
                }
                Err(TxnError::Fenced(_)) => return Err(EndError::Fenced),
                Err(TxnError::Refused(error) | TxnError::Fatal(error)) => return Err(error.into()),
            }
            // After an unknown outcome the producer is not usable; a new one completes or aborts the old transaction.
            producer = Some(connected).filter(TxnProducer::is_usable);
            self.wait("every transaction was aborted")?;
            self.groups.iter_mut().for_each(|group| group.source.refresh_membership());
        }
    }

    /// Waits until this process holds every partition of the old generation's input and everything routed is judged.
    fn hold(&mut self) -> Result<(), EndError> {
        if self.groups.is_empty() {
            let topic = self.bus.topics.raw.clone();
            let group = self.join(reader(&self.bus), &topic)?;
            self.groups.push(group);
        }
        let (mut least, mut since) = (i64::MAX, Instant::now());
        loop {
            self.check_stop()?;
            for group in &mut self.groups {
                group.poll()?;
            }
            if let Some(waiting) = self.held_by_others() {
                self.wait(&waiting)?;
                continue;
            }
            if self.bus.mode == Mode::Direct || self.groups.len() == 2 {
                return Ok(());
            }
            // Nothing is routed any more. While the backlog shrinks, the command stays out of match's group: partitions
            // assigned to it would only slow match down.
            let left = self.unjudged()?;
            if left < least {
                (least, since) = (left, Instant::now());
            }
            if left == 0 || since.elapsed() > STALLED {
                let topic = self.bus.topics.routed.clone();
                let group = self.join(Role::Match, &topic)?;
                self.groups.push(group);
            } else {
                self.wait(&format!("match has about {left} routed records left to judge"))?;
            }
        }
    }

    fn join(&mut self, role: Role, topic: &str) -> Result<OldGroup, EndError> {
        let partitions = self.retry(|ending| Ok(backlog::partitions(&ending.surveyor, topic)?));
        let partitions = partitions.map_err(|error| match error {
            EndError::Client(error) => EndError::NoTopic { topic: topic.to_owned(), error },
            error => error,
        })?;
        Ok(OldGroup::join(&self.bus, role, topic, partitions)?)
    }

    /// The distance in offsets between what is judged and the end of the routed topic; 0 if no record is left between
    /// them.
    ///
    /// Match itself writes relocation notices to the topic, in the transaction that commits what it has judged. So the
    /// ends are read twice: if they did not move, no record judged by then has sent a notice that is not judged itself.
    fn unjudged(&mut self) -> Result<i64, EndError> {
        self.retry(|ending| {
            let topic = &ending.bus.topics.routed;
            let match_group = ending.match_group()?;
            let ends = backlog::ends(&ending.surveyor, topic)?;
            let judged = backlog::judged(&match_group, &ending.surveyor, topic, &ends)?;
            let done = backlog::is_empty(&match_group, topic, &judged, &ends)?;
            if done && backlog::ends(&ending.surveyor, topic)? == ends {
                return Ok(0);
            }
            let left = ends.iter().map(|(partition, end)| end - judged.get(partition).unwrap_or(end));
            Ok(left.sum::<i64>().max(1))
        })
    }

    fn match_group(&self) -> Result<BaseConsumer<Quiet>, KafkaError> {
        offsets_of(&self.bus, Role::Match, &format!("{}-generation-end-judged", self.bus.app))
    }

    /// Describes the partitions that other members hold. The broker names members of classic groups only.
    fn held_by_others(&self) -> Option<String> {
        let group = self.groups.iter().find(|group| !group.missing().is_empty())?;
        let own = WorkerId { role: group.role, number: 0 }.id(&self.bus);
        let members = self.surveyor.fetch_group_list(Some(&group.id), PATIENCE).ok();
        let members = members.iter().flat_map(|list| list.groups()).flat_map(|found| found.members());
        let others: BTreeSet<String> = members
            .filter(|member| member.client_id() != own)
            .map(|member| {
                format!("{} ({})", member.client_id(), member.client_host().trim_start_matches('/'))
            })
            .collect();
        let (id, topic, missing) = (&group.id, &group.topic, group.missing());
        let holders = match others.is_empty() {
            true => "another member, or the group is still rebalancing".to_owned(),
            false => others.into_iter().collect::<Vec<_>>().join(", "),
        };
        Some(format!("partitions {missing:?} of {topic} are held in group {id} by {holders}"))
    }

    /// The membership in each group, or `None` if one is lost.
    fn memberships(&mut self) -> Result<Option<Vec<Arc<ConsumerGroupMetadata>>>, EndError> {
        if FAULTS.has(Mutant::EndWithoutMembership) {
            let strangers = self.groups.iter().map(|group| {
                offsets_of(&self.bus, group.role, "stranger")
                    .map(|stranger| stranger.group_metadata().map(Arc::new))
            });
            return Ok(strangers.collect::<Result<Option<Vec<_>>, _>>()?);
        }
        Ok(self.groups.iter_mut().map(|group| group.source.membership()).collect())
    }

    /// The offsets up to which the old generation has published.
    fn finals(&mut self, earlier: Option<&GenerationEnd>) -> Result<Finals, EndError> {
        let (generation, raw) = (self.bus.generation, self.bus.topics.raw.clone());
        let (mut read, mut missing, mut repeats) = (BTreeMap::new(), Vec::new(), 0);
        for partition in 0..self.groups[0].partitions {
            let (committed, (low, high)) = self.retry(|ending| ending.offsets(0, partition))?;
            let next = committed.unwrap_or(low);
            if committed.is_none() && low < high {
                missing.push(partition);
                repeats += u64::try_from(high - low).unwrap_or(0);
            }
            read.insert(partition, next);
        }
        if !missing.is_empty() && !self.request.accept_repeats {
            let group = self.groups[0].id.clone();
            return Err(EndError::NoOffset { generation, group, partitions: missing });
        }
        let (mut next, mut offsets) = (read.clone(), vec![read]);
        if self.groups.len() == 2 {
            let (judged, unjudged) = self.backlog()?;
            repeats += backlog::give_back(&mut next, &unjudged);
            offsets.push(judged);
        }
        // A generation that never came out of its silence has published nothing of its own.
        let id = self.retry(|ending| Ok(ids::topic_id(ending.surveyor.client(), &raw, PATIENCE)?))?;
        let id = id.map(|id| id.to_string());
        for (partition, next) in &mut next {
            *next = (*next).max(earlier.map_or(0, |earlier| earlier.next(*partition, id.as_deref())));
        }
        let end = GenerationEnd::new((&self.bus.app, generation), (&raw, id), next, repeats, clock::now());
        Ok(Finals { end, offsets })
    }

    /// A partition's committed offset, or the position in the changelog if it has none, and the partition's watermarks.
    fn offsets(&self, group: usize, partition: i32) -> Result<(Option<i64>, (i64, i64)), LookError> {
        let group = &self.groups[group];
        let committed = group.source.committed(partition)?;
        let ends = self.surveyor.fetch_watermarks(&group.topic, partition, PATIENCE)?;
        if committed.is_some() {
            return Ok((committed, ends));
        }
        // The group's offsets have expired, but the changelog has a position.
        let changelog = &self.bus.topics.changelog;
        let worker = WorkerId { role: group.role, number: 0 };
        // A topic that was deleted and created again has another id, and old offsets are meaningless in it.
        let id = ids::topic_id(self.surveyor.client(), &group.topic, PATIENCE)?.unwrap_or(TopicId::UNKNOWN);
        if group.role == Role::Route {
            let partitions = backlog::partitions(&self.surveyor, changelog)?;
            let known = Preflight::new(&self.bus, &worker, partitions).raw_offsets(id)?;
            return Ok((known.get(&partition).map(|highest| highest + 1), ends));
        }
        let log: BaseConsumer<Quiet> = clients::restorer(&self.bus, &worker).create_with_context(Quiet)?;
        let within = self.surveyor.fetch_watermarks(changelog, partition, PATIENCE)?;
        let progress = preflight::last_progress(&log, changelog, partition, within)?;
        let position = progress.and_then(|progress| progress.bus).filter(|position| {
            let same_topic = !position.topic_id.unwrap_or(TopicId::UNKNOWN).differs_from(id);
            position.topic.as_str() == group.topic && position.partition == partition && same_topic
        });
        Ok((position.map(|position| i64::try_from(position.next).unwrap_or(i64::MAX)), ends))
    }

    /// The judged offset of each routed partition, and the raw records behind everything that is not judged.
    fn backlog(&mut self) -> Result<(BTreeMap<i32, i64>, RawRecords), EndError> {
        let topic = self.bus.topics.routed.clone();
        let (mut judged, mut ends) = (BTreeMap::new(), BTreeMap::new());
        for partition in 0..self.groups[1].partitions {
            let (committed, (low, high)) = self.retry(|ending| ending.offsets(1, partition))?;
            judged.insert(partition, committed.unwrap_or(low).max(low));
            ends.insert(partition, high);
        }
        let match_group = self.match_group()?;
        let (mut records, mut unjudged, mut unreadable) = (0, BTreeSet::new(), None);
        let accept = self.request.accept_repeats;
        let deadline = self.deadline.max(Instant::now() + PATIENCE * 4);
        backlog::read(&match_group, &topic, (&judged, &ends), deadline, |message| {
            records += 1;
            let value = message.payload().unwrap_or_default();
            match routed::decode(value) {
                // An earlier generation has published it.
                _ if routed::is_silent(value) => {}
                Ok(routed) => unjudged.extend(raw_records(&routed)),
                Err(error) => {
                    unreadable = Some(format!(
                        "{topic} partition {} offset {}: {error}; another version wrote it: end the generation with that version",
                        message.partition(),
                        message.offset()
                    ));
                }
            }
            match (!accept && records >= COUNTED) || unreadable.is_some() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })?;
        if records > 0 && !accept {
            let least = if records >= COUNTED { "at least " } else { "" };
            let (generation, records) = (self.bus.generation, format!("{least}{records}"));
            return Err(EndError::Backlog { generation, topic, records });
        }
        match unreadable {
            Some(why) => Err(EndError::Unreadable(why)),
            None => Ok((judged, unjudged)),
        }
    }

    /// Connects a producer, which fences the producer of another `generation end`.
    fn connect(&mut self) -> Result<TxnProducer, EndError> {
        let worker = WorkerId { role: reader(&self.bus), number: 0 };
        let config = clients::producer(&self.bus, &worker);
        loop {
            self.check_stop()?;
            let (changelog, timeout) = (&self.bus.topics.changelog, self.bus.transaction_timeout);
            match TxnProducer::connect(&config, changelog, timeout) {
                Ok(producer) => return Ok(producer),
                Err(ConnectError::Away(why)) => self.wait(&format!("broker unreachable: {why}"))?,
                Err(ConnectError::Failed(
                    TxnError::Retry(error)
                    | TxnError::Refused(error)
                    | TxnError::OutcomeUnknown(error)
                    | TxnError::Fenced(error)
                    | TxnError::Fatal(error),
                )) => return Err(error.into()),
            }
        }
    }

    fn write(
        &self,
        producer: &mut TxnProducer,
        finals: &Finals,
        memberships: &[Arc<ConsumerGroupMetadata>],
    ) -> Result<(), TxnError> {
        let mut txn = producer.begin()?;
        txn.send(&Outgoing {
            topic: &self.bus.topics.generations,
            partition: Some(0),
            key: Some(finals.end.key().into_bytes().into()),
            value: Some(finals.end.encode().into()),
            ..Outgoing::default()
        })?;
        // Nobody resumes from the old group's offsets, so they need no leader epochs.
        let epochs = Epochs::in_records(&BTreeMap::new());
        let groups = self.groups.iter().zip(&finals.offsets).zip(memberships);
        let offsets: Vec<Offsets<'_>> = groups
            .map(|((group, next), membership)| Offsets {
                topic: &group.topic,
                next,
                epochs: &epochs,
                membership,
            })
            .collect();
        txn.commit_all(&offsets).map(drop)
    }

    fn read_ends(&mut self) -> Result<BTreeMap<u32, GenerationEnd>, EndError> {
        self.retry(|ending| Ok(ending.ends.look(&ending.surveyor)?.clone()))
    }

    /// Repeats a request until it succeeds, fails for good, or the deadline passes.
    fn retry<T>(&mut self, mut ask: impl FnMut(&mut Self) -> Result<T, LookError>) -> Result<T, EndError> {
        let backoff = Backoff::every(Duration::from_millis(200));
        let poll = Poll { stop: Some(self.stop), backoff, deadline: Some(self.deadline) };
        let mut unanswered = None;
        let answer = poll.ask(|| match ask(self) {
            Ok(answer) => Ok(Polled::Final(answer)),
            Err(LookError::Away(error)) if !is_final(&error) => {
                unanswered = Some(error);
                Ok(Polled::NotYet)
            }
            Err(LookError::Away(error)) => Err(error.into()),
            Err(foreign) => Err(EndError::Unreadable(foreign.to_string())),
        })?;
        self.check_stop()?;
        match (answer, unanswered) {
            (Some(answer), _) => Ok(answer),
            (None, Some(error)) => Err(error.into()),
            (None, None) => Err(EndError::Stopped),
        }
    }

    fn check_stop(&self) -> Result<(), EndError> {
        if self.stop.is_requested() { Err(EndError::Stopped) } else { Ok(()) }
    }

    /// Tells the operator what the command waits for, and waits a moment.
    fn wait(&mut self, waiting: &str) -> Result<(), EndError> {
        if Instant::now() > self.deadline {
            let (generation, seconds) = (self.bus.generation, self.request.timeout.as_secs());
            return Err(EndError::Held { generation, seconds, waiting: waiting.to_owned() });
        }
        if self.last_said.0 != waiting || self.last_said.1.elapsed() > REPEAT_INTERVAL {
            (self.say)(&format!("waiting: {waiting}"));
            self.last_said = (waiting.to_owned(), Instant::now());
        }
        self.stop.wait(Duration::from_millis(100));
        Ok(())
    }
}

/// True if a retry would not help.
fn is_final(error: &KafkaError) -> bool {
    use RDKafkaErrorCode as Code;
    matches!(
        error.rdkafka_error_code(),
        Some(
            Code::UnknownTopicOrPartition
                | Code::UnknownTopic
                | Code::TopicAuthorizationFailed
                | Code::GroupAuthorizationFailed
                | Code::ClusterAuthorizationFailed
        )
    )
}

/// Where in the raw topic a routed record comes from, with the forgets that it carries. A relocation notice comes from the
/// record that moved the article: if the next generation publishes that one again, it sends the notice again.
fn raw_records(routed_record: &RoutedRecord) -> Vec<(i32, i64)> {
    let forgets = routed_record.forgets.iter().map(|forget| &forget.from);
    let positions = forgets.chain(routed_record.event.as_ref().map(RoutedEvent::from));
    let raw_offset = |position: &Position| match position {
        Position::Topic { partition, offset, .. } => Some((*partition, *offset)),
        _ => None,
    };
    positions.filter_map(raw_offset).collect()
}
