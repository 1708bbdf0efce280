//! Reads the bytes of a datum from the front, for [`super::Datum`]. Lengths and counts in the data are not trusted:
//! nothing is allocated or visited before the bytes are known to exist, and depth and number of values are bounded.

use super::schema::{Node, Schema};

/// Most nested values, as in JSON.
const DEEPEST: usize = 128;

/// Why bytes do not match their schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Flaw {
    /// Position in the datum.
    at: usize,
    what: String,
    /// The enclosing fields, innermost first.
    path: Vec<String>,
}

impl std::fmt::Display for Flaw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.path.is_empty() {
            // If there are many, the outermost names are the most helpful.
            let names: Vec<&str> = self.path.iter().rev().take(6).map(String::as_str).collect();
            let more = if self.path.len() > 6 { ".…" } else { "" };
            write!(f, "field \"{}{more}\", ", names.join("."))?;
        }
        write!(f, "byte {}: {}", self.at, self.what)
    }
}

pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Values that may still be visited. Some values take no bytes, so a few bytes could claim billions of them.
    left: usize,
    /// True if strings are checked for UTF-8 and counts for plausibility.
    strict: bool,
}

impl<'a> Cursor<'a> {
    /// For unchecked bytes.
    pub(super) fn strict(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { bytes, at: 0, left: bytes.len().saturating_mul(4).saturating_add(10_000), strict: true }
    }

    /// For bytes that a strict cursor has checked.
    pub(super) fn checked(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { bytes, at: 0, left: usize::MAX, strict: false }
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn flaw<T>(&self, what: impl Into<String>) -> Result<T, Flaw> {
        Err(Flaw { at: self.at, what: what.into(), path: Vec::new() })
    }

    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8], Flaw> {
        match self.rest().get(..length) {
            Some(taken) => {
                self.at += length;
                Ok(taken)
            }
            None => self.flaw(format!("truncated: {length} bytes expected, {} left", self.rest().len())),
        }
    }

    pub(super) fn byte(&mut self) -> Result<u8, Flaw> {
        Ok(self.take(1)?[0])
    }

    /// A zig-zag varint.
    pub(super) fn long(&mut self) -> Result<i64, Flaw> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = match self.bytes.get(self.at) {
                Some(&byte) => byte,
                None => return self.flaw("truncated inside a number"),
            };
            self.at += 1;
            if shift == 63 && byte > 1 {
                return self.flaw("a number of more than 64 bits");
            }
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok((number >> 1) as i64 ^ -((number & 1) as i64));
            }
        }
        self.flaw("a number of more than 64 bits")
    }

    pub(super) fn int(&mut self) -> Result<i32, Flaw> {
        let number = self.long()?;
        i32::try_from(number).or_else(|_| self.flaw(format!("{number} does not fit into 32 bits")))
    }

    /// Bytes preceded by their length.
    pub(super) fn bytes(&mut self) -> Result<&'a [u8], Flaw> {
        let length = self.long()?;
        match usize::try_from(length) {
            Ok(length) => self.take(length),
            Err(_) => self.flaw(format!("a length of {length}")),
        }
    }

    pub(super) fn text(&mut self) -> Result<&'a [u8], Flaw> {
        let start = self.at;
        let text = self.bytes()?;
        if self.strict
            && let Err(error) = str::from_utf8(text)
        {
            let at = start + (self.at - start - text.len()) + error.valid_up_to();
            return Err(Flaw { at, what: "not UTF-8 in a string".into(), path: Vec::new() });
        }
        Ok(text)
    }

    /// The index of a union variant or enum symbol, of which there are `count`.
    pub(super) fn choice(&mut self, count: usize, what: &str) -> Result<usize, Flaw> {
        let number = self.long()?;
        match usize::try_from(number).ok().filter(|&number| number < count) {
            Some(number) => Ok(number),
            None => self.flaw(format!("{what} {number} of {count}")),
        }
    }

    /// The number of items in the next block of an array or map; 0 ends it.
    pub(super) fn block(&mut self) -> Result<u64, Flaw> {
        let count = self.long()?;
        if count < 0 {
            // A negative count is followed by the block's length in bytes, so that readers can skip it.
            let bytes = self.long()?;
            if usize::try_from(bytes).map_or(true, |bytes| bytes > self.rest().len()) {
                return self.flaw(format!("a block of {bytes} bytes, {} left", self.rest().len()));
            }
        }
        let count = count.unsigned_abs();
        if self.strict && count > self.left as u64 {
            return self.flaw(format!("a block of {count} items, {} bytes left", self.rest().len()));
        }
        Ok(count)
    }

    /// Skips a value and checks it against the schema.
    pub(super) fn skip(&mut self, schema: &Schema, node: usize, depth: usize) -> Result<(), Flaw> {
        if depth > DEEPEST {
            return self.flaw(format!("nested more than {DEEPEST} levels deep"));
        }
        match self.left.checked_sub(1) {
            Some(left) => self.left = left,
            None => return self.flaw("more values than its bytes can plausibly hold"),
        }
        match schema.node(node) {
            Node::Null => {}
            Node::Bool => match self.byte()? {
                0 | 1 => {}
                other => return self.flaw(format!("{other} is neither true nor false")),
            },
            Node::Int | Node::Day => {
                self.int()?;
            }
            Node::Long | Node::Time(_) => {
                self.long()?;
            }
            Node::Float => {
                self.take(4)?;
            }
            Node::Double => {
                self.take(8)?;
            }
            Node::Uuid => {
                self.take(16)?;
            }
            Node::Fixed(length) | Node::Opaque(Some(length)) => {
                self.take(*length)?;
            }
            Node::Bytes | Node::Opaque(None) => {
                self.bytes()?;
            }
            Node::Text => {
                self.text()?;
            }
            Node::Enum(symbols) => {
                self.choice(symbols.len(), "symbol")?;
            }
            Node::Union(variants) => {
                let variant = self.choice(variants.len(), "variant")?;
                self.skip(schema, variants[variant], depth + 1)?;
            }
            Node::Array(items) => self.each_item(|cursor| cursor.skip(schema, *items, depth + 1))?,
            Node::Map(values) => self.each_item(|cursor| {
                cursor.text()?;
                cursor.skip(schema, *values, depth + 1)
            })?,
            Node::Record(fields) => {
                for field in fields {
                    self.skip(schema, field.node, depth + 1).map_err(|mut flaw| {
                        flaw.path.push(field.name.clone());
                        flaw
                    })?;
                }
            }
        }
        Ok(())
    }

    /// Visits the items of an array or map, block by block.
    pub(super) fn each_item(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<(), Flaw>,
    ) -> Result<(), Flaw> {
        loop {
            match self.block()? {
                0 => return Ok(()),
                count => (0..count).try_for_each(|_| item(self))?,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_of_every_length_are_decoded() {
        for number in [0, -1, 1, 63, 64, -65, 8191, i64::from(i32::MAX), i64::MAX, i64::MIN] {
            let mut bytes = Vec::new();
            super::super::write::long(&mut bytes, number);
            assert_eq!(Cursor::strict(&bytes).long(), Ok(number));
            for end in 0..bytes.len() {
                assert!(Cursor::strict(&bytes[..end]).long().is_err());
            }
        }
        for endless in [&[0xff; 10][..], &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02]] {
            assert!(Cursor::strict(endless).long().unwrap_err().to_string().contains("64 bits"));
        }
        assert!(Cursor::strict(&[0x80, 0x80, 0x80, 0x80, 0x20]).int().is_err());
    }
}
