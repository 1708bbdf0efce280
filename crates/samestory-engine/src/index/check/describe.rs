//! Describes what is wrong with a row that follows from a document.
//!
//! The check calls this for each differing row. A description names the row, the document and what does not
//! match, so that an operator can judge the damage without reading bytes.

use crate::index::format::key;
use crate::index::format::key::{ClusterRow, Family, IdRow, Overdue};
use crate::index::read::view::View;
use crate::index::scheme::{IndexScheme, PostingKind};
use crate::lsh::BandKey;
use crate::model::{DocumentNumber, Lang};

/// Describes a row whose expected and actual values differ.
pub(super) fn describe<V: View + ?Sized>(
    store: &V,
    family: Family,
    key: &[u8],
    should: Option<&[u8]>,
    is: Option<&[u8]>,
) -> String {
    let unreadable = || format!("invalid key {}", key.escape_ascii());
    let present = is.is_some();
    match family {
        Family::Bands(language) => match key::decode_posting(key) {
            Ok((bucket, number)) if present => {
                let problem = problem_with(store, language, number, "does not belong there");
                format!("{} names document {number}, which {problem}", bucket_name(bucket))
            }
            Ok((bucket, number)) => {
                format!("document {number} has no posting in {}", bucket_name(bucket))
            }
            Err(_) => unreadable(),
        },
        Family::Ids => {
            let number = |value: Option<&[u8]>| key::decode_number(value.unwrap_or_default());
            match (key::decode_id(key), number(should), number(is)) {
                (Ok(IdRow::Document(id, language)), Ok(should), Ok(is)) => {
                    format!(
                        "id {id:?} ({language}) points to document {is}, but belongs to document {should}"
                    )
                }
                (Ok(IdRow::Document(id, language)), Ok(should), Err(_)) => {
                    format!("id {id:?} ({language}) is missing; it belongs to document {should}")
                }
                (Ok(IdRow::Document(id, language)), Err(_), Ok(is)) => {
                    let problem = problem_with(store, language, is, "has another id");
                    format!("id {id:?} ({language}) points to document {is}, which {problem}")
                }
                _ => unreadable(),
            }
        }
        Family::Expiry => match key::decode_expiry(key) {
            Ok((language, time, Overdue::Residence(id))) => {
                let time = time.millis();
                match present {
                    true => {
                        format!("residence of {id:?} ({language}) has a row at {time} ms, but does not exist")
                    }
                    false => format!("residence of {id:?} ({language}) since {time} ms has no row"),
                }
            }
            Ok((language, time, Overdue::Document(number))) if present => {
                let problem = problem_with(store, language, number, "was last seen at another time");
                format!("document {number} ({language}) has a row at {} ms, but {problem}", time.millis())
            }
            Ok((language, time, Overdue::Document(number))) => {
                format!("document {number} ({language}), last seen at {} ms, has no row", time.millis())
            }
            Err(_) => unreadable(),
        },
        Family::Clusters => match key::decode_cluster(key) {
            Ok(ClusterRow::Member(language, founder, number)) if present => {
                let problem = problem_with(store, language, number, "is in another cluster");
                format!("cluster {founder} ({language}) lists document {number}, which {problem}")
            }
            Ok(ClusterRow::Member(language, founder, number)) => {
                format!("cluster {founder} ({language}) does not list document {number}, which is in it")
            }
            _ => unreadable(),
        },
        Family::Documents(_) | Family::Meta => unreadable(),
    }
}

/// The problem with a document: it is missing, it is unreadable, or it exists and `otherwise` applies.
fn problem_with<V: View + ?Sized>(
    store: &V,
    language: Lang,
    number: DocumentNumber,
    otherwise: &'static str,
) -> &'static str {
    match store.document(language, number) {
        Ok(Some(_)) => otherwise,
        Ok(None) => "does not exist",
        Err(_) => "cannot be read",
    }
}

fn bucket_name(BandKey { band, hash }: BandKey) -> String {
    match IndexScheme::kind(BandKey { band, hash }) {
        PostingKind::MinHash | PostingKind::SimHash => format!("band {band:#06x} hash {hash:016x}"),
        PostingKind::Content => format!("content {hash:016x}"),
        PostingKind::Sample => format!("sample {hash:08x}"),
    }
}
