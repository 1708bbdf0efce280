//! The network of one instance: a proxy in front of each broker, all in the same mode.

use crate::kafka::broker::Broker;
use crate::kafka::proxy::{Mode, Proxy};

pub(crate) struct Network {
    name: String,
    proxies: Vec<Proxy>,
}

impl Network {
    /// Opens a port for each broker of a cluster. No connection passes before [`Network::connect`].
    pub(crate) fn new(instance: usize, nodes: usize) -> Network {
        Network { name: format!("I{instance}"), proxies: (0..nodes).map(|_| Proxy::new()).collect() }
    }

    /// The argument for `dev/kafka start --listener`.
    pub(crate) fn listener(&self) -> String {
        let ports: Vec<String> = self.proxies.iter().map(|proxy| proxy.port().to_string()).collect();
        format!("{}={}", self.name, ports.join(","))
    }

    pub(crate) fn connect(&self, broker: &Broker) {
        for (proxy, node) in self.proxies.iter().zip(1..) {
            let file = match broker.nodes() {
                1 => format!("listener.{}", self.name),
                _ => format!("node{node}/listener.{}", self.name),
            };
            proxy.connect(&broker.file(&file));
        }
    }

    /// `host:port` of every proxy, for the client.
    pub(crate) fn bootstrap(&self) -> String {
        self.proxies.iter().map(Proxy::bootstrap).collect::<Vec<_>>().join(",")
    }

    pub(crate) fn set(&self, mode: Mode) {
        self.proxies.iter().for_each(|proxy| proxy.set(mode));
    }

    pub(crate) fn reset(&self) {
        self.proxies.iter().for_each(Proxy::reset);
    }

    /// The number of EndTxn requests whose response was dropped.
    pub(crate) fn lost(&self) -> u32 {
        self.proxies.iter().map(Proxy::lost).sum()
    }
}
