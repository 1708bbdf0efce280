//! Resolves the names of peers to addresses, afresh for every question. A DNS server that does not answer
//! blocks at most one thread; meanwhile the addresses of the last successful lookup are used.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Mutex as AsyncMutex;
use tokio::time::Instant;

use crate::config::Peer;

/// A peer with its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ResolvedPeer {
    pub(super) name: String,
    pub(super) address: SocketAddr,
}

pub(super) struct Resolver {
    peers: Vec<Peer>,
    /// Held during a DNS lookup, so that at most one runs.
    lookup: Arc<AsyncMutex<()>>,
    /// The last addresses by peer; empty for a name that does not exist.
    known: Arc<Mutex<BTreeMap<usize, Vec<SocketAddr>>>>,
}

impl Resolver {
    pub(super) fn new(peers: Vec<Peer>) -> Resolver {
        Resolver { peers, lookup: Arc::default(), known: Arc::default() }
    }

    /// The peers that have an address, and the names of those that have none.
    pub(super) async fn peers(&self, deadline: Instant) -> (Vec<ResolvedPeer>, Vec<String>) {
        let names: Vec<(usize, String, u16)> = self
            .peers
            .iter()
            .enumerate()
            .filter_map(|(at, peer)| {
                let fixed = peer.host.parse::<IpAddr>().is_ok();
                (!fixed).then(|| (at, peer.host.clone(), peer.port))
            })
            .collect();
        if !names.is_empty() {
            // Leave half of the time for asking the peers.
            let now = Instant::now();
            let by = now + deadline.saturating_duration_since(now) / 2;
            let _late = tokio::time::timeout_at(by, self.look_up(names)).await;
        }
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.named(&known)
    }

    async fn look_up(&self, names: Vec<(usize, String, u16)>) {
        let lookup = Arc::clone(&self.lookup).lock_owned().await;
        let known = Arc::clone(&self.known);
        let task = tokio::task::spawn_blocking(move || {
            for (at, host, port) in names {
                // After a failed lookup the previous addresses stay.
                if let Ok(addresses) = (host.as_str(), port).to_socket_addrs() {
                    let mut addresses: Vec<SocketAddr> = addresses.collect();
                    addresses.sort_unstable();
                    addresses.dedup();
                    known.lock().unwrap_or_else(PoisonError::into_inner).insert(at, addresses);
                }
            }
            drop(lookup);
        });
        let _ended = task.await;
    }

    fn named(&self, known: &BTreeMap<usize, Vec<SocketAddr>>) -> (Vec<ResolvedPeer>, Vec<String>) {
        let (mut named, mut unresolved) = (Vec::<ResolvedPeer>::new(), Vec::new());
        for (at, peer) in self.peers.iter().enumerate() {
            let fixed = peer.host.parse::<IpAddr>().map(|ip| vec![SocketAddr::new(ip, peer.port)]).ok();
            let addresses = fixed.or_else(|| known.get(&at).cloned()).unwrap_or_default();
            if addresses.is_empty() {
                unresolved.push(peer.to_string());
            }
            let most = if peer.every { addresses.len() } else { 1 };
            for address in addresses.into_iter().take(most) {
                if named.len() == Peer::MOST {
                    unresolved.push(format!("{address} (more than {} peers)", Peer::MOST));
                    break;
                }
                let name = if peer.every { address.to_string() } else { peer.to_string() };
                named.push(ResolvedPeer { name, address });
            }
        }
        (named, unresolved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(host: &str, every: bool) -> Peer {
        Peer { host: host.into(), port: 9465, every }
    }

    #[test]
    fn a_name_yields_one_or_all_addresses_and_an_unknown_name_is_reported() {
        let peers = vec![peer("10.0.0.1", false), peer("one", false), peer("all", true), peer("gone", true)];
        let addresses = |last: [u8; 2]| last.map(|last| SocketAddr::from(([10, 0, 1, last], 9465))).to_vec();
        let known = BTreeMap::from([(1, addresses([1, 2])), (2, addresses([3, 4]))]);
        let (named, unresolved) = Resolver::new(peers).named(&known);
        let names: Vec<&str> = named.iter().map(|named| named.name.as_str()).collect();
        assert_eq!(names, ["10.0.0.1:9465", "one:9465", "10.0.1.3:9465", "10.0.1.4:9465"]);
        assert_eq!(unresolved, ["dns://gone:9465"]);
    }

    #[test]
    fn a_name_with_too_many_addresses_is_reported() {
        let known = (0..200).map(|last| SocketAddr::from(([10, 0, 0, last], 9465))).collect();
        let (named, unresolved) = Resolver::new(vec![peer("all", true)]).named(&BTreeMap::from([(0, known)]));
        assert_eq!((named.len(), unresolved.len()), (Peer::MOST, 1));
    }
}
