//! The OCI distribution protocol over [`crate::http`], one session a registry host.

mod auth;
mod blobs;
mod body;
mod certs_d;
mod challenge;
mod credentials;
mod harbor;
mod referrers;
mod session;
mod sessions;
mod sink;
mod upload;

pub use certs_d::{certs_d, certs_d_folders};
pub use challenge::{Challenge, read as read_challenge};
pub use credentials::{Credential, Keychain, Secret};
pub use harbor::Quota;
pub use referrers::entries as referrer_entries;
pub use session::{RawManifest, Session};
pub use sessions::{Place, Sessions, SetupError, host_rules, proxy_rules};
pub use sink::RegistrySink;
pub use upload::is_quota;
