//! Git repositories without network access: objects, packs, history and the wire protocol.
//!
//! 1. `object`: ids, types and links of objects, the entries of trees, the names of refs;
//! 2. `delta`: deltas between objects;
//! 3. `pack`: reads packs of any origin, and writes landfall's own;
//! 4. `history`: the objects that a ref or a request needs, in a fixed order;
//! 5. `wire`: the packets and messages of the smart HTTP protocol.
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
mod error;
mod history;
mod object;
mod pack;
#[cfg(any(test, fuzzing, feature = "testkit"))]
pub mod testing;
#[cfg(test)]
mod tests;
mod wire;

pub use error::GitError;
pub use history::{
    GitPackPlan, IncompleteTip, PinnedSubmodule, RootFile, RootFiles, SelectedObjects,
    check_complete, large_files, pinned_submodules, reaches, shallow_boundary,
};
pub use object::{
    CommitLinks, EntryMode, GitObjectKind, LfsConfig, LfsPointer, ObjectId, SignedObject,
    TagTarget, TreeEntries, TreeEntry, is_ref_name, tag_name,
};
pub use pack::{
    GitContentCache, ObjectDatabase, ObjectIndex, PackBytes, PackIndexFile, PackSending, send_pack,
    write_pack,
};
pub use wire::{
    FetchRequest, MAX_ADVERTISEMENT, OfferedRef, OfferedRepository, PackStream, Packet, Packets,
    ReceiveAdvertisement, RefListStream, RefUpdate, RefsRequest, RemoteRef, UploadPackReader,
    UploadPackRequest, advertise_version_0, advertise_version_2, check_advertisement, check_report,
    error_answer, fetch_request, list_refs_answer, ls_refs_request, push_data, push_delimiter,
    push_flush, push_text,
};
