//! All limits of concurrency: what each counts, who holds it, and when it is released.
//!
//! Each limit, with what it counts, its number, and how long a slot is held:
//!
//! - **resolutions** ([`run_concurrently_by_host`](crate::run_concurrently_by_host)): items that
//!   `lock` and `update` resolve, for each upstream host. Number: `--jobs`; twice as many when
//!   `lock` resolves images. Held from the start of an item to its result.
//! - **deliveries** ([`run_concurrently_by_host`](crate::run_concurrently_by_host)): items that
//!   `push` and `mirror` deliver, for each source host. Number: 2 × `--jobs`. Held from the first
//!   blob of an item to its tag.
//! - **transfer slots** ([`TransferSlot`](crate::TransferSlot), assigned by
//!   [`TransferSchedule`](crate::TransferSchedule)): blobs and manifests that `pull` fetches.
//!   Number: `--jobs` blobs and 4 manifests. Held from the start of a transfer to its end; lent
//!   during waits.
//! - **idle slots** ([`IdleSlots`](crate::IdleSlots)): helpers that fetch ranges of a large blob.
//!   Idle slots are transfer slots that no transfer of a blob needs any more. Number: the unused
//!   part of `--jobs`; a [`CachedSource`](crate::CachedSource) has `--jobs` of its own. Held from
//!   the start of a helper to the end of its range.
//! - **upload slots** (`src/push/upload_slots.rs`): blobs that `push` and `mirror` upload or mount.
//!   Number: `--jobs`. Held from the look-up at the destination to the end of the upload; lent
//!   during waits.
//! - **host slots** (`host_limiter.rs` of `landfall-http`): requests to one host, for each
//!   [`SlotClass`](landfall_http::SlotClass). Number: `maxConcurrent` of the site, else the larger
//!   of `--jobs` and 12; at an upstream, a shard's share of that number. Halved by 429, and by 503
//!   with `Retry-After`. Held from the sending of a request to the end of its response; lent
//!   during waits.
//! - **local streams** (`local_first.rs`): blobs that are read from the store or an older bundle
//!   instead of upstream. Number: 4. Held from the opening of a blob to the end of its stream.
//!
//! None of these can replace another. Host slots protect servers, whichever command sends the
//! requests. Transfer and upload slots limit memory and open files, and decide which blob is next:
//! large ones first, so that none of them begins at the end (every fourth upload slot goes to the
//! smallest). Deliveries and resolutions limit how many items are incomplete at the same time, so
//! that a run that ends early leaves complete items. The limit of deliveries is higher than that of
//! uploads, because some items wait for a blob that another item uploads.
//!
//! # Why the limits cannot deadlock
//!
//! 1. **A slot is held by work that makes progress.** A holder that waits longer than 0.4 s (for a
//!    host that does not answer, for the pause before another attempt, for a slot of another limit)
//!    lends its slot, and continues later without waiting for one:
//!    [`lend_while_waiting`](landfall_http::lend_while_waiting). The limit may be exceeded briefly
//!    if several holders continue at once. A response that fails or ends releases its host slot at
//!    once, even if its stream is kept.
//! 2. **Slots are taken in one order**: upload or transfer slot, host slot of class `Ordinary`, of
//!    class `UploadSource`, of class `SignIn`. A request that holds a host slot waits only for
//!    requests of later classes. The source of an upload may be on the same host as its
//!    destination. Therefore it is read with slots of `UploadSource`, and opened before the upload
//!    takes its host slot. A delivery holds no upload slot while it waits for a blob that another
//!    delivery uploads.
//! 3. **Hosts do not wait for each other.** If other transfers already wait for a host, further
//!    transfers from it start last. No host has more transfers in progress than there are slots, so
//!    a slow host does not delay the others.
//!
//! If, for ten minutes, no request is in flight or waits to be retried, no byte is received and no
//! long local work is under way, a [`Watchdog`](crate::Watchdog) ends the run with an error that
//! says so. A wait for another process that writes the same blob is long local work.
//!
//! How long a request, transfer or upload waited for its slot is in the log with `-vv`.
