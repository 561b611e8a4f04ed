//! The SHA-256 of a part of a bundle, and a frame as the contents index lists it.

use landfall_model::{hex, unhex};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::str::FromStr;

/// A SHA-256 of a part of a bundle, 64 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Hash(pub(super) [u8; 32]);

/// One zstd frame: its length in the file, and the SHA-256 of these bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame(pub u32, pub Hash);

impl Hash {
    /// The SHA-256 of `bytes`.
    pub fn of(bytes: &[u8]) -> Hash {
        Hash(Sha256::digest(bytes).into())
    }
}

impl From<Sha256> for Hash {
    /// The SHA-256 of all that `hasher` has seen.
    fn from(hasher: Sha256) -> Hash {
        Hash(hasher.finalize().into())
    }
}

impl Frame {
    /// The frame with these bytes.
    pub(crate) fn of(bytes: &[u8]) -> Frame {
        Frame(bytes.len() as u32, Hash::of(bytes))
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Hash {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Hash, Self::Err> {
        unhex(text)
            .map(Hash)
            .ok_or("a hash has 64 lower-case hex digits")
    }
}

impl TryFrom<String> for Hash {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Hash, Self::Error> {
        text.parse()
    }
}

impl From<Hash> for String {
    fn from(hash: Hash) -> String {
        hash.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_model::Digest;

    #[test]
    fn hashes_read_back() {
        let hash = Hash::of(b"abc");
        assert_eq!(hash.to_string(), Digest::sha256(b"abc").hex());
        assert_eq!(hash.to_string().parse(), Ok(hash));
        for bad in ["", "00", &"A".repeat(64), &"0".repeat(65), &"é".repeat(32)] {
            assert!(bad.parse::<Hash>().is_err(), "{bad}");
        }
    }
}
