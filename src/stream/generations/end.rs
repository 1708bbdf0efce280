//! `samestory generation end`: ends a generation from inside its groups.
//!
//! It joins the old generation's group as an ordinary member and waits until it holds every partition, so nobody else reads.
//! Then it writes the generation-end record and the final offsets in one transaction, under that membership (KIP-447): if a
//! member of the old generation has come back meanwhile, the broker refuses the offsets, and the transaction aborts. In mode
//! `routed` it holds route's partitions first, waits until match has judged everything that was routed, and then holds
//! match's partitions too; the one transaction is under both memberships.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerGroupMetadata};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message;

use crate::config::{Bus, Mode};
use crate::event::GenerationEnd;
use crate::model::{Position, TopicId};

use super::{EndLog, LookError, backlog, offsets_of};
use crate::stream::clients::{self, PATIENCE, Quiet, Role, Worker};
use crate::stream::record::{Epochs, Outgoing};
use crate::stream::recorded::Recorded;
use crate::stream::routed::{self, Carried, Routed};
use crate::stream::source::{Happened, Source};
use crate::stream::txn::{ConnectError, Offsets, TxnError, TxnProducer};
use crate::stream::{faults, ids, recorded, restore};

/// How long routed records may stay as many as they are before somebody is looked for who judges them.
const STALLED: Duration = Duration::from_secs(5);
/// How often it says what it waits for, if that stays the same.
const SAY_AGAIN: Duration = Duration::from_secs(10);
/// Unjudged records that are counted one by one before it refuses.
const COUNTED: usize = 10_000;

/// Which generation is ended, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndRequest {
    /// The generation; the one before that of the settings, unless it is given.
    pub generation: Option<u32>,
    /// How long to wait until nobody else holds a partition.
    pub timeout: Duration,
    /// End although articles will be published twice, and count them.
    pub accept_repeats: bool,
}

/// How it went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The record is written.
    Now(GenerationEnd),
    /// It had been written before.
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
    /// It must go by their order.
    #[error(
        "generation {0} has not ended, so what it has published is not known: end it first with --generation {0}"
    )]
    EarlierIsOpen(u32),
    /// A topic of the old generation is missing.
    #[error("topic {topic} does not exist, or may not be seen (docs/security.md): {error}")]
    NoTopic {
        /// Which.
        topic: String,
        /// As the client says it.
        error: KafkaError,
    },
    /// Others hold partitions.
    #[error(
        "generation {generation} has not ended: after {seconds} s {waiting}. Stop the processes of the old generation and try again, or give --timeout more seconds"
    )]
    Held {
        /// Which generation.
        generation: u32,
        /// How long it waited.
        seconds: u64,
        /// For whom.
        waiting: String,
    },
    /// Routed records that nobody judges.
    #[error(
        "generation {generation} has not ended: {records} records of {topic} are routed and not judged, and no match process is there to judge them. Start the old generation once more with --role match until it has, or give --accept-repeats to have the new generation publish them"
    )]
    Backlog {
        /// Which generation.
        generation: u32,
        /// The routed topic.
        topic: String,
        /// How many, or how many at least.
        records: String,
    },
    /// A partition without a committed offset.
    #[error(
        "generation {generation} has not ended: group {group} has no committed offset for partitions {partitions:?} (never read, or expired). Start the old generation once more, which finds its place again, or give --accept-repeats to have the new generation publish all of them"
    )]
    NoOffset {
        /// Which generation.
        generation: u32,
        /// Whose.
        group: String,
        /// Which.
        partitions: Vec<i32>,
    },
    /// What lies in a topic cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// Two at once.
    #[error("another `samestory generation end` for this generation is at work; leave it to that one")]
    Fenced,
    /// It was interrupted.
    #[error("interrupted; nothing was written")]
    Stopped,
    /// The client cannot go on.
    #[error("Kafka: {0}")]
    Client(#[from] KafkaError),
}

/// Ends a generation. `say` gets a line whenever there is news for the operator.
///
/// # Errors
/// See [`EndError`]; then the generation has not ended.
pub fn end(
    bus: &Bus,
    request: &EndRequest,
    stop: &AtomicBool,
    say: &mut dyn FnMut(&str),
) -> Result<Ended, EndError> {
    let before = bus.generation.checked_sub(1).filter(|&before| before > 0);
    let generation = request.generation.or(before).ok_or(EndError::NoneBefore)?;
    let mut old = bus.of_generation(generation);
    // A name of its own: with a worker's it would fence that worker's transactions.
    old.instance = "generation-end".to_owned();
    old.static_membership = false;
    let worker = Worker { role: reader(&old), number: 0 };
    let surveyor = clients::surveyor(&old, &format!("{}-survey", worker.id(&old)));
    let mut ending = Ending {
        surveyor: surveyor.create_with_context(Quiet)?,
        ends: EndLog::new(&old, &worker),
        bus: old,
        request: *request,
        deadline: Instant::now() + request.timeout,
        stop,
        say,
        said: (String::new(), Instant::now()),
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

/// A membership in one of the old generation's groups.
struct Group {
    id: String,
    role: Role,
    topic: String,
    partitions: i32,
    source: Source,
    held: BTreeSet<i32>,
}

impl Group {
    fn join(bus: &Bus, role: Role, topic: &str, partitions: i32) -> Result<Group, KafkaError> {
        let worker = Worker { role, number: 0 };
        let source = Source::join(&clients::consumer(bus, &worker), topic, bus.batch, usize::MAX)?;
        let (id, topic) = (clients::group(bus, role), topic.to_owned());
        Ok(Group { id, role, topic, partitions, source, held: BTreeSet::new() })
    }

    fn poll(&mut self) -> Result<(), EndError> {
        let happened = self.source.collect(Duration::from_millis(100));
        for event in happened.map_err(|error| EndError::Unreadable(error.to_string()))? {
            match event {
                Happened::Assigned(partitions) => self.held.extend(partitions),
                Happened::Revoked(partitions) => {
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

/// Partitions and offsets of the raw topic.
type RawPlaces = BTreeSet<(i32, i64)>;

/// What is written: the record, and the offsets of each group that go with it.
struct Finals {
    end: GenerationEnd,
    offsets: Vec<BTreeMap<i32, i64>>,
}

struct Ending<'a> {
    /// The application in the generation that is to end.
    bus: Bus,
    request: EndRequest,
    deadline: Instant,
    stop: &'a AtomicBool,
    say: &'a mut dyn FnMut(&str),
    said: (String, Instant),
    surveyor: BaseConsumer<Quiet>,
    ends: EndLog,
    /// The group that reads the raw topic, then the one that judges, if that is another.
    groups: Vec<Group>,
}

impl Ending<'_> {
    fn run(&mut self) -> Result<Ended, EndError> {
        let generation = self.bus.generation;
        let mut unknown_outcome = false;
        let mut producer = None;
        loop {
            let ends = self.look()?;
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
            // Before the offsets: they are final only as long as this membership lasts.
            let Some(memberships) = self.memberships()? else {
                producer = Some(connected);
                self.wait("the membership was lost and is renewed")?;
                continue;
            };
            let finals = self.finals(earlier.as_ref())?;
            faults::point("generation-end");
            match self.write(&mut connected, &finals, &memberships) {
                Ok(()) => return Ok(Ended::Now(finals.end)),
                Err(TxnError::Retry(error)) => {
                    (self.say)(&format!("the transaction was aborted ({error}); looking again"));
                }
                // It may be written all the same: the next look tells.
                Err(TxnError::Lost(error)) => {
                    unknown_outcome = true;
                    (self.say)(&format!(
                        "the outcome of the transaction is not known ({error}); looking again"
                    ));
                }
                Err(TxnError::Usurped(_)) => return Err(EndError::Fenced),
                Err(TxnError::Refused(error) | TxnError::Fatal(error)) => return Err(error.into()),
            }
            // After an unknown outcome it is not usable, and a new one decides the old transaction.
            producer = Some(connected).filter(TxnProducer::is_usable);
            self.wait("the transaction was aborted again and again")?;
            self.groups.iter_mut().for_each(|group| group.source.refresh_membership());
        }
    }

    /// Waits until every partition of the old generation's input is held here, and everything that it routed is judged.
    fn hold(&mut self) -> Result<(), EndError> {
        if self.groups.is_empty() {
            let topic = self.bus.topics.raw.clone();
            let group = self.join(reader(&self.bus), &topic)?;
            self.groups.push(group);
        }
        let (mut least, mut since) = (i64::MAX, Instant::now());
        loop {
            self.check_in()?;
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
            // Nothing is routed any more. Whoever judges is left alone while the backlog shrinks: a share of the
            // partitions held here would only slow it down.
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

    fn join(&mut self, role: Role, topic: &str) -> Result<Group, EndError> {
        let partitions = self.again(|ending| Ok(backlog::partitions(&ending.surveyor, topic)?));
        let partitions = partitions.map_err(|error| match error {
            EndError::Client(error) => EndError::NoTopic { topic: topic.to_owned(), error },
            error => error,
        })?;
        Ok(Group::join(&self.bus, role, topic, partitions)?)
    }

    /// Offsets between what is judged and the end of the routed topic; 0 where no record is left among them.
    ///
    /// Match itself writes relocation notices to the topic, in the transaction that commits what it has judged. So the ends
    /// are asked for again: if they stayed, whatever was judged by then has sent no notice that is not judged too.
    fn unjudged(&mut self) -> Result<i64, EndError> {
        self.again(|ending| {
            let topic = &ending.bus.topics.routed;
            let judges = ending.judges()?;
            let ends = backlog::ends(&ending.surveyor, topic)?;
            let judged = backlog::judged(&judges, &ending.surveyor, topic, &ends)?;
            let done = backlog::is_empty(&judges, topic, &judged, &ends)?;
            if done && backlog::ends(&ending.surveyor, topic)? == ends {
                return Ok(0);
            }
            let left = ends.iter().map(|(partition, end)| end - judged.get(partition).unwrap_or(end));
            Ok(left.sum::<i64>().max(1))
        })
    }

    fn judges(&self) -> Result<BaseConsumer<Quiet>, KafkaError> {
        offsets_of(&self.bus, Role::Match, &format!("{}-generation-end-judged", self.bus.app))
    }

    /// What is not held here, and who seems to have it. The broker names members of classic groups only.
    fn held_by_others(&self) -> Option<String> {
        let group = self.groups.iter().find(|group| !group.missing().is_empty())?;
        let own = Worker { role: group.role, number: 0 }.id(&self.bus);
        let members = self.surveyor.fetch_group_list(Some(&group.id), PATIENCE).ok();
        let members = members.iter().flat_map(|list| list.groups()).flat_map(|found| found.members());
        let others: BTreeSet<String> = members
            .filter(|member| member.client_id() != own)
            .map(|member| {
                format!("{} ({})", member.client_id(), member.client_host().trim_start_matches('/'))
            })
            .collect();
        let (id, topic, missing) = (&group.id, &group.topic, group.missing());
        let whom = match others.is_empty() {
            true => "another member, or the group is still being joined".to_owned(),
            false => others.into_iter().collect::<Vec<_>>().join(", "),
        };
        Some(format!("partitions {missing:?} of {topic} are held in group {id} by {whom}"))
    }

    /// Who we are in each group; nothing if one is lost.
    fn memberships(&mut self) -> Result<Option<Vec<Arc<ConsumerGroupMetadata>>>, EndError> {
        if faults::mutant("end-without-membership") {
            let strangers = self.groups.iter().map(|group| {
                offsets_of(&self.bus, group.role, "stranger")
                    .map(|stranger| stranger.group_metadata().map(Arc::new))
            });
            return Ok(strangers.collect::<Result<Option<Vec<_>>, _>>()?);
        }
        Ok(self.groups.iter_mut().map(|group| group.source.membership()).collect())
    }

    /// Up to where the old generation has published.
    fn finals(&mut self, earlier: Option<&GenerationEnd>) -> Result<Finals, EndError> {
        let (generation, raw) = (self.bus.generation, self.bus.topics.raw.clone());
        let (mut read, mut missing, mut repeats) = (BTreeMap::new(), Vec::new(), 0);
        for partition in 0..self.groups[0].partitions {
            let (committed, (low, high)) = self.again(|ending| ending.place(0, partition))?;
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
        let id = self.again(|ending| Ok(ids::topic_id(ending.surveyor.client(), &raw, PATIENCE)?))?;
        let id = id.map(|id| id.to_string());
        for (partition, next) in &mut next {
            *next = (*next).max(earlier.map_or(0, |earlier| earlier.next(*partition, id.as_deref())));
        }
        let end = GenerationEnd::new((&self.bus.app, generation), (&raw, id), next, repeats, restore::now());
        Ok(Finals { end, offsets })
    }

    /// A partition's committed offset (or, with state, the position in the changelog) and where its log starts and ends.
    fn place(&self, group: usize, partition: i32) -> Result<(Option<i64>, (i64, i64)), LookError> {
        let group = &self.groups[group];
        let committed = group.source.committed(partition)?;
        let ends = self.surveyor.fetch_watermarks(&group.topic, partition, PATIENCE)?;
        if committed.is_some() {
            return Ok((committed, ends));
        }
        // The group's offsets have expired, but state knows its place.
        let changelog = &self.bus.topics.changelog;
        let worker = Worker { role: group.role, number: 0 };
        // A topic that was deleted and created again has another id, and old offsets mean nothing in it.
        let id = ids::topic_id(self.surveyor.client(), &group.topic, PATIENCE)?.unwrap_or(TopicId::UNKNOWN);
        if group.role == Role::Route {
            let partitions = backlog::partitions(&self.surveyor, changelog)?;
            let known = Recorded::new(&self.bus, &worker, partitions).raw_offsets(id)?;
            return Ok((known.get(&partition).map(|highest| highest + 1), ends));
        }
        let log: BaseConsumer<Quiet> = clients::restorer(&self.bus, &worker).create_with_context(Quiet)?;
        let within = self.surveyor.fetch_watermarks(changelog, partition, PATIENCE)?;
        let progress = recorded::last_progress(&log, changelog, partition, within)?;
        let position = progress.and_then(|progress| progress.bus).filter(|position| {
            let of_this_topic = !position.topic_id.unwrap_or(TopicId::UNKNOWN).differs_from(id);
            position.topic.as_str() == group.topic && position.partition == partition && of_this_topic
        });
        Ok((position.map(|position| i64::try_from(position.next).unwrap_or(i64::MAX)), ends))
    }

    /// By routed partition, what is judged; and the raw places of everything that is not.
    fn backlog(&mut self) -> Result<(BTreeMap<i32, i64>, RawPlaces), EndError> {
        let topic = self.bus.topics.routed.clone();
        let (mut judged, mut ends) = (BTreeMap::new(), BTreeMap::new());
        for partition in 0..self.groups[1].partitions {
            let (committed, (low, high)) = self.again(|ending| ending.place(1, partition))?;
            judged.insert(partition, committed.unwrap_or(low).max(low));
            ends.insert(partition, high);
        }
        let judges = self.judges()?;
        let (mut records, mut unjudged, mut unreadable) = (0, BTreeSet::new(), None);
        let accept = self.request.accept_repeats;
        let deadline = self.deadline.max(Instant::now() + PATIENCE * 4);
        backlog::read(&judges, &topic, (&judged, &ends), deadline, |message| {
            records += 1;
            let value = message.payload().unwrap_or_default();
            match routed::decode(value) {
                // An earlier generation has published it.
                _ if routed::is_silent(value) => {}
                Ok(routed) => unjudged.extend(places(&routed)),
                Err(error) => {
                    unreadable = Some(format!(
                        "{topic} partition {} offset {}: {error}; the old generation is of another version: end it with that one",
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

    /// A producer of its own, which fences that of another `generation end`.
    fn connect(&mut self) -> Result<TxnProducer, EndError> {
        let worker = Worker { role: reader(&self.bus), number: 0 };
        let config = clients::producer(&self.bus, &worker);
        loop {
            self.check_in()?;
            let (changelog, timeout) = (&self.bus.topics.changelog, self.bus.transaction_timeout);
            match TxnProducer::connect(&config, changelog, timeout) {
                Ok(producer) => return Ok(producer),
                Err(ConnectError::Away(why)) => self.wait(&format!("broker unreachable: {why}"))?,
                Err(ConnectError::Failed(
                    TxnError::Retry(error)
                    | TxnError::Refused(error)
                    | TxnError::Lost(error)
                    | TxnError::Usurped(error)
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
            key: Some(finals.end.key().into_bytes()),
            value: Some(finals.end.encode()),
            ..Outgoing::default()
        })?;
        // The old group's offsets are not read again, so nobody compares epochs with them.
        let epochs = Epochs::of(&BTreeMap::new());
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

    fn look(&mut self) -> Result<BTreeMap<u32, GenerationEnd>, EndError> {
        self.again(|ending| Ok(ending.ends.look(&ending.surveyor)?.clone()))
    }

    /// Asks until there is an answer, or the time is over.
    fn again<T>(&mut self, mut ask: impl FnMut(&mut Self) -> Result<T, LookError>) -> Result<T, EndError> {
        loop {
            self.check_in()?;
            match ask(self) {
                Ok(answer) => return Ok(answer),
                Err(LookError::Away(error)) if !is_final(&error) && Instant::now() < self.deadline => {
                    std::thread::sleep(Duration::from_millis(200));
                }
                Err(LookError::Away(error)) => return Err(error.into()),
                Err(foreign) => return Err(EndError::Unreadable(foreign.to_string())),
            }
        }
    }

    fn check_in(&self) -> Result<(), EndError> {
        if self.stop.load(Ordering::Relaxed) { Err(EndError::Stopped) } else { Ok(()) }
    }

    /// Says what it waits for, now and then, and waits a moment.
    fn wait(&mut self, waiting: &str) -> Result<(), EndError> {
        if Instant::now() > self.deadline {
            let (generation, seconds) = (self.bus.generation, self.request.timeout.as_secs());
            return Err(EndError::Held { generation, seconds, waiting: waiting.to_owned() });
        }
        if self.said.0 != waiting || self.said.1.elapsed() > SAY_AGAIN {
            (self.say)(&format!("waiting: {waiting}"));
            self.said = (waiting.to_owned(), Instant::now());
        }
        std::thread::sleep(Duration::from_millis(100));
        Ok(())
    }
}

/// Whether asking again would not help.
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
fn places(carried: &Carried) -> Vec<(i32, i64)> {
    let forgets = carried.forgets.iter().map(|forget| &forget.from);
    let positions = forgets.chain(carried.routed.as_ref().map(Routed::from));
    let place = |position: &Position| match position {
        Position::Topic { partition, offset, .. } => Some((*partition, *offset)),
        _ => None,
    };
    positions.filter_map(place).collect()
}
