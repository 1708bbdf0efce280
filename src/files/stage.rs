//! Reads and fingerprints records ahead of the verdicts: one thread reads, `threads` workers prepare, and
//! results come out in input order.
//!
//! Chunks go to the workers round-robin and results are collected in the same rotation, so order needs no
//! sorting. Bounded channels keep a fast reader from running ahead of [`super::run`].

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::Scope;
use std::time::Duration;

use serde_json::value::RawValue;

use crate::formats::fields::{DecodeFailure, Field, Fields, RecordContext};
use crate::formats::{Event, Owner, isolate, json};
use samestory_engine::engine::{Incoming, Item, Preparer};
use samestory_engine::model::DeadLetter;
use samestory_engine::model::{BoundedStr, Position};

use super::FileRunError;
use super::encoding::TextEncoding;
use super::read_as::{LOOKED_AT, ReadAs, lacks_id};
use super::records::{FileFormat, InputRecord, Records};
use super::source::Source;

/// The most records, and bytes, in a chunk.
const CHUNK: usize = 128;
const CHUNK_BYTES: usize = 256 * 1024;
/// Chunks queued before each worker, and behind it.
const AHEAD: usize = 2;

/// Which inputs to read, and how to decode their records.
#[derive(Clone, Debug)]
pub struct InputSpec {
    /// The inputs, in reading order.
    pub sources: Vec<Source>,
    /// The format of all inputs; detected by name and content if None.
    pub format: Option<FileFormat>,
    /// The character encoding of all inputs; guessed if None.
    pub encoding: Option<TextEncoding>,
    /// The keys under which a JSON input has its records.
    pub records: Option<Vec<String>>,
    /// Look at the first records of an input before any of its verdicts is written, however slowly they arrive: an output
    /// with columns needs to know them.
    pub wait_for_columns: bool,
    /// Maps the crawler's field names.
    pub fields: Fields,
    /// The owner of an id, who alone may publish under it. Records of files have no headers.
    pub owner: Owner,
    /// Give an article without an id its file and line as id.
    pub name_by_line: bool,
    /// Records with more bytes become dead letters without being decoded.
    pub limit: usize,
}

impl InputSpec {
    /// Inputs in whatever format and encoding they turn out to have.
    pub fn new(sources: Vec<Source>, fields: Fields, owner: Owner, limit: usize) -> InputSpec {
        InputSpec {
            sources,
            format: None,
            encoding: None,
            records: None,
            wait_for_columns: false,
            fields,
            owner,
            name_by_line: false,
            limit,
        }
    }
}

/// One of the sources, and how many of its records to skip.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    pub(crate) source: usize,
    pub(crate) skip: u64,
    /// A later run resumes this source, so an incomplete last record is left to it.
    pub(crate) grows: bool,
}

struct Chunk {
    source: usize,
    records: Vec<InputRecord>,
    next: u64,
    name_by_line: bool,
    unfinished: Option<u64>,
    truncated: Option<u64>,
    failure: Option<FileRunError>,
    /// With the first records of a source: how it was understood.
    read_as: Option<Box<ReadAs>>,
    /// Input bytes that were read up to the end of this chunk.
    bytes: u64,
}

/// Prepared records of one source, ready to be judged.
pub(crate) struct PreparedChunk {
    pub(crate) source: usize,
    pub(crate) items: Vec<PreparedRecord>,
    /// Records of the source up to and including this chunk.
    pub(crate) next: u64,
    /// The line of an incomplete record that is left to a later run.
    pub(crate) unfinished: Option<u64>,
    /// The line of a record inside of which the input ends, so that others may be missing.
    pub(crate) truncated: Option<u64>,
    /// The error that ended reading after this chunk.
    pub(crate) failure: Option<FileRunError>,
    /// With the first records of a source: how it was understood.
    pub(crate) read_as: Option<Box<ReadAs>>,
    /// Input bytes that were read up to the end of this chunk.
    pub(crate) bytes: u64,
}

pub(crate) struct PreparedRecord {
    pub(crate) item: Item,
    /// The article's JSON as read.
    pub(crate) raw: Option<Box<RawValue>>,
    /// The article had no id and was named by file and line.
    pub(crate) named_by_line: bool,
    /// The bytes in the file, for a record that becomes a dead letter.
    pub(crate) original: Option<Vec<u8>>,
}

/// The receiving end of the workers.
pub(crate) struct Stage {
    workers: Vec<Receiver<PreparedChunk>>,
    turn: usize,
}

impl Stage {
    /// Starts the reader and the workers in `scope`.
    pub(crate) fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        reading: &'scope InputSpec,
        preparer: Preparer,
        starts: Vec<Start>,
        threads: NonZeroUsize,
        bytes_read: Arc<AtomicU64>,
    ) -> Stage {
        let (mut to_workers, mut from_workers) = (Vec::new(), Vec::new());
        for _ in 0..threads.get() {
            let (to_worker, chunks) = sync_channel::<Chunk>(AHEAD);
            let (results, from_worker) = sync_channel::<PreparedChunk>(AHEAD);
            let preparer = preparer.clone();
            scope.spawn(move || {
                for chunk in chunks {
                    if results.send(prepare(chunk, reading, &preparer)).is_err() {
                        return;
                    }
                }
            });
            to_workers.push(to_worker);
            from_workers.push(from_worker);
        }
        scope.spawn(move || read(reading, &starts, &to_workers, &bytes_read));
        Stage { workers: from_workers, turn: 0 }
    }

    /// Waits for the next chunk, at most `limit`.
    pub(crate) fn next(&mut self, limit: Duration) -> NextChunk {
        match self.workers[self.turn].recv_timeout(limit) {
            Ok(ready) => {
                self.rotate();
                NextChunk::Ready(Box::new(ready))
            }
            Err(RecvTimeoutError::Timeout) => NextChunk::Waiting,
            Err(RecvTimeoutError::Disconnected) => NextChunk::End,
        }
    }

    /// The next chunk if it is ready, without waiting.
    pub(crate) fn next_now(&mut self) -> Option<PreparedChunk> {
        let ready = self.workers[self.turn].try_recv().ok()?;
        self.rotate();
        Some(ready)
    }

    fn rotate(&mut self) {
        self.turn = (self.turn + 1) % self.workers.len();
    }
}

/// The answer of [`Stage::next`].
pub(crate) enum NextChunk {
    Ready(Box<PreparedChunk>),
    /// Nothing arrived in time.
    Waiting,
    /// Everything is read.
    End,
}

/// Reads all sources. Stops when the receivers are gone, or after a failure, which is sent like a result to
/// keep its place in the order.
fn read(reading: &InputSpec, starts: &[Start], workers: &[SyncSender<Chunk>], bytes_read: &Arc<AtomicU64>) {
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
            truncated: None,
            failure,
            read_as: None,
            bytes: bytes_read.load(Ordering::Relaxed),
        };
        let (mut records, opened) = match Records::open(source, reading, bytes_read) {
            Ok(opened) => opened,
            Err(error) => {
                send(empty(0, false, Some(error.into())));
                return;
            }
        };
        // A table without an id column has no ids, and neither has a JSON input whose first record lacks one: that is not
        // an error of its records. If the settings name the id and it is missing, that is an error.
        let may_name = !reading.fields.is_configured(Field::Id);
        let table_lacks_ids =
            records.columns().is_some_and(|columns| !reading.fields.any_is(Field::Id, columns));
        let mut name_by_line = reading.name_by_line || (may_name && table_lacks_ids);
        let mut next = 0;
        let mut chunk = empty(next, name_by_line, None);
        let mut first: Vec<InputRecord> = Vec::new();
        let mut described = false;
        let mut bytes = 0;
        loop {
            let record = match records.next() {
                Ok(record) => record,
                Err(error) => {
                    let (name, after) = (source.name(), chunk.records.last().map_or(0, |last| last.line));
                    chunk.failure = Some(FileRunError::Broken { name, after, error });
                    send(chunk);
                    return;
                }
            };
            if let (0, Some(record), None) = (next, &record, records.columns())
                && may_name
                && lacks_id(record, &reading.fields)
            {
                name_by_line = true;
                chunk.name_by_line = true;
            }
            // Do not judge an incomplete record of a file that a later run resumes: that run would skip the
            // completed one.
            let unfinished = record.as_ref().is_some_and(|record| grows && record.unfinished);
            chunk.unfinished = record.as_ref().map(|record| record.line).filter(|_| unfinished);
            let over = record.is_none() || unfinished;
            if let Some(record) = record.filter(|_| !unfinished) {
                next += 1;
                if record.unfinished && record.content.is_err() {
                    chunk.truncated = Some(record.line);
                }
                // Skipped records describe the input too, so that a resumed run says the same.
                if next > skip {
                    bytes += record.content.as_ref().map_or(0, Vec::len);
                    chunk.records.push(record);
                } else if !described && first.len() < LOOKED_AT {
                    first.push(record);
                }
            }
            let (count, waits) = (first.len() + chunk.records.len(), reading.wait_for_columns && !described);
            let full = count >= CHUNK || bytes >= CHUNK_BYTES;
            // Send what there is instead of waiting to fill the chunk: a pipe may be slow.
            let pauses = records.drained() && !chunk.records.is_empty() && !waits;
            if over || full || pauses {
                bytes = 0;
                if !described {
                    let looked_at = if first.is_empty() { &chunk.records } else { &first };
                    let read_as =
                        ReadAs::new(source.name(), &opened, &records, looked_at, reading, name_by_line);
                    chunk.read_as = Some(Box::new(read_as));
                    (described, first) = (true, Vec::new());
                }
                chunk.next = next.max(skip);
                chunk.bytes = bytes_read.load(Ordering::Relaxed);
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

/// Visits every record of all sources, as JSON or as a decode failure, until `visit` returns false.
///
/// # Errors
/// A source cannot be opened, or cannot be read to its end.
pub fn each_record(
    reading: &InputSpec,
    visit: &mut dyn FnMut(Result<Vec<u8>, DecodeFailure>) -> bool,
) -> Result<(), FileRunError> {
    let bytes_read = Arc::new(AtomicU64::new(0));
    for source in &reading.sources {
        let (mut records, _) = Records::open(source, reading, &bytes_read)?;
        let mut after = 0;
        let broken = |after| move |error| FileRunError::Broken { name: source.name(), after, error };
        while let Some(record) = records.next().map_err(broken(after))? {
            after = record.line;
            if !visit(record.content) {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn prepare(chunk: Chunk, reading: &InputSpec, preparer: &Preparer) -> PreparedChunk {
    let name = reading.sources[chunk.source].name();
    let file = BoundedStr::new(&name);
    let items = chunk.records.into_iter().map(|record| {
        let position = Position::File { file: file.clone(), line: record.line };
        let by_line = || chunk.name_by_line.then(|| format!("{name}:{}", record.line));
        let named_by_line = std::cell::Cell::new(false);
        let dead = |refusal: DecodeFailure| {
            let DecodeFailure { reason, message } = refusal;
            Incoming::DeadLetter(DeadLetter { position: position.clone(), reason, message })
        };
        let name = || by_line().inspect(|_| named_by_line.set(true));
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
        PreparedRecord {
            item: Item { position, time: None, log_time: None, incoming },
            raw,
            named_by_line: named_by_line.get(),
            original,
        }
    });
    PreparedChunk {
        source: chunk.source,
        items: items.collect(),
        next: chunk.next,
        unfinished: chunk.unfinished,
        truncated: chunk.truncated,
        failure: chunk.failure,
        read_as: chunk.read_as,
        bytes: chunk.bytes,
    }
}

fn decode(
    bytes: &[u8],
    reading: &InputSpec,
    name: impl Fn() -> Option<String>,
) -> Result<(Event, Box<RawValue>), DecodeFailure> {
    let bytes = json::one_line(bytes);
    let record = json::JsonRecord::parse(&bytes)?;
    let event = json::decode(&record, &reading.fields, name)?;
    let context = RecordContext { key: None, headers: &[] };
    reading.owner.check(event.id(), || reading.fields.site(&record), context)?;
    Ok((event, record.raw().to_owned()))
}
