//! An image as the lock has it: every manifest and blob by digest.

use landfall_model::{Descriptor, Digest, ImageRef, MediaType, Platform};
use serde::Deserialize;

/// A locked image.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct LockedImage {
    /// `registry/repository:tag`, or `registry/repository@digest` where the manifest names no tag.
    pub name: ImageRef,
    /// The wanted platforms; empty means all.
    #[serde(default)]
    pub platforms: Vec<Platform>,
    /// The digest that landfall's manifest requires.
    #[serde(default)]
    pub pin: Option<Digest>,
    /// Digest of the index, or of the manifest where there is no index.
    pub digest: Digest,
    /// Its media type.
    pub media_type: MediaType,
    /// Its size in bytes.
    pub size: u64,
    /// Platform of an image without an index.
    #[serde(default)]
    pub platform: Option<Platform>,
    /// Wanted manifests below the index, children before parents. Empty where there is no index.
    #[serde(default)]
    pub manifests: Vec<LockedManifest>,
    /// Configs and layers of all the manifests, once each, sorted by digest.
    #[serde(default, deserialize_with = "read_blobs")]
    pub blobs: Vec<Descriptor>,
    /// The index without the children that `platforms` leaves out, if there are any.
    #[serde(default)]
    pub trimmed: Option<LockedTrimmedIndex>,
    /// Signatures, attestations and other manifests that refer to it: children before parents.
    /// `None` where they were not looked up.
    #[serde(default)]
    pub referrers: Option<Vec<LockedReferrer>>,
    /// Configs and layers of the referrers that are not among `blobs`, once each, sorted by digest.
    #[serde(default, deserialize_with = "read_blobs")]
    pub referrer_blobs: Vec<Descriptor>,
}

impl LockedImage {
    /// An image of which only the top is known.
    pub fn new(name: ImageRef, top: Descriptor) -> LockedImage {
        let Descriptor {
            digest,
            size,
            media_type,
        } = top;
        LockedImage {
            name,
            platforms: Vec::new(),
            pin: None,
            digest,
            media_type,
            size,
            platform: None,
            manifests: Vec::new(),
            blobs: Vec::new(),
            trimmed: None,
            referrers: None,
            referrer_blobs: Vec::new(),
        }
    }
}

/// A manifest under an index.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct LockedManifest {
    /// Its digest.
    pub digest: Digest,
    /// Its size in bytes.
    pub size: u64,
    /// Its media type.
    pub media_type: MediaType,
    /// Its platform as the index names it; absent for artifacts and nested indexes.
    #[serde(default)]
    pub platform: Option<String>,
}

/// An index by the trimming rule ([`landfall_model::trim_index`]).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedTrimmedIndex {
    /// Its digest.
    pub digest: Digest,
    /// Its size in bytes.
    pub size: u64,
}

/// A manifest that refers to the image, to a manifest of it, or to another referrer; or one below
/// an index that does. The latter has neither tag nor subject.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct LockedReferrer {
    /// Its digest.
    pub digest: Digest,
    /// Its size in bytes.
    pub size: u64,
    /// Its media type.
    pub media_type: MediaType,
    /// Its tag, if it follows the cosign tag convention.
    #[serde(default)]
    pub tag: Option<String>,
    /// Its subject, the manifest to which it refers.
    #[serde(default)]
    pub subject: Option<Digest>,
}

impl LockedReferrer {
    /// Digest, size and media type.
    pub fn descriptor(&self) -> Descriptor {
        Descriptor {
            digest: self.digest.clone(),
            size: self.size,
            media_type: self.media_type.clone(),
        }
    }
}

impl LockedImage {
    /// The descriptor of the top: the index, or the only manifest.
    pub fn descriptor(&self) -> Descriptor {
        Descriptor {
            digest: self.digest.clone(),
            size: self.size,
            media_type: self.media_type.clone(),
        }
    }

    /// The descriptor of the trimmed index, if there is one. Its media type is that of the index.
    pub fn trimmed_descriptor(&self) -> Option<Descriptor> {
        self.trimmed.as_ref().map(|trimmed| Descriptor {
            digest: trimmed.digest.clone(),
            size: trimmed.size,
            media_type: self.media_type.clone(),
        })
    }

    /// Every manifest of the image in the order in which a registry accepts them: children before
    /// parents, the top last. The trimmed index is not one of them.
    pub fn manifests_in_order(&self) -> impl Iterator<Item = Descriptor> + '_ {
        let children = self.manifests.iter().map(|child| Descriptor {
            digest: child.digest.clone(),
            size: child.size,
            media_type: child.media_type.clone(),
        });
        children.chain(std::iter::once(self.descriptor()))
    }

    /// Its tag at a destination: its own, or `digest-<first 12 hex>` for an image that is locked by
    /// digest alone, so that a registry's clean-up keeps it.
    pub fn destination_tag(&self) -> String {
        match &self.name.tag {
            Some(tag) => tag.clone(),
            None => format!("digest-{}", self.digest.short(12)),
        }
    }
}

/// Reads lines of the form `digest size mediaType`.
pub(crate) fn read_blobs<'de, D: serde::Deserializer<'de>>(
    source: D,
) -> Result<Vec<Descriptor>, D::Error> {
    let lines = Vec::<String>::deserialize(source)?;
    // as long as it is, where collecting would leave room for more
    let mut blobs = Vec::with_capacity(lines.len());
    for line in lines {
        blobs.push(read_blob(&line).map_err(serde::de::Error::custom)?);
    }
    Ok(blobs)
}

fn read_blob(line: &str) -> Result<Descriptor, String> {
    let wrong = || format!("blob '{line}' is not of the form 'digest size mediaType'");
    let mut words = line.splitn(3, ' ');
    let (Some(digest), Some(size), Some(kind)) = (words.next(), words.next(), words.next()) else {
        return Err(wrong());
    };
    Ok(Descriptor {
        digest: digest
            .parse()
            .map_err(|error: landfall_model::DigestError| error.to_string())?,
        size: size.parse().map_err(|_| wrong())?,
        media_type: kind.into(),
    })
}
