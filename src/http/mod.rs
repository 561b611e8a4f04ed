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
mod lost_hosts;
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
mod whole_body;

pub(crate) use body::{Body, ByteStream, Response};
pub(crate) use certificate::Certificate;
pub(crate) use error::{ApiError, Error, ErrorKind, host_port, shown_url};
pub(crate) use html_page::{came_instead, looks_like_page, title};
pub(crate) use inspect::{Inspection, Knocked};
pub(crate) use ledger::Purpose;
pub(crate) use no_proxy::is_direct;
pub(crate) use proxy::{ProxyAccount, ProxyRules, ProxySettingError};
pub(crate) use range::from_offset;
pub(crate) use request::Request;
pub(crate) use retry::{Attempts, RetryPolicy};
pub(crate) use send::SIGN_IN;
pub(crate) use settings::{HostRule, TransportConfig};
pub(crate) use tls::{TlsError, TlsProfile};
pub(crate) use transport::Transport;
pub(crate) use whole_body::BodyFailure;
