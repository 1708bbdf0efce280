//! What must hold on a real broker. It is always there: `dev/kafka` starts one, and a test that cannot have it fails.

// Questions to a stage that works: of one process, and of several as one.
mod asking;
// A crawler's own schema in, ours out, with a real registry and one that is in trouble.
mod avro;
// A broker of the tests' own, gone with them however they end.
pub(crate) mod broker;
// The bus as a bystander sees it: topics, records in, records out, offsets.
pub(crate) mod bus;
// The broker itself through crash and pause, and its secure listener.
mod broker_tests;
// Wrong clocks, and the command that puts stream time right.
mod clocks;
// The fault test.
#[cfg(feature = "faults")]
mod faults;
// A network that fails as told.
pub(crate) mod proxy;
// What the proxy does to a real client.
mod proxy_tests;
// A schema registry of the tests' own, gone with them however they end.
pub(crate) mod registry;
// The requests in a stream of bytes.
mod requests;
// Transactions as readers of both kinds see them.
mod transactions;
// Bad days: crashes, missing topics, a broker that is away, offsets set by hand, two processes with one name.
mod days;
// Records that cannot be read, parsed or delivered; threads that die; an assignment that is lost.
#[cfg(feature = "faults")]
mod delivery;
// Another way to make fingerprints.
mod generations;
// Who has which partition.
mod groups;
// Bad input, deletes, and forms of output.
mod inputs;
// Avro both ways with Confluent's Python client.
mod interop;
// Asking the stage how it is.
mod ops;
// How a partition changes hands when its topics, its log or its state are not what they were.
mod recovery;
// Route without its offsets, raw partitions that come and go, articles that change their language.
mod routes;
// TLS, a password, and the least rights.
mod security;
// A full disk.
mod space;
// The program on the bus: its own topics, its own state, ended with the test.
pub(crate) mod stage;
// Topics: their settings, and what depends on them.
mod topics;
// The same verdicts as from files.
mod verdicts;
