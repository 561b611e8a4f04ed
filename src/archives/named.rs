//! What the images of an archive are called, for `lock`: the names of its `index.json`, and the manifests and configs below
//! them.

use super::archive::Archive;
use super::file_names::digest_of_name;
use crate::content::{LocalSink, WriteError};
use crate::model::{Descriptor, Digest, ImageRef, Limits, media_type, names_host};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::{self, Read};

/// Annotations by which tools give an image its full name: containerd and docker, Zarf, and most others.
const FULL_NAMES: [&str; 3] =
    ["io.containerd.image.name", "org.opencontainers.image.base.name", "org.opencontainers.image.ref.name"];

/// What the images of archives are called.
#[derive(Debug, Clone, Default)]
pub(crate) struct Named {
    /// What stands at a name with a tag.
    names: BTreeMap<String, Descriptor>,
    /// Sizes of the manifests, configs and other small content that a store has from the archives now.
    small: BTreeMap<Digest, u64>,
    /// What could not be used, and why, a line each.
    pub(crate) left: Vec<String>,
}

impl Named {
    /// What stands at the tag of `image`, or at its digest.
    pub(crate) fn find(&self, image: &ImageRef, reference: &str) -> Option<Descriptor> {
        if let Ok(digest) = reference.parse::<Digest>() {
            let size = *self.small.get(&digest)?;
            return Some(Descriptor { digest, size, media_type: String::new().into() });
        }
        self.names.get(&format!("{}:{reference}", image.name())).cloned()
    }

    /// Whether the archives have `image` by its name.
    pub(crate) fn has(&self, image: &ImageRef) -> bool {
        image.tag.as_deref().is_some_and(|tag| self.find(image, tag).is_some())
    }

    /// How many names they give.
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }
}

#[derive(Deserialize)]
struct Index {
    #[serde(default)]
    manifests: Vec<Child>,
}

#[derive(Deserialize)]
struct Child {
    #[serde(flatten)]
    descriptor: Descriptor,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

/// Reads the names of `archive` into `named`, and brings its manifests and other small content into `into`.
///
/// # Errors
/// When `into` cannot be written.
pub(crate) fn read_named(
    archive: &Archive,
    named: &mut Named,
    into: &dyn LocalSink,
    limits: &Limits,
) -> Result<(), WriteError> {
    let (mut indexes, mut docker, mut refused) = (Vec::new(), false, None);
    let read = archive.members(&mut |member| {
        let name = member.path.rsplit('/').next().unwrap_or_default();
        docker |= name == "manifest.json";
        if name == "index.json" && member.size <= limits.manifest_bytes as u64 {
            indexes.push(whole(member.reader)?);
        }
        let Some(digest) = digest_of_name(&member.path) else { return Ok(()) };
        if member.size > limits.document_bytes as u64 || named.small.contains_key(&digest) {
            return Ok(());
        }
        let bytes = whole(member.reader)?;
        if !digest.matches(&bytes) {
            named.left.push(format!(
                "{}: {}: its bytes are not its digest's",
                archive.path().display(),
                member.path
            ));
            return Ok(());
        }
        let (size, media_type) = (bytes.len() as u64, media_type::OCTETS.into());
        let descriptor = Descriptor { digest, size, media_type };
        match into.take(&descriptor, &bytes) {
            Ok(()) => named.small.insert(descriptor.digest, size),
            Err(error) => {
                refused = Some(error);
                return Err(io::Error::other("the sink refuses"));
            }
        };
        Ok(())
    });
    if let Some(error) = refused {
        return Err(error);
    }
    let at = archive.path().display();
    if let Err(error) = read {
        named.left.push(format!("{at}: it cannot be read to its end: {error}"));
    }
    if indexes.is_empty() {
        let what = if docker {
            "it is a docker archive: it has no manifests, so nothing can be locked by it"
        } else {
            "it has no index.json, so nothing can be locked by it"
        };
        named.left.push(format!("{at}: {what}; `pull` can take what it has of layers and configs"));
    }
    for index in &indexes {
        match serde_json::from_slice::<Index>(index) {
            Ok(index) => named.add(index, &at.to_string()),
            Err(error) => named.left.push(format!("{at}: its index.json cannot be read: {error}")),
        }
    }
    Ok(())
}

impl Named {
    fn add(&mut self, index: Index, at: &str) {
        let mut nameless = 0;
        for Child { descriptor, annotations } in index.manifests {
            // Hauler gives signatures the name of what they sign, charts and files one of its own
            if annotations.get("kind").is_some_and(|kind| !kind.contains("/image")) {
                continue;
            }
            let names = FULL_NAMES.iter().filter_map(|key| full_name(annotations.get(*key)?));
            let names: Vec<String> = names.collect();
            nameless += usize::from(names.is_empty());
            for name in names {
                let known = self.names.entry(name.clone()).or_insert_with(|| descriptor.clone());
                if known.digest != descriptor.digest {
                    let kept = known.digest.clone();
                    self.left.push(format!(
                        "{at}: {name} is {} there and {kept} before; that counts",
                        descriptor.digest
                    ));
                }
            }
        }
        if nameless > 0 {
            let what = if nameless == 1 { "an entry has" } else { &format!("{nameless} entries have") };
            self.left.push(format!(
                "{at}: {what} no full name with a host and a tag, and cannot be locked by one"
            ));
        }
    }
}

/// The reference, written out, where it says host, repository and tag.
fn full_name(text: &str) -> Option<String> {
    let reference: ImageRef = text.parse().ok()?;
    let is_full = names_host(text) && reference.tag.is_some();
    is_full.then(|| ImageRef { digest: None, ..reference }.to_string())
}

fn whole(reader: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes)?;
    Ok(bytes)
}
