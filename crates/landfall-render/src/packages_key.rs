//! The OpenPGP key with which a site signs package metadata.

use super::error::RenderError;
use super::platform::{InputFlag, PlatformInput};
use super::request::RenderRequest;
use landfall_item::{LockedPackageSet, OfferedIndex};
use landfall_model::document::read_input;
use landfall_model::sign::OpenPgpSigner;

/// The input for the key.
pub(super) const PACKAGES_KEY: PlatformInput = PlatformInput {
    name: "packages-key",
    flag: InputFlag::Long,
    value_name: "FILE",
    help: "The OpenPGP key, public or private, with which the site signs the metadata of package \
           sets with `index: trimmed`",
};

/// If the site signs the metadata of any of `sets`, returns the armored public halves of the keys
/// that it signs with. The metadata of other sets is signed by the upstream repository.
/// Fails if the site signs metadata and the user named no key.
pub(super) fn packages_key(
    request: &RenderRequest<'_>,
    sets: &[&LockedPackageSet],
) -> Result<Option<String>, RenderError> {
    let Some(set) = sets.iter().find(|set| set.index == OfferedIndex::Trimmed) else {
        return Ok(None);
    };
    let mut texts = String::new();
    for path in request.paths(PACKAGES_KEY.name) {
        let bytes = read_input(path).map_err(|source| RenderError::Read {
            path: path.clone(),
            source,
        })?;
        let keys = OpenPgpSigner::public_half(&bytes);
        let keys =
            keys.map_err(|error| RenderError::Site(format!("{}: {error}", path.display())))?;
        texts.extend(keys.certificates());
    }
    if texts.is_empty() {
        return Err(RenderError::Site(format!(
            "{} has `index: trimmed`, so the site signs its metadata: name its OpenPGP key with \
             --packages-key FILE",
            set.name
        )));
    }
    Ok(Some(texts))
}
