//! The only transport: every request of landfall is sent by a [`Transport`].
//!
//! It selects the proxy of a request, verifies certificates, retries, limits the requests to each
//! host, follows redirects, stops using hosts that only fail, and records every contacted host. It
//! does not know the protocol of registries.
//!
//! It imports `landfall-model`. Begin with `transport.rs` and `send.rs`, and with `host_limiter.rs`
//! for the limits.
//!
//! # Failures of the network
//!
//! `Transport` sends HTTP/1.1 only, because one HTTP/2 connection cannot fill a fast link. It
//! follows redirects itself, so that `Authorization` never leaves its host. The module `retry`
//! contains the policy of all retries; `explain` contains the texts about failed connections. Code
//! decides by the kind of an error; its text is for people.
//!
//! - **A connection fails or is cut; 408, 425, 500, 502–504, 520–524**: five attempts in all, with
//!   pauses from 0.3 s that double, with jitter.
//! - **A body is cut or stalls**: the caller resumes at the last byte; an attempt is counted if
//!   fewer than 16 KiB arrived.
//! - **A host only fails**: landfall gives it up for the run. If the host never answered, one
//!   request that failed at all attempts is enough. If it answered before, hangs up or answers 5xx,
//!   three rounds of such requests are needed, or a minute of failures with as many attempts as
//!   three rounds have. All items of the host report the same cause.
//! - **No response yet**: landfall waits `--first-byte` (2 min, 10 min through a proxy), then
//!   `--idle` (60 s) between bytes. The total time is unlimited.
//! - **429, or 503 with `Retry-After`**: all workers pause their requests to the host, and its
//!   limit is halved; each round of good responses raises it by one.
//! - **The requested wait, or the window of a used-up quota (`ratelimit-remaining`), exceeds
//!   `--max-wait`**: the item fails with the time at which to retry.
//! - **A range is refused or answered with another range**: the whole content is requested, and
//!   this host gets no more `Range` requests in this run.
//! - **200 with an HTML page, or with `Content-Encoding`**: an error that names the page's title
//!   or the encoding, instead of a digest mismatch.
//! - **An absurd number in a header or token response**: a wait is limited to a year, and a token's
//!   lifetime to a day; sizes beyond 8 PiB are rejected.
//! - **The first request with a proxy account**: it is sent alone; if the proxy refuses the
//!   account, that is final for all workers.
//!
//! The integration tests in `tests/it/faults.rs`, `faults_push.rs` and `storms.rs` provoke each of
//! these failures.
//!
//! # Limits
//!
//! A request needs a slot of its host: see `host_limiter`. The section "Concurrency" of the crate
//! `landfall-content` explains how this works together with the other limits of a run.
//!
//! # Log
//!
//! The crate emits `tracing` events: each request with its waiting times, retries, pauses, and
//! hosts that are given up. URLs are only logged by way of [`redacted_url`], and headers never.

mod body;
mod clients;
mod connect;
mod content_coding;
mod ecdsa;
mod error;
mod exchange;
mod explain;
mod host_limiter;
mod ledger;
mod lost_hosts;
mod no_proxy;
mod path_inspection;
mod private_targets;
mod proxy;
mod proxy_sign_in;
mod rate_limit;
mod registry_scheme;
mod retry;
mod send;
mod transport;
mod verifier;

pub use crate::body::{
    ByteStream, HttpResponse, RequestBody, inherit_upload_mark, read_for_upload, send_from_offset,
    stream_for_upload,
};
pub use crate::clients::{TlsError, TlsProfile, read_certificates, read_private_key};
pub use crate::error::{DistributionError, ErrorKind, HttpError, host_of, host_port, redacted_url};
pub use crate::exchange::HttpRequest;
pub use crate::host_limiter::{LendableSlot, SlotClass, UnlimitedSlot, lend_while_waiting};
pub use crate::ledger::RequestPurpose;
pub use crate::no_proxy::{bypasses_proxy, ineffective_entry};
pub use crate::path_inspection::{ConnectOutcome, ConnectRoute, PathInspection};
pub use crate::private_targets::PrivateTargets;
pub use crate::proxy::{ProxyAccount, ProxyRules};
pub use crate::rate_limit::{ServerWords, api_errors, describe, is_html, page_error};
pub use crate::registry_scheme::OnceMap;
pub use crate::retry::{Attempts, BodyFailure, RetryPolicy};
pub use crate::send::SIGN_IN_HINT;
pub use crate::transport::{Activity, ActivitySnapshot, HostRule, Transport, TransportConfig};
pub use crate::verifier::Certificate;
