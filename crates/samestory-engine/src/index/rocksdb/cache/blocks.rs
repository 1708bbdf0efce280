//! Block cache hits and misses of a store, for metrics.
//!
//! RocksDB counts them itself. Timers are disabled, because they would cost more than the counting.

use std::sync::{Mutex, PoisonError};

use rocksdb::Options;
use rocksdb::statistics::{StatsLevel, Ticker};

/// Blocks that were asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockReads {
    /// Those in memory.
    pub hits: u64,
    /// Those that were read from disk, or from the system's memory of it.
    pub misses: u64,
}

/// The counts of one store.
pub(crate) struct Counted {
    /// Shares what RocksDB counts into.
    settings: Options,
    told: Mutex<BlockReads>,
}

impl Counted {
    /// Before the store is opened with these settings.
    pub(crate) fn by(settings: &mut Options) -> Counted {
        settings.enable_statistics();
        settings.set_statistics_level(StatsLevel::ExceptHistogramOrTimers);
        Counted { settings: settings.clone(), told: Mutex::default() }
    }

    /// Since it was asked last.
    pub(crate) fn since(&self) -> BlockReads {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let now = BlockReads {
            hits: self.settings.get_ticker_count(Ticker::BlockCacheHit),
            misses: self.settings.get_ticker_count(Ticker::BlockCacheMiss),
        };
        let since = BlockReads {
            hits: now.hits.saturating_sub(told.hits),
            misses: now.misses.saturating_sub(told.misses),
        };
        *told = now;
        since
    }
}
