//! What operating systems do differently. The rest of the workspace has no code for one system: it
//! calls these functions, which exist on Linux, macOS and Windows.
//!
//! 1. `files`: reading and writing at an offset, identity and stamp of a file, locks, kinds of
//!    files, free space, and file names;
//! 2. `attributes`: modes, owners and extended attributes;
//! 3. `paths`: file names that a system does not have, the user's home and cache folders, and the
//!    folder for large temporary files;
//! 4. `sockets`: sending a file over a connection, the limit of open files, and the socket of an
//!    SSH agent;
//! 5. `signals` (feature `signals`): Ctrl-C, and the signals that end or reload a server.
//!
//! If a system lacks something, the function does the next best thing and its documentation says
//! what is missing.

mod attributes;
mod files;
mod paths;
#[cfg(feature = "signals")]
pub mod signals;
mod sockets;

pub use attributes::{
    EXECUTABLE, copy_attributes, has_mode, mode_of, public_temporary_file, set_file_mode, set_mode,
};
pub use files::{
    Blocking, FileExt, FileStamp, allocated_bytes, check_writable, file_name, free_space,
    hard_links, has_colours, is_at, is_pipe, is_socket, open_locked, punch_hole, stdout_file,
    sync_folder, too_many_links, wait_locked, without_waiting,
};
pub use paths::{cache_folder, exact_path, home_folder, path_fault, path_key, scratch_folder};
pub use sockets::{
    AsSocket, agent_path, connect_agent, is_too_many_files, raise_open_files, send_file,
};

/// Whether the program runs on Windows, where `\` separates the names in a path.
pub const IS_WINDOWS: bool = cfg!(windows);

/// Whether the program runs on Linux, as the nodes of clusters do.
pub const IS_LINUX: bool = cfg!(target_os = "linux");
