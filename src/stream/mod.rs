//! The stage on a Kafka bus. So far: the client library it will use, and its version for `samestory --version`.

/// Version of the librdkafka that is linked in.
pub fn client_version() -> String {
    rdkafka::util::get_rdkafka_version().1
}
