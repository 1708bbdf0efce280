//! What must hold for any bytes at all. `fuzz/` includes this very file, so a fuzzer with coverage feedback and the
//! bounded property tests on stable Rust check the same things.
//!
//! Each check takes raw bytes and panics if something is wrong.

use samestory::text::markup::{ContentType, sniff, to_text};

/// Markup of any kind becomes text within its limit, or is refused; the limit decides nothing else.
pub(crate) fn fuzz_markup(data: &[u8]) {
    let (control, data) = data.split_first().map_or((0, data), |(first, rest)| (*first, rest));
    let raw = String::from_utf8_lossy(data);
    let kind = match control % 4 {
        0 => ContentType::Html,
        1 => ContentType::Markdown,
        2 => ContentType::Plain,
        _ => sniff(&raw),
    };
    // Nothing more than triples: one byte can become U+FFFD.
    let ample = 3 * raw.len() + 16;
    let full = to_text(&raw, kind, ample).expect("there was room for everything");
    let tight = raw.len() * usize::from(control / 4) / 64;
    match to_text(&raw, kind, tight) {
        Ok(text) => {
            assert!(text.len() <= tight);
            assert_eq!(text, full, "a limit that is kept changes nothing");
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
