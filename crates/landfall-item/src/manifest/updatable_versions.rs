//! Finds everything in manifests that `landfall update` may change.

use super::entry_versions::versions_in_entries;
use super::expanded_manifest::{ListSource, TrustRootSource};
use super::load::{FileOverrides, LoadManifestError, each};
use super::updatable_version::UpdatableVersion;
use super::variable_versions::versions_in_variables;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The lists with a `from` in the manifests at `paths`.
///
/// # Errors
/// If a file or folder cannot be read, or a manifest contains an error.
pub fn list_sources(
    paths: &[PathBuf],
    edited: &FileOverrides,
) -> Result<Vec<ListSource>, LoadManifestError> {
    Ok(each(paths, edited)?
        .into_iter()
        .flat_map(|read| read.requests.list_sources)
        .collect())
}

/// The trust roots with a `from` in the manifests at `paths`, each once.
///
/// # Errors
/// If a file or folder cannot be read, or a manifest contains an error.
pub fn trust_root_sources(
    paths: &[PathBuf],
    edited: &FileOverrides,
) -> Result<Vec<TrustRootSource>, LoadManifestError> {
    let mut sources: Vec<TrustRootSource> = Vec::new();
    for read in each(paths, edited)? {
        for source in read.requests.trust_root_sources {
            if !sources.contains(&source) {
                sources.push(source);
            }
        }
    }
    Ok(sources)
}

/// The versions with an update policy in the manifests at `paths`, in the order of the files;
/// variables before entries. Values that share a YAML anchor are one version, and the first policy
/// for it is used.
///
/// # Errors
/// If a file or folder cannot be read, or a manifest contains an error.
pub fn updatable_versions(
    paths: &[PathBuf],
    edited: &FileOverrides,
) -> Result<Vec<UpdatableVersion>, LoadManifestError> {
    let mut all = Vec::new();
    for read in each(paths, edited)? {
        let mut known = BTreeSet::new();
        let versions = versions_in_variables(&read)
            .into_iter()
            .chain(versions_in_entries(&read));
        // the position of an alias is that of its anchor, so each scalar is edited once
        all.extend(versions.filter(|slot| known.insert((slot.at.line, slot.at.column))));
    }
    Ok(all)
}
