//! The only transport: every request of landfall is sent by a [`Transport`].
//!
//! It decides the proxy of a request, checks TLS, tries again, limits the requests to a host,
//! follows redirects one at a time, gives up hosts that only fail, and records every host that was
//! contacted. Nothing here knows registries.
//!
//! It imports `landfall-model`. Begin with `transport.rs` and `send.rs`, and with `host_limiter.rs`
//! for the limits.

mod activity;
mod body;
mod causes;
mod certificate;
mod clients;
mod connect;
mod dead_entry;
mod error;
mod exchange;
mod explain;
mod feed;
mod host_limiter;
mod html_page;
mod inspect;
mod led;
mod ledger;
mod lending;
mod lost_hosts;
mod no_proxy;
mod once_each;
mod private_targets;
mod probe;
mod proxy;
mod proxy_sign_in;
mod range;
mod rate_limit;
mod request;
mod retry;
mod retrying;
mod scheme;
mod send;
mod settings;
mod tls;
mod transport;
mod upload_watch;
mod verifier;
mod whole_body;

pub use activity::{Activity, ActivityLook};
pub use body::{Body, ByteStream, Response};
pub use certificate::Certificate;
pub use dead_entry::dead_entry;
pub use error::{ApiError, Error, ErrorKind, host_port, shown_url};
pub use feed::{feeding, feeding_stream, inherit_feed};
pub use host_limiter::SlotClass;
pub use html_page::{came_instead, looks_like_page, title};
pub use inspect::{Inspection, KnockRoute, Knocked};
pub use ledger::Purpose;
pub use lending::{Lend, NoSlot, lending};
pub use no_proxy::is_direct;
pub use once_each::OnceEach;
pub use private_targets::{DeadTarget, PrivateTargets};
pub use proxy::{ProxyAccount, ProxyRules, ProxySettingError};
pub use range::from_offset;
pub use request::Request;
pub use retry::{Attempts, RetryPolicy};
pub use send::SIGN_IN;
pub use settings::{HostRule, TransportConfig};
pub use tls::{TlsError, TlsProfile};
pub use transport::Transport;
pub use whole_body::BodyFailure;
