//! The fault test: runs the real program against a real broker, injects every known fault, and compares the
//! output with that of one undisturbed process. `docs/reliability.md` explains it and how to replay a seed.

// The records that crawlers write, and the outcome that each must have.
mod articles;
// Background threads of a run: record purged records, measure stalls, query the API.
mod bystanders;
// Checks examples/consumer.py against the expected result.
mod example_consumer;
// Faults of a broker cluster.
mod cluster;
// Counts what the processes went through, from their logs.
mod coverage;
// Faults of processes, disks, networks and a single broker.
mod actions;
// Floods, idle time, new partitions, a new generation.
mod events;
// Runs with one guard removed, which the oracle must detect.
mod mutants;
// The network of one instance.
mod network;
// The invariants that must hold at the end.
mod oracle;
// The real program as a child process.
mod process;
// A seeded random number generator.
mod random;
// The test runs: a fixed one and random ones.
mod runs;
// Broker, instances, networks and crawlers of a run.
mod scene;
// Checks of tombstones and relocation notices.
mod voices;
