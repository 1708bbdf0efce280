//! Times as crawlers write them → [`EventTime`]: ISO 8601, the dates of feeds (RFC 2822), numbers since 1970. And
//! back, as ISO 8601.
//!
//! Whether a time is plausible is not decided here: what can be read is read.

use crate::model::EventTime;

/// Reads a time; a text that is not one is nothing.
pub fn parse(text: &str) -> Option<EventTime> {
    let text = text.trim();
    // No way of writing a time is longer, and what is longer is not looked at.
    if text.len() > 64 || !text.is_ascii() {
        return None;
    }
    since_1970(text).or_else(|| iso(text.as_bytes())).or_else(|| feed(text))
}

/// Seconds, milliseconds, microseconds or nanoseconds since 1970, told by size: no article is from before 1973 in
/// milliseconds or from after the year 5000 in seconds.
fn since_1970(text: &str) -> Option<EventTime> {
    let number: f64 = match text.as_bytes() {
        [b'0'..=b'9' | b'-' | b'+' | b'.', ..] => text.parse().ok()?,
        _ => return None,
    };
    let millis = match number.abs() {
        size if size < 1e11 => number * 1e3,
        size if size < 1e14 => number,
        size if size < 1e17 => number / 1e3,
        _ => number / 1e6,
    };
    // A cast stops at the ends of the range, so a time of 1e400 is far in the future, not an error.
    Some(EventTime::from_millis(millis as i64))
}

/// A reader of fixed-width numbers.
struct Digits<'a>(&'a [u8]);

impl Digits<'_> {
    fn number(&mut self, width: usize) -> Option<i64> {
        let digits = self.0.get(..width).filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
        self.0 = &self.0[width..];
        Some(digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
    }

    fn skip(&mut self, any: &[u8]) -> bool {
        let found = self.0.first().is_some_and(|byte| any.contains(byte));
        if found {
            self.0 = &self.0[1..];
        }
        found
    }
}

/// `2026-03-02`, `2026-03-02T06:10Z`, `2026-03-02 06:10:00.25+0530`, `20260302T061000Z`; UTC if it does not say.
fn iso(text: &[u8]) -> Option<EventTime> {
    let mut read = Digits(text);
    let year = read.number(4)?;
    let dashed = read.skip(b"-");
    let month = read.number(2)?;
    if read.skip(b"-") != dashed {
        return None;
    }
    let mut seconds = days(year, month, read.number(2)?)? * 86_400;
    let mut millis = 0;
    if read.skip(b"Tt ") {
        seconds += clock(&mut read)?;
        if read.skip(b".,") {
            for scale in [100, 10, 1] {
                millis += read.number(1).unwrap_or(0) * scale;
            }
            while read.number(1).is_some() {}
        }
        while read.skip(b" ") {}
        seconds -= offset(&mut read)?;
    }
    read.0.is_empty().then(|| EventTime::from_millis(seconds * 1000 + millis))
}

/// `06:10`, `06:10:30`, `061030`: seconds since midnight. A leap second is the next minute's first.
fn clock(read: &mut Digits<'_>) -> Option<i64> {
    let hour = read.number(2)?;
    read.skip(b":");
    let minute = read.number(2)?;
    let second = if read.skip(b":") { read.number(2)? } else { read.number(2).unwrap_or(0) };
    (hour <= 24 && minute < 60 && second <= 60).then_some(hour * 3600 + minute * 60 + second)
}

/// `Z`, `+05:30`, `-0800`, `+01`: seconds ahead of UTC.
fn offset(read: &mut Digits<'_>) -> Option<i64> {
    let sign = match read.0.first() {
        None => return Some(0),
        Some(b'Z' | b'z') => {
            read.skip(b"Zz");
            return Some(0);
        }
        Some(b'+') => 1,
        Some(b'-') => -1,
        Some(_) => return None,
    };
    read.skip(b"+-");
    let hours = read.number(2)?;
    read.skip(b":");
    let minutes = read.number(2).unwrap_or(0);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// `Mon, 02 Mar 2026 06:10:00 GMT`, as RSS has it.
fn feed(text: &str) -> Option<EventTime> {
    const MONTHS: [&str; 12] =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let date = text.split_once(',').map_or(text, |(_weekday, date)| date);
    let mut words = date.split_ascii_whitespace();
    let day: i64 = words.next()?.parse().ok()?;
    let name = words.next()?.get(..3)?.to_ascii_lowercase();
    let month = MONTHS.iter().position(|month| **month == name)? as i64 + 1;
    let year: i64 = words.next().filter(|year| year.len() == 4)?.parse().ok()?;
    let mut seconds = days(year, month, day)? * 86_400;
    if let Some(time) = words.next() {
        let mut read = Digits(time.as_bytes());
        seconds += clock(&mut read)?;
        seconds -= match words.next() {
            None | Some("GMT" | "UTC" | "UT" | "Z") => 0,
            Some("EST" | "CDT") => -5 * 3600,
            Some("EDT") => -4 * 3600,
            Some("CST" | "MDT") => -6 * 3600,
            Some("MST" | "PDT") => -7 * 3600,
            Some("PST") => -8 * 3600,
            Some(zone) => offset(&mut Digits(zone.as_bytes()))?,
        };
    }
    Some(EventTime::from_millis(seconds * 1000))
}

/// Days from 1970 to a date of the Gregorian calendar, which is counted in eras of 400 years from a first of March,
/// so that the leap day is a year's last.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + i64::from(leap),
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=length).contains(&day) {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}

/// `2026-03-02T06:10:00Z`, with milliseconds where there are any. Every time has such a form, even if its year has
/// more than four digits or a sign.
pub fn format(time: EventTime) -> String {
    let (seconds, millis) = (time.millis().div_euclid(1000), time.millis().rem_euclid(1000));
    let (day, second) = (seconds.div_euclid(86_400) + 719_468, seconds.rem_euclid(86_400));
    let (era, of_era) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let date = of_year - (153 * from_march + 2) / 5 + 1;
    let month = (from_march + 2) % 12 + 1;
    let year = era * 400 + year + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let fraction = if millis == 0 { String::new() } else { format!(".{millis:03}") };
    format!("{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<i64> {
        parse(text).map(EventTime::millis)
    }

    #[test]
    fn one_moment_in_every_way_it_is_written() {
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
        assert_eq!(format(EventTime::from_millis(MOMENT)), "2026-03-02T06:10:00Z");
        assert_eq!(format(EventTime::from_millis(MOMENT + 250)), "2026-03-02T06:10:00.250Z");
    }

    #[test]
    fn what_is_not_a_time_is_nothing() {
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
            "NaN",
            "infinity",
            "२०२६-०३-०२",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn absurd_times_are_read_as_they_stand() {
        assert_eq!(read("9999-12-31T23:59:59Z"), Some(253_402_300_799_000));
        assert_eq!(read("-1"), Some(-1000));
        assert_eq!(read("0000-01-01"), Some(-62_167_219_200_000));
        assert_eq!(read("1e400"), Some(i64::MAX));
    }

    #[test]
    fn writing_and_reading_agree_over_the_ages() {
        for millis in (-62_167_219_200_000..253_402_300_799_000).step_by(86_399_999 * 37) {
            let time = EventTime::from_millis(millis);
            assert_eq!(parse(&format(time)), Some(time), "{}", format(time));
        }
        format(EventTime::from_millis(i64::MAX));
        format(EventTime::from_millis(i64::MIN));
    }
}
