//! The engine as the Python module `samestory._core`. `python/samestory` wraps it: what Python users see, and the work on
//! frames of pandas and Polars, is there.
//!
//! Every call that computes releases the interpreter lock. An index is behind a lock of its own, which is only waited for
//! without the interpreter's, so threads cannot deadlock.

mod deduplicator;
mod frame;
mod results;
mod stream;

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(samestory, SamestoryError, PyException, "The base of the errors that samestory raises.");
create_exception!(
    samestory,
    RejectedError,
    SamestoryError,
    "An article cannot be judged, for example because its text is over the limit."
);
create_exception!(
    samestory,
    StoreError,
    SamestoryError,
    "An index cannot be read or written. Open it again."
);

/// A failure of the engine as the exception that Python users catch.
fn raised(error: &samestory_engine::Error) -> PyErr {
    match error {
        samestory_engine::Error::Index(_) => StoreError::new_err(described(error)),
        _ => RejectedError::new_err(described(error)),
    }
}

/// An error with its causes, in one line.
fn described(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        cause = inner.source();
    }
    text
}

#[pymodule]
mod _core {
    #[pymodule_export]
    use super::deduplicator::{Deduplicator, compare, fingerprint};
    #[pymodule_export]
    use super::frame::{VerdictColumns, judge_stream, judge_texts};
    #[pymodule_export]
    use super::results::{Answer, Comparison, Fingerprint, Similar, Verdict};
    #[pymodule_export]
    use super::{RejectedError, SamestoryError, StoreError};

    /// True if this build keeps an index on disk.
    #[pymodule_export]
    const HAS_ROCKSDB: bool = cfg!(feature = "rocksdb");
}
