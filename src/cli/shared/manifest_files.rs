//! The manifests of a verb, named by their places or by `-f`.

use super::Failure;
use clap::Args;
use std::path::PathBuf;

/// The arguments that name manifests.
#[derive(Args)]
pub(crate) struct ManifestFiles {
    /// A manifest, a folder of manifests, or a plain list of images (may be repeated)
    #[arg(value_name = "MANIFEST|DIR|LIST")]
    places: Vec<PathBuf>,
    /// The same by a flag (may be repeated)
    #[arg(short = 'f', long = "file", value_name = "MANIFEST|DIR|LIST", num_args = 1..)]
    manifests: Vec<PathBuf>,
}

impl ManifestFiles {
    /// The paths, those of `-f` first.
    ///
    /// # Errors
    /// When none is given (exit 2).
    pub(crate) fn paths(&self) -> Result<Vec<PathBuf>, Failure> {
        let paths: Vec<PathBuf> = self.manifests.iter().chain(&self.places).cloned().collect();
        match paths.is_empty() {
            true => Err(Failure::usage(
                "name a manifest, as in -f manifest.yaml; `landfall init` writes a first one",
            )),
            false => Ok(paths),
        }
    }

    /// Whether none is given.
    pub(crate) fn is_empty(&self) -> bool {
        self.manifests.is_empty() && self.places.is_empty()
    }

    /// Removes from the places the one that `is_other` takes for something else, and returns it.
    pub(crate) fn take_other<T>(&mut self, is_other: impl Fn(&PathBuf) -> Option<T>) -> Option<T> {
        let (at, other) = self
            .places
            .iter()
            .enumerate()
            .find_map(|(at, place)| Some((at, is_other(place)?)))?;
        self.places.remove(at);
        Some(other)
    }
}
