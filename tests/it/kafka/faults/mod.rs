//! The fault test: the real program against a real broker, hurt in every way that is known, and then compared with what
//! one undisturbed process would have said. `docs/reliability.md` explains it and how to replay a seed.

// What crawlers write, and what must become of it.
mod articles;
// Threads beside a run: they keep, measure and ask.
mod bystanders;
// The consumer that people copy.
mod example_consumer;
// What is done to a cluster of brokers.
mod cluster;
// What the processes went through, counted from their logs.
mod coverage;
// What is done to processes, disks, network and broker.
mod actions;
// Floods, idle time, new partitions, a new generation.
mod events;
// Guards taken away, to see that it is noticed.
mod mutants;
// The network of one instance.
mod network;
// What must be true at the end.
mod oracle;
// The real program as a process.
mod process;
// Chance with a seed.
mod random;
// Runs: a fixed one and random ones.
mod runs;
// Broker, instances, networks, crawlers.
mod scene;
// Tombstones and relocation notices.
mod voices;
