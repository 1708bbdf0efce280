//! Where the program is asked: how it is, and what it knows.

use std::fmt;
use std::net::{Ipv6Addr, SocketAddr};
use std::time::Duration;

use super::bus::{self, Secret};
use super::check::duration;
use super::{ConfigError, HttpSettings, invalid};

/// Peers that may be written down, and that a name may stand for.
const MOST: usize = 64;

/// Where the stage is asked how it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Http {
    /// Where health, readiness and metrics are served, if anywhere.
    pub listen: Option<SocketAddr>,
    /// Where questions to the state are answered, if anywhere.
    pub query: Option<SocketAddr>,
    /// Who asks must have it.
    pub token: Option<Secret>,
    /// Names that the query API goes by, beside numbers and `localhost`; `*` is any.
    pub hosts: Vec<String>,
    /// The other processes, which hold what this one does not.
    pub peers: Vec<Peer>,
    /// How long they may take.
    pub peer_timeout: Duration,
}

/// One of the other processes, or all that a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its name or address.
    pub host: String,
    /// The port of its query API.
    pub port: u16,
    /// Whether every address of the name is a process of its own.
    pub every: bool,
}

impl Peer {
    /// So many are asked at most, whatever names stand for.
    pub const MOST: usize = MOST;

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
        let token = written.token.as_ref().map(|token| bus::kept("http.token", token)).transpose()?;
        // It is sent in a header, which cannot begin or end with a blank: such a token would lock everybody out.
        let can_be_sent = |token: &str| {
            !token.is_empty()
                && token.trim() == token
                && token.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        };
        if token.as_ref().is_some_and(|token| !can_be_sent(token.reveal())) {
            let fix = "write ASCII without blanks at its ends, or take the line out; an empty token lets everybody in";
            return Err(invalid("http.token", "…", fix));
        }
        let hosts = written.hosts.iter().flat_map(|hosts| hosts.iter());
        let hosts = hosts.map(|host| match host {
            host if host == "*" || is_name(host) => Ok(host.trim_end_matches('.').to_owned()),
            host => {
                let fix = "write names without a port, such as samestory.example, or * for any";
                Err(invalid("http.hosts", host, fix))
            }
        });
        let hosts = hosts.collect::<Result<_, _>>()?;
        let peer = |text: &str| {
            let fix = "write host:port, or dns://name:port for all that a name stands for";
            Peer::parse(text).ok_or_else(|| invalid("http.peers", text, fix))
        };
        let peers = written.peers.iter().flat_map(|peers| peers.iter()).map(peer);
        let peers: Vec<Peer> = peers.collect::<Result<_, _>>()?;
        if peers.len() > MOST {
            let fix = "name at most 64, or one name that stands for all: dns://name:port";
            return Err(invalid("http.peers", format!("{} peers", peers.len()), fix));
        }
        let peer_timeout = match &written.peer_timeout {
            Some(text) => duration("http.peer_timeout", text).map(Duration::from_millis)?,
            None => Duration::from_secs(1),
        };
        if !(Duration::from_millis(10)..=Duration::from_secs(30)).contains(&peer_timeout) {
            let written = written.peer_timeout.as_deref().unwrap_or_default();
            return Err(invalid("http.peer_timeout", written, "give a time from 10ms to 30s"));
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
    fn a_peer_is_read_as_it_is_written() {
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
