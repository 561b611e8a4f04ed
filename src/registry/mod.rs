//! The OCI distribution protocol over [`crate::http`], one session a registry host.

mod auth;
mod certs_d;
mod challenge;
mod credentials;
mod referrers;
mod session;
mod sessions;
mod upload;

pub use certs_d::{certs_d, certs_d_folders};
pub use credentials::{Credential, Keychain, Secret};
pub use referrers::entries as referrer_entries;
pub use session::{RawManifest, Session};
pub use sessions::{Sessions, SetupError, host_rules, proxy_rules};
pub use upload::Uploaded;
