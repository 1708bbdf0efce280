//! A list of hashes with repeats → the set: how many there are, the least of them, each one once.
//!
//! Hashes are spread evenly, so a table addressed by their high bits keeps them almost in order: the least
//! members are read off its front without sorting the rest.

/// Probes after which a table is given up. A table a quarter full needs more once in a great many texts; somebody who
/// chooses hashes on purpose reaches it at once, and then sorting keeps the work bounded.
const MAX_PROBES: usize = 16;

/// How many distinct hashes there are, and the high halves of the `k` least, ascending without repeats.
pub(super) fn count_and_least(hashes: &[u64], k: usize) -> (usize, Vec<u32>) {
    count_and_least_by_table(hashes, k).unwrap_or_else(|| count_and_least_by_sorting(hashes, k))
}

/// Each hash once.
pub(super) fn one_of_each(hashes: &[u64]) -> Vec<u64> {
    one_of_each_by_table(hashes).unwrap_or_else(|| sorted(hashes))
}

/// The high half, by which hashes are ordered and sampled; MinHash uses the low half.
fn high(hash: u64) -> u32 {
    (hash >> 32) as u32
}

/// Zero marks a free place in the table, so it stands for one.
fn taken(hash: u64) -> u64 {
    hash.max(1)
}

/// The specification of both.
fn sorted(hashes: &[u64]) -> Vec<u64> {
    let mut hashes: Vec<u64> = hashes.iter().map(|&hash| taken(hash)).collect();
    hashes.sort_unstable();
    hashes.dedup();
    hashes
}

fn count_and_least_by_sorting(hashes: &[u64], k: usize) -> (usize, Vec<u32>) {
    let sorted = sorted(hashes);
    let mut least: Vec<u32> = sorted.iter().take(k).map(|&hash| high(hash)).collect();
    least.dedup();
    (sorted.len(), least)
}

fn count_and_least_by_table(hashes: &[u64], k: usize) -> Option<(usize, Vec<u32>)> {
    let mut table = Table::for_hashes(hashes.len());
    let mut count = 0;
    for &hash in hashes {
        count += usize::from(table.insert(taken(hash))?);
    }
    // No hash stands MAX_PROBES places behind its home, so the least k are among the first k and so many more.
    let mut least = vec![0; k + MAX_PROBES];
    let mut found = 0;
    for &hash in &table.places {
        let Some(place) = least.get_mut(found) else { break };
        // Written every time, kept if there is one: which places are free cannot be foreseen.
        *place = hash;
        found += usize::from(hash != 0);
    }
    least.truncate(found);
    insertion_sort(&mut least);
    let mut least: Vec<u32> = least.into_iter().take(k).map(high).collect();
    least.dedup();
    Some((count, least))
}

fn one_of_each_by_table(hashes: &[u64]) -> Option<Vec<u64>> {
    let mut table = Table::for_hashes(hashes.len());
    let mut result = vec![0; hashes.len()];
    let mut count = 0usize;
    for &hash in hashes {
        let hash = taken(hash);
        // Written every time, kept if new: a word is as likely to be new as not, so a branch would be guessed wrong.
        result[count] = hash;
        count = count.wrapping_add(usize::from(table.insert(hash)?));
    }
    result.truncate(count);
    Some(result)
}

/// A set of hashes that are not zero.
struct Table {
    places: Box<[u64]>,
    shift: u32,
}

impl Table {
    /// A quarter full at the most: the first place is nearly always the right one, and so guessed right. Probing runs
    /// on into a tail instead of wrapping, so order is kept.
    fn for_hashes(count: usize) -> Table {
        let bits = (count * 4).next_power_of_two().trailing_zeros().max(4);
        Table { places: vec![0; (1usize << bits) + MAX_PROBES].into_boxed_slice(), shift: 64 - bits }
    }

    /// Whether the hash is new; nothing if its neighbourhood is crowded.
    #[inline(always)]
    fn insert(&mut self, hash: u64) -> Option<bool> {
        let home = (hash >> (self.shift & 63)) as usize;
        let mut place = home;
        loop {
            let there = self.places[place];
            if (there == 0) | (there == hash) {
                self.places[place] = hash;
                return Some(there == 0);
            }
            place = place.wrapping_add(1);
            if place.wrapping_sub(home) == MAX_PROBES {
                return None;
            }
        }
    }
}

/// Sorts what is almost sorted in a single pass.
fn insertion_sort(values: &mut [u64]) {
    for end in 1..values.len() {
        let value = values[end];
        let behind = values[..end].iter().rev().take_while(|&&other| other > value).count();
        if behind > 0 {
            values.copy_within(end - behind..end, end - behind + 1);
            values[end - behind] = value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn crowded_hashes_are_sorted_instead() {
        let crowded: Vec<u64> = (1..=1000).collect();
        assert_eq!(count_and_least_by_table(&crowded, 8), None);
        assert_eq!(one_of_each_by_table(&crowded), None);
        assert_eq!(count_and_least(&crowded, 8), (1000, vec![0]));
        assert_eq!(one_of_each(&crowded), crowded);
    }

    fn hashes() -> impl Strategy<Value = Vec<u64>> {
        let crowded = (0u64..9).prop_map(|n| (n << 60) | (n << 32) | (n % 2));
        proptest::collection::vec(prop_oneof![any::<u64>(), crowded], 0..300)
    }

    proptest! {
        #[test]
        fn the_table_equals_sorting(hashes in hashes(), k in 1usize..70) {
            if let Some(found) = count_and_least_by_table(&hashes, k) {
                prop_assert_eq!(found, count_and_least_by_sorting(&hashes, k));
            }
            if let Some(mut found) = one_of_each_by_table(&hashes) {
                found.sort_unstable();
                prop_assert_eq!(found, sorted(&hashes));
            }
        }
    }
}
