//! `samestory state compact`: compacts every column family and prints the size before and after.

use samestory::files::thousands;
use samestory_engine::index::{Budget, Format, Rocks, RocksOptions, RocksReader, StoreError, View};

use super::sizes::{bytes, live_bytes};
use super::{CompactArgs, Failure};
use samestory::terminal::progress_bar::ProgressBar;

pub(super) fn run(args: &CompactArgs) -> Result<(), Failure> {
    let budget = Budget::default();
    // Opened read-only first: opening it for writing needs the index schemes that it was built with.
    let found = RocksReader::existing(&args.dir, &budget)?.format()?;
    let Some(format) = found.and_then(|bytes| Format::decode(&bytes).ok()) else {
        let detail = "it is empty: nothing has been written to it yet".to_owned();
        return Err(StoreError::Unusable { place: args.dir.display().to_string(), detail }.into());
    };
    let mut bar = ProgressBar::new(false);
    let before = live_bytes(&args.dir);
    bar.say("compacting");
    let mut store = Rocks::open(&args.dir, &RocksOptions::new(format.postings, format.durability, budget))?;
    let compacted = store.compact();
    let documents: u64 = match &compacted {
        Ok(()) => store.reader().inspect()?.languages.iter().map(|language| language.documents).sum(),
        Err(_) => 0,
    };
    // RocksDB deletes the old SST files at the latest when it is closed.
    drop(store);
    bar.clear();
    compacted?;
    let after = live_bytes(&args.dir);
    let text =
        format!("{} documents: {} before, {} after\n", thousands(documents), bytes(before), bytes(after));
    Ok(std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes())?)
}
