//! The five bytes in front of every registry-framed Avro value; they name its writer schema.
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

/// The parts of a framed value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framed<'a> {
    /// The writer schema's id in the registry.
    pub id: u32,
    /// The Avro datum.
    pub datum: &'a [u8],
}

/// True if a value begins like a framed one. No JSON text begins with a zero byte.
pub fn is_framed(value: &[u8]) -> bool {
    value.first() == Some(&MAGIC)
}

/// Splits a framed value into schema id and datum.
///
/// # Errors
/// The value is not framed, or it is truncated: the record is a dead letter.
pub fn unframe(value: &[u8]) -> Result<Framed<'_>, DecodeFailure> {
    let undecodable = |message: String| DecodeFailure::new(DeadLetterReason::Undecodable, message);
    match value {
        [] => Err(undecodable("an empty value; Avro begins with a zero byte and a schema id".into())),
        [MAGIC, a, b, c, d, datum @ ..] => Ok(Framed { id: u32::from_be_bytes([*a, *b, *c, *d]), datum }),
        [MAGIC, ..] => {
            let (there, needed) = (value.len() - 1, HEAD - 1);
            Err(undecodable(format!("the schema id is truncated: {there} of its {needed} bytes are present")))
        }
        [other, ..] => Err(undecodable(format!(
            "begins with byte 0x{other:02x}; Avro from a schema registry begins with 0x00 and a schema id{}",
            if matches!(other, b'{' | b'[') { " (JSON? then set input.format to auto or json)" } else { "" }
        ))),
    }
}

/// Starts a value with this schema id; `capacity` bytes are reserved for the datum.
pub fn frame(id: u32, capacity: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEAD + capacity);
    out.push(MAGIC);
    out.extend(id.to_be_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn framing_and_unframing_are_inverse() {
        let mut value = frame(0x0102_0304, 3);
        value.extend(b"abc");
        assert_eq!(unframe(&value).unwrap(), Framed { id: 0x0102_0304, datum: b"abc" });
        assert_eq!(unframe(&value[..5]).unwrap().datum, b"");
    }

    #[test]
    fn an_unframed_value_is_refused_with_its_first_byte() {
        let message = |value: &[u8]| unframe(value).unwrap_err().message;
        assert!(message(b"").contains("empty"));
        assert!(message(b"\0\0\0").contains("2 of its 4 bytes"), "{}", message(b"\0\0\0"));
        assert!(message(b"{\"id\":1}").contains("0x7b") && message(b"{}").contains("input.format"));
        assert!(message(b"\x01....").contains("0x01"));
        assert!(!is_framed(b" {}") && !is_framed(b"") && is_framed(b"\0"));
    }
}
