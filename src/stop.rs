//! The request to stop, shared by all threads of the process, and the one way to wait for something outside it. Threads
//! that wait for a [`Stop`] wake up at once; `Poll` asks an external system again until it answers or the process stops.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;
#[cfg(feature = "kafka")]
use std::time::Instant;

/// True if the process is to stop. Clones share the request.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    requested: Arc<AtomicBool>,
    /// Held while `requested` is set, so that no waiting thread misses the change.
    changing: Mutex<()>,
    changed: Condvar,
}

impl Stop {
    /// Requests the stop and wakes every waiting thread.
    pub fn request(&self) {
        let _changing = self.0.changing.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.requested.store(true, Ordering::Relaxed);
        self.0.changed.notify_all();
    }

    /// True if the stop was requested.
    pub fn is_requested(&self) -> bool {
        self.0.requested.load(Ordering::Relaxed)
    }

    /// Waits until the stop is requested, but no longer than this. Returns whether it was requested.
    pub fn wait(&self, time: Duration) -> bool {
        let changing = self.0.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.0.changed.wait_timeout_while(changing, time, |()| !self.is_requested());
        drop(waited);
        self.is_requested()
    }

    /// Requests the stop on SIGTERM and SIGINT. The second signal ends the process at once.
    ///
    /// # Errors
    /// The operating system refused a signal handler or a thread.
    #[cfg(feature = "kafka")]
    pub fn on_signals(&self) -> std::io::Result<()> {
        use signal_hook::consts::{SIGINT, SIGTERM};
        for signal in [SIGTERM, SIGINT] {
            // A handler and not the thread below: it works even if no thread gets to run.
            signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&self.0.requested))?;
            signal_hook::flag::register(signal, Arc::clone(&self.0.requested))?;
        }
        let mut signals = signal_hook::iterator::Signals::new([SIGTERM, SIGINT])?;
        let stop = self.clone();
        let wake = move || signals.forever().for_each(|_| stop.request());
        std::thread::Builder::new().name("signals".into()).spawn(wake).map(drop)
    }
}

/// Repeats a question to an external system: a broker or a registry offers nothing to wait on.
#[cfg(feature = "kafka")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Poll<'a> {
    /// Ends the wait, if there is one.
    pub(crate) stop: Option<&'a Stop>,
    /// The pause before the second question. Each following pause is twice as long, up to `longest`.
    pub(crate) pause: Duration,
    pub(crate) longest: Duration,
    /// When to give up.
    pub(crate) deadline: Option<Instant>,
}

/// The answer to one question.
#[cfg(feature = "kafka")]
pub(crate) enum Polled<T> {
    Final(T),
    NotYet,
}

#[cfg(feature = "kafka")]
impl<'a> Poll<'a> {
    /// Asks every half second until the process stops.
    pub(crate) fn until_stopped(stop: &'a Stop) -> Poll<'a> {
        let pause = Duration::from_millis(500);
        Poll { stop: Some(stop), pause, longest: pause, deadline: None }
    }

    /// Asks until there is a final answer. `None` if the process stops first, or time is up.
    ///
    /// # Errors
    /// As `ask`.
    pub(crate) fn ask<T, E>(self, mut ask: impl FnMut() -> Result<Polled<T>, E>) -> Result<Option<T>, E> {
        let never = Stop::default();
        let (stop, mut pause) = (self.stop.unwrap_or(&never), self.pause);
        while !stop.is_requested() {
            match ask()? {
                Polled::Final(answer) => return Ok(Some(answer)),
                Polled::NotYet if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) => break,
                Polled::NotYet => stop.wait(pause),
            };
            pause = (pause * 2).min(self.longest);
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_wakes_a_waiting_thread() {
        let stop = Stop::default();
        let waiting = stop.clone();
        let thread = std::thread::spawn(move || waiting.wait(Duration::from_secs(600)));
        assert!(!stop.wait(Duration::from_millis(1)));
        stop.request();
        assert!(thread.join().unwrap());
        assert!(stop.wait(Duration::from_secs(600)), "it stays requested");
    }

    #[cfg(feature = "kafka")]
    #[test]
    fn a_question_is_repeated_until_it_is_answered_or_the_process_stops() {
        let stop = Stop::default();
        let poll = || Poll {
            pause: Duration::from_millis(1),
            longest: Duration::ZERO,
            ..Poll::until_stopped(&stop)
        };
        let mut left = 3;
        let mut ask = || {
            left -= 1;
            Ok::<_, ()>(if left == 0 { Polled::Final("ready") } else { Polled::NotYet })
        };
        assert_eq!(poll().ask(&mut ask), Ok(Some("ready")));
        assert_eq!(poll().ask(|| Err::<Polled<()>, _>("refused")), Err("refused"));
        let late = Poll { deadline: Some(Instant::now()), ..poll() };
        assert_eq!(late.ask(|| Ok::<Polled<()>, ()>(Polled::NotYet)), Ok(None), "time is up");
        stop.request();
        assert_eq!(poll().ask(|| Ok::<_, ()>(Polled::Final(1))), Ok(None), "nothing is asked any more");
    }
}
