//! Private key files of OpenSSH (PROTOCOL.key), and signing with keys that are not encrypted.

use super::public_key::{ED25519_KEY, P256_KEY, P384_KEY, PublicKey};
use super::ssh_encoding::{SshReader, dearmor, number, strings};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
};

/// A private key with which landfall signs without an agent.
#[derive(Debug)]
pub(super) enum SshPrivateKey {
    Ed25519(Ed25519KeyPair),
    /// The type of the key, and the key.
    Ecdsa(String, EcdsaKeyPair),
}

/// The result of reading a private key file.
#[derive(Debug)]
pub(super) enum PrivateKeyFile {
    Unlocked(Box<SshPrivateKey>),
    /// The file needs a passphrase.
    Encrypted,
    /// landfall signs with a key of this type, such as RSA, only through an agent.
    AgentOnly,
}

/// Parses a private key file. Returns `None` if `text` is not one, or is damaged.
pub(super) fn parse(text: &str) -> Option<(PublicKey, PrivateKeyFile)> {
    let bytes = dearmor("OPENSSH PRIVATE KEY", text)?;
    let mut file = SshReader(bytes.strip_prefix(b"openssh-key-v1\0")?);
    let cipher = file.string()?;
    let _kdf = file.string()?;
    let _kdf_options = file.string()?;
    let keys = file.u32()?;
    let public = PublicKey::from_blob(file.string()?)?;
    if keys != 1 {
        return None;
    }
    if cipher != b"none" {
        return Some((public, PrivateKeyFile::Encrypted));
    }
    let mut inside = SshReader(file.string()?);
    // OpenSSH writes a random number twice: the copies differ if the passphrase was wrong
    if inside.u32()? != inside.u32()? || inside.text()? != public.kind() {
        return None;
    }
    let secret = match public.kind() {
        ED25519_KEY => {
            let public = inside.string()?;
            let pair = inside.string()?;
            SshPrivateKey::Ed25519(
                Ed25519KeyPair::from_seed_and_public_key(pair.get(..32)?, public).ok()?,
            )
        }
        kind @ (P256_KEY | P384_KEY) => {
            let (algorithm, size) = match kind {
                P256_KEY => (&ECDSA_P256_SHA256_FIXED_SIGNING, 32),
                _ => (&ECDSA_P384_SHA384_FIXED_SIGNING, 48),
            };
            let _curve = inside.string()?;
            let point = inside.string()?;
            let scalar = inside.number()?;
            // the number may be shorter, but ring requires its full length
            let padded = [&vec![0; size - scalar.len().min(size)][..], scalar].concat();
            let random = SystemRandom::new();
            let pair =
                EcdsaKeyPair::from_private_key_and_public_key(algorithm, &padded, point, &random);
            SshPrivateKey::Ecdsa(kind.into(), pair.ok()?)
        }
        _ => return Some((public, PrivateKeyFile::AgentOnly)),
    };
    Some((public, PrivateKeyFile::Unlocked(Box::new(secret))))
}

impl SshPrivateKey {
    /// Returns the signature of `message` in SSH encoding, with its algorithm first, or `None` if
    /// the system has no random numbers.
    pub(super) fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let random = SystemRandom::new();
        Some(match self {
            SshPrivateKey::Ed25519(pair) => {
                strings(&[ED25519_KEY.as_bytes(), pair.sign(message).as_ref()])
            }
            SshPrivateKey::Ecdsa(kind, pair) => {
                let fixed = pair.sign(&random, message).ok()?;
                let (r, s) = fixed.as_ref().split_at(fixed.as_ref().len() / 2);
                strings(&[kind.as_bytes(), &[number(r), number(s)].concat()])
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_not_a_key_is_rejected() {
        for text in [
            "",
            "x",
            "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----",
        ] {
            assert!(parse(text).is_none(), "{text}");
        }
    }
}
