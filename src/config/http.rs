//! Settings of the HTTP endpoints: health and metrics (`http.listen`), the query API (`http.query`) and the peers that it asks.
//! Addresses, tokens and peers are checked here, so serving fails only if a port is taken.

use std::fmt;
use std::net::{Ipv6Addr, SocketAddr};
use std::time::Duration;

use super::bus::{self, Secret};
use super::check::duration;
use super::{ConfigError, HttpSettings, invalid};

/// Settings of the HTTP endpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Http {
    /// Address of health, readiness and metrics; `None` serves nothing.
    pub listen: Option<SocketAddr>,
    /// Address of the query API; `None` serves nothing.
    pub query: Option<SocketAddr>,
    /// Bearer token that every query must send.
    pub token: Option<Secret>,
    /// Host names that the query API accepts beside `localhost` and plain addresses; `*` accepts any.
    pub hosts: Vec<String>,
    /// The other processes of the stage, which hold the partitions that this one does not.
    pub peers: Vec<Peer>,
    /// How long to wait for peers.
    pub peer_timeout: Duration,
}

/// One process of the stage, or every process that a DNS name resolves to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Host name or address.
    pub host: String,
    /// Port of the query API.
    pub port: u16,
    /// True if every address of the name is a separate process (`dns://`).
    pub every: bool,
}

impl Peer {
    /// The most peers, configured or resolved from DNS.
    pub const MOST: usize = 64;

    fn parse(text: &str) -> Option<Peer> {
        let (rest, every) = match text.strip_prefix("dns://") {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        let (host, port) = rest.rsplit_once(':')?;
        let port = port.parse().ok().filter(|&port| port > 0)?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let bare = bare.filter(|host| host.parse::<Ipv6Addr>().is_ok());
        let host = bare.unwrap_or(host);
        let valid = bare.is_some() || is_name(host);
        valid.then(|| Peer { host: host.to_owned(), port, every })
    }
}

fn is_name(host: &str) -> bool {
    let known = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    (1..=253).contains(&host.len()) && host.chars().all(known)
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.every { "dns://" } else { "" };
        match self.host.contains(':') {
            true => write!(f, "{scheme}[{}]:{}", self.host, self.port),
            false => write!(f, "{scheme}{}:{}", self.host, self.port),
        }
    }
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
        let token =
            written.token.as_ref().map(|token| bus::resolve_secret("http.token", token)).transpose()?;
        // Clients send it in a header, and header values are trimmed: a token with blanks at its ends would never match.
        let can_be_sent = |token: &str| {
            !token.is_empty()
                && token.trim() == token
                && token.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        };
        if token.as_ref().is_some_and(|token| !can_be_sent(token.reveal())) {
            let fix =
                "use printable ASCII without blanks at the ends, or remove the line to serve without a token";
            return Err(invalid("http.token", "…", fix));
        }
        let hosts = written.hosts.iter().flat_map(|hosts| hosts.iter());
        let hosts = hosts.map(|host| match host {
            host if host == "*" || is_name(host) => Ok(host.trim_end_matches('.').to_owned()),
            host => {
                let fix = "write host names without a port, such as samestory.example, or * for any";
                Err(invalid("http.hosts", host, fix))
            }
        });
        let hosts = hosts.collect::<Result<_, _>>()?;
        let peer = |text: &str| {
            let fix = "write host:port, or dns://name:port for every address of a name";
            Peer::parse(text).ok_or_else(|| invalid("http.peers", text, fix))
        };
        let peers = written.peers.iter().flat_map(|peers| peers.iter()).map(peer);
        let peers: Vec<Peer> = peers.collect::<Result<_, _>>()?;
        if peers.len() > Peer::MOST {
            let fix = "list at most 64, or one DNS name for all: dns://name:port";
            return Err(invalid("http.peers", format!("{} peers", peers.len()), fix));
        }
        let peer_timeout = match &written.peer_timeout {
            Some(text) => duration("http.peer_timeout", text).map(Duration::from_millis)?,
            None => Duration::from_secs(1),
        };
        if !(Duration::from_millis(10)..=Duration::from_secs(30)).contains(&peer_timeout) {
            let written = written.peer_timeout.as_deref().unwrap_or_default();
            return Err(invalid("http.peer_timeout", written, "use a duration from 10ms to 30s"));
        }
        Ok(Http {
            listen: address("http.listen", &written.listen, "127.0.0.1:9464")?,
            query: address("http.query", &written.query, "127.0.0.1:9465")?,
            token,
            hosts,
            peers,
            peer_timeout,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_displayed_as_it_was_written() {
        for text in ["10.0.0.1:9465", "pod-0.samestory:9465", "dns://samestory:9465", "[::1]:9465"] {
            assert_eq!(Peer::parse(text).unwrap().to_string(), text);
        }
        assert!(Peer::parse("dns://samestory:9465").unwrap().every);
        for wrong in
            ["", "samestory", ":1", "a:0", "a:70000", "http://a:1", "a b:1", "a/b:1", "dns://:1", "[x]:1"]
        {
            assert_eq!(Peer::parse(wrong), None, "{wrong}");
        }
    }
}
