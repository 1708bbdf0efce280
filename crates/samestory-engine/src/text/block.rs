//! Classifies text in blocks of sixty-four bytes, one result bit per byte, for `normalize` and `words`.
//!
//! The next byte is unpredictable, and a mispredicted branch costs more than examining the whole block, so
//! nothing branches on a single byte. The portable versions are the specification; x86-64 uses its
//! bit-gathering instructions.

/// Bytes examined together.
pub(super) const BLOCK: usize = 64;

/// Classes of the bytes in a block; the first byte is the lowest bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WordBits {
    /// ASCII letters, digits and underscores.
    pub(super) word: u64,
    /// ASCII digits.
    pub(super) digit: u64,
    /// Spaces.
    pub(super) space: u64,
    /// Underscores.
    pub(super) underscore: u64,
}

/// A block in normalised form, where it is ASCII.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Folded {
    /// Lower case, with line ends as spaces.
    pub(super) bytes: [u8; BLOCK],
    /// Positions of spaces.
    pub(super) space: u64,
    /// Positions of bytes other than printable ASCII and line ends; their `bytes` are meaningless.
    pub(super) odd: u64,
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) use portable::{fold, word_bits};

#[cfg(target_arch = "x86_64")]
#[inline]
pub(super) fn word_bits(block: &[u8; BLOCK]) -> WordBits {
    // SAFETY: every x86-64 processor has SSE2, and the function requires nothing else.
    #[allow(unsafe_code)]
    unsafe {
        sse2::word_bits(block)
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
pub(super) fn fold(block: &[u8; BLOCK]) -> Folded {
    // SAFETY: as above.
    #[allow(unsafe_code)]
    unsafe {
        sse2::fold(block)
    }
}

/// Runs on any processor.
#[cfg(any(test, not(target_arch = "x86_64")))]
mod portable {
    use super::{BLOCK, Folded, WordBits};

    pub(in super::super) fn word_bits(block: &[u8; BLOCK]) -> WordBits {
        let digit = bits(block, |byte| byte.is_ascii_digit());
        let underscore = bits(block, |byte| byte == b'_');
        WordBits {
            word: bits(block, |byte| byte.is_ascii_alphabetic()) | digit | underscore,
            digit,
            space: bits(block, |byte| byte == b' '),
            underscore,
        }
    }

    pub(in super::super) fn fold(block: &[u8; BLOCK]) -> Folded {
        let spaced = block.map(|byte| if byte.wrapping_sub(b'\t') < 5 { b' ' } else { byte });
        Folded {
            bytes: spaced.map(|byte| byte.to_ascii_lowercase()),
            space: bits(&spaced, |byte| byte == b' '),
            odd: bits(&spaced, |byte| byte.wrapping_sub(b' ') > b'~' - b' '),
        }
    }

    /// The compiler vectorises the comparison; the multiplication gathers eight bytes of 0 or 1 into the
    /// eight bits of the top byte.
    #[inline(always)]
    fn bits(block: &[u8; BLOCK], test: impl Fn(u8) -> bool) -> u64 {
        let flags = block.map(|byte| u8::from(test(byte)));
        let (eights, _) = flags.as_chunks::<8>();
        let gathered: [u8; 8] = std::array::from_fn(|at| {
            (u64::from_le_bytes(eights[at]).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
        });
        u64::from_le_bytes(gathered)
    }
}

/// Uses the instructions that every x86-64 processor has.
#[cfg(target_arch = "x86_64")]
mod sse2 {
    use std::arch::x86_64::*;

    use super::{BLOCK, Folded, WordBits};

    /// A block in four registers.
    type Bytes = [__m128i; 4];

    #[inline]
    #[target_feature(enable = "sse2")]
    pub(super) fn word_bits(block: &[u8; BLOCK]) -> WordBits {
        let bytes = load(block);
        let letter = bytes.map(|bytes| within(_mm_or_si128(bytes, all(0x20)), b'a', b'z'));
        let [digit, underscore] =
            [gather(bytes.map(|bytes| within(bytes, b'0', b'9'))), gather(equal(bytes, b'_'))];
        WordBits {
            word: gather(letter) | digit | underscore,
            digit,
            space: gather(equal(bytes, b' ')),
            underscore,
        }
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    pub(super) fn fold(block: &[u8; BLOCK]) -> Folded {
        let spaced = load(block).map(|bytes| {
            let line_end = within(bytes, b'\t', b'\r');
            _mm_or_si128(_mm_andnot_si128(line_end, bytes), _mm_and_si128(line_end, all(b' ')))
        });
        Folded {
            bytes: store(spaced.map(|bytes| {
                let capital = within(bytes, b'A', b'Z');
                _mm_or_si128(bytes, _mm_and_si128(capital, all(0x20)))
            })),
            space: gather(equal(spaced, b' ')),
            odd: !gather(spaced.map(|bytes| within(bytes, b' ', b'~'))),
        }
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn load(block: &[u8; BLOCK]) -> Bytes {
        let (pieces, _) = block.as_chunks::<16>();
        [pieces[0], pieces[1], pieces[2], pieces[3]].map(|piece| {
            let whole = u128::from_le_bytes(piece);
            _mm_set_epi64x((whole >> 64) as i64, whole as i64)
        })
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn store(bytes: Bytes) -> [u8; BLOCK] {
        let mut block = [0; BLOCK];
        for (bytes, piece) in bytes.into_iter().zip(block.as_chunks_mut().0) {
            let [low, high] =
                [bytes, _mm_unpackhi_epi64(bytes, bytes)].map(|half| _mm_cvtsi128_si64(half) as u64);
            *piece = (u128::from(high) << 64 | u128::from(low)).to_le_bytes();
        }
        block
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn all(byte: u8) -> __m128i {
        _mm_set1_epi8(byte as i8)
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn equal(bytes: Bytes, byte: u8) -> Bytes {
        bytes.map(|bytes| _mm_cmpeq_epi8(bytes, all(byte)))
    }

    /// All ones in the bytes between `first` and `last` inclusive.
    #[inline]
    #[target_feature(enable = "sse2")]
    fn within(bytes: __m128i, first: u8, last: u8) -> __m128i {
        let above = _mm_sub_epi8(bytes, all(first));
        _mm_cmpeq_epi8(_mm_min_epu8(above, all(last.wrapping_sub(first))), above)
    }

    /// The highest bit of each byte.
    #[inline]
    #[target_feature(enable = "sse2")]
    fn gather(bytes: Bytes) -> u64 {
        let [a, b, c, d] = bytes.map(|bytes| _mm_movemask_epi8(bytes) as u64);
        a | b << 16 | c << 32 | d << 48
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_fast_bits_equal_the_portable_ones(block in any::<[u8; BLOCK]>()) {
            prop_assert_eq!(word_bits(&block), portable::word_bits(&block));
            prop_assert_eq!(fold(&block), portable::fold(&block));
        }
    }

    #[test]
    fn every_byte_has_its_bits() {
        for byte in 0..=u8::MAX {
            for at in 0..BLOCK {
                let mut block = [b' '; BLOCK];
                block[at] = byte;
                assert_eq!(word_bits(&block), portable::word_bits(&block), "{byte} at {at}");
                assert_eq!(fold(&block), portable::fold(&block), "{byte} at {at}");
                let bit = 1 << at;
                assert_eq!(word_bits(&block).word == bit, byte.is_ascii_alphanumeric() || byte == b'_');
            }
        }
    }
}
