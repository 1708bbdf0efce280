//! `samestory state inspect`

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::ops::ControlFlow;

use samestory::config::Config;
use samestory::files::thousands;
use samestory_engine::fingerprint::config_hash;
use samestory_engine::index::{
    Budget, BusPosition, Durability, Family, Format, Inspection, Order, RocksReader, Rows, Span,
    TopicIdentity, VERSION, View,
};
use samestory_engine::model::Lang;
use samestory_engine::text::language;
use serde_json::{Value, json};

use super::sizes::{bytes, on_disk};
use super::{Failure, InspectArgs};
use samestory::terminal::style::printable;

/// With more documents their postings are estimated: what was removed and not compacted away spoils that.
const COUNTED: u64 = 100_000;

/// All that is shown.
struct Seen {
    place: String,
    inspection: Inspection,
    /// Whether the postings were counted, not estimated.
    counted: bool,
    /// The settings that the newest fingerprint of each language was made under.
    configs: BTreeSet<u32>,
    sizes: Vec<(Family, u64)>,
    on_disk: u64,
    /// What the settings ask for and the state does not have.
    remarks: Vec<String>,
}

pub(super) fn run(args: &InspectArgs, config: &Config) -> Result<(), Failure> {
    let store = RocksReader::existing(&args.dir, &Budget::default())?;
    let mut inspection = store.inspect()?;
    let counted = inspection.languages.iter().map(|of| of.documents).sum::<u64>() <= COUNTED;
    if counted {
        for of in &mut inspection.languages {
            of.postings = store.count_postings(of.language)?;
        }
    }
    let configs: BTreeSet<u32> = store.languages().into_iter().filter_map(|of| newest(&store, of)).collect();
    let remarks = remarks(inspection.format.as_ref(), &configs, config);
    let (place, on_disk) = (args.dir.display().to_string(), on_disk(&args.dir));
    let seen = Seen { place, inspection, counted, configs, sizes: store.sizes(), on_disk, remarks };
    let mut out = samestory::terminal::stdout();
    if args.json {
        writeln!(out, "{:#}", as_json(&seen))?
    } else {
        table(&mut out, &seen)?
    }
    Ok(())
}

/// The hash of the settings that the newest document of a language was fingerprinted under.
fn newest(store: &RocksReader, language: Lang) -> Option<u32> {
    let mut number = None;
    let documents = Family::Documents(language);
    let scanned = store.scan(documents, &Span::all(), Order::Descending, &mut |key, _| {
        number = key.try_into().ok().map(u64::from_be_bytes);
        ControlFlow::Break(())
    });
    scanned.ok()?;
    // A fingerprint of another scheme cannot be read; that is a remark, not an error.
    let document =
        store.document(language, samestory_engine::model::DocumentNumber(number?)).ok().flatten()?;
    Some(document.fingerprint.config)
}

fn remarks(format: Option<&Format>, configs: &BTreeSet<u32>, config: &Config) -> Vec<String> {
    let Some(format) = format else { return vec!["nothing has been written to it yet".to_owned()] };
    let mut remarks = Vec::new();
    let asked = Format::new(format.ahead, config.postings.clone());
    if format.scheme != asked.scheme {
        remarks.push(format!(
            "this program makes fingerprints of scheme {}, which cannot be compared with these",
            asked.scheme
        ));
    }
    if format.rebanding {
        remarks.push("making its bands anew was cut off: run `samestory state rebuild`".to_owned());
    } else if format.postings != asked.postings {
        remarks.push(format!(
            "the settings ask for other bands ({}): `samestory state rebuild` makes them",
            asked.postings
        ));
    }
    let current = config_hash(&config.text);
    if let Some(other) = configs.iter().find(|&&found| found != current) {
        remarks.push(format!(
            "its newest texts were prepared under the settings {other:08x}, new ones are under {current:08x}: \
             they may not be recognised as the same"
        ));
    }
    remarks
}

fn as_json(seen: &Seen) -> Value {
    let Inspection { format, progress, changelog_next, languages, bytes: live } = &seen.inspection;
    let counters = |of: Lang| progress.languages.get(&of).cloned().unwrap_or_default();
    json!({
        "state": seen.place,
        "format": format.as_ref().map(|format| json!({
            "version": VERSION,
            "scheme": format.scheme,
            "bands": format.postings.to_string(),
            "rebanding": format.rebanding,
            "changelog_partition": match format.ahead {
                Durability::Changelog { partition } => Some(partition),
                Durability::OwnWal => None,
            },
        })),
        "configs": seen.configs.iter().map(|config| format!("{config:08x}")).collect::<Vec<_>>(),
        "bytes_on_disk": seen.on_disk,
        "bytes_of_tables": live,
        "families": seen.sizes.iter()
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
        "inputs": progress.inputs.iter().map(|(name, input)| json!({
            "name": name.as_str(),
            "next": input.next,
            "note": input.note.as_ref().map(|note| note.as_str()),
        })).collect::<Vec<_>>(),
        "languages": languages.iter().map(|of| json!({
            "language": of.language,
            "documents": of.documents,
            "residences": of.residences,
            "postings": of.postings,
            "clusters": of.clusters,
            "bytes": of.bytes,
            "next_number": counters(of.language).next_number,
            "stream_time": counters(of.language).stream_time,
        })).collect::<Vec<_>>(),
        "postings_counted": seen.counted,
        "remarks": seen.remarks,
    })
}

fn table(out: &mut impl Write, seen: &Seen) -> io::Result<()> {
    let Inspection { format, progress, changelog_next, languages, .. } = &seen.inspection;
    writeln!(out, "state      {}", printable(&seen.place))?;
    if let Some(format) = format {
        let configs: Vec<String> = seen.configs.iter().map(|config| format!("{config:08x}")).collect();
        let configs =
            if configs.is_empty() { String::new() } else { format!(", config {}", configs.join(" ")) };
        writeln!(out, "made with  format {VERSION}, scheme {}{configs}", format.scheme)?;
        writeln!(out, "bands      {}", format.postings)?;
        writeln!(out, "log        {}", format.ahead)?;
    }
    let of = |wanted: fn(&Family) -> bool| {
        bytes(seen.sizes.iter().filter(|(family, _)| wanted(family)).map(|(_, size)| size).sum())
    };
    writeln!(
        out,
        "size       {} on disk: documents {}, postings {}, the rest {}",
        bytes(seen.on_disk),
        of(|family| matches!(family, Family::Documents(_))),
        of(|family| matches!(family, Family::Bands(_))),
        of(|family| !matches!(family, Family::Documents(_) | Family::Bands(_))),
    )?;
    for remark in &seen.remarks {
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
            format!("{}{}", if seen.counted { "" } else { "~" }, thousands(row.postings)),
            thousands(row.clusters),
            bytes(row.bytes),
            thousands(counters.next_number),
            counters.stream_time.map_or("–".to_owned(), |time| time.to_string()),
        )?;
    }
    if progress.bus.is_some() || !progress.inputs.is_empty() || changelog_next.is_some() {
        writeln!(out, "\nposition")?;
    }
    if let Some(position) = &progress.bus {
        let BusPosition { topic, partition, next, .. } = position;
        let of = TopicIdentity { cluster: position.cluster.clone(), id: position.topic_id };
        writeln!(
            out,
            "{:>14}  {} partition {partition} ({of})",
            thousands(*next),
            printable(topic.as_str())
        )?;
    }
    for (name, input) in &progress.inputs {
        writeln!(out, "{:>14}  {}", thousands(input.next), printable(name.as_str()))?;
    }
    if let Some(next) = changelog_next {
        writeln!(out, "{:>14}  changelog", thousands(*next))?;
    }
    Ok(())
}
