//! MinHash: 128 lanes, each the smallest value of one hash function over the shingles.
//!
//! The fraction of lanes on which two texts agree estimates the Jaccard similarity of their shingle sets.
//! Lane i is `a[i] · x + b[i]` modulo 2³² over the low half of a shingle's hash. Shingle hashes are already
//! well mixed and an odd multiplier is a permutation, so every shingle is equally likely to be the smallest.

/// Number of lanes in a signature.
pub const LANES: usize = 128;

/// The smallest value per lane. The empty text has `u32::MAX` in every lane.
pub type Lanes = [u32; LANES];

/// A signature: sixteen bits of each lane. Two lanes agree by chance once in 65,536, which is far below the
/// sampling error of 128 lanes, and a signature is half as long.
pub type Signature = [u16; LANES];

/// Shingles that the fast version processes together, so that the lanes are loaded once for all of them.
const TOGETHER: usize = 8;

struct Functions {
    multiply: Lanes,
    add: Lanes,
}

/// The hash functions, which are part of the scheme: 64 bits each from SplitMix64, counting up from a fixed
/// seed.
static FUNCTIONS: Functions = {
    let mut functions = Functions { multiply: [0; LANES], add: [0; LANES] };
    let mut state: u64 = 0x5a6d_e570_7279_0001;
    let mut lane = 0;
    while lane < LANES {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        functions.multiply[lane] = (z as u32) | 1;
        functions.add[lane] = (z >> 32) as u32;
        lane += 1;
    }
    functions
};

/// The specification: shingle by shingle, lane by lane.
pub fn plain(shingles: &[u64]) -> Lanes {
    let mut least = [u32::MAX; LANES];
    for &shingle in shingles {
        for (lane, least) in least.iter_mut().enumerate() {
            let (multiply, add) = (FUNCTIONS.multiply[lane], FUNCTIONS.add[lane]);
            *least = multiply.wrapping_mul(shingle as u32).wrapping_add(add).min(*least);
        }
    }
    least
}

/// The signature of a text's shingles.
pub fn signature(shingles: &[u64]) -> Signature {
    fold(&lanes(shingles))
}

/// Folds each lane to sixteen bits. Both halves contribute, because the minimum of many values starts with
/// zeros.
pub fn fold(lanes: &Lanes) -> Signature {
    lanes.map(|lane| (lane ^ lane >> 16) as u16)
}

/// The lanes of [`plain`], several shingles and lanes at a time.
pub fn lanes(shingles: &[u64]) -> Lanes {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: AVX2 was detected on this processor just above.
        #[allow(unsafe_code)]
        return unsafe { with_avx2(shingles) };
    }
    // On AArch64 this compiles to NEON, which every such processor has.
    blocks(shingles)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn with_avx2(shingles: &[u64]) -> Lanes {
    blocks(shingles)
}

/// Written so that the compiler vectorises the inner loop at whatever width is enabled.
#[inline(always)]
fn blocks(shingles: &[u64]) -> Lanes {
    let mut least = [u32::MAX; LANES];
    let (blocks, rest) = shingles.as_chunks::<TOGETHER>();
    for block in blocks {
        absorb(&mut least, &block.map(|shingle| shingle as u32));
    }
    for &shingle in rest {
        absorb(&mut least, &[shingle as u32]);
    }
    least
}

#[inline(always)]
fn absorb<const N: usize>(least: &mut Lanes, shingles: &[u32; N]) {
    for (lane, least) in least.iter_mut().enumerate() {
        let (multiply, add) = (FUNCTIONS.multiply[lane], FUNCTIONS.add[lane]);
        for &shingle in shingles {
            *least = multiply.wrapping_mul(shingle).wrapping_add(add).min(*least);
        }
    }
}

/// Number of lanes on which two signatures agree.
pub fn equal_lanes(a: &Signature, b: &Signature) -> u32 {
    a.iter().zip(b).map(|(a, b)| u32::from(a == b)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use xxhash_rust::xxh3::xxh3_64_with_seed;

    fn set(seed: u64, from: u64, to: u64) -> Vec<u64> {
        (from..to).map(|n| xxh3_64_with_seed(&n.to_le_bytes(), seed)).collect()
    }

    #[test]
    fn agreement_estimates_jaccard_with_the_spread_of_independent_lanes() {
        // J = 1/2 on 400 shingles: a binomial of 128 lanes has mean 64 and standard deviation 5.66.
        let trials = 2000;
        let agreed: Vec<f64> = (0..trials)
            .map(|seed| {
                f64::from(equal_lanes(&signature(&set(seed, 0, 300)), &signature(&set(seed, 100, 400))))
            })
            .collect();
        let mean = agreed.iter().sum::<f64>() / trials as f64;
        let deviation = (agreed.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / trials as f64).sqrt();
        assert!((mean - 64.0).abs() < 0.6, "mean {mean}");
        assert!((deviation - 5.66).abs() < 0.5, "standard deviation {deviation}");
    }

    #[test]
    fn the_empty_text_has_no_least_value() {
        assert_eq!(lanes(&[]), [u32::MAX; LANES]);
    }

    proptest! {
        #[test]
        fn the_fast_lanes_equal_the_plain_ones(shingles in proptest::collection::vec(any::<u64>(), 0..70)) {
            let expected = plain(&shingles);
            prop_assert_eq!(lanes(&shingles), expected);
            prop_assert_eq!(blocks(&shingles), expected);
        }
    }
}
