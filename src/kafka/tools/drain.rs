//! Pauses the intake of raw records and waits until everything that was read is published, for `samestory drain`.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::config::{Config, Mode};
use crate::kafka::admin::notes;
use crate::kafka::client::Role;

use super::scan::{PartitionOffsets, ScanError, Scanner};

/// The group's offsets have to stay the same for this long before the intake counts as paused: longer than a look at the note
/// and a transaction take.
const SETTLED: Duration = Duration::from_secs(5);

/// The result of a drain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// By raw partition, how many offsets wait.
    pub left: BTreeMap<i32, i64>,
}

/// Pauses the role that reads the raw topic, and waits until what it has read is published.
///
/// # Errors
/// The topics cannot be read or written, or not everything is published in time.
pub fn drain(config: &Config, wait: Duration, why: Option<&str>) -> Result<Drained, ScanError> {
    let (bus, raw) = (&config.bus, config.bus.topics.raw.as_str());
    let reader = match bus.mode {
        Mode::Routed => Role::Route,
        Mode::Direct => Role::Direct,
    };
    let deadline = Instant::now() + wait;
    notes::pause(bus, &[reader], why)?;
    let scanner = Scanner::new(bus, "samestory-drain")?;
    let mut committed = scanner.committed(reader, raw)?;
    let mut since = Instant::now();
    while since.elapsed() < SETTLED {
        if Instant::now() > deadline {
            let group = crate::kafka::client::group(bus, reader);
            let left = "its offsets still move: does every process see the pause?".to_owned();
            return Err(ScanError::Behind { group, topic: raw.to_owned(), left });
        }
        std::thread::sleep(Duration::from_millis(500));
        let now = scanner.committed(reader, raw)?;
        if now != committed {
            (committed, since) = (now, Instant::now());
        }
    }
    if bus.mode == Mode::Routed {
        let (_, ends): (PartitionOffsets, PartitionOffsets) = scanner.ranges(&bus.topics.routed)?;
        let left = deadline.saturating_duration_since(Instant::now());
        scanner.await_processed(Role::Match, &bus.topics.routed, &ends, left)?;
    }
    let (low, ends) = scanner.ranges(raw)?;
    let left = ends.iter().map(|(partition, end)| {
        let low = low.get(partition).copied().unwrap_or(0);
        (*partition, end - committed.get(partition).copied().unwrap_or(low))
    });
    Ok(Drained { left: left.collect() })
}
