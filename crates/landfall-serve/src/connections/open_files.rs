//! The limit on open files, which bounds the number of connections.

use rustix::process::{Resource, getrlimit, setrlimit};

/// The number of open files that belong to no connection or request: bundles, the log, the runtime.
const OTHER_FILES: u64 = 64;

/// Raises the limit on open files as far as the process may, and returns how many connections are
/// possible: `connections`, or fewer if these and the files of `requests` do not all fit.
pub(crate) fn raise_open_files(connections: usize, requests: usize) -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;

    let _ = setrlimit(Resource::Nofile, limit);
    let Some(files) = getrlimit(Resource::Nofile).current else {
        return connections;
    };
    let available = files.saturating_sub(OTHER_FILES) as usize;
    // each request may open a file of its own; at most half of the available files are reserved
    // for requests
    let for_requests = requests.min(available / 2);
    connections
        .min(available.saturating_sub(for_requests))
        .max(1)
}
