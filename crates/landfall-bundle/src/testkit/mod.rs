//! The test kit: small bundles, forged bundles, and the functions that fuzz targets call.
#![allow(
    clippy::missing_panics_doc,
    reason = "a fuzz target panics when it finds a bug"
)]

#[cfg(test)]
mod delta_tests;
#[cfg(test)]
mod forged_index_tests;
#[cfg(test)]
mod frozen_journals;
pub mod fuzz;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod pack_tests;
#[cfg(test)]
mod recipe_tests;
pub mod sample;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod volume_tests;
