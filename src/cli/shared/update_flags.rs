//! The flags that `update` and `refresh` share, and the files that they read.

use crate::cli::shared::manifest_args::ManifestArgs;
use crate::cli::shared::previous_lock::load_previous_lock;
use crate::cli::shared::{CliError, Context};
use crate::client::PreviousLock;
use crate::update::{FirstSights, UpdateRequest, UrgentVersion};
use clap::Args;
use landfall_item::lockfile::FILE_NAME;
use landfall_model::NamePattern;
use landfall_model::Platform;
use landfall_model::document::read_text_input;
use std::path::{Path, PathBuf};

/// The flags of `update` and `refresh`.
#[derive(Args)]
pub(crate) struct UpdateFlags {
    #[command(flatten)]
    manifests: ManifestArgs,
    /// A platform for the images of plain lists, as in linux/amd64 [default: all] (may be repeated)
    #[arg(long = "platform", value_name = "OS/ARCH")]
    platforms: Vec<Platform>,
    /// The lock to update
    #[arg(long, value_name = "FILE", default_value = FILE_NAME)]
    pub(crate) lock: PathBuf,
    /// Update only this variable, item, package, list or trust root; * matches any text (may be
    /// repeated)
    #[arg(long, value_name = "PATTERN")]
    only: Vec<NamePattern>,
    /// Use this version even if it is younger than the minimum age; the policy must still allow it
    /// (may be repeated)
    #[arg(long, value_name = "NAME=VERSION")]
    urgent: Vec<UrgentVersion>,
    /// Also look up signatures and other referrers of images that did not change
    #[arg(long)]
    pub(crate) referrers: bool,
}

impl UpdateFlags {
    /// Reads the previous lock and the file of first sights, which records when each version was
    /// first seen. Checks that the manifests can be read, and records them as inputs.
    pub(crate) fn open(&self, context: &Context) -> Result<UpdateInputs<'_>, CliError> {
        let paths = self.manifests.paths()?;
        context.read_manifests(&paths, &self.platforms)?;
        let sights_path = FirstSights::path_beside(&self.lock);
        let (sights, rewrite_sights) = load_first_sights(&sights_path)?;
        Ok(UpdateInputs {
            flags: self,
            paths,
            sights,
            rewrite_sights,
            sights_path,
            previous_lock: load_previous_lock(context, &self.lock)?,
        })
    }
}

/// Reads the file of first sights. Without the file, nothing was seen before. Also returns whether
/// its text differs from the text that landfall writes, as after a merge.
fn load_first_sights(path: &Path) -> Result<(FirstSights, bool), CliError> {
    if !path.exists() {
        return Ok((FirstSights::default(), false));
    }
    let cannot = |why: String| CliError::usage(format!("cannot read {}: {why}", path.display()));
    let text = read_text_input(path).map_err(|error| cannot(error.to_string()))?;
    let sights = FirstSights::parse(&text).map_err(|error| cannot(error.to_string()))?;
    let rewrite = text != sights.to_text();
    Ok((sights, rewrite))
}

/// The files that an update reads.
pub(crate) struct UpdateInputs<'a> {
    flags: &'a UpdateFlags,
    paths: Vec<PathBuf>,
    sights: FirstSights,
    rewrite_sights: bool,
    sights_path: PathBuf,
    pub(crate) previous_lock: Option<PreviousLock>,
}

impl UpdateInputs<'_> {
    /// The request to upstream. With `every_digest`, it also asks for the digest of each image, to
    /// detect tags that were pushed again.
    pub(crate) fn request(&self, every_digest: bool) -> UpdateRequest<'_> {
        UpdateRequest {
            paths: &self.paths,
            platforms: &self.flags.platforms,
            old: self.previous_lock.as_ref().map(|old| &old.lock),
            only: &self.flags.only,
            every_digest,
            sights: &self.sights,
            rewrite_sights: self.rewrite_sights,
            sights_path: &self.sights_path,
            urgent: &self.flags.urgent,
        }
    }
}
