//! The flags of verbs that read one bundle.

use crate::cli::shared::open_bundle::{AcceptedBundle, BundleRequirements, open, put_first};
use crate::cli::shared::{CliError, Context};
use clap::Args;
use landfall_bundle::volume_locations;
use std::path::PathBuf;

/// The flags that name one bundle. It may be partial, and its volumes may be in several folders.
#[derive(Args)]
pub(crate) struct BundleFlags {
    /// The bundle. If its volumes are in several folders, name one volume in each
    /// folder, or the folders
    #[arg(value_name = "BUNDLE", required_unless_present = "named")]
    bundle: Option<PathBuf>,
    /// Other volumes of the bundle
    #[arg(value_name = "VOLUME|FOLDER")]
    more: Vec<PathBuf>,
    /// The bundle, instead of the first argument
    #[arg(long = "bundle", value_name = "BUNDLE")]
    named: Option<PathBuf>,
}

impl BundleFlags {
    /// Opens the bundle. It is an error if an argument does not belong to it.
    pub(crate) fn open(mut self, context: &Context) -> Result<AcceptedBundle, CliError> {
        put_first(self.named, &mut self.bundle, &mut self.more);
        let locations = volume_locations(self.bundle.unwrap_or_default(), &mut self.more);
        if let Some(other) = self.more.first() {
            let other = other.display();
            let first = locations[0].display();
            return Err(CliError::usage(format!(
                "{other} contains no volume of {first}; name only one bundle"
            )));
        }
        let requirements = BundleRequirements {
            allow_partial: true,
            ..BundleRequirements::default()
        };
        open(context, &locations, &requirements)
    }
}
