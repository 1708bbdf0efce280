//! Renders two texts as HTML with their common passages highlighted. All text is escaped character by
//! character.

use std::ops::Range;

use samestory_engine::text::language::Language;
use samestory_engine::text::passages::common_passages;

use super::words::push_escaped;
use crate::files::thousands;

/// Where a string is shown, and therefore how much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextLimit {
    Title,
    Text,
}

impl TextLimit {
    /// The limit in characters.
    pub(super) const fn length(self) -> usize {
        match self {
            TextLimit::Title => 200,
            TextLimit::Text => 5000,
        }
    }
}

/// Bytes of a text searched for common passages. The page shows far less, so searching more would be wasted.
const SEARCHED: usize = 64 * 1024;

/// The earlier and the later text as HTML.
pub(super) fn side_by_side(old: &str, new: &str, language: &Language) -> [String; 2] {
    let (old, new) = (collapse_blank_lines(old), collapse_blank_lines(new));
    let passages = common_passages(beginning(&old), beginning(&new), language);
    let in_old = passages.iter().map(|passage| passage.a.clone()).collect();
    let in_new = passages.iter().map(|passage| passage.b.clone()).collect();
    [highlight(&old, in_old), highlight(&new, in_new)]
}

/// Collapses runs of blank lines, which removed markup leaves behind, and trims both ends.
fn collapse_blank_lines(text: &str) -> String {
    let mut collapsed = String::with_capacity(text.len());
    let mut empty = 0;
    for line in text.trim().lines() {
        let line = line.trim_end();
        empty = if line.trim().is_empty() { empty + 1 } else { 0 };
        if empty < 2 {
            collapsed.push_str(line);
            collapsed.push('\n');
        }
    }
    collapsed.truncate(collapsed.trim_end().len());
    collapsed
}

fn beginning(text: &str) -> &str {
    let mut end = text.len().min(SEARCHED);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn highlight(text: &str, mut ranges: Vec<Range<usize>>) -> String {
    ranges.sort_unstable_by_key(|range| (range.start, range.end));
    let mut html = String::with_capacity(text.len() * 2);
    let mut ranges = ranges.into_iter().peekable();
    let mut open: Option<usize> = None;
    for (count, (at, c)) in text.char_indices().enumerate() {
        if open.is_some_and(|end| at >= end) {
            html.push_str("</mark>");
            open = None;
        }
        if count == TextLimit::Text.length() {
            if open.is_some() {
                html.push_str("</mark>");
            }
            let rest = text[at..].chars().count() as u64;
            html.push_str(&format!("<span class=\"more\"> … {} more characters</span>", thousands(rest)));
            return html;
        }
        // Passages may overlap, because one text can repeat a passage of the other; merge them into one mark.
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
