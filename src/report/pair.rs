//! Two texts with their common passages marked.

use std::ops::Range;

use samestory_engine::text::language::Language;
use samestory_engine::text::passages::common_passages;

use super::words::push_escaped;
use crate::files::thousands;

/// How much of a text is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    Title,
    Text,
}

impl Cut {
    /// In characters.
    pub(super) const fn length(self) -> usize {
        match self {
            Cut::Title => 200,
            Cut::Text => 5000,
        }
    }
}

/// How much of a text is searched for passages: what is not shown is not worth searching.
const SEARCHED: usize = 64 * 1024;

/// The older and the newer text as HTML.
pub(super) fn side_by_side(old: &str, new: &str, language: &Language) -> [String; 2] {
    let (old, new) = (tidy(old), tidy(new));
    let passages = common_passages(beginning(&old), beginning(&new), language);
    let in_old = passages.iter().map(|passage| passage.a.clone()).collect();
    let in_new = passages.iter().map(|passage| passage.b.clone()).collect();
    [marked(&old, in_old), marked(&new, in_new)]
}

/// At most one empty line in a row, nothing at the ends: what is left of a page's markup.
fn tidy(text: &str) -> String {
    let mut tidy = String::with_capacity(text.len());
    let mut empty = 0;
    for line in text.trim().lines() {
        let line = line.trim_end();
        empty = if line.trim().is_empty() { empty + 1 } else { 0 };
        if empty < 2 {
            tidy.push_str(line);
            tidy.push('\n');
        }
    }
    tidy.truncate(tidy.trim_end().len());
    tidy
}

fn beginning(text: &str) -> &str {
    let mut end = text.len().min(SEARCHED);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn marked(text: &str, mut ranges: Vec<Range<usize>>) -> String {
    ranges.sort_unstable_by_key(|range| (range.start, range.end));
    let mut html = String::with_capacity(text.len() * 2);
    let mut ranges = ranges.into_iter().peekable();
    let mut open: Option<usize> = None;
    for (count, (at, c)) in text.char_indices().enumerate() {
        if open.is_some_and(|end| at >= end) {
            html.push_str("</mark>");
            open = None;
        }
        if count == Cut::Text.length() {
            if open.is_some() {
                html.push_str("</mark>");
            }
            let rest = text[at..].chars().count() as u64;
            html.push_str(&format!("<span class=\"more\"> … {} more characters</span>", thousands(rest)));
            return html;
        }
        // A passage of the newer text may stand in the older one twice: overlapping ranges are one mark.
        while let Some(range) = ranges.next_if(|range| range.start <= at) {
            if range.end > at && open.is_none() {
                html.push_str("<mark>");
                open = Some(range.end);
            } else if let Some(end) = &mut open {
                *end = range.end.max(*end);
            }
        }
        push_escaped(&mut html, c);
    }
    if open.is_some() {
        html.push_str("</mark>");
    }
    html
}
