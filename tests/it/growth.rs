//! How work grows with its input, measured as a ratio between two sizes: machines differ, ratios hardly.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// One measurement at a time: they would measure each other.
static ALONE: Mutex<()> = Mutex::new(());

/// Sixteen times the input may take six times as long as sixteen times the work on a sixteenth: linear work takes the
/// same, three or four times that where it no longer fits the caches, quadratic work sixteen times.
///
/// What else the machine does slows both sides alike, for they take alike long, and only ever adds time: the least of
/// the runs is what counts, and a busy machine gets more of them. Quadratic work fails them all. `SHOW_GROWTH=1` with
/// `--nocapture` prints what was measured.
pub(crate) fn assert_linear<I>(name: &str, size: usize, input: impl Fn(usize) -> I, work: impl Fn(&I)) {
    const FACTOR: usize = 16;
    const BOUND: f64 = 6.0;
    // Below this, times are the clock's and the allocator's rather than ours.
    const NOISE: f64 = 50e-6;
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (small, large) = (input(size), input(FACTOR * size));
    let time = |input, times| {
        let start = Instant::now();
        for _ in 0..times {
            work(input);
        }
        start.elapsed().as_secs_f64()
    };
    let (mut least_small, mut least_large, mut ratio) = (f64::MAX, f64::MAX, f64::MAX);
    for run in 0..40 {
        least_small = least_small.min(time(&small, FACTOR));
        least_large = least_large.min(time(&large, 1));
        ratio = (least_large + NOISE) / (least_small + NOISE);
        if run >= 1 && (ratio < BOUND || least_large > 2.0) {
            break;
        }
    }
    if std::env::var_os("SHOW_GROWTH").is_some() {
        let (ms, kb) = (least_large * 1e3, FACTOR * size / 1000);
        println!("{ratio:5.2} × the time for {FACTOR} × the size, {ms:7.2} ms for {kb} kB: {name}");
    }
    assert!(ratio < BOUND, "{name}: {FACTOR} times the input took {ratio:.1} times as long as it should");
}
