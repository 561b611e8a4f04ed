//! Checks in tests that the cost of work grows linearly with its size. Processor time is measured,
//! so that other load on the machine does not matter.
#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a failure ends the test"
)]
#![allow(clippy::print_stdout, reason = "only tests print")]

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

/// The processor time of this thread so far, in nanoseconds; `None` without Linux's statistics.
fn thread_time() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// Counts the running test as skipped: adds its name and the reason to `list`, the file that
/// `scripts/test` names in `LANDFALL_TEST_SKIPPED`.
fn count_as_skipped(list: Option<&Path>, why: &str) {
    let thread = std::thread::current();
    let line = format!("{}: {why}", thread.name().unwrap_or("?"));
    println!("SKIPPED {line}");
    if let Some(list) = list {
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(list)
            .unwrap();
        file.write_all(format!("{line}\n").as_bytes()).unwrap();
    }
}

/// Asserts that `work` of eight times the size takes less than 24 times as long. Quadratic work
/// would take 64 times as long. Without Linux's statistics, the test counts as skipped.
pub fn assert_linear(size: usize, work: impl Fn(usize)) {
    let once = |size: usize| {
        let before = thread_time()?;
        work(size);
        Some(thread_time()? - before)
    };
    // the first run also initializes statics
    work(size);
    let (Some(one), Some(again)) = (once(size), once(size)) else {
        let list = std::env::var_os("LANDFALL_TEST_SKIPPED");
        count_as_skipped(
            list.as_deref().map(Path::new),
            "this machine has no /proc/thread-self/schedstat",
        );
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_skipped_check_is_listed() {
        let dir = tempfile::tempdir().unwrap();
        let list = dir.path().join("skipped");
        count_as_skipped(None, "not listed");
        for why in ["one", "other"] {
            count_as_skipped(Some(&list), why);
        }
        let name = std::thread::current().name().unwrap_or("?").to_owned();
        assert_eq!(
            std::fs::read_to_string(&list).unwrap(),
            format!("{name}: one\n{name}: other\n")
        );
    }
}
