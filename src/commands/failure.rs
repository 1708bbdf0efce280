//! [`Failure`]: why a command failed, and the exit code of each cause. `main` prints it and exits with that code, which
//! `samestory --help` documents.

use std::io;
use std::path::PathBuf;

#[cfg(feature = "kafka")]
use samestory::config::Config;
use samestory::config::ConfigError;
use samestory::files::FileRunError;
#[cfg(feature = "http")]
use samestory::serve::HttpError;
use samestory_engine::index::StoreError;
use samestory_engine::text::Oversized;
use samestory_eval::LabelledError;

use super::{input, plan, state};
#[cfg(feature = "kafka")]
use super::{ready, schemas};

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Input(#[from] input::InputError),
    #[error("{name}")]
    TooLarge {
        name: String,
        #[source]
        error: Oversized,
    },
    #[error("cannot write to standard output")]
    Output(#[from] io::Error),
    #[error(transparent)]
    Run(#[from] FileRunError),
    #[error(transparent)]
    Labelled(#[from] LabelledError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    State(#[from] state::StateError),
    #[error(transparent)]
    Plan(#[from] plan::PlanError),
    #[cfg(not(all(feature = "kafka", feature = "http")))]
    #[error(
        "{command}: this samestory was built without {lacks}; install one that has it: `make install`, or `cargo install --path .` without --no-default-features"
    )]
    NotBuilt { command: &'static str, lacks: &'static str },
    #[error("the texts are not the same")]
    NotTheSame,
    #[error(
        "{name} ends inside the record that begins on line {line}: records may be missing; the rest is judged and written"
    )]
    Truncated { name: String, line: u64 },
    #[error("no record could be judged: {records} of {records} were refused")]
    NothingJudged { records: u64 },
    #[error(
        "{refused} records were refused, {percent:.1} % of all and more than --max-errors {allowed}; the rest is judged and written"
    )]
    TooManyRefused { refused: u64, percent: f64, allowed: f64 },
    #[error(transparent)]
    OutputFormat(#[from] samestory::files::OutputFormatError),
    #[error("standard input is only one of the two texts: name a file for the other")]
    OneInput,
    #[cfg(feature = "kafka")]
    #[error("standard input can be read only once: name files, or remove --repeat")]
    OnlyOnce,
    #[error(transparent)]
    Tokenizer(#[from] samestory::compat::txtfp::UnknownTokenizer),
    #[error(transparent)]
    CompatBanding(#[from] samestory::compat::recap::BandingError),
    #[error("{0} is not a language of `samestory languages`")]
    UnknownLanguage(String),
    #[error("cannot write {}", path.display())]
    Save {
        path: PathBuf,
        #[source]
        error: io::Error,
    },
    #[error("cannot write the page {}", path.display())]
    Page {
        path: PathBuf,
        #[source]
        error: io::Error,
    },
    #[cfg(feature = "kafka")]
    #[error(transparent)]
    Judged(#[from] samestory::accuracy::JudgedError),
    #[cfg(feature = "kafka")]
    #[error(transparent)]
    Stage(#[from] samestory::kafka::RunError),
    #[cfg(feature = "kafka")]
    #[error(transparent)]
    Topics(#[from] samestory::kafka::TopicError),
    #[cfg(feature = "kafka")]
    #[error(transparent)]
    Control(#[from] samestory::kafka::admin::control::ControlError),
    #[cfg(feature = "kafka")]
    #[error(transparent)]
    Generation(#[from] samestory::kafka::recovery::generations::end::EndError),
    #[cfg(feature = "kafka")]
    #[error(transparent)]
    Probe(#[from] samestory::kafka::tools::probe::ProbeError),
    #[cfg(feature = "kafka")]
    #[error(transparent)]
    Reconcile(#[from] samestory::kafka::tools::reconcile::ReconcileError),
    #[cfg(feature = "kafka")]
    #[error(transparent)]
    Scan(#[from] samestory::kafka::tools::scan::ScanError),
    #[cfg(feature = "kafka")]
    #[error(transparent)]
    Clusters(#[from] samestory::kafka::tools::clusters::ClustersError),
    #[cfg(feature = "kafka")]
    #[error(transparent)]
    Reset(#[from] samestory::kafka::admin::reset::ResetError),
    #[cfg(feature = "kafka")]
    #[error(
        "no settings with the hash {0} are known: not the current ones, and {1} has none; a stage without Write on that topic notes none"
    )]
    NoSuchConfig(String, String),
    #[cfg(feature = "kafka")]
    #[error(transparent)]
    Erase(#[from] samestory::kafka::tools::erase::EraseError),
    #[cfg(feature = "kafka")]
    #[error("say which dead letters: --reason, --at, --since or --key, or --all")]
    ReplayWhat,
    #[cfg(feature = "kafka")]
    #[error("cannot read the ids in {}", path.display())]
    Ids {
        path: PathBuf,
        #[source]
        error: io::Error,
    },
    #[cfg(feature = "kafka")]
    #[error("{id} is not an article id: {error}")]
    NotAnId { id: String, error: samestory_engine::model::IdError },
    #[cfg(feature = "kafka")]
    #[error("{remain} of {ids} ids are not erased yet; the lines above say where")]
    NotErased { remain: usize, ids: usize },
    #[cfg(feature = "kafka")]
    #[error("not exactly once: {gaps} records have no output, {doubles} have more than one")]
    NotExact { gaps: u64, doubles: u64 },
    #[cfg(feature = "kafka")]
    #[error(transparent)]
    Webhook(#[from] samestory::kafka::tools::webhook::WebhookError),
    #[cfg(feature = "kafka")]
    #[error(transparent)]
    Property(#[from] samestory::kafka::PropertyError),
    #[cfg(feature = "http")]
    #[error("http.query = off: there is nothing to serve; write an address and a port")]
    NothingToServe,
    #[cfg(feature = "http")]
    #[error("{0}; the query API has stopped")]
    Died(String),
    #[cfg(feature = "http")]
    #[error(transparent)]
    Http(#[from] samestory::serve::HttpError),
    #[cfg(feature = "kafka")]
    #[error("cannot start the metrics for /metrics: {0}")]
    Metrics(#[from] samestory::metrics::StartError),
    #[cfg(feature = "kafka")]
    #[error(transparent)]
    Schemas(#[from] schemas::SchemasError),
    #[cfg(feature = "kafka")]
    #[error(transparent)]
    Ready(#[from] ready::ReadyError),
    #[cfg(feature = "kafka")]
    #[error("Kafka: {0}")]
    Client(#[from] samestory::kafka::ClientError),
    #[cfg(not(feature = "rocksdb"))]
    #[error("state directories need RocksDB, which this build lacks; build with default features")]
    NoState,
}

impl Failure {
    /// The exit code that `samestory --help` documents.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Failure::Config(_)
            | Failure::Plan(_)
            | Failure::OneInput
            | Failure::UnknownLanguage(_)
            | Failure::Tokenizer(_)
            | Failure::CompatBanding(_)
            | Failure::State(state::StateError::NotATime(_) | state::StateError::Future(_))
            | Failure::OutputFormat(_)
            | Failure::Run(FileRunError::Clash(_) | FileRunError::Whole) => 2,
            #[cfg(not(feature = "rocksdb"))]
            Failure::NoState => 2,
            #[cfg(not(all(feature = "kafka", feature = "http")))]
            Failure::NotBuilt { .. } => 2,
            Failure::NotTheSame => 3,
            #[cfg(feature = "http")]
            Failure::NothingToServe | Failure::Http(HttpError::Listen { .. }) => 2,
            #[cfg(feature = "http")]
            Failure::Http(HttpError::Thread(_)) | Failure::Died(_) => 1,
            #[cfg(feature = "kafka")]
            Failure::OnlyOnce
            | Failure::ReplayWhat
            | Failure::NotAnId { .. }
            | Failure::Property(_)
            | Failure::Generation(samestory::kafka::recovery::generations::end::EndError::NoneBefore)
            | Failure::Judged(_)
            | Failure::Stage(samestory::kafka::RunError::Values(_))
            | Failure::Ready(ready::ReadyError::Off)
            | Failure::Webhook(samestory::kafka::tools::webhook::WebhookError::NoUrl)
            | Failure::Webhook(samestory::kafka::tools::webhook::WebhookError::Settings(_))
            | Failure::Schemas(schemas::SchemasError::NoRegistry) => 2,
            #[cfg(feature = "kafka")]
            Failure::Stage(_)
            | Failure::Topics(_)
            | Failure::Control(_)
            | Failure::Generation(_)
            | Failure::Probe(_)
            | Failure::Reconcile(_)
            | Failure::Scan(_)
            | Failure::Ids { .. }
            | Failure::Erase(_)
            | Failure::Clusters(_)
            | Failure::Reset(_)
            | Failure::NoSuchConfig(..)
            | Failure::NotErased { .. }
            | Failure::NotExact { .. }
            | Failure::Webhook(_)
            | Failure::Ready(_)
            | Failure::Schemas(_)
            | Failure::Client(_)
            | Failure::Metrics(_) => 1,
            Failure::Input(_)
            | Failure::TooLarge { .. }
            | Failure::Output(_)
            | Failure::Run(_)
            | Failure::Labelled(_)
            | Failure::Store(_)
            | Failure::State(_)
            | Failure::Save { .. }
            | Failure::Truncated { .. }
            | Failure::NothingJudged { .. }
            | Failure::TooManyRefused { .. }
            | Failure::Page { .. } => 1,
        }
    }

    /// A client's error, with the address that it was given: the client's own words name none.
    #[cfg(feature = "kafka")]
    pub(super) fn with_address(self, config: &Config) -> Failure {
        match self {
            Failure::Client(error)
            | Failure::Probe(samestory::kafka::tools::probe::ProbeError::Broker(error)) => {
                Failure::Scan(samestory::kafka::tools::scan::broker_error(&config.bus, error))
            }
            other => other,
        }
    }

    /// Whether the exit code is the whole answer, as with `compare --exit-code`.
    pub(crate) fn is_an_answer(&self) -> bool {
        matches!(self, Failure::NotTheSame)
    }

    /// True if the reader closed the pipe (`| head`), which is not an error.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        match self {
            Failure::Output(error) => error.kind() == io::ErrorKind::BrokenPipe,
            Failure::Run(FileRunError::Sink(error)) => error.is_broken_pipe(),
            _ => false,
        }
    }
}
