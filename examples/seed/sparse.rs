//! A bundle of any size that takes no room: front, index and tail are real, the blobs are a hole. It is written by
//! `docs/bundle-format.md`, and shows what opening a large bundle costs.

use crate::content::sha256;
use anyhow::Result;
use landfall::{Lock, LockedFile as File};
use serde_json::{Value, json};
use std::os::unix::fs::FileExt;
use std::path::Path;
use xxhash_rust::xxh64::xxh64;

const CHUNK: u64 = 1 << 20;
const BLOB: u64 = 50 << 20;

/// A frame of raw blocks (section 2).
fn frame(content: &[u8]) -> Vec<u8> {
    let mut out = vec![0x28, 0xb5, 0x2f, 0xfd, 0x84, 0x50];
    out.extend((content.len() as u32).to_le_bytes());
    let blocks = content.chunks(128 << 10).count();
    for (index, block) in content.chunks(128 << 10).enumerate() {
        out.extend(&((block.len() as u32) << 3 | u32::from(index + 1 == blocks)).to_le_bytes()[..3]);
        out.extend(block);
    }
    out.extend((xxh64(content, 0) as u32).to_le_bytes());
    out
}

/// Its length (section 2).
fn stored(content: u64) -> u64 {
    if content == 0 { 0 } else { 14 + 3 * content.div_ceil(128 << 10) + content }
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

struct Writer {
    file: std::fs::File,
    end: u64,
    /// File length and content length of each frame, for the seek table.
    frames: Vec<(u64, u64)>,
}

impl Writer {
    fn put(&mut self, content: &[u8]) -> Result<Value> {
        if content.is_empty() {
            return Ok(Value::Null);
        }
        let frame = frame(content);
        self.file.write_all_at(&frame, self.end)?;
        Ok(self.pass(frame.len() as u64, content.len() as u64, &frame))
    }

    fn pass(&mut self, length: u64, content: u64, hashed: &[u8]) -> Value {
        self.end += length;
        self.frames.push((length, content));
        json!([length, &sha256(hashed)[7..]])
    }

    /// An entry of real content, or a hole.
    fn entry(&mut self, name: &str, kind: &str, digest: &str, content: Result<&[u8], u64>) -> Result<Value> {
        let size = content.map_or_else(|size| size, |bytes| bytes.len() as u64);
        let offset = self.end;
        let mut frames = vec![self.put(&header(name, size))?];
        for from in (0..size).step_by(CHUNK as usize) {
            let length = CHUNK.min(size - from);
            frames.push(match content {
                Ok(bytes) => self.put(&bytes[from as usize..(from + length) as usize])?,
                Err(_) => self.pass(stored(length), length, format!("{name} {from}").as_bytes()),
            });
        }
        frames.push(self.put(&padding(size))?);
        frames.retain(|frame| !frame.is_null());
        Ok(json!({"name": name, "digest": digest, "size": size, "mediaType": kind, "form": "stored",
            "offset": offset, "frames": frames}))
    }
}

/// Writes a bundle of about so many bytes.
pub(super) fn sparse(path: &Path, bytes: u64) -> Result<()> {
    let names: Vec<String> =
        (0..bytes.div_ceil(BLOB)).map(|n| format!("https://h.test/{n}.tar.gz")).collect();
    let file = |name: &String| -> Result<File> {
        let (name, digest, size) = (name.clone(), sha256(name.as_bytes()).parse()?, BLOB);
        Ok(File {
            name,
            digest,
            size,
            checksum: None,
            sidecars: vec![],
            also: vec![],
            mode: None,
            signed_by: None,
            unpack: vec![],
        })
    };
    let files = names.iter().map(file).collect::<Result<Vec<_>>>()?;
    let lock = Lock { version: 1, files, ..Lock::default() };
    let text = lock.to_text();
    let mut out = Writer { file: std::fs::File::create(path)?, end: 0, frames: Vec::new() };
    let mut entries = Vec::new();
    for (name, kind, content) in [
        ("oci-layout", "application/vnd.oci.layout.header.v1+json", r#"{"imageLayoutVersion":"1.0.0"}"#),
        ("index.json", "application/vnd.oci.image.index.v1+json", r#"{"schemaVersion":2,"manifests":[]}"#),
        ("landfall.lock", "application/vnd.landfall.lock.v1+yaml", &text),
    ] {
        entries.push(out.entry(name, kind, &sha256(content.as_bytes()), Ok(content.as_bytes()))?);
    }
    let locator = out.end;
    for content in [header("landfall-locator", 246), vec![0; 246], padding(246)] {
        out.put(&content)?;
    }
    for file in &lock.files {
        let (digest, name) = (file.digest.to_string(), file.digest.layout_path());
        entries.push(out.entry(&name, "application/octet-stream", &digest, Err(file.size))?);
    }
    let locks = json!([{"name": "landfall.lock", "fingerprint": lock.fingerprint()}]);
    let index = json!({"version": 1, "landfall": env!("CARGO_PKG_VERSION"), "options": {"level": 3},
        "requires": [], "locks": locks, "partial": [], "locator": locator, "entries": entries});
    let index = format!("{index}\n").into_bytes();
    out.put(&header("landfall-contents.json", index.len() as u64))?;
    let offset = out.end;
    for chunk in index.chunks(CHUNK as usize) {
        out.put(chunk)?;
    }
    let length = out.end - offset;
    let mut frames = vec![0; length as usize];
    std::fs::File::open(path)?.read_exact_at(&mut frames, offset)?;
    out.put(&padding(index.len() as u64))?;
    out.put(&[0; 1024])?;
    let mut table = vec![0x5e, 0x2a, 0x4d, 0x18];
    table.extend((out.frames.len() as u32 * 8 + 9).to_le_bytes());
    out.frames.iter().for_each(|(length, content)| {
        table.extend((*length as u32).to_le_bytes());
        table.extend((*content as u32).to_le_bytes());
    });
    table.extend((out.frames.len() as u32).to_le_bytes());
    table.extend([0, 0xb1, 0xea, 0x92, 0x8f]);
    out.file.write_all_at(&table, out.end)?;
    let (frames, digest) = (&sha256(&frames)[7..], &sha256(&index)[7..]);
    let text = format!(
        "landfall bundle 1\noffset {offset:020}\nlength {length:020}\nframes {frames}\nsize   {:020}\nsha256 {digest}\n",
        index.len()
    );
    out.end = locator + 529;
    out.put(text.as_bytes())?;
    Ok(())
}
