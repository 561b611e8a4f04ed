//! Who signed a bundle: its signature, compared with the keys that are allowed.

use super::bundle::Bundle;
use super::index::read_index;
use crate::bundle::error::Error;
use crate::bundle::format::names::NAMESPACE;
use crate::sign::{self, AllowedSigners, PublicKey, Signature};
use jiff::Timestamp;

/// Who signed a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedBy {
    /// The principals of the key, as the file of allowed signers has them.
    pub principals: String,
    /// The key.
    pub key: PublicKey,
}

impl Bundle {
    /// Who of `allowed` signed the bundle, at the time `now`.
    ///
    /// # Errors
    /// When nobody did: it is not signed, or by a key that is not allowed, or the signature is over other content.
    pub fn signed_by(&self, allowed: &AllowedSigners, now: Timestamp) -> Result<SignedBy, Error> {
        let path = &self.0.path;
        let text = self.signature().ok_or_else(|| Error::NotSigned { path: path.clone() })?;
        let (index, _) = read_index(&self.0.volumes, &self.0.index.locator).map_err(|damage| {
            Error::Damaged { path: path.clone(), damage: vec![self.0.volumes.place(damage)] }
        })?;
        check(text, &index, allowed, now)
            .map_err(|source| Error::Signature { path: path.clone(), source: source.into() })
    }
}

/// Who of `allowed` made the signature `text` over `message`.
fn check(
    text: &[u8],
    message: &[u8],
    allowed: &AllowedSigners,
    now: Timestamp,
) -> Result<SignedBy, sign::Error> {
    let signature = Signature::parse(text)?;
    signature.check(NAMESPACE, message)?;
    let key = signature.key();
    let principals = allowed.principals(key, NAMESPACE, now)?.to_owned();
    Ok(SignedBy { principals, key: key.clone() })
}
