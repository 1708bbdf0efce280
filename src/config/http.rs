//! Where the program is asked: how it is, and what it knows.

use std::net::SocketAddr;

use super::bus::{self, Secret};
use super::{ConfigError, HttpSettings, invalid};

/// Where the stage is asked how it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Http {
    /// Where health, readiness and metrics are served, if anywhere.
    pub listen: Option<SocketAddr>,
    /// Where questions to the state are answered, if anywhere.
    pub query: Option<SocketAddr>,
    /// Who asks must have it.
    pub token: Option<Secret>,
}

impl Http {
    pub(super) fn checked(written: &HttpSettings) -> Result<Http, ConfigError> {
        let address = |key: &str, written: &Option<String>, default: &str| match written
            .as_deref()
            .unwrap_or(default)
        {
            "off" => Ok(None),
            address => {
                let fix = "write an address and a port, such as 127.0.0.1:9464 or 0.0.0.0:9464, or off";
                address.parse().map(Some).map_err(|_| invalid(key, address, fix))
            }
        };
        let token = written.token.as_ref().map(|token| bus::kept("http.token", token)).transpose()?;
        if token.as_ref().is_some_and(|token| token.reveal().is_empty()) {
            return Err(invalid(
                "http.token",
                "…",
                "an empty token lets everybody in; write one, or take the line out",
            ));
        }
        Ok(Http {
            listen: address("http.listen", &written.listen, "127.0.0.1:9464")?,
            query: address("http.query", &written.query, "127.0.0.1:9465")?,
            token,
        })
    }
}
