//! Errors that keep the server from starting.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The value of `--listen` is not an address.
    #[error("cannot listen at '{address}': {why}; write HOST:PORT, as in 127.0.0.1:5000")]
    Address {
        /// The value of `--listen` as written.
        address: String,
        /// What is wrong with it.
        why: String,
    },
    /// The system refuses to listen at the address.
    #[error("cannot listen at {address}: {source}; use another address with --listen HOST:PORT")]
    Listen {
        /// The value of `--listen` as written.
        address: String,
        /// The error that the system returned.
        source: io::Error,
    },
    /// The server would accept pushes from the network without authentication.
    #[error(
        "refusing to accept pushes from everyone who can reach {address}; list the users in a file \
         with --htpasswd FILE, or allow everyone with --anonymous-push"
    )]
    Exposed {
        /// The address, which is not a loopback address.
        address: SocketAddr,
    },
    /// The folder of `--writable` cannot be used.
    #[error("cannot store pushes in {dir}: {source}")]
    Writable {
        /// The folder named by `--writable`.
        dir: PathBuf,
        /// The error that the system returned.
        source: io::Error,
    },
    /// Another process serves the folder of `--writable`.
    #[error(
        "cannot store pushes in {dir}: another landfall process is using it; stop that process or \
         choose another folder with --writable"
    )]
    Busy {
        /// The folder named by `--writable`.
        dir: PathBuf,
    },
    /// A certificate or its key cannot be used.
    #[error("cannot use {path} for TLS: {why}")]
    Tls {
        /// The certificate or key file.
        path: PathBuf,
        /// What is wrong with the file.
        why: String,
    },
    /// A password file cannot be used.
    #[error("cannot use the password file {path}: {why}")]
    PasswordFile {
        /// The password file.
        path: PathBuf,
        /// What is wrong with the file.
        why: String,
    },
    /// The system provides no random numbers for the key that protects remembered passwords.
    #[error("cannot start with --htpasswd: the system provides no random numbers")]
    Random,
}
