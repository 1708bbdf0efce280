//! Reading and fingerprinting, ahead of the verdicts: one thread reads, as many as asked for prepare, and the
//! results come out in the order of the input however many there are.
//!
//! Chunk n goes to worker n modulo their number, and results are taken from the workers in the same turn; so order
//! needs no sorting, and bounded channels keep a fast reader from running ahead.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, RecvError, SyncSender, TryRecvError, sync_channel};
use std::thread::Scope;

use serde_json::value::RawValue;

use crate::formats::fields::{DecodeFailure, Field, Fields, RecordContext};
use crate::formats::{Event, Owner, isolate, json};
use samestory_engine::engine::{Incoming, Item, Preparer};
use samestory_engine::model::DeadLetter;
use samestory_engine::model::{BoundedStr, Position};

use super::RunError;
use super::records::{Format, Record, Records};
use super::source::Source;

/// Records that travel together at most, and their bytes.
const CHUNK: usize = 128;
const CHUNK_BYTES: usize = 256 * 1024;
/// Chunks that wait for a worker, and for their verdicts.
const AHEAD: usize = 2;

/// What is read, and how.
#[derive(Clone, Debug)]
pub struct Reading {
    /// In this order.
    pub sources: Vec<Source>,
    /// How they are written; told from name and content if not given.
    pub format: Option<Format>,
    /// The crawler's names.
    pub fields: Fields,
    /// Who may write about an id. Records of files have no headers.
    pub owner: Owner,
    /// An article without an id is named by its file and line.
    pub name_by_line: bool,
    /// Longer records are dead letters, unread.
    pub limit: usize,
}

/// One of the sources, and how many of its records are to be passed over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    pub(crate) source: usize,
    pub(crate) skip: u64,
    /// A later run reads on in it, and judges what is not complete yet.
    pub(crate) grows: bool,
}

struct Chunk {
    source: usize,
    records: Vec<Record>,
    next: u64,
    name_by_line: bool,
    unfinished: Option<u64>,
    failure: Option<RunError>,
}

/// Records of one source, ready to be judged.
pub(crate) struct Ready {
    pub(crate) source: usize,
    pub(crate) items: Vec<ReadyItem>,
    /// How many records of the source lie before what follows.
    pub(crate) next: u64,
    /// The line of a record that is not complete yet, and is left for a later run.
    pub(crate) unfinished: Option<u64>,
    /// Why nothing follows.
    pub(crate) failure: Option<RunError>,
}

pub(crate) struct ReadyItem {
    pub(crate) item: Item,
    /// The article as it came.
    pub(crate) raw: Option<Box<RawValue>>,
    /// It had no id of its own.
    pub(crate) named: bool,
    /// What stands in the file, of a record that cannot be judged.
    pub(crate) original: Option<Vec<u8>>,
}

/// Where results come out.
pub(crate) struct Stage {
    workers: Vec<Receiver<Ready>>,
    turn: usize,
}

impl Stage {
    /// Starts the threads.
    pub(crate) fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        reading: &'scope Reading,
        preparer: Preparer,
        starts: Vec<Start>,
        threads: NonZeroUsize,
        bytes_read: Arc<AtomicU64>,
    ) -> Stage {
        let (mut inward, mut outward) = (Vec::new(), Vec::new());
        for _ in 0..threads.get() {
            let (to_worker, chunks) = sync_channel::<Chunk>(AHEAD);
            let (results, from_worker) = sync_channel::<Ready>(AHEAD);
            scope.spawn(move || {
                for chunk in chunks {
                    if results.send(prepare(chunk, reading, preparer)).is_err() {
                        return;
                    }
                }
            });
            inward.push(to_worker);
            outward.push(from_worker);
        }
        scope.spawn(move || read(reading, &starts, &inward, &bytes_read));
        Stage { workers: outward, turn: 0 }
    }

    /// The next results; none when all is read.
    pub(crate) fn next(&mut self) -> Option<Ready> {
        let ready = self.workers[self.turn].recv();
        self.took(ready.map_err(|RecvError| ()))
    }

    /// The next results if they are there already.
    pub(crate) fn next_now(&mut self) -> Option<Ready> {
        let ready = self.workers[self.turn].try_recv();
        self.took(ready.map_err(|_: TryRecvError| ()))
    }

    fn took(&mut self, ready: Result<Ready, ()>) -> Option<Ready> {
        let ready = ready.ok()?;
        self.turn = (self.turn + 1) % self.workers.len();
        Some(ready)
    }
}

/// Reads all sources. Ends early when nobody wants more, or after a failure, which travels like a result.
fn read(reading: &Reading, starts: &[Start], workers: &[SyncSender<Chunk>], bytes_read: &Arc<AtomicU64>) {
    let mut turn = workers.iter().cycle();
    let mut send = |chunk| turn.next().is_some_and(|worker| worker.send(chunk).is_ok());
    for &Start { source: at, skip, grows } in starts {
        let source = &reading.sources[at];
        let empty = |next, name_by_line, failure| Chunk {
            source: at,
            records: Vec::new(),
            next,
            name_by_line,
            unfinished: None,
            failure,
        };
        let opened = source.open(bytes_read);
        let mut records =
            match opened.and_then(|bytes| Records::new(source, bytes, reading.format, reading.limit)) {
                Ok(records) => records,
                Err(error) => {
                    send(empty(0, false, Some(error.into())));
                    return;
                }
            };
        // A table without a column for ids has none: that is no fault of its rows. A column that settings name and that
        // is not there is a fault of the settings.
        let name_by_line = reading.name_by_line
            || (!reading.fields.is_configured(Field::Id)
                && records.columns().is_some_and(|columns| !reading.fields.any_is(Field::Id, columns)));
        let mut next = 0;
        let mut chunk = empty(next, name_by_line, None);
        let mut bytes = 0;
        loop {
            let record = match records.next() {
                Ok(record) => record,
                Err(error) => {
                    let (name, after) = (source.name(), chunk.records.last().map_or(0, |last| last.line));
                    chunk.failure = Some(RunError::Broken { name, after, error });
                    send(chunk);
                    return;
                }
            };
            // What is judged once must be whole: half a line, judged now, would be passed over when it has its other half.
            let unfinished = record.as_ref().is_some_and(|record| grows && record.unfinished);
            chunk.unfinished = record.as_ref().map(|record| record.line).filter(|_| unfinished);
            let over = record.is_none() || unfinished;
            if let Some(record) = record.filter(|_| !unfinished) {
                next += 1;
                if next > skip {
                    bytes += record.content.as_ref().map_or(0, Vec::len);
                    chunk.records.push(record);
                }
            }
            let full = chunk.records.len() >= CHUNK || bytes >= CHUNK_BYTES;
            // What is there goes on rather than waits for more: a pipe may be slow.
            if over || full || (records.drained() && !chunk.records.is_empty()) {
                bytes = 0;
                chunk.next = next.max(skip);
                if !send(std::mem::replace(&mut chunk, empty(next, name_by_line, None))) {
                    return;
                }
            }
            if over {
                break;
            }
        }
    }
}

/// Every record of all sources, as JSON or why it is none, until `visit` wants no more.
///
/// # Errors
/// A source cannot be read, or not to its end.
pub fn each_record(
    reading: &Reading,
    visit: &mut dyn FnMut(Result<Vec<u8>, DecodeFailure>) -> bool,
) -> Result<(), RunError> {
    let bytes_read = Arc::new(AtomicU64::new(0));
    for source in &reading.sources {
        let mut records = Records::new(source, source.open(&bytes_read)?, reading.format, reading.limit)?;
        let mut after = 0;
        let broken = |after| move |error| RunError::Broken { name: source.name(), after, error };
        while let Some(record) = records.next().map_err(broken(after))? {
            after = record.line;
            if !visit(record.content) {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn prepare(chunk: Chunk, reading: &Reading, preparer: Preparer) -> Ready {
    let name = reading.sources[chunk.source].name();
    let file = BoundedStr::new(&name);
    let items = chunk.records.into_iter().map(|record| {
        let position = Position::File { file: file.clone(), line: record.line };
        let by_line = || chunk.name_by_line.then(|| format!("{name}:{}", record.line));
        let named = std::cell::Cell::new(false);
        let dead = |refusal: DecodeFailure| {
            let DecodeFailure { reason, message } = refusal;
            Incoming::DeadLetter(DeadLetter { position: position.clone(), reason, message })
        };
        let name = || by_line().inspect(|_| named.set(true));
        let (incoming, raw, original) = match record.content {
            Err(refusal) => (dead(refusal), None, record.original),
            Ok(bytes) => {
                let decoded = isolate(&bytes, || {
                    Ok(match decode(&bytes, reading, name)? {
                        (Event::Article(article), raw) => match preparer.prepare(&article, &position) {
                            Ok(prepared) => (Incoming::Article(Box::new(prepared)), Some(raw)),
                            Err(letter) => (Incoming::DeadLetter(letter), None),
                        },
                        (Event::Bodiless(article, refusal), raw) => {
                            match preparer.prepare(&article, &position) {
                                Ok(prepared) => {
                                    let DecodeFailure { reason, message } = refusal;
                                    let refusal = DeadLetter { position: position.clone(), reason, message };
                                    (Incoming::Bodiless { article: Box::new(prepared), refusal }, Some(raw))
                                }
                                Err(letter) => (Incoming::DeadLetter(letter), None),
                            }
                        }
                        (Event::Delete(id), _) => (Incoming::Delete(id), None),
                    })
                });
                let (incoming, raw) = decoded.unwrap_or_else(|refusal| (dead(refusal), None));
                let original = match incoming {
                    Incoming::DeadLetter(_) | Incoming::Bodiless { .. } => record.original.or(Some(bytes)),
                    _ => None,
                };
                (incoming, raw, original)
            }
        };
        ReadyItem {
            item: Item { position, time: None, log_time: None, incoming },
            raw,
            named: named.get(),
            original,
        }
    });
    Ready {
        source: chunk.source,
        items: items.collect(),
        next: chunk.next,
        unfinished: chunk.unfinished,
        failure: chunk.failure,
    }
}

fn decode(
    bytes: &[u8],
    reading: &Reading,
    name: impl Fn() -> Option<String>,
) -> Result<(Event, Box<RawValue>), DecodeFailure> {
    let bytes = json::one_line(bytes);
    let record = json::Record::parse(&bytes)?;
    let event = json::decode(&record, &reading.fields, name)?;
    let around = RecordContext { key: None, headers: &[] };
    reading.owner.check(event.id(), || reading.fields.site(&record), around)?;
    Ok((event, record.raw().to_owned()))
}
