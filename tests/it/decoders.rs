//! Any bytes that reach a decoder are read or refused, and never end the program. `fuzz/` runs the same checks with a fuzzer.

use proptest::prelude::*;

use crate::fuzz_checks::{fuzz_fields, fuzz_json, fuzz_times, fuzz_values};

/// Random bytes, and short ones: those are edits of a valid record.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![prop::collection::vec(any::<u8>(), 0..300), prop::collection::vec(any::<u8>(), 0..24)]
}

/// JSON of all kinds, some of it damaged.
fn json() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[\\[\\]{}:,\" ]{1,4}",
        "\"(id|body|text|title|published_at|fetched_at|lang)\":",
        "\"\\PC{0,12}\"",
        "-?[0-9]{1,14}(\\.[0-9]{1,3})?(e[0-9]{1,3})?",
        "(null|true|\\\\u[dD][89a-f][0-9a-f]{2})",
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

/// Text that might be a time.
fn times() -> impl Strategy<Value = String> {
    prop_oneof![
        "[-+0-9:.TZ ]{0,30}",
        "[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\\.[0-9]{1,9})?)?(Z|[+-][0-9]{2}:?[0-9]{2})?",
        "-?[0-9]{1,20}(\\.[0-9]{1,9})?",
        "(Mon|Tue|Sun), [0-9]{1,2} (Jan|Mar|Dec) [0-9]{2,4} [0-9]{2}:[0-9]{2}:[0-9]{2} (GMT|EST|[+-][0-9]{4})",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn json_is_read_or_refused(data in bytes(), soup in json()) {
        fuzz_json(&data);
        fuzz_json(soup.as_bytes());
    }

    #[test]
    fn field_paths_are_followed_or_refused(path in "[a-z.\\[\\]= ]{0,12}", soup in json(), data in bytes()) {
        fuzz_fields(&[path.as_bytes(), &[0], soup.as_bytes()].concat());
        fuzz_fields(&data);
    }

    #[test]
    fn values_of_a_state_are_read_or_refused(data in bytes()) {
        fuzz_values(&data);
    }

    #[test]
    fn times_are_read_or_refused(text in times(), data in bytes()) {
        fuzz_times(text.as_bytes());
        fuzz_times(&data);
    }

    #[cfg(feature = "avro")]
    #[test]
    fn avro_is_read_or_refused(data in bytes(), schema in json()) {
        crate::fuzz_checks::fuzz_avro(&data);
        crate::fuzz_checks::fuzz_avro(schema.as_bytes());
    }

    #[cfg(feature = "kafka")]
    #[test]
    fn routed_records_are_read_or_refused(data in bytes()) {
        crate::fuzz_checks::fuzz_routed(&data);
    }
}
