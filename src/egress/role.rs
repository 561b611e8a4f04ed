//! The role of the machines for which hosts are listed, as in `landfall doctor --role`.

use super::host::{EgressHost, HostEvidence};
use landfall_item::lockfile::Endpoint;
use landfall_model::document::nearest;
use std::collections::BTreeSet;

/// The role of the machine that runs landfall.
pub(super) const OWN_ROLE: &str = "landfall";

/// The role of the machines for which hosts are listed.
#[derive(Debug)]
pub(crate) struct EgressRole(String);

impl EgressRole {
    /// Returns the role `name`, or the reason why neither landfall nor an endpoint has it.
    pub(crate) fn new(name: &str, endpoints: &[Endpoint]) -> Result<EgressRole, String> {
        let named = endpoints.iter().flat_map(|endpoint| &endpoint.from);
        let roles: BTreeSet<&str> = named.map(String::as_str).chain([OWN_ROLE]).collect();
        if roles.contains(name) {
            return Ok(EgressRole(name.to_owned()));
        }
        let near = nearest(name, roles.iter().copied())
            .map(|near| format!("did you mean {near}? "))
            .unwrap_or_default();
        let all = roles.into_iter().collect::<Vec<_>>().join(", ");
        Err(format!(
            "there is no role {name}: {near}known roles are {all}"
        ))
    }

    /// Whether it is the machine that runs landfall, which needs the hosts of the lock.
    pub(crate) fn is_own(&self) -> bool {
        self.0 == OWN_ROLE
    }

    /// Whether machines of this role need the endpoint.
    pub(super) fn needs(&self, endpoint: &Endpoint) -> bool {
        endpoint.is_for(&self.0)
    }

    /// Whether machines of this role need a host of an older list.
    pub(crate) fn needs_host(&self, host: &EgressHost) -> bool {
        if host.from.is_empty() {
            // an endpoint without roles is one of all machines, and a host of the lock is
            // landfall's
            return self.is_own() || host.known == HostEvidence::Declared;
        }
        host.from.contains(&self.0)
    }
}
