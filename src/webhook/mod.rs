//! Delivers verdicts to an HTTP server, such as a CMS or a chat. [`event`] turns published records into events, [`body`] writes
//! them, [`http`] sends one request, and [`deliver`] decides what an answer means and when to try again.
//!
//! Delivery is at least once: [`crate::kafka::tools::webhook`] commits its own offsets after the server has accepted the events,
//! so the stage never waits for a server. Every event has an id that stays the same when it is sent again.

pub mod body;
pub mod deliver;
pub mod event;
pub mod http;
