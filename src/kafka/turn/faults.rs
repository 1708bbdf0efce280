//! Named places where tests make the program die. Without the feature `faults` nothing is left of them.

/// A place to die at.
#[cfg(not(feature = "faults"))]
#[inline(always)]
pub(crate) fn point(_name: &str) {}

/// Whether a guard is taken away, to see that its absence is noticed.
#[cfg(not(feature = "faults"))]
#[inline(always)]
pub(crate) fn mutant(_name: &str) -> bool {
    false
}

/// A number that tests want smaller than it is.
#[cfg(not(feature = "faults"))]
#[inline(always)]
pub(crate) fn number(_variable: &str, usual: u64) -> u64 {
    usual
}

#[cfg(feature = "faults")]
pub(crate) use on::{mutant, number, point};

#[cfg(feature = "faults")]
mod on {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// What a test wants to happen at a place, and at the how manieth time that it is passed.
    struct Order {
        variable: &'static str,
        then: fn(&str),
    }

    /// `place:n`, and for sleeping `place:n:milliseconds`.
    const ORDERS: [Order; 4] = [
        Order { variable: "SAMESTORY_CRASH_AT", then: die },
        Order { variable: "SAMESTORY_PANIC_AT", then: panic },
        Order { variable: "SAMESTORY_STOP_AT", then: freeze },
        Order { variable: "SAMESTORY_SLEEP_AT", then: sleep },
    ];

    /// Does what the environment orders for this place: nothing, as a rule.
    pub(crate) fn point(name: &str) {
        static ORDERED: OnceLock<Vec<(&'static Order, String, AtomicU64)>> = OnceLock::new();
        let ordered = ORDERED.get_or_init(|| {
            let written =
                ORDERS.iter().filter_map(|order| Some((order, crate::config::fault(order.variable)?)));
            written.map(|(order, written)| (order, written, AtomicU64::new(0))).collect()
        });
        for (order, written, passed) in ordered {
            let mut parts = written.split(':');
            let (place, count) =
                (parts.next(), parts.next().and_then(|count| count.parse().ok()).unwrap_or(1));
            if place == Some(name) && passed.fetch_add(1, Ordering::SeqCst) + 1 == count {
                (order.then)(written);
            }
        }
    }

    fn die(written: &str) {
        eprintln!("samestory: dies at {written}, as it was told to");
        std::process::abort();
    }

    /// Ends this thread only, as a mistake in the program would.
    fn panic(written: &str) {
        panic!("at {written}, as a test asked for");
    }

    /// As SIGSTOP from outside would, but in the middle of something.
    fn freeze(written: &str) {
        eprintln!("samestory: freezes at {written}, as it was told to");
        let pid = std::process::id().to_string();
        let _stopped = std::process::Command::new("kill").args(["-s", "STOP", &pid]).status();
    }

    /// This thread only: the library's own go on, and the group with them.
    fn sleep(written: &str) {
        eprintln!("samestory: sleeps at {written}, as it was told to");
        let time = written.split(':').nth(2).and_then(|time| time.parse().ok()).unwrap_or(1000);
        std::thread::sleep(std::time::Duration::from_millis(time));
    }

    /// Whether the guard named in `SAMESTORY_MUTANT` is this one.
    pub(crate) fn mutant(name: &str) -> bool {
        static MUTANT: OnceLock<Option<String>> = OnceLock::new();
        MUTANT.get_or_init(|| crate::config::fault("SAMESTORY_MUTANT")).as_deref() == Some(name)
    }

    /// What the variable says, where it is set.
    pub(crate) fn number(variable: &str, usual: u64) -> u64 {
        crate::config::fault(variable).and_then(|written| written.parse().ok()).unwrap_or(usual)
    }
}
