//! Public keys of OpenSSH; checks signatures with them. ring does the arithmetic.

use super::wire::{Reader, base64};
use ::base64::Engine;
use ::base64::engine::general_purpose::STANDARD_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA512, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};
use sha2::{Digest, Sha256};
use std::fmt;

pub(super) const ED25519_KEY: &str = "ssh-ed25519";
pub(super) const RSA_KEY: &str = "ssh-rsa";
/// The signature that landfall asks the agent for with an RSA key.
pub(super) const RSA_SHA512: &str = "rsa-sha2-512";
pub(super) const P256_KEY: &str = "ecdsa-sha2-nistp256";
pub(super) const P384_KEY: &str = "ecdsa-sha2-nistp384";

/// Keys whose private half is in a hardware token (OpenSSH's PROTOCOL.u2f).
const SK_ED25519_KEY: &str = "sk-ssh-ed25519@openssh.com";
const SK_P256_KEY: &str = "sk-ecdsa-sha2-nistp256@openssh.com";

/// A public key in OpenSSH's form.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PublicKey {
    /// The bytes that a `.pub` file has in base64: the type, then the fields of that type.
    pub(super) blob: Vec<u8>,
    kind: String,
}

/// Why a signature cannot be checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unverifiable {
    /// landfall does not know this kind of signature for this kind of key.
    Algorithm(String),
    /// The key is too short.
    Weak,
}

impl PublicKey {
    /// A key from its binary form.
    pub(super) fn from_blob(blob: &[u8]) -> Option<PublicKey> {
        let mut fields = Reader(blob);
        let kind = fields.text().filter(|kind| is_kind(kind))?;
        let rest = match kind {
            ED25519_KEY => 1,
            RSA_KEY | P256_KEY | P384_KEY | SK_ED25519_KEY => 2,
            SK_P256_KEY => 3,
            // landfall cannot check this kind anyway
            _ => 0,
        };
        if rest > 0 {
            (0..rest).try_for_each(|_| fields.string().map(drop))?;
            fields.end()?;
        }
        Some(PublicKey {
            blob: blob.into(),
            kind: kind.into(),
        })
    }

    /// A key from its two words, as in a `.pub` file: type and base64.
    pub(super) fn from_words(kind: &str, text: &str) -> Option<PublicKey> {
        PublicKey::from_blob(&base64(text)?).filter(|key| key.kind == kind)
    }

    /// A key from a line of a `.pub` file: type, base64, and perhaps a comment.
    pub(super) fn from_line(line: &str) -> Option<PublicKey> {
        let mut words = line.split_ascii_whitespace();
        PublicKey::from_words(words.next()?, words.next()?)
    }

    /// Its type, as in `ssh-ed25519`.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Its fingerprint as `ssh-keygen -l` shows it: `SHA256:…`.
    pub fn fingerprint(&self) -> String {
        format!(
            "SHA256:{}",
            STANDARD_NO_PAD.encode(Sha256::digest(&self.blob))
        )
    }

    /// Whether this key made `signature` over `message`.
    ///
    /// # Errors
    /// When landfall cannot check it, or the key is too weak.
    pub(super) fn has_signed(
        &self,
        signature: &[u8],
        message: &[u8],
    ) -> Result<bool, Unverifiable> {
        let mut signature = Reader(signature);
        let Some(algorithm) = signature.text() else {
            return Ok(false);
        };
        let known = match self.kind.as_str() {
            RSA_KEY => [RSA_SHA512, "rsa-sha2-256"].contains(&algorithm),
            ED25519_KEY | P256_KEY | P384_KEY | SK_ED25519_KEY | SK_P256_KEY => {
                algorithm == self.kind
            }
            _ => false,
        };
        if !known {
            return Err(Unverifiable::Algorithm(algorithm.into()));
        }
        if self.kind == RSA_KEY && self.rsa_bytes().is_none_or(|bytes| bytes < 256) {
            return Err(Unverifiable::Weak);
        }
        Ok(self.check(algorithm, signature, message).is_some())
    }

    /// Length of an RSA key's modulus.
    fn rsa_bytes(&self) -> Option<usize> {
        let mut key = Reader(&self.blob);
        let (_kind, _exponent) = (key.string()?, key.number()?);
        key.number().map(<[u8]>::len)
    }

    /// `None` if the signature is malformed.
    fn check(&self, algorithm: &str, mut signature: Reader<'_>, message: &[u8]) -> Option<()> {
        let value = signature.string()?;
        let mut key = Reader(&self.blob);
        key.string()?;
        let good = |algorithm: &'static dyn VerificationAlgorithm,
                    key: &[u8],
                    message: &[u8],
                    value: &[u8]| {
            UnparsedPublicKey::new(algorithm, key)
                .verify(message, value)
                .ok()
        };
        match algorithm {
            ED25519_KEY => {
                signature.end()?;
                good(&ED25519, key.string()?, message, value)
            }
            P256_KEY | P384_KEY => {
                signature.end()?;
                let curve = key.text()?;
                let (fixed, size): (&'static dyn VerificationAlgorithm, _) = match algorithm {
                    P256_KEY => (&ECDSA_P256_SHA256_FIXED, 32),
                    _ => (&ECDSA_P384_SHA384_FIXED, 48),
                };
                (algorithm.strip_prefix("ecdsa-sha2-")? == curve).then_some(())?;
                good(fixed, key.string()?, message, &fixed_pair(value, size)?)
            }
            SK_ED25519_KEY | SK_P256_KEY => {
                let curve = if algorithm == SK_P256_KEY {
                    Some(key.text()?)
                } else {
                    None
                };
                let (point, application) = (key.string()?, key.string()?);
                // the token also signs its flags and its counter
                let told = signature.take(5)?;
                signature.end()?;
                let message = [
                    &Sha256::digest(application)[..],
                    told,
                    &Sha256::digest(message),
                ]
                .concat();
                match curve {
                    None => good(&ED25519, point, &message, value),
                    Some(curve) => {
                        (curve == "nistp256").then_some(())?;
                        good(
                            &ECDSA_P256_SHA256_FIXED,
                            point,
                            &message,
                            &fixed_pair(value, 32)?,
                        )
                    }
                }
            }
            _ => {
                signature.end()?;
                let (e, n) = (key.number()?, key.number()?);
                let padding = if algorithm == RSA_SHA512 {
                    &RSA_PKCS1_2048_8192_SHA512
                } else {
                    &RSA_PKCS1_2048_8192_SHA256
                };
                RsaPublicKeyComponents { n, e }
                    .verify(padding, message, value)
                    .ok()
            }
        }
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.fingerprint())
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Whether the word may be the type of a key. Messages print it.
pub(super) fn is_kind(word: &str) -> bool {
    ["ssh-", "ecdsa-", "sk-"]
        .iter()
        .any(|start| word.starts_with(start))
        && word.bytes().all(|byte| byte.is_ascii_graphic())
}

/// The two numbers of an ECDSA signature (RFC 5656 §3.1.2), each of `size` bytes.
fn fixed_pair(value: &[u8], size: usize) -> Option<Vec<u8>> {
    let mut reader = Reader(value);
    let mut out = Vec::with_capacity(2 * size);
    for number in [reader.number()?, reader.number()?] {
        out.resize(out.len() + size.checked_sub(number.len())?, 0);
        out.extend(number);
    }
    reader.end()?;
    Some(out)
}
