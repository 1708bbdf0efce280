//! The nouns every other module speaks in: plain values, no behaviour that could fail.

use std::fmt;

/// A language from the closed table in `text::language`.
///
/// The wire is full of invented language tags; a `Lang` can only be one the table knows, or
/// [`Lang::UND`]. That bounds column families, metric labels and partitions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lang(&'static str);

impl Lang {
    /// Undetermined: no language was declared or detected that we know.
    pub const UND: Lang = Lang("und");

    /// Names a row of the table. Only the table calls this.
    pub(crate) const fn from_table(code: &'static str) -> Lang {
        Lang(code)
    }

    /// The code as written in the table, for example `hi`.
    pub const fn code(self) -> &'static str {
        self.0
    }
}

impl fmt::Debug for Lang {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Display for Lang {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0)
    }
}

impl serde::Serialize for Lang {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0)
    }
}

/// How an article's language became known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LanguageSource {
    /// The article said so, and its text is in a script of that language.
    Declared,
    /// Recognised from the text.
    Detected,
    /// Neither: the language is `und`.
    None,
}

impl LanguageSource {
    /// As written in the tagged article.
    pub const fn as_str(self) -> &'static str {
        match self {
            LanguageSource::Declared => "declared",
            LanguageSource::Detected => "detected",
            LanguageSource::None => "none",
        }
    }
}
