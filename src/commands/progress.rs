//! The standard error of `samestory file`: a progress bar on a terminal, the first dead letters, and a summary at the end.
//! Implements [`Watch`], through which the run reports progress.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use samestory::files::{Counts, Summary, Watch, letter_line, thousands};
use samestory_engine::model::Lang;
use samestory_engine::model::{DeadLetter, DeadLetterReason};
use samestory_engine::text::language;

use samestory::terminal::progress_bar::ProgressBar;
use samestory::terminal::style::printable;

/// How many dead letters are printed; the rest are only counted.
const NAMED: u64 = 20;

pub(super) struct Progress {
    quiet: bool,
    bar: ProgressBar,
    /// Bytes of all inputs, if their sizes are known.
    total: Option<u64>,
    start: Instant,
    named: u64,
}

impl Progress {
    pub(super) fn new(total: Option<u64>, quiet: bool) -> Progress {
        Progress { quiet, bar: ProgressBar::new(quiet), total, start: Instant::now(), named: 0 }
    }

    /// Removes the progress bar.
    pub(super) fn clear(&mut self) {
        self.bar.clear();
    }

    pub(super) fn note(&mut self, text: &str) {
        self.bar.line(&format!("samestory: {}", printable(text)));
    }

    /// Shows a step without progress in place of the bar.
    pub(super) fn say(&mut self, text: &str) {
        self.bar.say(text);
    }

    pub(super) fn finish(&mut self, summary: &Summary, took: Duration, files: &[(&str, &Option<PathBuf>)]) {
        self.bar.clear();
        if self.quiet {
            return;
        }
        let mut text = String::new();
        if self.named < summary.dead() {
            text += &format!("… and {} more could not be read\n", thousands(summary.dead() - self.named));
        }
        text += &table(summary);
        for line in remarks(summary) {
            text += &format!("{line}\n");
        }
        let articles = summary.total().articles();
        let seconds = took.as_secs_f64();
        text += &format!(
            "{} articles in {seconds:.1} s ({} a second)\n",
            thousands(articles),
            thousands((articles as f64 / seconds.max(0.001)) as u64)
        );
        for (what, path) in files {
            if let Some(path) = path {
                text += &format!("{what:<9} {}\n", path.display());
            }
        }
        self.bar.print(&text);
    }
}

impl Watch for Progress {
    fn dead_letter(&mut self, letter: &DeadLetter) {
        if self.named < NAMED {
            self.named += 1;
            self.note(&letter_line(letter));
        }
    }

    fn partial(&mut self, path: &Path) {
        self.note(&format!("the partial output is in {}", path.display()));
    }

    fn unfinished(&mut self, name: &str, line: u64) {
        self.note(&format!(
            "{name}:{line}: the last line has no end yet; a later run will read it (--state)"
        ));
    }

    fn batch(&mut self, so_far: &Summary, bytes: u64) {
        let total = self.total.filter(|&total| total > 0);
        let share = total.map(|total| bytes as f64 / total as f64);
        self.bar.draw(share, || {
            let articles = so_far.total().articles();
            let rate = articles as f64 / self.start.elapsed().as_secs_f64().max(0.001);
            format!("{} articles  {}/s", thousands(articles), thousands(rate as u64))
        });
    }
}

/// One row per language, the largest first, and a total.
fn table(summary: &Summary) -> String {
    if summary.languages.is_empty() {
        return String::new();
    }
    let row = |name: &str, counts: &Counts| {
        let [articles, unique, near, exact] =
            [counts.articles(), counts.unique, counts.near, counts.exact].map(thousands);
        format!("{name:<22} {articles:>9} {unique:>9} {near:>9} {exact:>9}\n")
    };
    let mut text =
        format!("{:<22} {:>9} {:>9} {:>9} {:>9}\n", "language", "articles", "unique", "near", "exact");
    let mut languages: Vec<_> = summary.languages.iter().collect();
    languages.sort_by_key(|(language, counts)| (std::cmp::Reverse(counts.articles()), **language));
    for &(&language, counts) in &languages {
        let name = match language {
            Lang::UND => "unknown (und)".to_owned(),
            known => format!("{} ({known})", language::row(known).name),
        };
        text += &row(&name, counts);
    }
    if languages.len() > 1 {
        text += &row("all", &summary.total());
    }
    text
}

fn remarks(summary: &Summary) -> Vec<String> {
    let mut lines = Vec::new();
    if summary.dead() > 0 {
        let reasons = summary
            .dead_letters
            .iter()
            .map(|(reason, count)| format!("{} {}", thousands(*count), reason.as_str()));
        let reasons: Vec<String> = reasons.collect();
        lines.push(format!("{} could not be read: {}", thousands(summary.dead()), reasons.join(", ")));
    }
    let hints = [
        (DeadLetterReason::NoId, "name the id field with --field id=NAME, or use --id line"),
        (DeadLetterReason::NoBody, "name the text field with --field body=NAME"),
    ];
    for (reason, hint) in hints {
        if summary.dead_letters.contains_key(&reason) {
            lines.push(format!("  {}: {hint}", reason.as_str()));
        }
    }
    if summary.named_by_line > 0 {
        lines.push(format!("{} had no id and are named by file and line", thousands(summary.named_by_line)));
    }
    if summary.deletes > 0 {
        lines.push(format!("{} deletes", thousands(summary.deletes)));
    }
    if summary.reviewed > 0 {
        lines.push(format!("{} verdicts follow --pairs", thousands(summary.reviewed)));
    }
    if summary.expired > 0 {
        lines.push(format!("{} expired and were forgotten (--retention)", thousands(summary.expired)));
    }
    if summary.arrived_expired > 0 {
        let count = thousands(summary.arrived_expired);
        lines.push(format!(
            "{count} were already expired when they were read, and are not remembered (--retention)"
        ));
    }
    if summary.judged_before > 0 {
        lines.push(format!(
            "{} records were judged before (--state) and skipped",
            thousands(summary.judged_before)
        ));
    }
    if summary.written < summary.total().articles() {
        lines.push(format!("{} written (--only)", thousands(summary.written)));
    }
    let review = summary.total().review;
    if review > 0 {
        lines.push(format!("{} flagged for review", thousands(review)));
    }
    lines
}
