//! What an operator sets by hand in the state of file runs. On the bus the same goes through the log.

use samestory_engine::engine::{Batch, Engine, Incoming, Item};
use samestory_engine::index::{Store, StoreError};
use samestory_engine::model::{BoundedStr, EventTime, Lang, Position};

/// Sets the stream time of a language. False where the state does not know the language.
///
/// # Errors
/// The state cannot be read or written.
pub fn set_stream_time(
    engine: &Engine,
    state: &mut impl Store,
    language: Lang,
    at: EventTime,
) -> Result<bool, StoreError> {
    let position = Position::File { file: BoundedStr::new("set-stream-time"), line: 0 };
    let incoming = Incoming::SetStreamTime { language, at };
    let items = vec![Item { position, time: None, log_time: None, incoming }];
    let (plan, write_set) = engine.plan(&*state, Batch { items, ..Batch::default() })?;
    // Nothing goes out, so there is no output to wait for.
    state.apply_own(write_set)?;
    state.flush()?;
    Ok(plan.stats.stream_times_set > 0)
}
