//! Any bytes as the contents index of a bundle that is good in all else.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| landfall::internals::fuzz::index(bytes));
