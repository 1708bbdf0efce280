//! Runs a parser so that a panic costs one record, not the thread. Markup, Unicode, Avro and JSON parsers read
//! untrusted bytes, so a panic in one of them counts as bad input and the record becomes a dead letter. This needs
//! unwinding: a build with `panic = "abort"` does not compile.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::fields::DecodeFailure;
use samestory_engine::model::DeadLetterReason;

#[cfg(not(panic = "unwind"))]
compile_error!("a record that panics a parser becomes a dead letter, which needs panic = \"unwind\"");

/// Most bytes of a panic message that a dead letter quotes.
const MESSAGE: usize = 300;

/// A record that contains this text panics the parser in builds for fault tests.
#[cfg(feature = "faults")]
pub const PANIC_MARKER: &str = "samestory-fault-test: panic here";

#[cfg(feature = "faults")]
static UNGUARDED: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

/// Removes the guard in this process, to prove that tests notice its absence.
#[cfg(feature = "faults")]
pub fn leave_unguarded() {
    UNGUARDED.store(true, std::sync::atomic::Ordering::Relaxed);
}

/// Runs a parser on a record and turns a panic into a failure. `parse` must only read what it borrows: no half-written
/// value may survive a panic.
///
/// # Errors
/// The parser's own failure, or [`DeadLetterReason::ParserPanicked`] if it panicked.
pub fn isolate<T>(
    record: &[u8],
    parse: impl FnOnce() -> Result<T, DecodeFailure>,
) -> Result<T, DecodeFailure> {
    let guarded = || {
        panic_on_marker(record);
        parse()
    };
    #[cfg(feature = "faults")]
    if UNGUARDED.load(std::sync::atomic::Ordering::Relaxed) {
        return guarded();
    }
    catch_unwind(AssertUnwindSafe(guarded)).unwrap_or_else(|panic| {
        let message = format!("the parser panicked: {}", message(panic.as_ref()));
        Err(DecodeFailure::new(DeadLetterReason::ParserPanicked, message))
    })
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
    text.get(..text.floor_char_boundary(MESSAGE)).unwrap_or(text)
}

#[cfg(feature = "faults")]
#[allow(clippy::panic, reason = "a fault that tests inject")]
fn panic_on_marker(record: &[u8]) {
    if str::from_utf8(record).is_ok_and(|text| text.contains(PANIC_MARKER)) {
        panic!("injected by a fault test");
    }
}

#[cfg(not(feature = "faults"))]
#[inline(always)]
fn panic_on_marker(_: &[u8]) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_failure_with_its_message() {
        let outcome: Result<(), _> = isolate(b"", || panic!("index {} out of range", 7));
        let refusal = outcome.unwrap_err();
        assert_eq!(refusal.reason, DeadLetterReason::ParserPanicked);
        assert!(refusal.message.contains("index 7 out of range"), "{refusal}");
        let long = "ä".repeat(MESSAGE);
        let refusal = isolate::<()>(b"", || panic!("{long}")).unwrap_err();
        assert!(refusal.message.len() < 2 * MESSAGE, "{refusal}");
        assert_eq!(isolate(b"", || Ok(5)), Ok(5));
    }
}
