//! How work grows with its input, measured as a ratio between two sizes: machines differ, ratios hardly do.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// One measurement at a time, so that they do not disturb each other.
static ALONE: Mutex<()> = Mutex::new(());

/// Sixteen times the input may take up to six times as long as processing a sixteenth of it sixteen times:
/// linear work takes equally long, three or four times as long if it no longer fits the caches, and quadratic
/// work sixteen times.
///
/// Other load slows both sides alike, because they take equally long, and it only ever adds time: the minimum
/// of the runs counts, and a busy machine gets more of them. Quadratic work fails them all. `SHOW_GROWTH=1`
/// with `--nocapture` prints the measurements.
pub(crate) fn assert_linear<I>(name: &str, size: usize, input: impl Fn(usize) -> I, work: impl Fn(&I)) {
    const FACTOR: usize = 16;
    const BOUND: f64 = 6.0;
    // Below this, times measure the clock and the allocator.
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

// A cache of hot buckets once kept every copy of a boilerplate, so each copy took longer than the one before:
// 0.76 ms and 80 MB at 100,000 copies. Memory is measured here, and the verdicts equal those of a store in memory.
#[cfg(feature = "rocksdb")]
#[test]
fn a_copy_of_a_boilerplate_costs_no_more_when_there_are_many() {
    use crate::engine_fixture::{article, at, index_schemes, line, trust_declared, window};
    use samestory_engine::engine::compare::Rules;
    use samestory_engine::engine::{Batch, Engine, Incoming, Item, Preparer, Settings};
    use samestory_engine::index::{Budget, Durability, Memory, Rocks, RocksOptions, Store};

    const BATCH: u64 = 100;
    let directory = std::env::temp_dir().join(format!("samestory-{}-boilerplate", std::process::id()));
    drop(std::fs::remove_dir_all(&directory));
    let settings = Settings::default();
    let rules = settings.default.rules;
    let (engine, postings) = (Engine::new(settings), index_schemes(rules.threshold, Rules::SHORTEST));
    let mut memory = Memory::new(postings.clone(), Durability::OwnWal);
    let options = RocksOptions {
        postings_in_memory: 20_000,
        ..RocksOptions::new(postings, Durability::OwnWal, Budget::new(16 << 20))
    };
    let mut rocks = Rocks::open(&directory, &options).unwrap();
    let preparer = Preparer::new(trust_declared());
    let body = window(1, 0, 120, 0, 0);
    let mut most = 0;
    for (held, size) in [(0, 500), (500, 1_000), (1_000, 2_500), (2_500, 3_000)] {
        for from in (held..size).step_by(BATCH as usize) {
            let copy = |n: u64| {
                let prepared = preparer.prepare(&article(&format!("a{n}"), &body), &line(n)).unwrap();
                Item {
                    position: line(n),
                    time: at(0),
                    log_time: None,
                    incoming: Incoming::Article(Box::new(prepared)),
                }
            };
            let batch = || Batch { items: (from..from + BATCH).map(copy).collect(), ..Batch::default() };
            let plan = engine.plan(&rocks, batch()).unwrap().0;
            let expected = engine.plan(&memory, batch()).unwrap().0;
            assert!(
                plan.outputs().eq(expected.outputs()),
                "other verdicts than in memory, from copy {from} on"
            );
            rocks.apply_own_changes(&plan.changes).unwrap();
            memory.apply_own_changes(&expected.changes).unwrap();
        }
        most = most.max(rocks.reader().posting_memory());
    }
    drop(rocks);
    drop(std::fs::remove_dir_all(&directory));
    assert!(most < 3_000 * 1_000, "{most} bytes of postings at 3,000 copies");
}
