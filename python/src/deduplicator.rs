//! The index: in memory, or in a directory.

use std::path::PathBuf;
use std::sync::{LazyLock, RwLock};

#[cfg(not(feature = "rocksdb"))]
use pyo3::exceptions::PyNotImplementedError;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyMapping, PyString};
#[cfg(feature = "rocksdb")]
use samestory_engine::Rocks;
use samestory_engine::{Article, Error, Memory, Options, Shingling, ShinglingError, TextOptions};

use super::raised;
use super::results::{Answer, Comparison, Fingerprint, Similar, Verdict};

/// Default settings without a limit on the length of a text.
static UNLIMITED: LazyLock<samestory_engine::Deduplicator> = LazyLock::new(|| {
    let mut options = Options::default();
    options.text = TextOptions { max_raw_bytes: usize::MAX, max_bytes: usize::MAX, ..options.text };
    samestory_engine::Deduplicator::in_memory(options)
});

/// Compares two texts under default settings. The second one counts as the newer.
#[pyfunction]
pub(crate) fn compare(py: Python<'_>, older: &str, newer: &str) -> PyResult<Comparison> {
    py.detach(|| UNLIMITED.compare(older, newer)).map(Comparison::from).map_err(|error| raised(&error))
}

/// Computes what is compared of a text.
#[pyfunction]
pub(crate) fn fingerprint(py: Python<'_>, text: &str) -> PyResult<Fingerprint> {
    py.detach(|| UNLIMITED.fingerprint(text))
        .map(|(language, print)| Fingerprint::new(language, &print))
        .map_err(|error| raised(&error))
}

enum Index {
    Memory(samestory_engine::Deduplicator<Memory>),
    #[cfg(feature = "rocksdb")]
    Disk(samestory_engine::Deduplicator<Rocks>),
}

/// Calls a method of the index, wherever it is kept.
macro_rules! on {
    ($index:expr, $dedup:ident => $call:expr) => {
        match $index {
            Index::Memory($dedup) => $call,
            #[cfg(feature = "rocksdb")]
            Index::Disk($dedup) => $call,
        }
    };
}

/// Finds articles whose text was seen before.
#[pyclass(frozen, module = "samestory")]
pub(crate) struct Deduplicator {
    /// `None` once it is closed.
    index: RwLock<Option<Index>>,
    path: Option<PathBuf>,
}

/// One article as Python hands it over.
#[derive(FromPyObject)]
struct Given {
    #[pyo3(item("id"))]
    id: Id,
    #[pyo3(item("text"))]
    text: String,
    #[pyo3(item("title"), default)]
    title: Option<String>,
    #[pyo3(item("url"), default)]
    url: Option<String>,
    #[pyo3(item("host"), default)]
    host: Option<String>,
    #[pyo3(item("language"), default)]
    language: Option<String>,
    #[pyo3(item("content_type"), default)]
    content_type: Option<String>,
}

impl Given {
    fn article(self) -> Article {
        let mut article = Article::new(self.id.0, self.text);
        if let Some(title) = self.title {
            article = article.title(title);
        }
        if let Some(url) = self.url {
            article = article.url(url);
        }
        if let Some(host) = self.host {
            article = article.host(host);
        }
        if let Some(language) = self.language {
            article = article.language(language);
        }
        if let Some(content_type) = self.content_type {
            article = article.content_type(content_type);
        }
        article
    }
}

/// An id: a text, or a whole number, whose digits are then the id.
pub(crate) struct Id(String);

impl<'py> FromPyObject<'_, 'py> for Id {
    type Error = PyErr;

    fn extract(id: Borrowed<'_, 'py, PyAny>) -> PyResult<Id> {
        if let Ok(text) = id.cast::<PyString>() {
            return Ok(Id(text.to_str()?.to_owned()));
        }
        if id.is_instance_of::<PyInt>() && !id.is_instance_of::<PyBool>() {
            return Ok(Id(id.str()?.to_str()?.to_owned()));
        }
        let kind = id.get_type();
        let message = format!("an id is a str or an int, not {} ({})", kind.name()?, id.repr()?);
        Err(PyTypeError::new_err(message))
    }
}

impl Deduplicator {
    fn read<T: Send>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(&Index) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let answer = py.detach(|| {
            let index = self.index.read().unwrap_or_else(std::sync::PoisonError::into_inner);
            index.as_ref().map(ask)
        });
        finished(answer)
    }

    fn write<T: Send>(
        &self,
        py: Python<'_>,
        change: impl FnOnce(&mut Index) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let answer = py.detach(|| {
            let Ok(mut index) = self.index.write() else { return Some(Err(None)) };
            index.as_mut().map(|index| change(index).map_err(Some))
        });
        match answer {
            Some(Err(None)) => {
                Err(super::StoreError::new_err("an earlier call panicked; open the index again"))
            }
            Some(Err(Some(error))) => Err(raised(&error)),
            Some(Ok(value)) => Ok(value),
            None => Err(closed()),
        }
    }
}

fn finished<T>(answer: Option<Result<T, Error>>) -> PyResult<T> {
    match answer {
        Some(result) => result.map_err(|error| raised(&error)),
        None => Err(closed()),
    }
}

fn closed() -> PyErr {
    PyValueError::new_err("the Deduplicator is closed")
}

#[pymethods]
impl Deduplicator {
    #[new]
    #[pyo3(signature = (path = None, *, min_confidence = None, shingle = None))]
    fn new(
        py: Python<'_>,
        path: Option<PathBuf>,
        min_confidence: Option<f64>,
        shingle: Option<&Bound<'_, PyMapping>>,
    ) -> PyResult<Deduplicator> {
        let options = options(min_confidence, shingle)?;
        let index = match &path {
            None => Index::Memory(samestory_engine::Deduplicator::in_memory(options)),
            Some(path) => open(py, path, options)?,
        };
        Ok(Deduplicator { index: RwLock::new(Some(index)), path })
    }

    /// Judges an article and stores it. A known id is an update: its old text leaves the index first.
    #[pyo3(signature = (id, text, *, title = None, url = None, host = None, language = None, content_type = None))]
    #[allow(clippy::too_many_arguments, reason = "the keywords of a Python call")]
    fn insert(
        &self,
        py: Python<'_>,
        id: Id,
        text: String,
        title: Option<String>,
        url: Option<String>,
        host: Option<String>,
        language: Option<String>,
        content_type: Option<String>,
    ) -> PyResult<Verdict> {
        let article = Given { id, text, title, url, host, language, content_type }.article();
        self.write(py, |index| on!(index, dedup => dedup.insert(article))).map(Verdict::from)
    }

    /// Judges and stores articles in their order, on all cores.
    fn insert_batch<'py>(
        &self,
        py: Python<'py>,
        articles: &Bound<'py, PyAny>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let mut batch = Vec::new();
        for (at, article) in articles.try_iter()?.enumerate() {
            batch.push(given(&article?, at)?.article());
        }
        let results = self.write(py, |index| Ok(on!(index, dedup => dedup.insert_batch(batch))))?;
        let mut verdicts = Vec::with_capacity(results.len());
        for result in results {
            verdicts.push(match result {
                Ok(verdict) => Bound::new(py, Verdict::from(verdict))?.into_any(),
                // The rest was not attempted, so a list would be too short.
                Err(error @ Error::Index(_)) => return Err(raised(&error)),
                Err(error) => raised(&error).into_value(py).into_bound(py).into_any(),
            });
        }
        Ok(verdicts)
    }

    /// The verdict that a text would get if it were inserted now. Stores nothing.
    fn check(&self, py: Python<'_>, text: String) -> PyResult<Answer> {
        self.read(py, |index| on!(index, dedup => dedup.check(text))).map(Answer::from)
    }

    /// The indexed articles that resemble a text most.
    #[pyo3(signature = (text, limit = 10))]
    fn similar(&self, py: Python<'_>, text: String, limit: usize) -> PyResult<Vec<Similar>> {
        let similar = self.read(py, |index| on!(index, dedup => dedup.similar(text, limit)))?;
        Ok(similar.into_iter().map(Similar::from).collect())
    }

    /// Removes an article. False if the id is not known.
    fn remove(&self, py: Python<'_>, id: Id) -> PyResult<bool> {
        self.write(py, |index| on!(index, dedup => dedup.remove(&id.0)))
    }

    fn __contains__(&self, py: Python<'_>, id: Id) -> PyResult<bool> {
        self.read(py, |index| on!(index, dedup => dedup.contains(&id.0)))
    }

    /// Closes the index. A directory can then be opened again.
    fn close(&self, py: Python<'_>) {
        py.detach(|| {
            let mut index = self.index.write().unwrap_or_else(std::sync::PoisonError::into_inner);
            drop(index.take());
        });
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, pyo3::types::PyTuple>) {
        self.close(py);
    }

    fn __repr__(&self) -> String {
        match &self.path {
            None => "Deduplicator()".to_owned(),
            Some(path) => format!("Deduplicator({:?})", path.display().to_string()),
        }
    }
}

/// An article of a batch: `(id, text)`, or a dict with these keys and others.
fn given(article: &Bound<'_, PyAny>, at: usize) -> PyResult<Given> {
    if let Ok((id, text)) = article.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>() {
        let (id, text) = (id.extract().map_err(|error| located(article.py(), &error, at))?, text.extract());
        let text = text.map_err(|error| located(article.py(), &error, at))?;
        let (title, url, host, language, content_type) = (None, None, None, None, None);
        return Ok(Given { id, text, title, url, host, language, content_type });
    }
    article.extract().map_err(|error| located(article.py(), &error, at))
}

fn located(py: Python<'_>, error: &PyErr, at: usize) -> PyErr {
    let message = format!("article {at}: {}; pass (id, text) or a dict with id and text", error.value(py));
    PyTypeError::new_err(message)
}

pub(crate) fn options(
    min_confidence: Option<f64>,
    shingle: Option<&Bound<'_, PyMapping>>,
) -> PyResult<Options> {
    let mut options = Options::default();
    if let Some(confidence) = min_confidence {
        if !(0.0..=1.0).contains(&confidence) {
            return Err(PyValueError::new_err(format!("min_confidence is from 0 to 1, not {confidence}")));
        }
        options = options.min_confidence(confidence);
    }
    let Some(shingle) = shingle else { return Ok(options) };
    for item in shingle.items()? {
        let (language, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
        let refused = |why: String| -> PyResult<PyErr> {
            let (language, value) = (language.repr()?, value.repr()?);
            Ok(PyValueError::new_err(format!("shingle={{{language}: {value}}}: {why}")))
        };
        let shingling = match shingling(&value) {
            None => return Err(refused(SHINGLES.to_owned())?),
            Some(shingling) => shingling,
        };
        let Ok(code) = language.extract::<String>() else {
            return Err(refused("a language is a str".to_owned())?);
        };
        options = match shingling.and_then(|shingling| options.with_shingling(&code, shingling)) {
            Ok(options) => options,
            Err(error) => return Err(refused(error.to_string())?),
        };
    }
    Ok(options)
}

const SHINGLES: &str =
    "the shingles of a language are {'words': n}, {'characters': n} or {'tokenizer': name}";

/// How the shingles of a language are cut, as the setting `languages.<code>.shingle` says it. None: not so.
fn shingling(value: &Bound<'_, PyAny>) -> Option<Result<Shingling, ShinglingError>> {
    let value = value.cast::<PyMapping>().ok()?;
    if value.len().ok()? != 1 {
        return None;
    }
    let (key, value): (String, Bound<'_, PyAny>) = value.items().ok()?.get_item(0).ok()?.extract().ok()?;
    let count = || if value.is_instance_of::<PyBool>() { None } else { value.extract().ok() };
    match key.as_str() {
        "words" => Some(Shingling::words(count()?)),
        "characters" => Some(Shingling::characters(count()?)),
        "tokenizer" => Some(Shingling::named(value.extract().ok()?)),
        _ => None,
    }
}

#[cfg(feature = "rocksdb")]
fn open(py: Python<'_>, path: &std::path::Path, options: Options) -> PyResult<Index> {
    // The engine creates the directory, and not those above it.
    py.detach(|| samestory_engine::Deduplicator::open(path, options))
        .map(Index::Disk)
        .map_err(|error| raised(&error))
}

#[cfg(not(feature = "rocksdb"))]
fn open(_py: Python<'_>, path: &std::path::Path, _options: Options) -> PyResult<Index> {
    Err(PyNotImplementedError::new_err(format!(
        "this samestory was built without RocksDB, so it cannot open {}: leave out the path, or build it with \
         `maturin build --features rocksdb`",
        path.display()
    )))
}
