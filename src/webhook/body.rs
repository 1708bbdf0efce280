//! The body of a request and its signature.

use hmac::{Hmac, Mac};
use serde_json::json;
use sha2::Sha256;

use crate::config::WebhookFormat;

use super::event::VerdictEvent;

/// The longest headline in a chat message, in characters.
const LONGEST_TITLE: usize = 150;

/// What one request sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookPayload {
    /// The JSON text.
    pub body: String,
    /// Names the events: equal for equal events, so that a server can ignore a repeated request.
    pub idempotency_key: String,
}

/// The body for these events.
pub fn payload(format: WebhookFormat, events: &[VerdictEvent]) -> WebhookPayload {
    let body = match format {
        WebhookFormat::Json => json!({ "events": events }).to_string(),
        WebhookFormat::Slack => {
            let lines: Vec<String> = events.iter().map(slack_line).collect();
            json!({ "text": lines.join("\n"), "unfurl_links": false }).to_string()
        }
    };
    let ids: Vec<&str> = events.iter().map(|event| event.id.as_str()).collect();
    let idempotency_key = format!("{:032x}", xxhash_rust::xxh3::xxh3_128(ids.join("\n").as_bytes()));
    WebhookPayload { body, idempotency_key }
}

/// The value of the header `Samestory-Signature`: `t=` the time in seconds, `v1=` the HMAC-SHA256 of `<time>.<body>` in hex.
pub fn signature(secret: &str, seconds: i64, body: &str) -> String {
    // A key of any length is valid.
    let mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes());
    #[expect(clippy::expect_used, reason = "HMAC takes keys of any length")]
    let mut mac = mac.expect("HMAC takes keys of any length");
    mac.update(format!("{seconds}.{body}").as_bytes());
    format!("t={seconds},v1={}", hex::encode(mac.finalize().into_bytes()))
}

/// `near-duplicate: *The bridge* repeats a0 (similarity 0.83, confidence 0.97) en`.
fn slack_line(event: &VerdictEvent) -> String {
    let title = event.title.as_deref().unwrap_or(&event.article_id);
    let title = slack_text(&title.chars().take(LONGEST_TITLE).collect::<String>());
    let title = match event.url.as_deref().filter(|url| is_plain_url(url)) {
        Some(url) => format!("<{url}|{title}>"),
        None => format!("*{title}*"),
    };
    let number = |name: &str, value: Option<f64>| value.map(|value| format!("{name} {value:.2}"));
    let numbers = [number("similarity", event.similarity), number("confidence", event.confidence)];
    let numbers: Vec<String> = numbers.into_iter().flatten().collect();
    let mut line = format!("{}: {title}", event.verdict.as_deref().unwrap_or(event.kind));
    if let Some(original) = &event.duplicate_of {
        line += &format!(" repeats {}", slack_text(original));
    }
    if !numbers.is_empty() {
        line += &format!(" ({})", numbers.join(", "));
    }
    if event.flags.iter().any(|flag| flag == "review") {
        line += " – to review";
    }
    line
}

/// Text without markup: an article must not mention a channel or pose as a link.
fn slack_text(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => plain.push_str("&amp;"),
            '<' => plain.push_str("&lt;"),
            '>' => plain.push_str("&gt;"),
            // These would begin or end formatting.
            '*' | '_' | '~' | '`' => {
                plain.push('\u{2060}');
                plain.push(c);
            }
            c if c.is_control() => plain.push(' '),
            c => plain.push(c),
        }
    }
    plain
}

fn is_plain_url(url: &str) -> bool {
    let scheme = url.starts_with("https://") || url.starts_with("http://");
    scheme && !url.contains(|c: char| c.is_control() || c.is_whitespace() || "<>|".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: &str, title: &str, url: Option<&str>) -> VerdictEvent {
        VerdictEvent {
            id: id.into(),
            kind: "verdict",
            article_id: "a1".into(),
            verdict: Some("near-duplicate".into()),
            match_type: None,
            duplicate_of: Some("a0".into()),
            cluster_id: None,
            canonical_id: None,
            similarity: Some(0.831),
            confidence: None,
            language: None,
            revision: None,
            flags: vec!["review".into()],
            title: Some(title.into()),
            url: url.map(str::to_owned),
        }
    }

    /// From RFC 4231, test case 2, adapted to `<time>.<body>`: computed with OpenSSL.
    #[test]
    fn a_signature_has_its_known_value() {
        assert_eq!(
            signature("Jefe", 1_700_000_000, "what do ya want for nothing?"),
            "t=1700000000,v1=1cdd0650c8be1cb0974b1788d458b1e781206cfef59b85faafc582d2e182c57e"
        );
    }

    #[test]
    fn equal_events_have_equal_keys() {
        let (a, b) = (event("t/0/1", "A", None), event("t/0/2", "A", None));
        let key = |events: &[VerdictEvent]| payload(WebhookFormat::Json, events).idempotency_key;
        assert_eq!(key(&[a.clone(), b.clone()]), key(&[a.clone(), b.clone()]));
        assert_ne!(key(std::slice::from_ref(&a)), key(&[a.clone(), b]));
        assert_eq!(key(&[a]).len(), 32);
    }

    #[test]
    fn a_hostile_headline_is_only_text_in_a_chat() {
        let text = |title: &str, url| {
            let payload = payload(WebhookFormat::Slack, &[event("t/0/1", title, url)]);
            let body: serde_json::Value = serde_json::from_str(&payload.body).unwrap();
            body["text"].as_str().unwrap().to_owned()
        };
        let line = text("<!channel> & *bold*\nnew", Some("https://a.example/x|y"));
        assert!(line.starts_with("near-duplicate: *&lt;!channel&gt; &amp; "), "{line}");
        assert!(!line.contains('\n') && !line.contains("<"), "{line}");
        let line = text("The bridge", Some("https://a.example/x"));
        assert_eq!(
            line,
            "near-duplicate: <https://a.example/x|The bridge> repeats a0 (similarity 0.83) – to review"
        );
        assert!(text(&"x".repeat(10_000), None).len() < 300);
    }

    #[test]
    fn a_body_lists_its_events() {
        let body = payload(WebhookFormat::Json, &[event("t/0/1", "A", None)]).body;
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!(
            (&body["events"][0]["id"], &body["events"][0]["type"]),
            (&json!("t/0/1"), &json!("verdict"))
        );
    }
}
