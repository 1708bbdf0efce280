//! Commands that need a library which this build lacks. They exist, so that their name is not taken for a typing error, and
//! say which library is missing.

use std::ffi::OsString;

/// Arguments of a command that cannot run: anything.
#[derive(clap::Args)]
#[command(
    disable_help_flag = true,
    after_help = "Example:\n  make install    builds and installs samestory with Kafka and RocksDB"
)]
pub(super) struct Args {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _arguments: Vec<OsString>,
}
