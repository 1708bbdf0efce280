//! Recognises lists and tables by their lines and digits. A pure function of the text, linear in its length, and the same for
//! every script: lines are compared by markers, length, first and last character, and by the share of digits in them.
//!
//! | a line is | if |
//! |---|---|
//! | a row | it has three cells, or two with a digit, between tabs, bars or wide gaps; or at least two numbers, and a quarter of its letters and digits are digits |
//! | an item | it begins with a bullet or a number; or it has at most 60 characters (30 in a script without spaces), begins with no lower-case letter and ends no sentence |
//!
//! A text is a table if at least five lines, three fifths of all lines and half of the text are rows, or if a quarter of its
//! letters and digits are digits, in at least twenty numbers. It is a list if that many lines are items or rows.

use super::language::Segmentation;
use crate::model::ContentKind;

/// Fewer rows or items are a paragraph with a box beside it.
const LEAST: usize = 5;
/// A table without lines, for example of a crawler that joined them, has at least this many numbers.
const LEAST_NUMBERS: usize = 20;
/// Longer lines are paragraphs, unless they are marked; in bytes.
const LONGEST_ROW: usize = 400;

/// What a text looks like, whatever its length: ordinary, a list or a table. `normalized` is the text with the digits of all
/// scripts as ASCII.
pub(super) fn form(plain: &str, normalized: &str, segment: Segmentation) -> ContentKind {
    if is_mostly_numbers(normalized) {
        return ContentKind::TableLike;
    }
    // Most articles have paragraphs, and their lines are not worth a look at every character.
    if memchr::memchr_iter(b'\n', plain.as_bytes()).take(LEAST - 1).count() < LEAST - 1 {
        return ContentKind::Ordinary;
    }
    let longest_item = match segment {
        Segmentation::Words => 60,
        Segmentation::Characters => 30,
    };
    let (mut all, mut rows, mut entries) = (Tally::default(), Tally::default(), Tally::default());
    for line in plain.lines().map(str::trim).filter(|line| !line.is_empty()) {
        all.add(line);
        if is_row(line) {
            rows.add(line);
            entries.add(line);
        } else if is_item(line, longest_item) {
            entries.add(line);
        }
    }
    if rows.make_up(&all) {
        ContentKind::TableLike
    } else if entries.make_up(&all) {
        ContentKind::ListLike
    } else {
        ContentKind::Ordinary
    }
}

#[derive(Default)]
struct Tally {
    lines: usize,
    bytes: usize,
}

impl Tally {
    fn add(&mut self, line: &str) {
        self.lines += 1;
        self.bytes += line.len();
    }

    /// True if these lines are what the text consists of.
    fn make_up(&self, all: &Tally) -> bool {
        self.lines >= LEAST && 5 * self.lines >= 3 * all.lines && 2 * self.bytes >= all.bytes
    }
}

fn is_mostly_numbers(normalized: &str) -> bool {
    let digits = normalized.bytes().filter(u8::is_ascii_digit).count();
    // A letter or digit has at most four bytes: without this many digits there is no need to count the letters.
    16 * digits >= normalized.len() && {
        let (digits, numbers, either) = digits_in(normalized);
        numbers >= LEAST_NUMBERS && 4 * digits >= either
    }
}

/// Digits, numbers, and letters and digits together.
fn digits_in(text: &str) -> (usize, usize, usize) {
    let (mut digits, mut numbers, mut either, mut in_number) = (0, 0, 0, false);
    for c in text.chars() {
        let is_digit = c.is_numeric();
        digits += usize::from(is_digit);
        numbers += usize::from(is_digit && !in_number);
        either += usize::from(c.is_alphanumeric());
        // Separators do not end a number.
        in_number = is_digit || (in_number && matches!(c, ',' | '.' | '\'' | ':' | '/' | '-'));
    }
    (digits, numbers, either)
}

fn is_row(line: &str) -> bool {
    if line.len() > LONGEST_ROW {
        return false;
    }
    let (digits, numbers, either) = digits_in(line);
    if numbers >= 2 && 4 * digits >= either {
        return true;
    }
    let cells = cells(line);
    cells >= 3 || (cells == 2 && digits > 0)
}

/// Parts between tabs, bars and gaps of two spaces. A gap after the end of a sentence is only spacing.
fn cells(line: &str) -> usize {
    let (mut cells, mut open, mut last, mut blanks) = (0, false, ' ', 0);
    for c in line.chars() {
        match c {
            '\t' | '|' | '│' | '｜' | '\u{3000}' => open = false,
            ' ' | '\u{a0}' => {
                blanks += 1;
                open &= blanks < 2 || ends_sentence(last);
                continue;
            }
            c => {
                cells += usize::from(!open);
                (open, last) = (true, c);
            }
        }
        blanks = 0;
    }
    cells
}

fn is_item(line: &str, longest: usize) -> bool {
    if is_marked(line) {
        return true;
    }
    let mut closing =
        line.chars().rev().filter(|c| !matches!(c, '"' | '\'' | ')' | '”' | '’' | '»' | '」' | '』' | '）'));
    line.chars().nth(longest).is_none()
        && !line.starts_with(char::is_lowercase)
        && !closing.next().is_some_and(ends_sentence)
}

/// True if a line begins with a bullet or a number of up to three digits. A dash is no bullet: in many languages it begins
/// what somebody says.
fn is_marked(line: &str) -> bool {
    let mut rest = line.chars();
    match rest.next() {
        Some(
            '・' | '•' | '‣' | '▪' | '▫' | '●' | '○' | '◦' | '■' | '□' | '◆' | '◇' | '★' | '☆' | '※' | '►'
            | '▶' | '✓' | '✔',
        ) => true,
        Some('-' | '*' | '+' | '·') => rest.next().is_some_and(char::is_whitespace),
        Some(c) if c.is_numeric() => {
            let mut after = line.chars().skip_while(|c| c.is_numeric());
            let short = line.chars().take_while(|c| c.is_numeric()).nth(3).is_none();
            short
                && match after.next() {
                    Some('.' | ')' | ':') => after.next().is_some_and(char::is_whitespace),
                    Some('、' | '．' | '）') => true,
                    _ => false,
                }
        }
        _ => false,
    }
}

/// The full stops, question and exclamation marks of the scripts that news is written in.
fn ends_sentence(c: char) -> bool {
    matches!(
        c,
        '.' | '!'
            | '?'
            | '…'
            | '。'
            | '．'
            | '！'
            | '？'
            | '।'
            | '॥'
            | '۔'
            | '؟'
            | '።'
            | '။'
            | '។'
            | '։'
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Options, prepare};

    fn form_of(body: &str) -> ContentKind {
        prepare(body, None, None, &Options::DEFAULT).unwrap().form
    }

    fn lines(line: impl Fn(usize) -> String) -> String {
        (1..=9).map(|n| line(n) + "\n").collect()
    }

    #[test]
    fn paragraphs_are_ordinary_however_their_lines_are_broken() {
        let sentence =
            "The ferry between Saltmere and Gull Island will run again from Monday, the operator said. ";
        assert_eq!(form_of(&sentence.repeat(20)), ContentKind::Ordinary);
        assert_eq!(form_of(&lines(|_| sentence.repeat(3))), ContentKind::Ordinary);
        // Two spaces after a sentence are no cells, and wrapped lines are no items.
        assert_eq!(form_of(&lines(|_| sentence.replace(". ", ".  ").repeat(3))), ContentKind::Ordinary);
        let wrapped =
            "The ferry between Saltmere and Gull\nIsland will run again from Monday,\nthe operator said, \
            after six weeks\nof repairs to both of the engines\nand to a cracked propeller shaft.\n"
                .repeat(4);
        assert_eq!(form_of(&wrapped), ContentKind::Ordinary);
        let spoken = lines(|n| format!("— Oui, dit-il pour la {n}e fois, et il referma la porte."));
        assert_eq!(form_of(&spoken), ContentKind::Ordinary);
        let japanese =
            "市は月曜日、老朽化した旧橋を閉鎖し、秋までに新しい橋を開通させると発表した。\n".repeat(9);
        assert_eq!(form_of(&japanese), ContentKind::Ordinary);
    }

    #[test]
    fn a_few_items_beside_paragraphs_do_not_make_a_list() {
        let paragraph = "The council voted on Monday to close the old bridge until the autumn. ".repeat(4);
        let page = format!("Read also\nSport\nWeather\nTraffic\nContact\n{paragraph}\n{paragraph}");
        assert_eq!(form_of(&page), ContentKind::Ordinary);
    }

    #[test]
    fn items_are_a_list_in_any_script() {
        for list in [
            lines(|n| format!("{n}. Stir the flour into the milk and wait until it has cooled down again.")),
            lines(|n| format!("• Minister number {n} said that taxes would have to rise before the summer.")),
            lines(|n| format!("Concert in the park with {} guests", ["two", "five", "ten"][n % 3])),
            lines(|_| "नगर निगम की बैठक आज शाम".to_owned()),
            lines(|_| "・市議会は橋の閉鎖を決めた。".to_owned()),
            lines(|_| "مجلس المدينة يجتمع اليوم".to_owned()),
            "<ul>".to_owned() + &lines(|_| "<li>Council closes the old bridge".to_owned()) + "</ul>",
        ] {
            assert_eq!(form_of(&list), ContentKind::ListLike, "{list}");
        }
    }

    #[test]
    fn cells_and_numbers_are_a_table_in_any_script() {
        for table in [
            lines(|n| format!("Saltmere\tGull Island\t{n}")),
            lines(|n| format!("Saltmere    Brackwater    {n}0 min")),
            lines(|n| format!("| Wheat | {n}12.5 | tons |")),
            lines(|n| format!("Rovers 2 1 Wanderers {n}4 33")),
            lines(|_| "गेहूँ १२३ ४५६ ७८९".to_owned()),
            lines(|_| "小麦　１２３　４５６".to_owned()),
            "<table>".to_owned() + &lines(|n| format!("<tr><td>Wheat<td>{n}7<td>tons</tr>")) + "</table>",
            // A crawler joined the lines.
            (1..40).map(|n| format!("Shr {n}4 cts vs 1{n} cts ")).collect(),
        ] {
            assert_eq!(form_of(&table), ContentKind::TableLike, "{table}");
        }
    }

    #[test]
    fn hostile_lines_cost_no_more_than_their_length() {
        for text in [
            "\n".repeat(1 << 20),
            "1. ".repeat(1 << 18),
            "|".repeat(1 << 20),
            "1\n".repeat(1 << 19),
            "\t1".repeat(1 << 19),
        ] {
            form(&text, &text, Segmentation::Words);
        }
    }
}
