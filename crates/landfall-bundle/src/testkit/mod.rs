//! The test kit: small bundles, bundles of somebody who lies, and what the fuzz targets call.
#![allow(
    clippy::missing_panics_doc,
    reason = "a target panics on what it finds"
)]

pub mod fuzz;
#[cfg(test)]
mod hostile;
pub mod sample;
#[cfg(test)]
mod tests;
