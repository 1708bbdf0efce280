//! Encoding and decoding of the primitives that keys and values consist of.
//!
//! `key`, `value` and `header` build on it, and so do routed records. Decoding never trusts a length: a
//! record from a log is untrusted until it has been read to its end.

use crate::model::{ArticleId, BoundedStr, DocumentNumber, EventTime, Lang, TopicId};
use crate::text::language::LANGUAGES;

/// Why bytes cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// A layout of another version of the program.
    #[error("unknown {what} layout {found}; this program writes layout {expected}")]
    Layout {
        /// The kind of value.
        what: &'static str,
        /// The version in the bytes.
        found: u8,
        /// The version this program writes.
        expected: u8,
    },
    /// The bytes end too early.
    #[error("truncated: {wanted} more bytes expected, {left} left")]
    Short {
        /// Bytes needed next.
        wanted: usize,
        /// Bytes available.
        left: usize,
    },
    /// Bytes follow the end of the value.
    #[error("{0} bytes are left over")]
    Leftover(usize),
    /// A value that no version of the program writes.
    #[error("invalid value: {0}")]
    Value(&'static str),
    /// A language that this version does not know.
    #[error("language {0:?} is not known to this version of the program")]
    Language(String),
    /// An invalid fingerprint.
    #[error(transparent)]
    Fingerprint(#[from] crate::fingerprint::FingerprintError),
}

/// Finds a language in the table by its code.
pub fn language(code: &[u8]) -> Result<Lang, DecodeError> {
    LANGUAGES
        .iter()
        .map(|row| row.lang)
        .find(|lang| lang.code().as_bytes() == code)
        .ok_or_else(|| DecodeError::Language(String::from_utf8_lossy(code).into_owned()))
}

/// Appends primitives to a byte vector.
pub trait ByteWriter {
    fn text(&mut self, text: &str);
    fn id(&mut self, id: &ArticleId);
    fn language(&mut self, language: Lang);
    fn number(&mut self, number: DocumentNumber);
    fn time(&mut self, time: EventTime);
    /// A presence byte, then the value if there is one.
    fn optional<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T));
}

impl ByteWriter for Vec<u8> {
    fn text(&mut self, text: &str) {
        // The types of all texts bound their length below this.
        let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
        self.extend(length.to_le_bytes());
        self.extend(&text.as_bytes()[..usize::from(length)]);
    }

    fn id(&mut self, id: &ArticleId) {
        self.text(id.as_str());
    }

    fn language(&mut self, language: Lang) {
        self.push(language.code().len() as u8);
        self.extend(language.code().as_bytes());
    }

    fn number(&mut self, number: DocumentNumber) {
        self.extend(number.0.to_le_bytes());
    }

    fn time(&mut self, time: EventTime) {
        self.extend(time.millis().to_le_bytes());
    }

    fn optional<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.push(u8::from(value.is_some()));
        if let Some(value) = value {
            write(self, value);
        }
    }
}

/// Reads primitives from the front of a byte slice.
pub struct ByteReader<'a>(pub &'a [u8]);

impl<'a> ByteReader<'a> {
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        let short = DecodeError::Short { wanted: count, left: self.0.len() };
        let (taken, rest) = self.0.split_at_checked(count).ok_or(short)?;
        self.0 = rest;
        Ok(taken)
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub fn byte(&mut self) -> Result<u8, DecodeError> {
        self.array().map(|[byte]| byte)
    }

    pub fn layout(&mut self, what: &'static str, expected: u8) -> Result<(), DecodeError> {
        match self.byte()? {
            found if found == expected => Ok(()),
            found => Err(DecodeError::Layout { what, found, expected }),
        }
    }

    pub fn u16(&mut self) -> Result<u16, DecodeError> {
        self.array().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_le_bytes)
    }

    pub fn number(&mut self) -> Result<DocumentNumber, DecodeError> {
        self.u64().map(DocumentNumber)
    }

    pub fn time(&mut self) -> Result<EventTime, DecodeError> {
        self.array().map(i64::from_le_bytes).map(EventTime::from_millis)
    }

    pub fn topic_id(&mut self) -> Result<TopicId, DecodeError> {
        self.array().map(TopicId::from_bytes)
    }

    pub fn str(&mut self) -> Result<&'a str, DecodeError> {
        let length = self.u16()?;
        str::from_utf8(self.take(usize::from(length))?).map_err(|_| DecodeError::Value("a text"))
    }

    pub fn bounded_str<const MAX: u16>(&mut self) -> Result<BoundedStr<MAX>, DecodeError> {
        match self.str()? {
            text if text.len() <= usize::from(MAX) => Ok(BoundedStr::new(text)),
            _ => Err(DecodeError::Value("a text of this length")),
        }
    }

    pub fn id(&mut self) -> Result<ArticleId, DecodeError> {
        ArticleId::new(self.str()?).map_err(|_| DecodeError::Value("an id of this length"))
    }

    pub fn language(&mut self) -> Result<Lang, DecodeError> {
        let length = self.byte()?;
        language(self.take(usize::from(length))?)
    }

    pub fn optional<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Option<T>, DecodeError> {
        match self.byte()? {
            0 => Ok(None),
            1 => read(self).map(Some),
            _ => Err(DecodeError::Value("a presence byte")),
        }
    }

    pub fn end(self) -> Result<(), DecodeError> {
        if self.0.is_empty() { Ok(()) } else { Err(DecodeError::Leftover(self.0.len())) }
    }
}
