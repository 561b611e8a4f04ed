//! landfall inside a program: a [`Client`] is set up once, by a site, flags and environment, and
//! has the verbs that need a network. The command line is one such program.

mod builder;
mod error;
mod network;
mod stores;

pub use builder::ClientBuilder;
pub use error::ClientError;
pub use network::{BundleOptions, Client, PulledBundle};
