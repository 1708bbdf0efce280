//! The five bytes that tell which schema a value was written with.
//!
//! | bytes | field |
//! |------:|-------|
//! | 1 | magic, 0 |
//! | 4 | the schema's id in the registry, big-endian |
//! | rest | the datum |

use crate::formats::fields::DecodeFailure;
use samestory_engine::model::DeadLetterReason;

const MAGIC: u8 = 0;
const HEAD: usize = 5;

/// A value, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framed<'a> {
    /// The id of its schema.
    pub id: u32,
    /// What was written with it.
    pub datum: &'a [u8],
}

/// Whether a value begins as framed ones do. No JSON text begins with a zero byte.
pub fn is_framed(value: &[u8]) -> bool {
    value.first() == Some(&MAGIC)
}

/// Takes a value apart.
///
/// # Errors
/// It is not framed, or cut short: a dead letter, and why.
pub fn unframe(value: &[u8]) -> Result<Framed<'_>, DecodeFailure> {
    let undecodable = |message: String| DecodeFailure::new(DeadLetterReason::Undecodable, message);
    match value {
        [] => Err(undecodable("an empty value; Avro begins with a zero byte and a schema id".into())),
        [MAGIC, a, b, c, d, datum @ ..] => Ok(Framed { id: u32::from_be_bytes([*a, *b, *c, *d]), datum }),
        [MAGIC, ..] => {
            let (there, needed) = (value.len() - 1, HEAD - 1);
            Err(undecodable(format!("the schema id is cut short: {there} of its {needed} bytes are there")))
        }
        [other, ..] => Err(undecodable(format!(
            "begins with byte 0x{other:02x}; Avro from a schema registry begins with 0x00 and a schema id{}",
            if matches!(other, b'{' | b'[') { " (JSON? then set input.format to auto or json)" } else { "" }
        ))),
    }
}

/// The beginning of a value written with this schema.
pub fn frame(id: u32, room: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEAD + room);
    out.push(MAGIC);
    out.extend(id.to_be_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_framed_is_unframed() {
        let mut value = frame(0x0102_0304, 3);
        value.extend(b"abc");
        assert_eq!(unframe(&value).unwrap(), Framed { id: 0x0102_0304, datum: b"abc" });
        assert_eq!(unframe(&value[..5]).unwrap().datum, b"");
    }

    #[test]
    fn what_is_not_framed_says_what_it_is() {
        let said = |value: &[u8]| unframe(value).unwrap_err().message;
        assert!(said(b"").contains("empty"));
        assert!(said(b"\0\0\0").contains("2 of its 4 bytes"), "{}", said(b"\0\0\0"));
        assert!(said(b"{\"id\":1}").contains("0x7b") && said(b"{}").contains("input.format"));
        assert!(said(b"\x01....").contains("0x01"));
        assert!(!is_framed(b" {}") && !is_framed(b"") && is_framed(b"\0"));
    }
}
