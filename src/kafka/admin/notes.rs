//! Notes on the generations topic, beside the generation-end records: the pause of an application, and the settings behind
//! a `config` hash. The topic is compacted, so the last note of a key is current. Notes decide nothing about verdicts; a
//! pause only delays them, so a replay of the input gives the same bytes with or without them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread;
use std::time::Duration;

use crate::config::{Bus, Config};
use crate::kafka::client::Role;
use crate::kafka::tools::produce::Sender;
use crate::kafka::tools::scan::{PartitionOffsets, ScanError, Scanner, broker_error};
use crate::status::StatusBoard;
use crate::stop::Stop;

/// Time between two looks at the topic.
const INTERVAL: Duration = Duration::from_secs(1);

pub use crate::formats::{Pause, SettingsNote};

fn pause_key(bus: &Bus) -> String {
    format!("{}/g{}/pause", bus.app, bus.generation)
}

fn settings_key(bus: &Bus, hash: &str) -> String {
    format!("{}/config/{hash}", bus.app)
}

/// The last value of each key that this application's notes may have. A tombstone removes its key.
fn read(bus: &Bus, scanner: &Scanner, wanted: &str) -> Result<Option<Vec<u8>>, ScanError> {
    let mut last = None;
    scanner.read_all(&bus.topics.generations, |_, record| {
        if record.key.as_deref() == Some(wanted.as_bytes()) {
            last = record.value;
        }
        Ok(())
    })?;
    Ok(last)
}

fn write(bus: &Bus, key: &str, value: Option<&[u8]>) -> Result<(), ScanError> {
    let broker = |error| broker_error(bus, error);
    let sender = Sender::new(bus, &bus.topics.generations).map_err(broker)?;
    // The topic has one partition.
    sender.send_to(Some(0), Some(key.as_bytes()), value, None, None).map_err(broker)?;
    sender.finish().map_err(broker)
}

/// The pause of this application and generation, if it is paused.
///
/// # Errors
/// The topic cannot be read.
pub fn paused(bus: &Bus) -> Result<Option<Pause>, ScanError> {
    let scanner = Scanner::new(bus, "samestory-pause")?;
    Ok(read(bus, &scanner, &pause_key(bus))?.and_then(|note| Pause::decode(&note)))
}

/// Pauses roles of all processes of this application and generation, also of processes that start later.
///
/// # Errors
/// The note cannot be written.
pub fn pause(bus: &Bus, roles: &[Role], why: Option<&str>) -> Result<Pause, ScanError> {
    let roles = roles.iter().map(|role| role.as_str().to_owned()).collect();
    let since = crate::kafka::clock::now().to_string();
    let pause = Pause { roles, since, why: why.map(str::to_owned) };
    write(bus, &pause_key(bus), Some(&pause.encode()))?;
    Ok(pause)
}

/// Ends the pause.
///
/// # Errors
/// The note cannot be written.
pub fn resume(bus: &Bus) -> Result<(), ScanError> {
    write(bus, &pause_key(bus), None)
}

/// The settings behind a `config` hash of this application's verdicts.
///
/// # Errors
/// The topic cannot be read.
pub fn settings(bus: &Bus, hash: &str) -> Result<Option<SettingsNote>, ScanError> {
    let scanner = Scanner::new(bus, "samestory-config")?;
    Ok(read(bus, &scanner, &settings_key(bus, hash))?.and_then(|note| SettingsNote::decode(&note)))
}

/// Which roles are paused, shared with the workers: one bit per role.
#[derive(Clone, Debug, Default)]
pub(crate) struct PausedRoles(Arc<AtomicU8>);

impl PausedRoles {
    const fn bit(role: Role) -> u8 {
        match role {
            Role::Route => 1,
            Role::Match => 2,
            Role::Direct => 4,
        }
    }

    /// Whether workers of this role read nothing.
    pub(crate) fn holds(&self, role: Role) -> bool {
        self.0.load(Ordering::Relaxed) & PausedRoles::bit(role) != 0
    }

    fn set(&self, pause: Option<&Pause>) {
        let named =
            |role: &Role| pause.is_some_and(|pause| pause.roles.iter().any(|name| name == role.as_str()));
        let bits = [Role::Route, Role::Match, Role::Direct].into_iter().filter(named);
        self.0.store(bits.map(PausedRoles::bit).fold(0, |all, bit| all | bit), Ordering::Relaxed);
    }
}

/// Follows the notes of an application in a thread of its own.
pub(crate) struct PauseWatch {
    bus: Bus,
    scanner: Option<Scanner>,
    seen: Option<(PartitionOffsets, PartitionOffsets)>,
    pause: Option<Pause>,
    roles: PausedRoles,
    board: Arc<StatusBoard>,
}

impl PauseWatch {
    pub(crate) fn new(bus: &Bus, roles: PausedRoles, board: Arc<StatusBoard>) -> PauseWatch {
        PauseWatch { bus: bus.clone(), scanner: None, seen: None, pause: None, roles, board }
    }

    /// Looks once. A failure keeps what was known.
    fn look(&mut self) -> Result<(), ScanError> {
        let scanner = match self.scanner.take() {
            Some(scanner) => scanner,
            None => Scanner::new(&self.bus, "samestory-notes")?,
        };
        let scanner = self.scanner.insert(scanner);
        let ranges = scanner.ranges(&self.bus.topics.generations)?;
        if self.seen.as_ref() == Some(&ranges) {
            return Ok(());
        }
        let note = read(&self.bus, scanner, &pause_key(&self.bus))?;
        let pause = note.and_then(|note| Pause::decode(&note));
        self.seen = Some(ranges);
        if pause != self.pause {
            match &pause {
                Some(Pause { roles, since, why }) => {
                    tracing::warn!(?roles, since, why, "paused by an operator; `samestory resume` continues")
                }
                None => tracing::info!("resumed"),
            }
            self.roles.set(pause.as_ref());
            self.board.paused(pause.clone());
            self.pause = pause;
        }
        Ok(())
    }

    /// Looks before the workers start, so that a paused application reads nothing after a restart, and then starts the
    /// thread. An unreachable broker does not delay the start: the workers cannot read either.
    pub(crate) fn start(mut self, stop: Stop) -> std::io::Result<()> {
        if let Err(error) = self.look() {
            tracing::debug!(%error, "cannot read the notes yet");
        }
        let guard = self.board.guard("notes");
        thread::Builder::new().name("notes".into()).spawn(move || {
            let _guard = guard;
            while !stop.wait(INTERVAL) {
                if let Err(error) = self.look() {
                    tracing::debug!(%error, "cannot read the notes; keeping what was known");
                    self.scanner = None;
                }
            }
        })?;
        Ok(())
    }
}

/// Writes down the settings behind this process's `config` hash, unless the topic has them. It runs in a thread of its own:
/// verdicts do not wait for it, and a user that may not write there only loses `samestory config show`.
pub(crate) fn note_settings(config: &Config) -> std::io::Result<()> {
    let options = config.options();
    let hash = format!("{:08x}", options.hash());
    let note = SettingsNote {
        config: hash.clone(),
        covers: options.describe(),
        settings: config.decisive.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        since: crate::kafka::clock::now().to_string(),
    };
    let bus = config.bus.clone();
    thread::Builder::new().name("settings-note".into()).spawn(move || {
        let noted = settings(&bus, &hash).and_then(|known| match known {
            Some(_) => Ok(()),
            None => write(&bus, &settings_key(&bus, &hash), Some(&note.encode())),
        });
        if let Err(error) = noted {
            tracing::warn!(%error, config = hash, "the settings behind the config hash were not written to {}; `samestory config show` will not find them", bus.topics.generations);
        }
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_holds_the_roles_that_it_names() {
        let roles = PausedRoles::default();
        let pause = Pause { roles: vec!["route".into()], since: String::new(), why: None };
        roles.set(Some(&pause));
        assert_eq!(
            [Role::Route, Role::Match, Role::Direct].map(|role| roles.holds(role)),
            [true, false, false]
        );
        roles.set(None);
        assert!(!roles.holds(Role::Route));
    }

    #[test]
    fn notes_are_no_generation_ends() {
        // A reader of generation ends splits the key at the last slash, and takes a number for a generation.
        let bus = crate::config::Config::try_from(crate::config::Settings::default()).unwrap().bus;
        for key in [pause_key(&bus), settings_key(&bus, "12345678")] {
            let (app, generation) = key.rsplit_once('/').unwrap();
            assert!(app != bus.app || generation.parse::<u32>().is_err(), "{key}");
        }
    }
}
