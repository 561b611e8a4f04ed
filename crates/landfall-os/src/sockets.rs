//! Connections: sending files, the limit of open files, and the socket of an SSH agent.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Error, Read, Result, Write};
use std::path::{Path, PathBuf};

/// Something with a socket that can be used beside its owner.
#[cfg(unix)]
pub use std::os::fd::AsFd as AsSocket;
#[cfg(windows)]
pub use std::os::windows::io::AsSocket;

/// Sends at most `count` bytes of a file at offset `at`, as many as the connection accepts now, and
/// advances `at` past them. Returns 0 at the end of the file. On Linux, the bytes do not pass
/// through this process.
///
/// # Errors
/// If the file cannot be read or the connection fails; with `WouldBlock` if it accepts no bytes
/// now.
#[cfg(target_os = "linux")]
pub fn send_file(stream: &impl AsSocket, file: &File, at: &mut u64, count: usize) -> Result<usize> {
    Ok(rustix::fs::sendfile(stream, file, Some(at), count)?)
}

/// The size of the buffer for bytes of a file, in bytes.
#[cfg(not(target_os = "linux"))]
const PIECE: usize = 64 << 10;

/// Sends at most `count` bytes of a file at offset `at`, as many as the connection accepts now, and
/// advances `at` past them. Returns 0 at the end of the file.
///
/// # Errors
/// If the file cannot be read or the connection fails; with `WouldBlock` if it accepts no bytes
/// now.
#[cfg(not(target_os = "linux"))]
pub fn send_file(stream: &impl AsSocket, file: &File, at: &mut u64, count: usize) -> Result<usize> {
    use crate::FileExt;
    let mut piece = vec![0; count.min(PIECE)];
    let read = file.read_at(&mut piece, *at)?;
    if read == 0 {
        return Ok(0);
    }
    let sent = socket2::SockRef::from(stream).send(&piece[..read])?;
    *at += sent as u64;
    Ok(sent)
}

/// The number of files to which macOS lets a process raise its limit, even if the maximum is
/// unlimited (`OPEN_MAX`).
#[cfg(unix)]
const OPEN_MAX: u64 = 10_240;

/// Raises the number of files that this process may open to its maximum, and returns it; `None` if
/// it is not limited, as on Windows.
pub fn raise_open_files() -> Option<u64> {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        let raise = |current| setrlimit(Resource::Nofile, Rlimit { current, ..limit });
        if raise(limit.maximum).is_err() && limit.current.is_some_and(|files| files < OPEN_MAX) {
            // the present limit counts if it cannot be raised
            let _ = raise(Some(OPEN_MAX));
        }
        getrlimit(Resource::Nofile).current
    }
    #[cfg(windows)]
    return None;
}

/// Whether the system refused to open a file because too many are open.
pub fn is_too_many_files(error: &Error) -> bool {
    #[cfg(unix)]
    use rustix::io::Errno;
    #[cfg(unix)]
    let codes = [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE].map(Errno::raw_os_error);
    // ERROR_TOO_MANY_OPEN_FILES
    #[cfg(windows)]
    let codes = [4];
    error
        .raw_os_error()
        .is_some_and(|code| codes.contains(&code))
}

/// Returns the path of the user's SSH agent, if `variable` is the value of `SSH_AUTH_SOCK`. An
/// empty value counts as unset. On Windows, the default is the pipe of the service `ssh-agent`.
pub fn agent_path(variable: Option<OsString>) -> Option<PathBuf> {
    match variable.filter(|path| !path.is_empty()) {
        Some(path) => Some(path.into()),
        None if cfg!(windows) => Some(r"\\.\pipe\openssh-ssh-agent".into()),
        None => None,
    }
}

/// Connects to the SSH agent at `path`: a Unix socket, on Windows a named pipe such as
/// `\\.\pipe\openssh-ssh-agent`.
///
/// # Errors
/// If nothing listens there.
pub fn connect_agent(path: &Path) -> Result<impl Read + Write> {
    #[cfg(unix)]
    return std::os::unix::net::UnixStream::connect(path);
    #[cfg(windows)]
    return File::options().read(true).write(true).open(path);
}
