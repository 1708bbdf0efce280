//! Generates and fingerprints articles on all cores, and delivers them in order, as the product reads files.
//!
//! For timed stretches the texts are generated beforehand ([`Texts`]), because generating them is not part of
//! the work that is measured.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use crate::stream::Stream;

/// Articles per chunk.
const CHUNK: u64 = 125;
/// Finished chunks queued per worker.
const AHEAD: usize = 4;

/// Fingerprints article n, given its text.
pub type Prepare<R> = Arc<dyn Fn(u64, &str) -> R + Send + Sync>;

/// Texts generated beforehand, in one buffer.
pub struct Texts {
    first: u64,
    all: String,
    ends: Vec<usize>,
}

impl Texts {
    /// Generates the texts of articles `from..to`.
    pub fn new(stream: &Stream, from: u64, to: u64) -> Texts {
        let (mut all, mut text, mut ends) = (String::new(), String::new(), Vec::new());
        for n in from..to {
            stream.write(n, &mut text);
            all.push_str(&text);
            ends.push(all.len());
        }
        Texts { first: from, all, ends }
    }

    /// The memory that the texts occupy.
    pub fn bytes(&self) -> usize {
        self.all.capacity()
    }

    fn text(&self, n: u64) -> &str {
        let at = (n - self.first) as usize;
        &self.all[at.checked_sub(1).map_or(0, |before| self.ends[before])..self.ends[at]]
    }
}

/// Delivers prepared articles in order.
pub struct Feed<R> {
    workers: Vec<Receiver<Vec<R>>>,
    turn: usize,
}

impl<R: Send + 'static> Feed<R> {
    /// Generates articles `from..to`. The threads end when all are taken, or when the feed is dropped.
    pub fn start(stream: &Arc<Stream>, prepare: &Prepare<R>, from: u64, to: u64) -> Feed<R> {
        let stream = Arc::clone(stream);
        Feed::spawn(prepare, from, to, move |n, text| stream.write(n, text))
    }

    /// Delivers articles `from..to` with texts that were generated beforehand.
    pub fn from_texts(texts: &Arc<Texts>, prepare: &Prepare<R>, from: u64, to: u64) -> Feed<R> {
        let texts = Arc::clone(texts);
        Feed::spawn(prepare, from, to, move |n, text| {
            text.clear();
            text.push_str(texts.text(n));
        })
    }

    /// Delivers articles `from..to` with texts that `write` makes.
    pub fn spawn(
        prepare: &Prepare<R>,
        from: u64,
        to: u64,
        write: impl Fn(u64, &mut String) + Clone + Send + 'static,
    ) -> Feed<R> {
        let threads = thread::available_parallelism().map_or(1, usize::from) as u64;
        let workers = (0..threads).map(|worker| {
            let (results, from_worker) = sync_channel(AHEAD);
            let (write, prepare) = (write.clone(), Arc::clone(prepare));
            thread::spawn(move || {
                let mut text = String::new();
                for first in (from + worker * CHUNK..to).step_by((threads * CHUNK) as usize) {
                    let prepare_one = |n| {
                        write(n, &mut text);
                        prepare(n, &text)
                    };
                    let chunk = (first..to.min(first + CHUNK)).map(prepare_one).collect();
                    if results.send(chunk).is_err() {
                        return;
                    }
                }
            });
            from_worker
        });
        Feed { workers: workers.collect(), turn: 0 }
    }

    /// The next articles, at least `count` unless the feed ends; rounded up to whole chunks.
    pub fn take(&mut self, count: usize) -> Vec<R> {
        let mut taken = Vec::with_capacity(count);
        while taken.len() < count {
            let Ok(chunk) = self.workers[self.turn].recv() else { break };
            self.turn = (self.turn + 1) % self.workers.len();
            taken.extend(chunk);
        }
        taken
    }
}
