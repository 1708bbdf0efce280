//! A progress bar on standard error, drawn only if that is a terminal.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

/// Time between two redraws.
const REDRAW: Duration = Duration::from_millis(100);
const WIDTH: usize = 24;

/// A progress bar on standard error. It draws nothing where that is not a terminal.
#[derive(Debug)]
pub struct ProgressBar {
    terminal: bool,
    drawn: Option<Instant>,
}

impl ProgressBar {
    /// A bar that is drawn on a terminal, unless `quiet`.
    pub fn new(quiet: bool) -> ProgressBar {
        ProgressBar { terminal: !quiet && stderr().is_terminal(), drawn: None }
    }

    /// Writes to standard error. Errors are ignored: a closed standard error must not end the run.
    pub fn print(&self, text: &str) {
        let _gone = stderr().write_all(text.as_bytes());
    }

    /// Erases the bar.
    pub fn clear(&mut self) {
        if self.drawn.take().is_some() {
            self.print("\r\x1b[K");
        }
    }

    /// Prints a permanent line, on a terminal or not.
    pub fn line(&mut self, text: &str) {
        self.clear();
        self.print(&format!("{text}\n"));
    }

    /// Shows a message in place of the bar, for a step that takes a moment.
    pub fn say(&mut self, text: &str) {
        if self.terminal {
            self.print(&format!("\r\x1b[K{text} …"));
            self.drawn = Some(Instant::now());
        }
    }

    /// Redraws the bar with the fraction that is done, if known, and a text. Does nothing if it was drawn a
    /// moment ago.
    pub fn draw(&mut self, share: Option<f64>, words: impl FnOnce() -> String) {
        if !self.terminal || self.drawn.is_some_and(|drawn| drawn.elapsed() < REDRAW) {
            return;
        }
        let words = words();
        let line = match share {
            Some(share) => {
                let share = share.clamp(0.0, 1.0);
                let eighths = (share * WIDTH as f64 * 8.0) as usize;
                let part = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
                let filled = format!("{}{part}", "█".repeat(eighths / 8));
                format!("{:3.0} % {filled:<WIDTH$}  {words}", share * 100.0)
            }
            None => words,
        };
        self.print(&format!("\r\x1b[K{line}"));
        self.drawn = Some(Instant::now());
    }
}
