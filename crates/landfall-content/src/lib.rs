//! Content by digest, and everything that holds it.
//!
//! The crate root is the narrow waist: content is read ([`BlobRead`]), opened at its source
//! ([`Source`]) and brought to a sink ([`Sink`]); one [`Transfer`] moves it between any two of
//! them, and a [`Schedule`] begins the transfers of a run. These implement the traits: [`registry`]
//! (the distribution API), [`store`] (the store, on disk or in an object store, which [`bucket`]
//! speaks to), [`upstream`] (registries and web servers as one source) and [`archives`] (files of
//! other tools).
//!
//! It imports `landfall-model` and `landfall-http`. Begin with `source.rs`, `sink.rs` and
//! `transfer.rs`.

pub mod archives;
pub mod bucket;
pub mod registry;
pub mod store;
pub mod upstream;

mod blocking;
mod cached;
mod chain;
mod checked;
mod content_store;
mod copy;
mod entry;
mod error;
mod file_run;
mod follow;
mod held;
#[cfg(any(test, feature = "testkit"))]
mod in_memory;
mod local_first;
mod local_sink;
mod local_source;
mod look;
mod memory;
mod opener;
mod own_parts;
mod parallel;
mod part;
mod partial_blob;
mod pieces;
mod range_plan;
mod range_read;
mod read;
mod recent_checks;
mod replace;
mod retry;
mod room;
mod schedule;
mod side_by_side;
mod sink;
mod source;
mod stream;
mod transfer;
mod transfer_slot;
mod whole_file;
mod writer;

pub use cached::Cached;
pub use cached::Keep;
pub use chain::{BlobChain, MissingBlob, missing_blobs};
pub use checked::{checked, read_part};
pub use content_store::Store;
pub use copy::{CopyError, copy_checked};
pub use entry::{AttachedReferrer, Entry};
pub use error::{TransferError, WriteError};
pub use file_run::{FileRun, FileRuns};
pub use follow::Follower;
pub use held::{held, stored_once};
#[cfg(any(test, feature = "testkit"))]
pub use in_memory::InMemory;
pub use local_first::LocalFirst;
pub use local_sink::{Local, LocalSink};
pub use local_source::LocalSource;
pub use look::Look;
pub use memory::Memory;
pub use opener::Opener;
pub use own_parts::OwnParts;
pub use parallel::IdleSlots;
pub use part::{Origin, Part};
pub use partial_blob::{ByteRange, PartialBlob, merged};
pub use pieces::{digest_of, each_piece};
pub use range_read::{RangeRead, RangeReader};
pub use read::{BlobRead, ContentError};
pub use recent_checks::RecentChecks;
pub use replace::{ReplaceError, create, replace, write_like, write_whole};
pub use retry::{Cause, Failed};
pub use room::Room;
pub use schedule::{Schedule, Step, Task, Watchdog};
pub use side_by_side::{side_by_side, side_by_side_by_host};
pub use sink::{BlobWrite, Sink};
pub use source::{OnWrong, Opened, Source};
pub use stream::read_blocking;
pub use transfer::{Brought, Transfer};
pub use transfer_slot::{HostLoad, TransferSlot};
pub use whole_file::{FileUnderWay, claim, folder_of, refuse_special, sync_folder, temporary_in};
pub use writer::Writer;
