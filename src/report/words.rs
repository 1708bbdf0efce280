//! The words of the page outside of its data: labels, numbers, evidence in a sentence; and their escaping.

use samestory_engine::model::{Fraction, Lang};
use samestory_engine::text::language;

use super::pair::TextLimit;
use super::{PairKind, ReportPair};
use crate::files::thousands;

pub(super) fn headline(articles: u64, copies: u64) -> String {
    match (articles, copies) {
        (0, _) => "No articles".to_owned(),
        (_, 0) => format!("{} articles, all unique", thousands(articles)),
        (_, 1) => format!("1 of {} articles repeats an earlier one", thousands(articles)),
        _ => format!("{} of {} articles repeat an earlier one", thousands(copies), thousands(articles)),
    }
}

impl PairKind {
    /// The name in the page's data and style sheet.
    pub(super) const fn class(self) -> &'static str {
        match self {
            PairKind::Near => "near",
            PairKind::Partial => "partial",
            PairKind::Exact => "exact",
            PairKind::Rewritten => "rewritten",
            PairKind::Reviewed => "reviewed",
            PairKind::SameTemplate => "same-template",
            PairKind::FollowUp => "follow-up",
            PairKind::SameFurniture => "same-furniture",
            PairKind::Extends => "extends",
        }
    }
}

/// The name of a filter, by its class.
pub(super) fn kind_name(class: &str) -> &'static str {
    match class {
        "near" => "near-duplicates",
        "partial" => "partial copies",
        "exact" => "exact copies",
        "rewritten" => "rewritten",
        "reviewed" => "by --pairs",
        "same-template" => "same template, other facts",
        "follow-up" => "follow-ups",
        "same-furniture" => "same page furniture",
        "extends" => "extends the earlier text",
        "review" => "to review",
        _ => "other",
    }
}

/// The evidence for a verdict in one line: what speaks for a copy and what against, the strongest first.
pub(super) fn why(pair: &ReportPair) -> String {
    const SHOWN: usize = 4;
    if pair.kind == PairKind::Exact {
        return "The same text, word for word.".to_owned();
    }
    let contained = format!("{} of the later text is in the earlier one", percent(pair.containment));
    let mut evidence: Vec<_> = pair.evidence.iter().filter(|part| part.weight.abs() >= 100).collect();
    evidence.sort_by_key(|part| std::cmp::Reverse(part.weight.abs()));
    let side = |is_for: bool| {
        let parts = evidence.iter().filter(|part| (part.weight > 0) == is_for).take(SHOWN);
        parts
            .map(|part| format!("{} ({:+.1})", measured(part.measure, part.share, is_for), part.log_odds()))
            .collect::<Vec<_>>()
            .join(", ")
    };
    match (side(true), side(false)) {
        (a, b) if a.is_empty() && b.is_empty() => format!("{contained}."),
        (a, b) if b.is_empty() => format!("{contained}. For a copy: {a}."),
        (a, b) if a.is_empty() => format!("{contained}. Against a copy: {b}."),
        (a, b) => format!("{contained}. For a copy: {a}. Against: {b}."),
    }
}

/// A measure of docs/evidence.md in words.
fn measured(measure: &str, share: Fraction, is_for: bool) -> String {
    let share = percent(share);
    match (measure, is_for) {
        ("contained", _) => format!("{share} of the shorter wording shared"),
        ("rare", _) => format!("{share} of its rare phrases shared"),
        ("opening", _) => format!("{share} of the opening shared"),
        ("numbers", true) => "the same numbers".to_owned(),
        ("numbers", false) => "other numbers".to_owned(),
        ("numbers-replaced", true) => "no numbers replaced".to_owned(),
        ("numbers-replaced", false) => "numbers replaced".to_owned(),
        ("figures", true) => "exact figures in common".to_owned(),
        ("figures", false) => "no exact figures in common".to_owned(),
        ("names", true) => "the same names".to_owned(),
        ("names", false) => "other names".to_owned(),
        ("titles", true) => "a similar headline".to_owned(),
        ("titles", false) => "another headline".to_owned(),
        ("brevity", true) => "long enough".to_owned(),
        ("brevity", false) => "short".to_owned(),
        ("added", true) => "little added".to_owned(),
        ("added", false) => "adds more than it repeats".to_owned(),
        ("wall", true) => "no page notice".to_owned(),
        ("wall", false) => "looks like a page notice".to_owned(),
        ("digest", true) => "no digest".to_owned(),
        ("digest", false) => "one is a digest".to_owned(),
        (other, _) => format!("{other} {share}"),
    }
}

pub(super) fn name(language: Lang) -> &'static str {
    if language == Lang::UND { "unknown language" } else { language::row(language).name }
}

/// A share in percent, rounded down: 99.97% is not all.
pub(super) fn percent(fraction: Fraction) -> String {
    format!("{}%", fraction.steps() / 100)
}

/// Text from an article, truncated and escaped so that it is safe anywhere in the page, attributes included.
pub(super) fn escaped(text: &str, limit: TextLimit) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars().take(limit.length()) {
        push_escaped(&mut safe, c);
    }
    if text.chars().nth(limit.length()).is_some() {
        safe.push('…');
    }
    safe
}

pub(super) fn push_escaped(safe: &mut String, c: char) {
    match c {
        '&' => safe.push_str("&amp;"),
        '<' => safe.push_str("&lt;"),
        '>' => safe.push_str("&gt;"),
        '"' => safe.push_str("&quot;"),
        '\'' => safe.push_str("&#39;"),
        '\n' => safe.push('\n'),
        c if c.is_control() => safe.push(' '),
        c => safe.push(c),
    }
}
