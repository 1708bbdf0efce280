//! The standard error of `samestory file`: how each input is read, a progress bar on a terminal, one report per kind of error,
//! and a summary at the end. Implements [`Watch`], through which the run reports progress.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use samestory::files::{ReadAs, Refusals, Summary, VerdictCounts, Watch, letter_line, thousands};
use samestory_engine::model::{DeadLetter, DeadLetterReason, Lang, Position};
use samestory_engine::text::language;

use samestory::terminal::progress_bar::ProgressBar;
use samestory::terminal::style::printable;

/// Kinds of errors that are reported when they first occur.
const KINDS: usize = 20;
/// The exit code after a signal: 128 and SIGINT, as shells have it.
const INTERRUPTED: i32 = 130;

pub(super) struct RunProgress {
    quiet: bool,
    bar: ProgressBar,
    /// Bytes of all inputs, if their sizes are known.
    total: Option<u64>,
    start: Instant,
    /// The kinds of errors reported so far.
    kinds: BTreeSet<(DeadLetterReason, String)>,
    /// How the inputs so far are read; inputs that are read alike are reported once.
    read_as: Vec<ReadAs>,
    output: Option<PathBuf>,
    has_state: bool,
}

impl RunProgress {
    pub(super) fn new(
        total: Option<u64>,
        quiet: bool,
        output: Option<PathBuf>,
        has_state: bool,
    ) -> RunProgress {
        RunProgress {
            quiet,
            bar: ProgressBar::new(quiet),
            total,
            start: Instant::now(),
            kinds: BTreeSet::new(),
            read_as: Vec::new(),
            output,
            has_state,
        }
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
        let has = |name: &str| files.iter().any(|(what, path)| *what == name && path.is_some());
        let mut text = table(summary);
        for line in
            groups(summary).into_iter().chain(remarks(summary, has("letters"))).chain(warnings(summary))
        {
            text += &format!("{}\n", printable(&line));
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
        if let Some(next) = next(summary, has("report")) {
            text += &format!("next: {next}\n");
        }
        self.bar.print(&text);
    }
}

/// A message without the numbers and names in it, which differ from record to record.
fn kind(message: &str) -> String {
    let mut kind = String::new();
    let mut quoted = false;
    for c in message.chars() {
        match c {
            '"' => quoted = !quoted,
            _ if quoted => {}
            c if c.is_ascii_digit() => {
                if !kind.ends_with('#') {
                    kind.push('#');
                }
                continue;
            }
            _ => {}
        }
        kind.push(c);
    }
    // The rest lists the fields of that record.
    kind.truncate(kind.find("; the record has").unwrap_or(kind.len()));
    kind
}

impl Watch for RunProgress {
    fn reading(&mut self, read_as: &ReadAs) {
        if !self.quiet && !self.read_as.iter().any(|other| other.is_like(read_as)) {
            self.note(&read_as.to_string());
            self.read_as.push(read_as.clone());
        }
    }

    fn dead_letter(&mut self, letter: &DeadLetter) {
        if self.kinds.len() < KINDS && self.kinds.insert((letter.reason, kind(&letter.message))) {
            self.note(&letter_line(letter));
        }
    }

    fn left_out(&mut self, keys: &[String]) {
        self.note(&format!(
            "warning: not in the output, because they first appear after its columns were chosen: {}; NDJSON has everything",
            keys.join(", ")
        ));
    }

    fn interrupted(&mut self, so_far: &Summary, partial: Option<&Path>) {
        let written = thousands(so_far.written);
        let what = match (&self.output, partial) {
            (Some(_), None) if self.has_state => {
                format!(
                    "{written} verdicts are written and remembered; the same command continues after them"
                )
            }
            (Some(output), Some(partial)) => format!(
                "{written} verdicts are complete in {}; {} is unchanged",
                partial.display(),
                output.display()
            ),
            _ => format!("{written} verdicts were written, all of them complete"),
        };
        self.note(&format!("interrupted: {what}"));
        // The thread that reads standard input may wait forever.
        std::process::exit(INTERRUPTED);
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
    let row = |name: &str, counts: &VerdictCounts| {
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

/// The groups of articles with the same text, and how much of the input repeats another article.
fn groups(summary: &Summary) -> Option<String> {
    let total = summary.total();
    let (groups, largest, canonical) = summary.groups()?;
    let share = (total.near + total.exact) as f64 * 100.0 / total.articles().max(1) as f64;
    let noun = if groups == 1 { "group" } else { "groups" };
    Some(format!(
        "{} {noun} of articles with the same text; {share:.1} % of the articles repeat another; the largest group has {} ({canonical})",
        thousands(groups),
        thousands(largest)
    ))
}

/// One line per kind of error, with a count and the fix.
fn refusals(summary: &Summary, kept: bool) -> Vec<String> {
    if summary.dead() == 0 {
        return Vec::new();
    }
    let (dead, all) = (summary.dead(), summary.dead() + summary.total().articles() + summary.deletes);
    let mut lines = vec![format!("{} of {} records could not be judged:", thousands(dead), thousands(all))];
    for (&reason, refusals) in &summary.dead_letters {
        let count = thousands(refusals.count);
        lines.push(format!("  {count} {}: {}", reason.as_str(), fix(reason, refusals)));
    }
    if !kept {
        lines.push("  --dead-letters FILE keeps them all, each with its reason".to_owned());
    }
    lines
}

fn fix(reason: DeadLetterReason, refusals: &Refusals) -> &'static str {
    match reason {
        DeadLetterReason::NoId => "name the id field with --field id=NAME, or use --id line",
        DeadLetterReason::NoBody => "name the text field with --field body=NAME",
        DeadLetterReason::WrongType => "map the field to another one with --field NAME=PATH",
        DeadLetterReason::TooLarge => {
            "shorten them, or raise text.max_raw_bytes or text.max_bytes with --set"
        }
        DeadLetterReason::Undecodable if refusals.encoding => {
            "name the encoding with --encoding, for example --encoding windows-1252"
        }
        DeadLetterReason::Undecodable => "fix these lines, or name the format with --format",
        DeadLetterReason::TooDeep | DeadLetterReason::LongNumber => {
            "consumers could not parse them; flatten them at the source"
        }
        DeadLetterReason::NotOwner => "their ids do not begin with their source (input.owner)",
        DeadLetterReason::ParserPanicked => "please report one of them",
        DeadLetterReason::UnknownSchema | DeadLetterReason::Undeliverable | DeadLetterReason::Unreadable => {
            "look at the messages above"
        }
    }
}

fn remarks(summary: &Summary, kept: bool) -> Vec<String> {
    let mut lines = refusals(summary, kept);
    if summary.named_by_line > 0 {
        lines.push(format!("{} had no id and are named by file and line", thousands(summary.named_by_line)));
    }
    if summary.deletes > 0 {
        lines.push(format!("{} deletes", thousands(summary.deletes)));
    }
    if summary.reviewed > 0 {
        lines.push(format!("{} verdicts follow --pairs", thousands(summary.reviewed)));
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

/// Warnings about a run whose verdicts are doubtful as a whole.
fn warnings(summary: &Summary) -> Vec<String> {
    let mut lines = Vec::new();
    if summary.is_one_text() {
        lines.push(
            "warning: every article has the same text; name the column of the text with --field body=NAME"
                .to_owned(),
        );
    }
    if let Some((id, position)) = &summary.first_update {
        let place = match position {
            Position::File { file, line } => format!("{file}:{line}"),
            Position::Topic { topic, partition, offset } => format!("{topic}/{partition} offset {offset}"),
        };
        lines.push(format!(
            "warning: {} the id of an earlier one and another text, and replaced it (the first: {id}, {place}); if these are different articles, name another id with --field id=NAME",
            match summary.updates {
                1 => "1 article has".to_owned(),
                updates => format!("{} articles have", thousands(updates)),
            },
        ));
    }
    if summary.expired > 0 {
        lines.push(format!(
            "warning: {} expired and were forgotten (--retention): later copies of them are unique",
            thousands(summary.expired)
        ));
    }
    if summary.arrived_expired > 0 {
        let count = thousands(summary.arrived_expired);
        lines.push(format!(
            "warning: {count} were already expired when they were read, and are not remembered (--retention); sort the input by date, or leave --retention out"
        ));
    }
    lines
}

/// The next step to suggest.
fn next(summary: &Summary, has_report: bool) -> Option<&'static str> {
    let total = summary.total();
    match () {
        () if summary.judged_nothing() => Some("look at the first line above: are these the right columns?"),
        () if total.near + total.exact == 0 => None,
        () if !has_report => {
            Some("--html report.html shows the groups side by side; --only unique writes each text once")
        }
        () if total.review > 0 => {
            Some("open the report and look at the doubtful ones; --pairs corrects a verdict")
        }
        () => Some("--only unique writes each text once"),
    }
}
