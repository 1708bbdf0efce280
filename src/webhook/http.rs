//! One HTTP request. It is bounded in time and size and follows neither redirects nor proxies, so that the signature and the
//! events go to the configured address and nowhere else.

use std::fs;
use std::time::Duration;

use ureq::Agent;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, TlsProvider, parse_pem};

use crate::config::{Secret, Webhook};

use super::body::{WebhookPayload, signature};

/// The most that is read of an answer: enough to tell an operator why it is a refusal.
const LONGEST_ANSWER: u64 = 16 << 10;

/// The most that is shown of an answer, in characters.
const SHOWN: usize = 200;

/// A server that accepts events.
#[derive(Debug)]
pub struct Server {
    agent: Agent,
    url: Secret,
    secret: Option<Secret>,
}

/// What came of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookAnswer {
    /// The server answered with this status.
    Status {
        /// The HTTP status.
        status: u16,
        /// The value of `Retry-After`, if it is a number of seconds.
        retry_after: Option<Duration>,
        /// The beginning of the body, for the log.
        text: String,
    },
    /// There was no answer, or it was not HTTP.
    None {
        /// Why.
        why: String,
    },
}

impl Server {
    /// A client for the configured server; nothing is sent.
    ///
    /// # Errors
    /// The file of certificates cannot be used.
    pub fn new(hook: &Webhook) -> Result<Server, String> {
        let roots = match &hook.ca {
            None => RootCerts::PlatformVerifier,
            Some(path) => {
                let name = path.display();
                let pem = fs::read(path).map_err(|error| format!("webhook.ca = {name}: {error}"))?;
                let certificates: Vec<Certificate<'static>> = parse_pem(&pem)
                    .filter_map(|item| match item {
                        Ok(PemItem::Certificate(certificate)) => Some(certificate),
                        _ => None,
                    })
                    .collect();
                if certificates.is_empty() {
                    return Err(format!(
                        "webhook.ca = {name}: it contains no certificate; it must be a PEM file"
                    ));
                }
                RootCerts::new_with_certs(&certificates)
            }
        };
        let agent = Agent::config_builder()
            .timeout_global(Some(hook.timeout))
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .max_response_header_size(64 << 10)
            .proxy(None)
            .user_agent(concat!("samestory/", env!("CARGO_PKG_VERSION")))
            .tls_config(TlsConfig::builder().provider(TlsProvider::NativeTls).root_certs(roots).build())
            .build()
            .new_agent();
        Ok(Server { agent, url: hook.url.clone(), secret: hook.secret.clone() })
    }

    /// Sends one request. `seconds` is the time that is signed.
    pub fn send(&self, payload: &WebhookPayload, seconds: i64) -> WebhookAnswer {
        let mut request = self
            .agent
            .post(self.url.reveal())
            .header("Content-Type", "application/json")
            .header("Idempotency-Key", &payload.idempotency_key);
        if let Some(secret) = &self.secret {
            let signature = signature(secret.reveal(), seconds, &payload.body);
            request = request.header("Samestory-Signature", signature);
        }
        match request.send(&payload.body) {
            Ok(mut answer) => {
                let header = |name: &str| answer.headers().get(name)?.to_str().ok()?.trim().parse().ok();
                let retry_after = header("retry-after").map(Duration::from_secs);
                let status = answer.status().as_u16();
                // The status has arrived, so it counts even if the body breaks off.
                let body = answer.body_mut().with_config().limit(LONGEST_ANSWER).read_to_vec();
                let text = String::from_utf8_lossy(&body.unwrap_or_default()).into_owned();
                WebhookAnswer::Status { status, retry_after, text: shown(&text) }
            }
            // The address is a secret, and ureq's errors may repeat it.
            Err(error) => {
                WebhookAnswer::None { why: shown(&error.to_string().replace(self.url.reveal(), "…")) }
            }
        }
    }
}

fn shown(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(SHOWN)
        .collect::<String>()
        .trim()
        .to_owned()
}
