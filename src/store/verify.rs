//! Whether a store is whole: every row can be read and means something, and every document has exactly the rows
//! that follow from it.
//!
//! The rows that there should be are never looked up one by one: what should be there and what is there are each
//! added up, and the sums compared. That reads every block once, in order, whatever the size of the store.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use xxhash_rust::xxh3::xxh3_128;

use super::bytes::DecodeError;
use super::change::{document_postings, document_rows};
use super::key::{self, Family};
use super::rows::{Order, Span};
use super::view::View;
use super::{StoreError, value};

/// What was found in a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// Rows read.
    pub rows: u64,
    /// Documents among them.
    pub documents: u64,
    /// What is wrong, in words, family by family; nothing if the store is whole.
    pub findings: Vec<String>,
}

/// How many rows, and the sum of their hashes: the same for the same rows in any order.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Tally {
    rows: u64,
    sum: u128,
}

impl Tally {
    fn add(&mut self, key: &[u8], value: &[u8]) {
        self.rows += 1;
        let length = (key.len() as u64).to_le_bytes();
        self.sum = self.sum.wrapping_add(xxh3_128(&[&length[..], key, value].concat()));
    }
}

/// Reads everything. With RocksDB every block's checksum is compared on the way.
///
/// # Errors
/// Something could not be read; that store is damaged, see [`StoreError::Corrupt`].
pub fn verify<V: View + ?Sized>(store: &V) -> Result<Verification, StoreError> {
    let mut verification = Verification::default();
    let (mut should, mut is) = (BTreeMap::<Family, Tally>::new(), BTreeMap::<Family, Tally>::new());
    let languages = store.languages();
    for family in languages.into_iter().flat_map(Family::of).chain(Family::COMMON) {
        let mut damage: Option<String> = None;
        store.scan(family, &Span::all(), Order::Ascending, &mut |key, value| {
            verification.rows += 1;
            match check(store, family, key, value, &mut should) {
                Ok(Derived::Yes) => is.entry(family).or_default().add(key, value),
                Ok(Derived::No) => {}
                Err(error) => {
                    damage.get_or_insert_with(|| {
                        format!("{}: key {}: {error}", family.name(), key.escape_ascii())
                    });
                }
            }
            if let Family::Documents(_) = family {
                verification.documents += 1;
            }
            ControlFlow::Continue(())
        })?;
        verification.findings.extend(damage);
    }
    for &family in should.keys().chain(is.keys()).collect::<std::collections::BTreeSet<_>>() {
        let tally = |tallies: &BTreeMap<Family, Tally>| tallies.get(&family).copied().unwrap_or_default();
        let (should, is) = (tally(&should), tally(&is));
        if should != is {
            let rows = match should.rows.cmp(&is.rows) {
                std::cmp::Ordering::Equal => "rows that do not belong to them".to_owned(),
                _ => format!("{}", is.rows),
            };
            let name = family.name();
            verification
                .findings
                .push(format!("{name}: the documents have {} rows here; found {rows}", should.rows));
        }
    }
    Ok(verification)
}

/// Whether a row follows from a document.
enum Derived {
    Yes,
    No,
}

/// Reads one row; a document says what else there should be.
fn check<V: View + ?Sized>(
    store: &V,
    family: Family,
    key: &[u8],
    value: &[u8],
    should: &mut BTreeMap<Family, Tally>,
) -> Result<Derived, DecodeError> {
    match family {
        Family::Documents(language) => {
            let document = value::decode_document(language, value)?;
            if key != key::number(document.number) {
                return Err(DecodeError::Value("a number that is not its key"));
            }
            for ((family, key), value) in document_rows(&document) {
                if !matches!(family, Family::Documents(_)) {
                    should.entry(family).or_default().add(&key, &value);
                }
            }
            let postings = should.entry(Family::Bands(language)).or_default();
            document_postings(&document, store.postings()).iter().for_each(|key| postings.add(key, &[]));
            Ok(Derived::No)
        }
        Family::Bands(_) => key::decode_posting(key).map(|_| Derived::Yes),
        Family::Ids => key::decode_id(key).map(|_| Derived::Yes),
        Family::Expiry => key::decode_expiry(key).map(|_| Derived::Yes),
        Family::Clusters => match key::decode_cluster(key)? {
            key::ClusterRow::Cluster(language, founder) => {
                value::decode_cluster(language, founder, value).map(|_| Derived::No)
            }
            key::ClusterRow::Member => Ok(Derived::Yes),
        },
        Family::Meta if key == key::POSITION => value::decode_progress(value).map(|_| Derived::No),
        Family::Meta => Ok(Derived::No),
    }
}
