#![no_main]

// The checks are the integration tests' own; a target uses one of them.
#[allow(dead_code)]
#[path = "../../tests/it/fuzz_checks.rs"]
mod fuzz_checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz_checks::fuzz_fields(data));
