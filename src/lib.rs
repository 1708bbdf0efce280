//! The product: the engine of `samestory-engine` on files and as an exactly-once stage on a Kafka bus.
//!
//! ```text
//! Record ─decode→ Article ─prepare→ Prepared(Fingerprint) ─lookup→ Candidates ─judge→ Verdict ─plan→ Plan
//!        ─send, commit→ Committed ─apply→ Index
//! ```
//!
//! Everything to the left of `Plan` is a pure function of its inputs. Everything to the right has effects. The engine crate
//! holds `prepare` to `plan` and the index; this crate holds what surrounds them:
//!
//! - [`config`]: settings as written → config as usable, and the partition that each language goes to ([`config::home()`])
//! - [`formats`]: bytes ↔ events: JSON, Avro, field mapping, the schema registry
//! - [`files`]: the engine on files and pipes; [`report`]: the HTML page
#![cfg_attr(
    feature = "kafka",
    doc = "- [`kafka`]: the stage: clients, the turn, route, matching, recovery, tools"
)]
#![cfg_attr(
    feature = "http",
    doc = "- [`serve`]: health, metrics and the query API over HTTP; [`metrics`]: the series"
)]
#![cfg_attr(
    feature = "kafka",
    doc = "- [`webhook`]: verdicts delivered over HTTP; [`accuracy`]: verdicts measured on judged articles"
)]
//! - [`status`]: how the stage is doing; [`stop`]: the request to stop it; [`terminal`]: progress bars, colours, logs
//!
//! `src/commands` is the command line.

pub use samestory_compat as compat;
pub use samestory_eval as eval;

#[cfg(feature = "kafka")]
pub mod accuracy;
pub mod config;
pub mod files;
pub mod formats;
#[cfg(feature = "kafka")]
pub mod kafka;
#[cfg(feature = "http")]
pub mod metrics;
pub mod report;
#[cfg(feature = "http")]
pub mod serve;
pub mod status;
pub mod stop;
#[cfg(test)]
mod temporary;
pub mod terminal;
#[cfg(feature = "kafka")]
pub mod webhook;
