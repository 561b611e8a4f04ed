//! Why the server does not start.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why the server does not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// `--listen` is not an address.
    #[error("cannot listen at '{address}': {why}; write HOST:PORT, as in 127.0.0.1:5000")]
    Address {
        /// The value of `--listen`.
        address: String,
        /// The system's answer.
        why: String,
    },
    /// The system refuses the address.
    #[error("cannot listen at {address}: {source}; name another with --listen HOST:PORT")]
    Listen {
        /// The value of `--listen`.
        address: String,
        /// The system's answer.
        source: io::Error,
    },
    /// Everybody on the network could push, which nobody allowed.
    #[error(
        "--writable at {address} would let everybody who reaches it push images; name who may with --htpasswd \
         FILE, or say --anonymous-push if that is meant"
    )]
    Exposed {
        /// An address beyond loopback.
        address: SocketAddr,
    },
    /// The folder of `--writable` cannot be used.
    #[error("cannot use {dir} for pushes: {source}")]
    Writable {
        /// The folder.
        dir: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// Another process serves the folder.
    #[error(
        "{dir} is served by another landfall already; end it or name another folder with --writable"
    )]
    Busy {
        /// The folder.
        dir: PathBuf,
    },
    /// Certificate or key cannot be used.
    #[error("cannot use {path} for TLS: {why}")]
    Tls {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The password file cannot be used.
    #[error("cannot use the password file {path}: {why}")]
    PasswordFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// No key can be made for what is remembered of passwords.
    #[error("the system gives no random numbers, which --htpasswd needs")]
    Random,
}
