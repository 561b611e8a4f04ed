//! Signatures in the format of OpenSSH, as PROTOCOL.sshsig defines it: parsing and verification.

use super::public_key::{PublicKey, SshReader, armor, dearmor, strings};
use crate::{Algorithm, Digest, Failure, digest_of};
use std::io::{self, Read};

const LABEL: &str = "SSH SIGNATURE";
const MAGIC: &[u8] = b"SSHSIG";
const VERSION: u32 = 1;

/// A parsed signature, which proves nothing before [`Signature::check`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    key: PublicKey,
    namespace: String,
    /// The algorithm by which the message is hashed before it is signed.
    hash: Algorithm,
    /// In SSH encoding: the algorithm, then the value.
    value: Vec<u8>,
}

/// Returns the data to sign for `message`. Like `ssh-keygen`, it uses SHA-512.
pub(super) fn data_to_sign(namespace: &str, message: &[u8]) -> Vec<u8> {
    signed_data(namespace, &Digest::compute(Algorithm::Sha512, message))
}

fn signed_data(namespace: &str, hash: &Digest) -> Vec<u8> {
    let algorithm = hash.algorithm().as_str();
    let fields = [
        namespace.as_bytes(),
        b"",
        algorithm.as_bytes(),
        hash.bytes(),
    ];
    [MAGIC, &strings(&fields)].concat()
}

impl Signature {
    pub(super) fn new(key: PublicKey, namespace: &str, value: Vec<u8>) -> Signature {
        Signature {
            key,
            namespace: namespace.into(),
            hash: Algorithm::Sha512,
            value,
        }
    }

    /// Parses a signature that `ssh-keygen -Y sign` wrote.
    ///
    /// # Errors
    /// Fails if `text` is not a signature.
    pub fn parse(text: &[u8]) -> Result<Signature, Failure> {
        let parse = || {
            let bytes = dearmor(LABEL, std::str::from_utf8(text).ok()?)?;
            let mut reader = SshReader(bytes.strip_prefix(MAGIC)?);
            (reader.u32()? == VERSION).then_some(())?;
            let key = PublicKey::from_blob(reader.string()?)?;
            let namespace = reader.text()?.to_owned();
            let _reserved = reader.string()?;
            let hash = match reader.text()? {
                "sha256" => Algorithm::Sha256,
                "sha512" => Algorithm::Sha512,
                _ => return None,
            };
            let value = reader.string()?.to_vec();
            reader.end()?;
            Some(Signature {
                key,
                namespace,
                hash,
                value,
            })
        };
        parse().ok_or_else(|| Failure::usage("it is not an SSH signature, or it is damaged"))
    }

    /// The key that the signature names.
    pub fn key(&self) -> &PublicKey {
        &self.key
    }

    /// Verifies that the key made the signature for `namespace` and `message`.
    /// [`super::AllowedSigners::principals`] decides whether the key may sign.
    ///
    /// # Errors
    /// Fails if the key did not make the signature, or landfall does not support its algorithm.
    pub fn check(&self, namespace: &str, message: &[u8]) -> Result<(), Failure> {
        self.check_hash(namespace, &Digest::compute(self.hash, message))
    }

    /// Whether the key made the signature for `namespace` and `message`.
    pub(super) fn is_for(&self, namespace: &str, message: &[u8]) -> Result<bool, Failure> {
        self.is_for_hash(namespace, &Digest::compute(self.hash, message))
    }

    fn check_hash(&self, namespace: &str, hash: &Digest) -> Result<(), Failure> {
        if self.is_for_hash(namespace, hash)? {
            return Ok(());
        }
        Err(Failure::usage(format!(
            "{} did not make it for this content; the signature or the content was changed, or \
             the signature belongs to other content",
            self.key
        )))
    }

    fn is_for_hash(&self, namespace: &str, hash: &Digest) -> Result<bool, Failure> {
        if self.namespace != namespace {
            return Err(Failure::usage(format!(
                "it was made for \"{}\", not for \"{namespace}\"",
                self.namespace.escape_default()
            )));
        }
        self.key
            .has_signed(&self.value, &signed_data(namespace, hash))
    }

    /// Like [`Signature::check`], for the message that `content` yields.
    ///
    /// # Errors
    /// Fails if `content` cannot be read. The inner result is that of [`Signature::check`].
    pub fn check_content(
        &self,
        namespace: &str,
        content: &mut impl Read,
    ) -> io::Result<Result<(), Failure>> {
        let hash = digest_of(content, self.hash)?;
        Ok(self.check_hash(namespace, &hash))
    }

    pub(super) fn to_text(&self) -> String {
        let fields = [
            &self.key.blob[..],
            self.namespace.as_bytes(),
            b"",
            self.hash.as_str().as_bytes(),
            &self.value,
        ];
        let bytes = [MAGIC, &VERSION.to_be_bytes(), &strings(&fields)].concat();
        // lines as long as those of OpenSSH
        armor(LABEL, &bytes, 70)
    }
}
