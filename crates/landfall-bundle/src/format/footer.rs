//! The footer: the last bytes of a bundle, which have a fixed length and locate the contents index
//! and the signatures.

use super::frame::FrameHash;
use super::header;
use super::stored::stored_len;
use landfall_model::Digest;

/// Magic number of the footer's skippable frame, and of the one with the signatures (RFC 8878,
/// 3.1.2).
pub(super) const SKIPPABLE: [u8; 4] = 0x184d_2a5c_u32.to_le_bytes();
/// The length of the header of a skippable frame: magic number, and content length in four bytes.
pub(super) const SKIPPABLE_HEAD: usize = 8;

/// Length of the footer's text in bytes.
const TEXT: usize = 346;

/// Length of the footer in bytes.
pub(crate) const LEN: usize = SKIPPABLE_HEAD + TEXT;

/// The locations and hashes of the contents index and the signatures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Footer {
    /// The file offset of the index's first frame with content.
    pub offset: u64,
    /// The length in the file of the index's frames with content.
    pub length: u64,
    /// SHA-256 of the bytes of these frames.
    pub frames: FrameHash,
    /// The size of the index itself, decoded.
    pub size: u64,
    /// SHA-256 of the decoded index: the bundle digest.
    pub sha256: Digest,
    /// The length of the frame with the signatures, which ends where the footer begins; 0 without
    /// signatures.
    pub signed: u64,
    /// SHA-256 of the frame with the signatures.
    pub signatures: FrameHash,
}

/// Encodes a skippable frame with this content.
pub(super) fn skippable(content: &[u8]) -> Vec<u8> {
    [&SKIPPABLE, &(content.len() as u32).to_le_bytes(), content].concat()
}

/// The value in the line of `text` that begins with `name`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines()
        .find_map(|line| line.strip_prefix(name))
        .map(str::trim_start)
}

impl Footer {
    fn text(&self) -> String {
        let Footer {
            offset,
            length,
            frames,
            size,
            sha256,
            signed,
            signatures,
        } = self;
        let sha256 = sha256.hex();
        // 20 digits hold any 64-bit number, so that the text has a fixed length
        format!(
            "landfall bundle 1\noffset {offset:020}\nlength {length:020}\nframes {frames}\n\
             size   {size:020}\nsha256 {sha256}\nsigned {signed:020}\nsigs   {signatures}\n"
        )
    }

    /// Encodes the footer in its fixed length.
    pub fn to_bytes(&self) -> Vec<u8> {
        skippable(self.text().as_bytes())
    }

    /// Parses the last bytes of a bundle; `None` unless they are exactly as [`Footer::to_bytes`]
    /// writes them.
    pub fn parse(bytes: &[u8]) -> Option<Footer> {
        let text = std::str::from_utf8(bytes.get(SKIPPABLE_HEAD..)?).ok()?;
        let footer = Footer {
            offset: field(text, "offset ")?.parse().ok()?,
            length: field(text, "length ")?.parse().ok()?,
            frames: field(text, "frames ")?.parse().ok()?,
            size: field(text, "size ")?.parse().ok()?,
            sha256: format!("sha256:{}", field(text, "sha256 ")?).parse().ok()?,
            signed: field(text, "signed ")?.parse().ok()?,
            signatures: field(text, "sigs ")?.parse().ok()?,
        };
        // every bit is compared: no other bytes may decode to the same footer
        (footer.to_bytes() == bytes).then_some(footer)
    }

    /// The offset of the end of the tar: after the contents index, its padding, and two blocks of
    /// zeros. The signatures follow.
    pub(crate) fn tar_end(&self) -> Option<u64> {
        let after =
            stored_len(header::padding(self.size) as u64) + stored_len(header::END.len() as u64);
        // a hostile footer may have any numbers
        self.offset.checked_add(self.length)?.checked_add(after)
    }

    /// The length of the whole bundle in bytes.
    pub(crate) fn bundle_len(&self) -> Option<u64> {
        self.tar_end()?
            .checked_add(self.signed)?
            .checked_add(LEN as u64)
    }
}

// The signatures of a bundle: armored texts over the contents index, in a skippable frame before
// the footer. They are not part of the index, so they do not change the bundle digest.

/// The beginnings of the first and the last line of an armored signature.
const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";

/// Encodes the frame with these signatures; returns no bytes if there are none. A line feed
/// precedes the first signature, so that text tools find it at the beginning of a line.
pub(crate) fn to_frame(texts: &[String]) -> Vec<u8> {
    if texts.is_empty() {
        Vec::new()
    } else {
        skippable(format!("\n{}", texts.concat()).as_bytes())
    }
}

/// Parses the signatures in a frame; `None` unless it is exactly as [`to_frame`] writes it.
pub(crate) fn parse(frame: &[u8]) -> Option<Vec<String>> {
    if frame.is_empty() {
        return Some(Vec::new());
    }
    let text = frame
        .strip_prefix(&SKIPPABLE)?
        .get(SKIPPABLE_HEAD - SKIPPABLE.len()..)?;
    let mut texts: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in std::str::from_utf8(text)
        .ok()?
        .strip_prefix('\n')?
        .split_inclusive('\n')
    {
        if !is_open {
            is_open = line.starts_with(BEGIN);
            texts.push(String::new());
        }
        texts.last_mut()?.push_str(line);
        is_open &= !line.starts_with(END);
    }
    let are_whole = texts
        .iter()
        .all(|text| text.starts_with(BEGIN) && text.contains(END) && text.ends_with('\n'));
    (!is_open && are_whole && to_frame(&texts) == frame).then_some(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_footer_has_a_fixed_length_and_no_flipped_bit_yields_the_same_footer() {
        let none = Footer {
            offset: 0,
            length: 0,
            frames: FrameHash::of(b""),
            size: 0,
            sha256: Digest::sha256(b""),
            signed: 0,
            signatures: FrameHash::of(b""),
        };
        let all = Footer {
            offset: u64::MAX,
            length: u64::MAX,
            frames: FrameHash::of(b"a"),
            size: u64::MAX,
            sha256: Digest::sha256(b"b"),
            signed: u64::MAX,
            signatures: FrameHash::of(b"c"),
        };
        for footer in [none, all] {
            let bytes = footer.to_bytes();
            assert_eq!((bytes.len(), bytes.len() - SKIPPABLE_HEAD), (LEN, TEXT));
            assert_eq!(Footer::parse(&bytes), Some(footer.clone()));
            for bit in 0..8 * bytes.len() {
                let mut bad = bytes.clone();
                bad[bit / 8] ^= 1 << (bit % 8);
                assert_ne!(Footer::parse(&bad), Some(footer.clone()), "{bit}");
            }
            assert_eq!(Footer::parse(&bytes[..LEN - 1]), None);
        }
    }

    #[test]
    fn signatures_are_read_as_they_were_written_and_other_bytes_are_refused() {
        let text = |word: &str| format!("-----BEGIN {word}-----\nabc\ndef\n-----END {word}-----\n");
        for texts in [
            vec![],
            vec![text("A")],
            vec![text("A"), text("B"), text("A")],
        ] {
            let frame = to_frame(&texts);
            assert_eq!(parse(&frame), Some(texts), "{frame:?}");
        }
        let good = to_frame(&[text("A")]);
        for bad in [
            good[..good.len() - 1].to_vec(),
            good[..6].to_vec(),
            [&good[..], b"x"].concat(),
            skippable(b"\n"),
            skippable(b"\nrest\n"),
            skippable(format!("\n{}rest\n", text("A")).as_bytes()),
            skippable(text("A").as_bytes()),
            skippable(b"\n-----BEGIN A-----\nabc\n"),
            skippable(b"\xff\n"),
        ] {
            assert_eq!(parse(&bad), None, "{bad:?}");
        }
    }
}
