//! Compares the two texts of a pair for the page: the ranges of each that are marked, in the units of JavaScript's strings.

use std::ops::Range;

use samestory_engine::model::Lang;
use samestory_engine::text::language;
use samestory_engine::text::passages::common_passages;

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
/// From this share of both texts on, what differs is marked and not what is common: it is what a reader looks for.
const NEARLY_ALL: f64 = 0.75;

/// The ranges that are marked in the two texts of a pair.
pub(super) struct MarkedPair {
    /// The ranges are what differs.
    pub(super) differences: bool,
    /// Ranges in the earlier and the later text as the page shows them.
    pub(super) marked: [Vec<[usize; 2]>; 2],
}

/// Compares two texts.
pub(super) fn compared(old: &str, new: &str, lang: Lang) -> MarkedPair {
    let texts = [collapse_blank_lines(old), collapse_blank_lines(new)];
    let [old, new] = [beginning(&texts[0]), beginning(&texts[1])];
    let passages = common_passages(old, new, language::row(lang));
    let common = [
        merged(passages.iter().map(|passage| passage.a.clone())),
        merged(passages.iter().map(|passage| passage.b.clone())),
    ];
    let share = |text: &str, ranges: &[Range<usize>]| {
        ranges.iter().map(Range::len).sum::<usize>() as f64 / text.len().max(1) as f64
    };
    let differences = share(old, &common[0]) >= NEARLY_ALL && share(new, &common[1]) >= NEARLY_ALL;
    let [in_old, in_new] = common;
    let marked = [(old, in_old), (new, in_new)].map(|(text, common)| {
        let ranges = if differences { complement(text, &common) } else { common };
        in_utf16(text, &ranges)
    });
    MarkedPair { differences, marked }
}

/// The text that the page shows, and how many characters it leaves out.
pub(super) fn shown_text(text: &str) -> (String, usize) {
    let mut text = collapse_blank_lines(text);
    let Some((end, _)) = text.char_indices().nth(TextLimit::Text.length()) else { return (text, 0) };
    let more = text[end..].chars().count();
    text.truncate(end);
    (text, more)
}

/// Sorted ranges without overlaps. Passages may overlap, because one text can repeat a passage of the other.
fn merged(ranges: impl Iterator<Item = Range<usize>>) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = ranges.collect();
    ranges.sort_unstable_by_key(|range| (range.start, range.end));
    let mut merged: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

/// The gaps between the ranges, except gaps of mere punctuation.
fn complement(text: &str, common: &[Range<usize>]) -> Vec<Range<usize>> {
    let ends = common.iter().map(|range| range.end);
    let starts = common.iter().map(|range| range.start).chain([text.len()]);
    let gaps = std::iter::once(0).chain(ends).zip(starts);
    gaps.filter_map(|(from, to)| {
        let gap = text.get(from..to)?;
        if !gap.contains(char::is_alphanumeric) {
            return None;
        }
        let from = from + gap.len() - gap.trim_start().len();
        Some(from..from + gap.trim().len())
    })
    .collect()
}

/// The ranges in UTF-16 units, as far as the text is shown.
fn in_utf16(text: &str, ranges: &[Range<usize>]) -> Vec<[usize; 2]> {
    let end = text.char_indices().nth(TextLimit::Text.length()).map_or(text.len(), |(end, _)| end);
    let (mut at, mut units) = (0, 0);
    let mut units_to = |to: usize| {
        let to = to.min(end).max(at);
        units += text[at..to].encode_utf16().count();
        at = to;
        units
    };
    let ranges = ranges.iter().map(|range| [units_to(range.start), units_to(range.end)]);
    ranges.filter(|[from, to]| from < to).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn words(from: usize, to: usize) -> String {
        (from..to).map(|word| format!("word{word}")).collect::<Vec<_>>().join(" ")
    }

    /// The marked parts of both texts.
    fn parts(old: &str, new: &str) -> (bool, Vec<String>, Vec<String>) {
        let compared = compared(old, new, Lang::UND);
        let cut = |text: &str, ranges: &[[usize; 2]]| {
            let units: Vec<u16> = text.encode_utf16().collect();
            ranges.iter().map(|&[from, to]| String::from_utf16(&units[from..to]).unwrap()).collect()
        };
        let [in_old, in_new] = compared.marked;
        (compared.differences, cut(old, &in_old), cut(new, &in_new))
    }

    #[test]
    fn differences_are_marked_when_nearly_all_is_common() {
        let old = format!("{} eight {}", words(0, 40), words(40, 80));
        let new = format!("{} 🚢 nine ten, {}", words(0, 40), words(40, 80));
        let (differences, in_old, in_new) = parts(&old, &new);
        assert!(differences);
        assert_eq!((in_old, in_new), (vec!["eight".to_owned()], vec!["🚢 nine ten,".to_owned()]));
        assert_eq!(parts(&old, &old), (true, vec![], vec![]));
    }

    #[test]
    fn what_is_common_is_marked_otherwise() {
        let old = format!("{} {}", words(0, 40), words(100, 160));
        let new = format!("{} {}", words(200, 240), words(0, 40));
        let (differences, in_old, in_new) = parts(&old, &new);
        assert!(!differences);
        assert_eq!((in_old.clone(), in_new), (vec![words(0, 40)], in_old));
    }

    #[test]
    fn ranges_end_where_the_shown_text_ends() {
        let long = words(0, 2000);
        let (text, more) = shown_text(&long);
        assert!(text.chars().count() == TextLimit::Text.length() && more == long.len() - text.len());
        let ranges = in_utf16(&long, &[0..10, 4990..6000, 6000..7000]);
        assert_eq!(ranges, [[0, 10], [4990, 5000]]);
    }
}
