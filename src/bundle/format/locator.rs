//! The locator: a text of fixed length near the front of a bundle. It says where the contents index is.

use super::frame::stored;
use super::hash::Hash;
use super::header;
use super::names::LOCATOR;
use super::stored::{BLOCK_HEAD, HEAD, stored_len};
use crate::model::Digest;

/// Length of the text in bytes.
const LEN: usize = 246;

/// File bytes of the locator's entry: header frame, content frame, padding frame.
pub(crate) const SPAN: usize = 3 * 17 + 512 + 512;

/// Where the contents index is, and its hashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Locator {
    /// File offset of its first content frame.
    pub offset: u64,
    /// File bytes of its content frames.
    pub length: u64,
    /// SHA-256 of these bytes.
    pub frames: Hash,
    /// Bytes of the index itself.
    pub size: u64,
    /// SHA-256 of these bytes: the bundle digest.
    pub sha256: Digest,
}

impl Locator {
    fn text(&self) -> String {
        let Locator { offset, length, frames, size, sha256 } = self;
        let sha256 = sha256.hex();
        format!(
            "landfall bundle 1\noffset {offset:020}\nlength {length:020}\nframes {frames}\nsize   {size:020}\nsha256 {sha256}\n"
        )
    }

    /// The frames of its entry.
    pub(crate) fn frames(&self) -> [Vec<u8>; 3] {
        let text = self.text();
        let padding = vec![0; header::padding(LEN as u64)];
        [stored(&header::encode(LOCATOR, LEN as u64)), stored(text.as_bytes()), stored(&padding)]
    }

    /// How many content bytes each frame of its entry holds.
    pub(crate) fn content_lens() -> [usize; 3] {
        [header::BLOCK, LEN, header::padding(LEN as u64)]
    }

    /// Reads the frames of its entry; `None` where they are not exactly as [`Locator::frames`] makes them.
    pub(crate) fn parse(span: &[u8]) -> Option<Locator> {
        let before = stored_len(header::BLOCK as u64) as usize + HEAD + BLOCK_HEAD;
        let text = span.get(before..)?.get(..LEN)?;
        let text = std::str::from_utf8(text).ok()?;
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim_start);
        let number = |name| field(name)?.parse().ok();
        let locator = Locator {
            offset: number("offset ")?,
            length: number("length ")?,
            frames: field("frames ")?.parse().ok()?,
            size: number("size ")?,
            sha256: format!("sha256:{}", field("sha256 ")?).parse().ok()?,
        };
        (locator.frames().concat() == span).then_some(locator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_length_is_fixed_and_every_bit_counts() {
        let none =
            Locator { offset: 0, length: 0, frames: Hash::of(b""), size: 0, sha256: Digest::sha256(b"") };
        let all = Locator {
            offset: u64::MAX,
            length: u64::MAX,
            frames: Hash::of(b"a"),
            size: u64::MAX,
            sha256: Digest::sha256(b"b"),
        };
        for locator in [none, all] {
            assert_eq!(locator.text().len(), LEN);
            let span = locator.frames().concat();
            assert_eq!(span.len(), SPAN);
            assert_eq!(Locator::parse(&span), Some(locator.clone()));
            for bit in 0..8 * span.len() {
                let mut bad = span.clone();
                bad[bit / 8] ^= 1 << (bit % 8);
                assert_ne!(Locator::parse(&bad), Some(locator.clone()), "{bit}");
            }
            assert_eq!(Locator::parse(&span[..SPAN - 1]), None);
        }
    }
}
