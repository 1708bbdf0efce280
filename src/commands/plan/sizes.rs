//! The arithmetic of `samestory plan`: from [`Needs`] to [`StageSizes`]. Each constant says which measurement it comes from, and
//! `docs/operations.md` has the same formulas. The results are estimates, not guarantees.

use std::collections::BTreeMap;

use samestory::config::home;
use samestory_engine::index::{MemoryShares, all_filter_bytes};
use samestory_engine::model::Lang;
use serde::Serialize;

/// Bytes of state per article. The run below took 2,027 bytes, `make bench FULL=1` 1.4 to 1.5 KiB for its generated articles. This is
/// the larger figure.
const STATE: f64 = 2048.0;
/// Volume size per byte of state. Compaction writes new SST files before it deletes the old ones, and a quarantined state stays
/// until somebody deletes it.
const ROOM: f64 = 2.0;
/// Bytes of an article's records in the changelog. Measured: 919 bytes on the broker's disk before compaction, after 11,875 agency
/// reports in English, Hindi and Japanese went through `samestory run`.
const CHANGELOG: f64 = 1000.0;
/// Bytes of a routed record beside the article. Measured: 914 bytes in that run, mostly the fingerprint.
const ROUTED: f64 = 1000.0;
/// Bytes of a tagged article beside the article. Measured: 118 bytes in that run, where batches were large and well compressed.
const VERDICT: f64 = 200.0;
/// Memory of a process beside its stores: batches, threads and the queues of librdkafka.
const MEMORY: f64 = 150e6;
/// Memory per remembered article that no budget bounds: index blocks and filters of SST files (13 bytes), and the membership filter
/// of ids (4).
const MEMORY_EACH: f64 = 17.0;
/// Postings of an article: 15 bands, one for its content, 16 samples.
const POSTINGS: f64 = 32.0;
/// Articles per second of one route worker and one match worker together. `make bench-kafka`: 1,983 on two cores that they
/// shared with the broker.
pub(super) const WORKER: f64 = 1900.0;
/// Articles per second of a restore. `make bench-kafka`: 9,234.
const RESTORE: f64 = 9200.0;
const SECONDS_OF_A_DAY: f64 = 86_400.0;

/// The load that a stage has to carry.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Needs {
    pub(super) articles_per_day: f64,
    pub(super) days: f64,
    /// Size of an article on the raw topic.
    pub(super) article_bytes: f64,
    /// Fraction of articles that repeat earlier ones.
    pub(super) duplicates: f64,
    /// Replicas of each topic.
    pub(super) replication: u16,
    /// Articles in the busiest hour, as a multiple of the average.
    pub(super) peak: f64,
    /// Languages and their shares, the largest first; the shares add up to one.
    pub(super) languages: Vec<(Lang, f64)>,
    /// Partitions of match, if they are given.
    pub(super) partitions: Option<u16>,
    /// Memory budget that all stores of a process share.
    pub(super) store_memory: usize,
}

/// The resources that the load needs; also the JSON output.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct StageSizes {
    pub(super) remembered_articles: f64,
    pub(super) state_bytes: f64,
    pub(super) volume_bytes: f64,
    pub(super) changelog_bytes: f64,
    pub(super) raw_bytes_per_day: f64,
    pub(super) unique_bytes_per_day: f64,
    pub(super) near_duplicate_bytes_per_day: f64,
    pub(super) routed_bytes_per_hour_of_waiting: f64,
    pub(super) partitions: u16,
    pub(super) match_replicas: u16,
    /// Fraction of all articles that the busiest partition gets.
    pub(super) busiest_partition: f64,
    pub(super) memory_bytes_of_one_process: f64,
    pub(super) memory_bytes_of_each_replica: f64,
    /// The part of it that the stores' budget does not bound.
    pub(super) memory_bytes_of_each_replica_outside_the_budget: f64,
    pub(super) volume_bytes_of_each_replica: f64,
    pub(super) peak_articles_per_second: f64,
    /// Load of the worker of the busiest partition in the busiest hour; one is its limit.
    pub(super) busiest_worker_load: f64,
    pub(super) route_workers: u64,
    pub(super) restore_seconds_of_the_busiest_partition: f64,
}

impl Needs {
    pub(super) fn sizes(&self) -> StageSizes {
        let copies = f64::from(self.replication);
        let remembered = self.articles_per_day * self.days;
        let state = remembered * STATE;
        let peak = self.articles_per_day / SECONDS_OF_A_DAY * self.peak;
        let partitions = self.partitions.unwrap_or_else(|| self.enough_partitions());
        let shares = self.shares(partitions);
        // Rounding can make a sum of shares slightly larger than one.
        let busiest = shares.values().copied().fold(0.0, f64::max).min(1.0);
        let memory = |remembered: f64| MEMORY + self.stores_memory(remembered) + remembered * MEMORY_EACH;
        let replica = memory(remembered * busiest);
        let tagged = (self.article_bytes + VERDICT) * self.articles_per_day * copies;
        StageSizes {
            remembered_articles: remembered,
            state_bytes: state,
            volume_bytes: state * ROOM,
            changelog_bytes: remembered * CHANGELOG * copies,
            raw_bytes_per_day: self.articles_per_day * self.article_bytes * copies,
            unique_bytes_per_day: tagged * (1.0 - self.duplicates),
            near_duplicate_bytes_per_day: tagged * self.duplicates,
            routed_bytes_per_hour_of_waiting: peak * 3600.0 * (self.article_bytes + ROUTED) * copies,
            partitions,
            match_replicas: u16::try_from(shares.len()).unwrap_or(u16::MAX),
            busiest_partition: busiest,
            memory_bytes_of_one_process: memory(remembered),
            memory_bytes_of_each_replica: replica,
            memory_bytes_of_each_replica_outside_the_budget: replica - self.store_memory as f64,
            volume_bytes_of_each_replica: state * ROOM * busiest,
            peak_articles_per_second: peak,
            busiest_worker_load: peak * busiest / WORKER,
            route_workers: (peak / WORKER).ceil().max(1.0) as u64,
            restore_seconds_of_the_busiest_partition: remembered * busiest / RESTORE,
        }
    }

    /// Memory of the stores: their budget, and what the filters of segments take when the cache of their rows cannot give up more.
    fn stores_memory(&self, remembered: f64) -> f64 {
        let shares = MemoryShares::of_budget(self.store_memory);
        let largest = self.languages.first().map_or(1.0, |&(_, share)| share);
        // A language that is small enough has no large segments.
        let postings = remembered * POSTINGS;
        let filters = all_filter_bytes((postings * largest) as u64) as f64 / largest;
        self.store_memory as f64 + (filters + shares.least_rows as f64 - shares.segments as f64).max(0.0)
    }

    /// One partition per language and one for articles without a known language; at least the default of `topics.partitions`.
    fn enough_partitions(&self) -> u16 {
        u16::try_from(self.languages.len() + 1).unwrap_or(u16::MAX).max(4)
    }

    /// The share of each partition that gets articles, if `stage.languages` lists the languages in this order.
    fn shares(&self, partitions: u16) -> BTreeMap<i32, f64> {
        let mut order = vec![Lang::UND];
        order.extend(
            self.languages.iter().map(|&(language, _)| language).filter(|&language| language != Lang::UND),
        );
        let mut shares = BTreeMap::new();
        for &(language, share) in &self.languages {
            *shares.entry(home(&order, language, i32::from(partitions))).or_insert(0.0) += share;
        }
        shares
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use samestory_engine::text::language::LANGUAGES;

    use super::*;

    fn needs() -> impl Strategy<Value = Needs> {
        let shares = proptest::collection::vec(0.01_f64..1.0, 1..LANGUAGES.len());
        let numbers = (1.0_f64..1e9, 0.1_f64..4000.0, 10.0_f64..1e6, 0.0_f64..=1.0, 1.0_f64..20.0);
        (shares, numbers, 1_u16..5, proptest::option::of(1_u16..200)).prop_map(
            |(
                mut shares,
                (articles_per_day, days, article_bytes, duplicates, peak),
                replication,
                partitions,
            )| {
                shares.sort_by(|a, b| b.total_cmp(a));
                let all: f64 = shares.iter().sum();
                let languages =
                    LANGUAGES.iter().zip(shares).map(|(row, share)| (row.lang, share / all)).collect();
                Needs {
                    articles_per_day,
                    days,
                    article_bytes,
                    duplicates,
                    replication,
                    peak,
                    languages,
                    partitions,
                    store_memory: 512 << 20,
                }
            },
        )
    }

    /// The sizes that must not shrink when the load grows.
    fn growing(sizes: &StageSizes) -> [f64; 10] {
        [
            sizes.remembered_articles,
            sizes.state_bytes,
            sizes.volume_bytes,
            sizes.changelog_bytes,
            sizes.raw_bytes_per_day,
            sizes.memory_bytes_of_one_process,
            sizes.memory_bytes_of_each_replica,
            sizes.volume_bytes_of_each_replica,
            sizes.peak_articles_per_second,
            sizes.restore_seconds_of_the_busiest_partition,
        ]
    }

    proptest! {
        #[test]
        fn more_articles_or_days_never_need_less(needs in needs(), more in 1.0_f64..10.0) {
            let few = growing(&needs.sizes());
            for many in [
                Needs { articles_per_day: needs.articles_per_day * more, ..needs.clone() },
                Needs { days: needs.days * more, ..needs.clone() },
                Needs { replication: needs.replication + 1, ..needs.clone() },
                Needs { peak: needs.peak * more, ..needs.clone() },
            ] {
                for (few, many) in few.iter().zip(growing(&many.sizes())) {
                    prop_assert!(*few <= many, "{few} {many}");
                }
            }
        }

        #[test]
        fn there_are_never_more_replicas_than_languages_or_partitions(needs in needs()) {
            let sizes = needs.sizes();
            prop_assert!(sizes.match_replicas >= 1);
            prop_assert!(usize::from(sizes.match_replicas) <= needs.languages.len());
            prop_assert!(sizes.match_replicas <= sizes.partitions);
            // The busiest partition has at least an even share, and at least the largest language.
            prop_assert!(sizes.busiest_partition >= needs.languages[0].1 - 1e-9);
            prop_assert!(sizes.busiest_partition * f64::from(sizes.match_replicas) >= 1.0 - 1e-9);
            prop_assert!(sizes.memory_bytes_of_each_replica <= sizes.memory_bytes_of_one_process);
        }

        #[test]
        fn enough_partitions_are_one_for_each_language(needs in needs()) {
            let needs = Needs { partitions: None, ..needs };
            prop_assert_eq!(usize::from(needs.sizes().match_replicas), needs.languages.len());
        }

        #[test]
        fn every_tagged_article_is_on_one_of_the_two_topics(needs in needs()) {
            let sizes = needs.sizes();
            let all = Needs { duplicates: 0.0, ..needs }.sizes();
            let both = sizes.unique_bytes_per_day + sizes.near_duplicate_bytes_per_day;
            prop_assert!((both - all.unique_bytes_per_day).abs() <= all.unique_bytes_per_day * 1e-9);
        }
    }
}
