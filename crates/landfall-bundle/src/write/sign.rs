//! Signing a bundle: signatures over its contents index.

use crate::error::BundleError;
use crate::format::names::NAMESPACE;
use landfall_model::sign::Signer;
use std::path::Path;

/// The signature of the bundle at `path` with this contents index, as text.
///
/// # Errors
/// When the key or its agent does not sign.
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
