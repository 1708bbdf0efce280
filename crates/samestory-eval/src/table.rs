//! Formats a report as text for the terminal.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use super::labelled::{Expect, Label};
use super::report::{Counts, Report};
use super::score::{Calibration, Rate};

impl Display for Rate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.share {
            None => f.write_str("–"),
            Some(share) => {
                write!(f, "{:.4} ({} of {}; {:.3} to {:.3})", share, self.hits, self.of, self.low, self.high)
            }
        }
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} articles from {}", self.articles, self.files.join(", "))?;
        if self.not_judged > 0 {
            writeln!(f, "{} could not be judged: over the size limit", self.not_judged)?;
        }
        writeln!(f, "In parentheses: the counts and the 95 % confidence interval.")?;
        if let (Some(precision), Some(recall)) = (self.precision, self.recall) {
            writeln!(f, "\nprecision  {precision}  of the articles judged copies, those that are")?;
            writeln!(f, "recall     {recall}  of the copies, those judged copies")?;
            if let (Some(f1), Some(ari)) = (self.f1, self.ari) {
                writeln!(
                    f,
                    "F1         {f1:.4}\nARI        {ari:.4}  agreement of clusters with the true groups; 1 is perfect"
                )?;
            }
            self.kinds(f)?;
            self.languages(f)?;
        }
        self.listed_pairs(f)?;
        if let Some(calibration) = &self.confidence {
            confidences(f, calibration)?;
        }
        Ok(())
    }
}

impl Report {
    fn kinds(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let titles = [
            (Expect::Dup, "Copies: judged a copy of the right article"),
            (Expect::Gray, "Gray, not scored: judged a copy; as a part; otherwise named as extended"),
            (Expect::Unique, "Unique texts: judged a copy (false merge)"),
        ];
        for (expect, title) in titles {
            let mut rows: BTreeMap<String, Counts> = BTreeMap::new();
            for cell in self.cells.iter().filter(|cell| cell.expect == expect) {
                add(rows.entry(format!("{} {}", cell.kind, cell.level)).or_default(), &cell.counts);
            }
            if rows.is_empty() {
                continue;
            }
            writeln!(f, "\n{title}")?;
            for (name, counts) in rows {
                let Counts { of, found, wrong, partial, extends } = counts;
                write!(f, "  {name:<26} ")?;
                match expect {
                    Expect::Dup => writeln!(f, "{}{}", Rate::new(found, of), elsewhere(wrong))?,
                    Expect::Unique => writeln!(f, "{}", Rate::new(found + wrong, of))?,
                    Expect::Gray => writeln!(
                        f,
                        "{}, parts {partial}, extends {extends}{}",
                        Rate::new(found, of),
                        elsewhere(wrong)
                    )?,
                }
            }
        }
        Ok(())
    }

    fn languages(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut rows: BTreeMap<&str, (Counts, Counts)> = BTreeMap::new();
        for cell in &self.cells {
            let (dup, unique) = rows.entry(&cell.language).or_default();
            match cell.expect {
                Expect::Dup => add(dup, &cell.counts),
                Expect::Unique => add(unique, &cell.counts),
                Expect::Gray => {}
            }
        }
        writeln!(f, "\nBy language: recall of copies; false merges of unique texts")?;
        for (language, (dup, unique)) in rows {
            let merged = Rate::new(unique.found + unique.wrong, unique.of);
            writeln!(f, "  {language:<8} {:<44} {merged}", Rate::new(dup.found, dup.of).to_string())?;
        }
        Ok(())
    }

    fn listed_pairs(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut rows: BTreeMap<(Label, &str), (u64, u64)> = BTreeMap::new();
        for cell in &self.pairs {
            let (together, of) = rows.entry((cell.label, &cell.kind)).or_default();
            *together += cell.together;
            *of += cell.of;
        }
        if !rows.is_empty() {
            writeln!(f, "\nListed pairs brought together, by a verified match or in one cluster")?;
        }
        for ((label, kind), (together, of)) in rows {
            let wanted = match label {
                Label::Same => "should be",
                Label::Gray => "may be",
                Label::Different => "must not be",
            };
            writeln!(f, "  {kind:<44} {wanted:<12} {}", Rate::new(together, of))?;
        }
        Ok(())
    }
}

fn confidences(f: &mut Formatter<'_>, calibration: &Calibration) -> fmt::Result {
    writeln!(f, "\nCalibration: verdicts by confidence, and how many were right")?;
    for bin in &calibration.bins {
        writeln!(f, "  {:.2} to {:.2}  mean {:.3}  right {}", bin.from, bin.to, bin.said, bin.right)?;
    }
    writeln!(f, "  expected calibration error: {:.4}", calibration.expected_error)
}

fn elsewhere(wrong: u64) -> String {
    if wrong == 0 { String::new() } else { format!(", and {wrong} judged a copy of another article") }
}

fn add(sum: &mut Counts, more: &Counts) {
    sum.of += more.of;
    sum.found += more.found;
    sum.wrong += more.wrong;
    sum.partial += more.partial;
    sum.extends += more.extends;
}
