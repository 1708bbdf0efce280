//! Judges a whole column of texts, in its order.
//!
//! One thread takes chunks of rows and fingerprints them on all cores; the calling thread judges them meanwhile. The engine
//! knows a row by its number, so ids of any type, repeated or not, stay in Python.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::sync_channel;
use std::thread;

use arrow_array::builder::{Float64Builder, Int64Builder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::{DataType, Field, Schema};
use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList, PyMapping, PyString};
use samestory_engine::engine::{Prepared, Preparer};
use samestory_engine::model::{BoundedStr, RawArticle};
use samestory_engine::{ArticleId, Error, Options, Position, Verdict, parallel};

use super::deduplicator::options;
use super::{raised, stream};

/// Rows that are fingerprinted together.
const CHUNK: usize = 1024;
/// Chunks that wait to be judged.
const AHEAD: usize = 2;

/// The verdicts of a frame, in the order of its rows, as columns.
#[pyclass(frozen, module = "samestory")]
pub(crate) struct VerdictColumns {
    rows: RecordBatch,
    /// Rows without a text.
    #[pyo3(get)]
    missing: Vec<usize>,
    /// Rows whose text cannot be judged, and why.
    #[pyo3(get)]
    rejected: Vec<(usize, String)>,
}

#[pymethods]
impl VerdictColumns {
    /// The verdicts as an Arrow stream, for any library that reads one.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A producer may ignore the wish for another schema.
        let _unused = requested_schema;
        let batches = [Ok(self.rows.clone())];
        stream::export(py, Box::new(RecordBatchIterator::new(batches, self.rows.schema())))
    }

    fn __len__(&self) -> usize {
        self.rows.num_rows()
    }

    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.rows.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// A column as a list; None where a row has no verdict.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let Some(column) = self.rows.column_by_name(name) else {
            return Err(PyKeyError::new_err(format!("no column {name:?}")));
        };
        match column.data_type() {
            DataType::Int64 => PyList::new(py, column.as_primitive::<arrow_array::types::Int64Type>().iter()),
            DataType::Float64 => {
                PyList::new(py, column.as_primitive::<arrow_array::types::Float64Type>().iter())
            }
            _ => PyList::new(py, column.as_string::<i32>().iter()),
        }
    }

    fn __repr__(&self) -> String {
        format!("VerdictColumns({} rows)", self.rows.num_rows())
    }
}

/// Judges a column of an Arrow stream.
#[pyfunction]
#[pyo3(signature = (data, text, title = None, min_confidence = None, shingle = None))]
pub(crate) fn judge_stream(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    text: &str,
    title: Option<&str>,
    min_confidence: Option<f64>,
    shingle: Option<&Bound<'_, PyMapping>>,
) -> PyResult<VerdictColumns> {
    let options = options(min_confidence, shingle)?;
    let reader = stream::import(data)?;
    let schema = reader.schema();
    let column = |name: &str| {
        schema.index_of(name).map_err(|_| {
            let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            PyKeyError::new_err(format!("no column {name:?}; there are {}", names.join(", ")))
        })
    };
    let (text, title) = (column(text)?, title.map(column).transpose()?);
    for at in [Some(text), title].into_iter().flatten() {
        let field = schema.field(at);
        if !Texts::can_hold(field.data_type()) {
            let message = format!("column {:?} is not text but {}", field.name(), field.data_type());
            return Err(PyTypeError::new_err(message));
        }
    }
    let chunks = reader.map(move |batch| {
        let batch =
            batch.map_err(|error| PyValueError::new_err(format!("cannot read the Arrow stream: {error}")))?;
        let (text, title) = (batch.column(text), title.map(|at| batch.column(at)));
        let (text, title) = (Texts::new(text), title.map(Texts::new));
        let rows = 0..text.array.len();
        let chunks: Vec<_> = rows.step_by(CHUNK).collect();
        let chunks = chunks.into_iter().map(move |start| {
            let rows = start..text.array.len().min(start + CHUNK);
            rows.map(|row| (text.get(row), title.as_ref().and_then(|title| title.get(row)))).collect()
        });
        Ok(chunks)
    });
    // A batch may be as large as the frame: it is copied chunk by chunk.
    let chunks = chunks.flat_map(|batch| -> Box<dyn Iterator<Item = PyResult<Chunk>> + Send> {
        match batch {
            Ok(chunks) => Box::new(chunks.map(Ok)),
            Err(error) => Box::new(std::iter::once(Err(error))),
        }
    });
    judge(py, chunks, options)
}

/// Judges a list of texts, where None is a missing one.
#[pyfunction]
#[pyo3(signature = (texts, titles = None, min_confidence = None, shingle = None))]
pub(crate) fn judge_texts(
    py: Python<'_>,
    texts: Bound<'_, PyList>,
    titles: Option<Bound<'_, PyList>>,
    min_confidence: Option<f64>,
    shingle: Option<&Bound<'_, PyMapping>>,
) -> PyResult<VerdictColumns> {
    let options = options(min_confidence, shingle)?;
    if titles.as_ref().is_some_and(|titles| titles.len() != texts.len()) {
        return Err(PyValueError::new_err("there must be as many titles as texts"));
    }
    let count = texts.len();
    let (texts, titles) = (texts.unbind(), titles.map(Bound::unbind));
    let chunks = (0..count).step_by(CHUNK).map(move |start| {
        Python::attach(|py| {
            let text = |list: &Py<PyList>, row: usize, what: &str| -> PyResult<Option<String>> {
                let value = list.bind(py).get_item(row)?;
                if value.is_none() {
                    return Ok(None);
                }
                let Ok(text) = value.cast::<PyString>() else {
                    let kind = value.get_type();
                    let message = format!("{what} in row {row} is not a str but {}", kind.name()?);
                    return Err(PyTypeError::new_err(message));
                };
                // A str may hold half a character, which no text has.
                Ok(Some(text.to_string_lossy().into_owned()))
            };
            let rows = start..count.min(start + CHUNK);
            let row = |row| {
                let title = titles.as_ref().map(|titles| text(titles, row, "the title"));
                Ok((text(&texts, row, "the text")?, title.transpose()?.flatten()))
            };
            rows.map(row).collect::<PyResult<Chunk>>()
        })
    });
    judge(py, chunks, options)
}

/// The texts and titles of some rows.
type Chunk = Vec<(Option<String>, Option<String>)>;

/// A row that was fingerprinted, or that has no text, or that cannot be judged.
type Row = Option<Result<Prepared, String>>;

fn judge(
    py: Python<'_>,
    chunks: impl Iterator<Item = PyResult<Chunk>> + Send,
    options: Options,
) -> PyResult<VerdictColumns> {
    let mut dedup = samestory_engine::Deduplicator::in_memory(options);
    let preparer = dedup.preparer();
    py.detach(|| {
        thread::scope(|scope| {
            let (sender, receiver) = sync_channel::<PyResult<Vec<Row>>>(AHEAD);
            scope.spawn(move || {
                let mut first = 0;
                for chunk in chunks {
                    let rows = chunk.map(|chunk| {
                        let numbered: Vec<_> = (first..).zip(chunk).collect();
                        first += numbered.len();
                        parallel::map(&numbered, |(row, (text, title))| {
                            Some(prepare(&preparer, *row, text.as_ref()?, title.as_ref()))
                        })
                    });
                    let failed = rows.is_err();
                    if sender.send(rows).is_err() || failed {
                        return;
                    }
                }
            });
            let mut columns = Columns::default();
            for rows in receiver {
                for row in rows? {
                    match row {
                        None => columns.missing(),
                        Some(Err(reason)) => columns.reject(reason),
                        Some(Ok(prepared)) => match dedup.insert_prepared(prepared) {
                            Ok(verdict) => columns.add(&verdict),
                            Err(error @ Error::Index(_)) => return Err(raised(&error)),
                            Err(error) => columns.reject(error.to_string()),
                        },
                    }
                }
                // Ctrl-C ends a long run here.
                Python::attach(|py| py.check_signals())?;
            }
            columns.finish()
        })
    })
}

fn prepare(preparer: &Preparer, row: usize, text: &str, title: Option<&String>) -> Result<Prepared, String> {
    let article = RawArticle {
        id: ArticleId::new(&row.to_string()).map_err(|error| error.to_string())?,
        body: text.to_owned(),
        title: title.cloned(),
        url: None,
        host: None,
        language: None,
        content_type: None,
        published_at: None,
        fetched_at: None,
    };
    let position = Position::File { file: BoundedStr::new("frame"), line: row as u64 + 1 };
    // Markup and Unicode are hostile: a text that panics a parser is one bad row.
    match catch_unwind(AssertUnwindSafe(|| preparer.prepare(&article, &position))) {
        Ok(prepared) => prepared.map_err(|letter| letter.message),
        Err(_) => Err("the parser panicked".to_owned()),
    }
}

/// The texts of an Arrow column.
struct Texts {
    array: ArrayRef,
    /// For a dictionary: where each row's text stands in `array`.
    keys: Option<(ArrayRef, Vec<usize>)>,
}

impl Texts {
    fn can_hold(kind: &DataType) -> bool {
        match kind {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => true,
            DataType::Dictionary(_, value) => Texts::can_hold(value),
            _ => false,
        }
    }

    fn new(array: &ArrayRef) -> Texts {
        let keys = array
            .as_any_dictionary_opt()
            .map(|dictionary| (dictionary.values().clone(), dictionary.normalized_keys()));
        Texts { array: array.clone(), keys }
    }

    fn get(&self, row: usize) -> Option<String> {
        let (array, row) = match &self.keys {
            _ if self.array.is_null(row) => return None,
            Some((values, keys)) => (values, *keys.get(row)?),
            None => (&self.array, row),
        };
        if array.is_null(row) {
            return None;
        }
        match array.data_type() {
            DataType::Utf8 => Some(array.as_string::<i32>().value(row).to_owned()),
            DataType::LargeUtf8 => Some(array.as_string::<i64>().value(row).to_owned()),
            DataType::Utf8View => Some(array.as_string_view().value(row).to_owned()),
            _ => None,
        }
    }
}

/// Collects the columns of the result.
#[derive(Default)]
struct Columns {
    verdict: StringBuilder,
    match_type: StringBuilder,
    duplicate_row: Int64Builder,
    similarity: Float64Builder,
    confidence: Float64Builder,
    cluster: StringBuilder,
    content_kind: StringBuilder,
    count: usize,
    missing: Vec<usize>,
    rejected: Vec<(usize, String)>,
}

impl Columns {
    fn add(&mut self, verdict: &Verdict) {
        self.verdict.append_value(verdict.kind.as_str());
        self.match_type.append_option(verdict.match_type.map(|kind| kind.as_str()));
        let row = verdict.duplicate_of.as_ref().and_then(|id| id.as_str().parse().ok());
        self.duplicate_row.append_option(row);
        self.similarity.append_value(verdict.similarity.get());
        self.confidence.append_value(verdict.confidence.get());
        self.cluster.append_value(verdict.cluster.to_string());
        self.content_kind.append_value(verdict.content_kind.as_str());
        self.count += 1;
    }

    fn missing(&mut self) {
        self.missing.push(self.count);
        self.none();
    }

    fn reject(&mut self, reason: String) {
        self.rejected.push((self.count, reason));
        self.none();
    }

    fn none(&mut self) {
        self.verdict.append_null();
        self.match_type.append_null();
        self.duplicate_row.append_null();
        self.similarity.append_null();
        self.confidence.append_null();
        self.cluster.append_null();
        self.content_kind.append_null();
        self.count += 1;
    }

    fn finish(mut self) -> PyResult<VerdictColumns> {
        let columns: [(&str, ArrayRef); 7] = [
            ("verdict", std::sync::Arc::new(self.verdict.finish())),
            ("match_type", std::sync::Arc::new(self.match_type.finish())),
            ("duplicate_row", std::sync::Arc::new(self.duplicate_row.finish())),
            ("similarity", std::sync::Arc::new(self.similarity.finish())),
            ("confidence", std::sync::Arc::new(self.confidence.finish())),
            ("cluster_id", std::sync::Arc::new(self.cluster.finish())),
            ("content_kind", std::sync::Arc::new(self.content_kind.finish())),
        ];
        let fields = columns.iter().map(|(name, column)| Field::new(*name, column.data_type().clone(), true));
        let schema = Schema::new(fields.collect::<Vec<_>>());
        let rows = RecordBatch::try_new(schema.into(), columns.map(|(_, column)| column).into());
        let rows = rows.map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(VerdictColumns { rows, missing: self.missing, rejected: self.rejected })
    }
}
