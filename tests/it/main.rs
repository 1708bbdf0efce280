//! The product's integration tests, as one binary; one comment line per module.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

// The import rules, checked on the source files.
mod architecture;
// Avro and the schema registry, without a broker.
#[cfg(feature = "kafka")]
mod avro;
// Barely usable articles: each has a defined outcome.
mod bad_input;
// Which earlier documents become candidates, counted.
mod candidates;
// `examples/consumer.py` against a model, over histories in which articles expire.
#[cfg(feature = "kafka")]
mod example_consumer;
// `samestory file` never overwrites a file that the run needs.
#[cfg(all(unix, feature = "rocksdb"))]
mod clashes;
// The program's commands, output and exit codes.
mod cli;
// Cluster ids, and which member is the canonical.
mod clusters;
// `samestory compat …`: what other systems compute.
mod compat;
// Parquet and Arrow IPC, in and out.
#[cfg(feature = "parquet")]
mod columnar;
// Wrong clocks, sparse archives, dates in every notation.
mod clocks;
// `samestory file --dead-letters` keeps what cannot be judged.
mod dead_letters;
// Any bytes that reach a decoder are read or refused.
mod decoders;
// The demo articles get the verdicts that the demo promises.
mod demo;
// Generated documents are up to date.
mod documents;
// An engine with its state, for the tests of verdicts.
mod engine_fixture;
// The evidence model: its table, its laws, page furniture and odd input.
mod evidence;
// `samestory file`: formats, broken input, options, the HTML report, any number of threads.
mod file;
// Inputs that people have and outputs that they want: encodings, records under a key, tables out, the published schema, honest ends.
mod file_doors;
// A directory with articles, and the program run in it, for the tests of `samestory file`.
mod folder;
// Properties that hold for any bytes; shared with the fuzz targets.
mod fuzz_checks;
// Updates without a text erase nothing.
mod empty_updates;
// Fixed articles have fixed bytes.
mod golden;
// An HTTP server that fails on demand, for the webhook.
#[cfg(feature = "kafka")]
mod hook_server;
// How work grows with its input.
mod growth;
// Random histories of state, and a model to check them against.
mod history;
// Hostile articles: defined outcomes, linear work.
mod hostile;
// Markup bombs: defined outcomes, linear work.
mod hostile_markup;
// Everything that needs a real broker, and the broker, topics and network for it.
#[cfg(feature = "kafka")]
mod kafka;
// Language detection on real articles, our own paragraphs, and hostile texts.
mod language;
// Properties of every text: random ones, and the demo's.
mod laws;
// State in RocksDB: equal to state in memory, through crashes, damage and changed settings.
#[cfg(feature = "rocksdb")]
mod laws_rocks;
// Shingles cut otherwise than the language table says, and the kind of content, through every way in.
mod segmentation;
// README's first screen: what it shows is what its commands print. And its table of speeds.
mod readme;
// State: applying, overlaying, restoring and encoding it, over random histories.
mod laws_store;
// The engine against a second, simple implementation of its rules, over random histories.
mod oracle;
// docs/origins.md names tests and files that exist.
mod origins;
// Parts and wholes of real articles match.
mod parts;
// `samestory plan`: the resources that a stage needs.
mod plan;
// Lower bounds for the measured quality of verdicts.
mod quality;
// `samestory ready`: checks a stage from the command line.
#[cfg(feature = "kafka")]
mod ready;
// `examples/recap.py` on the files of a run.
mod recap;
// A file run that is killed at any moment resumes as if nothing had happened.
#[cfg(feature = "rocksdb")]
mod resume;
// `samestory serve`: queries to a state.
#[cfg(feature = "http")]
mod serve;
// `samestory config …`, and that secrets stay secret.
mod settings;
// `samestory state …` on states that are sound, damaged, in use, unfinished, foreign or missing.
#[cfg(feature = "rocksdb")]
mod state_commands;
// Where the shared articles are.
mod support;
// Random texts in every script, and the demo's articles.
mod texts;
// A file run in trouble: no space, no write permission, Ctrl-C.
#[cfg(feature = "rocksdb")]
mod trouble;
// Every rule of a verdict in isolation.
mod verdicts;
// From the program to a person: Prometheus, an alert, Alertmanager, Slack.
#[cfg(feature = "kafka")]
mod watching;
// `samestory webhook test` against a real HTTP server.
#[cfg(feature = "kafka")]
mod webhook;
// An HTTP client that sends raw bytes.
#[cfg(feature = "http")]
mod web;
