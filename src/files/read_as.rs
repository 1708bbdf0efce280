//! How an input was understood: format, encoding, and which of its columns became which field of an article. The first line
//! that a run prints; a wrong guess is seen before its verdicts are believed.

use std::fmt;

use crate::formats::fields::{Field, Fields, Value, spelled_alike};
use crate::formats::json;

use super::output_format::{ColumnKind, InputColumn};
use super::records::{FileFormat, InputRecord, OpenedInput, Records};
use super::stage::InputSpec;

/// Records that are looked at for the keys of a JSON input.
pub(super) const LOOKED_AT: usize = 128;
/// Unused columns that are named.
const SHOWN: usize = 8;

/// How an input was understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadAs {
    /// The input as given on the command line.
    pub name: String,
    format: &'static str,
    encoding: Option<String>,
    /// Fields, and the columns that hold them.
    fields: Vec<(Field, String)>,
    /// The columns of the table, or the keys of the first records, in order.
    pub(super) columns: Vec<InputColumn>,
    /// Columns of a type that cannot be read, with the type.
    unreadable: Vec<String>,
    /// Articles are named by file and line.
    by_line: bool,
    /// There is at least one record.
    has_records: bool,
}

impl ReadAs {
    pub(super) fn new(
        name: String,
        opened: &OpenedInput,
        records: &Records,
        first: &[InputRecord],
        reading: &InputSpec,
        by_line: bool,
    ) -> ReadAs {
        let parsed: Vec<json::JsonRecord<'_>> = first
            .iter()
            .take(LOOKED_AT)
            .filter_map(|record| json::JsonRecord::parse(record.content.as_ref().ok()?).ok())
            .collect();
        let text = |name: &str| InputColumn { name: name.to_owned(), kind: ColumnKind::Text };
        let (columns, fields, unreadable) = match records {
            Records::Table(table) => {
                let columns = table.columns.iter().map(|name| text(name)).collect();
                (columns, fields_of_table(&reading.fields, &table.columns), Vec::new())
            }
            // Its columns may hold objects, into which the paths of fields lead.
            #[cfg(feature = "parquet")]
            Records::Rows(rows) => {
                let (found, named) = (
                    fields_of_records(&reading.fields, &parsed),
                    fields_of_table(&reading.fields, &rows.columns),
                );
                // The first rows may all lack a field for which there is a column.
                let fields = Field::ALL.into_iter().filter_map(|field| {
                    let mut all = found.iter().chain(&named);
                    all.find(|(known, _)| *known == field).cloned()
                });
                let fields = fields.collect();
                (rows.input_columns(), fields, rows.unreadable.clone())
            }
            Records::Lines(_) | Records::Array(_) => {
                let mut columns: Vec<InputColumn> = Vec::new();
                for name in parsed.iter().flat_map(json::JsonRecord::keys) {
                    if !columns.iter().any(|column| column.name == name) {
                        columns.push(text(name));
                    }
                }
                (columns, fields_of_records(&reading.fields, &parsed), Vec::new())
            }
        };
        let encoding = opened.encoding.map(|encoding| match reading.encoding {
            Some(_) => encoding.name().to_owned(),
            None => format!("{} (guessed; --encoding changes it)", encoding.name()),
        });
        let format = match (opened.format, opened.delimiter) {
            (FileFormat::Ndjson, _) => "NDJSON",
            (FileFormat::Json, _) => "JSON",
            (FileFormat::Tsv, _) => "TSV",
            (FileFormat::Csv, b';') => "CSV with semicolons",
            (FileFormat::Csv, b'|') => "CSV with bars",
            (FileFormat::Csv, b'\t') => "CSV with tabs",
            (FileFormat::Csv, _) => "CSV",
            #[cfg(feature = "parquet")]
            (FileFormat::Parquet, _) => "Parquet",
            #[cfg(feature = "parquet")]
            (FileFormat::Arrow, _) => "Arrow IPC",
        };
        let has_records = !first.is_empty();
        ReadAs { name, format, encoding, fields, columns, unreadable, by_line, has_records }
    }

    /// True if another input was understood in the same way.
    pub fn is_like(&self, other: &ReadAs) -> bool {
        (self.format, &self.encoding, &self.fields, self.by_line)
            == (other.format, &other.encoding, &other.fields, other.by_line)
    }

    /// The column that holds the id, if it is a column.
    pub(super) fn id_column(&self) -> Option<&str> {
        let (_, column) = self.fields.iter().find(|(field, _)| *field == Field::Id)?;
        self.columns.iter().map(|known| known.name.as_str()).find(|name| name == column)
    }
}

impl fmt::Display for ReadAs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}", self.name, self.format)?;
        if let Some(encoding) = &self.encoding {
            write!(f, " in {encoding}")?;
        }
        if !self.has_records && self.columns.is_empty() {
            return write!(f, "; it is empty");
        }
        let has = |wanted| self.fields.iter().any(|(field, _)| *field == wanted);
        let written = |(field, column): &(Field, String)| match field.name() == column {
            true => column.clone(),
            false => format!("{field} = {column}"),
        };
        let mut parts: Vec<String> = self.fields.iter().map(written).collect();
        if self.by_line {
            parts.insert(0, "id = file and line".to_owned());
        }
        write!(f, "; {}", parts.join(", "))?;
        let unused: Vec<&str> = self
            .columns
            .iter()
            .map(|column| column.name.as_str())
            .filter(|&column| {
                !self.fields.iter().any(|(_, used)| used.split(['.', '[']).next() == Some(column))
            })
            .collect();
        if !has(Field::Body) {
            write!(
                f,
                "{}NO BODY: name it with --field body=COLUMN",
                if parts.is_empty() { "" } else { "; " }
            )?;
        }
        if !unused.is_empty() {
            let more = unused.len().saturating_sub(SHOWN);
            write!(f, "; not used: {}", unused[..unused.len() - more].join(", "))?;
            if more > 0 {
                write!(f, " and {more} more")?;
            }
        }
        if !self.unreadable.is_empty() {
            write!(f, "; cannot be read: {}", self.unreadable.join(", "))?;
        }
        Ok(())
    }
}

fn fields_of_table(fields: &Fields, columns: &[String]) -> Vec<(Field, String)> {
    let column = |field| {
        let names = fields.names(field);
        names.into_iter().find_map(|name| {
            let exact = columns.iter().find(|column| *column == name);
            let alike = || columns.iter().find(|column| spelled_alike(name, column));
            if fields.is_configured(field) { exact } else { exact.or_else(alike) }
        })
    };
    Field::ALL.into_iter().filter_map(|field| Some((field, column(field)?.clone()))).collect()
}

fn fields_of_records(fields: &Fields, records: &[json::JsonRecord<'_>]) -> Vec<(Field, String)> {
    let source = |field| {
        records.iter().find_map(|record| {
            let name = fields.source(record, field)?;
            // The name as the record spells it.
            let spelled = record.keys().find(|key| *key == name);
            let alike = || record.keys().find(|key| spelled_alike(name, key));
            Some(spelled.or_else(alike).unwrap_or(name).to_owned())
        })
    };
    Field::ALL.into_iter().filter_map(|field| Some((field, source(field)?))).collect()
}

/// True if a record is an object without an id.
pub(super) fn lacks_id(record: &InputRecord, fields: &Fields) -> bool {
    let Ok(bytes) = &record.content else { return false };
    json::JsonRecord::parse(bytes).is_ok_and(|record| {
        matches!(record.read(), crate::formats::fields::Shape::Record)
            && fields.source(&record, Field::Id).is_none()
            && !record.keys().any(|key| fields.is_name(Field::Id, key))
    })
}
