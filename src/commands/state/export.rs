//! `samestory state export`: writes every document of a state as NDJSON or CSV, by language and number, so equal states give
//! equal bytes.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::ControlFlow;
use std::path::Path;

use samestory::files::thousands;
use samestory_engine::index::{Budget, Document, OutputTopic, RocksReader, StoreError, View};
use samestory_engine::model::Flag;
use serde_json::{Value, json};

use super::{ExportArgs, ExportFormat, Failure};
use samestory::terminal::progress_bar::ProgressBar;

pub(super) fn run(args: &ExportArgs) -> Result<(), Failure> {
    let store = RocksReader::existing(&args.dir, &Budget::default())?;
    let mut bar = ProgressBar::new(args.quiet);
    let documents: u64 = store.inspect()?.languages.iter().map(|language| language.documents).sum();
    let written = match &args.output {
        None => write(&store, args, documents, &mut bar, samestory::terminal::stdout())?,
        Some(path) => {
            let failed = |error| Failure::Save { path: path.clone(), error };
            let mut options = File::options();
            let options = samestory::files::for_output(options.write(true).create(true).truncate(true));
            let file = options.open(path).map_err(failed)?;
            let written = write(&store, args, documents, &mut bar, &file);
            let written = written.map_err(|failure| name_file(path, failure))?;
            file.sync_all().map_err(failed)?;
            written
        }
    };
    bar.clear();
    if !args.quiet {
        bar.line(&format!("{} documents", thousands(written)));
    }
    Ok(())
}

/// Reports a write error as one of the file instead of standard output.
fn name_file(path: &Path, failure: Failure) -> Failure {
    match failure {
        Failure::Output(error) => Failure::Save { path: path.to_owned(), error },
        other => other,
    }
}

fn write(
    store: &RocksReader,
    args: &ExportArgs,
    documents: u64,
    bar: &mut ProgressBar,
    out: impl Write,
) -> Result<u64, Failure> {
    let mut out = BufWriter::with_capacity(1 << 18, out);
    let mut written = 0;
    if args.format == ExportFormat::Csv {
        writeln!(out, "{CSV_HEADER}")?;
    }
    for language in store.languages() {
        let mut outcome = Ok(());
        store.each_document(language, &mut |document| {
            let line = match args.format {
                ExportFormat::Ndjson => {
                    line(store, &document, args.fingerprints).map(|value| value.to_string())
                }
                ExportFormat::Csv => csv_line(store, &document),
            };
            outcome = line.map_err(Failure::from).and_then(|line| Ok(writeln!(out, "{line}")?));
            written += u64::from(outcome.is_ok());
            bar.draw(Some(written as f64 / documents.max(1) as f64), || {
                format!("{} documents", thousands(written))
            });
            if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        outcome?;
    }
    out.flush()?;
    Ok(written)
}

/// Everything that the index keeps of a document.
fn line(store: &RocksReader, document: &Document, fingerprints: bool) -> Result<Value, StoreError> {
    let Document { language, fingerprint, judgement, .. } = document;
    let cluster = store.cluster_of(document)?;
    let duplicate_of = match judgement.duplicate_of {
        Some(number) => store.document(*language, number)?.map(|original| original.id),
        None => None,
    };
    let flags = Flag::ALL.iter().enumerate().filter(|(at, _)| document.flags >> at & 1 == 1);
    let mut value = json!({
        "id": document.id,
        "language": language,
        "number": document.number.0,
        "verdict": judgement.verdict.as_str(),
        "match_type": judgement.match_type.map(|kind| kind.as_str()),
        "duplicate_of": duplicate_of,
        "duplicate_of_number": judgement.duplicate_of.map(|number| number.0),
        "similarity": judgement.similarity,
        "confidence": judgement.confidence,
        "cluster_id": cluster,
        "cluster_number": document.cluster.0,
        "revision": document.revision,
        "outlet": match document.outlet {
            OutputTopic::None => None,
            OutputTopic::Unique => Some("unique"),
            OutputTopic::NearDuplicate => Some("near-duplicate"),
            OutputTopic::Both => Some("both"),
        },
        "content_kind": document.content_kind(),
        "flags": flags.map(|(_, flag)| flag.as_str()).collect::<Vec<_>>(),
        "title": document.title.as_ref().map(|title| title.as_str()),
        "host": document.host.as_ref().map(|host| host.as_str()),
        "url": document.url.as_ref().map(|url| url.as_str()),
        "published_at": document.published_at,
        "event_time": document.event_time,
        "last_seen": document.last_seen,
        "input": document.position,
        "scheme": fingerprint.scheme.number(),
        "config": format!("{:08x}", fingerprint.config),
        "content_hash": format!("{:032x}", fingerprint.content),
        "simhash128": format!("{:032x}", fingerprint.simhash),
        "tokens": fingerprint.tokens,
        "shingles": fingerprint.shingles,
        "numerals": fingerprint.numerals.distinct(),
    });
    if fingerprints {
        value["fingerprint"] = hex::encode(fingerprint.encode()).into();
    }
    Ok(value)
}

const CSV_HEADER: &str = "article_id,simhash,minhash_signature,computed_at,language,content_hash,cluster_id";

/// A row of a table of fingerprints. The time is the article's own: a clock at judging would make a replay differ.
fn csv_line(store: &RocksReader, document: &Document) -> Result<String, StoreError> {
    let fingerprint = &document.fingerprint;
    let lanes: Vec<u8> = fingerprint.minhash.iter().flat_map(|lane| lane.to_le_bytes()).collect();
    let cluster = store.cluster_of(document)?.map(|cluster| cluster.to_string()).unwrap_or_default();
    Ok(format!(
        "{},{:016x},{},{},{},{:032x},{cluster}",
        csv_field(document.id.as_str()),
        fingerprint.simhash64(),
        hex::encode(lanes),
        document.event_time,
        document.language,
        fingerprint.content,
    ))
}

/// Quotes a field where RFC 4180 requires it.
fn csv_field(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
