//! The stateless stage: raw article → fingerprint → the partition where its language lives.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};

use crate::config::{Bus, home};
use crate::detect::Incoming;
use crate::event::DeadLetter;
use crate::health::Standing;
use crate::metrics;
use crate::model::{ArticleId, EventTime};
use crate::store::Committed;

use super::clients::{PATIENCE, Quiet};
use super::decode::{Decoded, Decoder};
use super::homes::{At, Homes, Stay};
use super::outgoing::{Original, Writer};
use super::payload::{Form, Placed};
use super::predecessor::{OFTEN, Predecessor, admit};
use super::record::{Headers, Outgoing, Record};
use super::routed::{self, Place};
use super::source::Source;
use super::stage::{Planning, Stage};
use super::takeover::{Accept, Takeover, decide_stateless};

/// The stateless stage.
pub(super) struct Route {
    pub(super) bus: Bus,
    pub(super) decoder: Decoder,
    pub(super) writer: Writer,
    pub(super) surveyor: BaseConsumer<Quiet>,
    pub(super) accept: Accept,
    /// Of the routed topic.
    pub(super) partitions: i32,
    pub(super) predecessor: Option<Predecessor>,
    pub(super) tasks: BTreeMap<i32, Task>,
}

/// One partition's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// Its offset is asked for.
    Claiming {
        not_before: Instant,
    },
    Running,
    /// Waits for the generation before, and goes on from here.
    Held {
        not_before: Instant,
        next: i64,
    },
    /// Somebody has to decide.
    Stopped,
}

/// What goes out for a batch.
pub(super) struct Routed {
    records: Vec<Send>,
    /// Partitions that wait for the generation before when this is done, and where they go on.
    held: Vec<(i32, i64)>,
}

enum Send {
    To { partition: i32, key: Vec<u8>, value: Vec<u8>, headers: Headers, time: Option<EventTime> },
    Dead { letter: DeadLetter, record: Record },
}

impl Send {
    /// State is to follow, and nothing goes out. Nothing for a dead letter, of which there is no state.
    fn silenced(self) -> Option<Send> {
        match self {
            Send::To { partition, key, mut value, headers, time } => {
                routed::silence(&mut value);
                Some(Send::To { partition, key, value, headers, time })
            }
            Send::Dead { .. } => None,
        }
    }
}

impl Route {
    fn claim(&self, partition: i32, source: &Source) -> Result<Takeover, rdkafka::error::KafkaError> {
        let committed = source.committed(partition)?;
        let (low, high) = self.surveyor.fetch_watermarks(source.topic(), partition, PATIENCE)?;
        Ok(match decide_stateless(committed, low, high, self.accept) {
            Takeover::Begin => {
                Takeover::Resume(source.first_offset(partition, self.bus.start, (low, high))?)
            }
            other => other,
        })
    }

    /// The routed record of one raw record, and where else its id must be forgotten.
    fn route(
        &self,
        partition: i32,
        record: Record,
        (incoming, payload): Decoded,
        out: &mut Vec<Send>,
        homes: &mut Homes,
    ) {
        let topic = &self.bus.topics.raw;
        let place = Place { topic, partition, offset: record.offset };
        let at = At { partition, offset: record.offset };
        match incoming {
            Incoming::Article(prepared) => {
                let home = home(&self.bus.languages, prepared.language, self.partitions);
                let (form, value) = match &payload {
                    Some((form, bytes)) => (*form, bytes.as_slice()),
                    None => (Form::Own, record.value.as_deref().unwrap_or_default()),
                };
                let value = routed::encode_article(&prepared, place, record.time, form, value);
                if let Some(before) = homes.goes(&prepared.id, home, at) {
                    self.leave(&prepared.id, before, record.time, out);
                }
                let key = prepared.id.as_str().into();
                out.push(Send::To {
                    partition: home,
                    key,
                    value,
                    headers: record.headers,
                    time: record.time,
                });
            }
            Incoming::Delete(id) => {
                if let Some(before) = homes.deleted(&id, at) {
                    self.leave(&id, before, record.time, out);
                }
                let value = routed::encode_delete(&id, place, record.time);
                for partition in 0..self.partitions {
                    let (key, value) = (id.as_str().into(), value.clone());
                    let headers = record.headers.clone();
                    out.push(Send::To { partition, key, value, headers, time: record.time });
                }
            }
            Incoming::DeadLetter(letter) => out.push(Send::Dead { letter, record }),
            Incoming::Forget(_) => {}
        }
    }

    /// A stay is over within the batch: wherever the id was not, it is forgotten now.
    fn leave(&self, id: &ArticleId, stay: Stay, time: Option<EventTime>, out: &mut Vec<Send>) {
        for (partition, at) in stay.elsewhere(self.partitions) {
            out.push(self.forgetting(partition, time, &[(id, at)]));
        }
    }

    /// Tells one partition to forget.
    fn forgetting(&self, partition: i32, time: Option<EventTime>, ids: &[(&ArticleId, At)]) -> Send {
        let ids = ids.iter().map(|&(id, at)| (id, at.partition, at.offset));
        let value = routed::encode_forget(&self.bus.topics.raw, time, ids);
        Send::To { partition, key: b"forget".to_vec(), value, headers: Headers::new(), time }
    }

    /// An article may have changed its language: wherever it did not go, it is forgotten.
    fn forget(&self, time: Option<EventTime>, out: &mut Vec<Send>, homes: &Homes) {
        for partition in 0..self.partitions {
            // A record for each few thousand ids: none comes near the largest that a topic takes.
            for ids in homes.elsewhere(partition).chunks(1000) {
                out.push(self.forgetting(partition, time, ids));
            }
        }
    }
}

impl Stage for Route {
    type Planned = Routed;

    fn assigned(&mut self, partition: i32) {
        self.tasks.insert(partition, Task::Claiming { not_before: Instant::now() });
    }

    fn revoked(&mut self, partition: i32) {
        self.tasks.remove(&partition);
    }

    fn advance(&mut self, source: &Source) -> Vec<(i32, i64)> {
        let mut ready = Vec::new();
        for (&partition, task) in &mut self.tasks {
            if let Task::Held { not_before, next } = *task
                && not_before <= Instant::now()
            {
                ready.push((partition, next));
                *task = Task::Running;
            }
        }
        let claiming = self.tasks.iter().filter(|(_, task)| match task {
            Task::Claiming { not_before } => *not_before <= Instant::now(),
            Task::Running | Task::Held { .. } | Task::Stopped => false,
        });
        let claiming: Vec<i32> = claiming.map(|(&partition, _)| partition).collect();
        for partition in claiming {
            let task = match self.claim(partition, source) {
                Ok(Takeover::Resume(next)) => {
                    tracing::info!(partition, next, "going on");
                    ready.push((partition, next));
                    Task::Running
                }
                Ok(Takeover::Accepted { from, lost }) => {
                    tracing::warn!(partition, from, lost, "going on as the operator has said");
                    ready.push((partition, from));
                    Task::Running
                }
                Ok(Takeover::Stop(disagreement)) => {
                    tracing::error!(partition, "stopped: {disagreement}");
                    Task::Stopped
                }
                Ok(Takeover::Begin) => Task::Claiming { not_before: Instant::now() },
                Err(error) => {
                    tracing::debug!(%error, partition, "taking over; it is tried again");
                    Task::Claiming { not_before: Instant::now() + Duration::from_millis(200) }
                }
            };
            self.tasks.insert(partition, task);
        }
        ready
    }

    fn standing(&self) -> Vec<(i32, Standing)> {
        let standing = |task: &Task| match task {
            Task::Claiming { .. } => Standing::TakingOver,
            Task::Running | Task::Held { .. } => Standing::Running(Arc::default()),
            Task::Stopped => Standing::Stopped,
        };
        self.tasks.iter().map(|(&partition, task)| (partition, standing(task))).collect()
    }

    fn is_taking_over(&self) -> bool {
        self.tasks.values().any(|task| match task {
            Task::Claiming { not_before } => *not_before <= Instant::now(),
            Task::Running | Task::Held { .. } | Task::Stopped => false,
        })
    }

    fn gather(&mut self, records: &BTreeMap<i32, Vec<Record>>) -> Result<(), String> {
        self.decoder.gather(records.values().flatten())
    }

    fn plan(&mut self, records: BTreeMap<i32, Vec<Record>>) -> Planning<Routed> {
        let mut out = Vec::new();
        let (mut next, mut held, mut halted) = (BTreeMap::new(), Vec::new(), Vec::new());
        let mut time = None;
        // What is said and what is not never mix: an article's versions come from one partition.
        let mut homes = [Homes::default(), Homes::default()];
        for (partition, mut records) in records {
            let admitted = admit(&mut self.predecessor, partition, &mut records);
            let silent = records.first().is_some_and(|first| first.offset < admitted.silent_below);
            match (records.last(), admitted.waits) {
                (Some(last), Some(_)) => held.push((partition, last.offset + 1)),
                (None, Some(from)) => {
                    halted.push(partition);
                    self.tasks
                        .insert(partition, Task::Held { not_before: Instant::now() + OFTEN, next: from });
                }
                (_, None) => {}
            }
            let mut sends = Vec::new();
            let topic = &self.bus.topics.raw;
            let place = |record: &Record| Place { topic, partition, offset: record.offset }.position();
            let decoded = self.decoder.decode_all(&records, place);
            for (record, decoded) in records.into_iter().zip(decoded) {
                next.insert(partition, record.offset + 1);
                time = time.max(record.time);
                self.route(partition, record, decoded, &mut sends, &mut homes[usize::from(silent)]);
            }
            out.extend(
                sends.into_iter().filter_map(|send| if silent { send.silenced() } else { Some(send) }),
            );
        }
        self.decoder.settle();
        if self.partitions > 1 {
            let [spoken, silent] = &homes;
            self.forget(time, &mut out, spoken);
            let mut sends = Vec::new();
            self.forget(time, &mut sends, silent);
            out.extend(sends.into_iter().filter_map(Send::silenced));
        }
        Planning { planned: Routed { records: out, held }, next, halted }
    }

    fn outgoing<'a>(&'a self, routed: &'a Routed) -> Vec<Outgoing<'a>> {
        let outgoing = |send: &'a Send| match send {
            Send::To { partition, key, value, headers, time } => Outgoing {
                topic: &self.bus.topics.routed,
                partition: Some(*partition),
                key: Some(key.clone()),
                value: Some(value.clone()),
                headers: headers.clone(),
                time: *time,
            },
            Send::Dead { letter, record } => {
                self.writer.dead_letter(letter, Original { record, placed: Placed::WHOLE })
            }
        };
        routed.records.iter().map(outgoing).collect()
    }

    fn apply(&mut self, routed: Routed, _: &Committed) -> Vec<i32> {
        for send in &routed.records {
            if let Send::Dead { letter, .. } = send {
                metrics::dead_letters(letter.reason.as_str(), 1);
            }
        }
        for &(partition, next) in &routed.held {
            self.tasks.insert(partition, Task::Held { not_before: Instant::now() + OFTEN, next });
        }
        routed.held.into_iter().map(|(partition, _)| partition).collect()
    }

    fn out_of_range(&mut self) -> Vec<i32> {
        let running: Vec<i32> = self.tasks.keys().copied().collect();
        running.iter().for_each(|&partition| self.assigned(partition));
        running
    }

    fn upkeep(&mut self) -> Vec<i32> {
        Vec::new()
    }

    fn close(&mut self) {
        self.tasks.clear();
    }
}
