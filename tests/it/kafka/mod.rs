//! Tests on a real Kafka broker, and the fixtures for them. `dev/kafka` starts the broker; a test that gets none fails
//! and is never skipped.

// The query API of a running stage: one process, and several that answer as one.
mod asking;
// Avro: a crawler's own schema in, ours out, with a real registry and with a failing one.
mod avro;
// A broker for tests that never outlives the test process.
pub(crate) mod broker;
// Plain Kafka clients for tests: topics, records in, records out, offsets.
pub(crate) mod bus;
// The test broker itself: crash, pause, and the secure listener.
mod broker_tests;
// Wrong clocks, and the command that sets stream time.
mod clocks;
// The fault test.
#[cfg(feature = "faults")]
mod faults;
// A TCP proxy that fails on demand.
pub(crate) mod proxy;
// Effects of the proxy on a real client.
mod proxy_tests;
// A schema registry for tests that never outlives the test process.
pub(crate) mod registry;
// Finds Kafka requests in a stream of bytes.
mod requests;
// Transactions as consumers of both isolation levels see them.
mod transactions;
// Bad days: crashes, missing topics, an unreachable broker, offsets set by hand, two processes with one name.
mod days;
// Records that cannot be read, parsed or delivered; threads that die; lost assignments.
#[cfg(feature = "faults")]
mod delivery;
// A new generation of the state.
mod generations;
// Group membership and partition assignment.
mod groups;
// Bad input, deletes, and output settings.
mod inputs;
// Avro in both directions with Confluent's Python client.
mod interop;
// Health, readiness and metrics.
mod ops;
// The operator's commands: reconcile, dead letters, erasure, pause and drain.
mod operator;
// Takeover of a partition when its topics, its changelog or its state have changed.
mod recovery;
// Route without its offsets, new and recreated raw partitions, articles that change their language.
mod routes;
// TLS, SASL, and the ACLs that docs/security.md lists.
mod security;
// A full disk.
mod space;
// Runs the program with topics and state of its own, and ends it with the test.
pub(crate) mod stage;
// Topic settings: created, checked and corrected.
mod topics;
// Verdicts from Kafka equal those from files.
mod verdicts;
