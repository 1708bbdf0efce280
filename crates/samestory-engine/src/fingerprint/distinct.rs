//! A list of hashes with repeats → the set: how many there are, and the least of them.
//!
//! Every hash has one place in a table, and is looked for nowhere else. The first to come takes it; a repeat finds
//! itself there; the few that find another are put aside and sorted. So nothing is guessed along the way, and hashes
//! chosen to share one place cost no more than sorting them all.
//!
//! Hashes are spread evenly, so a table addressed by their high bits has them in order: the least are read off its
//! front.

/// How many distinct hashes there are, and the high halves of the `k` least, ascending without repeats.
pub(super) fn count_and_least(hashes: &[u64], k: usize) -> (usize, Vec<u32>) {
    with_table(
        hashes.len(),
        #[inline(always)]
        |table| {
            let set = Set::of(hashes, table);
            let mut least = vec![0; k];
            let mut found = 0usize;
            for &hash in &*table {
                let Some(place) = least.get_mut(found) else { break };
                // Written every time, kept if there is one: which places are free cannot be foreseen.
                *place = hash;
                found = found.wrapping_add(usize::from(hash != 0));
            }
            least.truncate(found);
            for &hash in &set.members[set.in_table..] {
                let place = least.partition_point(|&other| other < hash);
                if place == k {
                    break;
                }
                least.truncate(k - 1);
                least.insert(place, hash);
            }
            let mut least: Vec<u32> = least.iter().map(|&hash| high(hash)).collect();
            least.dedup();
            (set.members.len(), least)
        },
    )
}

/// The high half, by which hashes are ordered and sampled; MinHash uses the low half.
pub(super) fn high(hash: u64) -> u32 {
    (hash >> 32) as u32
}

/// Zero marks a free place in the table, so it stands for one.
fn taken(hash: u64) -> u64 {
    hash.max(1)
}

/// Calls `work` with a table for so many hashes: a quarter full at the most, so that one in ten finds another in
/// its place.
#[inline(always)]
fn with_table<T>(hashes: usize, work: impl Fn(&mut [u64]) -> T) -> T {
    /// Enough for an article of 500 words. Its length is known to the compiler, which then checks no places.
    const USUAL: usize = 2048;
    let places = (hashes * 4).next_power_of_two();
    if places <= USUAL { work(&mut [0; USUAL]) } else { work(&mut vec![0; places]) }
}

/// Hashes, each once.
struct Set {
    /// First those that are in the table, then the others, ascending.
    members: Vec<u64>,
    in_table: usize,
}

impl Set {
    /// `table` is all zeros, and a power of two long; it becomes the hashes that came first to their places.
    #[inline(always)]
    fn of(hashes: &[u64], table: &mut [u64]) -> Set {
        let shift = 64 - table.len().trailing_zeros();
        // Filled from both ends: from the front with the first to come, from the back with those put aside.
        let mut members = hashes.to_vec();
        let (mut first, mut aside) = (0usize, members.len());
        for &hash in hashes {
            let hash = taken(hash);
            let place = &mut table[(hash >> (shift & 63)) as usize];
            let there = *place;
            *place = if there == 0 { hash } else { there };
            // Written every time, kept if it is to be: a word is as likely to be new as not, so a branch would be
            // guessed wrong.
            members[first] = hash;
            members[aside.wrapping_sub(1)] = hash;
            first = first.wrapping_add(usize::from(there == 0));
            aside = aside.wrapping_sub(usize::from((there != 0) & (there != hash)));
        }
        let mut others = members.split_off(aside);
        others.sort_unstable();
        others.dedup();
        members.truncate(first);
        members.append(&mut others);
        Set { members, in_table: first }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The specification of both.
    fn set(hashes: &[u64]) -> Vec<u64> {
        sorted(hashes.iter().map(|&hash| taken(hash)).collect())
    }

    fn sorted(mut hashes: Vec<u64>) -> Vec<u64> {
        hashes.sort_unstable();
        hashes.dedup();
        hashes
    }

    fn hashes() -> impl Strategy<Value = Vec<u64>> {
        let crowded = (0u64..9).prop_map(|n| (n << 60) | (n << 32) | (n % 2));
        proptest::collection::vec(prop_oneof![any::<u64>(), crowded, 0u64..400], 0..900)
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
