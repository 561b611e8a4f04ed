//! The site document: a place where landfall or its users run; one schema for both sides of the gap.

mod credentials;
mod first;
mod name_check;
mod platforms;
mod proxy;
mod registry;
mod signers;
mod site;
mod tkg;
mod upstream;

pub(crate) use credentials::Credentials;
pub(crate) use first::first_site;
pub(crate) use platforms::Cluster;
pub(crate) use proxy::Proxy;
pub(crate) use registry::Destinations;
pub use registry::IndexPolicy;
pub use site::{Site, SiteError, mapping};
pub(crate) use tkg::{TkgSite, site_of_tkg};
