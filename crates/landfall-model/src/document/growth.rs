//! Checks in tests that the cost of work grows linearly with its size. Processor time is measured,
//! so that other load on the machine does not matter.
#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a failure ends the test"
)]

/// The processor time of this thread so far, in nanoseconds; `None` without Linux's statistics.
fn thread_time() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// Asserts that `work` of eight times the size takes less than 24 times as long. Quadratic work
/// would take 64 times as long.
pub fn assert_linear(size: usize, work: impl Fn(usize)) {
    let once = |size: usize| {
        let before = thread_time()?;
        work(size);
        Some(thread_time()? - before)
    };
    // the first run also initializes statics
    work(size);
    let (Some(one), Some(again)) = (once(size), once(size)) else {
        return;
    };
    // the kernel updates the statistics only every 4 ms
    let limit = 24 * one.min(again).max(4_000_000);
    assert!(
        (0..2).any(|_| once(8 * size).is_none_or(|eight| eight < limit)),
        "{one} and {again} ns for {size}, {limit} ns or more for {}",
        8 * size
    );
}
