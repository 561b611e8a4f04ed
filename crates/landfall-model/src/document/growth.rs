//! How the cost of some work grows with its size, for tests: by processor time, so that a busy
//! machine changes nothing.
#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a test ends where something fails"
)]

/// The processor time that this thread has had, in nanoseconds; `None` where the system does not
/// tell.
fn spent() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// Checks that `work` of eight times the size takes less than 24 times as long: its square would
/// take 64 times.
pub fn assert_linear(size: usize, work: impl Fn(usize)) {
    let once = |size: usize| {
        let before = spent()?;
        work(size);
        Some(spent()? - before)
    };
    let cost = |size: usize| Some(once(size)?.min(once(size)?));
    // what is done once and never again is no part of it
    work(size);
    if let (Some(one), Some(eight)) = (cost(size), cost(8 * size)) {
        // the system counts by ticks of up to 4 ms
        assert!(
            eight < 24 * one.max(4_000_000),
            "{one} ns for {size}, {eight} ns for {}",
            8 * size
        );
    }
}
