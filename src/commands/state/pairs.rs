//! `samestory state pairs`: every pair of documents in a state from a similarity on. Documents are visited by language
//! and number, and each is compared with the earlier documents that share a bucket with it, so memory does not grow with the
//! state and every pair is listed once, under its newer document.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Seek, SeekFrom, Write};
use std::ops::ControlFlow;
use std::path::Path;

use samestory::config::Config;
use samestory::files::thousands;
use samestory::terminal::progress_bar::ProgressBar;
use samestory_engine::engine::{Engine, Prepared};
use samestory_engine::index::{Budget, Document, RocksReader, Rows, View};
use samestory_engine::model::{DocumentNumber, Lang, LanguageSource};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Failure, PairsArgs};

/// Where to continue: the first document that is examined again.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Place {
    language: Lang,
    number: u64,
}

#[derive(Default)]
struct Tally {
    documents: u64,
    pairs: u64,
    capped: u64,
}

pub(super) fn run(args: &PairsArgs, config: &Config) -> Result<(), Failure> {
    let store = RocksReader::existing(&args.dir, &Budget::default())?;
    let engine = Engine::new(config.engine.clone());
    let mut bar = ProgressBar::new(args.quiet);
    let tally = match &args.output {
        None => write(&store, &engine, args, None, &mut bar, samestory::terminal::stdout())?,
        Some(path) => {
            let failed = |error| Failure::Save { path: path.clone(), error };
            let mut options = File::options();
            let options = options.read(true).write(true).create(true).truncate(!args.resume);
            let mut file = samestory::files::for_output(options).open(path).map_err(failed)?;
            let place = if args.resume { resume(&mut file).map_err(failed)? } else { None };
            let written = write(&store, &engine, args, place, &mut bar, &file);
            let tally = written.map_err(|failure| name_file(path, failure))?;
            file.sync_all().map_err(failed)?;
            tally
        }
    };
    bar.clear();
    if !args.quiet {
        bar.line(&format!("{} pairs among {} documents", thousands(tally.pairs), thousands(tally.documents)));
        if tally.capped > 0 {
            bar.line(&format!(
                "{} documents are in buckets of more than {} documents, of which the newest were compared; raise lsh.max_bucket to compare more",
                thousands(tally.capped),
                thousands(config.engine.max_bucket as u64)
            ));
        }
    }
    Ok(())
}

fn name_file(path: &Path, failure: Failure) -> Failure {
    match failure {
        Failure::Output(error) => Failure::Save { path: path.to_owned(), error },
        other => other,
    }
}

/// Cuts off the pairs of the last document, which may be incomplete, and returns that document.
fn resume(file: &mut File) -> io::Result<Option<Place>> {
    let mut reader = BufReader::new(&mut *file);
    let (mut at, mut line) = (0_u64, Vec::new());
    let mut last: Option<(Place, u64)> = None;
    let end = loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line)? as u64;
        // An unfinished line belongs to the last document or to a later one.
        if read == 0 || line.last() != Some(&b'\n') {
            break last.as_ref().map_or(0, |(_, start)| *start);
        }
        let place: Place = serde_json::from_slice(&line).map_err(|error| {
            io::Error::other(format!("it is not a list of pairs, so it was left as it is: {error}"))
        })?;
        if last.as_ref().is_none_or(|(before, _)| *before != place) {
            last = Some((place, at));
        }
        at += read;
    };
    file.set_len(end)?;
    file.seek(SeekFrom::Start(end))?;
    Ok(last.map(|(place, _)| place))
}

fn write(
    store: &RocksReader,
    engine: &Engine,
    args: &PairsArgs,
    place: Option<Place>,
    bar: &mut ProgressBar,
    out: impl Write,
) -> Result<Tally, Failure> {
    let mut out = BufWriter::with_capacity(1 << 16, out);
    let all: u64 = store.inspect()?.languages.iter().map(|language| language.documents).sum();
    let mut tally = Tally::default();
    for language in store.languages() {
        if place.as_ref().is_some_and(|place| language < place.language) {
            continue;
        }
        let first = place.as_ref().filter(|place| place.language == language).map_or(0, |place| place.number);
        let mut outcome = Ok(());
        store.each_document(language, &mut |document| {
            if document.number.0 >= first {
                outcome = pairs_of(store, engine, document, args.min_similarity, &mut out, &mut tally);
            }
            tally.documents += 1;
            bar.draw(Some(tally.documents as f64 / all.max(1) as f64), || {
                format!("{} documents, {} pairs", thousands(tally.documents), thousands(tally.pairs))
            });
            if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        outcome?;
    }
    out.flush()?;
    Ok(tally)
}

fn pairs_of(
    store: &RocksReader,
    engine: &Engine,
    document: Document,
    min_similarity: f64,
    out: &mut impl Write,
    tally: &mut Tally,
) -> Result<(), Failure> {
    let (number, cluster) = (document.number, document.cluster);
    let article = prepared(document);
    let candidates = engine.candidates(store, &article, None)?;
    tally.capped += u64::from(candidates.capped);
    let settings = engine.settings_for(article.language);
    for candidate in candidates.all.iter().filter(|candidate| candidate.document.number < number) {
        let similarity = settings.similarity(&candidate.comparison);
        if similarity >= min_similarity {
            let line = pair(
                &article,
                number,
                cluster,
                &candidate.document,
                similarity,
                candidate.comparison.containment,
            );
            writeln!(out, "{line}")?;
            tally.pairs += 1;
        }
    }
    Ok(())
}

fn pair(
    newer: &Prepared,
    number: DocumentNumber,
    cluster: DocumentNumber,
    older: &Document,
    similarity: f64,
    containment: f64,
) -> Value {
    let round = |fraction: f64| (fraction * 10_000.0).round() / 10_000.0;
    json!({
        "language": newer.language,
        "number": number.0,
        "newer": newer.id,
        "older": older.id,
        "older_number": older.number.0,
        "similarity": round(similarity),
        "containment": round(containment),
        "same_cluster": cluster == older.cluster,
    })
}

/// A document as if it arrived now.
pub(super) fn prepared(document: Document) -> Prepared {
    Prepared {
        content_kind: document.content_kind(),
        id: document.id,
        language: document.language,
        reported_language: document.language,
        language_source: LanguageSource::Text,
        declared_language: None,
        fingerprint: document.fingerprint,
        title: document.title,
        host: document.host,
        url: document.url,
        published_at: document.published_at,
        fetched_at: None,
        flags: Vec::new(),
    }
}
