//! `samestory state verify`: reads every row, compares checksums, and checks that rows agree with each other. Each finding is a
//! line; the error at the end explains how to recover.

use std::io::Write;

use samestory::files::thousands;
use samestory_engine::index::{
    Budget, RocksReader, StoreError, Verifying, View, cross_check, verify_watched,
};

use super::recovery_hints::{StateDamage, StateOrigin, recovery_hints};
use super::{Failure, StateError, VerifyArgs};
use samestory::terminal::progress_bar::ProgressBar;
use samestory::terminal::style::printable;

pub(super) fn run(args: &VerifyArgs) -> Result<(), Failure> {
    let mut bar = ProgressBar::new(args.quiet);
    let mut out = samestory::terminal::stdout();
    let store = match RocksReader::existing(&args.dir, &Budget::default()) {
        Ok(store) => store,
        Err(StoreError::Corrupt { detail, .. }) => {
            writeln!(out, "{}", printable(&detail))?;
            let hints = recovery_hints(&args.dir, &StateOrigin::default(), StateDamage::Corrupt);
            return Err(damaged(args, 1, hints));
        }
        Err(other) => return Err(other.into()),
    };
    let rows = store.rows_estimate().max(1);
    let mut watch = |done: Verifying| {
        bar.draw(Some(done.rows as f64 / rows as f64), || {
            format!("{}  {} rows", done.family.name(), thousands(done.rows))
        });
    };
    let mut verification = verify_watched(&store, &mut watch)?;
    if verification.unread.is_empty() {
        verification.findings.extend(cross_check(&store, &mut watch)?);
    } else {
        bar.say("looking for more damage");
        let damages = store.damages()?;
        verification.findings.retain(|finding| !damages.contains(finding));
        verification.findings.splice(0..0, damages);
    }
    if verification.rows > 0 && store.format().is_ok_and(|format| format.is_none()) {
        verification.findings.push("meta: the format of the state is missing".to_owned());
    }
    let interrupted =
        store.inspect().is_ok_and(|inspection| inspection.format.is_some_and(|format| format.rebanding));
    bar.clear();
    if interrupted {
        verification.findings.insert(0, "meta: a rebuild of the bands was interrupted".to_owned());
    }
    for finding in &verification.findings {
        writeln!(out, "{}", printable(finding))?;
    }
    if verification.findings.is_empty() {
        if !args.quiet {
            let [rows, documents, postings] =
                [verification.rows, verification.documents, verification.postings].map(thousands);
            writeln!(out, "{rows} rows, {documents} documents, {postings} postings: sound")?;
        }
        return Ok(());
    }
    let is_in_bands = |finding: &String| finding.starts_with("bands:");
    let directory = args.dir.display();
    let hints = match () {
        () if interrupted => format!("`samestory state rebuild {directory}` starts over and completes it"),
        () if verification.findings.iter().all(is_in_bands) => {
            format!(
                "the documents are sound: `samestory state rebuild --force {directory}` rebuilds the bands"
            )
        }
        () => recovery_hints(&args.dir, &StateOrigin::read(&store), StateDamage::Corrupt),
    };
    Err(damaged(args, verification.findings.len(), hints))
}

fn damaged(args: &VerifyArgs, findings: usize, hints: String) -> Failure {
    let findings = if findings == 1 { "1 finding".to_owned() } else { format!("{findings} findings") };
    StateError::Damaged { directory: args.dir.display().to_string(), findings, hints }.into()
}
