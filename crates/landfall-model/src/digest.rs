//! Content digests (`algorithm:hex`) and their computation.

use derive_more::Display;
use sha2::digest::common::hazmat::SerializableState;
use sha2::{Digest as _, Sha256, Sha512};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The hash algorithms that the OCI image specification registers (descriptor.md, "Registered
/// Algorithms").
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Algorithm {
    /// SHA-256, written as 64 hex digits.
    Sha256,
    /// SHA-512, written as 128 hex digits.
    Sha512,
}

impl Algorithm {
    /// All algorithms.
    pub const ALL: [Algorithm; 2] = [Algorithm::Sha256, Algorithm::Sha512];

    /// The name before the colon of a digest, which is also the folder below `blobs/`.
    pub fn as_str(self) -> &'static str {
        match self {
            Algorithm::Sha256 => "sha256",
            Algorithm::Sha512 => "sha512",
        }
    }

    /// The algorithm with this name; upper case is read, too.
    fn of(name: &str) -> Option<Algorithm> {
        Algorithm::ALL
            .into_iter()
            .find(|algorithm| name.eq_ignore_ascii_case(algorithm.as_str()))
    }

    fn hex_len(self) -> usize {
        match self {
            Algorithm::Sha256 => 64,
            Algorithm::Sha512 => 128,
        }
    }
}

/// A well-formed digest. It is written in lower case, and may be read in upper case, as some
/// registries and tools write it.
#[derive(
    Clone, PartialEq, Eq, PartialOrd, Ord, Hash, schemars::JsonSchema, Display, derive_more::Debug,
)]
#[schemars(try_from = "String", into = "String")]
#[display("{}:{}", self.algorithm().as_str(), self.hex())]
#[debug("{self}")]
pub struct Digest(DigestBytes);

// SHA-512 is rare, so it is on the heap: a lock may have hundreds of thousands of digests
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum DigestBytes {
    Sha256([u8; 32]),
    Sha512(Arc<[u8; 64]>),
}

/// A text that is not a digest. The message is formatted only when it is shown, because readers of
/// documents parse to test whether a text is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DigestError(pub(crate) String);

impl fmt::Display for DigestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = &self.0;
        match text
            .split_once(':')
            .map(|(name, _)| (name, Algorithm::of(name)))
        {
            None | Some(("", _)) => write!(
                f,
                "'{text}' is not a digest: write algorithm:hex, as in sha256:<64 hex digits>"
            ),
            Some((_, None)) => write!(
                f,
                "digest '{text}' uses an unsupported algorithm (sha256 and sha512 are supported)"
            ),
            Some((_, Some(algorithm))) => {
                let digits = algorithm.hex_len();
                write!(
                    f,
                    "digest '{text}' needs {digits} hex digits after the colon"
                )
            }
        }
    }
}

impl std::error::Error for DigestError {}

impl Digest {
    /// Computes the SHA-256 digest of `bytes`.
    pub fn sha256(bytes: &[u8]) -> Digest {
        Digest::compute(Algorithm::Sha256, bytes)
    }

    /// Computes the digest of `bytes`.
    pub fn compute(algorithm: Algorithm, bytes: &[u8]) -> Digest {
        let mut hasher = Hasher::new(algorithm);
        hasher.update(bytes);
        hasher.finish()
    }

    /// The hash algorithm of the digest.
    pub fn algorithm(&self) -> Algorithm {
        match self.0 {
            DigestBytes::Sha256(_) => Algorithm::Sha256,
            DigestBytes::Sha512(_) => Algorithm::Sha512,
        }
    }

    /// The bytes that the hex digits encode: 32 for SHA-256, 64 for SHA-512.
    pub fn bytes(&self) -> &[u8] {
        match &self.0 {
            DigestBytes::Sha256(bytes) => bytes,
            DigestBytes::Sha512(bytes) => &bytes[..],
        }
    }

    /// The hex digits without the algorithm.
    pub fn hex(&self) -> String {
        hex(self.bytes())
    }

    /// The first `n` hex digits, without the algorithm.
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

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || DigestError(text.into());
        let (name, hex) = text.split_once(':').ok_or_else(wrong)?;
        let algorithm = Algorithm::of(name).ok_or_else(wrong)?;
        let hex = if hex.bytes().any(|byte| byte.is_ascii_uppercase()) {
            Cow::Owned(hex.to_ascii_lowercase())
        } else {
            Cow::Borrowed(hex)
        };
        let value = match algorithm {
            Algorithm::Sha256 => unhex(&hex).map(DigestBytes::Sha256),
            Algorithm::Sha512 => unhex(&hex).map(|bytes| DigestBytes::Sha512(Arc::new(bytes))),
        };
        value.map(Digest).ok_or_else(wrong)
    }
}

crate::serde_as_text!(Digest);

/// Computes a [`Digest`] piece by piece.
#[derive(Clone, derive_more::Debug)]
#[debug("Hasher")]
pub struct Hasher(HashState);

#[derive(Clone)]
enum HashState {
    Sha256(Sha256),
    Sha512(Box<Sha512>),
}

impl Hasher {
    /// Creates a hasher for new content.
    pub fn new(algorithm: Algorithm) -> Hasher {
        Hasher(match algorithm {
            Algorithm::Sha256 => HashState::Sha256(Sha256::new()),
            Algorithm::Sha512 => HashState::Sha512(Box::new(Sha512::new())),
        })
    }

    /// Adds `bytes` to the content hashed so far.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            HashState::Sha256(state) => state.update(bytes),
            HashState::Sha512(state) => state.update(bytes),
        }
    }

    /// The state from which [`Hasher::resume`] continues, even in another process.
    pub fn state(&self) -> Vec<u8> {
        match &self.0 {
            HashState::Sha256(state) => state.serialize().to_vec(),
            HashState::Sha512(state) => state.serialize().to_vec(),
        }
    }

    /// Continues from a [`Hasher::state`]. Returns `None` if `state` is not a state of
    /// `algorithm`.
    pub fn resume(algorithm: Algorithm, state: &[u8]) -> Option<Hasher> {
        Some(Hasher(match algorithm {
            Algorithm::Sha256 => {
                HashState::Sha256(Sha256::deserialize(&state.try_into().ok()?).ok()?)
            }
            Algorithm::Sha512 => {
                HashState::Sha512(Box::new(Sha512::deserialize(&state.try_into().ok()?).ok()?))
            }
        }))
    }

    /// Returns the digest of all bytes so far.
    pub fn finish(self) -> Digest {
        Digest(match self.0 {
            HashState::Sha256(state) => DigestBytes::Sha256(state.finalize().into()),
            HashState::Sha512(state) => DigestBytes::Sha512(Arc::new(state.finalize().into())),
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

/// Formats bytes as lower-case hex digits.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        text.push(DIGITS[usize::from(byte >> 4)].into());
        text.push(DIGITS[usize::from(byte & 15)].into());
    }
    text
}

/// Parses exactly `N` bytes from lower-case hex digits.
pub fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N {
        return None;
    }
    let pairs: &[[u8; 2]] = text.as_bytes().as_chunks().0;
    let mut bytes = [0; N];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = hex_digit(*high)? << 4 | hex_digit(*low)?;
    }
    Some(bytes)
}

fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_equal_published_test_vectors() {
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
    fn only_well_formed_digests_are_parsed() {
        let hex = "0".repeat(64);
        assert!(format!("sha256:{hex}").parse::<Digest>().is_ok());
        let digest = Digest::sha256(b"x");
        let upper = digest.to_string().to_uppercase();
        assert_eq!(upper.parse(), Ok(digest), "{upper}");
        for bad in [
            "",
            "sha256",
            ":aa",
            "md5:aa",
            "sha256:00",
            &format!("sha256:{}", "g".repeat(64)),
        ] {
            assert!(bad.parse::<Digest>().is_err(), "{bad}");
        }
    }
}
