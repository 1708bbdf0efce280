//! Compares a range of the raw topic with what was published for it, for `samestory reconcile`: every record must have
//! exactly one tagged article or dead letter, and a delete its tombstones, each once. It reads only committed records
//! and uses nothing of the stage but its headers, so that an operator can check the stage's promise from outside.
//!
//! Outputs are counted in a table with one cell per raw offset, so the memory is bounded by the range. A record without
//! an output is decoded to learn whether it needs one. Names of doubled outputs take a second pass.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::config::{Config, Mode};
use crate::kafka::admin::{control, values};
use crate::kafka::client::Role;
use crate::kafka::route::decode::Decoder;
use crate::kafka::turn::record::Record;
use samestory_engine::engine::Incoming;
use samestory_engine::model::EventTime;

use super::scan::{PartitionOffsets, ScanError, Scanner, source};

/// Offsets that one run can check: four bytes each.
const MOST_OFFSETS: i64 = 500_000_000;
/// Offsets that a report names, at most.
const MOST_NAMED: usize = 10_000;

/// What to compare.
#[derive(Clone, Debug, Default)]
pub struct ReconcileRequest {
    /// Only this partition of the raw topic.
    pub partition: Option<i32>,
    /// The first offset.
    pub from: Option<i64>,
    /// The first offset that is not checked any more.
    pub to: Option<i64>,
    /// Records from this time on.
    pub since: Option<EventTime>,
    /// Records before this time.
    pub until: Option<EventTime>,
    /// How long to wait until everything that has been read is judged.
    pub wait: Duration,
}

/// Why two topics could not be compared.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// A topic could not be read.
    #[error(transparent)]
    Scan(#[from] ScanError),
    /// The schema registry is unreachable or refuses access.
    #[error("schema registry: {0}")]
    Registry(String),
    /// No offset in the range has been processed.
    #[error("nothing to compare: group {group} has committed no offset of {topic} in this range")]
    Nothing {
        /// The group that reads the raw topic.
        group: String,
        /// The raw topic.
        topic: String,
    },
    /// The range is too long for one run.
    #[error(
        "{0} offsets are too many for one run (500 million); give --since, --partition, or --from and --to"
    )]
    TooMany(i64),
}

/// Where a record is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct RecordAt {
    /// Its topic.
    pub topic: String,
    /// Its partition.
    pub partition: i32,
    /// Its offset.
    pub offset: i64,
}

/// A raw record with more outputs than it may have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Double {
    /// Partition of the raw record.
    pub partition: i32,
    /// Offset of the raw record.
    pub offset: i64,
    /// What was published for it.
    pub outputs: Vec<RecordAt>,
}

/// A raw record without an output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MissingOutput {
    /// Partition of the raw record.
    pub partition: i32,
    /// Offset of the raw record.
    pub offset: i64,
    /// Its key.
    pub key: Option<String>,
}

/// The compared range of a partition: first offset, and the first that was not compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Range {
    /// The partition.
    pub partition: i32,
    /// The first offset.
    pub from: i64,
    /// The first offset after the range.
    pub to: i64,
}

/// The result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reconciled {
    /// The raw topic.
    pub topic: String,
    /// What was compared.
    pub ranges: Vec<Range>,
    /// Committed raw records in the range.
    pub records: u64,
    /// Records with exactly one tagged article.
    pub tagged: u64,
    /// Records with exactly one dead letter.
    pub dead_letters: u64,
    /// Deletes. One of an id that is not known publishes nothing.
    pub deletes: u64,
    /// Deletes with at least one tombstone.
    pub deletes_published: u64,
    /// Tombstones: of deletes, and of articles that left a topic.
    pub tombstones: u64,
    /// Control records, which publish nothing.
    pub control: u64,
    /// Articles older than `output.publish_from`, which publish nothing.
    pub before_publish_from: u64,
    /// Records without an output, and as old as outputs that retention has deleted: neither proven nor a gap.
    pub unprovable: u64,
    /// Outputs in the range whose raw record is gone: compacted, or deleted by retention.
    pub without_input: u64,
    /// Number of records without an output.
    pub gap_count: u64,
    /// Number of records with too many outputs.
    pub double_count: u64,
    /// The first records without an output.
    pub gaps: Vec<MissingOutput>,
    /// The first records with too many outputs.
    pub doubles: Vec<Double>,
}

impl Reconciled {
    /// Whether every record has what it must have, once.
    pub fn is_exact(&self) -> bool {
        self.gap_count == 0 && self.double_count == 0
    }
}

/// What was found for one raw offset. Counters stop at 255.
#[derive(Clone, Copy, Default)]
struct OutputCount {
    tagged: u8,
    dead: u8,
    /// Tombstones on the topics of unique articles and of duplicates.
    tombstones: [u8; 2],
}

impl OutputCount {
    fn is_empty(self) -> bool {
        self.tagged == 0 && self.dead == 0 && self.tombstones == [0, 0]
    }

    fn is_double(self) -> bool {
        u16::from(self.tagged) + u16::from(self.dead) > 1 || self.tombstones.iter().any(|&count| count > 1)
    }
}

/// What an output record is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OutputKind {
    Tagged,
    Dead,
    Tombstone(usize),
}

/// The cells of the range, by partition: the first offset, and a cell for each offset from there.
struct OutputTable(BTreeMap<i32, (i64, Vec<OutputCount>)>);

impl OutputTable {
    fn cell(&mut self, partition: i32, offset: i64) -> Option<&mut OutputCount> {
        let (first, cells) = self.0.get_mut(&partition)?;
        cells.get_mut(usize::try_from(offset.checked_sub(*first)?).ok()?)
    }
}

/// Compares a range of the raw topic with the output topics.
///
/// # Errors
/// See [`ReconcileError`].
pub fn reconcile(config: &Config, request: &ReconcileRequest) -> Result<Reconciled, ReconcileError> {
    let bus = &config.bus;
    let (raw, reader) = (
        bus.topics.raw.as_str(),
        match bus.mode {
            Mode::Routed => Role::Route,
            Mode::Direct => Role::Direct,
        },
    );
    let scanner = Scanner::new(bus, "samestory-reconcile")?;
    let (from, to) = range(&scanner, config, request, reader)?;
    if to.iter().all(|(partition, to)| from.get(partition).is_none_or(|from| from >= to)) {
        let group = crate::kafka::client::group(bus, reader);
        return Err(ReconcileError::Nothing { group, topic: raw.to_owned() });
    }
    if bus.mode == Mode::Routed {
        // What route had committed is below these ends, and its verdicts are published once match has committed them.
        let (_, ends) = scanner.ranges(&bus.topics.routed)?;
        scanner.await_processed(Role::Match, &bus.topics.routed, &ends, request.wait)?;
    }
    let mut table = OutputTable(BTreeMap::new());
    let mut found = Reconciled { topic: raw.to_owned(), ..Reconciled::default() };
    let mut offsets = 0;
    for (&partition, &to) in &to {
        let from = from.get(&partition).copied().unwrap_or(0);
        if from < to {
            found.ranges.push(Range { partition, from, to });
            offsets += to - from;
        }
    }
    if offsets > MOST_OFFSETS {
        return Err(ReconcileError::TooMany(offsets));
    }
    for range in &found.ranges {
        let length = usize::try_from(range.to - range.from).unwrap_or(0);
        table.0.insert(range.partition, (range.from, vec![OutputCount::default(); length]));
    }
    // Read to their ends after the inputs were known to be judged, so no output is missing.
    let mut deleted_until = None::<EventTime>;
    outputs(&scanner, config, &mut deleted_until, |kind, (partition, offset), _| {
        let Some(cell) = table.cell(partition, offset) else { return };
        let counter = match kind {
            OutputKind::Tagged => &mut cell.tagged,
            OutputKind::Dead => &mut cell.dead,
            OutputKind::Tombstone(topic) => &mut cell.tombstones[topic],
        };
        *counter = counter.saturating_add(1);
        found.tombstones += u64::from(matches!(kind, OutputKind::Tombstone(_)));
    })?;
    inputs(&scanner, config, (&from, &to), &mut table, deleted_until, &mut found)?;
    // What is left belongs to records that the raw topic does not hold any more.
    for (&partition, (first, cells)) in &table.0 {
        for (offset, cell) in (*first..).zip(cells) {
            found.without_input += u64::from(!cell.is_empty());
            if cell.is_double() {
                doubled(&mut found, partition, offset);
            }
        }
    }
    if found.double_count > 0 {
        found.doubles.sort_by_key(|double| (double.partition, double.offset));
        outputs(&scanner, config, &mut None, |_, at, output| {
            if let Ok(double) =
                found.doubles.binary_search_by_key(&at, |double| (double.partition, double.offset))
            {
                found.doubles[double].outputs.push(output);
            }
        })?;
    }
    Ok(found)
}

/// The range to compare: what is asked for, within what the raw topic holds and the stage has processed.
fn range(
    scanner: &Scanner,
    config: &Config,
    request: &ReconcileRequest,
    reader: Role,
) -> Result<(PartitionOffsets, PartitionOffsets), ScanError> {
    let raw = &config.bus.topics.raw;
    let (mut from, _) = scanner.ranges(raw)?;
    let mut to = scanner.committed(reader, raw)?;
    let others = |partition: &i32| request.partition.is_none_or(|only| only == *partition);
    from.retain(|partition, _| others(partition));
    to.retain(|partition, _| others(partition));
    if let Some(since) = request.since {
        let since = scanner.offsets_at(raw, since)?;
        from.iter_mut()
            .for_each(|(partition, from)| *from = (*from).max(*since.get(partition).unwrap_or(from)));
    }
    if let Some(until) = request.until {
        let until = scanner.offsets_at(raw, until)?;
        to.iter_mut().for_each(|(partition, to)| *to = (*to).min(*until.get(partition).unwrap_or(to)));
    }
    from.values_mut().for_each(|from| *from = (*from).max(request.from.unwrap_or(*from)));
    to.values_mut().for_each(|to| *to = (*to).min(request.to.unwrap_or(*to)));
    Ok((from, to))
}

/// Reads all output topics, and passes on what each record is, the raw position that it answers, and where it is.
/// `deleted_until` becomes the time up to which retention may have deleted outputs.
fn outputs(
    scanner: &Scanner,
    config: &Config,
    deleted_until: &mut Option<EventTime>,
    mut each: impl FnMut(OutputKind, (i32, i64), RecordAt),
) -> Result<(), ScanError> {
    let topics = &config.bus.topics;
    let mut names = vec![&topics.unique, &topics.near_duplicate, &topics.dead_letter];
    names.dedup();
    for name in names {
        let (low, high) = scanner.ranges(name)?;
        // The first record of each partition that has lost records.
        let mut first: BTreeMap<i32, Option<EventTime>> =
            low.iter().filter(|(_, low)| **low > 0).map(|(&partition, _)| (partition, None)).collect();
        let is_dead_letters = *name == topics.dead_letter;
        scanner.read(name, (&low, &high), |partition, record| {
            if let Some(first @ None) = first.get_mut(&partition) {
                *first = record.time;
            }
            let prefix = if is_dead_letters { "__samestory.errors." } else { "samestory-" };
            let Some((topic, at, offset)) = source(&record, prefix) else { return Ok(()) };
            if topic != topics.raw {
                return Ok(());
            }
            let kind = match (is_dead_letters, &record.value) {
                (true, _) => OutputKind::Dead,
                (false, Some(_)) => OutputKind::Tagged,
                (false, None) => OutputKind::Tombstone(usize::from(*name != topics.unique)),
            };
            each(kind, (at, offset), RecordAt { topic: name.clone(), partition, offset: record.offset });
            Ok(())
        })?;
        for time in first.into_values() {
            // A partition that has lost all its records may have lost any.
            let until = time.unwrap_or(EventTime::from_millis(i64::MAX));
            *deleted_until = Some(deleted_until.map_or(until, |so_far| so_far.max(until)));
        }
    }
    Ok(())
}

/// Reads the raw range, and takes the cell of each record out of the table.
fn inputs(
    scanner: &Scanner,
    config: &Config,
    (from, to): (&PartitionOffsets, &PartitionOffsets),
    table: &mut OutputTable,
    deleted_until: Option<EventTime>,
    found: &mut Reconciled,
) -> Result<(), ReconcileError> {
    let (raw, routed) = (&config.bus.topics.raw, config.bus.mode == Mode::Routed);
    let registry = values::registry(config).map_err(|error| ReconcileError::Registry(error.to_string()))?;
    let mut decoder = Decoder::new(config, routed, registry.as_ref());
    let mut failed = None;
    scanner.read(raw, (from, to), |partition, record| {
        if failed.is_some() {
            return Ok(());
        }
        let Some(cell) = table.cell(partition, record.offset) else { return Ok(()) };
        let cell = std::mem::take(cell);
        found.records += 1;
        if cell.is_double() {
            doubled(found, partition, record.offset);
            return Ok(());
        }
        match (cell.tagged, cell.dead) {
            (0, 0) => {}
            (0, _) => {
                found.dead_letters += 1;
                return Ok(());
            }
            _ => {
                found.tagged += 1;
                return Ok(());
            }
        }
        let needs = match output_needed(&mut decoder, config, &record, raw, partition) {
            Ok(needs) => needs,
            Err(error) => {
                failed = Some(error);
                return Ok(());
            }
        };
        match needs {
            Needed::Tombstones => {
                found.deletes += 1;
                found.deletes_published += u64::from(cell.tombstones != [0, 0]);
            }
            Needed::Control => found.control += 1,
            Needed::BeforePublishFrom => found.before_publish_from += 1,
            Needed::One
                if deleted_until.is_some_and(|until| record.time.is_none_or(|time| time <= until)) =>
            {
                found.unprovable += 1;
            }
            Needed::One => {
                found.gap_count += 1;
                if found.gaps.len() < MOST_NAMED {
                    let key = record.key.as_deref().map(|key| String::from_utf8_lossy(key).into_owned());
                    found.gaps.push(MissingOutput { partition, offset: record.offset, key });
                }
            }
        }
        Ok(())
    })?;
    failed.map_or(Ok(()), |error| Err(ReconcileError::Registry(error)))
}

/// What a raw record must lead to.
enum Needed {
    /// A tagged article or a dead letter.
    One,
    /// It is a delete: tombstones, if its id was known.
    Tombstones,
    Control,
    BeforePublishFrom,
}

fn output_needed(
    decoder: &mut Decoder,
    config: &Config,
    record: &Record,
    raw: &str,
    partition: i32,
) -> Result<Needed, String> {
    if config.bus.mode == Mode::Direct && control::read(record).is_some() {
        return Ok(Needed::Control);
    }
    decoder.load_schemas(std::iter::once(record))?;
    let (incoming, _) = decoder.decode(record, &record.position(raw, partition));
    Ok(match incoming {
        Incoming::Delete(_) => Needed::Tombstones,
        Incoming::Article(article) | Incoming::Bodiless { article, .. } => {
            let at = article.fetched_at.or(record.time);
            match config.engine.publish_from {
                Some(from) if at.is_none_or(|at| at < from) => Needed::BeforePublishFrom,
                _ => Needed::One,
            }
        }
        _ => Needed::One,
    })
}

fn doubled(found: &mut Reconciled, partition: i32, offset: i64) {
    found.double_count += 1;
    if found.doubles.len() < MOST_NAMED {
        found.doubles.push(Double { partition, offset, outputs: Vec::new() });
    }
}
