//! The site document: a place where landfall or its users run; one schema for both sides of the
//! gap.

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

pub use credentials::SiteCredentials;
pub use first::starter_site;
pub use platforms::SiteCluster;
pub use proxy::SiteProxy;
pub use registry::IndexPolicy;
pub use registry::PathDestinations;
pub use site::{Site, SiteError, destination_map};
pub use tkg::{TkgSite, read_tkg_site};
