//! Rewrites: texts that say the same in other phrases, too few of which are left for a similarity above the threshold.
//!
//! Words and numbers alone do not tell a rewrite from another story written by one form: two bond issues have as much in
//! common. What does is who else has the phrases that two texts share. Those of a form stand in every report that was
//! written by it; those of an article stand in its copies.

use crate::fingerprint::Fingerprint;
use crate::model::DocumentNumber;
use crate::store::Document;

use super::compare::{Comparison, Rules};

/// Share of the shorter text's words that are in the longer.
const WORDS: f64 = 0.5;
/// Share of the numbers that a rewrite keeps, where there are enough of them for the numerals guard.
const NUMBERS: f64 = 0.9;
/// A rewrite is at least this share of the other as long. What is shorter is a part, or a text that quotes one.
const LENGTH: f64 = 0.65;
/// No more than this share of one text is in the other: what has more in common and is below the threshold is a part, with
/// something else around it.
const APART: f64 = 0.65;

/// Whether two texts that are not alike by their phrases may say the same: they do, if nobody else has the phrases that
/// they share ([`theirs_alone`]).
pub(super) fn may_be(
    old: &Fingerprint,
    new: &Fingerprint,
    pair: &Comparison,
    numerals: Option<(u32, f64)>,
    rules: &Rules,
) -> bool {
    let (shorter, longer) = (old.tokens.min(new.tokens), old.tokens.max(new.tokens));
    // Two short texts are not compared by their phrases. Of a short one and another, every number counts.
    let (enough, agree) = if shorter < rules.min_tokens { (1, 1.0) } else { (rules.numerals, NUMBERS) };
    let other_numbers = numerals.is_some_and(|(count, share)| count >= enough && share < agree);
    shorter >= rules.shortest().max(1)
        && longer >= rules.min_tokens
        && pair.similarity >= rules.rewritten
        && f64::from(shorter) >= LENGTH * f64::from(longer)
        && pair.new_in_old.max(pair.old_in_new) < APART
        && words_in_common(pair.distance, f64::from(longer) / f64::from(shorter)) >= WORDS
        && (rules.numerals == Rules::UNGUARDED || !other_numbers)
}

/// Estimated share of the shorter text's words that are in the longer, which is so many times as long: by the angle
/// between two sets of words that so many of 128 bits stand for.
fn words_in_common(distance: u32, longer: f64) -> f64 {
    (std::f64::consts::PI * f64::from(distance) / 128.0).cos() * longer.sqrt()
}

/// Of the documents that posted a phrase, the newest so many are asked whose it is.
const ASKED: usize = 8;
/// So many phrases must be theirs at least…
const PHRASES: usize = 2;
/// …and one in so many of those that they share.
const ONE_IN: usize = 2;
/// A phrase is theirs if at most so many other clusters have it: an earlier rewrite may have been missed.
const OTHERS: usize = 1;

/// Those of the documents that posted a phrase who are asked, and only if this one did.
pub(super) fn asked(phrase: &[DocumentNumber], document: DocumentNumber) -> Option<&[DocumentNumber]> {
    phrase.contains(&document).then(|| &phrase[..phrase.len().min(ASKED)])
}

/// Whether the phrases that a text shares with a document are its cluster's and theirs alone. `phrases` are the text's,
/// each as the documents that posted it, the newest first; `cluster_of` knows those of the documents that are not expired.
pub(super) fn theirs_alone(
    document: &Document,
    phrases: &[&[DocumentNumber]],
    cluster_of: impl Fn(DocumentNumber) -> Option<DocumentNumber>,
) -> bool {
    let (mut shared, mut own) = (0, 0);
    for asked in phrases.iter().filter_map(|phrase| asked(phrase, document.number)) {
        let mut others: Vec<DocumentNumber> = asked
            .iter()
            .filter_map(|&number| cluster_of(number))
            .filter(|&c| c != document.cluster)
            .collect();
        others.sort_unstable();
        others.dedup();
        shared += 1;
        own += usize::from(others.len() <= OTHERS);
    }
    own >= PHRASES && own * ONE_IN >= shared
}
