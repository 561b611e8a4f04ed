//! Git repositories without network access: objects, packs, history and the wire protocol.
//!
//! 1. `object`: ids, types and links of objects, the entries of trees, the names of refs;
//! 2. `delta`: deltas between objects;
//! 3. `pack`: reads packs of any origin, and writes landfall's own;
//! 4. `history`: the objects that a ref or a request needs, in a fixed order;
//! 5. `wire`: the packets and messages of the smart HTTP protocol;
//! 6. `local`: reads a repository on this machine: a working copy, a bare repository or a bundle.
//!
//! # Packs
//!
//! Servers pack the same commits differently from day to day, so their packs have no stable
//! digest. landfall writes a pack of its own, whose bytes depend only on the objects in it and on
//! the commits that it is written for: the order is fixed (`history`), and so are the bases of
//! deltas, the deltas (`delta.rs`) and the encoding (`pack/write.rs`). git can read it.
//!
//! # Untrusted input
//!
//! Packs come from servers and bundles. Every object is hashed before it is used. The number of
//! objects, their sizes, the length of delta chains and the total of all unpacked bytes are
//! limited. Memory grows by about 100 bytes per object, not with the size of a pack.
//! Nothing is ever written to a path that an object names.

mod delta;
mod history;
mod local;
mod object;
mod pack;
#[cfg(any(test, fuzzing, feature = "testkit"))]
pub mod testing;
#[cfg(test)]
mod tests;
mod wire;

use std::io;
use thiserror::Error;

pub use crate::history::{
    GitPackPlan, IncompleteTip, PinnedSubmodule, RootFile, RootFiles, SelectedObjects,
    check_complete, large_files, pinned_submodules, reaches, shallow_boundary,
};
pub use crate::local::LocalRepository;
pub use crate::object::{
    GitObjectKind, LfsConfig, LfsPointer, ObjectId, SignedObject, is_ref_name, tag_name,
};
pub use crate::pack::{
    GitContentCache, ObjectDatabase, ObjectIndex, PackBytes, PackSending, send_pack, write_pack,
};
pub use crate::wire::{
    Advertisement, AdvertisementStream, FetchRequest, OfferedRef, OfferedRepository, PackStream,
    Packet, ReceiveAdvertisement, RefListStream, RefUpdate, RefsRequest, UploadPackReader,
    UploadPackRequest, advertise_version_0, advertise_version_2, check_report, error_answer,
    is_whole_advertisement, list_refs_answer, ls_refs_request, push_data, push_delimiter,
    push_flush, push_text,
};

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
    /// A repository on this machine cannot be read.
    #[error("{0}")]
    LocalRepository(String),
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

impl GitError {
    /// Checks that `found` is at most `limit`. `what` begins the message, up to "than".
    ///
    /// # Errors
    /// [`GitError::TooLarge`] if `found` is more.
    pub fn check_limit(what: &'static str, found: u64, limit: u64) -> Result<(), GitError> {
        if found > limit {
            return Err(GitError::TooLarge { what, limit });
        }
        Ok(())
    }

    /// Checks the number of refs of a repository.
    fn check_refs(found: usize, limit: usize) -> Result<(), GitError> {
        GitError::check_limit("the repository has more refs", found as u64, limit as u64)
    }
}
