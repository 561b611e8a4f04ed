//! Content by digest: the traits to read, fetch and write it, and their implementations.
//!
//! The crate root defines the traits. Blobs are read by digest ([`BlobRead`]), parts of lock
//! entries are opened at a source ([`PartSource`]) and written to a sink ([`BlobSink`]). A
//! [`Transfer`] copies a part from any source to any sink, and a [`TransferSchedule`] decides in
//! which order transfers begin. These modules implement the traits:
//!
//! - [`registry`]: the OCI distribution API,
//! - [`store`]: the store, on disk or in an object store ([`bucket`]),
//! - [`upstream`]: registries, web servers and git servers as one source.
//!
//! [`archives`] imports blobs from files of other tools into a store.
//!
//! The crate depends on `landfall-model`, `landfall-git` and `landfall-http`. Begin with
//! `blob_read.rs`, `part_source.rs`, `blob_store.rs` and `transfer.rs`.
//!
//! # Retries
//!
//! A failure is retried at one of three levels, and an error that a level returns is final for the
//! levels above:
//!
//! - **Request** (`send.rs` of `landfall-http`): no response, or a transient status. Counted:
//!   attempts at one request; waits that the server requests are counted separately. The body of an
//!   upload gets one attempt.
//! - **Body**: a stream that breaks off is opened again at that byte, within the same write
//!   (`part_source.rs`, and [`RangeReader`] for objects). Counted: failures since new bytes arrived.
//!   What is read as a whole (manifests, lists, git packs, files that `lock` reads) is requested
//!   again if it was cut, and once if it is wrong (`RetryPolicy::read_body` of `landfall-http`).
//! - **Part** (`transfer.rs`): the sink refused the body, or the bytes were wrong. Counted: failures
//!   of the sink; wrong bytes, the second of which is final. If a part has several URLs, the next
//!   one is tried when a URL lacks the part, denies access or has wrong bytes.
//!
//! Nothing else is a retry of a failure: a request that was answered with 401 is sent again with a
//! token (`session.rs` of [`registry`]), and where others write at the same time (an index of
//! packages, the list of delivered locks, a repository of the destination), a step is done again
//! with what they wrote. A partial file is hashed once, when its write starts.
//!
//! # Concurrency
//!
//! The limits of a run, with what each counts, its number, and how long a slot is held:
//!
//! - **resolutions** ([`run_concurrently_by_host`]): items that `lock` and `update` resolve, for
//!   each upstream host. Number: `--jobs`; twice as many when `lock` resolves images. Held from the
//!   start of an item to its result.
//! - **deliveries** ([`run_concurrently_by_host`]): items that `push` and `mirror` deliver, for
//!   each source host. Number: 2 × `--jobs`. Held from the first blob of an item to its tag.
//! - **transfer slots** ([`TransferSlots`]), lent during waits. `pull` has `--jobs` for blobs and 4
//!   for manifests ([`TransferSchedule`]); a transfer holds its slot from its start to its end.
//!   `push` and `mirror` have `--jobs` for uploads and mounts; an upload holds its slot from the
//!   look-up at the destination to its end. Helpers that fetch ranges of a large blob get the slots
//!   for blobs that nothing else needs ([`IdleSlots`]); a [`CachedSource`] has `--jobs` of its own
//!   for them. A helper holds its slot to the end of its range.
//! - **host slots** (`host_limiter.rs` of `landfall-http`): requests to one host, for each
//!   [`SlotClass`](landfall_http::SlotClass). Number: `maxConcurrent` of the site, else the larger
//!   of `--jobs` and 12; at an upstream, a shard's share of that number. Halved by 429, and by 503
//!   with `Retry-After`. Held from the sending of a request to the end of its response; lent during
//!   waits.
//! - **local streams** ([`LocalFirst`]): blobs that are read from the store or an older bundle
//!   instead of upstream. Number: 4. Held from the opening of a blob to the end of its stream.
//!
//! None of these can replace another. Host slots protect servers, whichever command sends the
//! requests. Transfer slots limit memory and open files, and decide which blob is next: large ones
//! first, so that none of them begins at the end (every fourth upload slot goes to the smallest).
//! Deliveries and resolutions limit how many items are incomplete at the same time, so that a run
//! that ends early leaves complete items. The limit of deliveries is higher than that of uploads,
//! because some items wait for a blob that another item uploads.
//!
//! The limits cannot deadlock:
//!
//! 1. **A slot is held by work that makes progress.** A holder that waits longer than 0.4 s (for a
//!    host that does not answer, for the pause before another attempt, for a slot of another limit)
//!    lends its slot, and continues later without waiting for one
//!    ([`lend_while_waiting`](landfall_http::lend_while_waiting)). The limit may be exceeded briefly
//!    if several holders continue at once. A response that fails or ends releases its host slot at
//!    once, even if its stream is kept.
//! 2. **Slots are taken in one order**: transfer slot, host slot of class `Ordinary`, of
//!    class `UploadSource`, of class `SignIn`. A request that holds a host slot waits only for
//!    requests of later classes. The source of an upload may be on the same host as its
//!    destination. Therefore it is read with slots of `UploadSource`, and opened before the upload
//!    takes its host slot. A delivery holds no transfer slot while it waits for a blob that another
//!    delivery uploads.
//! 3. **Hosts do not wait for each other.** If other transfers already wait for a host, further
//!    transfers from it start last. No host has more transfers in progress than there are slots, so
//!    a slow host does not delay the others.
//!
//! If a bug breaks these rules, the [`Watchdog`] ends the run. How long a request, transfer or
//! upload waited for its slot is in the log with `-vv`.
//!
//! # Writes
//!
//! A sink on disk hashes the bytes that it writes. A registry reports a wrong digest only at the
//! end, so the stream to a registry is hashed on its way, and its last bytes are held back until
//! the digest is right. Files that users own (the lock, rewritten documents, reports, receipts) are
//! replaced atomically with their permissions and attributes, and only if nobody changed them
//! meanwhile.

pub mod archives;
mod atomic_file;
mod blob_chain;
mod blob_read;
mod blob_store;
pub mod bucket;
mod cached_source;
mod error;
mod follower;
mod git_packs;
mod helm_ignore;
mod local_content;
mod local_folder;
mod local_store;
mod lock_entry;
mod memory_blobs;
mod output_guard;
mod parallel;
mod part_source;
mod present_blobs;
mod range_read;
pub mod registry;
mod replace_file;
mod retry;
mod schedule;
mod slots;
pub mod store;
mod transfer;
pub mod upstream;
mod verified_writer;

pub use crate::atomic_file::{
    AtomicFile, DiskSpace, FileRun, FileRuns, FileStamp, if_exists, lock_partial_file,
    parent_folder, private_file_in, publish_file, refuse_special, sync_folder, temporary_file_in,
};
pub use crate::blob_chain::{BlobChain, MissingBlob, missing_blobs};
pub use crate::blob_read::{BlobRead, ContentError, FileRunRead, PresignedUrls, VerifiedRead};
pub use crate::blob_store::{
    BlobSink, BlobStore, ByteRange, PartialBlob, merge_ranges, written_ranges,
};
pub use crate::cached_source::{CachePolicy, CachedSource};
pub use crate::error::{TransferError, WriteError, is_full_disk};
pub use crate::follower::{Follower, FollowerSender};
pub use crate::git_packs::{BlobPackBytes, GitPack, GitPacks, git_object_ids};
pub(crate) use crate::local_content::read_failure;
pub use crate::local_content::{LocalContent, LocalForm, open_local, path_below};
pub use crate::local_folder::{FolderFiles, files_below, is_executable, matching_files};
pub use crate::local_store::{LocalFirst, LocalSink, LocalSource, LocalStore};
pub use crate::lock_entry::{AttachedReferrer, ListedAttestations, LockEntry, ShardEntry};
pub use crate::memory_blobs::MemoryBlobs;
pub use crate::output_guard::{OUTPUT_RECORD, OutputGuard, OutputRecord};
pub use crate::parallel::IdleSlots;
pub use crate::part_source::{
    EntryPart, LfsServer, OnCorrupt, OpenedPart, PartOpener, PartOrigin, PartSource,
    resuming_stream,
};
pub use crate::present_blobs::{RecentChecks, present_blobs, unique_blobs};
#[cfg(any(test, feature = "testkit"))]
pub use crate::range_read::MemoryObject;
pub use crate::range_read::{RangeRead, RangeReader};
pub use crate::replace_file::{
    FileChanged, check_unchanged, create_file, is_caused_by, is_written_in_place, merge_into_file,
    replace_file, write_file, write_file_like,
};
pub use crate::retry::{FailedAttempt, FailureCause, Watchdog};
pub use crate::schedule::{
    ScheduleStep, TransferSchedule, run_concurrently, run_concurrently_by_host,
};
pub use crate::slots::{TransferSlot, TransferSlots};
pub use crate::transfer::{CopyError, Transfer, TransferOutcome, copy_checked};
pub use crate::verified_writer::{VerifiedWriter, read_blocking, read_part, verify_stream};
