//! This machine's clock, the only one in the stage. It tells the age of changelog records and bounds the times that
//! topics accept; verdicts never depend on it.

use crate::kafka::faults::{Constant, FAULTS, Faults};
use samestory_engine::model::EventTime;

/// Wall-clock time, for the age of changelog records. Verdicts never depend on it.
#[allow(clippy::disallowed_methods, reason = "the age of a store does not influence verdicts")]
pub(crate) fn now() -> EventTime {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let ahead = i64::try_from(FAULTS.value(Constant::ClockAhead, 0)).unwrap_or(i64::MAX);
    EventTime::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX).saturating_add(ahead))
}
