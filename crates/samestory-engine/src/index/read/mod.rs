//! Reading an index: [`view`] is the trait that stores, snapshots and overlays implement, and [`rows`] has the
//! values that it takes and returns.

pub(crate) mod rows;
pub(crate) mod view;
