//! The OCI distribution protocol over [`landfall_http`], one session per registry host.
//!
//! The first request to a registry goes alone and finds out how to authenticate; so does the first
//! one with each account, since namespaces may have their own. Tokens are requested once per
//! repository and scope while others wait. A refusal belongs to an account (`standing`): an
//! account that was never accepted is presented once, and its refusal is final for all requests,
//! so that it is not locked out. An account that was accepted before is tried once more, alone; if
//! it is refused again, `/v2/`, or the token service without a scope, tells whether the account or
//! only this scope is refused. If a registry redirects to a host with a token realm of its own,
//! the tokens for it are anonymous, one for each scope and host (`foreign`).
//!
//! If a registry is named by a loopback or private address and nothing is configured for it, https
//! is tried first: a ClientHello is sent, and plain http is used only if the response starts with
//! `HTTP/`.

mod answer;
mod auth;
mod auth_file;
mod base_url;
mod blobs;
mod certs_d;
mod challenge;
mod checks;
mod credential;
mod deletion;
mod foreign;
mod harbor;
mod host_rules;
mod keychain;
mod list_answers;
mod listing;
mod manifests;
mod proxy_settings;
mod refusal;
mod scope;
mod session;
mod sessions;
mod setup_error;
mod sink;
mod site_account;
mod site_secret;
mod standing;
mod token;
mod token_service;
mod upload;
mod upload_body;
mod upload_session;

#[cfg(any(test, fuzzing, feature = "testkit"))]
pub use answer::fuzz;
pub use certs_d::{certs_d, certs_d_folders};
pub use challenge::Challenge;
pub use checks::SparseIndex;
pub use credential::{CredentialError, CredentialLookup};
pub use deletion::deletes_nothing;
pub use host_rules::host_rules;
pub use keychain::Keychain;
pub use list_answers::{ReferrersAnswer, TagList};
pub use listing::referrers_in;
pub use manifests::RawManifest;
pub use proxy_settings::proxy_rules;
pub use refusal::{is_immutable, is_quota, may_be_a_race, refuses_children};
pub use session::Session;
pub use sessions::Sessions;
pub use setup_error::SetupError;
pub use sink::RegistrySink;
pub use site_account::{site_account, site_proxy_accounts};
