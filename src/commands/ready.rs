//! `samestory ready`: asks a running stage how it is. An image without a shell has no other program that could ask.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

use clap::Parser;
use samestory::config::Config;

use super::Failure;

/// As long as a probe of Kubernetes waits in our chart.
const PATIENCE: Duration = Duration::from_secs(3);
/// An answer is a few reasons for each partition; more than this is no stage of ours.
const LARGEST: u64 = 1 << 20;

#[derive(Parser)]
#[command(after_help = "\
Examples:
  samestory ready                                the stage that has these settings, on this machine
  kubectl exec POD -- samestory ready            what does it wait for?
  docker compose exec samestory samestory ready

Prints what /readyz of http.listen says. Exit codes: 0 ready, 1 not ready or no answer.")]
pub(super) struct Args {
    /// Only ask whether it lives (/healthz), whatever it waits for
    #[arg(long)]
    alive: bool,
}

/// Why a stage cannot be called ready.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadyError {
    #[error("http.listen = off: nobody can ask this stage; write an address and a port")]
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
    let address = SocketAddr::new(own(listen.ip()), listen.port());
    let path = if args.alive { "/healthz" } else { "/readyz" };
    let (status, body) = ask(address, path).map_err(|error| ReadyError::Silent { address, error })?;
    writeln!(io::stdout(), "{}", body.trim_end())?;
    if status == 200 { Ok(()) } else { Err(ReadyError::Not.into()) }
}

/// Who listens everywhere listens here too.
fn own(listens: IpAddr) -> IpAddr {
    match listens {
        IpAddr::V4(any) if any.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(any) if any.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        one => one,
    }
}

fn ask(address: SocketAddr, path: &str) -> io::Result<(u16, String)> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let question = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(question.as_bytes())?;
    let mut answer = Vec::new();
    stream.take(LARGEST).read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer);
    let no_answer = || io::Error::new(io::ErrorKind::InvalidData, "what listens there speaks no HTTP");
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(no_answer)?;
    let status = head.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
    Ok((status.ok_or_else(no_answer)?, body.to_owned()))
}
