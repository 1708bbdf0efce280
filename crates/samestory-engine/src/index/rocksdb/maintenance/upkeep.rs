//! Inspection and compaction of a store, for operators.
//!
//! The `state` commands call it. Counts are exact unless they are marked as estimates; compaction changes no
//! row.

use std::ops::ControlFlow;

use rocksdb::{BottommostLevelCompaction, CompactOptions, properties};

use crate::index::format::key;
use crate::index::format::key::Family;
use crate::index::read::rows::{Order, Span};
use crate::index::read::view::View;
use crate::index::rocksdb::{Opened, Rocks, RocksReader};
use crate::index::{Format, Progress, StoreError};
use crate::model::Lang;

/// The contents of a store in numbers.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// What the store was created with.
    pub format: Option<Format>,
    /// How far it has been processed.
    pub progress: Progress,
    /// The changelog offset to resume from.
    pub changelog_next: Option<u64>,
    /// The contents of each language.
    pub languages: Vec<LanguageInspection>,
    /// Bytes on disk of all column families.
    pub bytes: u64,
}

/// The contents of one language in numbers.
#[derive(Clone, Debug)]
pub struct LanguageInspection {
    /// The language.
    pub language: Lang,
    /// Number of documents, exact.
    pub documents: u64,
    /// Number of residences, exact: ids that moved, are gone, or were published and not stored.
    pub residences: u64,
    /// Number of clusters with a row, exact.
    pub clusters: u64,
    /// Number of postings, those of removed documents included that have not been rewritten yet.
    pub postings: u64,
    /// Number of segments that hold postings; those of the newest documents are in none.
    pub segments: u64,
    /// Bytes on disk of its documents and postings.
    pub bytes: u64,
}

impl RocksReader {
    /// Counts and sizes of everything in the store.
    ///
    /// # Errors
    /// The store could not be read.
    pub fn inspect(&self) -> Result<Inspection, StoreError> {
        let format = self.format()?.map(|bytes| Format::decode(&bytes)).transpose();
        let format = format.map_err(|error| self.damage(Family::Meta, "format", &error))?;
        let languages = View::languages(self).into_iter().map(|language| {
            let [documents, bands] = Family::of_language(language);
            let (counted, all) =
                (self.documents_of(language)?, self.count(Family::Expiry, &key::language_prefix(language))?);
            let (segments, postings) =
                self.0.posting_tables.of(language).map(|table| table.counts()).unwrap_or_default();
            Ok(LanguageInspection {
                language,
                documents: counted,
                residences: all - counted,
                clusters: self.count(Family::Clusters, &key::clusters(language))?,
                postings,
                segments,
                bytes: self.0.bytes(documents)? + self.0.bytes(bands)?,
            })
        });
        Ok(Inspection {
            format,
            progress: self.progress()?,
            changelog_next: self.changelog_next()?,
            languages: languages.collect::<Result<_, _>>()?,
            bytes: self.0.families().into_iter().map(|family| self.0.bytes(family)).sum::<Result<_, _>>()?,
        })
    }

    /// Counts the documents of a language.
    pub(crate) fn documents_of(&self, language: Lang) -> Result<u64, StoreError> {
        let mut count = 0;
        let span = Span::prefix(&key::language_prefix(language));
        self.scan(Family::Expiry, &span, Order::Ascending, &mut |key, _| {
            count += u64::from(key::is_document_expiry(key));
            ControlFlow::Continue(())
        })?;
        Ok(count)
    }

    pub(crate) fn count(&self, family: Family, prefix: &[u8]) -> Result<u64, StoreError> {
        let mut count = 0;
        self.scan(family, &Span::prefix(prefix), Order::Ascending, &mut |_, _| {
            count += 1;
            ControlFlow::Continue(())
        })?;
        Ok(count)
    }
}

impl Opened {
    fn property(&self, family: Family, name: &rocksdb::properties::PropName) -> Result<u64, StoreError> {
        let value = self.db.property_int_value_cf(&self.existing(family)?, name);
        value.map(Option::unwrap_or_default).map_err(|error| self.failure(&error))
    }

    fn bytes(&self, family: Family) -> Result<u64, StoreError> {
        self.property(family, properties::LIVE_SST_FILES_SIZE)
    }
}

impl Rocks {
    /// Flushes and compacts everything, so that removed data no longer takes space.
    ///
    /// # Errors
    /// Compaction failed; the data is unchanged.
    pub fn compact(&mut self) -> Result<(), StoreError> {
        let compacted = self.upkeep.compact(&self.reader);
        compacted.map_err(|error| self.opened().forget_damaged(error))?;
        let opened = self.opened();
        opened.flush()?;
        let mut options = CompactOptions::default();
        options.set_bottommost_level_compaction(BottommostLevelCompaction::ForceOptimized);
        // Segments are replaced as a whole, above.
        for family in opened.families().into_iter().filter(|family| !matches!(family, Family::Bands(_))) {
            opened.db.compact_range_cf_opt(&opened.existing(family)?, None::<&[u8]>, None::<&[u8]>, &options);
        }
        // RocksDB does not report how a compaction went; a full disk shows here.
        opened.check_background()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::fingerprint::{LANES, fingerprint};
    use crate::index::{
        Budget, Change, Document, Durability, IndexScheme, IndexSchemes, Judgement, OutputTopic,
        RocksOptions, SimHashBands, Store, verify,
    };
    use crate::lsh::Banding;
    use crate::model::{ArticleId, BoundedStr, DocumentNumber, EventTime, Fraction, Position, VerdictKind};
    use crate::text::language::LANGUAGES;

    pub(in crate::index::rocksdb) fn document(number: u64) -> Change {
        let text = format!("the river {number} rises above its banks and the town of a thousand waits");
        Change::Document(std::sync::Arc::new(Document {
            number: DocumentNumber(number),
            id: ArticleId::new(&format!("a{number}")).unwrap(),
            language: Lang::UND,
            fingerprint: fingerprint(&text, &LANGUAGES[0], 1),
            title: None,
            host: None,
            url: None,
            published_at: None,
            event_time: EventTime::from_millis(0),
            last_seen: EventTime::from_millis(0),
            position: Position::File { file: BoundedStr::new("a"), line: number },
            cluster: DocumentNumber(0),
            revision: 0,
            outlet: OutputTopic::None,
            judgement: Judgement {
                verdict: VerdictKind::Unique,
                match_type: None,
                is_part: false,
                duplicate_of: None,
                similarity: Fraction::new(0.0),
                confidence: Fraction::new(1.0),
            },
            flags: 0,
        }))
    }

    /// A temporary directory for this test.
    pub(in crate::index::rocksdb) fn temporary(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("samestory-{}-{name}", std::process::id()))
    }

    pub(in crate::index::rocksdb) fn empty_store(name: &str) -> (Rocks, std::path::PathBuf) {
        let directory = temporary(name);
        drop(std::fs::remove_dir_all(&directory));
        let posting = IndexScheme {
            minhash: Banding::new(32, 4, LANES).ok(),
            simhash: SimHashBands::None,
            samples: 2,
            shortest: 1,
        };
        let options = RocksOptions::new(IndexSchemes::new(posting), Durability::OwnWal, Budget::new(8 << 20));
        (Rocks::open(&directory, &options).unwrap(), directory)
    }

    #[test]
    fn nothing_is_applied_on_top_of_a_batch_that_failed() {
        let (mut store, directory) = empty_store("broken");
        store.apply_own_changes(&[document(0)]).unwrap();
        store.opened().db.drop_cf("expiry").unwrap();
        let failure = store.apply_own_changes(&[document(1)]).unwrap_err();
        // The cause goes away, as a full disk does.
        store.opened().create(Family::Expiry, &store.opened().options).unwrap();
        assert_eq!(store.apply_own_changes(&[document(2)]), Err(failure));
        assert_eq!(store.document(Lang::UND, DocumentNumber(2)), Ok(None));
        drop(store);
        drop(std::fs::remove_dir_all(&directory));
    }

    #[test]
    fn a_row_too_many_or_too_few_is_found_in_every_family() {
        let (mut store, directory) = empty_store("verify");
        store.apply_own_changes(&[document(0), document(1)]).unwrap();
        let sound = verify(&store).unwrap();
        assert_eq!((sound.documents, sound.findings.len()), (2, 0));
        let families = [Family::Documents(Lang::UND), Family::Ids, Family::Expiry, Family::Clusters];
        for family in families {
            let opened = store.opened();
            let handle = opened.existing(family).unwrap();
            let mut rows = opened.db.raw_iterator_cf(&handle);
            rows.seek_to_first();
            let (key, value) = rows.item().map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap();
            drop(rows);
            opened.db.delete_cf(&handle, &key).unwrap();
            let findings = verify(&store).unwrap().findings;
            assert!(!findings.is_empty(), "a row of {} is gone and nobody noticed", family.name());
            let mut other = key.clone();
            *other.last_mut().unwrap() ^= 0x40;
            opened.db.put_cf(&handle, &other, &value).unwrap();
            let findings = verify(&store).unwrap().findings;
            assert!(!findings.is_empty(), "a row of {} was replaced and nobody noticed", family.name());
            opened.db.delete_cf(&handle, &other).unwrap();
            opened.db.put_cf(&handle, &key, &value).unwrap();
            assert_eq!(verify(&store).unwrap(), sound);
        }
        drop(store);
        drop(std::fs::remove_dir_all(&directory));
    }
}
