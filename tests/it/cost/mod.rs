//! Cost per byte: what landfall needs for requests and documents of strangers.

mod readers;
mod requests;
mod served_content;

use std::path::Path;

/// The memory of a process in bytes: `VmRSS`, what it has now, or `VmHWM`, its peak so far.
fn memory(pid: u32, field: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib << 10
}

/// The bytes by which the memory of a running process grows at most while `work` runs.
pub fn peak_growth(pid: u32, work: impl FnOnce()) -> u64 {
    // 5 makes the peak the present value (proc_pid_clear_refs(5))
    std::fs::write(Path::new(&format!("/proc/{pid}/clear_refs")), "5").unwrap();
    let before = memory(pid, "VmRSS:");
    work();
    memory(pid, "VmHWM:").saturating_sub(before)
}
