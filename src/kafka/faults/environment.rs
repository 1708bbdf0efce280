//! Faults that the environment selects: named points where the process dies, panics, freezes or sleeps, mutants that
//! remove a guard, and constants that a test makes smaller. Only built with the feature `faults`.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Constant, Faults, Mutant, Point};

/// A kind of injected fault: the variable that selects where it strikes and on which visit, and what happens.
struct Fault {
    variable: &'static str,
    strike: fn(&str),
}

/// The variables hold `point:visit`, and for sleeping `point:visit:milliseconds`.
const FAULTS: [Fault; 4] = [
    Fault { variable: "SAMESTORY_CRASH_AT", strike: die },
    Fault { variable: "SAMESTORY_PANIC_AT", strike: panic },
    Fault { variable: "SAMESTORY_STOP_AT", strike: freeze },
    Fault { variable: "SAMESTORY_SLEEP_AT", strike: sleep },
];

/// Selects faults by environment variables.
pub(crate) struct EnvironmentFaults;

impl Faults for EnvironmentFaults {
    /// Injects the fault that the environment selects for this point and visit, if any.
    fn reach(&self, reached: Point) {
        static SELECTED: OnceLock<Vec<(&'static Fault, String, AtomicU64)>> = OnceLock::new();
        let selected = SELECTED.get_or_init(|| {
            let values =
                FAULTS.iter().filter_map(|fault| Some((fault, crate::config::fault(fault.variable)?)));
            values.map(|(fault, value)| (fault, value, AtomicU64::new(0))).collect()
        });
        for (fault, value, visits) in selected {
            let mut parts = value.split(':');
            let (point, visit) =
                (parts.next(), parts.next().and_then(|visit| visit.parse().ok()).unwrap_or(1));
            if point == Some(reached.name()) && visits.fetch_add(1, Ordering::SeqCst) + 1 == visit {
                (fault.strike)(value);
            }
        }
    }

    /// True if `SAMESTORY_MUTANT` names this guard.
    fn has(&self, mutant: Mutant) -> bool {
        static SELECTED: OnceLock<Option<String>> = OnceLock::new();
        SELECTED.get_or_init(|| crate::config::fault("SAMESTORY_MUTANT")).as_deref() == Some(mutant.name())
    }

    /// The variable's value if it is set, otherwise `usual`.
    fn value(&self, constant: Constant, usual: u64) -> u64 {
        crate::config::fault(constant.name()).and_then(|value| value.parse().ok()).unwrap_or(usual)
    }
}

fn die(value: &str) {
    eprintln!("samestory: dies at {value}, injected by a test");
    std::process::abort();
}

/// Ends this thread only, as a bug would.
fn panic(value: &str) {
    panic!("at {value}, injected by a test");
}

/// Like SIGSTOP from outside, but at an exact point.
fn freeze(value: &str) {
    eprintln!("samestory: freezes at {value}, injected by a test");
    let pid = std::process::id().to_string();
    let _stopped = std::process::Command::new("kill").args(["-s", "STOP", &pid]).status();
}

/// Delays this thread only: librdkafka's threads continue, so the process stays in its group.
fn sleep(value: &str) {
    eprintln!("samestory: sleeps at {value}, injected by a test");
    let time = value.split(':').nth(2).and_then(|time| time.parse().ok()).unwrap_or(1000);
    std::thread::sleep(std::time::Duration::from_millis(time));
}
