//! The site document: a place where landfall or its users run; one schema for both sides of the gap.

mod first;
mod site;

pub(crate) use first::first_site;
pub(crate) use site::{Credentials, Destinations, Proxy};
pub use site::{IndexPolicy, Site, SiteError, mapping};
