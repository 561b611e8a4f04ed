//! Content digests: `algorithm:hex`, and the hashers that make them.

use serde::{Deserialize, Serialize};
use sha2::digest::common::hazmat::SerializableState;
use sha2::{Digest as _, Sha256, Sha512};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Hash algorithms that the OCI image specification registers (descriptor.md, "Registered
/// Algorithms").
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// SHA-256, 64 hex digits.
    Sha256,
    /// SHA-512, 128 hex digits.
    Sha512,
}

impl Algorithm {
    /// The name before the colon of a digest, and of the folder under `blobs/`.
    pub fn as_str(self) -> &'static str {
        match self {
            Algorithm::Sha256 => "sha256",
            Algorithm::Sha512 => "sha512",
        }
    }

    fn hex_len(self) -> usize {
        match self {
            Algorithm::Sha256 => 64,
            Algorithm::Sha512 => 128,
        }
    }
}

/// A digest, parsed or computed. It is always well formed, and shown in lower case.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest(Value);

/// Most digests are SHA-256, which is kept inline; only SHA-512 takes a heap allocation.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Value {
    Sha256([u8; 32]),
    Sha512(Arc<[u8; 64]>),
}

/// Why a text is no digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DigestError {
    /// No colon, or nothing on one side of it.
    #[error("'{0}' is no digest: write algorithm:hex, as in sha256:<64 hex digits>")]
    Form(String),
    /// An algorithm that landfall cannot compute.
    #[error("digest '{0}' uses an algorithm that is not supported (sha256 and sha512 are)")]
    Algorithm(String),
    /// Wrong length or a character that is no lower-case hex digit.
    #[error("digest '{0}' needs {1} lower-case hex digits after the colon")]
    Hex(String, usize),
}

impl Digest {
    /// The SHA-256 of `bytes`.
    pub fn sha256(bytes: &[u8]) -> Digest {
        Digest::compute(Algorithm::Sha256, bytes)
    }

    /// The digest of `bytes` by `algorithm`.
    pub fn compute(algorithm: Algorithm, bytes: &[u8]) -> Digest {
        let mut hasher = Hasher::new(algorithm);
        hasher.update(bytes);
        hasher.finish()
    }

    /// Its algorithm.
    pub fn algorithm(&self) -> Algorithm {
        match self.0 {
            Value::Sha256(_) => Algorithm::Sha256,
            Value::Sha512(_) => Algorithm::Sha512,
        }
    }

    fn bytes(&self) -> &[u8] {
        match &self.0 {
            Value::Sha256(bytes) => bytes,
            Value::Sha512(bytes) => &bytes[..],
        }
    }

    /// The hex digits without the algorithm.
    pub fn hex(&self) -> String {
        hex(self.bytes())
    }

    /// The first `n` hex digits (all of them if there are fewer).
    pub fn short(&self, n: usize) -> String {
        let mut hex = self.hex();
        hex.truncate(n);
        hex
    }

    /// The path below an OCI layout: `blobs/<algorithm>/<hex>` (image-layout.md, "Blobs").
    pub fn layout_path(&self) -> String {
        format!("blobs/{}/{}", self.algorithm().as_str(), self.hex())
    }

    /// Whether `bytes` have this digest.
    pub fn matches(&self, bytes: &[u8]) -> bool {
        Digest::compute(self.algorithm(), bytes) == *self
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.algorithm().as_str(), self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, hex) = text
            .split_once(':')
            .ok_or_else(|| DigestError::Form(text.into()))?;
        let algorithm = match name {
            "sha256" => Algorithm::Sha256,
            "sha512" => Algorithm::Sha512,
            "" => return Err(DigestError::Form(text.into())),
            _ => return Err(DigestError::Algorithm(text.into())),
        };
        let value = match algorithm {
            Algorithm::Sha256 => unhex(hex).map(Value::Sha256),
            Algorithm::Sha512 => unhex(hex).map(|bytes| Value::Sha512(Arc::new(bytes))),
        };
        value
            .map(Digest)
            .ok_or_else(|| DigestError::Hex(text.into(), algorithm.hex_len()))
    }
}

impl TryFrom<String> for Digest {
    type Error = DigestError;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

/// Computes a [`Digest`] piece by piece.
#[derive(Clone)]
pub struct Hasher(State);

impl std::fmt::Debug for Hasher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hasher")
    }
}

#[derive(Clone)]
enum State {
    Sha256(Sha256),
    Sha512(Box<Sha512>),
}

impl Hasher {
    /// A hasher for new content.
    pub fn new(algorithm: Algorithm) -> Hasher {
        Hasher(match algorithm {
            Algorithm::Sha256 => State::Sha256(Sha256::new()),
            Algorithm::Sha512 => State::Sha512(Box::new(Sha512::new())),
        })
    }

    /// Feeds the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            State::Sha256(state) => state.update(bytes),
            State::Sha512(state) => state.update(bytes),
        }
    }

    /// What another process continues from, by [`Hasher::resume`].
    pub fn state(&self) -> Vec<u8> {
        match &self.0 {
            State::Sha256(state) => state.serialize().to_vec(),
            State::Sha512(state) => state.serialize().to_vec(),
        }
    }

    /// A hasher that continues from a [`Hasher::state`]; `None` where that is none.
    pub fn resume(algorithm: Algorithm, state: &[u8]) -> Option<Hasher> {
        Some(Hasher(match algorithm {
            Algorithm::Sha256 => State::Sha256(Sha256::deserialize(&state.try_into().ok()?).ok()?),
            Algorithm::Sha512 => {
                State::Sha512(Box::new(Sha512::deserialize(&state.try_into().ok()?).ok()?))
            }
        }))
    }

    /// The digest of all bytes so far.
    pub fn finish(self) -> Digest {
        Digest(match self.0 {
            State::Sha256(state) => Value::Sha256(state.finalize().into()),
            State::Sha512(state) => Value::Sha512(Arc::new(state.finalize().into())),
        })
    }
}

/// Hashes text as it is formatted.
impl fmt::Write for Hasher {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.update(text.as_bytes());
        Ok(())
    }
}

/// Bytes as lower-case hex digits.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from(b"0123456789abcdef"[usize::from(nibble)]);
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

/// Exactly `N` bytes from lower-case hex digits.
pub fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let pairs: &[[u8; 2]] = text.as_bytes().as_chunks().0;
    let mut bytes = [0; N];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    (text.len() == 2 * N).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers() {
        assert_eq!(
            Digest::sha256(b"").to_string(),
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
        assert!(
            Digest::compute(Algorithm::Sha512, b"abc")
                .hex()
                .starts_with("ddaf35a193617aba")
        );
    }

    #[test]
    fn only_well_formed_digests_parse() {
        let hex = "0".repeat(64);
        assert!(format!("sha256:{hex}").parse::<Digest>().is_ok());
        for bad in [
            "",
            "sha256",
            ":aa",
            "md5:aa",
            "sha256:00",
            &format!("sha256:{}", "A".repeat(64)),
        ] {
            assert!(bad.parse::<Digest>().is_err(), "{bad}");
        }
    }
}
