//! One transport for everything on the wire: proxy rules, TLS, retries, limits per host, a decision at every hop of a
//! redirect, and the ledger of hosts.

mod body;
mod causes;
mod certificate;
mod clients;
mod connect;
mod error;
mod exchange;
mod explain;
mod host_limiter;
mod html_page;
mod inspect;
mod ledger;
mod no_proxy;
mod probe;
mod proxy;
mod proxy_sign_in;
mod range;
mod rate_limit;
mod request;
mod retry;
mod scheme;
mod send;
mod settings;
mod tls;
mod transport;
mod upload_watch;
mod verifier;

pub use body::{Body, ByteStream, Response};
pub use certificate::Certificate;
pub use connect::ConnectError;
pub use error::{ApiError, Error, ErrorKind, shown_url};
pub(crate) use html_page::{came_instead, looks_like_page, title};
pub use inspect::{Handshake, Inspection};
pub use ledger::{Ledger, Purpose};
pub use no_proxy::NoProxyEntry;
pub use proxy::{
    ProxyAccount, ProxyChoice, ProxyRule, ProxyRules, ProxySettingError, ProxyUrl, ProxyUrlError,
};
pub use range::from_offset;
pub use request::Request;
pub use retry::{Attempts, RetryPolicy};
pub use settings::{HostRule, TransportConfig};
pub use tls::{TlsError, TlsProfile};
pub use transport::Transport;
