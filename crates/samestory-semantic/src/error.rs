//! What can go wrong, each with a name that a caller can match.

use std::io;
use std::path::PathBuf;

/// Why there is no embedding or no similarity.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A vector without elements.
    #[error("an embedding needs at least one number")]
    EmptyEmbedding,
    /// A vector with NaN or an infinity.
    #[error("element {at} of the embedding is not a finite number")]
    NotFinite {
        /// The first such element.
        at: usize,
    },
    /// Embeddings of two models say nothing about each other.
    #[error("embeddings of different models cannot be compared: {a} and {b}")]
    ModelMismatch {
        /// Model of the first.
        a: String,
        /// Model of the second.
        b: String,
    },
    /// Embeddings of different lengths.
    #[error("embeddings of {a} and {b} dimensions cannot be compared")]
    DimensionMismatch {
        /// Dimensions of the first.
        a: usize,
        /// Dimensions of the second.
        b: usize,
    },
    /// A vector of length zero has no direction.
    #[error("an embedding of zeros has no direction and cannot be compared")]
    ZeroNorm,
    /// Hidden states that are not whole vectors, or a mask of another length.
    #[error("{values} hidden values and a mask of {mask} do not fit vectors of {dimension}")]
    HiddenShape {
        /// How many values there are.
        values: usize,
        /// How long a vector is.
        dimension: usize,
        /// How many tokens the mask covers.
        mask: usize,
    },
    /// The tokenizer found no token in the text.
    #[error("the text has no token that the model knows")]
    NoTokens,
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// A directory without one of the files that a model consists of.
    #[error("{} has no {missing}; a model directory holds model.onnx (or onnx/model.onnx) and tokenizer.json", directory.display())]
    NotAModel {
        /// The directory.
        directory: PathBuf,
        /// What is missing.
        missing: &'static str,
    },
    /// `tokenizer.json` cannot be read, or the text cannot be tokenised.
    #[error("tokenizer: {0}")]
    Tokenizer(String),
    /// The model cannot be loaded or run.
    #[error("model: {0}")]
    Model(String),
    /// The model wants an input that a text does not give.
    #[error("the model wants the input {name}; input_ids, attention_mask and token_type_ids are known")]
    UnknownInput {
        /// Its name.
        name: String,
    },
    /// A limit so small that no word fits beside the model's own tokens.
    #[error("at most {limit} tokens leave no room beside the model's own {own}")]
    TokenLimit {
        /// The limit asked for.
        limit: usize,
        /// The tokens that the model adds to each text.
        own: usize,
    },
    /// A line that `samestory file` did not write.
    #[error("line {line} is not a judged article: {message}")]
    Line {
        /// Its number, from 1.
        line: u64,
        /// Why.
        message: String,
    },
    /// Reading judged articles, or writing them.
    #[error(transparent)]
    Io(#[from] io::Error),
}
