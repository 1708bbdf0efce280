//! The seams where a test injects a fault. [`Faults`] is the small trait between the stage and an injected fault: by
//! default nothing happens, and with the feature `faults` the environment selects a fault. All points, mutants and
//! constants are listed here; nothing else in the stage knows who selects them.

#[cfg(feature = "faults")]
mod environment;

/// Declares an enum whose values have the names that a test selects them by.
macro_rules! named {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $value:ident = $text:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[cfg_attr(not(feature = "faults"), allow(dead_code, reason = "some are used by injected faults only"))]
        pub(crate) enum $name { $($(#[$doc])* $value,)* }

        #[cfg(feature = "faults")]
        impl $name {
            pub(crate) fn name(self) -> &'static str {
                match self { $($name::$value => $text,)* }
            }
        }
    };
}

named! {
/// A point that the stage reaches. A test may end, panic, freeze or delay the process there.
Point {
    /// A poll of the consumer returned.
    Poll = "poll",
    /// A full batch is collected.
    FullBatch = "full-batch",
    /// Partitions are being revoked.
    Revoke = "revoke",
    /// A batch is planned.
    Plan = "plan",
    /// A column family was created.
    CreateFamily = "create-family",
    /// A transaction is open.
    Begin = "begin",
    /// A record is in the producer's queue.
    Produce = "produce",
    /// All records of a transaction are delivered.
    Flush = "flush",
    /// The offsets are part of the transaction.
    Offsets = "offsets",
    /// The transaction has committed.
    Commit = "commit",
    /// A committed plan is applied.
    Apply = "apply",
    /// Memtables are about to be flushed.
    StoreFlush = "store-flush",
    /// A chunk of the changelog is applied.
    Restore = "restore",
    /// A generation-end record is about to be committed.
    GenerationEnd = "generation-end",
}
}

named! {
/// A guard that a test removes, to prove that its absence is noticed. See `docs/reliability.md`.
Mutant {
    /// Column families are flushed one by one.
    AtomicFlushOff = "atomic-flush-off",
    /// Forgets are not sent.
    DropForgets = "drop-forgets",
    /// A generation-end record is written without a membership of the old group.
    EndWithoutMembership = "end-without-membership",
    /// The first position of a partition is not committed.
    FirstPositionOff = "first-position-off",
    /// Offsets are committed under the membership of the moment, not under that of the batch.
    LateMembership = "late-membership",
    /// A full batch is not polled and never dropped.
    NoPollWhenFull = "no-poll-when-full",
    /// Nothing seeks back after an abort.
    NoSeek = "no-seek",
    /// A parser that panics ends the worker.
    PanicGuardOff = "panic-guard-off",
    /// The changelog position is written beside the batch that it belongs to.
    PositionOutsideBatch = "position-outside-batch",
    /// Expired documents are found.
    ReadExpired = "read-expired",
    /// Routed repeats are judged again.
    ReceiverOff = "receiver-off",
    /// A restore ends at the last stable offset.
    RestoreToLso = "restore-to-lso",
    /// Errors are checked for being retriable before they are checked for being fatal.
    RetryBeforeFatal = "retry-before-fatal",
    /// A refused record is retried.
    RetryRefused = "retry-refused",
    /// Plans are applied before they are committed.
    StateBeforeCommit = "state-before-commit",
    /// State older than the changelog's tombstones is used.
    TooOldOff = "too-old-off",
    /// Topic ids are not compared.
    TopicIdIgnored = "topic-id-ignored",
    /// A relocation notice retracts at once.
    TwoVoices = "two-voices",
    /// Calls that librdkafka may never return from have no limit.
    UnboundedCalls = "unbounded-calls",
    /// Records are not measured.
    Unmeasured = "unmeasured",
    /// Event times come from this machine's clock.
    WallClock = "wall-clock",
}
}

named! {
/// A constant that a test makes smaller.
Constant {
    /// Records that a restore applies together.
    RestoreChunk = "SAMESTORY_CHUNK",
    /// Milliseconds that this machine's clock is ahead.
    ClockAhead = "SAMESTORY_CLOCK_AHEAD_MS",
    /// Milliseconds between two flushes.
    FlushInterval = "SAMESTORY_FLUSH_MS",
    /// Records from which on a restore builds posting lists at the end.
    ManyRecords = "SAMESTORY_MANY",
    /// Milliseconds between two rounds of purging.
    PurgeInterval = "SAMESTORY_PURGE_MS",
    /// Milliseconds that a restore pauses after a chunk.
    RestorePause = "SAMESTORY_RESTORE_PAUSE_MS",
    /// Milliseconds without progress until a restore is stalled.
    RestoreStall = "SAMESTORY_STALL_MS",
    /// Milliseconds until an open transaction counts as stuck.
    StuckTransaction = "SAMESTORY_STUCK_MS",
    /// Milliseconds between two searches for state that nobody uses.
    SweepInterval = "SAMESTORY_SWEEP_MS",
    /// Milliseconds between two checks of the topic ids.
    TopicIdCheckInterval = "SAMESTORY_COMPARE_MS",
    /// Bytes of a memtable.
    WriteBuffer = "SAMESTORY_WRITE_BUFFER",
}
}

/// The ways in which a test can disturb the stage. By default nothing happens.
pub(crate) trait Faults {
    /// The stage has reached a point.
    #[inline(always)]
    fn reach(&self, _: Point) {}

    /// True if this guard is removed.
    #[inline(always)]
    fn has(&self, _: Mutant) -> bool {
        false
    }

    /// The value of a constant.
    #[inline(always)]
    fn value(&self, _: Constant, usual: u64) -> u64 {
        usual
    }
}

/// The faults of this process.
#[cfg(feature = "faults")]
pub(crate) static FAULTS: environment::EnvironmentFaults = environment::EnvironmentFaults;

/// The faults of this process: none.
#[cfg(not(feature = "faults"))]
pub(crate) static FAULTS: NoFaults = NoFaults;

#[cfg(not(feature = "faults"))]
pub(crate) struct NoFaults;

#[cfg(not(feature = "faults"))]
impl Faults for NoFaults {}
