//! Reads OpenSSH's private key files (PROTOCOL.key), and signs with those that have no passphrase.

use super::key::{ED25519_KEY, P256_KEY, P384_KEY, PublicKey};
use super::wire::{Reader, number, strings, unarmoured};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
};

/// A private key that landfall signs with itself.
#[derive(Debug)]
pub(super) enum Secret {
    Ed25519(Ed25519KeyPair),
    /// With the key's type.
    Ecdsa(String, EcdsaKeyPair),
}

/// The content of a private key file.
#[derive(Debug)]
pub(super) enum Content {
    Open(Box<Secret>),
    /// It needs a passphrase.
    Encrypted,
    /// A key with which only the agent signs, such as RSA.
    ByAgent,
}

/// Reads a private key file. `None` if it is not one, or damaged.
pub(super) fn parse(text: &str) -> Option<(PublicKey, Content)> {
    let bytes = unarmoured("OPENSSH PRIVATE KEY", text)?;
    let mut file = Reader(bytes.strip_prefix(b"openssh-key-v1\0")?);
    let (cipher, _kdf, _options, keys) =
        (file.string()?, file.string()?, file.string()?, file.u32()?);
    let public = PublicKey::from_blob(file.string()?)?;
    if keys != 1 {
        return None;
    }
    if cipher != b"none" {
        return Some((public, Content::Encrypted));
    }
    let mut inside = Reader(file.string()?);
    // two equal numbers show that the passphrase was right
    if inside.u32()? != inside.u32()? || inside.text()? != public.kind() {
        return None;
    }
    let secret = match public.kind() {
        ED25519_KEY => {
            let (public, pair) = (inside.string()?, inside.string()?);
            Secret::Ed25519(Ed25519KeyPair::from_seed_and_public_key(pair.get(..32)?, public).ok()?)
        }
        kind @ (P256_KEY | P384_KEY) => {
            let (algorithm, size) = match kind {
                P256_KEY => (&ECDSA_P256_SHA256_FIXED_SIGNING, 32),
                _ => (&ECDSA_P384_SHA384_FIXED_SIGNING, 48),
            };
            let (_curve, point, scalar) = (inside.string()?, inside.string()?, inside.number()?);
            let padded = [&vec![0; size - scalar.len().min(size)][..], scalar].concat();
            let random = SystemRandom::new();
            let pair =
                EcdsaKeyPair::from_private_key_and_public_key(algorithm, &padded, point, &random);
            Secret::Ecdsa(kind.into(), pair.ok()?)
        }
        _ => return Some((public, Content::ByAgent)),
    };
    Some((public, Content::Open(Box::new(secret))))
}

impl Secret {
    /// The signature of `message` in SSH's form, with its algorithm in front; `None` if the system
    /// has no random numbers.
    pub(super) fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let random = SystemRandom::new();
        Some(match self {
            Secret::Ed25519(pair) => {
                strings(&[ED25519_KEY.as_bytes(), pair.sign(message).as_ref()])
            }
            Secret::Ecdsa(kind, pair) => {
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
    fn what_is_no_key_is_none() {
        for text in [
            "",
            "x",
            "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----",
        ] {
            assert!(parse(text).is_none(), "{text}");
        }
    }
}
