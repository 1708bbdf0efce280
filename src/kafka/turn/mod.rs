//! The turn: collect, plan, begin, send, commit, apply. `worker` drives it for every role; `stage` is the trait with
//! which a role plans and applies, `partitions` the life of a partition from claim to running, `source` reads the input, and `txn` commits. State changes only after the commit.

pub(crate) mod measure;
pub(crate) mod partitions;
pub(crate) mod record;
pub(crate) mod source;
pub(crate) mod stage;
pub(crate) mod suspects;
pub(crate) mod txn;
pub(crate) mod unreadable;
mod watcher;
pub(crate) mod worker;
