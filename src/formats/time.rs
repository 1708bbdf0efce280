//! Parses times as crawlers write them into an [`EventTime`]. `jiff` does the calendar.
//!
//! | text or number | is read as |
//! |----------------|------------|
//! | `2026-03-02`, `2026-03-02T06:10Z`, `2026-03-02 06:10:00.25 +0530`, `20260302T061000Z` | ISO 8601, extended or basic |
//! | `20260302` (8 digits) | ISO basic date |
//! | `20260302061000` (14 digits) | WARC and CDX timestamp; 12 digits are one without seconds |
//! | any other number | seconds, milliseconds, microseconds or nanoseconds since 1970, by size |
//! | `Mon, 02 Mar 2026 06:10:00 GMT` | RFC 2822, as feeds have it |
//!
//! A time without a zone is UTC. An absurd date is parsed as written: the engine decides what is plausible.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::{rfc2822, temporal};

use samestory_engine::model::EventTime;

/// Parses a time; `None` if the text is not one.
pub fn parse(text: &str) -> Option<EventTime> {
    let text = text.trim();
    // Every notation is shorter.
    if text.len() > 64 || !text.is_ascii() {
        return None;
    }
    let millis = match digits(text).map(|digits| (digits, digits.len())) {
        // As seconds these would be 1970 to 1973, as milliseconds the year 2286 and later: dates, or nothing.
        Some((digits, 8 | 14)) => compact(digits),
        // As milliseconds, dates of 1900 to 2100 would all fall into 1976, and the other numbers are of 1973 to 2001.
        Some((digits, 12)) if digits.starts_with(['1', '2']) => {
            let plausible = (1900..=2100).contains(&digits[..4].parse().unwrap_or(0));
            compact(digits).filter(|_| plausible).or_else(|| since_1970(text))
        }
        _ => since_1970(text).or_else(|| iso(text)).or_else(|| feed(text)),
    };
    millis.map(EventTime::from_millis)
}

/// The digits of an unsigned integer. `20260302.0` counts as one, because tables may write it so.
fn digits(text: &str) -> Option<&str> {
    let whole = text.split_once('.').map_or(text, |(whole, fraction)| {
        if fraction.bytes().all(|byte| byte == b'0') { whole } else { text }
    });
    whole.bytes().all(|byte| byte.is_ascii_digit()).then_some(whole)
}

/// A date of 8 digits, with or without a time of day after it.
fn compact(digits: &str) -> Option<i64> {
    match digits.split_at(8) {
        (date, "") => civil(date),
        (date, clock) => civil(&format!("{date}T{clock}")),
    }
}

/// Seconds, milliseconds, microseconds or nanoseconds, distinguished by size: no article is from before 1973 in
/// milliseconds or from after the year 5000 in seconds.
fn since_1970(text: &str) -> Option<i64> {
    if !text.starts_with(|first: char| first.is_ascii_digit() || "-+.".contains(first)) {
        return None;
    }
    // Integer division: nanoseconds have more digits than a float can hold.
    if let Ok(whole) = text.parse::<i64>() {
        return Some(match whole.unsigned_abs() {
            size if size < 10_u64.pow(11) => whole * 1_000,
            size if size < 10_u64.pow(14) => whole,
            size if size < 10_u64.pow(17) => whole.div_euclid(1_000),
            _ => whole.div_euclid(1_000_000),
        });
    }
    let number: f64 = text.parse().ok()?;
    let millis = match number.abs() {
        size if size < 1e11 => number * 1e3,
        size if size < 1e14 => number,
        size if size < 1e17 => number / 1e3,
        _ => number / 1e6,
    };
    // A cast saturates, so 1e400 is far in the future and not an error.
    Some(millis.round() as i64)
}

/// ISO 8601, with optional spaces between date, time and zone.
fn iso(text: &str) -> Option<i64> {
    let utc = ["Z", "z", " UTC", " GMT"].iter().find_map(|zone| text.strip_suffix(zone));
    if let Some(utc) = utc {
        return civil(utc.trim_end());
    }
    let joined = match text.rsplit_once(' ') {
        Some((local, zone)) if zone.starts_with(['+', '-']) => format!("{}{zone}", local.trim_end()),
        _ => text.to_owned(),
    };
    let zoned = temporal::DateTimeParser::new().parse_timestamp(&joined);
    zoned.map(Timestamp::as_millisecond).ok().or_else(|| civil(&joined))
}

/// A date, or a date and a time of day, in UTC. [`Timestamp`] would not do: its range ends a day before the year 9999
/// does.
fn civil(text: &str) -> Option<i64> {
    let at = temporal::DateTimeParser::new().parse_datetime(text).ok()?;
    i64::try_from(at.duration_since(DateTime::constant(1970, 1, 1, 0, 0, 0, 0)).as_millis()).ok()
}

/// `Mon, 02 Mar 2026 06:10:00 GMT`. Feeds also spell the month out, and omit the time or the zone.
fn feed(text: &str) -> Option<i64> {
    let date = text.split_once(',').map_or(text, |(_weekday, date)| date);
    let mut words = date.split_ascii_whitespace();
    let (day, month) = (words.next()?, words.next()?.get(..3)?);
    let year = words.next().filter(|year| year.len() == 4)?;
    let (clock, zone) = (words.next().unwrap_or("00:00"), words.next().unwrap_or("GMT").replace(':', ""));
    let date = format!("{day} {month} {year} {clock} {zone}");
    rfc2822::DateTimeParser::new().parse_timestamp(date).ok().map(Timestamp::as_millisecond)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Option<i64> {
        parse(text).map(EventTime::millis)
    }

    #[test]
    fn all_notations_of_one_moment_are_parsed_alike() {
        const MOMENT: i64 = 1_772_431_800_000;
        for text in [
            "2026-03-02T06:10:00Z",
            "2026-03-02T06:10Z",
            "2026-03-02 06:10:00",
            "2026-03-02T06:10:00.000",
            "2026-03-02T11:40:00+05:30",
            "2026-03-01T22:10:00-0800",
            "2026-03-02T07:10+01",
            "20260302T061000Z",
            "20260302T0610",
            "20260302061000",
            "20260302061000.0",
            "202603020610",
            "2026-03-02 06:10:00 +0000",
            "2026-03-02 06:10:00 UTC",
            "Mon, 02 Mar 2026 06:10:00 GMT",
            "2 March 2026 06:10:00 +0000",
            "Mon, 2 Mar 2026 01:10 EST",
            "1772431800",
            "1772431800000",
            "1772431800000000",
            "1772431800000000000",
            "1772431800.0",
            " 1772431800 ",
        ] {
            assert_eq!(read(text), Some(MOMENT), "{text}");
        }
        assert_eq!(read("2026-03-02T06:10:00.25Z"), Some(MOMENT + 250));
        assert_eq!(read("2026-03-02"), Some(MOMENT - 22_200_000));
        assert_eq!(EventTime::from_millis(MOMENT).to_string(), "2026-03-02T06:10:00Z");
        assert_eq!(EventTime::from_millis(MOMENT + 250).to_string(), "2026-03-02T06:10:00.250Z");
    }

    #[test]
    fn other_texts_are_not_times() {
        for text in [
            "",
            "yesterday",
            "2026-13-01",
            "2026-02-29",
            "2026-3-2",
            "2026-03-02T25:00Z",
            "2026-03-02Tea",
            "2026-0302",
            "+",
            "-",
            ".",
            "Mon",
            "32 Mar 2026",
            "2 Mar 26",
            "20261303",
            "20260230",
            "20260302250000",
            "NaN",
            "infinity",
            "२०२६-०३-०२",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_of_other_lengths_count_from_1970() {
        assert_eq!(read("0"), Some(0));
        assert_eq!(read("999999999"), Some(999_999_999_000));
        assert_eq!(
            read("2026030206"),
            Some(2_026_030_206_000),
            "ten digits are seconds, whatever they look like"
        );
        assert_eq!(read("883612800000"), Some(883_612_800_000), "milliseconds of 1998");
        assert_eq!(read("-20260302"), Some(-20_260_302_000));
        assert_eq!(read("20260302.5"), Some(20_260_302_500));
    }

    // A crawler sent `"crawl_date":"20260303"`, which was parsed as August 1970: the article arrived expired, and its
    // byte-identical copy was `unique`.
    proptest! {
        #[test]
        fn every_notation_of_any_moment_is_parsed_alike(second in -2_208_988_800_i64..4_102_444_800) {
            let at = EventTime::from_millis(second * 1000);
            let extended = at.to_string();
            let plain = extended.replace(['-', ':'], "");
            let warc = plain.replace(['T', 'Z'], "");
            let spaced = extended.replace('T', " ").replace('Z', " +0000");
            for text in [&extended, &plain, &warc, &spaced] {
                prop_assert_eq!(parse(text), Some(at), "{}", text);
            }
            let midnight = EventTime::from_millis(second.div_euclid(86_400) * 86_400_000);
            for text in [&extended[..10], &plain[..8]] {
                prop_assert_eq!(parse(text), Some(midnight), "{}", text);
            }
            let minute = EventTime::from_millis(second.div_euclid(60) * 60_000);
            prop_assert_eq!(parse(&warc[..12]), Some(minute), "{}", warc);
        }

        #[test]
        fn numbers_since_1970_are_parsed_in_every_unit(second in 1_000_000_000_i64..9_999_999_999) {
            let at = Some(EventTime::from_millis(second * 1000));
            for zeros in ["", "000", "000000", "000000000", ".0"] {
                prop_assert_eq!(parse(&format!("{second}{zeros}")), at, "{}{}", second, zeros);
            }
        }

        #[test]
        fn no_text_panics_the_parser(text in "[0-9TZ:+. ,A-Za-z-]{0,40}", any in ".{0,40}") {
            for time in [parse(&text), parse(&any)].into_iter().flatten() {
                time.to_string();
            }
        }
    }

    #[test]
    fn absurd_times_are_parsed_as_written() {
        assert_eq!(read("9999-12-31T23:59:59Z"), Some(253_402_300_799_000));
        assert_eq!(read("-1"), Some(-1000));
        assert_eq!(read("0000-01-01"), Some(-62_167_219_200_000));
        assert_eq!(read("1e400"), Some(i64::MAX));
    }

    #[test]
    fn formatting_and_parsing_agree_over_the_ages() {
        for millis in (-62_167_219_200_000..253_402_300_799_000).step_by(86_399_999 * 37) {
            let time = EventTime::from_millis(millis);
            assert_eq!(parse(&time.to_string()), Some(time), "{time}");
        }
        for beyond in [i64::MAX, i64::MIN, 300_000_000_000_000] {
            assert_eq!(EventTime::from_millis(beyond).to_string(), beyond.to_string());
        }
    }
}
