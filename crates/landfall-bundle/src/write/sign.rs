//! Signs a bundle: creates signatures over its contents index.

use crate::error::BundleError;
use crate::format::names::NAMESPACE;
use landfall_model::sign::Signer;
use std::path::Path;

/// Signs the contents index of the bundle at `path`. Returns the armored signature.
pub(crate) fn sign_index(
    signer: &Signer,
    index: &[u8],
    path: &Path,
) -> Result<String, BundleError> {
    let text = signer.sign(NAMESPACE, index);
    text.map_err(|source| BundleError::Sign {
        path: path.into(),
        source: source.into(),
    })
}
