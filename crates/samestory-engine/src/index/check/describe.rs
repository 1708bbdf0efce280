//! What is wrong with a row that follows from a document, in words.

use crate::index::format::key;
use crate::index::format::key::{ClusterRow, Family, IdRow, Overdue};
use crate::index::read::view::View;
use crate::index::scheme::{IndexScheme, PostingKind};
use crate::lsh::BandKey;
use crate::model::{DocumentNumber, Lang};

/// What is wrong with a row: with the value it should have, and the one it has.
pub(super) fn of<V: View + ?Sized>(
    store: &V,
    family: Family,
    key: &[u8],
    should: Option<&[u8]>,
    is: Option<&[u8]>,
) -> String {
    let unreadable = || format!("key {} is not one that this program writes", key.escape_ascii());
    let there = is.is_some();
    match family {
        Family::Bands(language) => match key::decode_posting(key) {
            Ok((bucket, number)) if there => {
                let but = standing(store, language, number, "does not belong there");
                format!("{} names document {number}, which {but}", place(bucket))
            }
            Ok((bucket, number)) => {
                format!("document {number} has no posting in {}", place(bucket))
            }
            Err(_) => unreadable(),
        },
        Family::Ids => {
            let number = |value: Option<&[u8]>| key::decode_number(value.unwrap_or_default());
            match (key::decode_id(key), number(should), number(is)) {
                (Ok(IdRow::Document(id, language)), Ok(should), Ok(is)) => {
                    format!("id {id:?} ({language}) leads to document {is}, but it is document {should}")
                }
                (Ok(IdRow::Document(id, language)), Ok(should), Err(_)) => {
                    format!("id {id:?} ({language}) is missing; it is document {should}")
                }
                (Ok(IdRow::Document(id, language)), Err(_), Ok(is)) => {
                    let but = standing(store, language, is, "has another id");
                    format!("id {id:?} ({language}) leads to document {is}, which {but}")
                }
                _ => unreadable(),
            }
        }
        Family::Expiry => match key::decode_expiry(key) {
            Ok((language, time, Overdue::Residence(id))) => {
                let time = time.millis();
                match there {
                    true => {
                        format!("residence of {id:?} ({language}) is listed at {time} ms, but is not there")
                    }
                    false => format!("residence of {id:?} ({language}) since {time} ms is not listed"),
                }
            }
            Ok((language, time, Overdue::Document(number))) if there => {
                let but = standing(store, language, number, "was last seen at another time");
                format!("document {number} ({language}) is listed at {} ms, but {but}", time.millis())
            }
            Ok((language, time, Overdue::Document(number))) => {
                format!("document {number} ({language}), last seen at {} ms, is not listed", time.millis())
            }
            Err(_) => unreadable(),
        },
        Family::Clusters => match key::decode_cluster(key) {
            Ok(ClusterRow::Member(language, founder, number)) if there => {
                let but = standing(store, language, number, "is in another");
                format!("cluster {founder} ({language}) lists document {number}, which {but}")
            }
            Ok(ClusterRow::Member(language, founder, number)) => {
                format!("cluster {founder} ({language}) does not list document {number}, which is in it")
            }
            _ => unreadable(),
        },
        Family::Documents(_) | Family::Meta => unreadable(),
    }
}

/// Whether the document is there at all; if it is, what else is the matter.
fn standing<V: View + ?Sized>(
    store: &V,
    language: Lang,
    number: DocumentNumber,
    otherwise: &'static str,
) -> &'static str {
    match store.document(language, number) {
        Ok(Some(_)) => otherwise,
        Ok(None) => "is not there",
        Err(_) => "cannot be read",
    }
}

fn place(BandKey { band, hash }: BandKey) -> String {
    match IndexScheme::kind(BandKey { band, hash }) {
        PostingKind::MinHash | PostingKind::SimHash => format!("band {band:#06x} hash {hash:016x}"),
        PostingKind::Content => format!("content {hash:016x}"),
        PostingKind::Sample => format!("sample {hash:08x}"),
    }
}
