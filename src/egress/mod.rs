//! The hosts that a lock needs on the connected side: observed by earlier runs, predicted from the
//! lock or the manifests and from the documentation of registry operators, or declared as
//! endpoints. Formats them as lists, and as rules of firewalls and proxies.

mod format;
mod host;
mod known_services;
mod needed;
mod pattern;
mod probe;
mod record;
mod unresolved;

pub(crate) use self::format::FORMATS;
pub(crate) use self::host::{EgressHost, EgressRole, HostEvidence, diff, read_list};
pub(crate) use self::needed::{Egress, EgressQuery, needed};
pub(crate) use self::probe::probe;
#[cfg(any(test, fuzzing))]
pub(crate) use self::record::fuzz;
pub(crate) use self::record::{ContactRecord, remember};
pub(crate) use self::unresolved::{UpdateSources, unresolved_lock};
