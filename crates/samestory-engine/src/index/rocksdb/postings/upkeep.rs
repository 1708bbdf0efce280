//! Upkeep of the postings: freezes memory into segments, merges segments, and fills the memory when a store is opened.
//!
//! A [`Job`] runs on its own thread, one at a time; its result is installed with the next write. Which postings are frozen
//! when never shows in an answer, so nothing here depends on time for its result.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;

use rocksdb::{ReadOptions, WriteBatch};

use super::removed::Removed;
use super::run::Run;
use super::segment::{Failure, SST_DIRECTORY, Segment, merged};
use super::{DOCUMENTS, MetaRows, Staged, Table, Tables, buckets_of, coverage_row};
use crate::index::format::key;
use crate::index::format::key::Family;
use crate::index::format::segment::{
    Coverage, Posting, coverage_key, decode_coverage, decode_row_key, last_number,
};
use crate::index::read::rows::{Order, Span, decode_own};
use crate::index::read::view::View;
use crate::index::rocksdb::{Opened, RocksReader};
use crate::index::{DecodeError, StoreError};
use crate::model::{DocumentNumber, Lang};

/// At least so many neighbouring segments are merged at once. Merging at least doubles the largest of them.
const FAN: usize = 4;
/// From this many segments on, merging comes before freezing.
const MANY: usize = 48;
/// Documents between two progress reports.
const STEP: u64 = 1000;

/// Progress of building postings from documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rebanded {
    /// The language being processed.
    pub language: Lang,
    /// Documents posted so far.
    pub documents: u64,
    /// Documents of the language.
    pub of: u64,
}

/// The progress callback; returns whether to continue.
pub type Watch<'a> = dyn FnMut(Rebanded) -> ControlFlow<()> + 'a;

type KeyAndValue = (Vec<u8>, Vec<u8>);

/// What becomes of a damaged segment when a store is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Damage {
    /// It is built again, unless more documents than this have lost their postings: that takes longer than the caller can
    /// wait.
    Rebuild {
        /// Documents.
        most: u64,
    },
    /// It stays as it is, for a check of the store to find. Nothing is written.
    Keep,
}

/// What is turned into one segment: some neighbouring segments, or what is in memory, or everything.
struct Work {
    language: Lang,
    segments: Vec<Arc<Segment>>,
    runs: Vec<Arc<Run>>,
    removed: Removed,
    /// The numbers that the new segment covers.
    from: u64,
    to: u64,
    /// The segments cover the numbers below this.
    covered: u64,
    /// No segment comes before it.
    first: bool,
    /// The first number that the new segment may hold: where [`Work::begin_with_documents`] has moved it.
    begin: u64,
}

/// Work under way. Dropping it stops it.
struct Job {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<Done, Failure>>,
}

/// Work that is done, to be installed with the next write.
struct Done {
    work: Work,
    segment: Option<Arc<Segment>>,
    /// Segments that could not be deleted yet, because somebody reads them.
    doomed: Vec<(Lang, Arc<Segment>)>,
}

/// The upkeep of one store.
#[derive(Default)]
pub(crate) struct Upkeep {
    job: Option<Job>,
    done: Option<Done>,
    /// Segments that have been replaced; their files are deleted once that is durable.
    doomed: Vec<(Lang, Arc<Segment>)>,
}

impl Drop for Upkeep {
    fn drop(&mut self) {
        if let Some(job) = self.job.take() {
            job.stop.store(true, Ordering::Relaxed);
            // A job that failed leaves nothing that counts.
            drop(job.thread.join());
        }
    }
}

impl Work {
    fn coverage(&self) -> Coverage {
        let segments = || self.segments.iter().map(|segment| segment.coverage);
        let in_memory: u64 = self.runs.iter().map(|run| run.len() as u64).sum();
        let mut posted = Removed::default();
        for run in &self.runs {
            run.postings().for_each(|posting| posted.set(posting.number, true, false));
        }
        let posted = posted.numbers().filter(|&number| self.takes(number)).count() as u64;
        let removed = self.removed.count(self.from, self.to);
        let frozen: u64 = segments().map(|coverage| coverage.documents).sum();
        let since = removed.saturating_sub(segments().map(|coverage| coverage.removed).sum());
        Coverage {
            from: self.begin,
            to: self.to,
            postings: segments().map(|coverage| coverage.postings).sum::<u64>() + in_memory,
            documents: frozen.saturating_sub(since) + posted,
            removed: self.removed.count(self.begin, self.to),
            checksum: 0,
        }
    }

    /// Whether the postings in memory of a document go into the segment.
    fn takes(&self, number: u64) -> bool {
        (self.begin..self.to).contains(&number) && !self.removed.void_in_memory(number)
    }

    /// The first segment begins with the first document that is left, so that those before it can be forgotten.
    fn begin_with_documents(&mut self, opened: &Opened) -> Result<(), StoreError> {
        if self.first
            && let Some(lowest) = opened.edge_document(self.language, Order::Ascending)?
        {
            self.begin = self.from.max(lowest.min(self.to.saturating_sub(1)));
        }
        Ok(())
    }

    fn build(&self, opened: &Opened, stop: &AtomicBool) -> Result<Option<Segment>, Failure> {
        let mut sources: Vec<Box<dyn Iterator<Item = Result<Posting, StoreError>> + '_>> = Vec::new();
        for segment in &self.segments {
            let live = |posting: &Result<Posting, StoreError>| {
                let wanted = |posting: &Posting| {
                    posting.number >= self.begin && !self.removed.void_in_segments(posting.number)
                };
                posting.as_ref().map_or(true, wanted)
            };
            sources.push(Box::new(segment.postings(opened, self.language)?.filter(live)));
        }
        for run in &self.runs {
            let taken = run.postings().filter(|posting| self.takes(posting.number));
            sources.push(Box::new(taken.map(Ok)));
        }
        Segment::write(opened, self.language, self.coverage(), merged(sources), stop)
    }
}

impl Table {
    /// What to do next with this table, if anything: `full` if memory is short or the table is.
    fn work(&self, language: Lang, full: bool) -> Option<Work> {
        let covered = self.covered();
        let highest = self.runs.iter().map(|run| run.numbers.1).max();
        let to = highest.map_or(0, |highest| highest.saturating_add(1));
        let work = |segments: &[Arc<Segment>], runs: &[Arc<Run>], from, to| Work {
            language,
            first: self.segments.iter().all(|segment| segment.coverage.from >= from),
            segments: segments.to_vec(),
            runs: runs.to_vec(),
            removed: self.removed.clone(),
            from,
            to,
            covered,
            begin: from,
        };
        let late = self.removed.posted().len() as u64;
        if full && late > to.saturating_sub(covered) / 2 {
            // Freezing would leave memory full of documents that came after their number was frozen.
            return Some(self.everything(language));
        }
        // Freezing comes first, but not for so long that look-ups suffer.
        let mergeable = self.mergeable();
        if full && to > covered && (self.segments.len() < MANY || mergeable.is_none()) {
            return Some(work(&[], &self.runs, covered, to));
        }
        let merge = |segments: &[Arc<Segment>]| {
            let (first, last) = (segments.first()?.coverage, segments.last()?.coverage);
            Some(work(segments, &[], first.from, last.to))
        };
        mergeable.and_then(|range| merge(&self.segments[range]))
    }

    /// Turns all segments and what is in memory into one segment.
    fn everything(&self, language: Lang) -> Work {
        let lowest = self.segments.first().map(|first| first.coverage.from);
        let lowest = lowest.into_iter().chain(self.runs.iter().map(|run| run.numbers.0)).min().unwrap_or(0);
        let highest = self.runs.iter().map(|run| run.numbers.1.saturating_add(1)).max().unwrap_or(0);
        Work {
            language,
            segments: self.segments.clone(),
            runs: self.runs.clone(),
            removed: self.removed.clone(),
            from: lowest,
            begin: lowest,
            to: highest.max(self.covered()),
            covered: self.covered(),
            first: true,
        }
    }

    fn live(&self, segment: &Segment) -> u64 {
        let Coverage { from, to, documents, removed, .. } = segment.coverage;
        documents.saturating_sub(self.removed.count(from, to).saturating_sub(removed))
    }

    /// Neighbouring segments that are worth merging, or one that is mostly removed.
    fn mergeable(&self) -> Option<std::ops::Range<usize>> {
        let live: Vec<u64> = self.segments.iter().map(|segment| self.live(segment)).collect();
        for from in 0..live.len() {
            for to in (from + FAN..=live.len()).rev() {
                let window = &live[from..to];
                if window.iter().max().copied().unwrap_or(0) * 2 <= window.iter().sum() {
                    return Some(from..to);
                }
            }
        }
        let half_gone = |at: &usize| live[*at] * 2 < self.segments[*at].coverage.documents;
        (0..live.len()).find(half_gone).map(|at| at..at + 1)
    }

    /// Replaces what the work was made of by its result. Returns the rows of `meta` and the chunks that changed.
    fn install(&mut self, done: &Done, changed: &mut BTreeSet<u64>) -> MetaRows {
        let Done { work, segment, .. } = done;
        let mut rows = MetaRows::new();
        for old in &work.segments {
            self.segments.retain(|other| other.id != old.id);
            rows.push((coverage_key(work.language, old.id), None));
        }
        if !work.runs.is_empty() {
            self.runs.drain(..work.runs.len());
            self.freezing = 0;
            let left = work.runs.iter().flat_map(|run| run.postings());
            let left = left.filter(|posting| {
                !work.takes(posting.number) && !self.removed.void_in_memory(posting.number)
            });
            let left = Run::of(left.collect()).into_iter().map(Arc::new);
            self.runs.splice(..0, left);
            let late = self.removed.posted().range(work.begin..work.to).copied();
            let frozen: Vec<u64> = late.filter(|number| work.removed.posted().contains(number)).collect();
            // They lie in the segment now.
            frozen.into_iter().for_each(|number| self.mark(number, false, false, changed));
        }
        if let Some(segment) = segment {
            rows.push(coverage_row(work.language, segment));
            let at = self.segments.partition_point(|other| other.coverage.from < segment.coverage.from);
            self.segments.insert(at, Arc::clone(segment));
            // Written while the segment was built, with numbers that it covers.
            let late = self.runs.iter().filter(|run| run.numbers.0 < work.to).flat_map(|run| run.postings());
            let late =
                late.map(|posting| posting.number).filter(|number| (work.covered..work.to).contains(number));
            let late: BTreeSet<u64> = late.filter(|&number| !self.removed.void_in_memory(number)).collect();
            late.into_iter().for_each(|number| self.mark(number, true, true, changed));
        }
        // Otherwise the row of every document that ever was would stay, with a corpus that never grows.
        let lowest = self.segments.first().map(|first| first.coverage.from);
        let lowest = lowest.into_iter().chain(self.runs.iter().map(|run| run.numbers.0)).min();
        let lowest = lowest.into_iter().chain(self.removed.posted().first().copied()).min();
        changed.extend(lowest.map(|lowest| self.removed.forget_below(lowest)).unwrap_or_default());
        rows
    }
}

impl Upkeep {
    /// Takes the result of a job that has ended; waits for one that has not, if told to.
    pub(super) fn collect(&mut self, opened: &Opened, wait: bool) -> Result<(), StoreError> {
        let Some(job) = self.job.take_if(|job| wait || job.thread.is_finished()) else { return Ok(()) };
        match job.thread.join() {
            Ok(Ok(mut done)) => {
                self.doomed.append(&mut done.doomed);
                self.done = Some(done);
                Ok(())
            }
            Ok(Err(Failure::Store(error))) => Err(error),
            Ok(Err(Failure::Stopped)) => Ok(()),
            Err(_) => {
                let detail = "the thread that freezes postings panicked".into();
                Err(StoreError::Stalled { place: opened.place.clone(), detail })
            }
        }
    }

    /// Fails if the last job did. Called between turns, before anything is committed.
    pub(crate) fn check(&mut self, opened: &Opened) -> Result<(), StoreError> {
        self.collect(opened, false)
    }

    /// The tables as they will be once a write is applied, and the rows of `meta` that belong to the write.
    pub(crate) fn staged(
        &mut self,
        opened: &Opened,
        staged: BTreeMap<Lang, Staged>,
    ) -> Result<(Tables, MetaRows), StoreError> {
        self.collect(opened, false)?;
        let current = opened.posting_tables.all();
        let limit = opened.options.postings_in_memory.saturating_mul(2);
        let must_wait = |(language, staged): (&Lang, &Staged)| {
            let table = current.get(language);
            table.is_some_and(|table| {
                table.freezing > 0 && !table.purged(staged).is_empty() || table.in_memory() > limit
            })
        };
        if self.job.is_some() && staged.iter().any(must_wait) {
            self.collect(opened, true)?;
        }
        let mut changed: BTreeMap<Lang, BTreeSet<u64>> = BTreeMap::new();
        let (mut tables, mut rows) = (Tables::new(), MetaRows::new());
        let table =
            |language: Lang| current.get(&language).map(|table| Table::clone(table)).unwrap_or_default();
        if let Some(done) = self.done.take() {
            let language = done.work.language;
            let mut installed = table(language);
            rows.extend(installed.install(&done, changed.entry(language).or_default()));
            self.doomed.extend(done.work.segments.into_iter().map(|segment| (language, segment)));
            tables.insert(language, Arc::new(installed));
        }
        for (language, staged) in staged {
            let mut applied = tables.remove(&language).map_or_else(|| table(language), Arc::unwrap_or_clone);
            changed.entry(language).or_default().extend(applied.apply(staged));
            tables.insert(language, Arc::new(applied));
        }
        for (language, changed) in changed {
            rows.extend(
                tables.get(&language).map(|table| table.removed_rows(language, &changed)).unwrap_or_default(),
            );
        }
        Ok((tables, rows))
    }

    /// Starts the next job, if there is something to do. Called after a write.
    pub(crate) fn start(&mut self, reader: &RocksReader) -> Result<(), StoreError> {
        if self.job.is_some() || self.done.is_some() {
            return Ok(());
        }
        let opened = &reader.0;
        let Some(work) = opened.next_work() else { return Ok(()) };
        self.run(reader, work)
    }

    fn run(&mut self, reader: &RocksReader, work: Work) -> Result<(), StoreError> {
        let opened = &reader.0;
        if !work.runs.is_empty()
            && let Some(table) = opened.posting_tables.of(work.language)
        {
            let freezing = Table { freezing: work.runs.len(), ..Table::clone(&table) };
            opened.posting_tables.replace(Tables::from([(work.language, Arc::new(freezing))]));
        }
        let stop = Arc::new(AtomicBool::new(false));
        let (reader, told, doomed) = (reader.clone(), Arc::clone(&stop), std::mem::take(&mut self.doomed));
        let run = move || {
            let mut work = work;
            let doomed = reader.0.delete(doomed)?;
            work.begin_with_documents(&reader.0)?;
            let segment = work.build(&reader.0, &told)?.map(Arc::new);
            Ok(Done { work, segment, doomed })
        };
        let thread = std::thread::Builder::new().name("postings".into()).spawn(run);
        let thread = thread.map_err(|error| StoreError::Failing {
            place: opened.place.clone(),
            detail: format!("cannot start a thread to freeze postings: {error}"),
        })?;
        self.job = Some(Job { stop, thread });
        Ok(())
    }

    /// Waits until there is nothing left to freeze or merge.
    pub(crate) fn settle(&mut self, reader: &RocksReader) -> Result<(), StoreError> {
        loop {
            self.finish(reader)?;
            self.start(reader)?;
            if self.job.is_none() {
                return Ok(());
            }
        }
    }

    /// Makes one segment of all postings of each language, without the removed ones.
    pub(crate) fn compact(&mut self, reader: &RocksReader) -> Result<(), StoreError> {
        for language in reader.0.languages() {
            self.finish(reader)?;
            if let Some(table) = reader.0.posting_tables.of(language) {
                self.run(reader, table.everything(language))?;
            }
        }
        self.finish(reader)?;
        self.doomed = reader.0.delete(std::mem::take(&mut self.doomed))?;
        Ok(())
    }

    /// Waits for the job and installs its result.
    pub(super) fn finish(&mut self, reader: &RocksReader) -> Result<(), StoreError> {
        self.collect(&reader.0, true)?;
        let (tables, rows) = self.staged(&reader.0, BTreeMap::new())?;
        reader.0.put_meta(rows)?;
        reader.0.posting_tables.replace(tables);
        Ok(())
    }
}

impl Opened {
    /// What to freeze or merge next.
    fn next_work(&self) -> Option<Work> {
        let tables = self.posting_tables.all();
        let limit = self.options.postings_in_memory;
        let all = self.options.budget.postings.load(Ordering::Relaxed);
        let largest = tables.iter().max_by_key(|(_, table)| table.in_memory()).map(|(&language, _)| language);
        tables.iter().find_map(|(&language, table)| {
            // Smaller segments would only be merged again. If there is twice the limit in all, one of up to 64 languages has
            // this many.
            let large = Some(language) == largest && table.in_memory() > limit / 32;
            let short = large && all > limit.saturating_mul(2);
            table.work(language, table.in_memory() >= limit || short)
        })
    }

    /// Deletes the files of segments that are not used any more, once that is durable. Returns those that are still read.
    fn delete(&self, doomed: Vec<(Lang, Arc<Segment>)>) -> Result<Vec<(Lang, Arc<Segment>)>, StoreError> {
        if doomed.is_empty() {
            return Ok(doomed);
        }
        self.flush()?;
        let (unused, read): (Vec<_>, Vec<_>) =
            doomed.into_iter().partition(|(_, segment)| Arc::strong_count(segment) == 1);
        unused.into_iter().try_for_each(|(language, segment)| self.delete_segment(language, segment.id))?;
        Ok(read)
    }

    pub(super) fn delete_segment(&self, language: Lang, id: u32) -> Result<(), StoreError> {
        let family = self.existing(Family::Bands(language))?;
        let (from, to) = (id.to_be_bytes(), id.saturating_add(1).to_be_bytes());
        self.db.delete_file_in_range_cf(&family, from, to).map_err(|error| self.failure(&error))
    }

    fn put_meta(&self, rows: MetaRows) -> Result<(), StoreError> {
        if rows.is_empty() {
            return Ok(());
        }
        self.write(self.options.durability, || {
            let mut batch = WriteBatch::default();
            self.add_meta(&mut batch, &rows)?;
            Ok(batch)
        })
    }

    pub(crate) fn add_meta(&self, batch: &mut WriteBatch, rows: &MetaRows) -> Result<(), StoreError> {
        let meta = self.existing(Family::Meta)?;
        for (key, value) in rows {
            match value {
                Some(value) => batch.put_cf(&meta, key, value),
                None => batch.delete_cf(&meta, key),
            }
        }
        Ok(())
    }

    /// Forgets the segments that turned out to be damaged. They are built again from the documents when the store is
    /// opened again.
    pub(crate) fn forget_damaged(&self, error: StoreError) -> StoreError {
        let damaged = self.posting_tables.damaged();
        if damaged.is_empty() || !matches!(error, StoreError::Corrupt { .. }) {
            return error;
        }
        let rows = damaged.keys().map(|&(language, id)| (coverage_key(language, id), None)).collect();
        match self.put_meta(rows).and_then(|()| self.flush()) {
            Ok(()) => StoreError::Stalled {
                place: self.place.clone(),
                detail: format!(
                    "a segment of postings is damaged and is built again when the store is opened: {error}"
                ),
            },
            Err(_) => error,
        }
    }

    /// Removes all postings; [`Opened::load_postings`] builds them again.
    pub(crate) fn drop_postings(&self) -> Result<(), StoreError> {
        for language in self.languages() {
            let [_, bands] = Family::of_language(language);
            if self.family(bands).is_some() {
                self.db.drop_cf(&bands.name()).map_err(|error| self.failure(&error))?;
            }
            self.create(bands, &self.options)?;
            let rows = [key::SEGMENT, key::REMOVED].map(|about| self.meta_rows(about, language));
            for row in rows {
                self.put_meta(row?.into_iter().map(|(key, _)| (key, None)).collect())?;
            }
        }
        Ok(())
    }

    fn meta_rows(&self, about: &[u8], language: Lang) -> Result<Vec<KeyAndValue>, StoreError> {
        let prefix = key::of_language(about, language);
        let mut rows = Vec::new();
        let span = Span::prefix(&prefix);
        self.scan_rows(ReadOptions::default(), Family::Meta, &span, Order::Ascending, &mut |key, value| {
            rows.push((key.to_vec(), value.to_vec()));
            ControlFlow::Continue(())
        })?;
        Ok(rows)
    }

    fn invalid(&self, row: &str, error: &DecodeError) -> StoreError {
        StoreError::damaged(&self.place, row, error)
    }

    /// The first document of a language in this order.
    fn edge_document(&self, language: Lang, order: Order) -> Result<Option<u64>, StoreError> {
        let mut edge = None;
        let (options, documents) = (ReadOptions::default(), Family::Documents(language));
        self.scan_rows(options, documents, &Span::all(), order, &mut |key, _| {
            edge = key::decode_number(key).ok().map(|DocumentNumber(number)| number);
            ControlFlow::Break(())
        })?;
        Ok(edge)
    }

    /// Loads the segments that are there and are sound. The others are forgotten.
    fn load_segments(&self, language: Lang, damage: Damage) -> Result<Vec<Arc<Segment>>, StoreError> {
        let mut segments: Vec<Arc<Segment>> = Vec::new();
        let mut damaged: Vec<(u32, u64, String)> = Vec::new();
        let mut rows = Vec::new();
        for (key, value) in self.meta_rows(key::SEGMENT, language)? {
            let id = last_number(&key).map(u32::from_be_bytes);
            let id = id.map_err(|error| self.invalid("meta segment", &error))?;
            self.posting_tables.next_segment.fetch_max(id.saturating_add(1), Ordering::Relaxed);
            match decode_coverage(&value) {
                Ok(coverage) => rows.push((coverage.from, id, coverage)),
                // Perhaps another version's. The documents say all that it said.
                Err(error) => damaged.push((id, 0, format!("its row in meta cannot be read: {error}"))),
            }
        }
        rows.sort_unstable_by_key(|&(from, id, _)| (from, id));
        let highest = self.edge_document(language, Order::Descending)?;
        for (_, id, coverage) in rows {
            let beyond =
                segments.last().is_some_and(|before| coverage.from < before.coverage.to) || highest.is_none();
            let loaded = match beyond {
                true => Err("it covers other documents than there are".to_owned()),
                false => match Segment::load(self, language, id, coverage) {
                    Ok(segment) => Ok(segment),
                    Err(StoreError::Corrupt { detail, .. }) => Err(detail),
                    Err(other) => return Err(other),
                },
            };
            match loaded {
                Ok(segment) => segments.push(Arc::new(segment)),
                Err(detail) => damaged.push((id, coverage.documents, detail)),
            }
        }
        let lost: u64 = damaged.iter().map(|&(_, documents, _)| documents).sum();
        if let Damage::Rebuild { most } = damage
            && lost > most
            && highest.is_some()
        {
            return Err(StoreError::OtherBands {
                place: self.place.clone(),
                found: format!("damaged segments of the postings of {lost} documents of {language}"),
                expected: "complete postings".into(),
            });
        }
        let mut forgotten = MetaRows::new();
        for (id, _, detail) in damaged {
            if highest.is_some() {
                tracing::warn!(
                    state = self.place,
                    %language,
                    segment = id,
                    "a segment of postings is damaged, building it again from the documents: {detail}"
                );
            }
            if damage == Damage::Keep {
                self.posting_tables.note_damage(language, id, &detail);
            }
            forgotten.push((coverage_key(language, id), None));
        }
        if damage != Damage::Keep {
            self.put_meta(forgotten)?;
            self.delete_strangers(language, &segments)?;
        }
        Ok(segments)
    }

    /// Deletes files that belong to no segment: a crash came between their ingestion and the next write.
    fn delete_strangers(&self, language: Lang, segments: &[Arc<Segment>]) -> Result<(), StoreError> {
        let known: BTreeSet<u32> = segments.iter().map(|segment| segment.id).collect();
        let name = Family::Bands(language).name();
        for file in self.db.live_files().map_err(|error| self.failure(&error))? {
            let id = file.start_key.as_deref().and_then(decode_row_key).map(|(id, _)| id);
            if let Some(id) = id.filter(|_| file.column_family_name == name) {
                self.posting_tables.next_segment.fetch_max(id.saturating_add(1), Ordering::Relaxed);
                if !known.contains(&id) {
                    self.delete_segment(language, id)?;
                }
            }
        }
        Ok(())
    }
}

impl RocksReader {
    /// Loads the postings: the segments, and from the documents what no segment covers. More than fits into memory becomes
    /// segments, unless nothing may be written.
    pub(crate) fn load_postings(&self, damage: Damage, watch: &mut Watch<'_>) -> Result<(), StoreError> {
        let change = damage != Damage::Keep;
        // Left by an interrupted build.
        if change {
            drop(std::fs::remove_dir_all(Path::new(&self.0.place).join(SST_DIRECTORY)));
        }
        for language in self.0.languages() {
            let mut table = Table { segments: self.0.load_segments(language, damage)?, ..Table::default() };
            for (key, value) in self.0.meta_rows(key::REMOVED, language)? {
                let read =
                    last_number(&key).and_then(|chunk| table.removed.load(u64::from_be_bytes(chunk), &value));
                read.map_err(|error| self.0.invalid("meta removed", &error))?;
            }
            self.fill(language, &mut table, change, watch)?;
            self.0.posting_tables.replace(Tables::from([(language, Arc::new(table))]));
        }
        Ok(())
    }

    /// Posts the documents that no segment covers.
    fn fill(
        &self,
        language: Lang,
        table: &mut Table,
        change: bool,
        watch: &mut Watch<'_>,
    ) -> Result<(), StoreError> {
        let opened = &*self.0;
        let covered = table.covered();
        // Only what a segment covers can have come after it was frozen.
        let mut changed = BTreeSet::new();
        let uncovered: Vec<u64> = table.removed.posted().range(covered..).copied().collect();
        uncovered.into_iter().for_each(|number| table.mark(number, false, false, &mut changed));
        if change {
            opened.put_meta(table.removed_rows(language, &changed))?;
        }
        let mut ranges = Vec::new();
        let mut from = 0;
        for segment in &table.segments {
            ranges.push((from, Some(segment.coverage.from)));
            from = segment.coverage.to;
        }
        ranges.push((from, None));
        ranges.retain(|&(from, to)| to != Some(from));
        let limit = if change { opened.options.postings_in_memory } else { usize::MAX };
        let of = match table.segments.is_empty() {
            true => self.documents_of(language)?,
            false => 0,
        };
        let interrupted = || opened.unusable("rebuilding its postings was interrupted".into());
        let stop = AtomicBool::new(false);
        let removed = table.removed.clone();
        // One thread reads and computes while the other sorts and writes.
        let (full, parts) = sync_channel::<(u64, u64, Vec<Posting>, u64)>(1);
        let (built, left) = std::thread::scope(|scope| {
            let removed = &removed;
            let build = move || -> Result<Vec<Segment>, StoreError> {
                let mut built = Vec::new();
                for (from, to, mut postings, documents) in parts {
                    postings.sort_unstable_by_key(|posting| posting.order());
                    let removed = removed.count(from, to);
                    let about = Coverage {
                        from,
                        to,
                        postings: postings.len() as u64,
                        documents,
                        removed,
                        checksum: 0,
                    };
                    match Segment::write(opened, language, about, postings.into_iter().map(Ok), &stop) {
                        Ok(segment) => built.extend(segment),
                        Err(Failure::Store(error)) => return Err(error),
                        Err(Failure::Stopped) => return Err(interrupted()),
                    }
                }
                Ok(built)
            };
            let thread = std::thread::Builder::new().name("new-postings".into()).spawn_scoped(scope, build);
            let thread = thread.map_err(|error| opened.unusable(error.to_string()))?;
            let read = (|| {
                let (mut left, mut done) = (Vec::new(), 0);
                for (first, to) in ranges {
                    let (mut from, mut postings, mut documents, mut outcome) = (first, Vec::new(), 0, Ok(()));
                    let mut post = |number: u64, value: &[u8]| -> Result<(), StoreError> {
                        done += 1;
                        if done % STEP == 0
                            && done < of
                            && watch(Rebanded { language, documents: done, of }).is_break()
                        {
                            return Err(interrupted());
                        }
                        // These stay in memory, below.
                        if number < covered && removed.posted().contains(&number) {
                            return Ok(());
                        }
                        if postings.len() >= limit {
                            let part =
                                (from, number, std::mem::take(&mut postings), std::mem::take(&mut documents));
                            full.send(part).map_err(|_| interrupted())?;
                            from = number;
                        }
                        match self.postings_of(language, number, value) {
                            Ok(own) => postings.extend(own),
                            Err(StoreError::Corrupt { detail, .. }) if !change => {
                                opened.posting_tables.note_damage(language, DOCUMENTS, &detail);
                            }
                            Err(error) => return Err(error),
                        }
                        documents += 1;
                        Ok(())
                    };
                    let span = Span {
                        from: key::number(DocumentNumber(first)).to_vec(),
                        to: to.map(|to| key::number(DocumentNumber(to)).to_vec()),
                    };
                    let scanned = opened.scan_rows(
                        ReadOptions::default(),
                        Family::Documents(language),
                        &span,
                        Order::Ascending,
                        &mut |key, value| {
                            outcome = key::decode_number(key)
                                .map_err(|error| opened.invalid("a document's key", &error))
                                .and_then(|DocumentNumber(number)| post(number, value));
                            if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                        },
                    );
                    match scanned.and(outcome) {
                        Err(StoreError::Corrupt { detail, .. }) if !change => {
                            opened.posting_tables.note_damage(language, DOCUMENTS, &detail);
                        }
                        read => read?,
                    }
                    match to {
                        Some(to) if change && !postings.is_empty() => {
                            full.send((from, to, postings, documents)).map_err(|_| interrupted())?;
                        }
                        _ => left.extend(postings),
                    }
                }
                Ok::<_, StoreError>(left)
            })();
            drop(full);
            let built = thread.join().unwrap_or_else(|_| Err(opened.unusable("a thread panicked".into())));
            // If the builder failed, the reader only knows that the channel closed; so the builder's error comes first.
            let built = built?;
            Ok::<_, StoreError>((built, read?))
        })?;
        let mut postings = left;
        for &number in table.removed.posted() {
            let key = key::number(DocumentNumber(number));
            let value = opened.db.get_cf(&opened.existing(Family::Documents(language))?, key);
            if number < covered
                && let Some(value) = value.map_err(|error| opened.failure(&error))?
            {
                postings.extend(self.postings_of(language, number, &value)?);
            }
        }
        opened.put_meta(built.iter().map(|segment| coverage_row(language, segment)).collect())?;
        table.segments.extend(built.into_iter().map(Arc::new));
        table.segments.sort_unstable_by_key(|segment| segment.coverage.from);
        table.runs = Run::of(postings).into_iter().map(Arc::new).collect();
        match of > 0 && watch(Rebanded { language, documents: of, of }).is_break() {
            true => Err(interrupted()),
            false => Ok(()),
        }
    }

    fn postings_of(&self, language: Lang, number: u64, value: &[u8]) -> Result<Vec<Posting>, StoreError> {
        let document = decode_own(&self.0.place, language, DocumentNumber(number), value)?;
        let buckets = self.postings().for_language(language).keys(&document.fingerprint);
        Ok(buckets_of(&buckets, DocumentNumber(number)).collect())
    }
}

impl Opened {
    fn unusable(&self, detail: String) -> StoreError {
        StoreError::Unusable { place: self.place.clone(), detail }
    }
}
