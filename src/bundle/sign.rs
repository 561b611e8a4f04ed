//! The signature of a bundle: an entry of its own after the contents index, over that index. So the bundle
//! digest is the same with and without it.

use super::contents::Contents;
use super::medium::Medium;
use super::read::read_index;
use super::{Bundle, Error, Fault, Form, frame, header};
use crate::model::Limits;
use crate::sign::{self, AllowedSigners, PublicKey, Signature, Signer};
use jiff::Timestamp;
use std::path::Path;

/// What signatures of bundles are made for (PROTOCOL.sshsig, "namespace").
pub const NAMESPACE: &str = "landfall-bundle-v1";

/// Name of the signature inside a bundle.
pub(super) const SIGNATURE: &str = "landfall-contents.json.sig";

/// Who signed a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedBy {
    /// The principals of the key, as the file of allowed signers has them.
    pub principals: String,
    /// The key.
    pub key: PublicKey,
}

/// The signature of the bundle with this index, as text.
pub(super) fn sign(signer: &Signer, contents: &Contents, out: &Path) -> Result<Vec<u8>, Error> {
    let index =
        contents.to_bytes().map_err(|error| Error::Write { path: out.into(), source: error.into() })?;
    let text = signer.sign(NAMESPACE, &index);
    text.map(String::into_bytes).map_err(|source| Error::Sign { path: out.into(), source: source.into() })
}

/// The contents of the frames of a signature's entry: tar header, text, padding.
pub(super) fn pieces(text: &[u8]) -> [Vec<u8>; 3] {
    let size = text.len() as u64;
    [header::encode(SIGNATURE, size), text.into(), vec![0; header::padding(size)]]
}

/// How many bytes each of these frames holds, for a text of `size` bytes.
pub(super) fn piece_lens(size: u64) -> [u64; 3] {
    [header::BLOCK as u64, size, header::padding(size) as u64]
}

/// Reads the signature whose entry begins at `at`. `None` where another thing stands there.
pub(super) fn read(medium: &Medium, at: u64) -> Result<Option<Vec<u8>>, Fault> {
    let stored = |at: u64, size: u64| {
        let bytes = medium.bytes_at(at, frame::stored_len(size) as usize).ok()?;
        frame::decode(Form::Stored, &bytes, size as usize).ok()
    };
    let head = stored(at, header::BLOCK as u64).and_then(|block| header::decode(&block));
    let Some((_, size)) = head.filter(|(name, _)| name == SIGNATURE) else { return Ok(None) };
    let fault = |why: &str| Fault::new(SIGNATURE, at, why);
    if !(1..=Limits::default().signature_bytes).contains(&size) {
        return Err(fault("no signature has this size"));
    }
    let text = stored(at + frame::stored_len(header::BLOCK as u64), size);
    text.map(Some).ok_or_else(|| fault("it is damaged"))
}

impl Bundle {
    /// The signature, as `ssh-keygen -Y sign` writes it, where there is one. It is not checked yet.
    pub fn signature(&self) -> Option<&[u8]> {
        self.0.signature.as_deref()
    }

    /// Who of `allowed` signed the bundle, at the time `now`.
    ///
    /// # Errors
    /// When nobody did: it is not signed, or by a key that may not, or the signature is of other content.
    pub fn signed_by(&self, allowed: &AllowedSigners, now: Timestamp) -> Result<SignedBy, Error> {
        let path = &self.0.path;
        let text = self.signature().ok_or_else(|| Error::NotSigned { path: path.clone() })?;
        let (index, _) = read_index(&self.0.medium, &self.0.locator).map_err(|fault| Error::Unsound {
            path: path.clone(),
            faults: vec![self.0.medium.place(fault)],
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
