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
//!
//! # Retries
//!
//! No two loops count the same failures:
//!
//! - Sending in `landfall-http` repeats a request without a response, or with a transient status.
//!   Counted: attempts at one request; requested waits are separate. The body of an upload gets
//!   one attempt.
//! - The session of [`registry`] repeats a request that was answered with 401. Counted:
//!   challenges; a second refusal of a fresh token or account is final.
//! - The token service of [`registry`] repeats a token for an account that was accepted before and
//!   is refused now. Counted: one more attempt.
//! - Reading whole bodies in `landfall-http` repeats a manifest, list or checksum file that was
//!   cut or has another digest. Counted: cut bodies; wrong ones, the second of which is final.
//! - The opener repeats a stream of the source that broke, at its last byte within the same write.
//!   Counted: failures since new bytes arrived.
//! - A transfer repeats a body that the sink refused, and wrong bytes. Counted: failures of the
//!   sink; wrong bytes, the second of which is final. A part with several URLs moves on to the
//!   next one.
//! - The reader of package metadata (`landfall-item`) repeats an index that does not match the
//!   signed list, if the list has changed by then. Counted: three reads of the list.
//! - `serve --from` (`landfall-serve`) repeats a MiB of a file at a registry whose body was cut.
//!   Counted: three attempts at this MiB.
//!
//! A transfer does not repeat what `landfall-http` gave up: an error before the first byte is
//! final. A partial file is hashed once, when its write starts.
//!
//! # Writes
//!
//! A sink on disk hashes what it writes. A registry reports a wrong digest only at the end, so the
//! stream to a registry is hashed on its way, and its last bytes are held back until the digest is
//! right. Files that users own (the lock, rewritten documents, reports, receipts) are replaced
//! atomically with their permissions and attributes, and only if nobody changed them meanwhile.

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
