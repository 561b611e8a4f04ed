//! Errors from reading and writing git data.

use crate::object::ObjectId;
use std::io;
use thiserror::Error;

/// An error from reading or writing git data. Its messages escape names from a remote repository.
#[derive(Debug, Error)]
pub enum GitError {
    /// A pack could not be read from this machine or from the network.
    #[error("cannot read the pack: {0}")]
    ReadPack(#[source] io::Error),
    /// A pack could not be written.
    #[error("cannot write the pack: {0}")]
    WritePack(#[source] io::Error),
    /// The bytes of a pack do not follow the format.
    #[error("the pack is damaged: {0}")]
    DamagedPack(String),
    /// An object does not follow the format of its type, or contains a path that a checkout must
    /// not write.
    #[error("{kind} {id} is not valid: {why}")]
    InvalidObject {
        /// The type of the object.
        kind: &'static str,
        /// The object.
        id: ObjectId,
        /// The reason why it is not valid.
        why: String,
    },
    /// The repository is incomplete.
    #[error("the {kind} {id} is missing")]
    MissingObject {
        /// The type that a link to the object declares, or `object`.
        kind: &'static str,
        /// The object.
        id: ObjectId,
    },
    /// The repository is larger than the limits allow.
    #[error("{what} than the limit of {limit}")]
    TooLarge {
        /// The beginning of the message, up to "than", as in "an object is larger".
        what: &'static str,
        /// The limit, in bytes or as a count.
        limit: u64,
    },
    /// The server or client sent data that violates the protocol.
    #[error("the message violates git's protocol: {0}")]
    Protocol(String),
    /// The server reported an error.
    #[error("the server answered: {0}")]
    Remote(String),
    /// The repository or the server uses a feature that landfall does not support.
    #[error("{0}")]
    Unsupported(&'static str),
}
