//! Any bytes as the frames of a locator.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| landfall::internals::fuzz::locator(bytes));
