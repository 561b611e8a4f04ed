//! Private keys in OpenSSH's files (PROTOCOL.key), unencrypted, and signing with them.

use super::key::{ED25519_KEY, P256_KEY, P384_KEY, PublicKey, RSA_KEY, RSA_SHA512};
use super::wire::{Reader, number, strings, unarmoured};
use ring::rand::SystemRandom;
use ring::rsa::{KeyPairComponents, PublicKeyComponents};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    RSA_PKCS1_SHA512, RsaKeyPair,
};

/// A private key that is at hand.
#[derive(Debug)]
pub(super) enum Secret {
    Ed25519(Ed25519KeyPair),
    /// The key's type goes with it.
    Ecdsa(String, EcdsaKeyPair),
    Rsa(RsaKeyPair),
}

/// What a private key file holds.
#[derive(Debug)]
pub(super) enum Content {
    Open(Box<Secret>),
    /// It needs a passphrase.
    Encrypted,
    /// This landfall cannot sign with it.
    Unknown,
}

/// Reads a private key file; `None` where it is none, or a damaged one.
pub(super) fn parse(text: &str) -> Option<(PublicKey, Content)> {
    let bytes = unarmoured("OPENSSH PRIVATE KEY", text)?;
    let mut file = Reader(bytes.strip_prefix(b"openssh-key-v1\0")?);
    let (cipher, _kdf, _options, keys) = (file.string()?, file.string()?, file.string()?, file.u32()?);
    let public = PublicKey::from_blob(file.string()?)?;
    if keys != 1 {
        return None;
    }
    if cipher != b"none" {
        return Some((public, Content::Encrypted));
    }
    let mut inside = Reader(file.string()?);
    // two equal numbers show that a passphrase was right
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
            let pair = EcdsaKeyPair::from_private_key_and_public_key(algorithm, &padded, point, &random);
            Secret::Ecdsa(kind.into(), pair.ok()?)
        }
        RSA_KEY => Secret::Rsa(rsa(&mut inside)?),
        _ => return Some((public, Content::Unknown)),
    };
    Some((public, Content::Open(Box::new(secret))))
}

fn rsa(inside: &mut Reader<'_>) -> Option<RsaKeyPair> {
    let mut field = || inside.number();
    let (n, e, d, inverse, p, q) = (field()?, field()?, field()?, field()?, field()?, field()?);
    let pair = KeyPairComponents {
        public_key: PublicKeyComponents { n, e },
        d,
        p,
        q,
        dP: &remainder_below(d, p)[..],
        dQ: &remainder_below(d, q)[..],
        qInv: inverse,
    };
    RsaKeyPair::from_components(&pair).ok()
}

/// `of` modulo `prime - 1`, all big-endian. OpenSSH's files leave these two numbers out.
fn remainder_below(of: &[u8], prime: &[u8]) -> Vec<u8> {
    let mut modulus = prime.to_vec();
    // a prime is odd
    if let Some(last) = modulus.last_mut() {
        *last &= 0xfe;
    }
    let modulus = [&[0][..], &modulus].concat();
    let mut rest = vec![0; modulus.len()];
    for bit in (0..8 * of.len()).map(|bit| of[bit / 8] >> (7 - bit % 8) & 1) {
        let mut carry = bit;
        for byte in rest.iter_mut().rev() {
            (*byte, carry) = (*byte << 1 | carry, *byte >> 7);
        }
        if rest >= modulus {
            let mut borrow = 0;
            for (byte, less) in rest.iter_mut().zip(&modulus).rev() {
                let left = i16::from(*byte) - i16::from(*less) - borrow;
                borrow = i16::from(left < 0);
                *byte = left.rem_euclid(256) as u8;
            }
        }
    }
    let zeros = rest.iter().take_while(|&&byte| byte == 0).count();
    rest.split_off(zeros)
}

impl Secret {
    /// The signature of `message` in SSH's form, with its algorithm in front; `None` where the system has no random
    /// numbers.
    pub(super) fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let random = SystemRandom::new();
        Some(match self {
            Secret::Ed25519(pair) => strings(&[ED25519_KEY.as_bytes(), pair.sign(message).as_ref()]),
            Secret::Ecdsa(kind, pair) => {
                let fixed = pair.sign(&random, message).ok()?;
                let (r, s) = fixed.as_ref().split_at(fixed.as_ref().len() / 2);
                strings(&[kind.as_bytes(), &[number(r), number(s)].concat()])
            }
            Secret::Rsa(pair) => {
                let mut value = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA512, &random, message, &mut value).ok()?;
                strings(&[RSA_SHA512.as_bytes(), &value])
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remainders_are_right() {
        for (of, prime) in [(1_000_003_u64, 65_521_u64), (1 << 60, 251), (7, 11), (0, 3), (65_520, 65_521)] {
            let trimmed = |n: u64| {
                let bytes = n.to_be_bytes();
                bytes[bytes.iter().take_while(|&&byte| byte == 0).count()..].to_vec()
            };
            let rest = remainder_below(&trimmed(of), &trimmed(prime));
            assert_eq!(rest, trimmed(of % (prime - 1)), "{of} % ({prime} - 1)");
        }
    }

    #[test]
    fn what_is_no_key_is_none() {
        for text in ["", "x", "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----"]
        {
            assert!(parse(text).is_none(), "{text}");
        }
    }
}
