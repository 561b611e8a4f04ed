//! Public keys of OpenSSH, and the verification of their signatures with ring.

use crate::Failure;
use ::base64::Engine;
use ::base64::engine::general_purpose::STANDARD_NO_PAD;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA512, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};
use sha2::{Digest, Sha256};

pub(super) const ED25519_KEY: &str = "ssh-ed25519";
pub(super) const RSA_KEY: &str = "ssh-rsa";
/// The signature algorithm that landfall requests from the agent for an RSA key.
pub(super) const RSA_SHA512: &str = "rsa-sha2-512";
pub(super) const P256_KEY: &str = "ecdsa-sha2-nistp256";
pub(super) const P384_KEY: &str = "ecdsa-sha2-nistp384";

/// Keys in hardware tokens (PROTOCOL.u2f of OpenSSH).
const SK_ED25519_KEY: &str = "sk-ssh-ed25519@openssh.com";
const SK_P256_KEY: &str = "sk-ecdsa-sha2-nistp256@openssh.com";

/// A public key of OpenSSH.
#[derive(Clone, PartialEq, Eq, Hash, derive_more::Display, derive_more::Debug)]
#[display("{kind} {}", self.fingerprint())]
#[debug("{self}")]
pub struct PublicKey {
    /// The bytes that a `.pub` file contains in base64: the type, then the fields of that type.
    pub(super) blob: Vec<u8>,
    kind: String,
}

impl PublicKey {
    /// Parses the SSH encoding of a key.
    pub(super) fn from_blob(blob: &[u8]) -> Option<PublicKey> {
        let mut fields = SshReader(blob);
        let kind = fields.text().filter(|kind| is_kind(kind))?;
        let rest = match kind {
            ED25519_KEY => 1,
            RSA_KEY | P256_KEY | P384_KEY | SK_ED25519_KEY => 2,
            SK_P256_KEY => 3,
            // landfall cannot verify signatures by keys of other types, so the fields of these
            // keys are not checked
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

    /// Parses the first two words of a `.pub` file: type and base64.
    pub(super) fn from_words(kind: &str, text: &str) -> Option<PublicKey> {
        PublicKey::from_blob(&base64(text)?).filter(|key| key.kind == kind)
    }

    /// Parses the line of a `.pub` file: type, base64, and possibly a comment.
    pub(super) fn from_line(line: &str) -> Option<PublicKey> {
        let mut words = line.split_ascii_whitespace();
        PublicKey::from_words(words.next()?, words.next()?)
    }

    /// The type of the key, such as `ssh-ed25519`.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The fingerprint as `ssh-keygen -l` shows it: `SHA256:…`.
    pub fn fingerprint(&self) -> String {
        format!(
            "SHA256:{}",
            STANDARD_NO_PAD.encode(Sha256::digest(&self.blob))
        )
    }

    /// Whether this key made `signature` for `message`. Fails if landfall cannot verify signatures
    /// of this algorithm, or by a key of this length.
    pub(super) fn has_signed(&self, signature: &[u8], message: &[u8]) -> Result<bool, Failure> {
        let mut signature = SshReader(signature);
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
            return Err(Failure::usage(format!(
                "landfall cannot verify {algorithm} signatures of {} keys; sign with an ed25519 \
                 key",
                self.kind
            )));
        }
        if self.kind == RSA_KEY {
            match self.rsa_bits().unwrap_or_default() {
                ..2048 => {
                    return Err(Failure::usage(format!(
                        "{self} has fewer than 2048 bits, which is too weak"
                    )));
                }
                2048..=8192 => {}
                // ring does not verify signatures by longer keys
                _ => {
                    return Err(Failure::usage(format!(
                        "{self} has more than 8192 bits, which landfall cannot verify; use a \
                         shorter key"
                    )));
                }
            }
        }
        Ok(self.check(algorithm, signature, message).is_some())
    }

    /// The length of the modulus of an RSA key in bits.
    fn rsa_bits(&self) -> Option<usize> {
        let mut key = SshReader(&self.blob);
        let _kind = key.string()?;
        let _exponent = key.number()?;
        let modulus = key.number()?;
        Some(8 * modulus.len() - modulus.first()?.leading_zeros() as usize)
    }

    /// Returns `None` if the signature is malformed or the key did not make it.
    fn check(&self, algorithm: &str, mut signature: SshReader<'_>, message: &[u8]) -> Option<()> {
        let value = signature.string()?;
        let mut key = SshReader(&self.blob);
        key.string()?;
        match algorithm {
            ED25519_KEY => {
                signature.end()?;
                verify_with(&ED25519, key.string()?, message, value)
            }
            P256_KEY | P384_KEY => {
                signature.end()?;
                let curve = key.text()?;
                if algorithm.strip_prefix("ecdsa-sha2-")? != curve {
                    return None;
                }
                let (ecdsa, size): (&'static dyn VerificationAlgorithm, _) = match algorithm {
                    P256_KEY => (&ECDSA_P256_SHA256_FIXED, 32),
                    _ => (&ECDSA_P384_SHA384_FIXED, 48),
                };
                verify_with(ecdsa, key.string()?, message, &fixed_pair(value, size)?)
            }
            SK_ED25519_KEY | SK_P256_KEY => {
                let curve = if algorithm == SK_P256_KEY {
                    Some(key.text()?)
                } else {
                    None
                };
                let point = key.string()?;
                let application = key.string()?;
                // the token also signs its flags and its counter
                let flags_and_counter = signature.take(5)?;
                signature.end()?;
                let message = [
                    &Sha256::digest(application)[..],
                    flags_and_counter,
                    &Sha256::digest(message),
                ]
                .concat();
                match curve {
                    None => verify_with(&ED25519, point, &message, value),
                    Some("nistp256") => {
                        let value = fixed_pair(value, 32)?;
                        verify_with(&ECDSA_P256_SHA256_FIXED, point, &message, &value)
                    }
                    Some(_) => None,
                }
            }
            _ => {
                signature.end()?;
                let e = key.number()?;
                let n = key.number()?;
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

fn verify_with(
    algorithm: &'static dyn VerificationAlgorithm,
    key: &[u8],
    message: &[u8],
    signature: &[u8],
) -> Option<()> {
    UnparsedPublicKey::new(algorithm, key)
        .verify(message, signature)
        .ok()
}

/// Whether the word may be the type of a key. Messages show it, so it must be printable.
pub(super) fn is_kind(word: &str) -> bool {
    ["ssh-", "ecdsa-", "sk-"]
        .iter()
        .any(|start| word.starts_with(start))
        && word.bytes().all(|byte| byte.is_ascii_graphic())
}

/// The two numbers of an ECDSA signature (RFC 5656, section 3.1.2), each padded to `size` bytes.
fn fixed_pair(value: &[u8], size: usize) -> Option<Vec<u8>> {
    let mut reader = SshReader(value);
    let mut out = Vec::with_capacity(2 * size);
    for number in [reader.number()?, reader.number()?] {
        out.resize(out.len() + size.checked_sub(number.len())?, 0);
        out.extend(number);
    }
    reader.end()?;
    Some(out)
}

// The SSH encoding of keys and signatures (RFC 4251, section 5), and the armor around it.

/// Reads one field after the other. Methods return `None` if the bytes end early or a field is
/// malformed.
pub(super) struct SshReader<'a>(pub &'a [u8]);

impl<'a> SshReader<'a> {
    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_be_bytes)
    }

    pub(super) fn string(&mut self) -> Option<&'a [u8]> {
        let length = self.u32()?;
        self.take(usize::try_from(length).ok()?)
    }

    pub(super) fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.string()?).ok()
    }

    /// Reads a non-negative `mpint`: big-endian bytes, without leading zeros.
    pub(super) fn number(&mut self) -> Option<&'a [u8]> {
        let bytes = self.string()?;
        let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
        (bytes.first().is_none_or(|first| first & 0x80 == 0)).then(|| &bytes[zeros..])
    }

    /// Returns `None` if any bytes remain.
    pub(super) fn end(self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

/// Encodes fields one after the other, each with its length.
pub(super) fn strings(fields: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for field in fields {
        bytes.extend((field.len() as u32).to_be_bytes());
        bytes.extend(*field);
    }
    bytes
}

/// Encodes a number, given in big-endian bytes, as [`SshReader::number`] reads it.
pub(super) fn number(bytes: &[u8]) -> Vec<u8> {
    let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
    let bytes = &bytes[zeros..];
    // a set first bit would make it negative
    if bytes.first().is_some_and(|first| first & 0x80 != 0) {
        strings(&[&[&[0], bytes].concat()])
    } else {
        strings(&[bytes])
    }
}

/// Encodes bytes in base64 between `-----BEGIN label-----` and `-----END label-----`, in lines of
/// `width` characters.
pub fn armor(label: &str, bytes: &[u8], width: usize) -> String {
    let text = STANDARD.encode(bytes);
    let lines: String = text
        .as_bytes()
        .chunks(width)
        .flat_map(|line| line.iter().copied().chain([b'\n']).map(char::from))
        .collect();
    format!("-----BEGIN {label}-----\n{lines}-----END {label}-----\n")
}

/// Decodes the content of the armor `label`. Returns `None` if `text` is not this armor, or its
/// content is not base64.
pub(super) fn dearmor(label: &str, text: &str) -> Option<Vec<u8>> {
    let inside = text
        .trim()
        .strip_prefix(&format!("-----BEGIN {label}-----"))?;
    let inside = inside.strip_suffix(&format!("-----END {label}-----"))?;
    base64(&inside.split_ascii_whitespace().collect::<String>())
}

pub(super) fn base64(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_fields_are_decoded_again() {
        let bytes = [
            strings(&[b"ssh", b""]),
            number(&[0, 0, 0x80]),
            number(&[]),
            vec![0, 0, 0, 7],
        ]
        .concat();
        let mut reader = SshReader(&bytes);
        assert_eq!(
            (reader.text(), reader.string()),
            (Some("ssh"), Some(&[][..]))
        );
        assert_eq!(
            (reader.number(), reader.number()),
            (Some(&[0x80][..]), Some(&[][..]))
        );
        assert_eq!((reader.u32(), reader.u32()), (Some(7), None));
        assert_eq!(SshReader(&[0, 0, 0, 9, 1]).string(), None);
        assert_eq!(SshReader(&[0, 0, 0, 1, 0x80]).number(), None);
        assert_eq!(SshReader(&[1]).end(), None);
    }

    #[test]
    fn armor_is_removed_again() {
        let bytes: Vec<u8> = (0..=255).collect();
        let text = armor("X Y", &bytes, 70);
        assert!(text.lines().all(|line| line.len() <= 70) && text.ends_with("-----END X Y-----\n"));
        assert_eq!(dearmor("X Y", &text), Some(bytes));
        assert_eq!(dearmor("X", &text), None);
        assert_eq!(
            dearmor("X Y", "-----BEGIN X Y-----\n%\n-----END X Y-----"),
            None
        );
    }
}
