//! The site document: a place where landfall or its users run; one schema for both sides of the gap.

mod site;

pub use site::{
    ClusterNoProxy, Credentials, Destinations, IndexPolicy, NoProxy, PathEntry, Proxy, RegistrySite, Site,
    SiteError, Upstream, mapping,
};
