//! Turns a list of hashes with repeats into a set: its size and its smallest members, which become the
//! fingerprint's sample.
//!
//! Every hash has exactly one slot in a table, without probing. The first hash claims the slot, a repeat
//! finds itself there, and the few that collide with another hash are collected and sorted. The loop
//! therefore never branches on data, and hashes crafted to collide cost no more than sorting all of them.
//!
//! Hashes are spread evenly, so a table addressed by their high bits holds them almost in order: the smallest
//! are read from its front.

/// The number of distinct hashes, and the high halves of the `k` smallest, ascending without repeats.
pub(super) fn count_and_least(hashes: &[u64], k: usize) -> (usize, Vec<u32>) {
    with_table(
        hashes.len(),
        #[inline(always)]
        |table| {
            let set = DistinctHashes::collect(hashes, table);
            let mut least = vec![0; k];
            let mut found = 0usize;
            for &hash in &*table {
                let Some(slot) = least.get_mut(found) else { break };
                // Always written, but kept only if the slot is occupied: branching on it would mispredict.
                *slot = hash;
                found = found.wrapping_add(usize::from(hash != 0));
            }
            least.truncate(found);
            for &hash in &set.members[set.in_table..] {
                let at = least.partition_point(|&other| other < hash);
                if at == k {
                    break;
                }
                least.truncate(k - 1);
                least.insert(at, hash);
            }
            let mut least: Vec<u32> = least.iter().map(|&hash| high(hash)).collect();
            least.dedup();
            (set.members.len(), least)
        },
    )
}

/// The high half orders and samples hashes; MinHash uses the low half.
pub(super) fn high(hash: u64) -> u32 {
    (hash >> 32) as u32
}

/// Zero marks a free slot in the table, so a zero hash becomes one.
fn non_zero(hash: u64) -> u64 {
    hash.max(1)
}

/// Calls `work` with a table for this many hashes. It is at most a quarter full, so about one hash in ten
/// collides.
#[inline(always)]
fn with_table<T>(hashes: usize, work: impl Fn(&mut [u64]) -> T) -> T {
    /// Enough for an article of 500 words. The constant length lets the compiler drop bounds checks.
    const USUAL: usize = 2048;
    let slots = (hashes * 4).next_power_of_two();
    if slots <= USUAL { work(&mut [0; USUAL]) } else { work(&mut vec![0; slots]) }
}

/// Distinct hashes.
struct DistinctHashes {
    /// First those in the table, then the ones that collided, ascending.
    members: Vec<u64>,
    in_table: usize,
}

impl DistinctHashes {
    /// `table` must be all zeros and a power of two long; on return it holds the first hash of each slot.
    #[inline(always)]
    fn collect(hashes: &[u64], table: &mut [u64]) -> DistinctHashes {
        let shift = 64 - table.len().trailing_zeros();
        // Filled from both ends: first claims from the front, collisions from the back.
        let mut members = hashes.to_vec();
        let (mut first, mut collided) = (0usize, members.len());
        for &hash in hashes {
            let hash = non_zero(hash);
            let slot = &mut table[(hash >> (shift & 63)) as usize];
            let occupant = *slot;
            *slot = if occupant == 0 { hash } else { occupant };
            // Both are always written and kept only if the counter moves: a word is as likely to be new as
            // not, so a branch would mispredict.
            members[first] = hash;
            members[collided.wrapping_sub(1)] = hash;
            first = first.wrapping_add(usize::from(occupant == 0));
            collided = collided.wrapping_sub(usize::from((occupant != 0) & (occupant != hash)));
        }
        let mut others = members.split_off(collided);
        others.sort_unstable();
        others.dedup();
        members.truncate(first);
        members.append(&mut others);
        DistinctHashes { members, in_table: first }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The specification of both results.
    fn set(hashes: &[u64]) -> Vec<u64> {
        sorted(hashes.iter().map(|&hash| non_zero(hash)).collect())
    }

    fn sorted(mut hashes: Vec<u64>) -> Vec<u64> {
        hashes.sort_unstable();
        hashes.dedup();
        hashes
    }

    fn hashes() -> impl Strategy<Value = Vec<u64>> {
        let colliding = (0u64..9).prop_map(|n| (n << 60) | (n << 32) | (n % 2));
        proptest::collection::vec(prop_oneof![any::<u64>(), colliding, 0u64..400], 0..900)
    }

    proptest! {
        #[test]
        fn the_table_equals_sorting(hashes in hashes(), k in 1usize..70) {
            let set = set(&hashes);
            let mut least: Vec<u32> = set.iter().take(k).map(|&hash| high(hash)).collect();
            least.dedup();
            prop_assert_eq!(count_and_least(&hashes, k), (set.len(), least));
        }
    }
}
