//! Changes: what a decision does to the index, with the changelog encoding and the rows that follow from a
//! document.
//!
//! The engine plans changes, the changelog carries them, and an overlay turns them into rows.
//!
//! A change carries the complete value of its key, so only the last change of each key matters, and a
//! compacted changelog restores the same state as the full one.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::lsh::BandKey;
use crate::model::{ArticleId, DocumentNumber, Lang};

use crate::index::format::bytes::DecodeError;
use crate::index::format::key;
use crate::index::format::key::{ChangeKey, Family};
use crate::index::format::value;
use crate::index::record::{Cluster, Document, Progress, Residence};
use crate::index::scheme::IndexSchemes;

/// A change to the index.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(
    clippy::large_enum_variant,
    reason = "a plan has one progress, and nearly all of its changes are documents"
)]
pub enum Change {
    /// Sets the document of its language and id.
    Document(Arc<Document>),
    /// Removes the document.
    NoDocument(Lang, ArticleId),
    /// Sets the cluster of its founder.
    Cluster(Box<Cluster>),
    /// Removes the cluster's row.
    ClusterDeleted(Lang, DocumentNumber),
    /// Sets the position record.
    Progress(Progress),
    /// Sets the residence of an id.
    Residence(Box<Residence>),
    /// Removes the residence of an id.
    NoResidence(ArticleId),
}

impl Change {
    /// The key that it sets or removes.
    pub fn key(&self) -> ChangeKey {
        match self {
            Change::Document(document) => ChangeKey::Document(document.language, document.id.clone()),
            Change::NoDocument(language, id) => ChangeKey::Document(*language, id.clone()),
            Change::Cluster(cluster) => ChangeKey::Cluster(cluster.id.language, cluster.id.number),
            Change::ClusterDeleted(language, founder) => ChangeKey::Cluster(*language, *founder),
            Change::Progress(_) => ChangeKey::Progress,
            Change::Residence(row) => ChangeKey::Residence(row.id.clone()),
            Change::NoResidence(id) => ChangeKey::Residence(id.clone()),
        }
    }

    /// The language whose column families it needs.
    pub fn language(&self) -> Option<Lang> {
        match self {
            Change::Document(document) => Some(document.language),
            _ => None,
        }
    }

    /// The key and value of its changelog record; a record without a value is a tombstone.
    pub fn encode(&self) -> (Vec<u8>, Option<Vec<u8>>) {
        let value = match self {
            Change::Document(document) => Some(value::encode_document(document)),
            Change::Cluster(cluster) => Some(value::encode_cluster(cluster)),
            Change::Progress(progress) => Some(value::encode_progress(progress)),
            Change::Residence(row) => Some(value::encode_residence(row)),
            Change::NoDocument(..) | Change::ClusterDeleted(..) | Change::NoResidence(_) => None,
        };
        (self.key().encode(), value)
    }

    /// Decodes a changelog record.
    ///
    /// # Errors
    /// The record was not written by this version of the program: another log, a newer version, or damage.
    /// Stop.
    pub fn decode(key: &[u8], value: Option<&[u8]>) -> Result<Change, DecodeError> {
        match (ChangeKey::decode(key)?, value) {
            (ChangeKey::Document(language, id), None) => Ok(Change::NoDocument(language, id)),
            (ChangeKey::Document(language, id), Some(value)) => {
                let document = value::decode_document(language, value)?;
                if document.id != id {
                    return Err(DecodeError::Value("a document under another's key"));
                }
                Ok(Change::Document(Arc::new(document)))
            }
            (ChangeKey::Cluster(language, founder), None) => Ok(Change::ClusterDeleted(language, founder)),
            (ChangeKey::Cluster(language, founder), Some(value)) => {
                value::decode_cluster(language, founder, value)
                    .map(|cluster| Change::Cluster(Box::new(cluster)))
            }
            (ChangeKey::Progress, Some(value)) => value::decode_progress(value).map(Change::Progress),
            (ChangeKey::Progress, None) => Err(DecodeError::Value("a position without a value")),
            (ChangeKey::Residence(id), None) => Ok(Change::NoResidence(id)),
            (ChangeKey::Residence(id), Some(value)) => {
                value::decode_residence(id, value).map(|row| Change::Residence(Box::new(row)))
            }
        }
    }
}

/// Rows by family and key.
pub(crate) type RowSet = BTreeMap<(Family, Vec<u8>), Vec<u8>>;

/// All rows that follow from a document, except its postings.
pub(crate) fn document_rows(document: &Document) -> RowSet {
    let (language, number) = (document.language, document.number);
    BTreeMap::from([
        ((Family::Documents(language), key::number(number).to_vec()), value::encode_document(document)),
        ((Family::Ids, key::id(&document.id, language)), key::number(number).to_vec()),
        ((Family::Expiry, key::expiry(language, document.last_seen, number)), Vec::new()),
        ((Family::Clusters, key::member(language, document.cluster, number)), Vec::new()),
    ])
}

/// The postings of a document as bucket and number, ascending.
pub(crate) fn document_keys(document: &Document, postings: &IndexSchemes) -> Vec<(BandKey, DocumentNumber)> {
    let keys = postings.for_language(document.language).keys(&document.fingerprint);
    keys.into_iter().map(|key| (key, document.number)).collect()
}

/// The posting keys of a document, ascending.
pub(crate) fn document_postings(document: &Document, postings: &IndexSchemes) -> Vec<[u8; key::POSTING]> {
    let keys = document_keys(document, postings).into_iter();
    keys.map(|(key, number)| key::posting(key, number)).collect()
}
