//! Compares verdicts with labels: counts by language and kind, and the scores computed from them. Its JSON
//! form is the output of `samestory eval --save`.

use std::collections::BTreeMap;

use serde::Serialize;

use samestory_engine::model::RelationKind;
use samestory_engine::model::{MatchType, VerdictKind};

use super::labelled::{Expect, Label, Set};
use super::run::{Outcome, Run};
use super::score::{Calibration, Rate, adjusted_rand, calibration, f1};

/// Counts of articles of one language that were edited in the same way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Number of articles.
    pub of: u64,
    /// Judged a copy of an article of their own group.
    pub found: u64,
    /// Judged a copy of something else.
    pub wrong: u64,
    /// Those of `found` that matched as a part.
    pub partial: u64,
    /// Not judged a copy, but an article of their group is named as extended.
    pub extends: u64,
}

/// `Counts` with their labels.
#[derive(Clone, Debug, Serialize)]
pub struct Cell {
    /// The language in the file.
    pub language: String,
    /// How the text was edited.
    pub kind: String,
    /// How strongly it was edited.
    pub level: String,
    /// The expected verdict.
    pub expect: Expect,
    /// The verdicts.
    #[serde(flatten)]
    pub counts: Counts,
}

/// Counts of listed pairs of one kind.
#[derive(Clone, Debug, Serialize)]
pub struct PairCell {
    /// The kind of pair.
    pub kind: String,
    /// Their label.
    pub label: Label,
    /// The language in the file.
    pub language: String,
    /// Number of pairs.
    pub of: u64,
    /// How many of them the engine brought together.
    pub together: u64,
}

/// A verdict that differs from the expected one.
#[derive(Clone, Debug, Serialize)]
pub struct Mistake {
    /// The article.
    pub id: String,
    /// How its text was edited.
    pub kind: String,
    /// The expected verdict.
    pub expect: Expect,
    /// The actual verdict.
    pub verdict: &'static str,
    /// The article it was judged a copy of.
    pub duplicate_of: Option<String>,
    /// Similarity to the closest candidate.
    pub similarity: f64,
    /// Confidence of the verdict.
    pub confidence: f64,
}

/// Precision and recall against people's labels: what a dashboard shows of a [`Report`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Accuracy {
    /// Labels that count: all but the gray ones.
    pub labels: u64,
    /// Of what was called the same, the fraction that people call the same.
    pub precision: Rate,
    /// Of what people call the same, the fraction that was called the same.
    pub recall: Rate,
}

/// All measurements of an evaluation.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// The files that were read.
    pub files: Vec<String>,
    /// Number of articles.
    pub articles: u64,
    /// Articles that could not be judged.
    pub not_judged: u64,
    /// Precision: the fraction of articles judged copies that copy an article of their own group.
    pub precision: Option<Rate>,
    /// Recall: the fraction of expected copies that were judged a copy of an article of their own group.
    pub recall: Option<Rate>,
    /// Harmonic mean of precision and recall.
    pub f1: Option<f64>,
    /// Adjusted Rand index of clusters against groups.
    pub ari: Option<f64>,
    /// By language, kind and level.
    pub cells: Vec<Cell>,
    /// By kind and language.
    pub pairs: Vec<PairCell>,
    /// Calibration of verdicts that say copy.
    pub confidence_of_copies: Option<Calibration>,
    /// Calibration of verdicts that say unique.
    pub confidence_of_unique: Option<Calibration>,
    /// Calibration of all verdicts.
    pub confidence: Option<Calibration>,
    /// The most confident mistakes first.
    pub mistakes: Vec<Mistake>,
}

/// Maximum number of mistakes listed.
const LISTED: usize = 500;

impl Report {
    /// Scores runs, each with its set.
    pub fn new(runs: &[(Set, Run)]) -> Report {
        let mut report = Report::default();
        let mut cells: BTreeMap<(String, String, String, Expect), Counts> = BTreeMap::new();
        let mut pairs: BTreeMap<(String, Label, String), (u64, u64)> = BTreeMap::new();
        let (mut copies, mut unique) = (Vec::new(), Vec::new());
        let mut groupings = Vec::new();
        for (number, (set, run)) in runs.iter().enumerate() {
            report.files.push(set.name.clone());
            report.articles += set.articles.len() as u64;
            for (at, outcome) in run.outcomes.iter().enumerate() {
                let Some(outcome) = outcome else {
                    report.not_judged += 1;
                    continue;
                };
                let one = &set.articles[at];
                let Some(expect) = one.expect else { continue };
                let counts = cells
                    .entry((one.kind.clone(), one.level.clone(), one.language.clone(), expect))
                    .or_default();
                let own = |other: usize| set.articles[other].group == one.group;
                let right = count(counts, outcome, own, expect);
                if expect == Expect::Gray {
                    continue;
                }
                groupings.push(((number, one.group.as_ref()), (number, outcome.cluster.as_ref())));
                let confidence = (outcome.confidence.get(), right);
                if outcome.verdict == VerdictKind::Unique { &mut unique } else { &mut copies }
                    .push(confidence);
                if !right {
                    report.mistakes.push(Mistake {
                        id: one.article.id.as_str().to_owned(),
                        kind: format!("{} {}", one.kind, one.level),
                        expect,
                        verdict: outcome.verdict.as_str(),
                        duplicate_of: outcome.duplicate_of.map(|of| set.articles[of].article.id.to_string()),
                        similarity: outcome.similarity.get(),
                        confidence: outcome.confidence.get(),
                    });
                }
            }
            for (pair, &together) in set.pairs.iter().zip(&run.together) {
                let language = set.articles[pair.new].language.clone();
                let short = |at: usize| run.outcomes[at].as_ref().is_some_and(|outcome| outcome.short);
                let ending = if short(pair.old) || short(pair.new) { ", short texts" } else { "" };
                let kind = format!("{}{ending}", pair.kind);
                let (of, merged) = pairs.entry((kind, pair.label, language)).or_default();
                *of += 1;
                *merged += u64::from(together);
            }
        }
        let sum = |expect: Expect, of: fn(&Counts) -> u64| -> u64 {
            cells.iter().filter(|((.., one), _)| *one == expect).map(|(_, counts)| of(counts)).sum()
        };
        if !cells.is_empty() {
            let found = sum(Expect::Dup, |counts| counts.found);
            let wrong = sum(Expect::Dup, |counts| counts.wrong)
                + sum(Expect::Unique, |counts| counts.wrong + counts.found);
            let precision = Rate::new(found, found + wrong);
            let recall = Rate::new(found, sum(Expect::Dup, |counts| counts.of));
            report.f1 = f1(precision, recall);
            (report.precision, report.recall) = (Some(precision), Some(recall));
            report.ari = Some(adjusted_rand(groupings));
            report.confidence_of_copies = Some(calibration(&copies));
            report.confidence_of_unique = Some(calibration(&unique));
            report.confidence = Some(calibration(&[copies, unique].concat()));
        }
        report.cells = cells
            .into_iter()
            .map(|((kind, level, language, expect), counts)| Cell { language, kind, level, expect, counts })
            .collect();
        report.pairs = pairs
            .into_iter()
            .map(|((kind, label, language), (of, together))| PairCell { kind, label, language, of, together })
            .collect();
        report.mistakes.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
        report.mistakes.truncate(LISTED);
        report
    }

    /// The accuracy on labelled articles, if there are any.
    pub fn accuracy_of_articles(&self) -> Option<Accuracy> {
        let scored = self.cells.iter().filter(|cell| cell.expect != Expect::Gray);
        let labels = scored.map(|cell| cell.counts.of).sum();
        Some(Accuracy { labels, precision: self.precision?, recall: self.recall? })
    }

    /// The accuracy on listed pairs, if any is labelled same or different. A pair that was brought together counts as
    /// called the same.
    pub fn accuracy_of_pairs(&self) -> Option<Accuracy> {
        let sum = |label: Label, of: fn(&PairCell) -> u64| -> u64 {
            self.pairs.iter().filter(|cell| cell.label == label).map(of).sum()
        };
        let (same, different) = (sum(Label::Same, |cell| cell.of), sum(Label::Different, |cell| cell.of));
        let found = sum(Label::Same, |cell| cell.together);
        let wrong = sum(Label::Different, |cell| cell.together);
        (same + different > 0).then(|| Accuracy {
            labels: same + different,
            precision: Rate::new(found, found + wrong),
            recall: Rate::new(found, same),
        })
    }
}

/// Counts an outcome; returns whether it is as expected.
fn count(counts: &mut Counts, outcome: &Outcome, own: impl Fn(usize) -> bool, expect: Expect) -> bool {
    counts.of += 1;
    let copy = outcome.verdict != VerdictKind::Unique;
    let found = copy && outcome.duplicate_of.is_some_and(&own);
    counts.found += u64::from(found);
    counts.wrong += u64::from(copy && !found);
    counts.partial += u64::from(found && outcome.match_type == Some(MatchType::Partial));
    let extends =
        |&(other, relation): &(usize, RelationKind)| relation == RelationKind::Extends && own(other);
    counts.extends += u64::from(!found && outcome.related.iter().any(extends));
    match expect {
        Expect::Unique => !copy,
        Expect::Dup | Expect::Gray => found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use samestory_engine::model::{Fraction, Lang};

    fn outcome(verdict: VerdictKind, duplicate_of: Option<usize>) -> Outcome {
        Outcome {
            verdict,
            match_type: duplicate_of.map(|_| MatchType::Near),
            duplicate_of,
            similarity: Fraction::new(0.8),
            confidence: Fraction::new(0.9),
            language: Lang::UND,
            cluster: None,
            short: false,
            related: vec![(3, RelationKind::Extends)],
        }
    }

    #[test]
    fn a_copy_of_an_unrelated_article_is_wrong_whatever_was_expected() {
        let mut counts = Counts::default();
        let stranger = outcome(VerdictKind::NearDuplicate, Some(7));
        assert!(!count(&mut counts, &stranger, |other| other == 1, Expect::Dup));
        assert!(!count(&mut counts, &stranger, |other| other == 1, Expect::Unique));
        assert!(count(
            &mut counts,
            &outcome(VerdictKind::NearDuplicate, Some(1)),
            |other| other == 1,
            Expect::Dup
        ));
        assert!(count(&mut counts, &outcome(VerdictKind::Unique, None), |other| other == 3, Expect::Unique));
        assert_eq!(counts, Counts { of: 4, found: 1, wrong: 2, partial: 0, extends: 1 });
    }

    #[test]
    fn gray_pairs_are_part_of_no_accuracy() {
        let cell = |label, of, together| PairCell {
            kind: String::new(),
            label,
            language: "en".to_owned(),
            of,
            together,
        };
        let mut report = Report {
            pairs: vec![cell(Label::Same, 10, 8), cell(Label::Gray, 50, 25), cell(Label::Different, 30, 2)],
            ..Report::default()
        };
        let accuracy = report.accuracy_of_pairs().unwrap();
        assert_eq!(accuracy.labels, 40);
        assert_eq!((accuracy.precision, accuracy.recall), (Rate::new(8, 10), Rate::new(8, 10)));
        assert_eq!(report.accuracy_of_articles(), None);
        report.pairs.retain(|cell| cell.label == Label::Gray);
        assert_eq!(report.accuracy_of_pairs(), None);
    }
}
