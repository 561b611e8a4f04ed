//! Recipes: how to rebuild a blob that the bundle does not contain.
//!
//! The contents index lists each such blob as a [`BlobRecipe`]. The recipe itself is the content of
//! an entry of the bundle: a [`RecipeHeader`], then five sections.

use super::names::RECIPE_PREFIX;
use landfall_model::{Descriptor, DestinationMap, Digest, ImageRef, is_repository};
use serde::{Deserialize, Serialize};
use std::io::{self, Read};

/// The maximum number of bases of a recipe.
pub(crate) const MAX_BASES: usize = 8;

/// The maximum length of a chain of recipes. Each recipe of a chain, except the first, uses a blob
/// that the previous recipe rebuilds.
pub(crate) const MAX_CHAIN: usize = 16;

/// The largest plain content that a reader rebuilds: 64 GiB.
pub(crate) const MAX_PLAIN: u64 = 64 << 30;

/// The maximum number of plain bytes for each byte of a compressed blob. Deflate can describe 1,032
/// bytes by one, and programs and texts have 2 to 20. Without this limit, a small blob would fill
/// the temporary folder. A blob with more plain bytes is carried whole.
pub(crate) const MAX_EXPANSION: u64 = 64;

/// The number of plain bytes that a blob of any size may have.
const FREE_PLAIN: u64 = 1 << 20;

/// The maximum length of the stream section, which says how the blob was compressed. A reader keeps
/// it in memory.
pub(crate) const MAX_STREAM_SECTION: u64 = 64 << 20;

/// The number of sections of a recipe.
pub(crate) const SECTIONS: usize = 1 + landfall_patch::SECTIONS;

const MAGIC: [u8; 8] = *b"LFRECIPE";
const VERSION: u8 = 1;

/// A blob that the bundle has a recipe for, as the contents index lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BlobRecipe {
    /// Digest, size and media type of the blob.
    #[serde(flatten)]
    pub blob: Descriptor,
    /// The name of the entry with the recipe.
    pub entry: String,
    /// The bases of the recipe, in the order of its header: blobs in this bundle, blobs for which
    /// this bundle has recipes, or [references](super::contents::ContentsIndex::references).
    pub from: Vec<Digest>,
}

/// A blob that recipes use, and that the bundle neither contains nor has a recipe for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BlobReference {
    /// Digest, size and media type of the blob.
    #[serde(flatten)]
    pub blob: Descriptor,
    /// The name of the image or chart that was delivered with the blob. The registry has the blob
    /// in the repositories to which this name is mapped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// If the blob was delivered with an item of another kind: the repository of that item, below
    /// the prefix of the destination.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

impl BlobReference {
    /// The repositories that have the blob at the destination of `mapping`, if it was delivered
    /// there.
    pub fn repositories(&self, mapping: &DestinationMap) -> Vec<String> {
        // a foreign bundle may contain an invalid name, which has no repositories
        let image = self
            .image
            .as_ref()
            .and_then(|name| name.parse::<ImageRef>().ok());
        let images = image.iter().flat_map(|name| mapping.destinations(name));
        let path = self.path.as_ref().filter(|path| is_repository(path));
        let others = path.map(|path| mapping.own_destination(path));
        images
            .chain(others)
            .map(|destination| destination.repository)
            .collect()
    }
}

/// The name of the entry for the recipe with this digest.
pub(crate) fn entry_name(content: &Digest) -> String {
    format!("{RECIPE_PREFIX}{}", content.hex())
}

/// How the plain bytes of a blob are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum BlobCoding {
    /// The blob is not compressed: it equals its plain bytes.
    Plain = 0,
    /// The blob is a gzip or zlib stream of its plain bytes.
    Deflate = 1,
}

impl BlobCoding {
    fn from_byte(byte: u8) -> Option<BlobCoding> {
        [BlobCoding::Plain, BlobCoding::Deflate]
            .into_iter()
            .find(|coding| *coding as u8 == byte)
    }

    /// The maximum number of plain bytes of a blob of `size` bytes with this coding.
    pub(crate) fn max_plain(self, size: u64) -> u64 {
        let limit = match self {
            BlobCoding::Plain => size,
            BlobCoding::Deflate => size.saturating_mul(MAX_EXPANSION).max(FREE_PLAIN),
        };
        limit.min(MAX_PLAIN)
    }
}

/// The beginning of a recipe. All numbers are little-endian.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecipeHeader {
    /// The coding of the blob.
    pub(crate) coding: BlobCoding,
    /// The coding of each base.
    pub(crate) bases: Vec<BlobCoding>,
    /// The size of the plain bytes of the blob.
    pub(crate) plain: u64,
    /// The lengths of the sections: the stream section, then those of the patch.
    pub(crate) sections: [u64; SECTIONS],
}

impl RecipeHeader {
    /// The length of the header in bytes.
    pub(crate) fn length(&self) -> u64 {
        (MAGIC.len() + 3 + self.bases.len() + 8 * (1 + SECTIONS)) as u64
    }

    /// The offset of a section in the recipe.
    pub(crate) fn offset(&self, section: usize) -> u64 {
        self.length() + self.sections[..section].iter().sum::<u64>()
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([VERSION, self.coding as u8, self.bases.len() as u8]);
        bytes.extend(self.bases.iter().map(|base| *base as u8));
        for number in [self.plain].iter().chain(&self.sections) {
            bytes.extend(number.to_le_bytes());
        }
        bytes
    }

    /// Reads the header of a recipe of `size` bytes with `bases` bases. Fails if the header is not
    /// one of this version, exceeds a limit, or contradicts `size` or `bases`.
    pub(crate) fn read(input: &mut impl Read, size: u64, bases: usize) -> io::Result<RecipeHeader> {
        let bad = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why.to_owned());
        let mut start = [0; MAGIC.len() + 3];
        input.read_exact(&mut start)?;
        let [magic @ .., version, coding, count] = start;
        if magic != MAGIC || version != VERSION {
            return Err(bad("it is not a recipe of this version"));
        }
        if usize::from(count) != bases || bases > MAX_BASES {
            return Err(bad(
                "its number of bases differs from that in the contents index",
            ));
        }
        let mut codings = vec![0; bases];
        input.read_exact(&mut codings)?;
        let known =
            |byte| BlobCoding::from_byte(byte).ok_or_else(|| bad("it has an unknown coding"));
        let mut numbers = [0; 1 + SECTIONS];
        for number in &mut numbers {
            let mut bytes = [0; 8];
            input.read_exact(&mut bytes)?;
            *number = u64::from_le_bytes(bytes);
        }
        let [plain, sections @ ..] = numbers;
        let header = RecipeHeader {
            coding: known(coding)?,
            bases: codings.into_iter().map(known).collect::<io::Result<_>>()?,
            plain,
            sections,
        };
        let total = sections
            .iter()
            .try_fold(header.length(), |sum, section| sum.checked_add(*section));
        if total != Some(size) || plain > MAX_PLAIN || sections[0] > MAX_STREAM_SECTION {
            return Err(bad("its sections have impossible lengths"));
        }
        Ok(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> RecipeHeader {
        RecipeHeader {
            coding: BlobCoding::Deflate,
            bases: vec![BlobCoding::Plain, BlobCoding::Deflate],
            plain: 1 << 33,
            sections: [3, 1, 4, 1, 5],
        }
    }

    #[test]
    fn a_header_is_read_as_it_was_written() {
        let header = header();
        let bytes = header.to_bytes();
        assert_eq!(bytes.len() as u64, header.length());
        let size = header.length() + 14;
        assert_eq!(
            RecipeHeader::read(&mut &bytes[..], size, 2).unwrap(),
            header
        );
        assert_eq!(header.offset(0), header.length());
        assert_eq!(header.offset(4), header.length() + 9);
    }

    #[test]
    fn headers_that_contradict_the_index_or_themselves_are_refused() {
        let header = header();
        let size = header.length() + 14;
        let read = |bytes: &[u8], size, bases| RecipeHeader::read(&mut &bytes[..], size, bases);
        let bytes = header.to_bytes();
        assert!(read(&bytes, size + 1, 2).is_err());
        assert!(read(&bytes, size, 1).is_err());
        for (at, byte) in [
            (0, b'X'),
            (8, 2),
            (9, 2),
            (10, 9),
            (11, 7),
            (17, 0xff),
            (30, 0xff),
        ] {
            let mut changed = bytes.clone();
            changed[at] = byte;
            assert!(read(&changed, size, 2).is_err(), "{at}");
        }
        for end in 0..bytes.len() {
            assert!(read(&bytes[..end], size, 2).is_err(), "{end}");
        }
        // the largest plain content and stream section are accepted, and one byte more is refused
        let sized = |plain, stream| {
            let header = RecipeHeader {
                plain,
                sections: [stream, 0, 0, 0, 0],
                ..header.clone()
            };
            read(&header.to_bytes(), header.length() + stream, 2)
        };
        sized(MAX_PLAIN, MAX_STREAM_SECTION).unwrap();
        for refused in [
            sized(MAX_PLAIN + 1, MAX_STREAM_SECTION),
            sized(MAX_PLAIN, MAX_STREAM_SECTION + 1),
        ] {
            let error = refused.unwrap_err().to_string();
            assert!(error.contains("impossible lengths"), "{error}");
        }
        let mut huge = header.clone();
        huge.sections = [u64::MAX; SECTIONS];
        assert!(read(&huge.to_bytes(), size, 2).is_err());
    }
}
