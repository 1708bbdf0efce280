//! Turns plans, turns and store sizes into metrics, for the worker and the roles. It only counts: nothing here
//! influences a decision.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::metrics::{self, Outcome};
use crate::status::Sizes;
use samestory_engine::engine::{Output, Stats};
use samestory_engine::index::{Family, Rocks, StoreOperation};
use samestory_engine::model::DeadLetterReason;

use super::txn::TxnError;
use crate::kafka::client::Role;
use crate::kafka::recovery::restore::Cause;

/// Registers every series at zero, so that the first increment shows in `rate()`.
pub(crate) fn begin(roles: &[Role]) {
    let roles: Vec<&'static str> = roles.iter().map(|role| role.as_str()).collect();
    metrics::register_series(
        &roles,
        &DeadLetterReason::ALL.map(DeadLetterReason::as_str),
        &Cause::ALL.map(Cause::as_str),
        &StoreOperation::ALL.map(StoreOperation::as_str),
    );
}

/// Times the steps of one turn.
pub(crate) struct Lap {
    role: &'static str,
    since: Instant,
}

impl Lap {
    pub(crate) fn start(role: Role) -> Lap {
        Lap { role: role.as_str(), since: Instant::now() }
    }

    /// Records the time of a finished step and starts the next one.
    pub(crate) fn done(&mut self, step: &'static str) {
        metrics::step(self.role, step, self.since.elapsed());
        self.since = Instant::now();
    }

    /// Counts a committed transaction.
    pub(crate) fn committed(&self, records: usize) {
        metrics::transaction(self.role, Outcome::Committed, 1);
        metrics::batch(self.role, records);
    }
}

/// Counts a transaction that did not commit.
pub(crate) fn failed(role: Role, error: &TxnError) {
    let outcome = match error {
        TxnError::Retry(_) | TxnError::Refused(_) => Outcome::Aborted,
        TxnError::OutcomeUnknown(_) | TxnError::Fatal(_) => Outcome::Unknown,
        TxnError::Fenced(_) => Outcome::Fenced,
    };
    metrics::transaction(role.as_str(), outcome, 1);
}

/// Counts a committed plan and the outputs that were published for it.
pub(crate) fn plan<'a>(stats: &Stats, published: impl Iterator<Item = &'a Output>) {
    let mut verdicts = BTreeMap::new();
    for output in published {
        match output {
            Output::Tagged(tagged) => {
                let language = tagged.language.code();
                *verdicts.entry((language, tagged.kind.as_str())).or_insert(0) += 1;
                tagged.flags.iter().for_each(|flag| metrics::flag(language, flag.as_str()));
            }
            Output::DeadLetter(letter) => metrics::dead_letters(letter.reason.as_str(), 1),
            Output::Tombstone { .. }
            | Output::Notice { .. }
            | Output::Cluster(_)
            | Output::ClusterDeleted { .. } => {}
        }
    }
    for ((language, verdict), count) in verdicts {
        metrics::articles(language, verdict, count);
    }
    metrics::compared(stats.candidates, stats.capped_buckets);
    let events = [
        ("expired", stats.expired),
        ("arrived-expired", stats.arrived_expired),
        ("deleted", stats.deleted),
        ("unknown-delete", stats.unknown_deletes),
        ("stale-forget", stats.stale_forgets),
        ("relocation-notice", stats.notices),
        ("forwarded-notice", stats.forwarded_notices),
        ("unknown-notice", stats.unknown_notices),
        ("election", stats.elections),
        ("split", stats.splits),
        ("clamped-time", stats.clamped_times),
        ("ahead-of-stream", stats.ahead_of_stream),
        ("stream-time-set", stats.stream_times_set),
        ("backfilled", stats.backfilled),
    ];
    for (event, count) in events.into_iter().filter(|&(_, count)| count > 0) {
        metrics::events(event, count);
    }
}

/// Records the duration of one operation of a store.
pub(crate) fn store(operation: StoreOperation, took: Duration) {
    metrics::store_operation(operation.as_str(), took);
}

/// Bytes on disk by column family. It also publishes the store's block cache hits and misses.
pub(crate) fn sizes(store: &Rocks) -> Arc<Sizes> {
    let blocks = store.reader().blocks();
    metrics::blocks(blocks.hits, blocks.misses);
    let sizes = store.reader().sizes().into_iter().map(|(family, bytes)| match family {
        Family::Documents(language) => (language.code(), "docs", bytes),
        Family::Bands(language) => (language.code(), "bands", bytes),
        Family::Ids => ("shared", "ids", bytes),
        Family::Expiry => ("shared", "expiry", bytes),
        Family::Clusters => ("shared", "clusters", bytes),
        Family::Meta => ("shared", "meta", bytes),
    });
    Arc::new(sizes.collect())
}
