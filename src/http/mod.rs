//! One transport for everything on the wire: proxy rules, TLS, retries, a gate per host, redirects
//! with a decision at every hop, and the ledger of hosts.

mod body;
mod error;
mod gate;
mod ledger;
mod no_proxy;
mod probe;
mod proxy;
mod retry;
mod tls;
mod transport;

pub use body::{Body, ByteStream, Response, from_offset};
pub use error::{Error, ErrorKind, shown_url};
pub use ledger::{Ledger, Why};
pub use no_proxy::Exception;
pub use proxy::{Decision, ProxyAccount, ProxyRules, ProxyUrl, Rule};
pub use tls::TlsProfile;
pub use transport::{HostRule, Request, Transport, TransportConfig};
