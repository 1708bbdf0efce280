//! The integrity check: every row can be decoded, and every document has exactly the rows that follow from
//! it.
//!
//! `samestory state verify` runs it on any [`View`]; findings name the wrong rows one by one. The expected
//! rows are never looked up individually: the expected and the actual rows are each summed up ([`checksums`])
//! and the sums compared, so every block is read once and in order, whatever the size of the store. Only if
//! sums differ is the store read a second time to name the rows.

mod checksums;
mod describe;
mod invariants;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use super::StoreError;
use super::format::bytes::DecodeError;
use super::format::header::Format;
use super::format::key;
use super::format::key::{Family, IdRow};
use super::format::value;
use super::read::rows::{Order, Span};
use super::read::view::View;
use super::record::{Document, Residence};
use super::write_set::change::{document_postings, document_rows};

use checksums::{Checksums, Difference};

pub use invariants::cross_check;

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// Rows read.
    pub rows: u64,
    /// Documents among those rows.
    pub documents: u64,
    /// Postings among those rows.
    pub postings: u64,
    /// Descriptions of what is wrong, each starting with its column family; empty if the store is sound.
    pub findings: Vec<String>,
    /// The names of the column families that could not be read to their end.
    pub unread: Vec<String>,
}

/// Progress of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verifying {
    /// The column family being read.
    pub family: Family,
    /// Rows read so far, in all families.
    pub rows: u64,
}

/// The progress callback.
type VerifyWatch<'a> = dyn FnMut(Verifying) + 'a;
/// The callback for each row of a document.
type EachRow<'a> = dyn FnMut(Family, &[u8], &[u8]) + 'a;
/// By row, its expected and its actual value.
type Compared = BTreeMap<(Family, Vec<u8>), [Option<Vec<u8>>; 2]>;

/// Rows between two progress reports.
const STEP: u64 = 1 << 14;
/// How many findings of one kind are named per column family; further ones are only counted.
const NAMED: usize = 20;

/// Checks the whole store. With RocksDB, reading also verifies the checksum of every block.
///
/// # Errors
/// The store cannot be read at all. Damage is a finding, not an error.
pub fn verify<V: View + ?Sized>(store: &V) -> Result<Verification, StoreError> {
    verify_watched(store, &mut |_| {})
}

/// As [`verify`], with a progress callback.
///
/// # Errors
/// As [`verify`].
pub fn verify_watched<V: View + ?Sized>(
    store: &V,
    watch: &mut dyn FnMut(Verifying),
) -> Result<Verification, StoreError> {
    let mut verification = Verification::default();
    let (mut should, mut is) = (Checksums::default(), Checksums::default());
    let mut unread = BTreeSet::new();
    for family in families(store) {
        let mut wrong = Findings::new(family);
        let scanned = store.scan(family, &Span::all(), Order::Ascending, &mut |key, value| {
            verification.rows += 1;
            if verification.rows.is_multiple_of(STEP) {
                watch(Verifying { family, rows: verification.rows });
            }
            match read(family, key, value) {
                Ok(RowRole::Document(document)) => {
                    verification.documents += 1;
                    each_row(store, &document, &mut |family, key, value| should.add(family, key, value));
                }
                Ok(RowRole::Residence(row)) => {
                    let listed = key::residence_expiry(row.language, row.since, &row.id);
                    should.add(Family::Expiry, &listed, &[]);
                }
                Ok(RowRole::Derived) => {
                    verification.postings += u64::from(matches!(family, Family::Bands(_)));
                    is.add(family, key, value);
                }
                Ok(RowRole::Own) => {}
                Err(error) => wrong.add(|| format!("key {}: {error}", key.escape_ascii())),
            }
            ControlFlow::Continue(())
        });
        match scanned {
            Err(StoreError::Corrupt { detail, .. }) => {
                wrong.add(|| detail);
                unread.insert(family);
            }
            other => other?,
        }
        verification.findings.extend(wrong.into_vec());
    }
    let documents: Vec<Family> =
        unread.iter().copied().filter(|family| matches!(family, Family::Documents(_))).collect();
    let comparable = |family: &Family| match family {
        _ if unread.contains(family) => false,
        Family::Bands(language) => !documents.contains(&Family::Documents(*language)),
        Family::Expiry if unread.contains(&Family::Ids) => false,
        _ => documents.is_empty(),
    };
    let (compared, left): (Vec<Difference>, Vec<Difference>) =
        should.differences(&is).into_iter().partition(|difference| comparable(&difference.family));
    verification.findings.extend(left.iter().filter(|left| !unread.contains(&left.family)).map(|left| {
        format!("{}: not compared with its documents, which could not all be read", left.family.name())
    }));
    for difference in &compared {
        let (name, should, is) = (difference.family.name(), difference.should, difference.is);
        let found = if should == is { "as many, but different ones".to_owned() } else { is.to_string() };
        verification.findings.push(format!("{name}: expected {should} rows, found {found}"));
    }
    verification.findings.extend(name_rows(store, &compared)?);
    verification.unread = unread.into_iter().map(Family::name).collect();
    Ok(verification)
}

/// The column families in the order of the check: documents come before the rows that follow from them.
fn families<V: View + ?Sized>(store: &V) -> impl Iterator<Item = Family> + use<V> {
    store.languages().into_iter().flat_map(Family::of_language).chain(Family::COMMON)
}

/// Reads the differing parts of the store again and names the surplus and missing rows.
fn name_rows<V: View + ?Sized>(store: &V, differences: &[Difference]) -> Result<Vec<String>, StoreError> {
    if differences.is_empty() {
        return Ok(Vec::new());
    }
    let parts: BTreeMap<Family, &Difference> =
        differences.iter().map(|difference| (difference.family, difference)).collect();
    let concerned = |family: Family, key: &[u8]| parts.get(&family).is_some_and(|part| part.holds(key));
    let mut rows = Compared::new();
    for language in store.languages() {
        if parts.keys().all(|family| matches!(family, Family::Bands(other) if *other != language)) {
            continue;
        }
        let documents = Family::Documents(language);
        store.scan(documents, &Span::all(), Order::Ascending, &mut |key, value| {
            if let Ok(RowRole::Document(document)) = read(documents, key, value) {
                each_row(store, &document, &mut |family, key, value| {
                    if concerned(family, key) {
                        rows.entry((family, key.to_vec())).or_default()[0] = Some(value.to_vec());
                    }
                });
            }
            ControlFlow::Continue(())
        })?;
    }
    if parts.contains_key(&Family::Expiry) {
        store.scan(Family::Ids, &Span::all(), Order::Ascending, &mut |key, value| {
            if let Ok(RowRole::Residence(row)) = read(Family::Ids, key, value) {
                let listed = key::residence_expiry(row.language, row.since, &row.id);
                if concerned(Family::Expiry, &listed) {
                    rows.entry((Family::Expiry, listed)).or_default()[0] = Some(Vec::new());
                }
            }
            ControlFlow::Continue(())
        })?;
    }
    let mut findings = Vec::new();
    for &family in parts.keys() {
        store.scan(family, &Span::all(), Order::Ascending, &mut |key, value| {
            if matches!(read(family, key, value), Ok(RowRole::Derived)) && concerned(family, key) {
                rows.entry((family, key.to_vec())).or_default()[1] = Some(value.to_vec());
            }
            ControlFlow::Continue(())
        })?;
        let mut wrong = Findings::new(family);
        let differing = rows.iter().filter(|((of, _), [should, is])| *of == family && should != is);
        for ((_, key), [should, is]) in differing {
            wrong.add(|| describe::describe(store, family, key, should.as_deref(), is.as_deref()));
        }
        findings.extend(wrong.into_vec());
    }
    Ok(findings)
}

/// The first few findings of one kind in a column family.
struct Findings {
    family: Family,
    named: Vec<String>,
    more: u64,
}

impl Findings {
    fn new(family: Family) -> Findings {
        Findings { family, named: Vec::new(), more: 0 }
    }

    fn add(&mut self, finding: impl FnOnce() -> String) {
        if self.named.len() < NAMED {
            self.named.push(format!("{}: {}", self.family.name(), finding()));
        } else {
            self.more += 1;
        }
    }

    fn into_vec(self) -> Vec<String> {
        let more =
            (self.more > 0).then(|| format!("{}: and {} more like these", self.family.name(), self.more));
        self.named.into_iter().chain(more).collect()
    }
}

/// The role of a row.
enum RowRole {
    /// A document, from which other rows follow.
    Document(Box<Document>),
    /// A residence, which has a row in `expiry`.
    Residence(Box<Residence>),
    /// Derived from a document or a residence.
    Derived,
    /// Independent of other rows.
    Own,
}

fn read(family: Family, key: &[u8], value: &[u8]) -> Result<RowRole, DecodeError> {
    match family {
        Family::Documents(language) => {
            let document = value::decode_document(language, value)?;
            match key == key::number(document.number) {
                true => Ok(RowRole::Document(Box::new(document))),
                false => Err(DecodeError::Value("a number that is not its key")),
            }
        }
        Family::Bands(_) => key::decode_posting(key).map(|_| RowRole::Derived),
        Family::Ids => match key::decode_id(key)? {
            IdRow::Residence(id) => {
                value::decode_residence(id, value).map(|row| RowRole::Residence(Box::new(row)))
            }
            IdRow::Document(..) => key::decode_number(value).map(|_| RowRole::Derived),
        },
        Family::Expiry => key::decode_expiry(key).map(|_| RowRole::Derived),
        Family::Clusters => match key::decode_cluster(key)? {
            key::ClusterRow::Cluster(language, founder) => {
                value::decode_cluster(language, founder, value).map(|_| RowRole::Own)
            }
            key::ClusterRow::Member(..) => Ok(RowRole::Derived),
        },
        Family::Meta => match key {
            key::POSITION => value::decode_progress(value).map(|_| RowRole::Own),
            key::CHANGELOG => key::decode_number(value).map(|_| RowRole::Own),
            key::FORMAT => Format::decode(value).map(|_| RowRole::Own),
            #[cfg(feature = "rocksdb")]
            _ if key.starts_with(key::SEGMENT) || key.starts_with(key::REMOVED) => {
                super::format::segment::check(key, value).map(|()| RowRole::Own)
            }
            _ => Err(DecodeError::Value("a row of this name")),
        },
    }
}

/// Visits every row that follows from a document.
fn each_row<V: View + ?Sized>(store: &V, document: &Document, visit: &mut EachRow<'_>) {
    for ((family, key), value) in document_rows(document) {
        if !matches!(family, Family::Documents(_)) {
            visit(family, &key, &value);
        }
    }
    for key in document_postings(document, store.postings()) {
        visit(Family::Bands(document.language), &key, &[]);
    }
}
