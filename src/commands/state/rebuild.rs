//! `samestory state rebuild`: bands from stored fingerprints. Where that cannot help, it says what can, and leaves the
//! directory as it is.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use samestory::config::Config;
use samestory::files::thousands;
use samestory_engine::index::{
    Budget, Format, Rebanded, Rocks, RocksOptions, RocksReader, Rows, StoreError, View,
};
use samestory_engine::model::Lang;

use super::recovery_hints::{Known, Need, ways};
use super::{Failure, RebuildArgs, StateError};
use samestory::terminal::progress_bar::ProgressBar;

pub(super) fn run(args: &RebuildArgs, config: &Config) -> Result<(), Failure> {
    let budget = Budget::default();
    let mut bar = ProgressBar::new(args.quiet);
    let store = RocksReader::existing(&args.dir, &budget)
        .map_err(|error| beyond(&args.dir, error, &Known::default()))?;
    let Some(format) = format(&store)? else {
        return said(args, &mut bar, "nothing has been written to it yet, so there is nothing to rebuild");
    };
    let known = Known::of(&store);
    let options = RocksOptions::new(config.postings.clone(), format.ahead, budget);
    match Format::new(format.ahead, config.postings.clone()).accepts(&format.encode(), store.place()) {
        Ok(()) if args.force => {}
        Ok(()) => {
            return said(
                args,
                &mut bar,
                "its bands are those of the settings: nothing to do (--force does it anyway)",
            );
        }
        Err(StoreError::OtherBands { .. }) => {}
        Err(other) => return Err(beyond(&args.dir, other, &known)),
    }
    // Every document is read before anything is dropped: the bands can be made again only if all of them can be read.
    let documents = count(&store, &mut bar).map_err(|error| beyond(&args.dir, error, &known))?;
    if args.force {
        store.distrust_postings()?;
    }
    drop(store);
    if !args.quiet {
        bar.line(&format!("bands of {}: {} → {}", args.dir.display(), format.postings, config.postings));
    }
    let total: u64 = documents.values().sum();
    let mut before = 0;
    let mut watch = |Rebanded { language, documents, of }: Rebanded| {
        bar.draw(Some((before + documents) as f64 / total.max(1) as f64), || {
            format!("{language}  {} of {} documents", thousands(before + documents), thousands(total))
        });
        if documents == of {
            before += of;
            if !args.quiet {
                bar.line(&format!("{language}: {} documents", thousands(of)));
            }
        }
        ControlFlow::Continue(())
    };
    let rebanded = Rocks::reband(&args.dir, &options, &mut watch);
    bar.clear();
    drop(rebanded.map_err(|error| beyond(&args.dir, error, &known))?);
    said(args, &mut bar, "done")
}

fn said(args: &RebuildArgs, bar: &mut ProgressBar, text: &str) -> Result<(), Failure> {
    if !args.quiet {
        bar.line(&format!("state {}: {text}", args.dir.display()));
    }
    Ok(())
}

/// What the store was made with.
fn format(store: &RocksReader) -> Result<Option<Format>, StoreError> {
    // It could be read when the store was opened.
    Ok(store.format()?.and_then(|bytes| Format::decode(&bytes).ok()))
}

/// Reads every document.
fn count(store: &RocksReader, bar: &mut ProgressBar) -> Result<BTreeMap<Lang, u64>, StoreError> {
    let mut counts = BTreeMap::new();
    for language in store.languages() {
        let mut count = 0;
        store.each_document(language, &mut |_| {
            count += 1;
            bar.draw(None, || format!("{language}  {} documents can be read", thousands(count)));
            ControlFlow::Continue(())
        })?;
        counts.insert(language, count);
    }
    bar.clear();
    Ok(counts)
}

/// What to say of a state that re-banding cannot help; anything else is said as it is.
fn beyond(directory: &Path, error: StoreError, known: &Known) -> Failure {
    let (why, need) = match error {
        StoreError::Corrupt { place, detail } => {
            (format!("state {place} is damaged: {detail}"), Need::Damaged)
        }
        StoreError::Foreign { place, what, found, expected, .. } => {
            let why = format!("state {place} was made with {what} {found}, and this program has {expected}");
            (why, if what == "scheme" { Need::OtherScheme } else { Need::Damaged })
        }
        other => return other.into(),
    };
    StateError::NotRebuilt { why, ways: ways(directory, known, need) }.into()
}
