//! `samestory state compact`

use samestory::files::thousands;
use samestory_engine::index::{Budget, Format, Rocks, RocksOptions, RocksReader, StoreError, View};

use super::sizes::{bytes, kept};
use super::{CompactArgs, Failure};
use samestory::terminal::progress_bar::ProgressBar;

pub(super) fn run(args: &CompactArgs) -> Result<(), Failure> {
    let budget = Budget::default();
    // Opened twice: only the store itself knows what to ask for.
    let found = RocksReader::existing(&args.dir, &budget)?.format()?;
    let Some(format) = found.and_then(|bytes| Format::decode(&bytes).ok()) else {
        let detail = "nothing has been written to it yet".to_owned();
        return Err(StoreError::Unusable { place: args.dir.display().to_string(), detail }.into());
    };
    let mut bar = ProgressBar::new(false);
    let before = kept(&args.dir);
    bar.say("compacting");
    let mut store = Rocks::open(&args.dir, &RocksOptions::new(format.postings, format.ahead, budget))?;
    let compacted = store.compact();
    let documents: u64 = match &compacted {
        Ok(()) => store.reader().inspect()?.languages.iter().map(|language| language.documents).sum(),
        Err(_) => 0,
    };
    // What was rewritten is removed when it is closed, at the latest.
    drop(store);
    bar.clear();
    compacted?;
    let after = kept(&args.dir);
    let text =
        format!("{} documents: {} before, {} after\n", thousands(documents), bytes(before), bytes(after));
    Ok(std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes())?)
}
