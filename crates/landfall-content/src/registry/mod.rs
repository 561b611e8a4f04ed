//! The OCI distribution protocol over [`landfall_http`]. Each registry host has one session for
//! reads and one for writes.
//!
//! The first request to a registry is sent before all others and finds out how to authenticate. The
//! first request with each account is sent alone, too, since namespaces may have their own
//! accounts. Tokens are requested once per repository and scope while other requests wait. A
//! refusal belongs to an account (`account_state`): an account that was never accepted is presented
//! once, and its refusal is final for all requests, so that it is not locked out. An account that
//! was accepted before is tried once more, alone. If it is refused again, a request to `/v2/`, or
//! to the token service without a scope, shows whether the account or only this scope is refused.
//! If a registry redirects to a host with a token realm of its own, the tokens for that host are
//! anonymous, one for each scope and host (`redirect_tokens`).
//!
//! If a registry is named by a loopback or private address and nothing is configured for it, https
//! is tried first: a ClientHello is sent, and plain http is used only if the response starts with
//! `HTTP/`.

mod account_state;
mod auth;
mod auth_file;
mod blobs;
mod capability_checks;
mod certs_d;
mod challenge;
mod credential;
mod deletion;
mod error_codes;
mod harbor;
mod host_rules;
mod keychain;
mod list_responses;
mod listing;
mod manifests;
mod proxy_settings;
mod redirect_tokens;
mod registry_url;
mod response;
mod scope;
mod session;
mod sessions;
mod setup_error;
mod sink;
mod site_account;
mod site_credentials;
mod token;
mod token_service;
mod upload;
mod upload_body;
mod upload_session;

pub use capability_checks::SparseIndexSupport;
pub use certs_d::{certs_d, certs_d_folders};
pub use challenge::Challenge;
pub use credential::{CredentialError, CredentialLookup};
pub use deletion::is_deletion_disabled;
pub use error_codes::{SparseRefusal, is_immutable_tag_error, is_quota_error, may_be_push_race};
pub use host_rules::host_rules;
pub use keychain::Keychain;
pub use list_responses::{ListedReferrers, ReferrersResponse, TagList};
pub use listing::referrers_in;
pub use manifests::FetchedManifest;
pub use proxy_settings::proxy_rules;
#[cfg(any(test, fuzzing, feature = "testkit"))]
pub use response::fuzz;
pub use session::RegistrySession;
pub use sessions::RegistrySessions;
pub use setup_error::SetupError;
pub use sink::RegistrySink;
pub use site_account::{site_account, site_proxy_accounts};
#[cfg(any(test, fuzzing, feature = "testkit"))]
pub use token::fuzz_token;
pub use token::realm_url;
