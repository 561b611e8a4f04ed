//! How many files the process may open, and so how many connections it can take.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Files for everything else: bundles, the log, the runtime.
const OTHERS: u64 = 64;

/// Raises the number of files that the process may open as far as it may, and returns how many
/// connections there may be: `connections`, or fewer where these and the files of `requests` would
/// not all fit.
pub(in super::super) fn raise_open_files(connections: usize, requests: usize) -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
    let Some(files) = getrlimit(Resource::Nofile).current else {
        return connections;
    };
    let left = files.saturating_sub(OTHERS) as usize;
    connections
        .min(left.saturating_sub(requests.min(left / 2)))
        .max(1)
}
