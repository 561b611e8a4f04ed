//! SET IT UP. A site is a place where landfall or its users run; one schema for both sides of the gap.

pub mod render;
mod schema;

pub use schema::{
    ClusterNoProxy, Credentials, Destinations, IndexPolicy, NoProxy, PathEntry, Proxy, RegistrySite, Site,
    SiteError, Upstream,
};
