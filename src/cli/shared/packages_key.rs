//! `--packages-key`: the OpenPGP key with which a site signs package metadata.

use crate::cli::shared::{CliError, Context};
use clap::Args;
use landfall_content::BlobRead;
use landfall_item::{GeneratedFile, LockedPackageSet, OfferedIndex, trimmed_metadata};
use landfall_model::document::read_input;
use landfall_model::sign::OpenPgpSigner;
use std::path::PathBuf;

/// The environment variable with the passphrase of the key.
const PASSPHRASE: &str = "LANDFALL_PACKAGES_PASSPHRASE";

#[derive(Args)]
pub(crate) struct PackagesKey {
    /// Sign the metadata of packages with `index: trimmed` with this OpenPGP private key file. Its
    /// passphrase is read from `LANDFALL_PACKAGES_PASSPHRASE`
    #[arg(long, value_name = "FILE")]
    packages_key: Option<PathBuf>,
}

impl PackagesKey {
    /// The signed metadata of the `sets` that have `index: trimmed`. Returns `None` if there are
    /// such sets and no key is named.
    pub(crate) fn sign_metadata<'s>(
        &self,
        sets: impl Iterator<Item = (&'s LockedPackageSet, &'s dyn BlobRead)>,
        context: &Context,
    ) -> Result<Option<Vec<GeneratedFile>>, CliError> {
        let sets: Vec<_> = sets.collect();
        if !sets
            .iter()
            .any(|(set, _)| set.index == OfferedIndex::Trimmed)
        {
            return Ok(Some(Vec::new()));
        }
        let Some(path) = &self.packages_key else {
            return Ok(None);
        };
        let wrong =
            |why: &dyn std::fmt::Display| CliError::usage(format!("{}: {why}", path.display()));
        let bytes = read_input(path).map_err(|error| wrong(&error))?;
        let passphrase = std::env::var(PASSPHRASE).ok();
        let signer =
            OpenPgpSigner::parse(&bytes, passphrase.as_deref()).map_err(|error| wrong(&error))?;
        Ok(Some(trimmed_metadata(
            sets.into_iter(),
            &signer,
            &context.limits,
        )?))
    }
}
