//! `samestory ready`: requests `/readyz` or `/healthz` of a running stage. The container image has no shell and no curl, so
//! probes and operators use this.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

use clap::Parser;
use samestory::config::Config;

use super::Failure;

/// The timeout of the Kubernetes probes in the Helm chart.
const TIMEOUT: Duration = Duration::from_secs(3);
/// A stage answers with a few reasons per partition; a longer response comes from something else.
const MAX_RESPONSE: u64 = 1 << 20;

#[derive(Parser)]
#[command(after_help = "\
Examples:
  samestory ready                                the stage with these settings, on this machine
  kubectl exec POD -- samestory ready            why is this pod not ready?
  docker compose exec samestory samestory ready

It prints the response of /readyz at http.listen. Exit codes: 0 ready, 1 not ready or no response.")]
pub(super) struct Args {
    /// Ask /healthz instead: whether the process is alive, ready or not
    #[arg(long)]
    alive: bool,
}

/// Why a stage does not count as ready.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadyError {
    #[error("http.listen = off: this stage serves no /readyz; write an address and a port")]
    Off,
    #[error("{address} does not answer")]
    Silent {
        address: SocketAddr,
        #[source]
        error: io::Error,
    },
    #[error("not ready")]
    Not,
}

pub(super) fn run(args: &Args, config: &Config) -> Result<(), Failure> {
    let listen = config.http.listen.ok_or(ReadyError::Off)?;
    let address = SocketAddr::new(reachable(listen.ip()), listen.port());
    let path = if args.alive { "/healthz" } else { "/readyz" };
    let (status, body) = get(address, path).map_err(|error| ReadyError::Silent { address, error })?;
    writeln!(io::stdout(), "{}", body.trim_end())?;
    if status == 200 { Ok(()) } else { Err(ReadyError::Not.into()) }
}

/// The address to connect to: a stage that listens on all addresses is reachable on loopback.
fn reachable(listens: IpAddr) -> IpAddr {
    match listens {
        IpAddr::V4(any) if any.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(any) if any.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        one => one,
    }
}

fn get(address: SocketAddr, path: &str) -> io::Result<(u16, String)> {
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut response = Vec::new();
    stream.take(MAX_RESPONSE).read_to_end(&mut response)?;
    let response = String::from_utf8_lossy(&response);
    let not_http =
        || io::Error::new(io::ErrorKind::InvalidData, "the process that listens there speaks no HTTP");
    let (head, body) = response.split_once("\r\n\r\n").ok_or_else(not_http)?;
    let status = head.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
    Ok((status.ok_or_else(not_http)?, body.to_owned()))
}
