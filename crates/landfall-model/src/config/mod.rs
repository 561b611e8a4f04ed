//! The site document (`site.yaml`), which describes one location: registry, proxy and clusters.
//! Both sides of the air gap use the same schema.

mod platforms;
mod registry;
mod site;
mod starter_site;
mod tkg_import;

pub use self::platforms::SiteCluster;
pub use self::registry::{IndexPolicy, PathDestinations, ReferrerPolicy};
pub use self::site::{ClusterNoProxy, Site, SiteCredentials, SiteProxy, destination_map};
pub use self::starter_site::starter_site;
pub use self::tkg_import::{TkgSite, read_tkg_site};
