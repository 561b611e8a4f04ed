//! A signature in OpenSSH's form (PROTOCOL.sshsig).

use super::error::SignatureError;
use super::key::{PublicKey, Unverifiable};
use super::wire::{Reader, armour, strings, unarmoured};
use sha2::{Digest, Sha256, Sha512};
use std::io::{self, Read};

const LABEL: &str = "SSH SIGNATURE";
const MAGIC: &[u8] = b"SSHSIG";
const VERSION: u32 = 1;

/// A signature. It proves nothing before [`Signature::check`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    key: PublicKey,
    namespace: String,
    hash: Hash,
    /// In SSH's form: the algorithm first.
    value: Vec<u8>,
}

/// How the message is hashed before it is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hash {
    Sha256,
    Sha512,
}

impl Hash {
    fn name(self) -> &'static str {
        match self {
            Hash::Sha256 => "sha256",
            Hash::Sha512 => "sha512",
        }
    }

    fn of(self, message: &[u8]) -> Vec<u8> {
        match self {
            Hash::Sha256 => Sha256::digest(message).to_vec(),
            Hash::Sha512 => Sha512::digest(message).to_vec(),
        }
    }
}

/// The bytes that are signed for `message`: like `ssh-keygen`, its SHA-512.
pub(super) fn to_sign(namespace: &str, message: &[u8]) -> Vec<u8> {
    signed_data(namespace, Hash::Sha512, &Hash::Sha512.of(message))
}

fn signed_data(namespace: &str, hash: Hash, hashed: &[u8]) -> Vec<u8> {
    let fields = [namespace.as_bytes(), b"", hash.name().as_bytes(), hashed];
    [MAGIC, &strings(&fields)].concat()
}

/// The hash of all that `content` gives.
fn hash_of<D: Digest>(mut hash: D, content: &mut impl Read) -> io::Result<Vec<u8>> {
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
            hash: Hash::Sha512,
            value,
        }
    }

    /// Reads a signature as `ssh-keygen -Y sign` writes it.
    ///
    /// # Errors
    /// [`SignatureError::Malformed`].
    pub fn parse(text: &[u8]) -> Result<Signature, SignatureError> {
        let read = || {
            let bytes = unarmoured(LABEL, std::str::from_utf8(text).ok()?)?;
            let mut reader = Reader(bytes.strip_prefix(MAGIC)?);
            (reader.u32()? == VERSION).then_some(())?;
            let key = PublicKey::from_blob(reader.string()?)?;
            let (namespace, _reserved) = (reader.text()?.to_owned(), reader.string()?);
            let hash = match reader.text()? {
                "sha256" => Hash::Sha256,
                "sha512" => Hash::Sha512,
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
        read().ok_or(SignatureError::Malformed)
    }

    /// The key that it names.
    pub fn key(&self) -> &PublicKey {
        &self.key
    }

    /// Checks that its key made it for `namespace` over `message`.
    /// [`super::AllowedSigners::principals`] checks whether the key may sign.
    ///
    /// # Errors
    /// When the key did not make it, or landfall cannot check it.
    pub fn check(&self, namespace: &str, message: &[u8]) -> Result<(), SignatureError> {
        self.check_hash(namespace, &self.hash.of(message))
    }

    fn check_hash(&self, namespace: &str, hash: &[u8]) -> Result<(), SignatureError> {
        if self.namespace != namespace {
            let (found, wanted) = (
                self.namespace.escape_default().to_string(),
                namespace.into(),
            );
            return Err(SignatureError::Namespace { found, wanted });
        }
        let key = || self.key.clone();
        match self
            .key
            .has_signed(&self.value, &signed_data(namespace, self.hash, hash))
        {
            Ok(true) => Ok(()),
            Ok(false) => Err(SignatureError::OtherContent { key: key() }),
            Err(Unverifiable::Weak) => Err(SignatureError::Weak { key: key() }),
            Err(Unverifiable::Algorithm(algorithm)) => Err(SignatureError::Algorithm {
                kind: self.key.kind().into(),
                algorithm,
            }),
        }
    }

    /// As [`Signature::check`], over all that `content` gives.
    ///
    /// # Errors
    /// Those of `content`; and as [`Signature::check`].
    pub fn check_content(
        &self,
        namespace: &str,
        content: &mut impl Read,
    ) -> io::Result<Result<(), SignatureError>> {
        let hash = match self.hash {
            Hash::Sha256 => hash_of(Sha256::new(), content)?,
            Hash::Sha512 => hash_of(Sha512::new(), content)?,
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
        armour(
            LABEL,
            &[MAGIC, &VERSION.to_be_bytes(), &strings(&fields)].concat(),
        )
    }
}
