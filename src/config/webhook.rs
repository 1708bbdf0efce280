//! Settings of the webhook: where verdicts are delivered over HTTP, which, and what happens when that fails.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use super::bus::{Secret, resolve_secret};
use super::check::{choice, duration};
use super::{ConfigError, WebhookSettings, invalid};

/// Settings of the webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// Where events are sent; a secret, because the address of a chat's webhook is one.
    pub url: Secret,
    /// Which events are sent.
    pub events: Vec<WebhookEvent>,
    /// Key of the signature.
    pub secret: Option<Secret>,
    /// The most events in one request.
    pub batch: usize,
    /// How long a request waits for more events after the first.
    pub linger: Duration,
    /// How long one attempt may take.
    pub timeout: Duration,
    /// How often a request is repeated before its events become dead letters; `None` repeats it forever.
    pub retries: Option<u32>,
    /// The first and the longest pause between attempts.
    pub backoff: (Duration, Duration),
    /// Format of a request's body.
    pub format: WebhookFormat,
    /// Where events go that the server refuses.
    pub dead_letters: DeadLetterTarget,
    /// Where to start without committed offsets.
    pub start: WebhookStart,
    /// CA certificates that the server's certificate is verified against, instead of the system's.
    pub ca: Option<PathBuf>,
}

/// A kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WebhookEvent {
    /// A verdict `unique`.
    Unique,
    /// A verdict `near-duplicate`.
    NearDuplicate,
    /// A verdict `exact-duplicate`.
    ExactDuplicate,
    /// Any verdict with the flag `review`.
    Review,
    /// An article was deleted or moved to the other topic.
    Retracted,
}

impl WebhookEvent {
    /// The name in the settings.
    pub const fn as_str(self) -> &'static str {
        match self {
            WebhookEvent::Unique => "unique",
            WebhookEvent::NearDuplicate => "near-duplicate",
            WebhookEvent::ExactDuplicate => "exact-duplicate",
            WebhookEvent::Review => "review",
            WebhookEvent::Retracted => "retracted",
        }
    }
}

/// Format of a request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WebhookFormat {
    /// `{"events": […]}`.
    Json,
    /// A message for a Slack incoming webhook.
    Slack,
}

/// Where to start without committed offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WebhookStart {
    /// With the oldest verdict.
    Earliest,
    /// With the next verdict.
    Latest,
}

impl WebhookStart {
    /// The name in the settings, which is also librdkafka's.
    pub const fn as_str(self) -> &'static str {
        match self {
            WebhookStart::Earliest => "earliest",
            WebhookStart::Latest => "latest",
        }
    }
}

/// Where events go that the server refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeadLetterTarget {
    /// Appended to this file, one JSON object per line.
    File(PathBuf),
    /// Written to this topic.
    Topic(String),
}

const DEFAULT_EVENTS: &[&str] = &["near-duplicate", "exact-duplicate", "review"];

impl Webhook {
    /// The most events in one request.
    const LARGEST_BATCH: usize = 500;

    pub(super) fn checked(written: &WebhookSettings) -> Result<Option<Webhook>, ConfigError> {
        let events = match &written.events {
            None => DEFAULT_EVENTS.iter().map(|name| (*name).to_owned()).collect(),
            Some(events) => events.clone(),
        };
        let events = events
            .iter()
            .map(|name| choice("webhook.events", Some(name), WebhookEvent::Review))
            .collect::<Result<Vec<_>, _>>()?;
        if events.is_empty() {
            return Err(invalid("webhook.events", "[]", "name at least one kind of event"));
        }
        let batch = written.batch.unwrap_or(20);
        if !(1..=Self::LARGEST_BATCH).contains(&batch) {
            return Err(invalid("webhook.batch", batch, "use a number of events, 1 to 500"));
        }
        let millis = |key: &str, written: &Option<String>, default: u64| match written {
            Some(text) => duration(key, text).map(Duration::from_millis),
            None => Ok(Duration::from_millis(default)),
        };
        let linger = millis("webhook.linger", &written.linger, 1_000)?;
        let timeout = millis("webhook.timeout", &written.timeout, 10_000)?;
        // A member of a group must poll again within five minutes.
        let longest = Duration::from_secs(60);
        for (key, value) in [("webhook.linger", linger), ("webhook.timeout", timeout)] {
            if value > longest || (key == "webhook.timeout" && value < Duration::from_millis(10)) {
                return Err(invalid(key, format!("{value:?}"), "use a duration of 10ms to 60s"));
            }
        }
        let backoff = match &written.backoff {
            None => (Duration::from_millis(500), Duration::from_secs(60)),
            Some(pauses) => {
                let [first, longest] = pauses.as_slice() else {
                    let fix = "use two durations, such as [\"500ms\", \"60s\"]";
                    return Err(invalid("webhook.backoff", format!("{pauses:?}"), fix));
                };
                let first = Duration::from_millis(duration("webhook.backoff", first)?);
                (first, Duration::from_millis(duration("webhook.backoff", longest)?))
            }
        };
        if backoff.0.is_zero() || backoff.0 > backoff.1 {
            let fix = "use two durations above zero, the shorter first, such as [\"500ms\", \"60s\"]";
            return Err(invalid("webhook.backoff", format!("{backoff:?}"), fix));
        }
        let format = choice("webhook.format", written.format.as_deref(), WebhookFormat::Json)?;
        let start = choice("webhook.start", written.start.as_deref(), WebhookStart::Earliest)?;
        let target = written.dead_letters.as_deref().unwrap_or("webhook-dead-letters.ndjson");
        let dead_letters = match target.strip_prefix("topic:") {
            Some("") => return Err(invalid("webhook.dead_letters", target, "name a topic after topic:")),
            Some(topic) => DeadLetterTarget::Topic(topic.to_owned()),
            None => DeadLetterTarget::File(target.into()),
        };
        let secret =
            written.secret.as_ref().map(|secret| resolve_secret("webhook.secret", secret)).transpose()?;
        if secret.as_ref().is_some_and(|secret| secret.reveal().is_empty()) {
            return Err(invalid("webhook.secret", "…", "write a key, or remove the line to send unsigned"));
        }
        let Some(url) = &written.url else { return Ok(None) };
        let url = resolve_secret("webhook.url", url)?;
        check_url(url.reveal())?;
        Ok(Some(Webhook {
            url,
            events,
            secret,
            batch,
            linger,
            timeout,
            retries: written.retries,
            backoff,
            format,
            dead_letters,
            start,
            ca: written.ca.clone(),
        }))
    }
}

/// The error does not repeat the address, which may be a secret.
fn check_url(url: &str) -> Result<(), ConfigError> {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let address = rest.split(['/', '?']).next().unwrap_or_default();
    let valid = matches!(scheme, "http" | "https")
        && !address.is_empty()
        && !address.contains('@')
        && !url.contains(|c: char| c.is_whitespace() || c.is_control());
    if valid {
        Ok(())
    } else {
        let fix = "use a URL such as https://cms.example/hooks/samestory, without user name and password";
        Err(invalid("webhook.url", "…", fix))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{config, refusal};
    use super::*;

    #[test]
    fn a_webhook_needs_only_its_url() {
        assert_eq!(config("").unwrap().webhook, None);
        let hook = config("[webhook]\nurl = \"https://cms.example/hook\"").unwrap().webhook.unwrap();
        assert_eq!(hook.events.iter().map(|event| event.as_str()).collect::<Vec<_>>(), DEFAULT_EVENTS);
        assert_eq!((hook.batch, hook.retries, hook.format), (20, None, WebhookFormat::Json));
        assert!(!format!("{hook:?}").contains("cms.example"));
    }

    #[test]
    fn values_that_cannot_work_are_refused() {
        for (line, expected) in [
            ("url = \"cms.example\"", "webhook.url"),
            ("url = \"https://a:hush@cms.example\"", "webhook.url"),
            ("events = []", "webhook.events"),
            ("events = [\"everything\"]", "near-duplicate"),
            ("batch = 0", "webhook.batch"),
            ("timeout = \"5m\"", "webhook.timeout"),
            ("backoff = [\"1m\", \"1s\"]", "webhook.backoff"),
            ("backoff = [\"1s\"]", "webhook.backoff"),
            ("format = \"xml\"", "json or slack"),
            ("dead_letters = \"topic:\"", "webhook.dead_letters"),
            ("secret = \"\"", "webhook.secret"),
        ] {
            let refusal = refusal(&format!("[webhook]\n{line}"));
            assert!(refusal.contains(expected) && !refusal.contains("hush"), "{line}: {refusal}");
        }
    }
}
