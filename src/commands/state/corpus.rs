//! `samestory state check-corpus`: judges every document of a state again, among the earlier ones, and reports verdicts
//! that would differ, documents that do not find themselves, and hot buckets. Nothing is changed.

use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::ops::ControlFlow;

use samestory::config::Config;
use samestory::files::thousands;
use samestory::terminal::progress_bar::ProgressBar;
use samestory_engine::engine::{Candidate, Engine, Prepared};
use samestory_engine::index::{Budget, Document, RocksReader, View};
use samestory_engine::model::{Lang, VerdictKind};
use serde_json::json;

use super::{CheckCorpusArgs, Failure};

/// Hot buckets that are remembered; the report shows the largest.
const REMEMBERED: usize = 10_000;
/// Hot buckets that are reported.
const REPORTED: usize = 100;

#[derive(Default)]
struct Found {
    documents: u64,
    differ: u64,
    lost: u64,
    /// Documents in a bucket, by language, band and hash.
    hot: BTreeMap<(Lang, u16, u64), u64>,
}

pub(super) fn run(args: &CheckCorpusArgs, config: &Config) -> Result<(), Failure> {
    let store = RocksReader::existing(&args.dir, &Budget::default())?;
    let engine = Engine::new(config.engine.clone());
    let mut bar = ProgressBar::new(args.quiet);
    let mut out = BufWriter::new(samestory::terminal::stdout());
    let all: u64 = store.inspect()?.languages.iter().map(|language| language.documents).sum();
    let mut found = Found::default();
    for language in store.languages() {
        let mut outcome = Ok(());
        store.each_document(language, &mut |document| {
            outcome = check(&store, &engine, document, &mut found, &mut out);
            found.documents += 1;
            bar.draw(Some(found.documents as f64 / all.max(1) as f64), || {
                format!("{} documents", thousands(found.documents))
            });
            if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        outcome?;
    }
    let mut hot: Vec<_> = found.hot.iter().collect();
    hot.sort_by_key(|&(key, &documents)| (std::cmp::Reverse(documents), *key));
    for ((language, band, hash), documents) in hot.iter().take(REPORTED) {
        let line = json!({
            "finding": "hot-bucket",
            "language": language,
            "band": band,
            "hash": format!("{hash:016x}"),
            "documents": documents,
        });
        writeln!(out, "{line}")?;
    }
    out.flush()?;
    bar.clear();
    if !args.quiet {
        bar.line(&format!(
            "{} documents: {} verdicts would differ today, {} documents do not find themselves, {} hot buckets",
            thousands(found.documents),
            thousands(found.differ),
            thousands(found.lost),
            thousands(found.hot.len() as u64)
        ));
    }
    Ok(())
}

fn check(
    store: &RocksReader,
    engine: &Engine,
    document: Document,
    found: &mut Found,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let (number, stored) = (document.number, document.judgement);
    let article = Prepared::from(document);
    // A text without words is nobody's copy and has no buckets.
    if !article.has_text() {
        return Ok(());
    }
    let candidates = engine.candidates(store, &article, None)?;
    let itself = candidates.all.iter().any(|candidate| candidate.document.number == number);
    if !itself && !candidates.capped {
        found.lost += 1;
        let line =
            json!({ "finding": "does-not-find-itself", "language": article.language, "id": article.id });
        writeln!(out, "{line}")?;
    }
    if candidates.capped_buckets > 0 {
        let postings = store.postings().for_language(article.language);
        let keys = postings.keys(&article.fingerprint);
        let cap = engine.settings().max_bucket.max(1);
        for (key, list) in keys.iter().zip(store.buckets(article.language, &keys, cap + 1)?) {
            let name = (article.language, key.band, key.hash);
            if list.numbers.len() > cap && (found.hot.len() < REMEMBERED || found.hot.contains_key(&name)) {
                *found.hot.entry(name).or_default() += 1;
            }
        }
    }
    let is_copy = |candidate: &&Candidate| {
        candidate.document.number < number && candidate.comparison.relation.is_duplicate()
    };
    let today = candidates.all.iter().find(is_copy);
    let was_copy = stored.verdict != VerdictKind::Unique;
    // A copy of its own earlier version stays a copy, and an original that is gone cannot be compared.
    let original = match stored.duplicate_of.filter(|&original| original != number) {
        Some(original) => store.document(article.language, original)?,
        None => None,
    };
    let differs = match (was_copy, today) {
        (false, Some(_)) => true,
        (true, None) => original.is_some() && !candidates.capped,
        _ => false,
    };
    if differs {
        found.differ += 1;
        let line = json!({
            "finding": "verdict-would-differ",
            "language": article.language,
            "id": article.id,
            "stored": stored.verdict.as_str(),
            "today": if today.is_some() { "duplicate" } else { "unique" },
            "other": today.map_or_else(|| original.map(|document| document.id), |one| Some(one.document.id.clone())),
        });
        writeln!(out, "{line}")?;
    }
    Ok(())
}
