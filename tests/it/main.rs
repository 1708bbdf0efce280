//! One test binary; a line of comment per module.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

// Who may import whom, read off the source files.
mod architecture;
// Avro and the schema registry, without a broker.
#[cfg(feature = "registry")]
mod avro;
// Articles that are hardly articles: each has a defined outcome.
mod bad_input;
// Which earlier documents are looked at, counted.
mod candidates;
// `examples/consumer.py` against a model, over histories in which articles expire.
#[cfg(feature = "kafka")]
mod example_consumer;
// `samestory file` never writes over a file that the run needs.
#[cfg(all(unix, feature = "rocksdb"))]
mod clashes;
// The program as it is run.
mod cli;
// The names of clusters, and which member is their canonical.
mod clusters;
// Wrong clocks, sparse archives, dates of every notation.
mod clocks;
// `samestory file --dead-letters`: what cannot be judged is kept.
mod dead_letters;
// The demo articles get the verdicts that the demo promises.
mod demo;
// Documents that are made from the code are those that it makes.
mod documents;
// An engine with its state, for the tests of verdicts.
mod engine_fixture;
// The evidence model: its table, its laws, page furniture and odd input.
mod evidence;
// `samestory file`: formats, broken input, options, the page, whatever the number of threads.
mod file;
// A directory with articles and the program run in it, for the tests of `samestory file`.
mod folder;
// What must hold for any bytes; shared with the fuzz targets.
mod fuzz_checks;
// Updates without a text: nothing that is known is erased.
mod empty_updates;
// Fixed articles, fixed bytes.
mod golden;
// How work grows with its input.
mod growth;
// State in RocksDB: the same as in memory, through crashes, damage and other settings.
/// Random histories of state, and the oracle for them.
mod history;
// Articles made to hurt: defined outcomes, linear work.
mod hostile;
// Markup bombs: defined outcomes, linear work.
mod hostile_markup;
// What must hold on a real broker, and the broker, bus and network for it.
#[cfg(feature = "kafka")]
mod kafka;
// Languages on real articles, our own paragraphs, and hostile texts.
mod language;
// What holds for every text: random ones, and the demo's.
mod laws;
/// State in RocksDB: the same as in memory, through crashes, damage and other settings.
#[cfg(feature = "rocksdb")]
mod laws_rocks;
// State: applying, laying over, restoring and its bytes, over random histories.
mod laws_store;
// The engine against a second, simple telling of its rules, over random histories.
mod oracle;
// Parts and wholes of real articles are found.
mod parts;
// `samestory plan`: how much of everything a stage needs.
mod plan;
// Floors under the measured quality of verdicts.
mod quality;
// `samestory ready`: asking a stage from the command line.
#[cfg(feature = "kafka")]
mod ready;
// A file run killed at any moment and run again: as if it had not been.
#[cfg(feature = "rocksdb")]
mod resume;
// `samestory serve`: questions to a state.
#[cfg(feature = "http")]
mod serve;
// `samestory config …`, and that secrets stay where they are.
mod settings;
// `samestory state …`: on states sound, damaged, in use, unfinished, foreign, or none.
#[cfg(feature = "rocksdb")]
mod state_commands;
// What several modules need: where the shared articles are.
mod support;
// Random texts of every script, and the demo's articles.
mod texts;
// A file run in trouble: no space, no place to write, Ctrl-C.
#[cfg(feature = "rocksdb")]
mod trouble;
// Every rule of a verdict by itself.
mod verdicts;
// From the program to a person: Prometheus, an alert, Alertmanager, Slack.
#[cfg(feature = "kafka")]
mod watching;
// A client that sends what it is told to.
#[cfg(feature = "http")]
mod web;
