//! The index of a pack as git stores it next to the pack (gitformat-pack, "Version 2 pack-*.idx").

use super::database::ObjectDatabase;
use crate::error::GitError;
use crate::object::ObjectId;
use flate2::Crc;

/// The index file of a pack, and the name that git gives to the pack and to the index.
pub struct PackIndexFile {
    /// `pack-` and the checksum at the end of the pack.
    pub name: String,
    /// The content of the file with the ending `.idx`.
    pub content: Vec<u8>,
}

impl ObjectDatabase {
    /// The index of the only pack of this database.
    ///
    /// # Errors
    /// If there is no pack, or it cannot be read.
    pub fn index_file(&self) -> Result<PackIndexFile, GitError> {
        let pack = self.packs.first();
        let pack = pack.ok_or_else(|| GitError::DamagedPack("there is no pack".into()))?;
        let length = pack.length().map_err(GitError::ReadPack)?;
        let mut checksum = [0; ObjectId::BYTES];
        pack.read_exact_at(&mut checksum, length - ObjectId::BYTES as u64)
            .map_err(GitError::ReadPack)?;
        // an object that the pack has twice is listed once
        let mut sorted: Vec<u32> = self.by_id.values().copied().collect();
        sorted.sort_by_key(|object| self.objects[*object as usize].id);
        let mut content = b"\xfftOc\0\0\0\x02".to_vec();
        for first in 0..=u8::MAX {
            let is_below = |object: &u32| self.objects[*object as usize].id.as_bytes()[0] <= first;
            let count = sorted.partition_point(is_below) as u32;
            content.extend(count.to_be_bytes());
        }
        for object in &sorted {
            content.extend(self.objects[*object as usize].id.as_bytes());
        }
        for object in &sorted {
            let mut crc = Crc::new();
            crc.update(&self.raw_entry(&self.objects[*object as usize])?);
            content.extend(crc.sum().to_be_bytes());
        }
        let mut large = Vec::new();
        for object in &sorted {
            let offset = self.objects[*object as usize].offset;
            let short = u32::try_from(offset).ok().filter(|short| short >> 31 == 0);
            let word = short.unwrap_or_else(|| {
                // the next table contains the long offsets; this word is an index into it
                large.push(offset);
                1 << 31 | (large.len() as u32 - 1)
            });
            content.extend(word.to_be_bytes());
        }
        content.extend(large.iter().flat_map(|offset| offset.to_be_bytes()));
        content.extend(checksum);
        let sum = {
            use sha1_checked::Digest;
            sha1_checked::Sha1::digest(&content)
        };
        content.extend(sum);
        let hex: String = checksum.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(PackIndexFile {
            name: format!("pack-{hex}"),
            content,
        })
    }
}
