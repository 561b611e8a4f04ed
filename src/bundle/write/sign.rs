//! Signing a bundle: a signature over its contents index.

use crate::bundle::error::Error;
use crate::bundle::format::contents::Contents;
use crate::bundle::format::names::NAMESPACE;
use crate::sign::Signer;
use std::path::Path;

/// The signature of the bundle with this index, as text.
pub(crate) fn sign(signer: &Signer, contents: &Contents, out: &Path) -> Result<Vec<u8>, Error> {
    let index = contents.to_bytes().map_err(|source| Error::Write { path: out.into(), source })?;
    let text = signer.sign(NAMESPACE, &index);
    text.map(String::into_bytes).map_err(|source| Error::Sign { path: out.into(), source: source.into() })
}
