//! Whether a store is whole: every row can be read and means something, and every document has exactly the rows
//! that follow from it. What is wrong is named, row by row.
//!
//! The rows that there should be are never looked up one by one: what should be there and what is there are each
//! added up ([`tally`]), and the sums compared. That reads every block once, in order, whatever the size of the
//! store. Only where sums differ is the store read a second time, for the names of the rows.

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

use checksums::{Difference, Tallies};

pub use invariants::cross_check;

/// What was found in a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// Rows read.
    pub rows: u64,
    /// Documents among them.
    pub documents: u64,
    /// Postings among them.
    pub postings: u64,
    /// What is wrong, in words, each beginning with its family; nothing if the store is whole.
    pub findings: Vec<String>,
    /// The families that could not be read to their end, by name.
    pub unread: Vec<String>,
}

/// How far a verification has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verifying {
    /// What is being read.
    pub family: Family,
    /// Rows read so far, of all families.
    pub rows: u64,
}

/// Who is told how far it has come.
type Watch<'a> = dyn FnMut(Verifying) + 'a;
/// Who is shown the rows of a document.
type EachRow<'a> = dyn FnMut(Family, &[u8], &[u8]) + 'a;
/// By row, what its value should be and what it is.
type Compared = BTreeMap<(Family, Vec<u8>), [Option<Vec<u8>>; 2]>;

/// Rows between two reports.
const STEP: u64 = 1 << 14;
/// Findings of one kind that are named in a family; more are counted.
const NAMED: usize = 20;

/// Reads everything. With RocksDB every block's checksum is compared on the way.
///
/// # Errors
/// The store cannot be asked at all. What is damaged is a finding.
pub fn verify<V: View + ?Sized>(store: &V) -> Result<Verification, StoreError> {
    verify_watched(store, &mut |_| {})
}

/// As [`verify`], and says how far it has come.
///
/// # Errors
/// As [`verify`].
pub fn verify_watched<V: View + ?Sized>(
    store: &V,
    watch: &mut dyn FnMut(Verifying),
) -> Result<Verification, StoreError> {
    let mut verification = Verification::default();
    let (mut should, mut is) = (Tallies::default(), Tallies::default());
    let mut unread = BTreeSet::new();
    for family in families(store) {
        let mut wrong = Named::new(family);
        let scanned = store.scan(family, &Span::all(), Order::Ascending, &mut |key, value| {
            verification.rows += 1;
            if verification.rows.is_multiple_of(STEP) {
                watch(Verifying { family, rows: verification.rows });
            }
            match read(family, key, value) {
                Ok(Meaning::Document(document)) => {
                    verification.documents += 1;
                    each_row(store, &document, &mut |family, key, value| should.add(family, key, value));
                }
                Ok(Meaning::Residence(row)) => {
                    let listed = key::residence_expiry(row.language, row.since, &row.id);
                    should.add(Family::Expiry, &listed, &[]);
                }
                Ok(Meaning::Derived) => {
                    verification.postings += u64::from(matches!(family, Family::Bands(_)));
                    is.add(family, key, value);
                }
                Ok(Meaning::Own) => {}
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
        verification.findings.extend(wrong.told());
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
        let found = if should == is { "as many, but others".to_owned() } else { is.to_string() };
        verification.findings.push(format!("{name}: the documents have {should} rows here; found {found}"));
    }
    verification.findings.extend(name(store, &compared)?);
    verification.unread = unread.into_iter().map(Family::name).collect();
    Ok(verification)
}

/// Documents come before what follows from them.
fn families<V: View + ?Sized>(store: &V) -> impl Iterator<Item = Family> + use<V> {
    store.languages().into_iter().flat_map(Family::of).chain(Family::COMMON)
}

/// Reads the differing parts of the store again, and names the rows that are too many or too few.
fn name<V: View + ?Sized>(store: &V, differences: &[Difference]) -> Result<Vec<String>, StoreError> {
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
            if let Ok(Meaning::Document(document)) = read(documents, key, value) {
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
            if let Ok(Meaning::Residence(row)) = read(Family::Ids, key, value) {
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
            if matches!(read(family, key, value), Ok(Meaning::Derived)) && concerned(family, key) {
                rows.entry((family, key.to_vec())).or_default()[1] = Some(value.to_vec());
            }
            ControlFlow::Continue(())
        })?;
        let mut wrong = Named::new(family);
        let differing = rows.iter().filter(|((of, _), [should, is])| *of == family && should != is);
        for ((_, key), [should, is]) in differing {
            wrong.add(|| describe::of(store, family, key, should.as_deref(), is.as_deref()));
        }
        findings.extend(wrong.told());
    }
    Ok(findings)
}

/// The first few of the same kind, in a family.
struct Named {
    family: Family,
    named: Vec<String>,
    more: u64,
}

impl Named {
    fn new(family: Family) -> Named {
        Named { family, named: Vec::new(), more: 0 }
    }

    fn add(&mut self, finding: impl FnOnce() -> String) {
        if self.named.len() < NAMED {
            self.named.push(format!("{}: {}", self.family.name(), finding()));
        } else {
            self.more += 1;
        }
    }

    fn told(self) -> Vec<String> {
        let more =
            (self.more > 0).then(|| format!("{}: and {} more like these", self.family.name(), self.more));
        self.named.into_iter().chain(more).collect()
    }
}

/// What a row is.
enum Meaning {
    /// A document, which says what other rows there should be.
    Document(Box<Document>),
    /// What is remembered of an id without a document; it is listed in `expiry`.
    Residence(Box<Residence>),
    /// It follows from a document or a residence.
    Derived,
    /// It stands for itself.
    Own,
}

fn read(family: Family, key: &[u8], value: &[u8]) -> Result<Meaning, DecodeError> {
    match family {
        Family::Documents(language) => {
            let document = value::decode_document(language, value)?;
            match key == key::number(document.number) {
                true => Ok(Meaning::Document(Box::new(document))),
                false => Err(DecodeError::Value("a number that is not its key")),
            }
        }
        Family::Bands(_) => key::decode_posting(key).map(|_| Meaning::Derived),
        Family::Ids => match key::decode_id(key)? {
            IdRow::Residence(id) => {
                value::decode_residence(id, value).map(|row| Meaning::Residence(Box::new(row)))
            }
            IdRow::Document(..) => key::decode_number(value).map(|_| Meaning::Derived),
        },
        Family::Expiry => key::decode_expiry(key).map(|_| Meaning::Derived),
        Family::Clusters => match key::decode_cluster(key)? {
            key::ClusterRow::Cluster(language, founder) => {
                value::decode_cluster(language, founder, value).map(|_| Meaning::Own)
            }
            key::ClusterRow::Member(..) => Ok(Meaning::Derived),
        },
        Family::Meta => match key {
            key::POSITION => value::decode_progress(value).map(|_| Meaning::Own),
            key::CHANGELOG => key::decode_number(value).map(|_| Meaning::Own),
            key::FORMAT => Format::decode(value).map(|_| Meaning::Own),
            _ => Err(DecodeError::Value("a row of this name")),
        },
    }
}

/// Every row that follows from a document.
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
