//! Exact functions that other systems define, apart from the flow.
//!
//! Nothing here takes part in a verdict. Systems that already store these hashes can move to samestory
//! without hashing their archive again, so each function promises somebody else's numbers to the last bit.

pub mod fnv;
pub mod group;
pub mod index;
pub mod simhash;
#[cfg(feature = "tlsh")]
pub mod tlsh;
pub mod txtfp;
mod votes;
