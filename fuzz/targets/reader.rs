//! Any bytes as a bundle: opened, read to its end, verified.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| landfall::internals::fuzz::reader(bytes));
