//! The bytes of posting segments: a row of sorted postings, the row that says what a segment covers, and the row of
//! removed documents.
//!
//! **Row of postings** in `bands:<lang>`; numbers are little-endian
//!
//! | bytes | field |
//! |------:|-------|
//! | 1 | postings - 1 |
//! | 1, 1 | h, n: bytes of a hash and of a number |
//! | 6 | smallest bucket, see [`crate::index::scheme::pack`] |
//! | h each | bucket minus the smallest, ascending |
//! | n each | document number minus the first that the segment covers; descending within a bucket |
//!
//! **Parts of a segment's filter and of its fences** in `bands:<lang>`, after the rows of postings. The fences are the last
//! posting of each row in order, 8 bytes of bucket and 8 of number, little-endian: together with the segment they are the
//! keys of the rows.
//!
//! **Coverage of a segment** in `meta`, layout 2
//!
//! | bytes | field |
//! |------:|-------|
//! | 1 | layout |
//! | 8, 8 | the first number, the number after the last |
//! | 8, 8, 8 | postings, documents with postings, of the numbers those that were removed when it was written |
//! | 8 | xxh3 of its fences and its filter, seeded with that of the other fields |
//!
//! **Removed documents** in `meta`, layout 1: of 4096 numbers, those whose postings in segments do not count
//!
//! | bytes | field |
//! |------:|-------|
//! | 1 | layout |
//! | 512 | a bit for each number |
//! | 2 each | of these, those that exist: their postings follow from the document and are in no segment |

use crate::model::Lang;

use super::bytes::{ByteReader, DecodeError};
use super::key;

/// Postings in a row: with more, a look-up reads more; with fewer, the keys of rows take more space.
pub(crate) const ROW: usize = 256;
/// Bytes of the key of a row: segment, bucket, number.
const KEY: usize = 20;
/// Takes the place of a bucket in the keys of a segment's filter. Buckets have 48 bits.
const FILTER: u64 = u64::MAX;
/// The same for its fences.
const FENCES: u64 = u64::MAX - 1;
const LAYOUT: u8 = 1;
/// In layout 1 a segment had no fences, and its filter another order.
const COVERAGE_LAYOUT: u8 = 2;
/// Numbers in a row of removed documents.
pub(crate) const CHUNK: u64 = 4096;

/// A posting: a packed bucket and a document number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Posting {
    pub(crate) bucket: u64,
    pub(crate) number: u64,
}

impl Posting {
    /// Orders postings by bucket, and newest first within one.
    pub(crate) fn order(self) -> (u64, u64) {
        (self.bucket, !self.number)
    }
}

/// The key of the row whose last posting this is. Seeking to a posting's key finds the row that would contain it.
pub(crate) fn row_key(segment: u32, last: Posting) -> [u8; KEY] {
    let mut bytes = [0; KEY];
    bytes[..4].copy_from_slice(&segment.to_be_bytes());
    bytes[4..12].copy_from_slice(&last.bucket.to_be_bytes());
    bytes[12..].copy_from_slice(&(!last.number).to_be_bytes());
    bytes
}

/// What a row of a segment holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowKind {
    Postings,
    /// A part of the fences.
    Fences,
    /// A part of the filter.
    Filter,
}

/// The key of a part of a segment's filter or fences.
pub(crate) fn part_key(segment: u32, kind: RowKind, part: u64) -> [u8; KEY] {
    let bucket = match kind {
        RowKind::Filter => FILTER,
        RowKind::Fences | RowKind::Postings => FENCES,
    };
    row_key(segment, Posting { bucket, number: !part })
}

/// The segment that a row belongs to, and what it holds.
pub(crate) fn decode_row_key(bytes: &[u8]) -> Option<(u32, RowKind)> {
    let (segment, rest) = <&[u8; KEY]>::try_from(bytes).ok()?.split_first_chunk::<4>()?;
    let kind = match rest.first_chunk().map(|bucket| u64::from_be_bytes(*bucket)) {
        Some(FILTER) => RowKind::Filter,
        Some(FENCES) => RowKind::Fences,
        _ => RowKind::Postings,
    };
    Some((u32::from_be_bytes(*segment), kind))
}

/// Encodes the last posting of each row of a segment.
pub(crate) fn encode_fences(fences: &[Posting]) -> Vec<u8> {
    let fields = |fence: &Posting| [fence.bucket, fence.number];
    fences.iter().flat_map(fields).flat_map(u64::to_le_bytes).collect()
}

/// The last posting of each row; an error if they are not in order.
pub(crate) fn decode_fences(bytes: &[u8]) -> Result<Vec<Posting>, DecodeError> {
    let mut read = ByteReader(bytes);
    let mut fences: Vec<Posting> = Vec::with_capacity(bytes.len() / 16);
    while !read.0.is_empty() {
        let fence = Posting { bucket: read.u64()?, number: read.u64()? };
        if fences.last().is_some_and(|before| before.order() >= fence.order()) {
            return Err(DecodeError::Value("fences that are not in order"));
        }
        fences.push(fence);
    }
    Ok(fences)
}

fn width(most: u64) -> usize {
    (64 - most.leading_zeros() as usize).div_ceil(8)
}

/// Encodes sorted postings, at least one and at most [`ROW`], of a segment that begins at `from`.
pub(crate) fn encode_row(postings: &[Posting], from: u64, bytes: &mut Vec<u8>) {
    let smallest = postings.first().map_or(0, |first| first.bucket);
    let spread = postings.last().map_or(0, |last| last.bucket - smallest);
    let highest = postings.iter().map(|posting| posting.number - from).max().unwrap_or(0);
    let (hash, number) = (width(spread), width(highest));
    bytes.clear();
    bytes.extend([postings.len().saturating_sub(1) as u8, hash as u8, number as u8]);
    bytes.extend(&smallest.to_le_bytes()[..6]);
    postings.iter().for_each(|posting| bytes.extend(&(posting.bucket - smallest).to_le_bytes()[..hash]));
    postings.iter().for_each(|posting| bytes.extend(&(posting.number - from).to_le_bytes()[..number]));
}

/// A row of postings, read in place.
pub(crate) struct PostingRow<'r> {
    from: u64,
    smallest: u64,
    count: usize,
    hash: usize,
    number: usize,
    hashes: &'r [u8],
    numbers: &'r [u8],
}

impl<'r> PostingRow<'r> {
    pub(crate) fn decode(bytes: &'r [u8], from: u64) -> Result<PostingRow<'r>, DecodeError> {
        let mut read = ByteReader(bytes);
        let [last, hash, number] = read.array()?;
        let mut smallest = [0; 8];
        smallest[..6].copy_from_slice(&read.array::<6>()?);
        let (count, hash, number) = (usize::from(last) + 1, usize::from(hash), usize::from(number));
        if hash > 8 || number > 8 {
            return Err(DecodeError::Value("a width of postings"));
        }
        let (hashes, numbers) = (read.take(count * hash)?, read.take(count * number)?);
        read.end()?;
        Ok(PostingRow { from, smallest: u64::from_le_bytes(smallest), count, hash, number, hashes, numbers })
    }

    fn field(bytes: &[u8], width: usize, at: usize) -> u64 {
        let mut number = [0; 8];
        number[..width].copy_from_slice(&bytes[at * width..(at + 1) * width]);
        u64::from_le_bytes(number)
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn get(&self, at: usize) -> Posting {
        Posting {
            bucket: self.smallest.wrapping_add(Self::field(self.hashes, self.hash, at)),
            number: self.from.wrapping_add(Self::field(self.numbers, self.number, at)),
        }
    }

    /// The place of the first posting that does not come before this one.
    pub(crate) fn find(&self, wanted: Posting) -> usize {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = (low + high) / 2;
            if self.get(middle).order() < wanted.order() { low = middle + 1 } else { high = middle }
        }
        low
    }
}

/// The range and contents of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Coverage {
    /// The first document number.
    pub(crate) from: u64,
    /// The number after the last.
    pub(crate) to: u64,
    /// Postings in it.
    pub(crate) postings: u64,
    /// Documents that have postings in it.
    pub(crate) documents: u64,
    /// Numbers that had been removed when it was written.
    pub(crate) removed: u64,
    /// Checksum of its fences, its filter and the other fields.
    pub(crate) checksum: u64,
}

pub(crate) fn coverage_key(language: Lang, segment: u32) -> Vec<u8> {
    let mut bytes = key::of_language(key::SEGMENT, language);
    bytes.extend(segment.to_be_bytes());
    bytes
}

pub(crate) fn encode_coverage(coverage: &Coverage) -> Vec<u8> {
    let Coverage { from, to, postings, documents, removed, checksum } = *coverage;
    let mut bytes = vec![COVERAGE_LAYOUT];
    [from, to, postings, documents, removed, checksum]
        .iter()
        .for_each(|field| bytes.extend(field.to_le_bytes()));
    bytes
}

pub(crate) fn decode_coverage(bytes: &[u8]) -> Result<Coverage, DecodeError> {
    let mut read = ByteReader(bytes);
    read.layout("segment", COVERAGE_LAYOUT)?;
    let coverage = Coverage {
        from: read.u64()?,
        to: read.u64()?,
        postings: read.u64()?,
        documents: read.u64()?,
        removed: read.u64()?,
        checksum: read.u64()?,
    };
    read.end()?;
    if coverage.from < coverage.to { Ok(coverage) } else { Err(DecodeError::Value("a range of documents")) }
}

/// Some of [`CHUNK`] numbers.
pub(crate) type Bits = [u64; CHUNK as usize / 64];

pub(crate) fn removed_key(language: Lang, chunk: u64) -> Vec<u8> {
    let mut bytes = key::of_language(key::REMOVED, language);
    bytes.extend(chunk.to_be_bytes());
    bytes
}

/// `existing` are the numbers of those that exist, of this chunk.
pub(crate) fn encode_removed(bits: &Bits, existing: impl Iterator<Item = u64>) -> Vec<u8> {
    let mut bytes = vec![LAYOUT];
    bits.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
    existing.for_each(|number| bytes.extend(((number % CHUNK) as u16).to_le_bytes()));
    bytes
}

pub(crate) fn decode_removed(chunk: u64, bytes: &[u8]) -> Result<(Bits, Vec<u64>), DecodeError> {
    let mut read = ByteReader(bytes);
    read.layout("removed documents", LAYOUT)?;
    let (mut bits, mut existing): (Bits, _) = ([0; CHUNK as usize / 64], Vec::new());
    for word in &mut bits {
        *word = read.u64()?;
    }
    while !read.0.is_empty() {
        existing.push(chunk.saturating_mul(CHUNK).saturating_add(u64::from(read.u16()?)));
    }
    Ok((bits, existing))
}

/// Checks a row of `meta` about segments or removed documents.
pub(crate) fn check(key: &[u8], value: &[u8]) -> Result<(), DecodeError> {
    match key.starts_with(key::SEGMENT) {
        true => decode_coverage(value).map(drop),
        false => decode_removed(0, value).map(drop),
    }
}

/// The number at the end of a key of `meta`.
pub(crate) fn last_number<const N: usize>(key: &[u8]) -> Result<[u8; N], DecodeError> {
    key.last_chunk().copied().ok_or(DecodeError::Short { wanted: N, left: key.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_survives_its_bytes_and_finds_its_postings() {
        let postings: Vec<Posting> =
            (0..ROW as u64).map(|n| Posting { bucket: (n / 3) << 40, number: 70_000 - n % 3 - n }).collect();
        let mut bytes = Vec::new();
        for some in [&postings[..], &postings[..1]] {
            encode_row(some, 60_000, &mut bytes);
            let row = PostingRow::decode(&bytes, 60_000).unwrap();
            assert_eq!((0..row.len()).map(|at| row.get(at)).collect::<Vec<_>>(), some);
            for (at, &posting) in some.iter().enumerate() {
                assert_eq!(row.find(posting), at);
            }
            for cut in 0..bytes.len() {
                assert!(PostingRow::decode(&bytes[..cut], 0).is_err());
            }
        }
    }

    #[test]
    fn fences_survive_their_bytes_and_are_refused_out_of_order() {
        let fence = |bucket, number| Posting { bucket, number };
        let fences = [fence(3, 9), fence(3, 8), fence(1 << 47, 0)];
        let bytes = encode_fences(&fences);
        assert_eq!(decode_fences(&bytes), Ok(fences.to_vec()));
        assert!(decode_fences(&bytes[1..]).is_err());
        assert!(decode_fences(&encode_fences(&[fences[1], fences[0]])).is_err());
        for kind in [RowKind::Fences, RowKind::Filter] {
            assert_eq!(decode_row_key(&part_key(7, kind, 1 << 40)), Some((7, kind)));
            assert!(row_key(7, fence((1 << 48) - 1, 0)) < part_key(7, kind, 0));
        }
        assert_eq!(decode_row_key(&row_key(7, fences[2])), Some((7, RowKind::Postings)));
    }

    #[test]
    fn coverage_and_removed_documents_survive_their_bytes() {
        let coverage = Coverage { from: 3, to: 9, postings: 40, documents: 5, removed: 1, checksum: 7 };
        assert_eq!(decode_coverage(&encode_coverage(&coverage)), Ok(coverage));
        assert!(decode_coverage(&encode_coverage(&Coverage { to: 3, ..coverage })).is_err());
        let mut bits = [0; CHUNK as usize / 64];
        bits[5] = 9;
        let bytes = encode_removed(&bits, [CHUNK * 2 + 320].into_iter());
        assert_eq!(decode_removed(2, &bytes), Ok((bits, vec![CHUNK * 2 + 320])));
    }
}
