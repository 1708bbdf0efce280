//! txtfp's MinHash signature.
//!
//! | bytes | what |
//! |---|---|
//! | 0..2 | schema 1, `u16` little-endian |
//! | 2..8 | zero |
//! | 8..1032 | 128 lanes, `u64` little-endian |

use super::hash_token;

/// Lanes in a signature.
pub const LANES: usize = 128;

/// Bytes in a stored signature.
pub const SIGNATURE_BYTES: usize = HEADER + LANES * LANE;

const SCHEMA: u16 = 1;
const HEADER: usize = 8;
const LANE: usize = size_of::<u64>();

/// A MinHash signature of 128 lanes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MinHash([u64; LANES]);

/// Bytes that are not a signature of ours. Make the signature again from the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// A stored signature has one length only.
    #[error("a txtfp MinHash has {SIGNATURE_BYTES} bytes, got {0}")]
    Length(usize),
    /// Another schema's lanes mean something else, even where the length agrees.
    #[error("a txtfp MinHash has schema {SCHEMA}, got {0}")]
    Schema(u16),
}

impl MinHash {
    /// The signature of a set of tokens, whatever their order and number; `None` without tokens.
    ///
    /// Lane i keeps the smallest `low + i·high` of all tokens, low and high being the halves of a token's
    /// hash.
    pub fn of<'a>(tokens: impl IntoIterator<Item = &'a str>) -> Option<MinHash> {
        let mut tokens = tokens.into_iter().peekable();
        tokens.peek()?;
        let mut lanes = [u64::MAX; LANES];
        for token in tokens {
            let (low, high) = hash_token(token);
            let mut value = low;
            for lane in &mut lanes {
                *lane = value.min(*lane);
                value = value.wrapping_add(high);
            }
        }
        Some(MinHash(lanes))
    }

    /// The lanes.
    pub const fn lanes(&self) -> &[u64; LANES] {
        &self.0
    }

    /// The estimated Jaccard similarity: the share of lanes that agree.
    pub fn similarity(&self, other: &MinHash) -> f64 {
        let equal = self.0.iter().zip(&other.0).filter(|(a, b)| a == b).count();
        equal as f64 / LANES as f64
    }

    /// The bytes txtfp stores.
    pub fn to_bytes(&self) -> [u8; SIGNATURE_BYTES] {
        let mut bytes = [0; SIGNATURE_BYTES];
        let (header, lanes) = bytes.split_at_mut(HEADER);
        header[..2].copy_from_slice(&SCHEMA.to_le_bytes());
        for (bytes, lane) in lanes.chunks_exact_mut(LANE).zip(&self.0) {
            bytes.copy_from_slice(&lane.to_le_bytes());
        }
        bytes
    }

    /// Reads the bytes txtfp stores; like txtfp, it does not look at the six bytes of padding.
    ///
    /// # Errors
    ///
    /// [`LayoutError`] for bytes of another length or schema: hash the text again.
    pub fn from_bytes(bytes: &[u8]) -> Result<MinHash, LayoutError> {
        let bytes: &[u8; SIGNATURE_BYTES] = bytes.try_into().map_err(|_| LayoutError::Length(bytes.len()))?;
        let schema = u16::from_le_bytes([bytes[0], bytes[1]]);
        if schema != SCHEMA {
            return Err(LayoutError::Schema(schema));
        }
        let (lanes, _) = bytes[HEADER..].as_chunks::<LANE>();
        let mut hash = MinHash([0; LANES]);
        for (lane, bytes) in hash.0.iter_mut().zip(lanes) {
            *lane = u64::from_le_bytes(*bytes);
        }
        Ok(hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fox() -> MinHash {
        MinHash::of(["the quick brown", "quick brown fox"]).unwrap()
    }

    #[test]
    fn order_and_repeats_do_not_move_it() {
        let again = MinHash::of(["quick brown fox", "the quick brown", "quick brown fox"]).unwrap();
        assert_eq!(fox(), again);
    }

    #[test]
    fn the_stored_bytes_begin_with_the_schema_and_read_back() {
        let bytes = fox().to_bytes();
        assert_eq!(bytes.len(), 1032);
        assert_eq!(bytes[..8], [1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[8..16], fox().lanes()[0].to_le_bytes());
        assert_eq!(MinHash::from_bytes(&bytes), Ok(fox()));
    }

    #[test]
    fn foreign_bytes_are_refused() {
        let mut bytes = fox().to_bytes();
        assert_eq!(MinHash::from_bytes(&bytes[1..]), Err(LayoutError::Length(1031)));
        assert_eq!(MinHash::from_bytes(&[]), Err(LayoutError::Length(0)));
        bytes[0] = 2;
        assert_eq!(MinHash::from_bytes(&bytes), Err(LayoutError::Schema(2)));
    }

    #[test]
    fn similarity_is_the_share_of_equal_lanes() {
        let mut half = fox();
        half.0[..64].fill(0);
        assert_eq!(fox().similarity(&fox()), 1.0);
        assert_eq!(fox().similarity(&half), 0.5);
    }
}
