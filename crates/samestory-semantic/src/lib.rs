//! Sentence embeddings: whether two texts tell the same story, also in other words or another language.
//!
//! ```
//! use samestory_semantic::{Embedding, semantic_similarity};
//!
//! # fn main() -> Result<(), samestory_semantic::Error> {
//! let a = Embedding::with_model(vec![0.6, 0.8], "minilm")?;
//! let b = Embedding::with_model(vec![0.8, 0.6], "minilm")?;
//! assert!((semantic_similarity(&a, &b)? - 0.96).abs() < 1e-6);
//! # Ok(())
//! # }
//! ```
//!
//! [`LocalProvider`] loads an ONNX model and its `tokenizer.json` from a directory and runs it in this process, in Rust; nothing
//! is downloaded. [`relate`] adds the relation `same-story` to the articles that `samestory file` has judged. It never changes
//! a verdict: a verdict is a function of the text alone and is the same on every machine, and a model's output is neither.

mod chunk;
mod embedding;
mod error;
mod pooling;
mod provider;
mod related;

pub use chunk::{ChunkMode, ChunkingStrategy, chunk_for_model};
pub use embedding::{Embedding, semantic_similarity};
pub use error::Error;
pub use pooling::Pooling;
pub use provider::{EmbeddingProvider, LocalProvider, ModelOptions};
pub use related::{Counts, RelateOptions, SAME_STORY, relate};
