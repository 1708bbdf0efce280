//! The turn: collect, plan, begin, send, commit, apply. The same for every role; a role says what to plan.

pub(crate) mod faults;
pub(crate) mod measure;
pub(crate) mod record;
pub(crate) mod source;
pub(crate) mod stage;
pub(crate) mod suspects;
pub(crate) mod txn;
pub(crate) mod unreadable;
pub(crate) mod worker;
