//! The program `samestory-semantic`: two texts compared by meaning, and the relation `same-story` for judged articles.

use std::error::Error as _;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};
use samestory_engine::TextOptions;
use samestory_engine::text::markup::ContentType;
use samestory_engine::text::plain;
use samestory_semantic::{
    ChunkingStrategy, EmbeddingProvider, LocalProvider, ModelOptions, Pooling, RelateOptions, relate,
    semantic_similarity,
};

/// Compares articles by meaning, with a model of yours: paraphrases and translations. It never gives a verdict.
#[derive(Parser)]
#[command(version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compare two texts
    Compare(Compare),
    /// Add the relation same-story to what `samestory file` wrote
    Related(Related),
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  samestory-semantic compare morning.txt abend.html --model models/multilingual-e5-small --prefix 'query: '
  samestory-semantic compare a.txt b.txt --model models/minilm --format json | jq .similarity")]
struct Compare {
    /// The older text: a file, or - for standard input
    a: PathBuf,
    /// The newer text: a file, or - for standard input if the older is a file
    b: PathBuf,
    #[command(flatten)]
    model: Model,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Exit with 3 if the two do not tell the same story
    #[arg(long)]
    exit_code: bool,
}

#[derive(Args)]
#[command(after_help = "\
Example:
  samestory file articles.ndjson --output tagged.ndjson
  samestory-semantic related tagged.ndjson --model models/minilm --output related.ndjson
  jq -c 'select(any(.related[]; .relation == \"same-story\"))' related.ndjson")]
struct Related {
    /// The output of `samestory file` as NDJSON, or - for standard input
    tagged: PathBuf,
    #[command(flatten)]
    model: Model,
    /// A new file for the result [default: standard output]
    #[arg(long, short)]
    output: Option<PathBuf>,
    /// The articles' field with the text [default: body, text, content and other usual names]
    #[arg(long, value_name = "FIELD")]
    body: Option<String>,
    /// How many earlier articles are named at most, the closest first
    #[arg(long, value_name = "NUMBER", default_value_t = 5)]
    most: usize,
    /// How many unique articles are remembered and compared
    #[arg(long, value_name = "NUMBER", default_value_t = 50_000, value_parser = at_least_one)]
    window: usize,
}

#[derive(Args)]
struct Model {
    /// Directory of the model: model.onnx (or onnx/model.onnx) and tokenizer.json
    #[arg(long, value_name = "DIR")]
    model: PathBuf,
    /// Cosine from which two texts tell the same story; it depends on the model
    #[arg(long, value_name = "NUMBER", default_value_t = 0.8)]
    min_similarity: f32,
    /// How tokens become one vector [default: as 1_Pooling/config.json says, else mean]
    #[arg(long, value_enum)]
    pooling: Option<PoolingName>,
    /// Put before each text, for example 'query: ' for the E5 models
    #[arg(long, value_name = "TEXT", default_value = "")]
    prefix: String,
    /// The longest text in tokens; longer ones are cut into chunks [default: as tokenizer.json says, else 512]
    #[arg(long, value_name = "NUMBER")]
    max_tokens: Option<usize>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Table,
    Json,
}

#[derive(Clone, Copy, ValueEnum)]
enum PoolingName {
    Cls,
    Mean,
    MeanNoNorm,
    Max,
}

fn at_least_one(value: &str) -> Result<usize, String> {
    value.parse().ok().filter(|number| *number > 0).ok_or_else(|| "use a number from 1".to_owned())
}

impl Model {
    fn load(&self) -> Result<LocalProvider, samestory_semantic::Error> {
        let pooling = self.pooling.map(|name| match name {
            PoolingName::Cls => Pooling::Cls,
            PoolingName::Mean => Pooling::Mean,
            PoolingName::MeanNoNorm => Pooling::MeanNoNorm,
            PoolingName::Max => Pooling::Max,
        });
        let options = ModelOptions {
            model_id: None,
            pooling,
            prefix: self.prefix.clone(),
            max_tokens: self.max_tokens,
        };
        LocalProvider::open(&self.model, options)
    }

    /// Chunks as long as the model reads, so that most articles are one.
    fn chunking(provider: &LocalProvider) -> ChunkingStrategy {
        ChunkingStrategy { max_tokens: provider.max_tokens(), ..ChunkingStrategy::default() }
    }
}

/// Why the program ends without a result.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("only one of the texts can come from standard input")]
    OneInput,
    #[error("cannot read {name}")]
    Unreadable {
        name: String,
        #[source]
        error: io::Error,
    },
    #[error("{name}: {error}")]
    Text {
        name: String,
        #[source]
        error: samestory_engine::text::Oversized,
    },
    #[error("cannot create {}", path.display())]
    Output {
        path: PathBuf,
        #[source]
        error: io::Error,
    },
    #[error(transparent)]
    Semantic(#[from] samestory_semantic::Error),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("the texts do not tell the same story")]
    NotTheSame,
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Compare(args) => compare(&args),
        Command::Related(args) => related(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::NotTheSame) => ExitCode::from(3),
        Err(Failure::Io(error) | Failure::Semantic(samestory_semantic::Error::Io(error)))
            if error.kind() == io::ErrorKind::BrokenPipe =>
        {
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprint!("samestory-semantic: {failure}");
            let mut cause = failure.source();
            while let Some(error) = cause {
                eprint!(": {error}");
                cause = error.source();
            }
            eprintln!();
            ExitCode::FAILURE
        }
    }
}

fn compare(args: &Compare) -> Result<(), Failure> {
    if [&args.a, &args.b].iter().all(|name| name.as_os_str() == "-") {
        return Err(Failure::OneInput);
    }
    let (a, b) = (read(&args.a)?, read(&args.b)?);
    let provider = args.model.load()?;
    let strategy = Model::chunking(&provider);
    let (a, b) = (provider.embed_document(&a, &strategy)?, provider.embed_document(&b, &strategy)?);
    let similarity = semantic_similarity(&a, &b)?;
    let same_story = similarity >= args.model.min_similarity;
    let mut out = io::stdout().lock();
    match args.format {
        Format::Json => {
            let answer = serde_json::json!({
                "same_story": same_story,
                "similarity": (f64::from(similarity) * 10_000.0).round() / 10_000.0,
                "model": provider.model_id(),
                "dimension": provider.dimension(),
            });
            writeln!(out, "{answer:#}")?;
        }
        Format::Table => {
            let (older, newer) = (args.a.display(), args.b.display());
            let what = if same_story { "tell the same story" } else { "do not tell the same story" };
            writeln!(out, "{older} and {newer} {what}.\n")?;
            writeln!(
                out,
                "  similarity  {similarity:.3} (the same story from {})",
                args.model.min_similarity
            )?;
            writeln!(out, "  model       {}, {} dimensions", provider.model_id(), provider.dimension())?;
            writeln!(
                out,
                "\nThis is no verdict: samestory compare says whether one is a copy of the other."
            )?;
        }
    }
    if args.exit_code && !same_story {
        return Err(Failure::NotTheSame);
    }
    Ok(())
}

fn related(args: &Related) -> Result<(), Failure> {
    let provider = args.model.load()?;
    let options = RelateOptions {
        min_similarity: args.model.min_similarity,
        most: args.most,
        window: args.window,
        body: args.body.clone(),
        chunking: Model::chunking(&provider),
    };
    let input: Box<dyn Read> =
        if args.tagged.as_os_str() == "-" { Box::new(io::stdin()) } else { Box::new(open(&args.tagged)?) };
    let output: Box<dyn Write> = match &args.output {
        None => Box::new(io::stdout().lock()),
        Some(path) => {
            let created = OpenOptions::new().write(true).create_new(true).open(path);
            Box::new(created.map_err(|error| Failure::Output { path: path.clone(), error })?)
        }
    };
    let counts = relate(&provider, BufReader::new(input), BufWriter::new(output), &options)?;
    eprintln!(
        "{} of {} unique articles tell the story of an earlier one; {} without text",
        counts.related,
        counts.embedded + counts.skipped,
        counts.skipped
    );
    Ok(())
}

fn open(file: &Path) -> Result<File, Failure> {
    File::open(file).map_err(|error| Failure::Unreadable { name: file.display().to_string(), error })
}

/// Reads a text of at most the engine's limit and strips its markup.
fn read(file: &Path) -> Result<String, Failure> {
    let standard = file.as_os_str() == "-";
    let name = if standard { "standard input".to_owned() } else { file.display().to_string() };
    let source: Box<dyn Read> = if standard { Box::new(io::stdin()) } else { Box::new(open(file)?) };
    let mut body = String::new();
    // One byte more than the limit shows that the text is too long.
    let limit = TextOptions::DEFAULT.max_raw_bytes as u64 + 1;
    let unreadable = |error| Failure::Unreadable { name: name.clone(), error };
    source.take(limit).read_to_string(&mut body).map_err(unreadable)?;
    let content_type = match file.extension().and_then(|extension| extension.to_str()) {
        Some("html" | "htm" | "xhtml") => Some(ContentType::Html),
        Some("md" | "markdown") => Some(ContentType::Markdown),
        Some("txt") => Some(ContentType::Plain),
        _ => None,
    };
    let text = plain(&body, content_type, &TextOptions::DEFAULT);
    Ok(text.map_err(|error| Failure::Text { name: name.clone(), error })?.into_owned())
}
