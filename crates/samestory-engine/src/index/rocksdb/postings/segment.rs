//! A segment: the postings of a range of document numbers, sorted, in an SST file of `bands:<lang>`, with a membership
//! filter in memory. It never changes; [`super::upkeep`] replaces segments as a whole.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rocksdb::{DBRawIterator, IngestExternalFileOptions, ReadOptions, SstFileWriter};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::index::StoreError;
use crate::index::format::key::Family;
use crate::index::format::segment::{
    Coverage, Posting, PostingRow, ROW, decode_row_key, encode_coverage, encode_row, filter_key, row_key,
};
use crate::index::memory_shares::filter_bytes;
use crate::index::rocksdb::cache::bloom::{Blocks, of_bucket};
use crate::index::rocksdb::{Opened, open};
use crate::model::Lang;

/// Bytes of a part of the filter.
const PART: usize = 1 << 16;
/// Where SST files are built: inside the store's directory, so that they need not be copied.
pub(crate) const SST_DIRECTORY: &str = "new-postings";

/// The postings of a range of documents.
pub(crate) struct Segment {
    pub(crate) id: u32,
    pub(crate) coverage: Coverage,
    filter: Blocks,
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
        let mut bytes = Vec::new();
        rows.seek(filter_key(id, 0));
        while let Some((key, value)) = rows.item() {
            if decode_row_key(key) != Some((id, false)) {
                break;
            }
            bytes.extend(value);
            rows.next();
        }
        rows.status().map_err(|error| opened.failure(&error))?;
        let filter = Blocks::decode(&bytes).filter(|_| checksum(&coverage, &bytes) == coverage.checksum);
        let filter = filter.ok_or_else(|| {
            damaged(opened, language, id, "its filter or its row in meta is missing or has another checksum")
        })?;
        Ok(Segment { id, coverage, filter })
    }

    /// Whether a bucket may be in it; `false` is certain. `hash` is that of the bucket in filters.
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        self.filter.contains(hash)
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.filter.bytes()
    }

    /// Visits the document numbers of a bucket below a number, newest first, until the visitor returns `false`.
    pub(crate) fn bucket(
        &self,
        opened: &Opened,
        language: Lang,
        rows: &mut DBRawIterator<'_>,
        first: Posting,
        mut visit: impl FnMut(u64) -> bool,
    ) -> Result<(), StoreError> {
        // Buckets are asked for in order, so the row that was read last is often the right one.
        let key = row_key(self.id, first);
        if !self.is_row_of(rows, &key, first) {
            rows.seek(key);
        }
        while let Some((key, value)) = rows.item() {
            if decode_row_key(key) != Some((self.id, true)) {
                return Ok(());
            }
            let row = self.row(opened, language, value)?;
            for at in row.find(first)..row.len() {
                let posting = row.get(at);
                if posting.bucket != first.bucket || !visit(posting.number) {
                    return Ok(());
                }
            }
            rows.next();
        }
        rows.status().map_err(|error| {
            opened.damaged_segment(language, self.id, error.as_ref(), opened.failure(&error))
        })
    }

    /// Whether the row that was read last is the first that may hold this posting or a later one.
    fn is_row_of(&self, rows: &DBRawIterator<'_>, wanted: &[u8], first: Posting) -> bool {
        let Some((key, value)) = rows.item() else { return false };
        let begins = || PostingRow::decode(value, self.coverage.from).map(|row| row.get(0).order());
        decode_row_key(key) == Some((self.id, true))
            && wanted <= key
            && begins().is_ok_and(|begins| begins <= first.order())
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

pub(crate) fn iterator(opened: &Opened, language: Lang) -> Result<DBRawIterator<'_>, StoreError> {
    let family = opened.existing(Family::Bands(language))?;
    Ok(opened.db.raw_iterator_cf_opt(&family, ReadOptions::default()))
}

fn damaged(opened: &Opened, language: Lang, id: u32, detail: &str) -> StoreError {
    StoreError::Corrupt {
        place: opened.place.clone(),
        detail: format!("bands:{language} segment {id}: {detail}"),
    }
}

/// Checksum of what a segment covers and of its filter.
fn checksum(coverage: &Coverage, filter: &[u8]) -> u64 {
    let covers = encode_coverage(&Coverage { checksum: 0, ..*coverage });
    xxh3_64_with_seed(filter, xxh3_64(&covers))
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
    let (mut row, mut bytes, mut count) = (Vec::with_capacity(ROW), Vec::new(), 0u64);
    let mut put = |row: &mut Vec<Posting>| -> Result<(), StoreError> {
        if let Some(&last) = row.last() {
            encode_row(row, about.from, &mut bytes);
            table.put(row_key(id, last), &bytes).map_err(failure)?;
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
    let encoded = filter.encode();
    for (part, bytes) in (0..).zip(encoded.chunks(PART)) {
        table.put(filter_key(id, part), bytes).map_err(failure)?;
    }
    table.finish().map_err(failure)?;
    let mut coverage = Coverage { postings: count, ..about };
    coverage.checksum = checksum(&coverage, &encoded);
    Ok(Some(Segment { id, coverage, filter }))
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
            && decode_row_key(key) == Some((self.id, true))
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
        // The next posting of a source takes the place of its last one: that costs half of taking one out and putting one in.
        let mut first = heap.peek_mut()?;
        let Reverse(((bucket, inverted), source)) = *first;
        match sources[source].next() {
            Some(Ok(posting)) => *first = Reverse((posting.order(), source)),
            None => drop(PeekMut::pop(first)),
            Some(Err(error)) => {
                PeekMut::pop(first);
                failed = Some(error);
            }
        }
        Some(Ok(Posting { bucket, number: !inverted }))
    })
}
