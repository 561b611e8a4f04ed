//! One transport for everything on the wire: proxy rules, TLS, retries, a gate per host, redirects
//! with a decision at every hop, and the ledger of hosts.

mod body;
mod certificate;
mod door;
mod error;
mod explain;
mod gate;
mod inspect;
mod ledger;
mod no_proxy;
mod probe;
mod proxy;
mod retry;
mod tls;
mod transport;
mod trust;
mod tunnel;

pub use body::{Body, ByteStream, Response, from_offset};
pub use certificate::Certificate;
pub use error::{Error, ErrorKind, shown_url};
pub use inspect::{Handshake, Inspection};
pub use ledger::{Ledger, Why};
pub use no_proxy::Exception;
pub use proxy::{Decision, ProxyAccount, ProxyRules, ProxyUrl, Rule};
pub use tls::TlsProfile;
pub use transport::{HostRule, Request, Transport, TransportConfig};
