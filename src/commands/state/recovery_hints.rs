//! Instructions for a state that cannot be repaired from its own data: run `samestory file` again, or restore from the changelog.
//! They depend on who built the state, which it may still be able to tell.

use std::path::Path;

use samestory_engine::index::{Durability, Format, RocksReader, View};

use samestory::terminal::style::printable;

/// The origin of a state, as far as it can still be read.
#[derive(Default)]
pub(super) struct StateOrigin {
    durability: Option<Durability>,
    /// The files of a file run.
    files: Vec<String>,
}

impl StateOrigin {
    /// Reads what is readable.
    pub(super) fn read(store: &RocksReader) -> StateOrigin {
        let format = store.format().ok().flatten().and_then(|bytes| Format::decode(&bytes).ok());
        let inputs = store.progress().unwrap_or_default().files.inputs;
        let files = inputs.keys().map(|path| path.as_str().to_owned()).collect();
        StateOrigin { durability: format.map(|format| format.durability), files }
    }
}

/// Why the stored fingerprints cannot be used.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum StateDamage {
    /// Some of them are damaged.
    Corrupt,
    /// This program does not compute their scheme.
    OtherScheme,
}

/// How to recover, one line per possible origin.
pub(super) fn recovery_hints(directory: &Path, origin: &StateOrigin, damage: StateDamage) -> String {
    let directory = printable(&directory.display().to_string());
    let files = match origin.files.len() {
        0 => String::new(),
        _ => format!(" (it was built from {})", printable(&origin.files.join(", "))),
    };
    let file = format!(
        "a state of `samestory file`: move {directory} away and run `samestory file` over the same files{files} again, with \
         --state {directory} and a new --output"
    );
    let bus = match damage {
        StateDamage::Corrupt => format!(
            "a state on the bus: move {directory} away and restart the stage; it restores itself from its changelog"
        ),
        StateDamage::OtherScheme => {
            "a state on the bus: its changelog holds fingerprints of the same scheme, so \
             set another stage.app, which reads the articles again from the raw topic"
                .to_owned()
        }
    };
    match origin.durability {
        Some(Durability::OwnWal) => file,
        Some(Durability::Changelog { .. }) => bus,
        None => format!("{file}\n{bus}"),
    }
}
