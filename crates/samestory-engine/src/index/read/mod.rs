//! Reading an index: [`rows`] is the storage interface of ordered byte rows, and [`view`] decodes them into
//! records.
//!
//! Stores, snapshots and overlays implement `rows::Rows` and get `view::View` for free, so every reader sees
//! the same data in the same order.

pub(crate) mod rows;
pub(crate) mod view;
