//! Labels, numbers and escaping for the page. Every string that comes from an article passes through
//! [`escaped`].

use samestory_engine::model::{Fraction, Lang};
use samestory_engine::text::language;

use super::Kind;
use super::pair::TextLimit;
use crate::files::thousands;

pub(super) fn headline(articles: u64, copies: u64) -> String {
    match (articles, copies) {
        (0, _) => "No articles".to_owned(),
        (_, 0) => format!("{} articles, all unique", thousands(articles)),
        (_, 1) => format!("1 of {} articles repeats an earlier one", thousands(articles)),
        _ => format!("{} of {} articles repeat an earlier one", thousands(copies), thousands(articles)),
    }
}

pub(super) fn label(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Near => ("near", "near-duplicate"),
        Kind::Partial => ("partial", "partial copy"),
        Kind::Exact => ("exact", "exact"),
        Kind::Rewritten => ("near", "rewritten"),
        Kind::SameTemplate => ("template", "same template, different facts"),
        Kind::FollowUp => ("template", "follow-up"),
        Kind::SameFurniture => ("template", "same page furniture"),
        Kind::Extends => ("extends", "extends the earlier text"),
    }
}

pub(super) fn name(language: Lang) -> &'static str {
    if language == Lang::UND { "unknown language" } else { language::row(language).name }
}

pub(super) fn percent(fraction: Fraction) -> String {
    format!("{:.0}%", fraction.get() * 100.0)
}

pub(super) fn confidence(confidence: Fraction) -> String {
    // Never claim 100%: confidence is an estimate.
    format!("confidence {:.0}%", (confidence.get() * 100.0).min(99.0))
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
