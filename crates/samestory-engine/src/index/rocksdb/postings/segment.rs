//! A segment: the postings of a range of document numbers, sorted, in rows of an SST file of `bands:<lang>`. In memory it has
//! a membership filter, and fences that say which row may hold a posting. It never changes; [`super::upkeep`] replaces
//! segments as a whole.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rocksdb::{DBRawIterator, IngestExternalFileOptions, ReadOptions, SstFileWriter};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::index::StoreError;
use crate::index::format::key::Family;
use crate::index::format::segment::{
    Coverage, Posting, PostingRow, ROW, RowKind, decode_fences, decode_row_key, encode_coverage,
    encode_fences, encode_row, part_key, row_key,
};
use crate::index::memory_shares::filter_bytes;
use crate::index::rocksdb::cache::bloom::{Blocks, of_bucket};
use crate::index::rocksdb::cache::rows::RowBytes;
use crate::index::rocksdb::{Opened, open};
use crate::model::Lang;

/// Bytes of a part of the filter or of the fences.
const PART: usize = 1 << 16;
/// Rows that are read at once.
const READ: usize = 128;
/// Where SST files are built: inside the store's directory, so that they need not be copied.
pub(crate) const SST_DIRECTORY: &str = "new-postings";

/// The postings of a range of documents.
pub(crate) struct Segment {
    pub(crate) id: u32,
    pub(crate) coverage: Coverage,
    filter: Blocks,
    /// The last posting of each row: their keys, and where to look for a posting.
    fences: Vec<Posting>,
}

/// Why a build ended without a segment.
pub(crate) enum Failure {
    /// It was told to stop.
    Stopped,
    Store(StoreError),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        Failure::Store(error)
    }
}

impl Segment {
    /// Writes sorted postings as a segment and ingests it; `None` if there are none. `about` tells what the segment
    /// covers; its checksum and the number of postings are filled in.
    pub(crate) fn write(
        opened: &Opened,
        language: Lang,
        about: Coverage,
        postings: impl Iterator<Item = Result<Posting, StoreError>>,
        stop: &AtomicBool,
    ) -> Result<Option<Segment>, Failure> {
        let id = opened.posting_tables.next_segment();
        let directory = Path::new(&opened.place).join(SST_DIRECTORY);
        std::fs::create_dir_all(&directory)
            .map_err(|error| crate::index::rocksdb::io_failure(&opened.place, &error))?;
        let path = directory.join(format!("{id}.sst"));
        let written = write_file(opened, language, id, about, postings, &path, stop);
        let ingested = written.and_then(|segment| {
            if segment.is_some() {
                let mut ingesting = IngestExternalFileOptions::default();
                ingesting.set_move_files(true);
                let family = opened.existing(Family::Bands(language))?;
                let ingested =
                    opened.db.ingest_external_file_cf_opts(&family, &ingesting, vec![path.clone()]);
                ingested.map_err(|error| opened.failure(&error))?;
            }
            Ok(segment)
        });
        // Also after a failure: on a full disk an unfinished file would take the space that opening needs.
        drop(std::fs::remove_file(&path));
        ingested
    }

    /// Reads the filter of a segment that was written earlier.
    pub(crate) fn load(
        opened: &Opened,
        language: Lang,
        id: u32,
        coverage: Coverage,
    ) -> Result<Segment, StoreError> {
        let mut rows = iterator(opened, language)?;
        let mut read = |kind: RowKind| -> Result<Vec<u8>, StoreError> {
            let mut bytes = Vec::new();
            rows.seek(part_key(id, kind, 0));
            while let Some((key, value)) = rows.item() {
                if decode_row_key(key) != Some((id, kind)) {
                    break;
                }
                bytes.extend(value);
                rows.next();
            }
            rows.status().map_err(|error| opened.failure(&error))?;
            Ok(bytes)
        };
        let (fences, filter) = (read(RowKind::Fences)?, read(RowKind::Filter)?);
        if checksum(&coverage, &fences, &filter) != coverage.checksum {
            let detail = "its filter, its fences or its row in meta is missing or has another checksum";
            return Err(damaged(opened, language, id, detail));
        }
        match (Blocks::decode(&filter), decode_fences(&fences)) {
            (Some(filter), Ok(fences)) => Ok(Segment { id, coverage, filter, fences }),
            _ => Err(damaged(opened, language, id, "its filter or its fences cannot be read")),
        }
    }

    /// Whether a bucket may be in it; `false` is certain. `hash` is that of the bucket in filters.
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        self.filter.contains(hash)
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.filter.bytes() + self.fences.len() * size_of::<Posting>()
    }

    /// Visits the document numbers below `below` of several buckets, newest first within each, until the visitor returns
    /// `false` for that bucket. Buckets are ascending; each comes with what the visitor is told about it.
    pub(crate) fn buckets<T: Copy>(
        &self,
        opened: &Opened,
        language: Lang,
        below: u64,
        buckets: &[(T, u64)],
        mut visit: impl FnMut(T, u64) -> bool,
    ) -> Result<(), StoreError> {
        let mut from = 0;
        // The row of each bucket's newest posting.
        let place = |&(_, bucket): &(T, u64)| {
            from += self.rows_before(from, Posting { bucket, number: below - 1 });
            from
        };
        let places: Vec<usize> = buckets.iter().map(place).collect();
        let mut wanted: Vec<usize> = places.iter().copied().filter(|&at| at < self.fences.len()).collect();
        wanted.dedup();
        let mut buckets = buckets.iter().zip(&places).peekable();
        for wanted in wanted.chunks(READ) {
            let rows = self.read_rows(opened, language, wanted)?;
            for (&at, bytes) in wanted.iter().zip(&rows) {
                let row = self.row(opened, language, bytes)?;
                while let Some((&(about, bucket), _)) = buckets.next_if(|(_, place)| **place == at) {
                    let first = Posting { bucket, number: below - 1 };
                    if visit_row(&row, first, &mut |number| visit(about, number)) {
                        self.following_rows(opened, language, at + 1, first, |number| visit(about, number))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// How many rows from this one on end before a posting.
    fn rows_before(&self, from: usize, wanted: Posting) -> usize {
        let fences = &self.fences[from..];
        let before = |fence: &Posting| fence.order() < wanted.order();
        // Buckets come in order, so the next row is often near.
        let mut step = 1;
        while fences.get(step - 1).is_some_and(before) {
            step *= 2;
        }
        let (low, high) = (step / 2, (step - 1).min(fences.len()));
        low + fences[low..high].partition_point(before)
    }

    /// Visits the postings of a large bucket in the rows from this one on.
    fn following_rows(
        &self,
        opened: &Opened,
        language: Lang,
        from: usize,
        first: Posting,
        mut visit: impl FnMut(u64) -> bool,
    ) -> Result<(), StoreError> {
        for at in from..self.fences.len() {
            for bytes in self.read_rows(opened, language, &[at])? {
                if !visit_row(&self.row(opened, language, &bytes)?, first, &mut visit) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Rows by number, ascending, from the cache or from disk.
    fn read_rows(
        &self,
        opened: &Opened,
        language: Lang,
        wanted: &[usize],
    ) -> Result<Vec<RowBytes>, StoreError> {
        let id = |at: usize| (self.id, at as u32);
        let mut rows = opened.row_cache.get(wanted.iter().map(|&at| id(at)));
        let missing: Vec<usize> = (0..wanted.len()).filter(|&at| rows[at].is_none()).collect();
        if !missing.is_empty() {
            let family = opened.existing(Family::Bands(language))?;
            let keys = missing.iter().map(|&at| row_key(self.id, self.fences[wanted[at]]));
            let read = opened.db.batched_multi_get_cf_opt(
                &family,
                &keys.collect::<Vec<_>>(),
                true,
                &ReadOptions::default(),
            );
            for (&at, value) in missing.iter().zip(read) {
                let value = value.map_err(|error| {
                    opened.damaged_segment(language, self.id, error.as_ref(), opened.failure(&error))
                })?;
                let Some(value) = value else {
                    let detail = format!("row {} of {} is missing", wanted[at], self.fences.len());
                    let failure = damaged(opened, language, self.id, &detail);
                    return Err(opened.damaged_segment(language, self.id, &detail, failure));
                };
                rows[at] = Some(RowBytes::from(&value[..]));
            }
            let read = missing.iter().filter_map(|&at| Some((id(wanted[at]), rows[at].clone()?)));
            opened.row_cache.keep(read);
        }
        Ok(rows.into_iter().flatten().collect())
    }

    fn row<'r>(
        &self,
        opened: &Opened,
        language: Lang,
        value: &'r [u8],
    ) -> Result<PostingRow<'r>, StoreError> {
        PostingRow::decode(value, self.coverage.from).map_err(|error| {
            let failure = damaged(opened, language, self.id, &error.to_string());
            opened.damaged_segment(language, self.id, &error.to_string(), failure)
        })
    }

    /// All postings in order.
    pub(crate) fn postings<'o>(
        &self,
        opened: &'o Opened,
        language: Lang,
    ) -> Result<Postings<'o>, StoreError> {
        let mut rows = iterator(opened, language)?;
        rows.seek(row_key(self.id, Posting { bucket: 0, number: u64::MAX }));
        let (id, coverage) = (self.id, self.coverage);
        Ok(Postings { opened, language, id, coverage, rows, read: Vec::new(), at: 0, seen: 0, ended: false })
    }
}

/// Visits the postings of a bucket in a row, and returns whether there may be more of them in the next row.
fn visit_row(row: &PostingRow<'_>, first: Posting, visit: &mut impl FnMut(u64) -> bool) -> bool {
    for at in row.find(first)..row.len() {
        let posting = row.get(at);
        if posting.bucket != first.bucket || !visit(posting.number) {
            return false;
        }
    }
    true
}

fn iterator(opened: &Opened, language: Lang) -> Result<DBRawIterator<'_>, StoreError> {
    let family = opened.existing(Family::Bands(language))?;
    Ok(opened.db.raw_iterator_cf_opt(&family, ReadOptions::default()))
}

fn damaged(opened: &Opened, language: Lang, id: u32, detail: &str) -> StoreError {
    StoreError::Corrupt {
        place: opened.place.clone(),
        detail: format!("bands:{language} segment {id}: {detail}"),
    }
}

/// Checksum of what a segment covers, of its fences and of its filter.
fn checksum(coverage: &Coverage, fences: &[u8], filter: &[u8]) -> u64 {
    let covers = encode_coverage(&Coverage { checksum: 0, ..*coverage });
    xxh3_64_with_seed(filter, xxh3_64_with_seed(fences, xxh3_64(&covers)))
}

fn write_file(
    opened: &Opened,
    language: Lang,
    id: u32,
    about: Coverage,
    postings: impl Iterator<Item = Result<Posting, StoreError>>,
    path: &Path,
    stop: &AtomicBool,
) -> Result<Option<Segment>, Failure> {
    let failure = |error: rocksdb::Error| opened.failure(&error);
    let settings = open::family_options(Family::Bands(language), &opened.options);
    let mut table = SstFileWriter::create(&settings);
    table.open(path).map_err(failure)?;
    let mut filter = Blocks::of_bytes(filter_bytes(about.postings) as usize);
    let (mut row, mut bytes, mut count, mut fences) = (Vec::with_capacity(ROW), Vec::new(), 0u64, Vec::new());
    let mut put = |row: &mut Vec<Posting>| -> Result<(), StoreError> {
        if let Some(&last) = row.last() {
            encode_row(row, about.from, &mut bytes);
            table.put(row_key(id, last), &bytes).map_err(failure)?;
            fences.push(last);
            row.clear();
        }
        Ok(())
    };
    let mut last = None;
    for posting in postings {
        let posting = posting?;
        if last.replace(posting.bucket) != Some(posting.bucket) {
            filter.insert(of_bucket(posting.bucket));
        }
        count += 1;
        row.push(posting);
        if row.len() == ROW {
            put(&mut row)?;
            if stop.load(Ordering::Relaxed) {
                return Err(Failure::Stopped);
            }
        }
    }
    put(&mut row)?;
    if count == 0 {
        return Ok(None);
    }
    let (filter_bytes, fence_bytes) = (filter.encode(), encode_fences(&fences));
    for (kind, bytes) in [(RowKind::Fences, &fence_bytes), (RowKind::Filter, &filter_bytes)] {
        for (part, bytes) in (0..).zip(bytes.chunks(PART)) {
            table.put(part_key(id, kind, part), bytes).map_err(failure)?;
        }
    }
    table.finish().map_err(failure)?;
    let mut coverage = Coverage { postings: count, ..about };
    coverage.checksum = checksum(&coverage, &fence_bytes, &filter_bytes);
    Ok(Some(Segment { id, coverage, filter, fences }))
}

/// The postings of a segment in order, read row by row.
pub(crate) struct Postings<'o> {
    opened: &'o Opened,
    language: Lang,
    id: u32,
    coverage: Coverage,
    rows: DBRawIterator<'o>,
    read: Vec<Posting>,
    at: usize,
    seen: u64,
    ended: bool,
}

impl Postings<'_> {
    fn read_row(&mut self) -> Result<bool, StoreError> {
        self.read.clear();
        self.at = 0;
        if let Some((key, value)) = self.rows.item()
            && decode_row_key(key) == Some((self.id, RowKind::Postings))
        {
            let row = PostingRow::decode(value, self.coverage.from)
                .map_err(|error| damaged(self.opened, self.language, self.id, &error.to_string()))?;
            self.read.extend((0..row.len()).map(|at| row.get(at)));
            self.seen += row.len() as u64;
            self.rows.next();
            return Ok(true);
        }
        self.rows.status().map_err(|error| self.opened.failure(&error))?;
        if self.seen != self.coverage.postings {
            let detail = format!("{} of {} postings are there", self.seen, self.coverage.postings);
            return Err(damaged(self.opened, self.language, self.id, &detail));
        }
        Ok(false)
    }
}

impl Iterator for Postings<'_> {
    type Item = Result<Posting, StoreError>;

    fn next(&mut self) -> Option<Result<Posting, StoreError>> {
        if self.ended {
            return None;
        }
        if self.at == self.read.len() {
            match self.read_row() {
                Ok(true) => {}
                Ok(false) => {
                    self.ended = true;
                    return None;
                }
                Err(error) => {
                    self.ended = true;
                    return Some(Err(self.opened.damaged_segment(self.language, self.id, "", error)));
                }
            }
        }
        self.at += 1;
        self.read.get(self.at - 1).copied().map(Ok)
    }
}

/// Sorted postings from several sorted sources, without those that are not wanted.
pub(crate) fn merged<'i>(
    mut sources: Vec<Box<dyn Iterator<Item = Result<Posting, StoreError>> + 'i>>,
) -> impl Iterator<Item = Result<Posting, StoreError>> + 'i {
    let mut heap = BinaryHeap::with_capacity(sources.len());
    let mut failed = None;
    for (source, postings) in sources.iter_mut().enumerate() {
        match postings.next() {
            None => {}
            Some(Ok(posting)) => heap.push(Reverse((posting.order(), source))),
            Some(Err(error)) => failed = Some(error),
        }
    }
    std::iter::from_fn(move || {
        if let Some(error) = failed.take() {
            heap.clear();
            return Some(Err(error));
        }
        let Reverse(((bucket, inverted), source)) = heap.pop()?;
        match sources[source].next() {
            None => {}
            Some(Ok(posting)) => heap.push(Reverse((posting.order(), source))),
            Some(Err(error)) => failed = Some(error),
        }
        Some(Ok(Posting { bucket, number: !inverted }))
    })
}
