//! Text fingerprints that other near-duplicate systems define, exact to the byte.
//!
//! A team that already stores such hashes can move to samestory, or to any Rust program, without hashing its
//! archive again. Each function returns the other system's numbers to the last bit, and a test verifies that.
//! None of this takes part in samestory's own verdicts.
//!
//! ```
//! use samestory_compat::simhash::{compute_simhash, hamming_distance, match_type, MatchType};
//!
//! let morning = compute_simhash("The ferry was late again on Tuesday");
//! let evening = compute_simhash("The ferry was late again on Tuesday!");
//! assert_eq!(match_type(hamming_distance(&morning, &evening)?), MatchType::Exact);
//! # Ok::<(), samestory_compat::simhash::InvalidHash>(())
//! ```

pub mod fnv;
pub mod fnv_minhash;
pub mod group;
pub mod recap;
pub mod simhash;
pub mod tlsh;
pub mod txtfp;
mod votes;
mod words;
