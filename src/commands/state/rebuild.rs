//! `samestory state rebuild`: rebuilds the bands of a state from its stored fingerprints. Every document is read before anything
//! is dropped; if one cannot be read, the directory stays as it is and the error explains how to recover.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use samestory::config::Config;
use samestory::files::thousands;
use samestory_engine::index::{Budget, Format, Rebanded, Rocks, RocksOptions, RocksReader, StoreError, View};
use samestory_engine::model::Lang;

use super::recovery_hints::{StateDamage, StateOrigin, recovery_hints};
use super::{Failure, RebuildArgs, StateError};
use samestory::terminal::progress_bar::ProgressBar;

pub(super) fn run(args: &RebuildArgs, config: &Config) -> Result<(), Failure> {
    let budget = Budget::default();
    let mut bar = ProgressBar::new(args.quiet);
    let store = RocksReader::existing(&args.dir, &budget)
        .map_err(|error| not_rebuilt(&args.dir, error, &StateOrigin::default()))?;
    let Some(format) = format(&store)? else {
        return report(args, &mut bar, "it is empty, so there is nothing to rebuild");
    };
    let origin = StateOrigin::read(&store);
    let options = RocksOptions::new(config.postings.clone(), format.durability, budget);
    match Format::new(format.durability, config.postings.clone()).accepts(&format.encode(), store.place()) {
        Ok(()) if args.force => {}
        Ok(()) => {
            return report(
                args,
                &mut bar,
                "its bands match the settings, so there is nothing to do (--force rebuilds them anyway)",
            );
        }
        Err(StoreError::OtherBands { .. }) => {}
        Err(other) => return Err(not_rebuilt(&args.dir, other, &origin)),
    }
    // Comes before anything is dropped: bands can be rebuilt only if every document can be read.
    let documents = count(&store, &mut bar).map_err(|error| not_rebuilt(&args.dir, error, &origin))?;
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
    drop(rebanded.map_err(|error| not_rebuilt(&args.dir, error, &origin))?);
    report(args, &mut bar, "done")
}

fn report(args: &RebuildArgs, bar: &mut ProgressBar, text: &str) -> Result<(), Failure> {
    if !args.quiet {
        bar.line(&format!("state {}: {text}", args.dir.display()));
    }
    Ok(())
}

/// The format that the store was built with.
fn format(store: &RocksReader) -> Result<Option<Format>, StoreError> {
    // Opening the store has already decoded it once.
    Ok(store.format()?.and_then(|bytes| Format::decode(&bytes).ok()))
}

/// Reads every document.
fn count(store: &RocksReader, bar: &mut ProgressBar) -> Result<BTreeMap<Lang, u64>, StoreError> {
    let mut counts = BTreeMap::new();
    for language in store.languages() {
        let mut count = 0;
        store.each_document(language, &mut |_| {
            count += 1;
            bar.draw(None, || format!("{language}  {} documents read", thousands(count)));
            ControlFlow::Continue(())
        })?;
        counts.insert(language, count);
    }
    bar.clear();
    Ok(counts)
}

/// Adds recovery hints to an error that rebuilding the bands cannot repair; other errors pass unchanged.
fn not_rebuilt(directory: &Path, error: StoreError, origin: &StateOrigin) -> Failure {
    let (why, damage) = match error {
        StoreError::Corrupt { place, detail } => {
            (format!("state {place} is damaged: {detail}"), StateDamage::Corrupt)
        }
        StoreError::Foreign { place, what, found, expected, .. } => {
            let why = format!("state {place} was built with {what} {found}, and this program has {expected}");
            (why, if what == "scheme" { StateDamage::OtherScheme } else { StateDamage::Corrupt })
        }
        other => return other.into(),
    };
    StateError::NotRebuilt { why, hints: recovery_hints(directory, origin, damage) }.into()
}
