//! The format of the verdicts: NDJSON envelopes, or the input's columns with the verdict beside them. [`OutputFormat`] is
//! chosen by `--to` or by the file name; an [`Encoder`] turns verdicts into its bytes.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::value::RawValue;

use crate::formats::fields::{Shape, Value};
use crate::formats::json;
use samestory_engine::model::Verdict;

#[cfg(feature = "parquet")]
use super::columnar::ParquetTable;
use super::compress::Compression;

/// The columns that are added to those of the input.
pub const VERDICT_COLUMNS: [&str; 6] =
    ["verdict", "match_type", "duplicate_of", "similarity", "confidence", "cluster_id"];
/// The prefix of an added column whose name the input uses already.
const PREFIX: &str = "samestory_";

/// The format of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    /// One JSON object per line.
    Ndjson,
    /// Comma-separated values with a header.
    Csv,
    /// Tab-separated values with a header.
    Tsv,
    /// Apache Parquet.
    #[cfg(feature = "parquet")]
    Parquet,
}

/// What the values of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnKind {
    Text,
    #[cfg(feature = "parquet")]
    Integer,
    #[cfg(feature = "parquet")]
    Number,
    #[cfg(feature = "parquet")]
    Boolean,
}

/// A column of an input: its values are texts unless the input says otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InputColumn {
    pub(super) name: String,
    pub(super) kind: ColumnKind,
}

/// A file name asks for a format that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{name}: {why}")]
pub struct OutputFormatError {
    name: String,
    why: &'static str,
}

impl OutputFormat {
    /// The format that a file name asks for; NDJSON if it asks for none.
    ///
    /// # Errors
    /// The name asks for a format that cannot be written.
    pub fn by_name(path: &Path) -> Result<OutputFormat, OutputFormatError> {
        let name = path.to_string_lossy();
        let (compression, plain) = Compression::by_name(&name);
        let ending = Path::new(plain).extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
        let refused = |why| Err(OutputFormatError { name: name.clone().into_owned(), why });
        match ending.as_deref() {
            Some("csv") => Ok(OutputFormat::Csv),
            Some("tsv" | "tab") => Ok(OutputFormat::Tsv),
            Some("parquet") if compression.is_some() => {
                refused("Parquet is compressed inside; leave out the last ending")
            }
            #[cfg(feature = "parquet")]
            Some("parquet") => Ok(OutputFormat::Parquet),
            #[cfg(not(feature = "parquet"))]
            Some("parquet") => refused(
                "this samestory was built without Parquet: build with --features parquet, or write .csv or .ndjson",
            ),
            Some("arrow" | "feather") => refused("Arrow IPC cannot be written; write .parquet or .ndjson"),
            Some("xlsx" | "xls" | "ods") => {
                refused("a workbook cannot be written; write .csv, which spreadsheet programs open")
            }
            _ => Ok(OutputFormat::Ndjson),
        }
    }

    /// True if the output has the columns of the input, which must then be known first.
    pub(super) fn has_columns(self) -> bool {
        self != OutputFormat::Ndjson
    }

    /// Whether a file in this format can be read only when it is complete, so that no later run continues it.
    pub(super) fn is_whole(self) -> bool {
        match self {
            OutputFormat::Ndjson | OutputFormat::Csv | OutputFormat::Tsv => false,
            #[cfg(feature = "parquet")]
            OutputFormat::Parquet => true,
        }
    }

    /// The delimiter of a text table.
    pub(super) fn delimiter(self) -> Option<u8> {
        match self {
            OutputFormat::Csv => Some(b','),
            OutputFormat::Tsv => Some(b'\t'),
            _ => None,
        }
    }
}

/// Turns verdicts into the bytes of a format.
#[derive(Debug)]
pub(super) enum Encoder {
    Ndjson {
        article: bool,
        evidence: bool,
    },
    Table(TableWriter),
    #[cfg(feature = "parquet")]
    Parquet(Box<ParquetWriter>),
}

impl Encoder {
    pub(super) fn new(format: OutputFormat, article: bool, evidence: bool) -> Encoder {
        match (format, format.delimiter()) {
            #[cfg(feature = "parquet")]
            (OutputFormat::Parquet, _) => {
                Encoder::Parquet(Box::new(ParquetWriter { columns: Columns::new(article), table: None }))
            }
            (_, Some(delimiter)) => Encoder::Table(TableWriter::new(delimiter, article)),
            (_, None) => Encoder::Ndjson { article, evidence },
        }
    }

    /// Sets the columns of the articles, which are known after the first records. Only the first call counts.
    pub(super) fn set_columns(&mut self, columns: &[InputColumn], id: Option<&str>, written: bool) {
        match self {
            Encoder::Ndjson { .. } => {}
            Encoder::Table(table) => table.columns.set(columns, id, written),
            #[cfg(feature = "parquet")]
            Encoder::Parquet(writer) => writer.columns.set(columns, id, written),
        }
    }

    pub(super) fn add(
        &mut self,
        tagged: &Verdict,
        article: Option<&RawValue>,
        out: &mut Vec<u8>,
    ) -> std::io::Result<()> {
        match self {
            Encoder::Ndjson { article: wanted, evidence } => {
                let article = article.filter(|_| *wanted);
                if !*evidence && !tagged.evidence.is_empty() {
                    // It was computed for the report.
                    let tagged = Verdict { evidence: Vec::new(), ..tagged.clone() };
                    json::Envelope { tagged: &tagged, article }.write(out);
                } else {
                    json::Envelope { tagged, article }.write(out);
                }
                Ok(())
            }
            Encoder::Table(table) => {
                table.add(tagged, article, out);
                Ok(())
            }
            #[cfg(feature = "parquet")]
            Encoder::Parquet(writer) => writer.add(tagged, article, out),
        }
    }

    /// The end of the output; also its header, if nothing was written.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) -> std::io::Result<()> {
        match self {
            Encoder::Ndjson { .. } => Ok(()),
            Encoder::Table(table) => {
                table.header(out);
                Ok(())
            }
            #[cfg(feature = "parquet")]
            Encoder::Parquet(writer) => writer.table().finish(out),
        }
    }

    /// The names of all columns; none for a format without columns.
    pub(super) fn column_names(&self) -> Option<Vec<String>> {
        match self {
            Encoder::Ndjson { .. } => None,
            Encoder::Table(table) => Some(table.columns.names()),
            #[cfg(feature = "parquet")]
            Encoder::Parquet(writer) => Some(writer.columns.names()),
        }
    }

    /// Keys of articles that have no column, because they appeared too late.
    pub(super) fn left_out(&self) -> Vec<String> {
        match self {
            Encoder::Ndjson { .. } => Vec::new(),
            Encoder::Table(table) => table.columns.left_out.iter().cloned().collect(),
            #[cfg(feature = "parquet")]
            Encoder::Parquet(writer) => writer.columns.left_out.iter().cloned().collect(),
        }
    }
}

/// The columns of an output: an id if the input has none, the input's columns, and those of the verdict.
#[derive(Debug, Default)]
pub(super) struct Columns {
    /// Write the id into a column of its own.
    own_id: bool,
    article: Vec<InputColumn>,
    /// The caller wants no articles.
    without_article: bool,
    known: bool,
    /// The header is in the output already.
    written: bool,
    left_out: BTreeSet<String>,
}

/// Left-out keys that are remembered for the warning.
const LEFT_OUT: usize = 20;

impl Columns {
    pub(super) fn new(article: bool) -> Columns {
        Columns { without_article: !article, own_id: !article, ..Columns::default() }
    }

    pub(super) fn set(&mut self, columns: &[InputColumn], id: Option<&str>, written: bool) {
        if std::mem::replace(&mut self.known, true) {
            return;
        }
        self.written = written;
        if self.without_article {
            return;
        }
        self.own_id = id.is_none();
        self.article = columns.to_vec();
    }

    /// All names in order.
    pub(super) fn names(&self) -> Vec<String> {
        let is_taken = |name: &str| self.article.iter().any(|column| column.name == name);
        let unique = |name: &str| {
            let mut name = name.to_owned();
            while is_taken(&name) {
                name.insert_str(0, PREFIX);
            }
            name
        };
        let id = self.own_id.then(|| unique("id"));
        let article = self.article.iter().map(|column| column.name.clone());
        id.into_iter().chain(article).chain(VERDICT_COLUMNS.map(unique)).collect()
    }

    /// The texts of a row, without those of the verdict; `None` for a value that is not there.
    pub(super) fn row(&mut self, tagged: &Verdict, article: Option<&RawValue>) -> Vec<Option<String>> {
        let mut row = Vec::with_capacity(self.article.len() + 1);
        if self.own_id {
            row.push(Some(tagged.id.to_string()));
        }
        if self.article.is_empty() {
            return row;
        }
        let Some(raw) = article else {
            row.resize(row.len() + self.article.len(), None);
            return row;
        };
        let record = json::JsonRecord::from_raw(raw);
        for key in record.keys() {
            if self.left_out.len() < LEFT_OUT && !self.article.iter().any(|column| column.name == key) {
                self.left_out.insert(key.to_owned());
            }
        }
        row.extend(self.article.iter().map(|column| {
            let value = record.member(&column.name, false)?;
            match value.read() {
                Shape::Null => None,
                Shape::Text(text) | Shape::Number(text) => Some(text),
                _ => Some(value.raw().get().to_owned()),
            }
        }));
        row
    }
}

/// The texts of the verdict's columns.
pub(super) fn verdict_texts(tagged: &Verdict) -> [String; 6] {
    [
        tagged.kind.as_str().to_owned(),
        tagged.match_type.map(|kind| kind.as_str().to_owned()).unwrap_or_default(),
        tagged.duplicate_of.as_ref().map(ToString::to_string).unwrap_or_default(),
        format!("{}", tagged.similarity.get()),
        format!("{}", tagged.confidence.get()),
        tagged.cluster.to_string(),
    ]
}

/// Writes a table as text.
#[derive(Debug)]
pub(super) struct TableWriter {
    delimiter: u8,
    pub(super) columns: Columns,
}

impl TableWriter {
    fn new(delimiter: u8, article: bool) -> TableWriter {
        TableWriter { delimiter, columns: Columns::new(article) }
    }

    fn header(&mut self, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.columns.written, true) {
            write_row(self.columns.names().iter().map(String::as_str), self.delimiter, out);
        }
    }

    fn add(&mut self, tagged: &Verdict, article: Option<&RawValue>, out: &mut Vec<u8>) {
        self.header(out);
        let row = self.columns.row(tagged, article);
        let verdict = verdict_texts(tagged);
        let values = row.iter().map(|value| value.as_deref().unwrap_or_default());
        write_row(values.chain(verdict.iter().map(String::as_str)), self.delimiter, out);
    }
}

/// Writes a Parquet file with the columns of the articles and those of the verdict.
#[cfg(feature = "parquet")]
#[derive(Debug)]
pub(super) struct ParquetWriter {
    columns: Columns,
    table: Option<ParquetTable>,
}

#[cfg(feature = "parquet")]
impl ParquetWriter {
    fn table(&mut self) -> &mut ParquetTable {
        let columns = &self.columns;
        self.table.get_or_insert_with(|| {
            let kinds = columns.own_id.then_some(ColumnKind::Text).into_iter();
            let kinds = kinds.chain(columns.article.iter().map(|column| column.kind));
            let kinds = kinds.chain(VERDICT_COLUMNS.map(|name| match name {
                "similarity" | "confidence" => ColumnKind::Number,
                _ => ColumnKind::Text,
            }));
            ParquetTable::new(columns.names().into_iter().zip(kinds).collect())
        })
    }

    fn add(
        &mut self,
        tagged: &Verdict,
        article: Option<&RawValue>,
        out: &mut Vec<u8>,
    ) -> std::io::Result<()> {
        let mut row = self.columns.row(tagged, article);
        row.extend(verdict_texts(tagged).map(|text| (!text.is_empty()).then_some(text)));
        self.table().add(row, out)
    }
}

/// Writes one row; a value with a delimiter, a quote or a line break is quoted (RFC 4180).
pub(super) fn write_row<'a>(values: impl Iterator<Item = &'a str>, delimiter: u8, out: &mut Vec<u8>) {
    for (at, value) in values.enumerate() {
        if at > 0 {
            out.push(delimiter);
        }
        let bytes = value.as_bytes();
        if memchr::memchr3(b'"', b'\n', b'\r', bytes).is_none() && memchr::memchr(delimiter, bytes).is_none()
        {
            out.extend_from_slice(bytes);
            continue;
        }
        out.push(b'"');
        for part in value.split_inclusive('"') {
            out.extend_from_slice(part.as_bytes());
            if part.ends_with('"') {
                out.push(b'"');
            }
        }
        out.push(b'"');
    }
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_an_output_chooses_its_format() {
        let format = |name: &str| OutputFormat::by_name(Path::new(name)).ok();
        for (name, expected) in [
            ("out", OutputFormat::Ndjson),
            ("out.ndjson", OutputFormat::Ndjson),
            ("out.json.gz", OutputFormat::Ndjson),
            ("a.b/out", OutputFormat::Ndjson),
            ("out.CSV", OutputFormat::Csv),
            ("out.csv.gz", OutputFormat::Csv),
            ("out.tsv.zst", OutputFormat::Tsv),
        ] {
            assert_eq!(format(name), Some(expected), "{name}");
        }
        #[cfg(feature = "parquet")]
        assert_eq!(format("out.parquet"), Some(OutputFormat::Parquet));
        for name in ["out.xlsx", "out.parquet.gz", "out.arrow"] {
            assert_eq!(format(name), None, "{name}");
        }
    }

    #[test]
    fn values_are_quoted_where_they_must_be() {
        let mut out = Vec::new();
        write_row(["plain", "a,b", "say \"no\"", "two\nlines", ""].into_iter(), b',', &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), "plain,\"a,b\",\"say \"\"no\"\"\",\"two\nlines\",\n");
    }
}
