//! The one error of the library.

use crate::index::StoreError;
use crate::model::{DeadLetterReason, IdError};

/// Why an article was not judged, or a question not answered.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The id is empty or too long. Nothing was stored.
    #[error("article {0}")]
    Id(IdError),
    /// The article cannot be judged, for example because its text is over the limit. Nothing was stored.
    #[error("the article was rejected ({}): {message}", reason.as_str())]
    Rejected {
        /// The kind of problem.
        reason: DeadLetterReason,
        /// The problem, and its fix.
        message: String,
    },
    /// The index cannot be read or written. Open it again before the next call.
    #[error(transparent)]
    Index(#[from] StoreError),
}
