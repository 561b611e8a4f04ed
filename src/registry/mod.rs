//! The OCI distribution protocol over [`crate::http`], one session per registry host.

mod answer;
mod auth;
mod auth_file;
mod base_url;
mod blobs;
mod certs_d;
mod challenge;
#[cfg(feature = "cli")]
mod checks;
mod credential;
#[cfg(feature = "cli")]
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

#[cfg(any(test, fuzzing))]
pub(crate) use answer::fuzz;
pub(crate) use certs_d::{certs_d, certs_d_folders};
pub(crate) use challenge::Challenge;
#[cfg(feature = "cli")]
pub(crate) use checks::SparseIndex;
pub(crate) use credential::{CredentialError, CredentialLookup};
#[cfg(feature = "cli")]
pub(crate) use deletion::deletes_nothing;
pub(crate) use host_rules::host_rules;
pub(crate) use keychain::Keychain;
pub(crate) use list_answers::{ReferrersAnswer, TagList};
pub(crate) use listing::referrers_in;
pub(crate) use manifests::RawManifest;
pub(crate) use proxy_settings::proxy_rules;
pub(crate) use refusal::{is_immutable, is_quota, may_be_a_race, refuses_children};
pub(crate) use session::Session;
pub(crate) use sessions::Sessions;
pub(crate) use setup_error::SetupError;
pub(crate) use sink::RegistrySink;
pub(crate) use site_account::{site_account, site_proxy_accounts};
