//! The bytes of every key, in the store and in the changelog. The values are in [`super::value`].
//!
//! Numbers in keys are big-endian, so that byte order equals numeric order. `language` is u8 length · code,
//! `-n` is a number with all bits inverted, so that the newest comes first, and the sign bit of a time is
//! inverted.
//!
//! | family | key | value |
//! |--------|-----|-------|
//! | `docs:<lang>` | number | document |
//! | `bands:<lang>` | u32 segment · u64 bucket · -number, of the row's last posting | sorted postings, see [`super::segment`] |
//! | `bands:<lang>` | u32 segment · eight bytes 0xff · u64 n | the n-th part of the segment's filter |
//! | `ids` | u16 length of id · id · language | number, 8 bytes big-endian |
//! | `ids` | u16 length of id · id · 0 | residence: no language has an empty code |
//! | `expiry` | language · last seen · number | nothing |
//! | `expiry` | language · since · eight bytes 0xff · id | nothing: a residence |
//! | `clusters` | 1 · language · founder's number | cluster |
//! | `clusters` | 2 · language · founder's number · member's number | nothing |
//! | `meta` | `position` | progress |
//! | `meta` | `changelog` | next changelog offset, 8 bytes big-endian: of this copy, not of the log |
//! | `meta` | `format` | what the store was made with: of this copy too |
//! | `meta` | `segment` · language · u32 segment | what the segment covers, see [`super::segment`]: of this copy too |
//! | `meta` | `removed` · language · number / 4096 | documents without postings in segments: of this copy too |
//!
//! The postings of a document follow from its fingerprint. Where they are read as rows, in dumps and checks, their key is
//! u16 band · u64 hash · -number.
//!
//! | changelog key | value |
//! |---------------|-------|
//! | 1 · language · id | document |
//! | 2 · language · founder's number | cluster |
//! | 3 | progress |
//! | 4 · id | residence |
//!
//! Changelog keys have no version: compaction compares their bytes, and a key whose bytes changed would leave
//! its old record in the log forever.

use crate::lsh::BandKey;
use crate::model::{ArticleId, DocumentNumber, EventTime, Lang};

use super::bytes::{ByteReader, ByteWriter, DecodeError, language};
use crate::index::read::rows::Span;

/// A column family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// Documents of a language by number.
    Documents(Lang),
    /// Postings of a language.
    Bands(Lang),
    /// Document numbers by id and language, and residences by id.
    Ids,
    /// Documents by when they were last seen, and residences by when they were written.
    Expiry,
    /// Clusters and their members.
    Clusters,
    /// Progress, and what the store was created with.
    Meta,
}

impl Family {
    /// The families that do not depend on a language.
    pub const COMMON: [Family; 4] = [Family::Ids, Family::Expiry, Family::Clusters, Family::Meta];

    /// The two families of a language.
    pub const fn of(language: Lang) -> [Family; 2] {
        [Family::Documents(language), Family::Bands(language)]
    }

    /// The name in RocksDB and in dumps.
    pub fn name(self) -> String {
        match self {
            Family::Documents(language) => format!("docs:{language}"),
            Family::Bands(language) => format!("bands:{language}"),
            Family::Ids => "ids".into(),
            Family::Expiry => "expiry".into(),
            Family::Clusters => "clusters".into(),
            Family::Meta => "meta".into(),
        }
    }

    /// The family with this name.
    ///
    /// # Errors
    /// The family belongs to another program, or to a language that this version does not know.
    pub fn from_name(name: &str) -> Result<Family, DecodeError> {
        let common = Family::COMMON.into_iter().find(|family| family.name() == name);
        match (common, name.split_once(':')) {
            (Some(family), _) => Ok(family),
            (_, Some(("docs", code))) => language(code.as_bytes()).map(Family::Documents),
            (_, Some(("bands", code))) => language(code.as_bytes()).map(Family::Bands),
            _ => Err(DecodeError::Value("a column family of this name")),
        }
    }
}

/// Length of a posting as a row.
pub(crate) const POSTING: usize = 18;
/// Length of its prefix that names the bucket.
pub(crate) const BUCKET: usize = 10;

pub(crate) const POSITION: &[u8] = b"position";
pub(crate) const CHANGELOG: &[u8] = b"changelog";
/// `changelog` and `format` belong to this copy of the state, not to the log that it was built from.
pub(crate) const FORMAT: &[u8] = b"format";

/// Rows about segments begin with this.
#[cfg(feature = "rocksdb")]
pub(crate) const SEGMENT: &[u8] = b"segment";
/// Rows about removed documents begin with this.
#[cfg(feature = "rocksdb")]
pub(crate) const REMOVED: &[u8] = b"removed";

const CLUSTER: u8 = 1;
const MEMBER: u8 = 2;

pub(crate) fn number(number: DocumentNumber) -> [u8; 8] {
    number.0.to_be_bytes()
}

pub(crate) fn decode_number(bytes: &[u8]) -> Result<DocumentNumber, DecodeError> {
    let mut read = ByteReader(bytes);
    let number = read.array().map(u64::from_be_bytes).map(DocumentNumber)?;
    read.end()?;
    Ok(number)
}

pub(crate) fn bucket(key: BandKey) -> [u8; BUCKET] {
    let mut bytes = [0; BUCKET];
    bytes[..2].copy_from_slice(&key.band.to_be_bytes());
    bytes[2..].copy_from_slice(&key.hash.to_be_bytes());
    bytes
}

pub(crate) fn posting(key: BandKey, number: DocumentNumber) -> [u8; POSTING] {
    let mut bytes = [0; POSTING];
    bytes[..BUCKET].copy_from_slice(&bucket(key));
    bytes[BUCKET..].copy_from_slice(&(!number.0).to_be_bytes());
    bytes
}

/// The bucket of a posting.
pub(crate) fn bucket_of(posting: &[u8; POSTING]) -> BandKey {
    let [b0, b1, h0, h1, h2, h3, h4, h5, h6, h7, ..] = *posting;
    BandKey { band: u16::from_be_bytes([b0, b1]), hash: u64::from_be_bytes([h0, h1, h2, h3, h4, h5, h6, h7]) }
}

/// The bucket that a range of postings lies in, if it is only one.
pub(crate) fn bucket_in(span: &Span) -> Option<BandKey> {
    let bucket = span.from.first_chunk::<BUCKET>()?;
    let mut posting = [0; POSTING];
    posting[..BUCKET].copy_from_slice(bucket);
    (Span::prefix(bucket).to == span.to).then(|| bucket_of(&posting))
}

pub(crate) fn decode_posting(bytes: &[u8]) -> Result<(BandKey, DocumentNumber), DecodeError> {
    let mut read = ByteReader(bytes);
    let band = read.array().map(u16::from_be_bytes)?;
    let hash = read.array().map(u64::from_be_bytes)?;
    let number = read.array().map(u64::from_be_bytes).map(|number| DocumentNumber(!number))?;
    read.end()?;
    Ok((BandKey { band, hash }, number))
}

/// The prefix of the rows of `meta` about the segments or the removed documents of a language.
#[cfg(feature = "rocksdb")]
pub(crate) fn of_language(about: &[u8], language: Lang) -> Vec<u8> {
    let mut bytes = about.to_vec();
    bytes.language(language);
    bytes
}

/// The prefix of an id's rows. It contains the length of the id, so no id's prefix is a prefix of another's.
pub(crate) fn id_prefix(id: &ArticleId) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(id.as_str().len() + 8);
    bytes.extend((id.as_str().len() as u16).to_be_bytes());
    bytes.extend(id.as_str().as_bytes());
    bytes
}

pub(crate) fn id(id: &ArticleId, language: Lang) -> Vec<u8> {
    let mut bytes = id_prefix(id);
    bytes.language(language);
    bytes
}

/// The key of an id's residence. It shares the prefix of the id's other rows, so one membership filter entry
/// covers both.
pub(crate) fn residence(id: &ArticleId) -> Vec<u8> {
    let mut bytes = id_prefix(id);
    bytes.push(0);
    bytes
}

/// A row of `ids`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IdRow {
    Document(ArticleId, Lang),
    Residence(ArticleId),
}

pub(crate) fn decode_id(bytes: &[u8]) -> Result<IdRow, DecodeError> {
    let mut read = ByteReader(bytes);
    let length = read.array().map(u16::from_be_bytes)?;
    let id = article_id(read.take(usize::from(length))?)?;
    if read.0 == [0] {
        return Ok(IdRow::Residence(id));
    }
    let language = read.language()?;
    read.end()?;
    Ok(IdRow::Document(id, language))
}

fn article_id(bytes: &[u8]) -> Result<ArticleId, DecodeError> {
    let id = str::from_utf8(bytes).map_err(|_| DecodeError::Value("an id"))?;
    ArticleId::new(id).map_err(|_| DecodeError::Value("an id of this length"))
}

fn time(time: EventTime) -> [u8; 8] {
    (time.millis() ^ i64::MIN).to_be_bytes()
}

/// The first key after all rows of a language last seen at or before this time.
pub(crate) fn expiry_end(language: Lang, horizon: EventTime) -> Vec<u8> {
    match horizon.millis().checked_add(1) {
        Some(next) => expiry_prefix(language, EventTime::from_millis(next)),
        None => expiry_prefix(language, horizon).into_iter().chain([0xff; 9]).collect(),
    }
}

fn expiry_prefix(language: Lang, last_seen: EventTime) -> Vec<u8> {
    let mut bytes = language_prefix(language);
    bytes.extend(time(last_seen));
    bytes
}

pub(crate) fn language_prefix(language: Lang) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(24);
    bytes.language(language);
    bytes
}

pub(crate) fn expiry(language: Lang, last_seen: EventTime, document: DocumentNumber) -> Vec<u8> {
    let mut bytes = expiry_prefix(language, last_seen);
    bytes.extend(number(document));
    bytes
}

/// Sorts after all documents of the same time: no document has this number.
const RESIDENCE: [u8; 8] = [0xff; 8];

pub(crate) fn residence_expiry(language: Lang, since: EventTime, id: &ArticleId) -> Vec<u8> {
    let mut bytes = expiry_prefix(language, since);
    bytes.extend(RESIDENCE);
    bytes.extend(id.as_str().as_bytes());
    bytes
}

/// The subject of a row of `expiry`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Overdue {
    /// The document with this number.
    Document(DocumentNumber),
    /// The residence of this id.
    Residence(ArticleId),
}

pub(crate) fn decode_expiry(bytes: &[u8]) -> Result<(Lang, EventTime, Overdue), DecodeError> {
    let mut read = ByteReader(bytes);
    let language = read.language()?;
    let time = read.array().map(|bytes| EventTime::from_millis(i64::from_be_bytes(bytes) ^ i64::MIN))?;
    let about = match read.0.strip_prefix(&RESIDENCE) {
        Some(id) if !id.is_empty() => Overdue::Residence(article_id(id)?),
        _ => Overdue::Document(decode_number(read.0)?),
    };
    Ok((language, time, about))
}

/// Whether a row of `expiry` belongs to a document.
#[cfg(feature = "rocksdb")]
pub(crate) fn is_document_expiry(bytes: &[u8]) -> bool {
    matches!(decode_expiry(bytes), Ok((_, _, Overdue::Document(_))))
}

pub(crate) fn clusters(language: Lang) -> Vec<u8> {
    let mut bytes = vec![CLUSTER];
    bytes.language(language);
    bytes
}

pub(crate) fn cluster(language: Lang, founder: DocumentNumber) -> Vec<u8> {
    let mut bytes = clusters(language);
    bytes.extend(number(founder));
    bytes
}

pub(crate) fn members(language: Lang, founder: DocumentNumber) -> Vec<u8> {
    let mut bytes = cluster(language, founder);
    bytes[0] = MEMBER;
    bytes
}

pub(crate) fn member(language: Lang, founder: DocumentNumber, member: DocumentNumber) -> Vec<u8> {
    let mut bytes = members(language, founder);
    bytes.extend(number(member));
    bytes
}

/// Whether a row of `clusters` is a cluster rather than a member.
#[cfg(feature = "rocksdb")]
pub(crate) fn is_cluster(bytes: &[u8]) -> bool {
    bytes.first() == Some(&CLUSTER)
}

/// A row of `clusters`.
pub(crate) enum ClusterRow {
    Cluster(Lang, DocumentNumber),
    Member(Lang, DocumentNumber, DocumentNumber),
}

pub(crate) fn decode_cluster(bytes: &[u8]) -> Result<ClusterRow, DecodeError> {
    let mut read = ByteReader(bytes);
    let kind = read.byte()?;
    let language = read.language()?;
    let founder = read.array().map(u64::from_be_bytes).map(DocumentNumber)?;
    match kind {
        CLUSTER => read.end().map(|()| ClusterRow::Cluster(language, founder)),
        MEMBER => decode_number(read.0).map(|member| ClusterRow::Member(language, founder, member)),
        _ => Err(DecodeError::Value("a kind of cluster row")),
    }
}

/// The key of a changelog record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChangeKey {
    /// The document of this language and id.
    Document(Lang, ArticleId),
    /// The cluster of this language and founder.
    Cluster(Lang, DocumentNumber),
    /// The position record.
    Progress,
    /// The residence of this id.
    Residence(ArticleId),
}

impl ChangeKey {
    /// Encodes the key.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(32);
        match self {
            ChangeKey::Document(language, id) => {
                bytes.push(1);
                bytes.language(*language);
                bytes.extend(id.as_str().as_bytes());
            }
            ChangeKey::Cluster(language, founder) => {
                bytes.push(2);
                bytes.language(*language);
                bytes.extend(number(*founder));
            }
            ChangeKey::Progress => bytes.push(3),
            ChangeKey::Residence(id) => {
                bytes.push(4);
                bytes.extend(id.as_str().as_bytes());
            }
        }
        bytes
    }

    /// Decodes a key.
    ///
    /// # Errors
    /// The key was not written by this version of the program: another log, or a newer version. Stop.
    pub fn decode(bytes: &[u8]) -> Result<ChangeKey, DecodeError> {
        let mut read = ByteReader(bytes);
        match read.byte()? {
            1 => Ok(ChangeKey::Document(read.language()?, article_id(read.0)?)),
            2 => Ok(ChangeKey::Cluster(read.language()?, decode_number(read.0)?)),
            3 => read.end().map(|()| ChangeKey::Progress),
            4 => Ok(ChangeKey::Residence(article_id(read.0)?)),
            _ => Err(DecodeError::Value("a kind of change")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn en() -> Lang {
        language(b"en").unwrap()
    }

    #[test]
    fn only_known_families_are_found_by_name() {
        for family in Family::COMMON.into_iter().chain(Family::of(en())) {
            assert_eq!(Family::from_name(&family.name()), Ok(family));
        }
        for stranger in ["default", "docs:xx", "docs", "ids:en", "bands:"] {
            assert!(Family::from_name(stranger).is_err(), "{stranger}");
        }
    }

    #[test]
    fn the_bytes_of_keys_do_not_change() {
        let key = BandKey { band: 0x0102, hash: 0x0304_0506_0708_090a };
        assert_eq!(
            posting(key, DocumentNumber(1)),
            *b"\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\xff\xff\xff\xff\xff\xff\xff\xfe"
        );
        let a1 = ArticleId::new("a1").unwrap();
        assert_eq!(id(&a1, en()), b"\x00\x02a1\x02en");
        assert_eq!(
            expiry(en(), EventTime::from_millis(5), DocumentNumber(1)),
            b"\x02en\x80\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x01"
        );
        assert_eq!(cluster(en(), DocumentNumber(17)), b"\x01\x02en\0\0\0\0\0\0\0\x11");
        assert_eq!(
            member(en(), DocumentNumber(17), DocumentNumber(18)),
            b"\x02\x02en\0\0\0\0\0\0\0\x11\0\0\0\0\0\0\0\x12"
        );
        assert_eq!(ChangeKey::Document(en(), a1).encode(), b"\x01\x02ena1");
        assert_eq!(ChangeKey::Cluster(en(), DocumentNumber(17)).encode(), b"\x02\x02en\0\0\0\0\0\0\0\x11");
        assert_eq!(ChangeKey::Progress.encode(), b"\x03");
        let a1 = ArticleId::new("a1").unwrap();
        assert_eq!(residence(&a1), b"\x00\x02a1\x00");
        assert_eq!(decode_id(&residence(&a1)), Ok(IdRow::Residence(a1.clone())));
        let key = residence_expiry(en(), EventTime::from_millis(5), &a1);
        assert_eq!(key, b"\x02en\x80\0\0\0\0\0\0\x05\xff\xff\xff\xff\xff\xff\xff\xffa1");
        assert_eq!(
            decode_expiry(&key),
            Ok((en(), EventTime::from_millis(5), Overdue::Residence(a1.clone())))
        );
        assert_eq!(ChangeKey::Residence(a1).encode(), b"\x04a1");
    }

    proptest! {
        #[test]
        fn time_order_is_byte_order(a in any::<i64>(), b in any::<i64>(), number in any::<u64>()) {
            let key = |millis| expiry(en(), EventTime::from_millis(millis), DocumentNumber(number));
            prop_assert_eq!(a.cmp(&b), key(a).cmp(&key(b)));
            prop_assert_eq!(key(a) < expiry_end(en(), EventTime::from_millis(b)), a <= b);
            prop_assert_eq!(decode_expiry(&key(a)).unwrap(), (en(), EventTime::from_millis(a), Overdue::Document(DocumentNumber(number))));
        }

        #[test]
        fn newer_postings_come_first(band in any::<u16>(), hash in any::<u64>(), a in any::<u64>(), b in any::<u64>()) {
            let key = |number| posting(BandKey { band, hash }, DocumentNumber(number));
            prop_assert_eq!(b.cmp(&a), key(a).cmp(&key(b)));
            prop_assert_eq!(bucket_of(&key(a)), BandKey { band, hash });
            prop_assert_eq!(decode_posting(&key(a)).unwrap(), (BandKey { band, hash }, DocumentNumber(a)));
        }
    }
}
