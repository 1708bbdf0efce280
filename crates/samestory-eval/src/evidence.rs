//! The engine's measures on labelled pairs, as the later article sees them on arrival. `samestory eval`
//! writes them as the table that `dev/fit.py` fits the weights to.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use samestory_engine::{Deduplicator, Measure, Options as EngineOptions, StoreError};

use super::labelled::{Expect, Label, Set};
use super::run::{self, RunOptions};

/// The tab-separated column names.
pub fn header() -> String {
    let measures: Vec<&str> = Measure::ALL.iter().map(|measure| measure.as_str()).collect();
    format!("set\told\tnew\tsame\tkind\tcandidate\tsimilarity\tlanguage\ttokens\t{}", measures.join("\t"))
}

/// Appends a row for each labelled pair of a set, and for each other pair that the engine compares.
///
/// # Errors
/// The state could not be read; that is a bug, because it is in memory.
pub fn rows(
    engine_options: &EngineOptions,
    set: &Set,
    options: RunOptions,
    rows: &mut String,
) -> Result<(), StoreError> {
    let mut dedup = Deduplicator::in_memory(engine_options.clone());
    let prepared = run::prepare(&dedup, set, options);
    let index_of: BTreeMap<&str, usize> =
        set.articles.iter().enumerate().map(|(at, one)| (one.article.id.as_str(), at)).collect();
    let mut listed: BTreeMap<usize, Vec<(usize, Label, &str)>> = BTreeMap::new();
    for pair in &set.pairs {
        listed.entry(pair.new).or_default().push((pair.old, pair.label, &pair.kind));
    }
    for (at, one) in set.articles.iter().enumerate() {
        let Some(own) = &prepared[at] else { continue };
        let mut written = BTreeSet::new();
        let candidates = dedup.candidates(own)?;
        for candidate in &candidates.all {
            let Some(&old) = index_of.get(candidate.document.id.as_str()) else { continue };
            let list = listed.get(&at).and_then(|pairs| pairs.iter().find(|(other, ..)| *other == old));
            let grouped = one.expect.is_some()
                && set.articles[old].expect.is_some()
                && one.expect != Some(Expect::Gray);
            let (same, kind) = match list {
                Some((_, Label::Gray, _)) => continue,
                Some((_, label, kind)) => (*label == Label::Same, (*kind).to_owned()),
                None if grouped => (set.articles[old].group == one.group, one.kind.clone()),
                None => continue,
            };
            written.insert(old);
            let pair = &candidate.comparison;
            let _written = write!(
                rows,
                "{}\t{}\t{}\t{}\t{kind}\t1\t{:.4}\t{}\t{}",
                set.name,
                candidate.document.id,
                own.id,
                u8::from(same),
                pair.similarity,
                own.language,
                own.fingerprint.tokens.min(candidate.document.fingerprint.tokens),
            );
            for measure in Measure::ALL {
                match pair.evidence.get(measure) {
                    Some(share) => write!(rows, "\t{share:.6}"),
                    None => write!(rows, "\t"),
                }
                .unwrap_or_default();
            }
            rows.push('\n');
        }
        for (old, label, kind) in listed.get(&at).into_iter().flatten() {
            if *label != Label::Gray && !written.contains(old) {
                let same = u8::from(*label == Label::Same);
                let empty = "\t".repeat(Measure::ALL.len());
                let id = &set.articles[*old].article.id;
                let _written = writeln!(
                    rows,
                    "{}\t{id}\t{}\t{same}\t{kind}\t0\t0\t{}\t0{empty}",
                    set.name, own.id, own.language
                );
            }
        }
        run::insert(&mut dedup, own)?;
    }
    Ok(())
}
