//! The functions that JavaScript calls. WebAssembly passes numbers only, so texts go through one buffer on each side:
//!
//! 1. `reserve(length)` makes room for both texts and says where; the page writes them there as UTF-8, one after the other.
//! 2. `run(older)` compares the first `older` bytes with the rest and returns the answer's length.
//! 3. `answer()` says where the answer is, as JSON, until the next call.
//!
//! There is one thread, and the page reads both addresses anew after each call, because memory may have moved.

use std::cell::RefCell;

thread_local! {
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static ANSWER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Makes room for texts of this many bytes.
#[allow(unsafe_code, reason = "an exported name; the function itself is safe")]
#[unsafe(no_mangle)]
pub extern "C" fn reserve(length: usize) -> *mut u8 {
    INPUT.with_borrow_mut(|input| {
        input.clear();
        input.resize(length, 0);
        input.as_mut_ptr()
    })
}

/// Compares what was written. The answer's length in bytes.
#[allow(unsafe_code, reason = "an exported name; the function itself is safe")]
#[unsafe(no_mangle)]
pub extern "C" fn run(older: usize) -> usize {
    let input = INPUT.take();
    let (older, newer) = input.split_at(older.min(input.len()));
    let answer = match (str::from_utf8(older), str::from_utf8(newer)) {
        (Ok(older), Ok(newer)) => crate::compare(older, newer),
        _ => serde_json::json!({ "error": "a text is not UTF-8" }),
    };
    ANSWER.replace(answer.to_string().into_bytes());
    ANSWER.with_borrow(Vec::len)
}

/// Where the answer is.
#[allow(unsafe_code, reason = "an exported name; the function itself is safe")]
#[unsafe(no_mangle)]
pub extern "C" fn answer() -> *const u8 {
    ANSWER.with_borrow(|answer| answer.as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn through_the_door(older: &[u8], newer: &[u8]) -> serde_json::Value {
        reserve(older.len() + newer.len());
        // What the page writes through the address.
        INPUT.with_borrow_mut(|input| input.copy_from_slice(&[older, newer].concat()));
        let length = run(older.len());
        let answer = ANSWER.with_borrow(Clone::clone);
        assert_eq!(answer.len(), length);
        serde_json::from_slice(&answer).unwrap()
    }

    #[test]
    fn texts_go_in_and_the_answer_comes_out() {
        let answer = through_the_door("Fähre".as_bytes(), "Fähre".as_bytes());
        assert_eq!(answer, crate::compare("Fähre", "Fähre"));
    }

    #[test]
    fn bytes_that_are_no_text_and_a_cut_beyond_them_are_answered() {
        assert_eq!(through_the_door(b"\xff", b"a")["error"], "a text is not UTF-8");
        reserve(3);
        assert!(run(usize::MAX) > 0);
        assert!(run(5) > 0, "without texts");
    }
}
