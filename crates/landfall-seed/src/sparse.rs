//! Writes a bundle of any size whose blobs take no disk space: they are a hole in the file, and
//! everything else is real. It is used to measure how long opening a large bundle takes.
//!
//! The code follows `docs/reference/bundle-format.md`, independently of the bundle crate, so it
//! also tests that page. Section numbers refer to it.

use crate::content::sha256;
use anyhow::Result;
use landfall_item::LockedFile;
use landfall_item::lockfile::Lock;
use landfall_os::FileExt;
use serde_json::{Value, json};
use std::path::Path;
use xxhash_rust::xxh64::xxh64;

/// The maximum content of a frame, in bytes.
const CHUNK: u64 = 1 << 20;
/// The minimum size of a blob, in bytes.
const BLOB: u64 = 50 << 20;
/// The approximate maximum number of blobs. A bundle that would need more gets larger blobs.
const BLOBS: u64 = 4096;
/// The size of a row of the frame table, in bytes: an offset and a SHA-256.
const ROW: usize = 40;

/// Returns a zstd frame of raw blocks (section 2).
fn frame(content: &[u8]) -> Vec<u8> {
    // magic number, frame header descriptor and window descriptor (RFC 8878, 3.1.1)
    let mut out = vec![0x28, 0xb5, 0x2f, 0xfd, 0x84, 0x50];
    out.extend((content.len() as u32).to_le_bytes());
    let blocks = content.chunks(128 << 10).count();
    // a block has at most 128 KiB; bit 0 of its header marks the last one, and type 0 is raw
    for (index, block) in content.chunks(128 << 10).enumerate() {
        out.extend(
            &((block.len() as u32) << 3 | u32::from(index + 1 == blocks)).to_le_bytes()[..3],
        );
        out.extend(block);
    }
    out.extend((xxh64(content, 0) as u32).to_le_bytes());
    out
}

/// Returns the length of a frame with this much content (section 2).
fn frame_length(content: u64) -> u64 {
    if content == 0 {
        0
    } else {
        14 + 3 * content.div_ceil(128 << 10) + content
    }
}

fn header(name: &str, size: u64) -> Vec<u8> {
    let mut header = tar::Header::new_ustar();
    header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(size);
    header.set_entry_type(tar::EntryType::Regular);
    header.set_cksum();
    header.as_bytes().to_vec()
}

fn padding(size: u64) -> Vec<u8> {
    vec![0; size.next_multiple_of(512) as usize - size as usize]
}

/// Returns the row of a frame in the frame table (section 6).
fn row(offset: u64, hash: &str) -> Vec<u8> {
    let hash = (0..64)
        .step_by(2)
        .filter_map(|at| u8::from_str_radix(&hash[at..at + 2], 16).ok());
    offset.to_le_bytes().into_iter().chain(hash).collect()
}

/// An entry of the contents index.
struct BundleEntry<'a> {
    name: &'a str,
    media_type: &'a str,
    digest: &'a str,
    size: u64,
}

struct SparseWriter {
    file: std::fs::File,
    end: u64,
    /// The rows of all frames that were written so far.
    table: Vec<u8>,
}

impl SparseWriter {
    /// Writes a frame and returns the SHA-256 of its bytes. Without content, no frame is written.
    fn put(&mut self, content: &[u8]) -> Result<Option<String>> {
        if content.is_empty() {
            return Ok(None);
        }
        let frame = frame(content);
        self.file.write_all_at(&frame, self.end)?;
        let hash = sha256(&frame)[7..].to_owned();
        self.table.extend(row(self.end, &hash));
        self.end += frame.len() as u64;
        Ok(Some(hash))
    }

    /// Writes a tar entry and returns the hashes of its frames.
    fn tar_entry(&mut self, name: &str, content: &[u8]) -> Result<Vec<String>> {
        let size = content.len() as u64;
        let mut hashes = vec![self.put(&header(name, size))?];
        for piece in content.chunks(CHUNK as usize) {
            hashes.push(self.put(piece)?);
        }
        hashes.push(self.put(&padding(size))?);
        Ok(hashes.into_iter().flatten().collect())
    }

    /// Writes a tar entry whose content is a hole in the file. The hashes of its frames are made
    /// up, so opening the bundle works, but reading the entry fails.
    fn hole(&mut self, name: &str, size: u64) -> Result<()> {
        self.put(&header(name, size))?;
        for from in (0..size).step_by(CHUNK as usize) {
            self.table.extend(row(
                self.end,
                &sha256(format!("{name} {from}").as_bytes())[7..],
            ));
            self.end += frame_length(CHUNK.min(size - from));
        }
        self.put(&padding(size))?;
        Ok(())
    }

    /// Writes an entry with `write` and returns its record in the contents index.
    fn indexed_entry(
        &mut self,
        entry: &BundleEntry<'_>,
        write: impl FnOnce(&mut SparseWriter) -> Result<()>,
    ) -> Result<Value> {
        let offset = self.end;
        let frame = self.table.len() / ROW;
        write(self)?;
        Ok(json!({
            "name": entry.name, "digest": entry.digest, "size": entry.size,
            "mediaType": entry.media_type, "form": "stored",
            "offset": offset, "length": self.end - offset, "frame": frame,
        }))
    }
}

/// Writes a bundle of about `bytes` bytes.
pub(super) fn write_sparse(path: &Path, bytes: u64) -> Result<()> {
    let blob = BLOB.max(bytes / BLOBS);
    let names: Vec<String> = (0..bytes.div_ceil(blob))
        .map(|n| format!("https://h.test/{n}.tar.gz"))
        .collect();
    let files = names
        .iter()
        .map(|name| {
            // distinct, but not the digest of the content, which is a hole
            let digest = sha256(name.as_bytes()).parse()?;
            Ok(LockedFile::new(name, digest, blob))
        })
        .collect::<Result<Vec<_>>>()?;
    let lock = Lock {
        version: 1,
        files,
        ..Lock::default()
    };
    let text = lock.to_text();
    let mut out = SparseWriter {
        file: std::fs::File::create(path)?,
        end: 0,
        table: Vec::new(),
    };
    let mut entries = Vec::new();
    for (name, media_type, content) in [
        (
            "oci-layout",
            "application/vnd.oci.layout.header.v1+json",
            r#"{"imageLayoutVersion":"1.0.0"}"#,
        ),
        (
            "index.json",
            "application/vnd.oci.image.index.v1+json",
            r#"{"schemaVersion":2,"manifests":[]}"#,
        ),
        (
            "landfall.lock",
            "application/vnd.landfall.lock.v1+yaml",
            &text,
        ),
    ] {
        let content = content.as_bytes();
        let entry = BundleEntry {
            name,
            media_type,
            digest: &sha256(content),
            size: content.len() as u64,
        };
        entries.push(out.indexed_entry(&entry, |out| out.tar_entry(name, content).map(drop))?);
    }
    for file in &lock.files {
        let name = file.digest.layout_path();
        let entry = BundleEntry {
            name: &name,
            media_type: "application/octet-stream",
            digest: &file.digest.to_string(),
            size: file.size,
        };
        entries.push(out.indexed_entry(&entry, |out| out.hole(&name, file.size))?);
    }
    // the frame table has no rows for its own frames: their hashes are in the contents index
    let offset = out.end;
    let table = std::mem::take(&mut out.table);
    let hashes = out.tar_entry("landfall-frames", &table)?;
    let index = json!({
        "version": 1, "landfall": env!("CARGO_PKG_VERSION"), "options": {"level": 3},
        "requires": [], "locks": [{"name": "landfall.lock", "fingerprint": lock.fingerprint()}],
        "partial": [], "frames": {"offset": offset, "size": table.len(), "hashes": hashes},
        "entries": entries,
    });
    let index = format!("{index}\n").into_bytes();
    let offset = out.end + frame_length(512);
    out.tar_entry("landfall-contents.json", &index)?;
    let length: u64 = index
        .chunks(CHUNK as usize)
        .map(|piece| frame_length(piece.len() as u64))
        .sum();
    // the footer has the hash of the frames as written, so they are read back
    let mut frames = vec![0; length as usize];
    std::fs::File::open(path)?.read_exact_at(&mut frames, offset)?;
    // two empty blocks end a tar archive
    out.put(&[0; 1024])?;
    let frames = &sha256(&frames)[7..];
    let digest = &sha256(&index)[7..];
    let no_signatures = &sha256(b"")[7..];
    let text = format!(
        "landfall bundle 1\noffset {offset:020}\nlength {length:020}\nframes {frames}\n\
         size   {:020}\nsha256 {digest}\nsigned {:020}\nsigs   {no_signatures}\n",
        index.len(),
        0
    );
    // a skippable frame of zstd, so that tar and zstd ignore the footer
    let mut footer = vec![0x5c, 0x2a, 0x4d, 0x18];
    footer.extend((text.len() as u32).to_le_bytes());
    footer.extend(text.as_bytes());
    out.file.write_all_at(&footer, out.end)?;
    Ok(())
}
