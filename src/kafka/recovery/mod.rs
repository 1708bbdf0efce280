//! Taking partitions over: `takeover` compares offsets and decides, `restore`, `replay` and `finish` rebuild the store
//! from the changelog, a few at a time (`slots`), `generations` follows an older generation, and `leftovers` deletes state that nobody uses. A partition is
//! read only after its state matches its committed offset.

pub(crate) mod finish;
pub mod generations;
pub(crate) mod leftovers;
pub(crate) mod replay;
pub(crate) mod restore;
pub(crate) mod slots;
pub(crate) mod takeover;
