//! The site document: a place where landfall or its users run; one schema for both sides of the gap.

mod site;

pub use site::{IndexPolicy, Site, SiteError, mapping};
pub(crate) use site::{ClusterNoProxy, Credentials, Destinations, NoProxy, PathEntry, Proxy, RegistrySite, Upstream};
