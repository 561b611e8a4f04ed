//! Runs the fuzz target that this program is named after; `src/fuzz/mod.rs` has the list.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| landfall::internals::run(env!("CARGO_BIN_NAME"), bytes));
