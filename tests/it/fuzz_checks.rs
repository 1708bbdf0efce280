//! Properties that hold for any bytes. `fuzz/` includes this very file, so a fuzzer with coverage feedback
//! and the bounded property tests on stable Rust check the same things.
//!
//! Each check takes raw bytes and panics if a property is violated.

use samestory_engine::engine::compare::{Relation, Rules, compare};
use samestory_engine::fingerprint::{Fingerprint, MAX_BYTES, fingerprint};
use samestory_engine::text::TooLarge;
use samestory_engine::text::language::LANGUAGES;
use samestory_engine::text::markup::{ContentType, sniff, to_text};
use samestory_engine::text::normalize::{normalize, skeleton};

/// Markup of any kind becomes text within its limit or is refused, and the limit influences nothing else.
pub(crate) fn fuzz_markup(data: &[u8]) {
    let (control, data) = data.split_first().map_or((0, data), |(first, rest)| (*first, rest));
    let raw = String::from_utf8_lossy(data);
    let kind = match control % 4 {
        0 => ContentType::Html,
        1 => ContentType::Markdown,
        2 => ContentType::Plain,
        _ => sniff(&raw),
    };
    // The text at most triples: one byte can become U+FFFD.
    let ample = 3 * raw.len() + 16;
    let full = to_text(&raw, kind, ample).expect("there was room for everything");
    let tight = raw.len() * usize::from(control / 4) / 64;
    match to_text(&raw, kind, tight) {
        Ok(text) => {
            assert!(text.len() <= tight);
            assert_eq!(text, full, "a limit that is not reached changes nothing");
        }
        Err(refused) => assert_eq!(refused.limit, tight),
    }
    assert_eq!(to_text(&full, ContentType::Plain, ample).as_deref(), Ok(&*full), "plain text stays as it is");
    if !raw.contains(['<', '&', '\r', '\0']) {
        assert_eq!(
            to_text(&raw, ContentType::Html, ample).as_deref(),
            Ok(&*raw),
            "there was no markup to remove"
        );
    }
}

/// Normalised text is a fixed point within its limit, and spaces separate independent pieces.
pub(crate) fn fuzz_normalize(data: &[u8]) {
    let (control, data) = data.split_first().map_or((0, data), |(first, rest)| (*first, rest));
    let raw = String::from_utf8_lossy(data);
    let unbounded = |text: &str| normalize(text, usize::MAX).expect("there is no limit to exceed");
    let full = unbounded(&raw);
    assert_eq!(unbounded(&full), full, "{raw:?} is not settled");
    assert!(full.len() <= 11 * raw.len(), "nothing grows faster than U+FDFA");
    assert!(!full.starts_with(' ') && !full.ends_with(' ') && !full.contains("  "), "{full:?}");
    let stray = |c: char| c.is_control() || c.is_ascii_uppercase() || (c.is_whitespace() && c != ' ');
    assert_eq!(full.find(stray), None, "{full:?}");

    let tight = full.len() * usize::from(control) / 128;
    match normalize(&raw, tight) {
        Ok(text) => {
            assert!(text.len() <= tight);
            assert_eq!(text, full, "a limit that is not reached changes nothing");
        }
        Err(refused) => {
            assert_eq!(refused, TooLarge { limit: tight });
            // Once there is a page of white space, it may count before it collapses.
            assert!(full.len() > tight || raw.len() > 512, "{raw:?} was refused at {tight}");
        }
    }

    let merged = skeleton(&raw, usize::MAX).expect("there is no limit to exceed");
    assert_eq!(skeleton(&merged, usize::MAX).as_deref(), Ok(&*merged), "{raw:?} has no settled skeleton");
    assert_eq!(unbounded(&merged), merged, "a skeleton is normalised text");

    let middle = raw.len() * usize::from(control) / 256;
    let cut = (middle..=raw.len()).find(|&at| raw.is_char_boundary(at)).unwrap_or_default();
    let (left, right) = raw.split_at(cut);
    let apart = [unbounded(left), unbounded(right)];
    let joined =
        apart.iter().filter(|part| !part.is_empty()).map(String::as_str).collect::<Vec<_>>().join(" ");
    // A word that mixes look-alike scripts is read in the script of the whole text: only then does a space
    // not separate.
    let latin = |text: &str| text.chars().any(|c| c.is_ascii_alphabetic());
    let alike = |text: &str| text.chars().any(|c| matches!(c, '\u{370}'..='\u{52f}'));
    let whole = unbounded(&format!("{left} {right}"));
    let both = format!("{joined} {whole}");
    if !(latin(&both) && alike(&both)) {
        assert_eq!(whole, joined, "{left:?} {right:?} reach across a space");
    }
}

/// Any bytes are a fingerprint that encodes to those very bytes, or are refused.
pub(crate) fn fuzz_fingerprint_decode(data: &[u8]) {
    check_decoding(data);
    // The same with a valid fingerprint with a few bytes changed: offset (two bytes), then the new value.
    let text =
        "on 3 may 2021 the 17 ferries of gannetsay carried 4,500 people and 2 goats over to the island";
    let mut bytes = fingerprint(text, &LANGUAGES[0], 7).encode();
    for edit in data.chunks_exact(3).take(8) {
        let offset = usize::from(u16::from_le_bytes([edit[0], edit[1]])) % bytes.len();
        bytes[offset] = edit[2];
    }
    check_decoding(&bytes);
    bytes.truncate(data.len());
    check_decoding(&bytes);
}

fn check_decoding(bytes: &[u8]) {
    let Ok(print) = Fingerprint::decode(bytes) else { return };
    assert!(bytes.len() <= MAX_BYTES);
    assert_eq!(print.encode(), bytes, "decoding and encoding changed the bytes");
    let pair = compare(&print, &print, &Rules::default());
    let expected = if print.tokens == 0 { Relation::Different } else { Relation::Exact };
    assert_eq!((pair.relation, pair.similarity, pair.distance), (expected, 1.0, 0));
}
