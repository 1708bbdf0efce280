//! Fingerprints of a text that arrives in pieces, cut anywhere.

use std::str;

use super::Error;

/// The default limit of a stream: 16 MiB.
pub const DEFAULT_MAX_BYTES: usize = 16 << 20;

/// Computes a fingerprint from a complete text.
pub trait Fingerprinter {
    /// The fingerprint.
    type Output;

    /// The fingerprint of a text.
    ///
    /// # Errors
    ///
    /// [`Error::EmptyDocument`] if it has no tokens.
    fn fingerprint(&self, text: &str) -> Result<Self::Output, Error>;
}

/// Collects a text and fingerprints it at the end. The result equals that of the complete text, however it is
/// cut.
///
/// ```
/// use samestory_compat::txtfp::{SimHashFingerprinter, WordTokenizer};
///
/// let whole = SimHashFingerprinter::new(WordTokenizer);
/// let mut pieces = whole.clone().into_streaming();
/// pieces.update(b"caf\xc3")?;
/// pieces.update(b"\xa9 noir")?;
/// assert_eq!(pieces.finalize()?, whole.fingerprint("café noir")?);
/// # Ok::<(), samestory_compat::txtfp::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Streaming<F> {
    fingerprinter: F,
    bytes: Vec<u8>,
    /// This many bytes are complete characters; at most three more start another.
    whole: usize,
    max_bytes: usize,
}

impl<F: Fingerprinter> Streaming<F> {
    /// Accepts at most 16 MiB.
    pub fn new(fingerprinter: F) -> Self {
        Streaming { fingerprinter, bytes: Vec::new(), whole: 0, max_bytes: DEFAULT_MAX_BYTES }
    }

    /// Sets another limit.
    #[must_use]
    pub fn with_max_bytes(self, max_bytes: usize) -> Self {
        Streaming { max_bytes, ..self }
    }

    /// Number of buffered bytes that are complete characters.
    pub fn buffered_bytes(&self) -> usize {
        self.whole
    }

    /// Adds a piece. A rejected piece has no effect.
    ///
    /// # Errors
    ///
    /// [`Error::StreamTooLong`] beyond the limit, [`Error::InvalidUtf8`] for bytes that are not UTF-8.
    pub fn update(&mut self, piece: &[u8]) -> Result<(), Error> {
        if piece.len() > self.max_bytes.saturating_sub(self.bytes.len()) {
            return Err(Error::StreamTooLong);
        }
        let before = self.bytes.len();
        self.bytes.extend_from_slice(piece);
        match str::from_utf8(&self.bytes[self.whole..]) {
            Ok(_) => self.whole = self.bytes.len(),
            Err(error) if error.error_len().is_none() => self.whole += error.valid_up_to(),
            Err(_) => {
                self.bytes.truncate(before);
                return Err(Error::InvalidUtf8);
            }
        }
        Ok(())
    }

    /// The fingerprint of all pieces.
    ///
    /// # Errors
    ///
    /// [`Error::IncompleteUtf8`] if the last character is incomplete, [`Error::EmptyDocument`] if there are
    /// no tokens.
    pub fn finalize(self) -> Result<F::Output, Error> {
        let text = str::from_utf8(&self.bytes).map_err(|_| Error::IncompleteUtf8)?;
        self.fingerprinter.fingerprint(text)
    }

    /// Clears the text and keeps the memory for the next one.
    pub fn reset(&mut self) {
        self.bytes.clear();
        self.whole = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{SimHashFingerprinter, WordTokenizer};
    use super::*;

    fn stream() -> Streaming<SimHashFingerprinter<WordTokenizer>> {
        SimHashFingerprinter::new(WordTokenizer).into_streaming()
    }

    #[test]
    fn a_rejected_piece_has_no_effect() {
        let mut stream = stream();
        stream.update(b"caf\xc3").unwrap();
        assert_eq!(stream.update(b"\xc3"), Err(Error::InvalidUtf8));
        assert_eq!(stream.update(b"ok \x80"), Err(Error::InvalidUtf8));
        assert_eq!(stream.buffered_bytes(), 3);
        assert_eq!(stream.clone().finalize(), Err(Error::IncompleteUtf8));
        stream.update(b"\xa9").unwrap();
        assert_eq!(stream.finalize(), SimHashFingerprinter::new(WordTokenizer).fingerprint("café"));
    }

    #[test]
    fn the_limit_counts_every_byte() {
        let mut stream = stream().with_max_bytes(11);
        stream.update(b"0123456\xf0\x9f").unwrap();
        assert_eq!(stream.update(b"\x91\x8d!"), Err(Error::StreamTooLong));
        stream.update(b"\x91\x8d").unwrap();
        assert_eq!(stream.update(b"!"), Err(Error::StreamTooLong));
        assert_eq!(stream.buffered_bytes(), 11);
        let huge = vec![b'a'; DEFAULT_MAX_BYTES + 1];
        assert_eq!(self::stream().update(&huge), Err(Error::StreamTooLong));
    }

    #[test]
    fn nothing_is_an_empty_document() {
        let mut stream = stream();
        assert_eq!(stream.clone().finalize(), Err(Error::EmptyDocument));
        stream.update(b"fox").unwrap();
        stream.reset();
        assert_eq!(stream.finalize(), Err(Error::EmptyDocument));
    }
}
