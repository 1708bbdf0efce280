//! Near-duplicate detection for news: recognises articles whose *text* has been seen before, word for word, lightly edited,
//! re-headlined, truncated, or wrapped in another site's boilerplate.
//!
//! ```
//! use samestory_engine::{Article, Deduplicator, Options};
//!
//! # fn main() -> Result<(), samestory_engine::Error> {
//! let mut dedup = Deduplicator::in_memory(Options::default());
//! let verdict = dedup.insert(Article::new("a1", "The ferry runs again from Monday, the operator said on Thursday."))?;
//! println!("{} {:?} {}", verdict.kind.as_str(), verdict.duplicate_of, verdict.confidence.get());
//! let answer = dedup.check("The ferry runs again from Monday, the operator said on Friday.")?;
//! println!("{}", answer.kind.as_str());
//! # Ok(())
//! # }
//! ```
//!
//! [`Deduplicator`] keeps its index in memory, or in a directory with the feature `rocksdb`. A verdict is a function of the
//! articles inserted before it: the same articles in the same order give the same verdicts, byte for byte, on every
//! machine. It knows the same text, not the same event. Confidence is a calibrated probability that an editor would agree;
//! [`Options::min_confidence`] moves the line.
//!
//! The modules behind this page are public for the `samestory` stage, hidden from these pages, and change without notice.

// The rooms behind the front door:
//
// - `model`: ids, times, verdicts and published records as plain values
// - `text`: from a body to normalised text, its language and its shingles
// - `fingerprint`, `lsh`: from shingles to what is compared and what is looked up
// - `index`: what is remembered: byte format, reading, write sets, in memory or in RocksDB; who may read while a worker
//   writes (`index/rocksdb/registry`)
// - `engine`: decides: prepare → candidates → compare → judge → batch (the plan) with cluster
// - `options`, `deduplicator`, `article`, `error`: the front door itself

#[macro_use]
mod listed;

mod article;
mod deduplicator;
#[doc(hidden)]
pub mod engine;
mod error;
#[doc(hidden)]
pub mod fingerprint;
#[doc(hidden)]
pub mod index;
#[doc(hidden)]
pub mod lsh;
#[doc(hidden)]
pub mod model;
mod options;
#[doc(hidden)]
pub mod parallel;
#[doc(hidden)]
pub mod text;

pub use article::Article;
pub use deduplicator::{Answer, Deduplicator, Similar, compare};
pub use engine::compare::evidence::{Evidence, Measure, Weights};
pub use engine::compare::{Comparison, Relation, Rules};
pub use engine::{Algorithm, CanonicalPolicy, LanguageSettings, Settings};
pub use error::Error;
pub use fingerprint::Fingerprint;
#[cfg(feature = "rocksdb")]
pub use index::Rocks;
pub use index::{Memory, Retention, StoreError};
pub use model::{
    ArticleId, ClusterId, ContentKind, Contribution, DeadLetterReason, EventTime, Flag, Fraction, IdError,
    Lang, LanguageSource, MatchType, Position, Related, RelationKind, Verdict, VerdictKind,
};
#[doc(hidden)]
pub use options::BandChoice;
pub use options::Options;
pub use text::Options as TextOptions;
pub use text::shingling::{Shingling, ShinglingError, Tokenizer};

/// For tests that damage a store on purpose. A dev-dependency would compile C++ for those that have no store.
#[cfg(feature = "rocksdb")]
#[doc(hidden)]
pub use ::rocksdb;
