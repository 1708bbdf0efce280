//! Terminal output: escaping of untrusted text, logs, progress bar and colours.
//!
//! All untrusted text passes through the escaping here on its way to a terminal or a log. Control characters
//! could move the cursor or overwrite text, and bidi marks could reorder a line; both are written like
//! `\\u202e`, which is the same text inside JSON.

#[cfg(feature = "http")]
mod log_limit;
#[cfg(feature = "http")]
pub mod logs;
pub mod progress_bar;
pub mod style;

use std::borrow::Cow;
use std::io::{self, IsTerminal, StdoutLock, Write};

/// True if a terminal would interpret a character instead of showing it. Line ends and tabs pass: callers use
/// them.
const fn is_unsafe(c: char) -> bool {
    matches!(
        c,
        '\0'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{61c}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}'
    )
}

/// Escapes control characters and bidi marks, so that the text is safe on a terminal.
pub fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match is_unsafe(c) {
            true => safe += &format!("\\u{:04x}", u32::from(c)),
            false => safe.push(c),
        }
    }
    Cow::Owned(safe)
}

/// Like [`escaped`], with line ends and tabs replaced by spaces.
pub fn on_one_line(text: &str) -> String {
    escaped(text).replace(['\n', '\t'], " ")
}

/// Reports every panic on one escaped line of standard error. Rust's own report quotes the text that a slice was taken
/// from, which may be an article's. `logs::start` replaces this report by a log line.
pub fn report_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let location = panic.location().map(ToString::to_string).unwrap_or_default();
        let line = panic_line(panic.payload_as_str().unwrap_or("no message"), &location);
        // Standard error may be closed, and a panic here would end the process.
        let _written = writeln!(io::stderr(), "{line}");
    }));
}

fn panic_line(message: &str, location: &str) -> String {
    format!("samestory: panic at {location}: {}", on_one_line(message))
}

/// A writer that escapes unsafe characters, except colour codes (`ESC [ … m`), which callers use. Each write
/// must consist of whole characters.
#[derive(Debug)]
pub struct Escaped<W> {
    inner: W,
    escapes: bool,
}

impl<W: Write> Escaped<W> {
    /// A writer that always escapes.
    pub fn new(inner: W) -> Escaped<W> {
        Escaped { inner, escapes: true }
    }
}

/// Standard output: escaped if it is a terminal, byte for byte otherwise.
pub fn stdout() -> Escaped<StdoutLock<'static>> {
    Escaped { escapes: io::stdout().is_terminal(), inner: io::stdout().lock() }
}

impl<W: Write> Write for Escaped<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.escapes {
            return self.inner.write(bytes);
        }
        for chunk in bytes.utf8_chunks() {
            self.write_text(chunk.valid())?;
            self.inner.write_all(chunk.invalid())?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<W: Write> Escaped<W> {
    fn write_text(&mut self, text: &str) -> io::Result<()> {
        if !text.contains(is_unsafe) {
            return self.inner.write_all(text.as_bytes());
        }
        let mut safe = String::with_capacity(text.len() + 16);
        let mut rest = text;
        while let Some(at) = rest.find(is_unsafe) {
            safe += &rest[..at];
            rest = &rest[at..];
            let length = colour(rest).unwrap_or(0);
            safe += &rest[..length];
            rest = &rest[length..];
            if length == 0 {
                let next = rest.chars().next().map_or(0, char::len_utf8);
                safe += &escaped(&rest[..next]);
                rest = &rest[next..];
            }
        }
        safe += rest;
        self.inner.write_all(safe.as_bytes())
    }
}

/// The length of the colour code at the start of a text.
fn colour(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let end = parameters.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    parameters[end..].starts_with('m').then_some("\u{1b}[".len() + end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        let mut out = Escaped::new(Vec::new());
        out.write_all(text.as_bytes()).unwrap();
        String::from_utf8(out.inner).unwrap()
    }

    // A headline with a right-to-left override or an escape sequence reached terminals and logs unchanged, so
    // it could recolour, overwrite or reorder what an operator reads.
    #[test]
    fn control_characters_and_bidi_marks_are_escaped() {
        let hostile = "a\u{202e}b\u{1b}]0;x\u{7}c\u{9b}31md\u{2066}e\u{200f}f\u{7f}\r";
        let safe = "a\\u202eb\\u001b]0;x\\u0007c\\u009b31md\\u2066e\\u200ff\\u007f\\u000d";
        assert_eq!(escaped(hostile), safe);
        assert_eq!(written(hostile), safe);
        assert_eq!(on_one_line("two\nlines\tof text"), "two lines of text");
        let harmless = "Zürich, नमस्ते, 日本, \u{200d}👩\u{200d}🚀\n\tnext";
        assert!(matches!(escaped(harmless), Cow::Borrowed(_)));
        assert_eq!(written(harmless), harmless);
    }

    // A command reported a parser that panicked as Rust does: several lines, with the article's text unescaped.
    #[test]
    fn a_panic_is_reported_on_one_escaped_line() {
        let line = panic_line("byte 1 is inside \u{202e}\u{1b}[2J\nof the text", "src/a.rs:1:2");
        assert_eq!(line, "samestory: panic at src/a.rs:1:2: byte 1 is inside \\u202e\\u001b[2J of the text");
    }

    #[test]
    fn colour_codes_pass() {
        let line = "\u{1b}[2m2026\u{1b}[0m \u{1b}[1;31mERROR\u{1b}[0m";
        assert_eq!(written(line), line);
        assert_eq!(written("\u{1b}[2J"), "\\u001b[2J");
        assert_eq!(written("\u{1b}["), "\\u001b[");
    }

    #[test]
    fn escaping_inside_json_does_not_change_the_text() {
        let json = serde_json::json!({"title": "\u{202e}evil\u{85}"});
        let safe = written(&json.to_string());
        assert!(safe.is_ascii());
        assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).unwrap(), json);
    }
}
