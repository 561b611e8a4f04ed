//! The test kit: small bundles, bundles of somebody who lies, and what the fuzz targets call.

pub mod fuzz;
#[cfg(test)]
mod hostile;
pub(crate) mod sample;
#[cfg(test)]
mod tests;
