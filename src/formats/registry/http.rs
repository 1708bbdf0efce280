//! HTTP requests to the schema registry, for [`super::Registry`] only. Each is bounded in time and size and follows
//! neither redirects nor proxies, so that credentials go to the configured address and nowhere else.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use ureq::Agent;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, TlsProvider, parse_pem};

use crate::config::{Credentials, RegistryConfig};

use super::RegistryError;

const CONTENT: &str = "application/vnd.schemaregistry.v1+json";
const HEADERS: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct Client {
    agent: Agent,
    url: String,
    authorization: Option<Authorization>,
    max_bytes: u64,
}

/// The value of the `Authorization` header; `Debug` hides it.
struct Authorization(String);

impl std::fmt::Debug for Authorization {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("…")
    }
}

pub(super) struct RegistryAnswer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

impl Client {
    pub(super) fn new(config: &RegistryConfig) -> Result<Client, RegistryError> {
        let roots = match &config.ca {
            None => RootCerts::PlatformVerifier,
            Some(path) => {
                let refuse =
                    |why: String| RegistryError::Settings(format!("registry.ca = {}: {why}", path.display()));
                let pem = std::fs::read(path).map_err(|error| refuse(error.to_string()))?;
                let certificates: Vec<Certificate<'static>> = parse_pem(&pem)
                    .filter_map(|item| match item {
                        Ok(PemItem::Certificate(certificate)) => Some(certificate),
                        _ => None,
                    })
                    .collect();
                if certificates.is_empty() {
                    return Err(refuse("it contains no certificate; it must be a PEM file".into()));
                }
                RootCerts::new_with_certs(&certificates)
            }
        };
        let agent = Agent::config_builder()
            .timeout_global(Some(config.timeout))
            .timeout_connect(Some(config.timeout.min(Duration::from_secs(5))))
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .max_response_header_size(HEADERS)
            .proxy(None)
            .user_agent(concat!("samestory/", env!("CARGO_PKG_VERSION")))
            .tls_config(TlsConfig::builder().provider(TlsProvider::NativeTls).root_certs(roots).build())
            .build()
            .new_agent();
        let authorization = match &config.credentials {
            Credentials::None => None,
            Credentials::Bearer(token) => Some(format!("Bearer {}", token.reveal())),
            Credentials::Basic { username, password } => {
                Some(format!("Basic {}", STANDARD.encode(format!("{username}:{}", password.reveal()))))
            }
        };
        let authorization = authorization.map(Authorization);
        Ok(Client { agent, url: config.url.clone(), authorization, max_bytes: config.max_bytes })
    }

    pub(super) fn get(&self, path: &str) -> Result<RegistryAnswer, RegistryError> {
        let mut request = self.agent.get(format!("{}{path}", self.url)).header("Accept", CONTENT);
        if let Some(Authorization(header)) = &self.authorization {
            request = request.header("Authorization", header);
        }
        self.answer(request.call())
    }

    pub(super) fn send(
        &self,
        method: &str,
        path: &str,
        body: &Value,
    ) -> Result<RegistryAnswer, RegistryError> {
        let address = format!("{}{path}", self.url);
        let request = if method == "PUT" { self.agent.put(address) } else { self.agent.post(address) };
        let mut request = request.header("Accept", CONTENT).header("Content-Type", CONTENT);
        if let Some(Authorization(header)) = &self.authorization {
            request = request.header("Authorization", header);
        }
        self.answer(request.send(body.to_string()))
    }

    fn answer(
        &self,
        answer: Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Result<RegistryAnswer, RegistryError> {
        let away = |error: ureq::Error| RegistryError::Away(format!("{}: {}", self.url, in_words(&error)));
        let mut answer = answer.map_err(away)?;
        let status = answer.status().as_u16();
        let body = answer.body_mut().with_config().limit(self.max_bytes).read_to_vec().map_err(away)?;
        Ok(RegistryAnswer { status, body })
    }
}

fn in_words(error: &ureq::Error) -> String {
    match error {
        ureq::Error::BodyExceedsLimit(limit) => {
            format!("the response has more than {limit} bytes (registry.max_bytes)")
        }
        ureq::Error::Timeout(_) => "timed out (registry.timeout)".into(),
        other => other.to_string().chars().take(300).collect(),
    }
}
