//! The request to stop, shared by all threads of the process, and the one way to wait for something outside it. Threads
//! that wait for a [`Stop`] wake up at once; `Poll` asks an external system again until it answers or the process stops.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;
#[cfg(feature = "kafka")]
use std::time::Instant;

#[cfg(feature = "kafka")]
use crate::config::Backoff;

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
    /// The pauses between questions.
    pub(crate) backoff: Backoff,
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
    /// Asks with these pauses until the process stops.
    pub(crate) fn until_stopped(stop: &'a Stop, backoff: Backoff) -> Poll<'a> {
        Poll { stop: Some(stop), backoff, deadline: None }
    }

    /// Asks until there is a final answer. `None` if the process stops first, or time is up.
    ///
    /// # Errors
    /// As `ask`.
    pub(crate) fn ask<T, E>(self, mut ask: impl FnMut() -> Result<Polled<T>, E>) -> Result<Option<T>, E> {
        let never = Stop::default();
        let (stop, mut unanswered) = (self.stop.unwrap_or(&never), 0_u32);
        while !stop.is_requested() {
            match ask()? {
                Polled::Final(answer) => return Ok(Some(answer)),
                Polled::NotYet if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) => break,
                Polled::NotYet => {
                    unanswered = unanswered.saturating_add(1);
                    stop.wait(self.backoff.pause(unanswered))
                }
            };
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
        let poll = || Poll::until_stopped(&stop, Backoff::every(Duration::from_millis(1)));
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

    #[cfg(feature = "kafka")]
    #[test]
    fn pauses_between_questions_are_those_of_the_settings() {
        let settings = "[retry]\nregistry = [\"20ms\", \"40ms\"]";
        let settings: crate::config::Settings = toml::from_str(settings).unwrap();
        let retry = crate::config::Config::try_from(settings).unwrap().bus.retry;
        let stop = Stop::default();
        let began = Instant::now();
        let mut asked = 0;
        let answer = Poll::until_stopped(&stop, retry.registry).ask(|| {
            asked += 1;
            Ok::<_, ()>(if asked == 4 { Polled::Final(asked) } else { Polled::NotYet })
        });
        assert_eq!(answer, Ok(Some(4)));
        // 20 + 40 + 40 ms; the defaults would take 1.4 s.
        let took = began.elapsed();
        assert!((Duration::from_millis(100)..Duration::from_millis(1400)).contains(&took), "{took:?}");
    }
}
