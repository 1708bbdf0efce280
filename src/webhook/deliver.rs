//! Decides what an answer means, and when a request is sent again. It has no clock and no network of its own: the caller sends
//! and waits.

use std::time::Duration;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::config::{Webhook, WebhookFormat};

use super::body::{WebhookPayload, payload};
use super::event::VerdictEvent;
use super::http::WebhookAnswer;

/// When to send again, and when to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How often a request is repeated; `None` is forever.
    pub retries: Option<u32>,
    /// The first pause.
    pub first: Duration,
    /// The longest pause.
    pub longest: Duration,
}

impl From<&Webhook> for RetryPolicy {
    fn from(hook: &Webhook) -> RetryPolicy {
        RetryPolicy { retries: hook.retries, first: hook.backoff.0, longest: hook.backoff.1 }
    }
}

/// What to do after an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// The server has the events.
    Delivered,
    /// Wait, then send the same request again.
    Retry {
        /// How long to wait.
        pause: Duration,
        /// What went wrong.
        why: String,
    },
    /// Sending it again would not help.
    Refused {
        /// What went wrong.
        why: String,
    },
}

impl RetryPolicy {
    /// The reaction to the answer to attempt `attempt`, counted from 0.
    ///
    /// 2xx is success, whatever the body says. 408, 425, 429, 5xx and no answer are worth another attempt. Everything else, a
    /// redirect too, is a refusal.
    pub fn react(&self, answer: &WebhookAnswer, attempt: u32, payload: &WebhookPayload) -> Reaction {
        let (why, after) = match answer {
            WebhookAnswer::Status { status: 200..=299, .. } => return Reaction::Delivered,
            WebhookAnswer::Status { status, retry_after, text } => {
                let why =
                    if text.is_empty() { format!("HTTP {status}") } else { format!("HTTP {status}: {text}") };
                if !matches!(status, 408 | 425 | 429 | 500..=599) {
                    return Reaction::Refused { why };
                }
                (why, *retry_after)
            }
            WebhookAnswer::None { why } => (why.clone(), None),
        };
        if self.retries.is_some_and(|retries| attempt >= retries) {
            return Reaction::Refused { why: format!("{why}, after {attempt} retries") };
        }
        let pause = self.pause(attempt, payload);
        // A server may ask for more patience than the schedule has, but not for hours.
        let pause = after.map_or(pause, |after| after.clamp(pause, self.longest.max(pause)));
        Reaction::Retry { pause, why }
    }

    /// Doubles from the first pause up to the longest; between half of it and all of it, so that many senders do not return
    /// together.
    fn pause(&self, attempt: u32, payload: &WebhookPayload) -> Duration {
        let doubled = self.first.saturating_mul(1_u32.checked_shl(attempt.min(31)).unwrap_or(u32::MAX));
        let full = doubled.min(self.longest);
        let spread = xxh3_64_with_seed(payload.idempotency_key.as_bytes(), u64::from(attempt));
        full / 2 + (full / 2).mul_f64(spread as f64 / u64::MAX as f64)
    }
}

/// What the caller of [`deliver`] does for it.
pub trait Channel {
    /// Sends one request.
    fn send(&mut self, payload: &WebhookPayload) -> WebhookAnswer;

    /// Waits; returns false if the process is to stop.
    fn wait(&mut self, pause: Duration, why: &str) -> bool;

    /// Keeps an event that the server refuses. It is durable when this returns.
    ///
    /// # Errors
    /// It cannot be kept, so it must not be passed over.
    fn refuse(&mut self, event: &VerdictEvent, why: &str) -> Result<(), String>;
}

/// How the delivery of some events ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Each event is with the server or kept as a dead letter.
    Done {
        /// Events that the server has accepted.
        delivered: usize,
        /// Events that became dead letters.
        refused: usize,
    },
    /// The process is to stop; the events are sent again by the next one.
    Stopped,
}

/// Sends events until each is delivered or refused. A refused request is sent again event by event, so that one bad event does
/// not take the others with it.
///
/// # Errors
/// A refused event cannot be kept.
pub fn deliver(
    format: WebhookFormat,
    policy: RetryPolicy,
    events: &[VerdictEvent],
    channel: &mut dyn Channel,
) -> Result<Delivery, String> {
    let (mut delivered, mut refused) = (0, 0);
    let mut requests = vec![events];
    while let Some(events) = requests.pop() {
        let payload = payload(format, events);
        let mut attempt = 0;
        loop {
            let answer = channel.send(&payload);
            match policy.react(&answer, attempt, &payload) {
                Reaction::Delivered => delivered += events.len(),
                Reaction::Retry { pause, why } => {
                    if !channel.wait(pause, &why) {
                        return Ok(Delivery::Stopped);
                    }
                    attempt = attempt.saturating_add(1);
                    continue;
                }
                Reaction::Refused { why } => match events {
                    [] => {}
                    [event] => {
                        channel.refuse(event, &why)?;
                        refused += 1;
                    }
                    // The last is sent first, so they go in order.
                    several => requests.extend(several.chunks(1).rev()),
                },
            }
            break;
        }
    }
    Ok(Delivery::Done { delivered, refused })
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: RetryPolicy =
        RetryPolicy { retries: Some(3), first: Duration::from_millis(100), longest: Duration::from_secs(1) };

    fn some_payload() -> WebhookPayload {
        WebhookPayload { body: "{}".into(), idempotency_key: "k".into() }
    }

    fn status(status: u16) -> WebhookAnswer {
        WebhookAnswer::Status { status, retry_after: None, text: String::new() }
    }

    fn events(count: usize) -> Vec<VerdictEvent> {
        let event = |at: usize| VerdictEvent {
            id: format!("t/0/{at}"),
            kind: "verdict",
            article_id: format!("a{at}"),
            verdict: Some("near-duplicate".into()),
            match_type: None,
            duplicate_of: None,
            cluster_id: None,
            canonical_id: None,
            similarity: None,
            confidence: None,
            language: None,
            revision: None,
            flags: Vec::new(),
            title: None,
            url: None,
        };
        (0..count).map(event).collect()
    }

    /// Answers by a rule, and writes down what happens.
    struct Scripted<F> {
        answer: F,
        sent: Vec<String>,
        waited: Vec<Duration>,
        refused: Vec<String>,
        patience: usize,
    }

    impl<F: FnMut(&WebhookPayload) -> WebhookAnswer> Channel for Scripted<F> {
        fn send(&mut self, payload: &WebhookPayload) -> WebhookAnswer {
            self.sent.push(payload.body.clone());
            (self.answer)(payload)
        }

        fn wait(&mut self, pause: Duration, _why: &str) -> bool {
            self.waited.push(pause);
            self.waited.len() < self.patience
        }

        fn refuse(&mut self, event: &VerdictEvent, _why: &str) -> Result<(), String> {
            self.refused.push(event.article_id.clone());
            Ok(())
        }
    }

    fn scripted<F: FnMut(&WebhookPayload) -> WebhookAnswer>(answer: F) -> Scripted<F> {
        Scripted { answer, sent: Vec::new(), waited: Vec::new(), refused: Vec::new(), patience: usize::MAX }
    }

    #[test]
    fn answers_have_their_meaning() {
        let react = |answer: &WebhookAnswer, attempt| POLICY.react(answer, attempt, &some_payload());
        for accepted in [200, 202, 204, 299] {
            assert_eq!(react(&status(accepted), 0), Reaction::Delivered);
        }
        for refused in [100, 301, 302, 400, 401, 403, 404, 410, 413, 422] {
            assert!(matches!(react(&status(refused), 0), Reaction::Refused { .. }), "{refused}");
        }
        for retried in [408, 425, 429, 500, 502, 503, 504] {
            assert!(matches!(react(&status(retried), 2), Reaction::Retry { .. }), "{retried}");
            assert!(matches!(react(&status(retried), 3), Reaction::Refused { .. }), "{retried}");
        }
        let forever = RetryPolicy { retries: None, ..POLICY };
        let away = WebhookAnswer::None { why: "refused".into() };
        assert!(matches!(forever.react(&away, u32::MAX, &some_payload()), Reaction::Retry { .. }));
    }

    #[test]
    fn pauses_double_up_to_the_longest_and_differ_between_senders() {
        for attempt in 0..40 {
            let full = Duration::from_millis(100 << attempt.min(10)).min(POLICY.longest);
            let pause = POLICY.pause(attempt, &some_payload());
            assert!(full / 2 <= pause && pause <= full, "{attempt}: {pause:?}");
        }
        let other = WebhookPayload { idempotency_key: "other".into(), ..some_payload() };
        assert_ne!(POLICY.pause(1, &some_payload()), POLICY.pause(1, &other));
    }

    #[test]
    fn a_server_may_ask_for_patience_within_bounds() {
        let asks = |seconds| WebhookAnswer::Status {
            status: 503,
            retry_after: Some(Duration::from_secs(seconds)),
            text: String::new(),
        };
        let pause = |seconds| match POLICY.react(&asks(seconds), 0, &some_payload()) {
            Reaction::Retry { pause, .. } => pause,
            other => panic!("{other:?}"),
        };
        assert_eq!((pause(1), pause(86_400)), (Duration::from_secs(1), Duration::from_secs(1)));
        assert!(pause(0) >= Duration::from_millis(50));
    }

    #[test]
    fn one_bad_event_does_not_take_the_others_with_it() {
        let mut channel = scripted(|payload| status(if payload.body.contains("\"a2\"") { 422 } else { 200 }));
        let done = deliver(WebhookFormat::Json, POLICY, &events(5), &mut channel);
        assert_eq!(done, Ok(Delivery::Done { delivered: 4, refused: 1 }));
        assert_eq!((channel.refused, channel.sent.len()), (vec!["a2".to_owned()], 6));
        let ids: Vec<usize> =
            channel.sent[1..].iter().map(|body| body.find("\"a").map_or(0, |_| 1)).collect();
        assert_eq!(ids, [1; 5]);
    }

    #[test]
    fn a_failing_server_gets_the_same_request_until_it_accepts() {
        let mut left = 3;
        let mut channel = scripted(move |_| {
            left -= 1;
            if left >= 0 { status(503) } else { status(200) }
        });
        let done = deliver(WebhookFormat::Json, POLICY, &events(2), &mut channel);
        assert_eq!(done, Ok(Delivery::Done { delivered: 2, refused: 0 }));
        assert_eq!((channel.sent.len(), channel.waited.len()), (4, 3));
        assert!(channel.sent.windows(2).all(|sent| sent[0] == sent[1]));
    }

    #[test]
    fn a_stop_ends_the_waiting() {
        let mut channel = scripted(|_| status(500));
        channel.patience = 1;
        let forever = RetryPolicy { retries: None, ..POLICY };
        assert_eq!(deliver(WebhookFormat::Json, forever, &events(1), &mut channel), Ok(Delivery::Stopped));
    }
}
