//! The hosts that a lock needs on the connected side: observed by earlier runs, predicted from the
//! lock or the manifests and from the documentation of registry operators, or declared as
//! endpoints. Formats them as lists, and as rules of firewalls and proxies.

mod diff;
mod error;
mod format;
mod host;
mod known_services;
mod needed;
mod pattern;
mod probe;
mod record;
mod role;
mod source_kind;
mod unresolved;

pub(crate) use diff::{diff, read_list};
pub(crate) use error::EgressError;
pub(crate) use format::FORMATS;
pub(crate) use host::{EgressHost, HostEvidence};
pub(crate) use needed::{Egress, EgressQuery, needed};
pub(crate) use probe::probe;
#[cfg(any(test, fuzzing))]
pub(crate) use record::fuzz;
pub(crate) use record::{ContactRecord, remember};
pub(crate) use role::EgressRole;
pub(crate) use unresolved::{UpdateSources, unresolved_lock};
