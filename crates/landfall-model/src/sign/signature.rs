//! Signatures in the format of OpenSSH, as PROTOCOL.sshsig defines it: parsing and verification.

use super::public_key::{PublicKey, Unverifiable};
use super::signature_error::SignatureError;
use super::ssh_encoding::{SshReader, armor, dearmor, strings};
use sha2::{Digest, Sha256, Sha512};
use std::io::{self, Read};

const LABEL: &str = "SSH SIGNATURE";
const MAGIC: &[u8] = b"SSHSIG";
const VERSION: u32 = 1;

/// A parsed signature, which proves nothing before [`Signature::check`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    key: PublicKey,
    namespace: String,
    hash: SignatureHash,
    /// In SSH encoding: the algorithm, then the value.
    value: Vec<u8>,
}

/// The algorithm by which the message is hashed before it is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SignatureHash {
    Sha256,
    Sha512,
}

impl SignatureHash {
    fn name(self) -> &'static str {
        match self {
            SignatureHash::Sha256 => "sha256",
            SignatureHash::Sha512 => "sha512",
        }
    }

    fn digest(self, message: &[u8]) -> Vec<u8> {
        match self {
            SignatureHash::Sha256 => Sha256::digest(message).to_vec(),
            SignatureHash::Sha512 => Sha512::digest(message).to_vec(),
        }
    }
}

/// Returns the data to sign for `message`. Like `ssh-keygen`, it uses SHA-512.
pub(super) fn data_to_sign(namespace: &str, message: &[u8]) -> Vec<u8> {
    signed_data(
        namespace,
        SignatureHash::Sha512,
        &SignatureHash::Sha512.digest(message),
    )
}

fn signed_data(namespace: &str, hash: SignatureHash, hashed: &[u8]) -> Vec<u8> {
    let fields = [namespace.as_bytes(), b"", hash.name().as_bytes(), hashed];
    [MAGIC, &strings(&fields)].concat()
}

fn hash_content<D: Digest>(mut hash: D, content: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut piece = vec![0; 64 << 10];
    loop {
        match content.read(&mut piece)? {
            0 => return Ok(hash.finalize().to_vec()),
            count => hash.update(&piece[..count]),
        }
    }
}

impl Signature {
    pub(super) fn new(key: PublicKey, namespace: &str, value: Vec<u8>) -> Signature {
        Signature {
            key,
            namespace: namespace.into(),
            hash: SignatureHash::Sha512,
            value,
        }
    }

    /// Parses a signature that `ssh-keygen -Y sign` wrote.
    ///
    /// # Errors
    /// Returns [`SignatureError::Malformed`] if `text` is not a signature.
    pub fn parse(text: &[u8]) -> Result<Signature, SignatureError> {
        let parse = || {
            let bytes = dearmor(LABEL, std::str::from_utf8(text).ok()?)?;
            let mut reader = SshReader(bytes.strip_prefix(MAGIC)?);
            (reader.u32()? == VERSION).then_some(())?;
            let key = PublicKey::from_blob(reader.string()?)?;
            let namespace = reader.text()?.to_owned();
            let _reserved = reader.string()?;
            let hash = match reader.text()? {
                "sha256" => SignatureHash::Sha256,
                "sha512" => SignatureHash::Sha512,
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
        parse().ok_or(SignatureError::Malformed)
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
    pub fn check(&self, namespace: &str, message: &[u8]) -> Result<(), SignatureError> {
        self.check_hash(namespace, &self.hash.digest(message))
    }

    fn check_hash(&self, namespace: &str, hash: &[u8]) -> Result<(), SignatureError> {
        if self.namespace != namespace {
            return Err(SignatureError::Namespace {
                found: self.namespace.escape_default().to_string(),
                wanted: namespace.into(),
            });
        }
        let key = self.key.clone();
        match key.has_signed(&self.value, &signed_data(namespace, self.hash, hash)) {
            Ok(true) => Ok(()),
            Ok(false) => Err(SignatureError::OtherContent { key }),
            Err(Unverifiable::Weak) => Err(SignatureError::Weak { key }),
            Err(Unverifiable::TooLong) => Err(SignatureError::TooLong { key }),
            Err(Unverifiable::Algorithm(algorithm)) => Err(SignatureError::Algorithm {
                kind: self.key.kind().into(),
                algorithm,
            }),
        }
    }

    /// Like [`Signature::check`], for the message that `content` yields.
    ///
    /// # Errors
    /// Fails if `content` cannot be read. The inner result is that of [`Signature::check`].
    pub fn check_content(
        &self,
        namespace: &str,
        content: &mut impl Read,
    ) -> io::Result<Result<(), SignatureError>> {
        let hash = match self.hash {
            SignatureHash::Sha256 => hash_content(Sha256::new(), content)?,
            SignatureHash::Sha512 => hash_content(Sha512::new(), content)?,
        };
        Ok(self.check_hash(namespace, &hash))
    }

    pub(super) fn to_text(&self) -> String {
        let fields = [
            &self.key.blob[..],
            self.namespace.as_bytes(),
            b"",
            self.hash.name().as_bytes(),
            &self.value,
        ];
        armor(
            LABEL,
            &[MAGIC, &VERSION.to_be_bytes(), &strings(&fields)].concat(),
        )
    }
}
