//! How work grows with its input, measured as a ratio between two sizes: machines differ, ratios hardly.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// One measurement at a time: they would measure each other.
static ALONE: Mutex<()> = Mutex::new(());

/// Sixteen times the input may take 64 times as long, for it no longer fits the caches; quadratic work would take 256
/// times.
///
/// What else the machine does only ever adds time, so the least of the runs is what counts, and a busy machine gets
/// more of them. Quadratic work fails them all. `SHOW_GROWTH=1` with `--nocapture` prints what was measured.
pub(crate) fn assert_linear<I>(name: &str, size: usize, input: impl Fn(usize) -> I, work: impl Fn(&I)) {
    const FACTOR: usize = 16;
    const BOUND: f64 = 64.0;
    // Below this, times are the clock's and the allocator's rather than ours.
    const NOISE: f64 = 20e-6;
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (small, large) = (input(size), input(FACTOR * size));
    let time = |input| {
        let start = Instant::now();
        work(input);
        start.elapsed().as_secs_f64()
    };
    let (mut least_small, mut least_large, mut ratio) = (f64::MAX, f64::MAX, f64::MAX);
    for run in 0..40 {
        least_small = least_small.min(time(&small));
        least_large = least_large.min(time(&large));
        ratio = (least_large + NOISE) / (least_small + NOISE);
        if run >= 3 && (ratio < BOUND || least_large > 0.5) {
            break;
        }
    }
    if std::env::var_os("SHOW_GROWTH").is_some() {
        println!(
            "{ratio:5.1} × for {FACTOR} × the size, {:7.2} ms for {} kB: {name}",
            least_large * 1e3,
            FACTOR * size / 1000
        );
    }
    assert!(ratio < BOUND, "{name}: {FACTOR} times the input took {ratio:.1} times as long");
}
