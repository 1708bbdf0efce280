//! Runs a pure function over a slice on several threads. Results come back in the order of the slice, so they do not
//! depend on how many threads there were.

use std::thread::{self, ScopedJoinHandle};

/// The results of `work` on every item, in order, computed on all cores.
pub fn map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    map_on(thread::available_parallelism().map_or(1, usize::from), items, work)
}

/// As [`map`], on at most this many threads. A panic of `work` reaches the caller.
pub fn map_on<T: Sync, R: Send>(threads: usize, items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let serial = |part: &[T]| part.iter().map(&work).collect::<Vec<R>>();
    let share = items.len().div_ceil(threads.max(1)).max(1);
    if items.len() <= share {
        return serial(items);
    }
    let (first, rest) = items.split_at(share);
    thread::scope(|scope| {
        let serial = &serial;
        let spawn = |part| {
            let spawned = thread::Builder::new().spawn_scoped(scope, move || serial(part));
            (part, spawned.ok())
        };
        let parts: Vec<_> = rest.chunks(share).map(spawn).collect();
        // The caller is one of the threads. It also does the work of a thread that could not be started, and repeats
        // the work of one that panicked, so that the panic is its own.
        let mut results = serial(first);
        for (part, thread) in parts {
            let done = thread.and_then(|thread: ScopedJoinHandle<'_, Vec<R>>| thread.join().ok());
            results.extend(done.unwrap_or_else(|| serial(part)));
        }
        results
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_the_order_of_the_items_whatever_the_number_of_threads() {
        let items: Vec<usize> = (0..23).collect();
        let doubled: Vec<usize> = items.iter().map(|item| item * 2).collect();
        for threads in [0, 1, 2, 5, 23, 100] {
            assert_eq!(map_on(threads, &items, |item| item * 2), doubled, "{threads} threads");
        }
        assert_eq!(map(&items, |item| item * 2), doubled);
        assert_eq!(map(&[0; 0], |item: &i32| *item), [0; 0]);
    }

    #[test]
    #[should_panic(expected = "item 3")]
    fn a_panic_reaches_the_caller() {
        map_on(2, &[0, 1, 2, 3], |item| assert_ne!(*item, 3, "item {item}"));
    }
}
