//! `samestory webhook`: delivers published verdicts to an HTTP server, and tests the settings for it.

use std::io::Write;
use std::sync::Arc;

use samestory::config::Config;
use samestory::kafka::tools::webhook;
use samestory::metrics::{self, Scrape};
use samestory::serve;
use samestory::status::StatusBoard;
use samestory::stop::Stop;
use samestory::terminal::logs;

use super::Failure;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  samestory webhook test      send one sample event
  samestory webhook run       deliver verdicts until SIGTERM or Ctrl-C")]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Deliver verdicts to webhook.url until stopped
    #[command(after_help = "\
It reads the output topics as the consumer group <stage.app>.webhook, with offsets of its own, and never holds up the stage.
Delivery is at least once: every event has an id that a receiver can use to ignore repetitions, and a repeated request has the
same Idempotency-Key. With webhook.secret, Samestory-Signature holds t=SECONDS,v1=HMAC-SHA256(secret, SECONDS.BODY) in hex.

No answer, 408, 425, 429 and 5xx are tried again; another 4xx or a redirect puts the event into webhook.dead_letters.
/healthz and /metrics are served at http.listen; beside a stage on the same machine choose another port.

Examples:
  samestory webhook run --config samestory.toml
  samestory --set http.listen=127.0.0.1:9466 webhook run")]
    Run,
    /// Send one sample event to webhook.url and print the response
    #[command(after_help = "\
The exit code is 0 if the server answers with 2xx.

Examples:
  samestory webhook test
  SAMESTORY__WEBHOOK__URL=http://127.0.0.1:8000/hook samestory webhook test")]
    Test,
}

pub(super) fn run(args: &Args, config: &Config) -> Result<(), Failure> {
    match args.command {
        Command::Test => {
            let answer = webhook::test(config)?;
            Ok(writeln!(samestory::terminal::stdout(), "{answer}")?)
        }
        Command::Run => {
            logs::start();
            if config.webhook.is_none() {
                return Err(webhook::WebhookError::NoUrl.into());
            }
            let stop = Stop::default();
            stop.on_signals()?;
            let board = Arc::new(StatusBoard::new(stop.clone()));
            if let Some(listen) = config.http.listen {
                let scrape = Scrape::new(metrics::start()?, Arc::clone(&board), None);
                let address = serve::serve_ops(listen, Arc::clone(&board), scrape)?;
                tracing::info!(%address, "serving /healthz, /readyz and /metrics");
            }
            board.started();
            Ok(webhook::run(config, &stop)?)
        }
    }
}
