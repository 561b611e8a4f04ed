//! The site document (`site.yaml`), which describes one location: registry, proxy and clusters.
//! Both sides of the air gap use the same schema.

mod credentials;
mod platforms;
mod proxy;
mod registry;
mod registry_check;
mod required_names_check;
mod signers;
mod site;
mod starter_site;
mod tkg_import;
mod upstream;

pub use credentials::SiteCredentials;
pub use platforms::SiteCluster;
pub use proxy::{ClusterNoProxy, SiteProxy};
pub use registry::IndexPolicy;
pub use registry::{PathDestinations, ReferrerPolicy};
pub use site::{Site, SiteError, destination_map};
pub use starter_site::starter_site;
pub use tkg_import::{TkgSite, read_tkg_site};
