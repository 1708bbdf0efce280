//! Walks through JSON objects to a list that lies under a key, for [`super::array`], without building any value.

use std::io::{self, BufRead};

use super::array::{ByteRole, Element};

/// The longest key that is compared; longer ones are not the one that is looked for.
const LONGEST_KEY: usize = 1024;
/// Keys kept for the message that the list was not found.
const SHOWN: usize = 12;

/// The kind of value after a key, as far as its first byte shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueKind {
    Object,
    List,
    Text,
    Other,
}

/// A position inside JSON objects.
pub(super) struct Walk<'a, R> {
    bytes: &'a mut R,
    line: &'a mut u64,
}

impl<'a, R: BufRead> Walk<'a, R> {
    pub(super) fn new(bytes: &'a mut R, line: &'a mut u64) -> Walk<'a, R> {
        Walk { bytes, line }
    }

    /// The next byte that is neither white space nor a separator, not consumed.
    pub(super) fn peek(&mut self) -> io::Result<Option<u8>> {
        loop {
            let Some(&byte) = self.fill()?.first() else { return Ok(None) };
            if !matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b',' | b':') {
                return Ok(Some(byte));
            }
            self.consume(byte);
        }
    }

    /// Consumes a byte that [`Self::peek`] returned.
    pub(super) fn consume(&mut self, byte: u8) {
        *self.line += u64::from(byte == b'\n');
        self.bytes.consume(1);
    }

    /// Reads the key that begins here, and what follows it; the value is not consumed. None at the end of the input.
    pub(super) fn key(&mut self) -> io::Result<Option<(String, ValueKind)>> {
        let mut quoted = Vec::new();
        let mut element = Element::default();
        loop {
            let Some(&byte) = self.fill()?.first() else { return Ok(None) };
            self.consume(byte);
            if quoted.len() < LONGEST_KEY {
                quoted.push(byte);
            }
            if element.advance(byte) == ByteRole::Last {
                break;
            }
        }
        let Some(first) = self.peek()? else { return Ok(None) };
        let kind = match first {
            b'{' => ValueKind::Object,
            b'[' => ValueKind::List,
            b'"' => ValueKind::Text,
            _ => ValueKind::Other,
        };
        Ok(Some((serde_json::from_slice(&quoted).unwrap_or_default(), kind)))
    }

    /// Skips the value that begins here.
    pub(super) fn skip(&mut self) -> io::Result<()> {
        let mut element = Element::default();
        loop {
            let Some(&byte) = self.fill()?.first() else { return Ok(()) };
            // A number or a literal ends before the bracket of its object.
            if element.is_outside() && byte == b'}' {
                return Ok(());
            }
            match element.advance(byte) {
                ByteRole::Inside => self.consume(byte),
                ByteRole::Last => {
                    self.consume(byte);
                    return Ok(());
                }
                ByteRole::After => return Ok(()),
            }
        }
    }

    fn fill(&mut self) -> io::Result<&[u8]> {
        loop {
            match self.bytes.fill_buf() {
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        // Borrowed again, because the loop above may not keep its borrow.
        self.bytes.fill_buf()
    }
}

/// The path of keys of `--records`, and how far the input is inside of it.
#[derive(Clone, Debug, Default)]
pub(super) struct RecordsPath {
    keys: Vec<String>,
    /// Open objects on the path.
    level: usize,
    found: bool,
    seen: Vec<String>,
}

/// Where a walk ended.
pub(super) enum Arrived {
    /// Inside the list.
    List,
    /// At the end of the input, outside of any object.
    End,
    /// At the end of the input, inside an object.
    Truncated,
}

impl RecordsPath {
    pub(super) fn new(keys: Vec<String>) -> RecordsPath {
        RecordsPath { keys, ..RecordsPath::default() }
    }

    /// The keys of the first object, if it has no list under the path.
    pub(super) fn missing(&self) -> Option<String> {
        let seen = if self.seen.is_empty() { "no keys".to_owned() } else { self.seen.join(", ") };
        (!self.found).then(|| {
            format!("there is no list of records under \"{}\"; the object has {seen}", self.keys.join("."))
        })
    }

    /// Walks to the next list under the path, and into it. Several objects may follow each other, as pages of an API do.
    pub(super) fn enter(&mut self, walk: &mut Walk<'_, impl BufRead>) -> io::Result<Arrived> {
        loop {
            let Some(byte) = walk.peek()? else {
                return Ok(if self.level == 0 { Arrived::End } else { Arrived::Truncated });
            };
            match byte {
                b'{' if self.level == 0 => {
                    walk.consume(byte);
                    self.level = 1;
                }
                b'}' if self.level > 0 => {
                    walk.consume(byte);
                    self.level -= 1;
                }
                b'"' if self.level > 0 => {
                    let Some((key, kind)) = walk.key()? else { return Ok(Arrived::Truncated) };
                    let is_wanted = self.keys.get(self.level - 1).is_some_and(|wanted| *wanted == key);
                    let is_last = self.level == self.keys.len();
                    if self.seen.len() < SHOWN && !self.found && self.level == 1 {
                        self.seen.push(key);
                    }
                    match kind {
                        ValueKind::List if is_wanted && is_last => {
                            walk.consume(b'[');
                            self.found = true;
                            return Ok(Arrived::List);
                        }
                        ValueKind::Object if is_wanted && !is_last => {
                            walk.consume(b'{');
                            self.level += 1;
                        }
                        _ => walk.skip()?,
                    }
                }
                // A list of pages, or rubbish.
                _ => walk.consume(byte),
            }
        }
    }
}

/// The key under which an object seems to have its records, as `--records` takes it: a list of objects that have one of
/// `names`, beside which the object has no text under any of `bodies`.
pub(super) fn suggestion(
    start: &[u8],
    is_body: impl Fn(&str) -> bool,
    is_field: impl Fn(&str) -> bool,
) -> Option<String> {
    let (mut bytes, mut line) = (start, 1);
    let mut walk = Walk::new(&mut bytes, &mut line);
    if walk.peek().ok()? != Some(b'{') {
        return None;
    }
    walk.consume(b'{');
    let mut outer: Option<String> = None;
    let mut found = None;
    loop {
        match walk.peek().ok()? {
            Some(b'"') => {
                let Ok(Some((key, kind))) = walk.key() else { return found };
                match kind {
                    ValueKind::Text if outer.is_none() && is_body(&key) => return None,
                    ValueKind::Object if outer.is_none() => {
                        walk.consume(b'{');
                        outer = Some(key);
                        continue;
                    }
                    ValueKind::List if found.is_none() => {
                        walk.consume(b'[');
                        if has_records(&mut walk, &is_field) {
                            found = Some(match &outer {
                                Some(outer) => format!("{outer}.{key}"),
                                None => key,
                            });
                        }
                        // The rest of the list does not matter, and it may not end within the sample.
                        leave_list(&mut walk);
                    }
                    _ => walk.skip().ok()?,
                }
            }
            Some(b'}') => {
                walk.consume(b'}');
                if outer.take().is_none() {
                    return found;
                }
            }
            _ => return found,
        }
    }
}

/// True if the list that was just opened begins with an object that has such a field. Reads up to the end of that object.
fn has_records(walk: &mut Walk<'_, &[u8]>, is_field: &impl Fn(&str) -> bool) -> bool {
    walk.peek().ok().flatten() == Some(b'{') && has_field(walk, is_field, true)
}

/// True if the object that begins here has such a field, or, where `inner` says so, an object in it does, as in the answers of
/// Elasticsearch and the Guardian.
fn has_field(walk: &mut Walk<'_, &[u8]>, is_field: &impl Fn(&str) -> bool, inner: bool) -> bool {
    walk.consume(b'{');
    let mut has = false;
    while let Ok(Some(b'"')) = walk.peek() {
        let Ok(Some((key, kind))) = walk.key() else { return has };
        has |= is_field(&key);
        if inner && kind == ValueKind::Object {
            has |= has_field(walk, is_field, false);
        } else if walk.skip().is_err() {
            return has;
        }
    }
    if let Ok(Some(b'}')) = walk.peek() {
        walk.consume(b'}');
    }
    has
}

fn leave_list(walk: &mut Walk<'_, &[u8]>) {
    while let Ok(Some(byte)) = walk.peek() {
        if byte == b']' {
            walk.consume(byte);
            return;
        }
        // A value: `skip` consumes at least one byte, or stands before a bracket that does not belong here.
        let before = walk.bytes.len();
        if walk.skip().is_err() || walk.bytes.len() == before {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suggested(json: &str) -> Option<String> {
        suggestion(json.as_bytes(), |key| key == "body", |key| ["title", "body"].contains(&key))
    }

    #[test]
    fn the_answers_of_news_apis_have_their_records_under_a_key() {
        let news_api = r#"{"status":"ok","totalResults":2,"articles":[{"source":{"id":null},"title":"A [1]"},{"title":"B"}]}"#;
        assert_eq!(suggested(news_api).as_deref(), Some("articles"));
        assert_eq!(suggested(&news_api[..70]), None, "the sample ends too early to know");
        assert_eq!(suggested(&news_api[..85]).as_deref(), Some("articles"));
        let guardian = r#"{"response":{"status":"ok","results":[{"id":"x","webTitle":"A","fields":{"title":"A"},"tags":[]}]}}"#;
        assert_eq!(suggested(guardian).as_deref(), Some("response.results"));
        let elastic =
            r#"{"took":3,"hits":{"total":{"value":1},"hits":[{"_id":"1","_source":{"body":"text"}}]}}"#;
        assert_eq!(suggested(elastic).as_deref(), Some("hits.hits"));
        for article in [
            r#"{"id":"a","body":"text","related":[{"title":"x"}]}"#,
            r#"{"id":"a","related":[{"title":"x"}],"body":"text"}"#,
            r#"{"id":"a","tags":["title"],"numbers":[1,2,{"title":3}]}"#,
            r#"["articles"]"#,
            "{",
            "",
        ] {
            assert_eq!(suggested(article), None, "{article}");
        }
    }
}
