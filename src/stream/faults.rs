//! Named places where tests make the program die. Without the feature `faults` nothing is left of them.

/// A place to die at.
#[cfg(not(feature = "faults"))]
#[inline(always)]
pub(super) fn point(_name: &str) {}

/// Whether a guard is taken away, to see that its absence is noticed.
#[cfg(not(feature = "faults"))]
#[inline(always)]
pub(super) fn mutant(_name: &str) -> bool {
    false
}

#[cfg(feature = "faults")]
pub(super) use on::{mutant, point};

#[cfg(feature = "faults")]
mod on {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Dies at the n-th time that the place named in `SAMESTORY_CRASH_AT=place:n` is passed.
    pub(in crate::stream) fn point(name: &str) {
        static AT: OnceLock<Option<(String, u64)>> = OnceLock::new();
        static PASSED: AtomicU64 = AtomicU64::new(0);
        let at = AT.get_or_init(|| {
            let written = crate::config::fault("SAMESTORY_CRASH_AT")?;
            let (place, count) = written.split_once(':').unwrap_or((&written, "1"));
            Some((place.to_owned(), count.parse().ok()?))
        });
        let Some((place, count)) = at else { return };
        if place == name && PASSED.fetch_add(1, Ordering::SeqCst) + 1 == *count {
            eprintln!("samestory: dies at {name}:{count}, as it was told to");
            std::process::abort();
        }
    }

    /// Whether the guard named in `SAMESTORY_MUTANT` is this one.
    pub(in crate::stream) fn mutant(name: &str) -> bool {
        static MUTANT: OnceLock<Option<String>> = OnceLock::new();
        MUTANT.get_or_init(|| crate::config::fault("SAMESTORY_MUTANT")).as_deref() == Some(name)
    }
}
