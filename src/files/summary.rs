//! The counts of a run over files, which the command prints and the HTML report shows.

use std::collections::{BTreeMap, HashMap};

use samestory_engine::model::{
    ArticleId, ClusterId, DeadLetter, DeadLetterReason, Flag, MatchType, Position, Verdict,
};
use samestory_engine::model::{Lang, VerdictKind};

/// The counts of a run over files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Verdicts by language.
    pub languages: BTreeMap<Lang, VerdictCounts>,
    /// Records that could not be judged, by reason.
    pub dead_letters: BTreeMap<DeadLetterReason, Refusals>,
    /// An input that ends inside a record, and the line of that record: others may be missing.
    pub truncated: Option<(String, u64)>,
    /// Articles that repeat another one, by its cluster.
    repeats: HashMap<ClusterId, Repeats>,
    /// Articles whose id an earlier one has, with another text.
    pub updates: u64,
    /// The first of them.
    pub first_update: Option<(ArticleId, Position)>,
    /// Delete records.
    pub deletes: u64,
    /// Articles that had no id and were named by file and line.
    pub named_by_line: u64,
    /// Records skipped because an earlier run on the same state judged them.
    pub judged_before: u64,
    /// Verdicts that `--pairs` decided or changed.
    pub reviewed: u64,
    /// Articles removed from the index because their retention passed.
    pub expired: u64,
    /// Articles that were already past their retention: judged, but not indexed.
    pub arrived_expired: u64,
    /// Verdicts written to the output; fewer than were given if `--only` filters them.
    pub written: u64,
}

/// The records that could not be judged for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusals {
    /// How many.
    pub count: u64,
    /// Some of them are not UTF-8.
    pub encoding: bool,
}

/// The articles of a cluster that repeat an earlier one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Repeats {
    count: u64,
    canonical: ArticleId,
}

/// Verdict counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerdictCounts {
    /// Unique articles.
    pub unique: u64,
    /// Near-duplicates.
    pub near: u64,
    /// Exact duplicates.
    pub exact: u64,
    /// Articles flagged for review, whatever their verdict.
    pub review: u64,
}

impl VerdictCounts {
    /// Articles judged.
    pub fn articles(&self) -> u64 {
        self.unique + self.near + self.exact
    }
}

impl std::ops::AddAssign for VerdictCounts {
    fn add_assign(&mut self, other: VerdictCounts) {
        self.unique += other.unique;
        self.near += other.near;
        self.exact += other.exact;
        self.review += other.review;
    }
}

impl Summary {
    /// The counts at the start of a run that skips these records.
    pub(super) fn resumed(judged_before: u64) -> Summary {
        Summary { judged_before, ..Summary::default() }
    }

    pub(super) fn count(&mut self, tagged: &Verdict) {
        let counts = self.languages.entry(tagged.language).or_default();
        match tagged.kind {
            VerdictKind::Unique => counts.unique += 1,
            VerdictKind::NearDuplicate => counts.near += 1,
            VerdictKind::ExactDuplicate => counts.exact += 1,
        }
        counts.review += u64::from(tagged.flags.contains(&Flag::Review));
        let is_same_article = tagged.match_type == Some(MatchType::SameArticle);
        if tagged.kind != VerdictKind::Unique && !is_same_article {
            let new = || Repeats { count: 0, canonical: tagged.canonical_id.clone() };
            self.repeats.entry(tagged.cluster.clone()).or_insert_with(new).count += 1;
        }
        if tagged.revision > 0 && !is_same_article {
            self.updates += 1;
            self.first_update.get_or_insert_with(|| (tagged.id.clone(), tagged.input.clone()));
        }
    }

    pub(super) fn refuse(&mut self, letter: &DeadLetter) {
        let new = Refusals { count: 0, encoding: false };
        let refusals = self.dead_letters.entry(letter.reason).or_insert(new);
        refusals.count += 1;
        refusals.encoding |= letter.message.contains("not UTF-8");
    }

    /// Records that were read in this run and could not be judged, as a fraction of all.
    pub fn refused(&self) -> f64 {
        let dead = self.dead() as f64;
        dead / (dead + self.total().articles() as f64 + self.deletes as f64).max(1.0)
    }

    /// True if there were records, and none could be judged.
    pub fn judged_nothing(&self) -> bool {
        self.dead() > 0 && self.total().articles() == 0 && self.deletes == 0
    }

    /// Groups of articles with the same text: their number, the size of the largest, and the canonical of that one.
    pub fn groups(&self) -> Option<(u64, u64, &ArticleId)> {
        let largest = self.repeats.iter().max_by(|(a, one), (b, other)| {
            // Among equals the first cluster, so that two runs say the same.
            one.count.cmp(&other.count).then_with(|| b.cmp(a))
        });
        largest.map(|(_, largest)| (self.repeats.len() as u64, largest.count + 1, &largest.canonical))
    }

    /// True if all of a good number of articles have one text, which is a wrong column more often than a wave of copies.
    pub fn is_one_text(&self) -> bool {
        const ENOUGH: u64 = 10;
        let total = self.total();
        total.articles() >= ENOUGH && total.exact + 1 == total.articles() && self.repeats.len() == 1
    }

    /// The counts over all languages.
    pub fn total(&self) -> VerdictCounts {
        let mut total = VerdictCounts::default();
        self.languages.values().for_each(|&counts| total += counts);
        total
    }

    /// Dead letters over all reasons.
    pub fn dead(&self) -> u64 {
        self.dead_letters.values().map(|refusals| refusals.count).sum()
    }
}

/// A number with thousands separators: 12345678 → 12,345,678.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::thousands;

    #[test]
    fn digits_are_grouped_in_threes() {
        let numbers = [0, 999, 1000, 12_345_678].map(thousands);
        assert_eq!(numbers, ["0", "999", "1,000", "12,345,678"]);
    }
}
