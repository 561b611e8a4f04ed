//! The SHA-256 of a part of a bundle, and the record of a frame.

use landfall_model::{hex, serde_as_text, unhex};
use sha2::{Digest as _, Sha256};
use std::str::FromStr;

/// The SHA-256 of a frame or another part of a bundle, serialized as 64 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, derive_more::Display, derive_more::Debug)]
#[display("{}", hex(_0))]
#[debug("{self}")]
pub struct FrameHash(pub(super) [u8; 32]);

/// A zstd frame: its length in the file, and the SHA-256 of its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameRecord(pub u32, pub FrameHash);

impl FrameHash {
    /// Computes the SHA-256 of `bytes`.
    pub fn of(bytes: &[u8]) -> FrameHash {
        FrameHash(Sha256::digest(bytes).into())
    }
}

impl From<Sha256> for FrameHash {
    /// The SHA-256 of everything that the hasher received.
    fn from(hasher: Sha256) -> FrameHash {
        FrameHash(hasher.finalize().into())
    }
}

impl FrameRecord {
    /// The record of the frame with these bytes.
    pub(crate) fn of(bytes: &[u8]) -> FrameRecord {
        FrameRecord(bytes.len() as u32, FrameHash::of(bytes))
    }
}

impl FromStr for FrameHash {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<FrameHash, Self::Err> {
        unhex(text)
            .map(FrameHash)
            .ok_or("a hash has 64 lower-case hex digits")
    }
}

serde_as_text!(FrameHash);

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_model::Digest;

    #[test]
    fn hashes_are_parsed_as_they_are_printed() {
        let hash = FrameHash::of(b"abc");
        assert_eq!(hash.to_string(), Digest::sha256(b"abc").hex());
        assert_eq!(hash.to_string().parse(), Ok(hash));
        for bad in ["", "00", &"A".repeat(64), &"0".repeat(65), &"é".repeat(32)] {
            assert!(bad.parse::<FrameHash>().is_err(), "{bad}");
        }
    }
}
