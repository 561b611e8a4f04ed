//! What the images of an archive are called, for `lock`: the names of its `index.json`, and the
//! manifests and configs below them.

use super::file_names::digest_of_name;
use super::import_blobs::leave;
use super::source_archive::SourceArchive;
use landfall_model::{Descriptor, Digest, ImageRef, Limits, has_host};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Annotations by which tools give an image its full name: containerd and docker, Zarf, and most
/// others.
const FULL_NAMES: [&str; 3] = [
    "io.containerd.image.name",
    "org.opencontainers.image.base.name",
    "org.opencontainers.image.ref.name",
];

/// What the images of archives are called.
#[derive(Debug, Default)]
pub struct ArchiveImages {
    /// What stands at a name with a tag.
    names: BTreeMap<String, Descriptor>,
    /// Where manifests, configs and other small documents of the archives are in `kept`: offset and
    /// size in bytes.
    small: BTreeMap<Digest, (u64, u64)>,
    /// A file without a name that holds them until somebody asks for one.
    kept: Option<File>,
    kept_bytes: u64,
    /// What could not be used, and why, a line each.
    pub left: Vec<String>,
}

impl ArchiveImages {
    /// What stands at the tag of `image`, or at its digest.
    pub fn find(&self, image: &ImageRef, reference: &str) -> Option<Descriptor> {
        if let Ok(digest) = reference.parse::<Digest>() {
            let (_, size) = *self.small.get(&digest)?;
            return Some(Descriptor {
                digest,
                size,
                media_type: String::new().into(),
            });
        }
        self.names
            .get(&format!("{}:{reference}", image.name()))
            .cloned()
    }

    /// Whether the archives have `image` by its name.
    pub fn has(&self, image: &ImageRef) -> bool {
        image
            .tag
            .as_deref()
            .is_some_and(|tag| self.find(image, tag).is_some())
    }

    /// The bytes of a manifest or another small document, where an archive has it. Its digest was
    /// right when it was read.
    pub fn document(&self, digest: &Digest) -> Option<Vec<u8>> {
        let (at, size) = *self.small.get(digest)?;
        let mut bytes = vec![0; size as usize];
        self.kept.as_ref()?.read_exact_at(&mut bytes, at).ok()?;
        digest.matches(&bytes).then_some(bytes)
    }

    /// How many names they give.
    pub fn count(&self) -> usize {
        self.names.len()
    }
}

#[derive(Deserialize)]
struct ArchiveIndex {
    #[serde(default)]
    manifests: Vec<ArchiveIndexEntry>,
}

#[derive(Deserialize)]
struct ArchiveIndexEntry {
    #[serde(flatten)]
    descriptor: Descriptor,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

/// Reads the names of `archive` into `named`, and keeps its small documents in a file in `folder`
/// that has no name: a store gets those alone that somebody asks for.
///
/// # Errors
/// When that file cannot be written.
pub fn read_image_names(
    archive: &SourceArchive,
    named: &mut ArchiveImages,
    folder: &Path,
    limits: &Limits,
) -> io::Result<()> {
    let at = archive.path().display().to_string();
    let (mut indexes, mut index_bytes, mut docker, mut failed) = (0, 0, false, None);
    let read = archive.members(&mut |member| {
        let name = member.path.rsplit('/').next().unwrap_or_default();
        docker |= name == "manifest.json";
        if name == "index.json" {
            indexes += 1;
            index_bytes += member.size;
            return match index_bytes <= limits.manifest_bytes as u64 {
                true => named.index(&whole(member.reader)?, &at),
                false => {
                    let most = limits.manifest_bytes;
                    named.leave(format!(
                        "{at}: {}: the archive has more than {most} bytes of index.json",
                        member.path
                    ));
                    Ok(())
                }
            };
        }
        let Some(digest) = digest_of_name(&member.path) else {
            return Ok(());
        };
        if member.size > limits.document_bytes as u64 || named.small.contains_key(&digest) {
            return Ok(());
        }
        // manifests and configs are JSON; layers are not
        let mut first = [0];
        if member.reader.read(&mut first)? == 0 || first != *b"{" {
            return Ok(());
        }
        let bytes = whole(&mut (&first[..]).chain(&mut *member.reader))?;
        if !digest.matches(&bytes) {
            named.leave(format!(
                "{at}: {}: its bytes are not its digest's",
                member.path
            ));
            return Ok(());
        }
        named.keep(digest, &bytes, folder, limits).map_err(|error| {
            failed = Some(error);
            io::Error::other("a document cannot be kept")
        })
    });
    if let Some(error) = failed {
        return Err(error);
    }
    if let Err(error) = read {
        named.leave(format!("{at}: it cannot be read to its end: {error}"));
    }
    if indexes == 0 {
        let what = if docker {
            "it is a docker archive: it has no manifests, so nothing can be locked by it"
        } else {
            "it has no index.json, so nothing can be locked by it"
        };
        named.leave(format!(
            "{at}: {what}; `pull` can take what it has of layers and configs"
        ));
    }
    Ok(())
}

impl ArchiveImages {
    /// Says that something could not be used. An archive may have any number of such members.
    fn leave(&mut self, line: String) {
        leave(&mut self.left, line);
    }

    fn index(&mut self, bytes: &[u8], at: &str) -> io::Result<()> {
        match serde_json::from_slice::<ArchiveIndex>(bytes) {
            Ok(index) => self.add(index, at),
            Err(error) => self.leave(format!("{at}: its index.json cannot be read: {error}")),
        }
        Ok(())
    }

    fn keep(
        &mut self,
        digest: Digest,
        bytes: &[u8],
        folder: &Path,
        limits: &Limits,
    ) -> io::Result<()> {
        let size = bytes.len() as u64;
        if self.kept_bytes + size > limits.archive_document_bytes
            || self.small.len() >= limits.archive_documents
        {
            let Limits {
                archive_documents,
                archive_document_bytes,
                ..
            } = *limits;
            self.leave(format!(
                "the archives have more than {archive_documents} manifests and configs, or {archive_document_bytes} \
                 bytes of them; lock by fewer archives at one time"
            ));
            return Ok(());
        }
        let file = match &mut self.kept {
            Some(file) => file,
            none => none.insert(tempfile::tempfile_in(folder)?),
        };
        file.write_all_at(bytes, self.kept_bytes)?;
        self.small.insert(digest, (self.kept_bytes, size));
        self.kept_bytes += size;
        Ok(())
    }

    fn add(&mut self, index: ArchiveIndex, at: &str) {
        let mut nameless = 0;
        for ArchiveIndexEntry {
            descriptor,
            annotations,
        } in index.manifests
        {
            // Hauler gives signatures the name of what they sign, charts and files one of its own
            if annotations
                .get("kind")
                .is_some_and(|kind| !kind.contains("/image"))
            {
                continue;
            }
            let names = FULL_NAMES
                .iter()
                .filter_map(|key| full_name(annotations.get(*key)?));
            let names: Vec<String> = names.collect();
            nameless += usize::from(names.is_empty());
            for name in names {
                let known = self
                    .names
                    .entry(name.clone())
                    .or_insert_with(|| descriptor.clone());
                let kept = known.digest.clone();
                if kept != descriptor.digest {
                    self.leave(format!(
                        "{at}: {name} is {} there and {kept} before; that counts",
                        descriptor.digest
                    ));
                }
            }
        }
        if nameless > 0 {
            let what = if nameless == 1 {
                "an entry has"
            } else {
                &format!("{nameless} entries have")
            };
            self.leave(format!(
                "{at}: {what} no full name with a host and a tag, and cannot be locked by one"
            ));
        }
    }
}

/// The reference, written out, where it says host, repository and tag.
fn full_name(text: &str) -> Option<String> {
    let reference: ImageRef = text.parse().ok()?;
    let is_full = has_host(text) && reference.tag.is_some();
    is_full.then(|| {
        ImageRef {
            digest: None,
            ..reference
        }
        .to_string()
    })
}

fn whole(reader: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes)?;
    Ok(bytes)
}
