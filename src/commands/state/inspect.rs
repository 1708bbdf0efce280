//! `samestory state inspect`: shows the contents of a state, the settings that it was built with, its positions and its sizes.
//! It compares the state with the current settings and notes the differences.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::ops::ControlFlow;

use samestory::config::Config;
use samestory::files::thousands;
use samestory_engine::fingerprint::config_hash;
use samestory_engine::index::{
    Budget, BusPosition, Durability, Family, FilePath, FilePosition, FileProgress, Format, Inspection, Order,
    RocksReader, Span, TopicIdentity, VERSION, View,
};
use samestory_engine::model::Lang;
use samestory_engine::text::language;
use serde_json::{Value, json};

use super::sizes::{bytes, on_disk};
use super::{Failure, InspectArgs};
use samestory::terminal::style::printable;

/// Up to this many documents, postings are counted. RocksDB's estimate, which is used beyond, includes deleted rows that are not
/// compacted away.
const COUNTED: u64 = 100_000;

/// Everything that the command prints.
struct StateReport {
    directory: String,
    inspection: Inspection,
    /// True if postings were counted instead of estimated.
    counted: bool,
    /// The `config` hash of the newest fingerprint of each language.
    configs: BTreeSet<u32>,
    sizes: Vec<(Family, u64)>,
    on_disk: u64,
    /// Differences between the state and the settings.
    remarks: Vec<String>,
}

pub(super) fn run(args: &InspectArgs, config: &Config) -> Result<(), Failure> {
    let store = RocksReader::existing(&args.dir, &Budget::default())?;
    let mut inspection = store.inspect()?;
    let counted = inspection.languages.iter().map(|language| language.documents).sum::<u64>() <= COUNTED;
    if counted {
        for row in &mut inspection.languages {
            row.postings = store.count_postings(row.language)?;
        }
    }
    let configs: BTreeSet<u32> =
        store.languages().into_iter().filter_map(|language| newest_config(&store, language)).collect();
    let remarks = remarks(inspection.format.as_ref(), &configs, config);
    let (directory, on_disk) = (args.dir.display().to_string(), on_disk(&args.dir));
    let report =
        StateReport { directory, inspection, counted, configs, sizes: store.sizes(), on_disk, remarks };
    let mut out = samestory::terminal::stdout();
    if args.json {
        writeln!(out, "{:#}", as_json(&report))?
    } else {
        table(&mut out, &report)?
    }
    Ok(())
}

/// The `config` hash of the newest document of a language.
fn newest_config(store: &RocksReader, language: Lang) -> Option<u32> {
    let mut number = None;
    let documents = Family::Documents(language);
    let scanned = store.scan(documents, &Span::all(), Order::Descending, &mut |key, _| {
        number = key.try_into().ok().map(u64::from_be_bytes);
        ControlFlow::Break(())
    });
    scanned.ok()?;
    // A fingerprint of another scheme cannot be decoded; `remarks` reports that, so it is not an error.
    let document =
        store.document(language, samestory_engine::model::DocumentNumber(number?)).ok().flatten()?;
    Some(document.fingerprint.config)
}

fn remarks(format: Option<&Format>, configs: &BTreeSet<u32>, config: &Config) -> Vec<String> {
    let Some(format) = format else {
        return vec!["it is empty: nothing has been written to it yet".to_owned()];
    };
    let mut remarks = Vec::new();
    let asked = Format::new(format.durability, config.postings.clone());
    if format.scheme != asked.scheme {
        remarks.push(format!(
            "this program computes fingerprints of scheme {}, which cannot be compared with these",
            asked.scheme
        ));
    }
    if format.rebanding {
        remarks.push("a rebuild of its bands was interrupted: run `samestory state rebuild`".to_owned());
    } else if format.postings != asked.postings {
        remarks.push(format!(
            "the settings ask for other bands ({}): run `samestory state rebuild`",
            asked.postings
        ));
    }
    let current = config_hash(&config.text);
    if let Some(other) = configs.iter().find(|&&found| found != current) {
        remarks.push(format!(
            "its newest texts were normalised under the settings {other:08x}, new ones are under {current:08x}: \
             duplicates may be missed"
        ));
    }
    remarks
}

fn as_json(report: &StateReport) -> Value {
    let Inspection { format, progress, changelog_next, languages, bytes: live } = &report.inspection;
    let counters = |language: Lang| progress.languages.get(&language).cloned().unwrap_or_default();
    json!({
        "state": report.directory,
        "format": format.as_ref().map(|format| json!({
            "version": VERSION,
            "scheme": format.scheme,
            "bands": format.postings.to_string(),
            "rebanding": format.rebanding,
            "changelog_partition": match format.durability {
                Durability::Changelog { partition } => Some(partition),
                Durability::OwnWal => None,
            },
        })),
        "configs": report.configs.iter().map(|config| format!("{config:08x}")).collect::<Vec<_>>(),
        "bytes_on_disk": report.on_disk,
        "bytes_of_tables": live,
        "families": report.sizes.iter()
            .map(|(family, size)| json!({ "family": family.name(), "bytes": size })).collect::<Vec<_>>(),
        "changelog_next": changelog_next,
        "position": progress.bus.as_ref().map(|position| json!({
            "application": position.application.as_str(),
            "cluster_id": position.cluster.as_ref().map(|id| id.as_str()),
            "changelog_topic_id": position.changelog.map(|id| id.to_string()),
            "topic": position.topic.as_str(),
            "topic_id": position.topic_id.map(|id| id.to_string()),
            "partition": position.partition,
            "next": position.next,
            "leader_epoch": position.leader_epoch,
        })),
        "built_with": progress.built_with.as_ref().map(|settings| json!({
            "partitions": settings.partitions,
            "languages": settings.languages.as_ref().map(|languages| {
                languages.iter().map(|language| language.code()).collect::<Vec<_>>()
            }),
            "language_table": settings.language_table,
            "fingerprints": format!("{:08x}", settings.fingerprints),
        })),
        "inputs": files_as_json(&progress.files.inputs),
        "outputs": files_as_json(&progress.files.outputs),
        "dead_letters": files_as_json(&progress.files.dead_letters),
        "pairs": progress.files.pairs.map(|pairs| json!({
            "count": pairs.count,
            "hash": format!("{:016x}", pairs.hash),
        })),
        "languages": languages.iter().map(|row| json!({
            "language": row.language,
            "documents": row.documents,
            "residences": row.residences,
            "postings": row.postings,
            "segments": row.segments,
            "clusters": row.clusters,
            "bytes": row.bytes,
            "next_number": counters(row.language).next_number,
            "stream_time": counters(row.language).stream_time,
        })).collect::<Vec<_>>(),
        "postings_counted": report.counted,
        "remarks": report.remarks,
    })
}

fn files_as_json(files: &BTreeMap<FilePath, FilePosition>) -> Vec<Value> {
    let file = |(path, position): (&FilePath, &FilePosition)| {
        json!({
            "name": path.as_str(),
            "next": position.next,
            "begins": { "bytes": position.begins.bytes, "hash": format!("{:016x}", position.begins.hash) },
        })
    };
    files.iter().map(file).collect()
}

fn table(out: &mut impl Write, report: &StateReport) -> io::Result<()> {
    let Inspection { format, progress, changelog_next, languages, .. } = &report.inspection;
    writeln!(out, "state      {}", printable(&report.directory))?;
    if let Some(format) = format {
        let configs: Vec<String> = report.configs.iter().map(|config| format!("{config:08x}")).collect();
        let configs =
            if configs.is_empty() { String::new() } else { format!(", config {}", configs.join(" ")) };
        writeln!(out, "built with format {VERSION}, scheme {}{configs}", format.scheme)?;
        writeln!(out, "bands      {}", format.postings)?;
        writeln!(out, "log        {}", format.durability)?;
    }
    let size_of = |wanted: fn(&Family) -> bool| {
        bytes(report.sizes.iter().filter(|(family, _)| wanted(family)).map(|(_, size)| size).sum())
    };
    writeln!(
        out,
        "size       {} on disk: documents {}, postings {}, the rest {}",
        bytes(report.on_disk),
        size_of(|family| matches!(family, Family::Documents(_))),
        size_of(|family| matches!(family, Family::Bands(_))),
        size_of(|family| !matches!(family, Family::Documents(_) | Family::Bands(_))),
    )?;
    for remark in &report.remarks {
        writeln!(out, "note       {}", printable(remark))?;
    }
    if !languages.is_empty() {
        writeln!(
            out,
            "\n{:<22} {:>11} {:>11} {:>12} {:>10} {:>11} {:>12}  stream time",
            "language", "documents", "residences", "postings", "clusters", "size", "next number"
        )?;
    }
    for row in languages {
        let counters = progress.languages.get(&row.language).cloned().unwrap_or_default();
        let name = match row.language {
            Lang::UND => "unknown (und)".to_owned(),
            known => format!("{} ({known})", language::row(known).name),
        };
        writeln!(
            out,
            "{name:<22} {:>11} {:>11} {:>12} {:>10} {:>11} {:>12}  {}",
            thousands(row.documents),
            thousands(row.residences),
            format!("{}{}", if report.counted { "" } else { "~" }, thousands(row.postings)),
            thousands(row.clusters),
            bytes(row.bytes),
            thousands(counters.next_number),
            counters.stream_time.map_or("–".to_owned(), |time| time.to_string()),
        )?;
    }
    let FileProgress { inputs, outputs, dead_letters, pairs } = &progress.files;
    if progress.bus.is_some() || !progress.files.is_empty() || changelog_next.is_some() {
        writeln!(out, "\nposition")?;
    }
    if let Some(position) = &progress.bus {
        let BusPosition { topic, partition, next, .. } = position;
        let topic_identity = TopicIdentity { cluster: position.cluster.clone(), id: position.topic_id };
        writeln!(
            out,
            "{:>14}  {} partition {partition} ({topic_identity})",
            thousands(*next),
            printable(topic.as_str())
        )?;
    }
    for (kind, files) in [("file", inputs), ("output", outputs), ("dead-letters", dead_letters)] {
        for (path, position) in files {
            writeln!(out, "{:>14}  {kind}:{}", thousands(position.next), printable(path.as_str()))?;
        }
    }
    if let Some(pairs) = pairs {
        writeln!(out, "{:>14}  pairs", thousands(pairs.count))?;
    }
    if let Some(next) = changelog_next {
        writeln!(out, "{:>14}  changelog", thousands(*next))?;
    }
    Ok(())
}
