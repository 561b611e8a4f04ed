//! The manifests that a verb reads: arguments, or values of `-f`.

use crate::cli::shared::{CliError, input_file};
use clap::Args;
use landfall_model::TargetRegistry;
use std::path::PathBuf;

/// The arguments that name manifests.
#[derive(Args)]
pub(crate) struct ManifestArgs {
    /// A manifest, a folder of manifests, or a plain list of images (may be repeated)
    #[arg(value_name = "MANIFEST|DIR|LIST")]
    arguments: Vec<PathBuf>,
    /// A manifest, folder or list, instead of an argument (may be repeated)
    #[arg(short = 'f', long = "file", value_name = "MANIFEST|DIR|LIST", num_args = 1..)]
    manifests: Vec<PathBuf>,
}

impl ManifestArgs {
    /// The paths, those of `-f` first. It is an error if there are none.
    pub(crate) fn paths(&self) -> Result<Vec<PathBuf>, CliError> {
        let paths: Vec<PathBuf> = self
            .manifests
            .iter()
            .chain(&self.arguments)
            .cloned()
            .collect();
        if paths.is_empty() {
            return Err(CliError::usage("no manifest is named").with_help(
                "name one, as in -f manifest.yaml; `landfall init` writes a first one",
            ));
        }
        Ok(paths)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.manifests.is_empty() && self.arguments.is_empty()
    }

    /// Removes the first argument that names a registry, and returns that registry.
    pub(crate) fn take_registry(&mut self) -> Option<TargetRegistry> {
        let (index, registry) = self
            .arguments
            .iter()
            .enumerate()
            .find_map(|(index, path)| Some((index, input_file::registry(path)?)))?;
        self.arguments.remove(index);
        Some(registry)
    }
}
