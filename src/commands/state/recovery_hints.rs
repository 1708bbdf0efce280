//! What can be done about a state that cannot be mended from what it holds.

use std::path::Path;

use samestory_engine::index::{Durability, Format, RocksReader, View};

use samestory::terminal::style::printable;

/// What is known of a state.
#[derive(Default)]
pub(super) struct Known {
    ahead: Option<Durability>,
    /// The files it was made from.
    files: Vec<String>,
}

impl Known {
    /// As much as it still says of itself.
    pub(super) fn of(store: &RocksReader) -> Known {
        let format = store.format().ok().flatten().and_then(|bytes| Format::decode(&bytes).ok());
        let inputs = store.progress().unwrap_or_default().inputs;
        let files = inputs.keys().filter_map(|name| Some(name.as_str().strip_prefix("file:")?.to_owned()));
        Known { ahead: format.map(|format| format.ahead), files: files.collect() }
    }
}

/// Why fingerprints have to be made or fetched again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// Some cannot be trusted.
    Damaged,
    /// They are of a scheme that this program does not make.
    OtherScheme,
}

/// The ways out, a line for each.
pub(super) fn ways(directory: &Path, known: &Known, need: Need) -> String {
    let place = printable(&directory.display().to_string());
    let files = match known.files.len() {
        0 => String::new(),
        _ => format!(" (it was made from {})", printable(&known.files.join(", "))),
    };
    let file = format!(
        "a state of `samestory file`: move {place} away and run `samestory file` over the same files{files} again, with \
         --state {place} and a new --output"
    );
    let bus = match need {
        Need::Damaged => format!(
            "a state on the bus: move {place} away and start the stage again; it restores itself from its changelog"
        ),
        Need::OtherScheme => {
            "a state on the bus: its changelog holds fingerprints of the same scheme, so the \
             articles are read again from the raw topic, under another name of the application"
                .to_owned()
        }
    };
    match known.ahead {
        Some(Durability::OwnWal) => file,
        Some(Durability::Changelog { .. }) => bus,
        None => format!("{file}\n{bus}"),
    }
}
