//! A multiset of hashes → the set, and its least members.
//!
//! Hashes are spread evenly, so a table addressed by their high bits keeps them almost in order: the least
//! members are read off its front without sorting the rest.

/// Probes after which a table is given up. A table half full needs more once in a great many texts; somebody who
/// chooses hashes on purpose reaches it at once, and then sorting keeps the work bounded.
const MAX_PROBES: usize = 64;

/// Distinct hashes, in no particular order, and the `k` least of their high halves, ascending.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Distinct {
    pub(super) hashes: Vec<u64>,
    pub(super) least: Vec<u32>,
}

/// The high half, by which hashes are ordered and sampled; MinHash uses the low half.
fn high(hash: u64) -> u32 {
    (hash >> 32) as u32
}

/// Zero marks a free place in the table, so it stands for one.
fn taken(hash: u64) -> u64 {
    hash.max(1)
}

pub(super) fn distinct(hashes: &[u64], k: usize) -> Distinct {
    by_table(hashes, k).unwrap_or_else(|| by_sorting(hashes, k))
}

/// The specification.
fn by_sorting(hashes: &[u64], k: usize) -> Distinct {
    let mut hashes: Vec<u64> = hashes.iter().map(|&hash| taken(hash)).collect();
    hashes.sort_unstable();
    hashes.dedup();
    let mut least: Vec<u32> = hashes.iter().map(|&hash| high(hash)).collect();
    least.dedup();
    least.truncate(k);
    Distinct { hashes, least }
}

fn by_table(hashes: &[u64], k: usize) -> Option<Distinct> {
    // Half full at the most. Probing runs on into a tail instead of wrapping, so order is kept.
    let bits = (hashes.len() * 2).next_power_of_two().trailing_zeros().max(4);
    let mut table = vec![0u64; (1usize << bits) + MAX_PROBES];
    let mut result = Vec::with_capacity(hashes.len());
    for &hash in hashes {
        let hash = taken(hash);
        let home = (hash >> (64 - bits)) as usize;
        let probes = table.get_mut(home..home + MAX_PROBES)?;
        let place = probes.iter_mut().find(|place| **place == 0 || **place == hash)?;
        if *place == 0 {
            *place = hash;
            result.push(hash);
        }
    }
    // What stands behind a free place belongs there or later: once k are found, the next free place ends it.
    let mut least = Vec::with_capacity(k + MAX_PROBES);
    for &hash in &table {
        if hash != 0 {
            insert_near_the_end(&mut least, high(hash));
        } else if least.len() >= k {
            break;
        }
    }
    least.truncate(k);
    Some(Distinct { hashes: result, least })
}

/// Keeps `sorted` sorted and without repeats. What comes is never far from its place.
fn insert_near_the_end(sorted: &mut Vec<u32>, value: u32) {
    let behind = sorted.iter().rev().take_while(|&&other| other > value).count();
    let place = sorted.len() - behind;
    if place == 0 || sorted[place - 1] != value {
        sorted.insert(place, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sorted(mut found: Distinct) -> Distinct {
        found.hashes.sort_unstable();
        found
    }

    #[test]
    fn crowded_hashes_are_sorted_instead() {
        let crowded: Vec<u64> = (1..=1000).collect();
        assert_eq!(by_table(&crowded, 8), None);
        assert_eq!(distinct(&crowded, 8).hashes.len(), 1000);
    }

    proptest! {
        #[test]
        fn the_table_equals_sorting(hashes in proptest::collection::vec(prop_oneof![any::<u64>(), (1u64..9).prop_map(|n| n << 60 | n << 32)], 0..300), k in 1usize..70) {
            if let Some(found) = by_table(&hashes, k) {
                prop_assert_eq!(sorted(found), by_sorting(&hashes, k));
            }
        }
    }
}
