//! `samestory compat`: the functions of other near-duplicate systems on files of articles, so that nobody has to write Rust
//! to keep their numbers. None of this takes part in verdicts.

mod hashes;

use std::io::Write;
use std::path::PathBuf;

use samestory::compat::group::{HashedArticle, group_articles_by_similarity_within, parse_published};
use samestory::compat::recap::{DuplicateIndex, check_duplicate};
use samestory::compat::simhash::{MAX_DISTANCE, compute_simhash};
use samestory::compat::txtfp::HashFamily;
use samestory::config::Config;
use samestory::files::{self, InputSpec, Source};
use samestory::formats::{Event, json};
use samestory_engine::model::RawArticle;
use samestory_engine::text;
use samestory_engine::text::markup::ContentType;
use samestory_eval::{Label, Set, compat};
use serde_json::json;

use super::{AnswerFormat, Failure};
use hashes::{Hasher, TokenWeights};

const EXAMPLES: &str = "\
Examples:
  samestory compat group articles.ndjson --threshold 3
  samestory compat simhash articles.ndjson
  samestory compat minhash articles.ndjson --kind txtfp --lanes 256 --family murmur3
  samestory compat tlsh articles.ndjson
  samestory compat duplicates articles.ndjson --threshold 0.5
  samestory compat measure articles.ndjson";

/// Compute what other near-duplicate systems compute, exact to the byte
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Group articles by SimHash: newest first, each group around one centre
    #[command(after_help = "\
An article needs an id and either simHash (16 hex digits) or a body. publishedAt is a date or milliseconds; an article without
one counts as the oldest. The groups are a JSON array with the original's field names.

Examples:
  samestory compat group articles.ndjson
  samestory compat group articles.ndjson --threshold 10 | jq '.[] | select(.memberIds | length > 1)'")]
    Group {
        #[command(flatten)]
        input: Input,
        /// The largest distance from the centre, in bits
        #[arg(long, value_name = "BITS", default_value_t = MAX_DISTANCE, value_parser = clap::value_parser!(u32).range(0..=64))]
        threshold: u32,
    },
    /// Print the SimHash of each article
    #[command(after_help = "\
ascii is the TypeScript library's: words of ASCII letters, digits and _, hashed with FNV-1a. unicode is the same with the words
of every script. txtfp is that crate's.

Examples:
  samestory compat simhash articles.ndjson
  samestory compat simhash articles.ndjson --kind txtfp --weights uniform --tokenizer grapheme-uax29")]
    Simhash {
        #[command(flatten)]
        input: Input,
        /// System whose SimHash is printed
        #[arg(long, value_enum, default_value = "ascii")]
        kind: SimhashKind,
        /// With --kind txtfp: each occurrence of a token votes, or each token once
        #[arg(long, value_enum, default_value = "tf")]
        weights: TokenWeights,
        #[command(flatten)]
        txtfp: Txtfp,
    },
    /// Print the MinHash signature of each article, in hexadecimal
    #[command(after_help = "\
fnv is the Node engine's: 128 seeded FNV-1a functions over three words, 512 bytes. txtfp is that crate's: 520, 1032 or 2056 bytes.
characters is the recap worker's: 128 lanes of XXH3 over five characters, in txtfp's layout.

Examples:
  samestory compat minhash articles.ndjson --kind fnv
  samestory compat minhash articles.ndjson --kind txtfp --lanes 64 --tokenizer shingle-k=2/word-uax29")]
    Minhash {
        #[command(flatten)]
        input: Input,
        /// System whose MinHash is printed
        #[arg(long, value_enum, default_value = "fnv")]
        kind: MinhashKind,
        /// With --kind txtfp: lanes of a signature
        #[arg(long, default_value = "128", value_parser = ["64", "128", "256"])]
        lanes: String,
        #[command(flatten)]
        txtfp: Txtfp,
    },
    /// Print the TLSH digest of each article
    #[command(after_help = "\
The text is normalised as txtfp does. A text of fewer than 50 bytes has no digest; its line says why.

Example:
  samestory compat tlsh articles.ndjson | jq -r '[.id, .tlsh] | @tsv'")]
    Tlsh {
        #[command(flatten)]
        input: Input,
    },
    /// Check each article against the earlier ones, as the recap worker does
    #[command(after_help = "\
MinHash over five characters with XXH3, in the bands nearest to 0.5 at the threshold. An article that is not a duplicate
is remembered for the rest of the run.

Examples:
  samestory compat duplicates articles.ndjson
  samestory compat duplicates articles.ndjson --threshold 0.7 | jq -c 'select(.is_duplicate)'")]
    Duplicates {
        #[command(flatten)]
        input: Input,
        /// Similarity from which an article is a duplicate, between 0 and 1
        #[arg(long, value_name = "NUMBER", default_value_t = 0.5, value_parser = between_zero_and_one)]
        threshold: f64,
    },
    /// Measure MinHash variance, SimHash recall and prefix screening on articles
    #[command(after_help = "\
The command makes copies of each article in which a fraction of the words is replaced. Labelled pairs beside a file (docs/labelled-data.md) are
measured as well.

Examples:
  samestory compat measure articles.ndjson
  samestory compat measure news.ndjson --limit 2000 --format json | jq .minhash")]
    Measure {
        #[command(flatten)]
        input: Input,
        /// Read at most this many articles of each file
        #[arg(long, value_name = "N")]
        limit: Option<usize>,
        /// Output format
        #[arg(long, value_enum, default_value = "table")]
        format: AnswerFormat,
    },
}

#[derive(clap::Args)]
struct Input {
    /// NDJSON, a JSON array, CSV or TSV with a header, plain or compressed (gz, zst); - for standard input
    #[arg(required = true, value_name = "FILES")]
    files: Vec<PathBuf>,
}

#[derive(clap::Args)]
struct Txtfp {
    /// With --kind txtfp: tokeniser [default: word-uax29 for SimHash, shingle-k=3/word-uax29 for MinHash]
    #[arg(long, value_name = "NAME")]
    tokenizer: Option<String>,
    /// With --kind txtfp: hash family
    #[arg(long, value_enum, default_value = "xxh3")]
    family: FamilyName,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum SimhashKind {
    /// The TypeScript library's
    Ascii,
    /// The same with words of every script
    Unicode,
    /// The crate txtfp's
    Txtfp,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum MinhashKind {
    /// The Node engine's
    Fnv,
    /// The crate txtfp's
    Txtfp,
    /// The recap worker's
    Characters,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum FamilyName {
    /// XXH3, 128 bits
    Xxh3,
    /// MurmurHash3 x64 128
    Murmur3,
}

impl From<FamilyName> for HashFamily {
    fn from(family: FamilyName) -> HashFamily {
        match family {
            FamilyName::Xxh3 => HashFamily::Xxh3,
            FamilyName::Murmur3 => HashFamily::Murmur3,
        }
    }
}

fn between_zero_and_one(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if number > 0.0 && number < 1.0 { Ok(number) } else { Err("use a number between 0 and 1".to_owned()) }
}

pub(super) fn run(args: &Args, config: &Config) -> Result<(), Failure> {
    let mut out = samestory::terminal::stdout();
    match &args.command {
        Command::Group { input, threshold } => {
            let mut articles = Vec::new();
            each(input, config, usize::MAX, &mut |bytes| {
                articles.push(hashed(bytes, config)?);
                Ok(())
            })?;
            let groups = group_articles_by_similarity_within(&articles, *threshold);
            writeln!(out, "{:#}", json!(groups))?;
        }
        Command::Simhash { input, kind, weights, txtfp } => {
            let hasher = Hasher::simhash(*kind, *weights, txtfp.family, txtfp.tokenizer.as_deref())?;
            print_hashes(input, config, &hasher, &mut out)?;
        }
        Command::Minhash { input, kind, lanes, txtfp } => {
            let hasher = Hasher::minhash(*kind, lanes, txtfp.family, txtfp.tokenizer.as_deref())?;
            print_hashes(input, config, &hasher, &mut out)?;
        }
        Command::Tlsh { input } => print_hashes(input, config, &Hasher::tlsh(), &mut out)?,
        Command::Duplicates { input, threshold } => {
            let mut index = DuplicateIndex::for_threshold(*threshold)?;
            each(input, config, usize::MAX, &mut |bytes| {
                let (article, plain) = decoded(bytes, config)?;
                let check = check_duplicate(article.id.as_str(), &plain, &mut index, *threshold, true);
                writeln!(out, "{}", json!(check)).map_err(Refusal::Output)
            })?;
        }
        Command::Measure { input, limit, format } => {
            let (mut texts, mut same) = (Vec::new(), Vec::new());
            for file in &input.files {
                let one = Input { files: vec![file.clone()] };
                let mut ids = std::collections::HashMap::new();
                each(&one, config, limit.unwrap_or(usize::MAX), &mut |bytes| {
                    let (article, plain) = decoded(bytes, config)?;
                    ids.insert(article.id.to_string(), texts.len());
                    texts.push(plain);
                    Ok(())
                })?;
                // A file without labels, or from a pipe, has planted copies alone.
                let Ok(set) = Set::read(file) else { continue };
                let index = |at: usize| ids.get(set.articles[at].article.id.as_str()).copied();
                let pairs = set.pairs.iter().filter(|pair| pair.label == Label::Same);
                same.extend(pairs.filter_map(|pair| Some((index(pair.old)?, index(pair.new)?))));
            }
            let measured = compat::measure(&texts, &same);
            match format {
                AnswerFormat::Json => writeln!(out, "{:#}", json!(measured))?,
                AnswerFormat::Table => write!(out, "{measured}")?,
            }
        }
    }
    Ok(())
}

/// Why one record has no result.
enum Refusal {
    /// The record is not an article; it is reported and skipped.
    Record(String),
    /// Nothing more can be written.
    Output(std::io::Error),
}

/// Visits the records of all files, at most `limit` that succeed. Records that are no articles are counted on standard error.
///
/// # Errors
/// A file cannot be read, the output cannot be written, or none of the records is an article.
fn each(
    input: &Input,
    config: &Config,
    limit: usize,
    visit: &mut dyn FnMut(&[u8]) -> Result<(), Refusal>,
) -> Result<(), Failure> {
    let sources = input.files.iter().map(|path| Source::new(path)).collect();
    let reading = InputSpec::new(sources, config.fields.clone(), config.owner.clone(), config.max_record());
    let (mut good, mut refused, mut first) = (0, 0_u64, None);
    let mut outcome = Ok(());
    files::each_record(&reading, &mut |content| {
        let result = match content {
            Ok(bytes) => visit(&bytes),
            Err(refusal) => Err(Refusal::Record(refusal.message)),
        };
        match result {
            Ok(()) => good += 1,
            Err(Refusal::Record(why)) => {
                refused += 1;
                first.get_or_insert(why);
            }
            Err(Refusal::Output(error)) => outcome = Err(error),
        }
        outcome.is_ok() && good < limit
    })?;
    outcome?;
    if good == 0 && refused > 0 {
        return Err(Failure::NothingJudged { records: refused });
    }
    if let Some(why) = first {
        eprintln!("{refused} records were skipped, the first because: {why}");
    }
    Ok(())
}

/// An article and its text without markup.
fn decoded(bytes: &[u8], config: &Config) -> Result<(RawArticle, String), Refusal> {
    let record = json::JsonRecord::parse(bytes).map_err(|refusal| Refusal::Record(refusal.message))?;
    match json::decode(&record, &config.fields, || None) {
        Ok(Event::Article(article)) => {
            let content_type = article.content_type.as_deref().and_then(ContentType::parse);
            let plain = text::plain(&article.body, content_type, &config.text);
            let plain = plain.map_err(|error| Refusal::Record(error.to_string()))?.into_owned();
            Ok((*article, plain))
        }
        Ok(_) => Err(Refusal::Record("the record has no body".to_owned())),
        Err(refusal) => Err(Refusal::Record(refusal.message)),
    }
}

/// An article with its SimHash, or one whose SimHash is computed from its body.
fn hashed(bytes: &[u8], config: &Config) -> Result<HashedArticle, Refusal> {
    if let Some(article) = with_hash(bytes) {
        return article.map_err(|error| Refusal::Record(error.to_string()));
    }
    let (article, plain) = decoded(bytes, config)?;
    let published_at = match article.published_at {
        Some(time) => time.millis(),
        None => published(bytes).unwrap_or(i64::MIN),
    };
    Ok(HashedArticle {
        id: article.id.to_string(),
        headline: article.title.clone().unwrap_or_default(),
        simhash: compute_simhash(&plain),
        published_at,
        source_domain: article.site().unwrap_or_default().to_owned(),
    })
}

/// An article in the original's own form, if it has a hash.
fn with_hash(bytes: &[u8]) -> Option<serde_json::Result<HashedArticle>> {
    let mut value: serde_json::Value = serde_json::from_slice(bytes).ok()?;
    let article = value.as_object_mut()?;
    if !["simHash", "simhash"].iter().any(|name| article.contains_key(*name)) {
        return None;
    }
    article.entry("publishedAt").or_insert(i64::MIN.into());
    Some(serde_json::from_value(value))
}

/// The original's own field, which the mapping need not know.
fn published(bytes: &[u8]) -> Option<i64> {
    let value: serde_json::Value = serde_json::from_slice(bytes).ok()?;
    match value.get("publishedAt")? {
        serde_json::Value::String(date) => parse_published(date).ok(),
        other => other.as_i64(),
    }
}

fn print_hashes(
    input: &Input,
    config: &Config,
    hasher: &Hasher,
    out: &mut impl Write,
) -> Result<(), Failure> {
    each(input, config, usize::MAX, &mut |bytes| {
        let (article, plain) = decoded(bytes, config)?;
        let line = hasher.line(article.id.as_str(), &plain);
        writeln!(out, "{line}").map_err(Refusal::Output)
    })
}
