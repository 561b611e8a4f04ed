//! The packs of a git repository in a lock, and packs that are read from stored blobs.

use super::BlobRead;
use landfall_git::{ObjectId, PackBytes};
use landfall_model::{Digest, locked};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};
use std::io::{self, Read};
use std::sync::{Arc, Mutex};

/// The packs that contain a git repository. Each has the objects that its tips need and the earlier
/// packs lack, so that a newer lock adds a pack instead of replacing one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GitPacks {
    /// The http or https URL of the repository.
    pub url: String,
    /// The path of a repository or git bundle next to the lock that has the objects, relative to
    /// the folder of the lock; empty if it is not below that folder, so that only the store has the
    /// packs. `None` if they are fetched from `url`.
    pub path: Option<String>,
    /// The packs, the oldest first.
    pub packs: Vec<GitPack>,
    /// How many commits of each history are carried; all if `None`.
    pub depth: Option<u32>,
    /// The commits whose parents are not carried.
    pub shallow: Vec<ObjectId>,
}

/// A pack of [`GitPacks`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GitPack {
    /// SHA-256 of the pack.
    pub digest: Digest,
    /// The size of the pack in bytes.
    pub size: u64,
    /// The commits and annotated tags whose objects this pack and the earlier packs contain.
    #[serde(with = "git_object_ids")]
    pub tips: Vec<ObjectId>,
}

/// Reads and writes ids of objects as texts.
pub mod git_object_ids {
    use landfall_git::ObjectId;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    /// Reads ids that are written as texts.
    ///
    /// # Errors
    /// If a text is not an id.
    pub fn deserialize<'de, D: Deserializer<'de>>(source: D) -> Result<Vec<ObjectId>, D::Error> {
        let texts = Vec::<String>::deserialize(source)?;
        let ids = texts.iter().map(|text| text.parse());
        ids.collect::<Result<_, _>>().map_err(Error::custom)
    }

    /// Writes ids as texts.
    ///
    /// # Errors
    /// If `out` fails.
    pub fn serialize<S: Serializer>(ids: &[ObjectId], out: S) -> Result<S::Ok, S::Error> {
        out.collect_seq(ids.iter().map(ToString::to_string))
    }
}

impl GitPacks {
    /// Returns the tips of the packs before the pack at `at`, sorted. A tag is a tip of every pack
    /// since it exists, but is returned once: servers limit the size of requests.
    pub fn tips_before(&self, at: usize) -> Vec<ObjectId> {
        let packs = self.packs.iter().take(at);
        let tips: BTreeSet<ObjectId> = packs.flat_map(|pack| pack.tips.iter().copied()).collect();
        tips.into_iter().collect()
    }
}

/// The size of the blocks in which a stored pack is read, in bytes.
const BLOCK: u64 = 256 << 10;
/// How many blocks of a pack are kept.
const BLOCKS: usize = 32;

/// A pack that is read from a stored blob.
pub struct BlobPackBytes {
    blobs: Arc<dyn BlobRead>,
    digest: Digest,
    size: u64,
    /// The blocks that were read last, by their numbers.
    blocks: Mutex<VecDeque<(u64, Arc<[u8]>)>>,
}

impl BlobPackBytes {
    /// Returns the bytes of the stored pack `digest`, which has `size` bytes.
    pub fn new(blobs: Arc<dyn BlobRead>, digest: Digest, size: u64) -> BlobPackBytes {
        BlobPackBytes {
            blobs,
            digest,
            size,
            blocks: Mutex::default(),
        }
    }

    /// Returns the block with this number. It is kept, because the entries of a pack are small and
    /// opening a blob may decompress a frame.
    fn block(&self, number: u64) -> io::Result<Arc<[u8]>> {
        let is_it = |(known, _): &&(u64, Arc<[u8]>)| *known == number;
        if let Some((_, block)) = locked(&self.blocks).iter().find(is_it) {
            return Ok(block.clone());
        }
        let offset = number * BLOCK;
        let length = BLOCK.min(self.size.saturating_sub(offset)) as usize;
        let mut block = vec![0; length];
        self.blobs
            .open(&self.digest, offset)
            .map_err(io::Error::other)?
            .read_exact(&mut block)?;
        let block: Arc<[u8]> = block.into();
        let mut blocks = locked(&self.blocks);
        blocks.push_front((number, block.clone()));
        blocks.truncate(BLOCKS);
        Ok(block)
    }
}

impl PackBytes for BlobPackBytes {
    fn read_exact_at(&self, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buffer.is_empty() {
            let block = self.block(offset / BLOCK)?;
            let rest = block.get((offset % BLOCK) as usize..).unwrap_or_default();
            if rest.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let count = rest.len().min(buffer.len());
            let (filled, open) = buffer.split_at_mut(count);
            filled.copy_from_slice(&rest[..count]);
            buffer = open;
            offset += count as u64;
        }
        Ok(())
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryBlobs;

    #[test]
    fn a_tip_of_several_packs_is_returned_once() {
        let id = |digit: &str| digit.repeat(40).parse::<ObjectId>().unwrap();
        let pack = |tips: &[&str]| GitPack {
            digest: Digest::sha256(b""),
            size: 1,
            tips: tips.iter().map(|digit| id(digit)).collect(),
        };
        let packs = GitPacks {
            url: "https://h/a".into(),
            path: None,
            packs: vec![pack(&["3", "7"]), pack(&["1", "3"]), pack(&["5"])],
            depth: None,
            shallow: Vec::new(),
        };
        assert_eq!(packs.tips_before(2), ["1", "3", "7"].map(id));
        assert!(packs.tips_before(0).is_empty());
    }

    #[test]
    fn a_stored_pack_is_read_at_any_offset() {
        let bytes: Vec<u8> = (0..700_000_u32).map(|n| (n % 251) as u8).collect();
        let digest = Digest::sha256(&bytes);
        let blobs = MemoryBlobs([(digest.clone(), bytes.clone().into())].into());
        let blobs = Arc::new(blobs);
        let pack = BlobPackBytes::new(blobs, digest, bytes.len() as u64);
        for (offset, length) in [
            (0, 10),
            (BLOCK as usize - 3, 9),
            (100, 600_000),
            (699_999, 1),
        ] {
            let mut buffer = vec![0; length];
            pack.read_exact_at(&mut buffer, offset as u64).unwrap();
            assert_eq!(buffer, bytes[offset..offset + length]);
        }
        assert!(pack.read_exact_at(&mut [0; 2], 699_999).is_err());
    }
}
