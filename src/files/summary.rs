//! What a run amounted to.

use std::collections::BTreeMap;

use samestory_engine::model::{DeadLetterReason, Flag, Tagged};
use samestory_engine::model::{Lang, Verdict};

/// What a run amounted to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Verdicts by language.
    pub languages: BTreeMap<Lang, Counts>,
    /// What could not be judged.
    pub dead_letters: BTreeMap<DeadLetterReason, u64>,
    /// Deletes.
    pub deletes: u64,
    /// Articles that had no id and were named by file and line.
    pub named_by_line: u64,
    /// Records that an earlier run on the same state had judged.
    pub judged_before: u64,
    /// Articles whose verdict pairs had a say in.
    pub reviewed: u64,
    /// Articles that were forgotten because their retention was over.
    pub expired: u64,
    /// Articles whose retention was over when they came: judged, not remembered.
    pub arrived_expired: u64,
    /// Verdicts written; fewer than given where only some are wanted.
    pub written: u64,
}

/// Verdicts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// New texts.
    pub unique: u64,
    /// Near-duplicates.
    pub near: u64,
    /// Exact duplicates.
    pub exact: u64,
    /// Of all these, such as people should look at.
    pub review: u64,
}

impl Counts {
    /// All of them.
    pub fn articles(&self) -> u64 {
        self.unique + self.near + self.exact
    }
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.unique += other.unique;
        self.near += other.near;
        self.exact += other.exact;
        self.review += other.review;
    }
}

impl Summary {
    pub(super) fn count(&mut self, tagged: &Tagged) {
        let counts = self.languages.entry(tagged.language).or_default();
        match tagged.verdict {
            Verdict::Unique => counts.unique += 1,
            Verdict::NearDuplicate => counts.near += 1,
            Verdict::ExactDuplicate => counts.exact += 1,
        }
        counts.review += u64::from(tagged.flags.contains(&Flag::Review));
    }

    /// Over all languages.
    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        self.languages.values().for_each(|&counts| total += counts);
        total
    }

    /// All that could not be judged.
    pub fn dead(&self) -> u64 {
        self.dead_letters.values().sum()
    }
}

/// A number as people read it: 12345678 → 12,345,678.
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
    fn digits_stand_in_groups_of_three() {
        let numbers = [0, 999, 1000, 12_345_678].map(thousands);
        assert_eq!(numbers, ["0", "999", "1,000", "12,345,678"]);
    }
}
