//! Reads what `lock` needs from an archive: the names of its images in `index.json`, and their
//! manifests and configs.

use super::import_blobs::push_skipped;
use super::source_archive::{SourceArchive, digest_of_name};
use landfall_model::{Descriptor, Digest, ImageRef, JsonText, Limits, has_host};
use landfall_os::FileExt;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Annotations of `index.json` with the full name of an image. containerd and docker write the
/// first, Zarf the second, and most other tools the third.
const FULL_NAMES: [&str; 3] = [
    "io.containerd.image.name",
    "org.opencontainers.image.base.name",
    "org.opencontainers.image.ref.name",
];

/// The images of archives, by name.
#[derive(Debug, Default)]
pub struct ArchiveImages {
    /// The descriptor of the manifest, by the full name and tag of the image.
    names: BTreeMap<String, Descriptor>,
    /// Offset and size of manifests, configs and other small JSON documents in `documents_file`.
    documents: BTreeMap<Digest, (u64, u64)>,
    /// An unnamed temporary file with these documents.
    documents_file: Option<File>,
    documents_size: u64,
    /// The members that could not be used, and why; one line each.
    pub skipped: Vec<String>,
}

impl ArchiveImages {
    /// Returns the descriptor of the manifest of `image` at a tag or digest. For a digest, the
    /// media type in the descriptor is empty: only `index.json` has media types.
    pub fn find(&self, image: &ImageRef, reference: &str) -> Option<Descriptor> {
        if let Ok(digest) = reference.parse::<Digest>() {
            let (_, size) = *self.documents.get(&digest)?;
            return Some(Descriptor::new(digest, size, String::new()));
        }
        self.names
            .get(&format!("{}:{reference}", image.name()))
            .cloned()
    }

    /// Whether the archives have `image` by its name and tag.
    pub fn has(&self, image: &ImageRef) -> bool {
        image
            .tag
            .as_deref()
            .is_some_and(|tag| self.find(image, tag).is_some())
    }

    /// Returns a manifest or another small document, if an archive has it and its digest is right.
    pub fn document(&self, digest: &Digest) -> Option<Vec<u8>> {
        // the size is bounded: only members of at most `document_bytes` were kept
        let (at, size) = *self.documents.get(digest)?;
        let mut bytes = vec![0; size as usize];
        self.documents_file
            .as_ref()?
            .read_exact_at(&mut bytes, at)
            .ok()?;
        // verified again, because the temporary file may be on a disk that returns other bytes
        digest.matches(&bytes).then_some(bytes)
    }

    /// Returns the number of names.
    pub fn count(&self) -> usize {
        self.names.len()
    }
}

/// An entry of `index.json`.
pub(super) struct ArchiveIndexEntry {
    pub(super) descriptor: Descriptor,
    annotations: BTreeMap<String, String>,
}

impl ArchiveIndexEntry {
    /// Reads an entry. Returns `None` if it names no digest or size. The media type may be missing,
    /// since that of the manifest counts, and annotations that are not strings are skipped.
    pub(super) fn read(entry: JsonText<'_>) -> Option<ArchiveIndexEntry> {
        let [digest, size, media_type, annotations] =
            entry.members_if_object(["digest", "size", "mediaType", "annotations"]);
        let descriptor = Descriptor {
            digest: digest?.string()?.parse().ok()?,
            size: size?.unsigned()?,
            media_type: media_type
                .and_then(JsonText::string)
                .unwrap_or_default()
                .into(),
        };
        let annotations = annotations
            .map(JsonText::string_members)
            .unwrap_or_default();
        let annotations = annotations.into_iter();
        let texts = annotations.filter_map(|(key, value)| Some((key, value.as_str()?.to_owned())));
        Some(ArchiveIndexEntry {
            descriptor,
            annotations: texts.collect(),
        })
    }

    /// Whether the entry is that of an image. Hauler gives signatures the name of the image that
    /// they sign, so only `kind` tells them apart.
    pub(super) fn is_image(&self) -> bool {
        let kind = self.annotations.get("kind");
        kind.is_none_or(|kind| kind.contains("/image"))
    }

    /// The names in the annotations, as they are written.
    pub(super) fn names(&self) -> Vec<String> {
        let names = FULL_NAMES
            .iter()
            .filter_map(|key| self.annotations.get(*key));
        names.cloned().collect()
    }
}

/// Adds the names in `archive` to `named`. Small documents are kept in an unnamed temporary file in
/// `folder`, so that only documents that are needed get into a store.
///
/// # Errors
/// If the temporary file cannot be written.
pub fn read_image_names(
    archive: &SourceArchive,
    named: &mut ArchiveImages,
    folder: &Path,
    limits: &Limits,
) -> io::Result<()> {
    let at = archive.path().display().to_string();
    let mut index_count = 0;
    let mut index_bytes = 0;
    let mut is_docker_archive = false;
    let mut failed = None;
    let read = archive.members(&mut |member| {
        let name = member.path.rsplit('/').next().unwrap_or_default();
        is_docker_archive |= name == "manifest.json";
        if name == "index.json" {
            index_count += 1;
            // the sum is limited, because an archive may contain any number of files of this name
            index_bytes += member.size;
            if index_bytes > limits.manifest_bytes as u64 {
                let limit = limits.manifest_bytes;
                named.skip(format!(
                    "{at}: {}: the archive has more than {limit} bytes of index.json",
                    member.path
                ));
                return Ok(());
            }
            return named.index(&whole(member.reader)?, &at);
        }
        let Some(digest) = digest_of_name(&member.path) else {
            return Ok(());
        };
        if member.size > limits.document_bytes as u64 || named.documents.contains_key(&digest) {
            return Ok(());
        }
        // manifests and configs are JSON; layers are not
        let mut first = [0];
        if member.reader.read(&mut first)? == 0 || first != *b"{" {
            return Ok(());
        }
        let bytes = whole(&mut (&first[..]).chain(&mut *member.reader))?;
        // the digest comes from the name of the member, which anybody can choose
        if !digest.matches(&bytes) {
            named.skip(format!(
                "{at}: {}: its bytes do not match the digest in its name",
                member.path
            ));
            return Ok(());
        }
        named.keep(digest, &bytes, folder, limits).map_err(|error| {
            // kept in a variable: an error that this closure returned would only be listed, like
            // damage of the archive
            failed = Some(error);
            io::Error::other("cannot write a temporary file")
        })
    });
    if let Some(error) = failed {
        return Err(error);
    }
    if let Err(error) = read {
        named.skip(format!("{at}: cannot be read to its end: {error}"));
    }
    if index_count == 0 {
        // `manifest.json` of a docker archive lists configs and layers, not manifests
        let what = if is_docker_archive {
            "a docker archive has no manifests, so it cannot be used to lock images"
        } else {
            "it has no index.json, so it cannot be used to lock images"
        };
        named.skip(format!(
            "{at}: {what}; `pull` can use its layers and configs"
        ));
    }
    Ok(())
}

impl ArchiveImages {
    /// Records something that could not be used. The list is limited, because an archive may have
    /// any number of such members.
    fn skip(&mut self, line: String) {
        // every document beyond a limit has the same line
        if !self.skipped.contains(&line) {
            push_skipped(&mut self.skipped, line);
        }
    }

    fn index(&mut self, bytes: &[u8], at: &str) -> io::Result<()> {
        let text = String::from_utf8_lossy(bytes);
        match JsonText::new(&text).members(["manifests"]) {
            Ok([entries]) => {
                let entries = entries.and_then(JsonText::elements).unwrap_or_default();
                self.add(&entries, at);
            }
            Err(error) => self.skip(format!("{at}: index.json is invalid: {error}")),
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
        if self.documents_size + size > limits.archive_document_bytes
            || self.documents.len() >= limits.archive_documents
        {
            let Limits {
                archive_documents,
                archive_document_bytes,
                ..
            } = *limits;
            self.skip(format!(
                "the archives have more than {archive_documents} manifests and configs, or \
                 {archive_document_bytes} bytes of them; lock with fewer archives at a time"
            ));
            return Ok(());
        }
        // created at the first document: the archives may have none
        let file = match &mut self.documents_file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile_in(folder)?),
        };
        file.write_all_at(bytes, self.documents_size)?;
        self.documents.insert(digest, (self.documents_size, size));
        self.documents_size += size;
        Ok(())
    }

    fn add(&mut self, entries: &[JsonText<'_>], at: &str) {
        let mut nameless = 0;
        for entry in entries {
            let Some(entry) = ArchiveIndexEntry::read(*entry) else {
                self.skip(format!(
                    "{at}: an entry of index.json has no valid digest and size"
                ));
                continue;
            };
            if !entry.is_image() {
                continue;
            }
            let names = entry.names();
            let names: Vec<String> = names.iter().filter_map(|name| full_name(name)).collect();
            let ArchiveIndexEntry { descriptor, .. } = entry;
            nameless += usize::from(names.is_empty());
            for name in names {
                // the first archive that the user named wins, so that the order decides about
                // conflicts
                let known = self
                    .names
                    .entry(name.clone())
                    .or_insert_with(|| descriptor.clone());
                let kept = known.digest.clone();
                if kept != descriptor.digest {
                    self.skip(format!(
                        "{at}: {name} has the digest {} here, but {kept} in an entry that was \
                         read earlier; the earlier entry is used",
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
            self.skip(format!(
                "{at}: {what} no full name with a host and a tag, and cannot be locked by name"
            ));
        }
    }
}

/// Returns the normalized reference if it has a host, a repository and a tag.
fn full_name(text: &str) -> Option<String> {
    let reference: ImageRef = text.parse().ok()?;
    // a name without a host, such as `nginx:1`, may have come from any registry
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_beyond_the_limit_are_reported_once() {
        let dir = tempfile::tempdir().unwrap();
        let blobs = dir.path().join("from/blobs/sha256");
        std::fs::create_dir_all(&blobs).unwrap();
        for number in 0..5 {
            let document = format!("{{\"number\": {number}}}");
            let digest = Digest::sha256(document.as_bytes());
            std::fs::write(blobs.join(digest.hex()), document).unwrap();
        }
        std::fs::write(dir.path().join("from/index.json"), "{}").unwrap();
        let archive = SourceArchive::open(&dir.path().join("from")).unwrap();
        let limits = Limits {
            archive_documents: 2,
            ..Limits::default()
        };
        let mut named = ArchiveImages::default();
        read_image_names(&archive, &mut named, dir.path(), &limits).unwrap();
        assert_eq!(named.documents.len(), 2);
        let [line] = &named.skipped[..] else {
            panic!("{:?}", named.skipped)
        };
        assert!(line.contains("more than 2 manifests and configs"), "{line}");
    }

    #[test]
    fn an_odd_entry_of_an_index_does_not_hide_the_others() {
        let digest = Digest::sha256(b"x");
        let name = |tag: &str| format!(r#""org.opencontainers.image.ref.name":"q.io/a:{tag}""#);
        let index = format!(
            r#"{{"manifests":[null,{{"size":1}},
              {{"digest":"md5:00","size":1,"annotations":{{{}}}}},
              {{"digest":"{}","size":1.0,"mediaType":null,"annotations":{{{},"n":1,"x":null}}}}]}}"#,
            name("bad"),
            digest.to_string().to_uppercase(),
            name("good")
        );
        let mut named = ArchiveImages::default();
        named.index(index.as_bytes(), "a.tar").unwrap();
        assert_eq!(named.count(), 1);
        let found = named.find(&"q.io/a:good".parse().unwrap(), "good").unwrap();
        assert_eq!((found.digest, found.size), (digest, 1));
        assert_eq!(named.skipped.len(), 1, "{:?}", named.skipped);
        for empty in ["{}", r#"{"manifests":null}"#] {
            let mut named = ArchiveImages::default();
            named.index(empty.as_bytes(), "a.tar").unwrap();
            assert!(named.skipped.is_empty(), "{:?}", named.skipped);
        }
    }
}
