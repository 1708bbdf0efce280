//! Columns across the Arrow C data interface, without a copy: a stream comes in as a PyCapsule and goes out as one.

use arrow_array::RecordBatchReader;
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

const NAME: &std::ffi::CStr = c"arrow_array_stream";

/// The stream of an object that has `__arrow_c_stream__`.
pub(crate) fn import(object: &Bound<'_, PyAny>) -> PyResult<RecordBatchStreamReader> {
    let capsule = object.call_method0("__arrow_c_stream__")?;
    let capsule = capsule
        .cast::<PyCapsule>()
        .map_err(|_| PyTypeError::new_err("__arrow_c_stream__ gave no PyCapsule"))?;
    let stream = capsule.pointer_checked(Some(NAME))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: a capsule of this name points to a stream by the Arrow PyCapsule interface. It stays alive during the call, which
    // moves the stream out and leaves a released one behind.
    let reader = unsafe { RecordBatchStreamReader::from_raw(stream.as_ptr()) };
    reader.map_err(|error| PyValueError::new_err(format!("cannot read the Arrow stream: {error}")))
}

/// A stream as the capsule that `__arrow_c_stream__` returns. Whoever takes the stream releases it; else its drop does.
pub(crate) fn export(
    py: Python<'_>,
    reader: Box<dyn RecordBatchReader + Send>,
) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), NAME)
}
