//! Any bytes as a footer, and as a list of signatures.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| landfall::internals::fuzz::footer(bytes));
