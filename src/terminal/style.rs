//! Text styles for standard output: colours on a terminal, plain text otherwise or with `NO_COLOR`.

use std::io::{IsTerminal, stdout};

/// Applies styles, or returns texts unchanged where colours are off.
#[derive(Clone, Copy, Debug)]
pub struct Style(bool);

impl Style {
    /// Colours if standard output is a terminal and `NO_COLOR` is not set.
    pub fn for_stdout() -> Style {
        Style(stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()))
    }

    fn code(self, code: &str, text: &str) -> String {
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Bold text.
    pub fn bold(self, text: &str) -> String {
        self.code("1", text)
    }

    /// Faint text.
    pub fn dim(self, text: &str) -> String {
        self.code("2", text)
    }

    /// Highlights a passage that two texts have in common.
    pub fn common(self, text: &str) -> String {
        self.code("30;43", text)
    }
}

/// Untrusted text on one line, safe to show on a terminal.
pub fn printable(text: &str) -> String {
    crate::terminal::on_one_line(text)
}
