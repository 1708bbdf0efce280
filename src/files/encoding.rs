//! The character encoding of an input. UTF-8 passes through; UTF-16 and the legacy encodings are decoded to UTF-8 before
//! [`super::records`] sees a byte. An encoding that nobody named is guessed from a sample, and the run says which.

use std::io::{BufReader, Read};

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};
use encoding_rs_io::DecodeReaderBytesBuilder;

/// A character encoding by one of the labels of the WHATWG standard, such as `windows-1252`, `latin1` or `shift_jis`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextEncoding(&'static Encoding);

impl TextEncoding {
    /// The encoding with this label, in any case.
    pub fn parse(label: &str) -> Option<TextEncoding> {
        Encoding::for_label(label.trim().as_bytes()).map(TextEncoding)
    }

    /// Its name, as the standard writes it.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// Guesses the encoding from the first bytes of an input; `None` for UTF-8.
    ///
    /// A sample with at least as many UTF-8 sequences as malformed ones is UTF-8 with damaged records: those become dead
    /// letters, because decoding them as something else would corrupt the rest.
    pub(super) fn guess(sample: &[u8]) -> Option<TextEncoding> {
        match *sample {
            [0xff, 0xfe, ..] => return Some(TextEncoding(UTF_16LE)),
            [0xfe, 0xff, ..] => return Some(TextEncoding(UTF_16BE)),
            [a, 0, b, 0, ..] if a != 0 && b != 0 => return Some(TextEncoding(UTF_16LE)),
            [0, a, 0, b, ..] if a != 0 && b != 0 => return Some(TextEncoding(UTF_16BE)),
            _ => {}
        }
        let (mut sequences, mut malformed, mut read) = (0_usize, 0_usize, 0);
        for chunk in sample.utf8_chunks() {
            sequences += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
            read += chunk.valid().len() + chunk.invalid().len();
            // The sample may end in the middle of a character.
            let is_cut = read == sample.len() && could_continue(chunk.invalid());
            malformed += usize::from(!chunk.invalid().is_empty() && !is_cut);
        }
        if sequences >= malformed {
            return None;
        }
        let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
        detector.feed(sample, true);
        Some(TextEncoding(detector.guess(None, Utf8Detection::Deny)))
    }

    /// True if bytes in this encoding need no decoding.
    pub(super) fn is_utf8(self) -> bool {
        self.0 == UTF_8
    }

    /// Decodes `bytes` to UTF-8; malformed sequences become U+FFFD.
    pub(super) fn decode(self, bytes: impl Read + Send + 'static, buffer: usize) -> super::source::Bytes {
        let decoder = DecodeReaderBytesBuilder::new().encoding(Some(self.0)).strip_bom(true).build(bytes);
        BufReader::with_capacity(buffer, Box::new(decoder))
    }
}

/// True if bytes that are not UTF-8 could be the beginning of a character.
fn could_continue(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guessed(label: &str, text: &str) -> &'static str {
        let (bytes, _, unmappable) = Encoding::for_label(label.as_bytes()).unwrap().encode(text);
        assert!(!unmappable, "{text} in {label}");
        TextEncoding::guess(&bytes).map_or("UTF-8", TextEncoding::name)
    }

    #[test]
    fn encodings_are_recognised_from_a_paragraph() {
        let german = "Die Fähre zur Insel fährt ab Montag wieder, teilte die Behörde am Freitag in Zürich mit. Über die Kosten für die größere Brücke wurde nicht gesprochen.";
        let japanese = "島へのフェリーは月曜日から運航を再開すると、市は金曜日に発表した。橋の工事の費用については話し合われなかった。";
        let chinese = "市政府星期五宣布,前往该岛的渡轮将从星期一起恢复运行。没有讨论大桥工程的费用。";
        let russian = "Паром на остров снова начнёт ходить с понедельника, сообщило в пятницу управление порта. Стоимость моста не обсуждали.";
        for (label, text, name) in [
            ("utf-8", german, "UTF-8"),
            ("windows-1252", german, "windows-1252"),
            ("shift_jis", japanese, "Shift_JIS"),
            ("euc-jp", japanese, "EUC-JP"),
            ("gbk", chinese, "GBK"),
            ("windows-1251", russian, "windows-1251"),
        ] {
            assert_eq!(guessed(label, text), name, "{label}");
        }
    }

    // One damaged record must not turn a UTF-8 file into another encoding.
    #[test]
    fn utf8_with_a_few_damaged_bytes_stays_utf8() {
        assert_eq!(TextEncoding::guess("Zürich, São Paulo".as_bytes()), None);
        assert_eq!(TextEncoding::guess(b"Z\xc3\xbcrich \xff"), None);
        assert_eq!(TextEncoding::guess(b"cut off in the middle: \xe3\x81"), None);
        assert_eq!(TextEncoding::guess(b"plain"), None);
        assert_eq!(TextEncoding::guess(b""), None);
    }
}
