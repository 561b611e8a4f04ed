//! The key of OpenPGP with which a site signs metadata of packages, as machines trust it.

use super::error::RenderError;
use super::platform::{InputFlag, PlatformInput};
use super::request::RenderRequest;
use landfall_item::{LockedPackageSet, OfferedIndex};
use landfall_model::document::read_input;
use landfall_model::sign::OpenPgpSigner;

/// The key, as platforms take it.
pub(super) const PACKAGES_KEY: PlatformInput = PlatformInput {
    name: "packages-key",
    flag: InputFlag::Long,
    value_name: "FILE",
    help: "The key of OpenPGP, public or private, by which the site signs metadata of packages with `index: trimmed`",
};

/// The certificates of the site's key, armored, where one of `sets` has metadata that it signs.
///
/// # Errors
/// When there is none, or it cannot be read.
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
    match texts.is_empty() {
        false => Ok(Some(texts)),
        true => Err(RenderError::Site(format!(
            "{} has `index: trimmed`, so the site signs its metadata: name its OpenPGP key with --packages-key FILE",
            set.name
        ))),
    }
}
