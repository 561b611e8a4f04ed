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

mod auth;
mod auth_file;
mod challenge;
mod credential;
mod error_codes;
mod harbor;
mod host_rules;
mod keychain;
mod listing;
mod manifests;
mod response;
mod session;
mod sessions;
mod sink;
mod token_service;
mod upload;
mod upload_body;

pub use self::auth_file::{certs_d, certs_d_folders};
pub use self::challenge::Challenge;
pub use self::credential::{CredentialLookup, site_account, site_proxy_accounts};
pub use self::error_codes::{
    SparseIndexSupport, SparseRefusal, is_immutable_tag_error, is_quota_error, may_be_push_race,
};
pub use self::host_rules::{host_rules, proxy_rules};
pub use self::keychain::Keychain;
pub use self::listing::{ListedReferrers, ReferrersResponse, TagList, referrers_in};
pub use self::manifests::{FetchedManifest, is_deletion_disabled};
#[cfg(any(test, fuzzing, feature = "testkit"))]
pub use self::response::fuzz;
pub use self::session::RegistrySession;
pub use self::sessions::RegistrySessions;
pub use self::sink::RegistrySink;
#[cfg(any(test, fuzzing, feature = "testkit"))]
pub use self::token_service::fuzz_token;
pub use self::token_service::realm_url;
