//! One transport for everything on the wire: proxy rules, TLS, retries, a gate per host, redirects
//! with a decision at every hop, and the ledger of hosts.

mod attempts;
mod body;
mod certificate;
mod door;
mod error;
mod explain;
mod gate;
mod inspect;
mod ledger;
mod no_proxy;
mod page;
mod probe;
mod proxy;
mod quota;
mod range;
mod retry;
mod tls;
mod transport;
mod trust;
mod tunnel;
mod upload;

pub use body::{Body, ByteStream, Response};
pub use certificate::Certificate;
pub use error::{Error, ErrorKind, shown_url};
pub use inspect::{Handshake, Inspection};
pub use ledger::{Ledger, Why};
pub use no_proxy::Exception;
pub(crate) use page::{came_instead, looks_like_page, title};
pub use proxy::{Decision, ProxyAccount, ProxyRules, ProxyUrl, Rule};
pub use range::from_offset;
pub(crate) use retry::backoff;
pub use tls::TlsProfile;
pub use transport::{HostRule, Request, Transport, TransportConfig};
