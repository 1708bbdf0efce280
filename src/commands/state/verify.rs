//! `samestory state verify`

use std::io::Write;

use samestory::files::thousands;
use samestory_engine::index::{
    Budget, RocksReader, StoreError, Verifying, View, cross_check, verify_watched,
};

use super::recovery_hints::{Known, Need, ways};
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
            let ways = ways(&args.dir, &Known::default(), Need::Damaged);
            return Err(not_whole(args, 1, ways));
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
        verification.findings.push("meta: it does not say what the state was made with".to_owned());
    }
    let unfinished = store.inspect().is_ok_and(|seen| seen.format.is_some_and(|format| format.rebanding));
    bar.clear();
    if unfinished {
        verification.findings.insert(0, "meta: making the bands anew was cut off".to_owned());
    }
    for finding in &verification.findings {
        writeln!(out, "{}", printable(finding))?;
    }
    if verification.findings.is_empty() {
        if !args.quiet {
            let [rows, documents, postings] =
                [verification.rows, verification.documents, verification.postings].map(thousands);
            writeln!(out, "{rows} rows, {documents} documents, {postings} postings: all is well")?;
        }
        return Ok(());
    }
    let bands = |finding: &String| finding.starts_with("bands:");
    let place = args.dir.display();
    let ways = match () {
        () if unfinished => format!("`samestory state rebuild {place}` begins again and ends it"),
        () if verification.findings.iter().all(bands) => {
            format!("the documents are sound: `samestory state rebuild --force {place}` makes the bands anew")
        }
        () => ways(&args.dir, &Known::of(&store), Need::Damaged),
    };
    Err(not_whole(args, verification.findings.len(), ways))
}

fn not_whole(args: &VerifyArgs, findings: usize, ways: String) -> Failure {
    let findings = if findings == 1 { "1 finding".to_owned() } else { format!("{findings} findings") };
    StateError::NotWhole { place: args.dir.display().to_string(), findings, ways }.into()
}
