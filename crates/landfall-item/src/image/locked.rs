//! A locked image: every manifest and blob by digest.

use landfall_model::{
    ChildManifest, Descriptor, Digest, ImageRef, MediaType, Platform, media_type,
};
use landfall_signature::{VerifiedSignature, verified_list};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A container image in the lock, with everything below it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct LockedImage {
    /// `registry/repository:tag`, or `registry/repository@digest` if the landfall manifest names no
    /// tag.
    pub name: ImageRef,
    /// The requested platforms; empty means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub platforms: Vec<Platform>,
    /// The platforms that were requested if the image has them, and that it lacks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lacks: Vec<Platform>,
    /// The digest that the landfall manifest requires.
    pub pin: Option<Digest>,
    /// The path of the archive that has the image, relative to the folder of the lock; empty if it
    /// is not below that folder. `None` for an image of a registry.
    pub archive: Option<String>,
    /// Digest of the index, or of the only manifest of an image without an index.
    pub digest: Digest,
    /// Media type of that index or manifest.
    pub media_type: MediaType,
    /// Size in bytes of that index or manifest.
    pub size: u64,
    /// Platform of an image without an index.
    pub platform: Option<Platform>,
    /// The images that it lists, because it is a bundle of imgpkg.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lists: Vec<ImageRef>,
    /// The manifests below the index, without those that `platforms` leaves out, children before
    /// parents. Empty for an image without an index.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub manifests: Vec<LockedManifest>,
    /// The signatures that met the rules of `verify:`, sorted; empty if the image needs none.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "verified_list")]
    pub verified: Vec<VerifiedSignature>,
    /// The blobs that the manifests name, such as configs and layers, once each, sorted by digest.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "blob_lines")]
    pub blobs: Vec<Descriptor>,
    /// The index without the children that `platforms` leaves out, if there are any.
    pub trimmed: Option<LockedTrimmedIndex>,
    /// Signatures, attestations and other manifests that refer to the image: children before
    /// parents. `None` if they were not looked up.
    pub referrers: Option<Vec<LockedReferrer>>,
    /// The blobs that the referrers name and that are not among `blobs`, once each, sorted by
    /// digest.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "blob_lines")]
    pub referrer_blobs: Vec<Descriptor>,
    /// Attestations that the index lists, and blobs that only they name, if a partial bundle lacks
    /// them. They are listed under `manifests` and `blobs` too. Not in the text of a lock.
    #[serde(skip)]
    pub absent: BTreeSet<Digest>,
}

impl LockedImage {
    /// An image with only its index or manifest.
    pub fn new(name: ImageRef, top: Descriptor) -> LockedImage {
        LockedImage {
            name,
            platforms: Vec::new(),
            lacks: Vec::new(),
            pin: None,
            archive: None,
            digest: top.digest,
            media_type: top.media_type,
            size: top.size,
            platform: None,
            lists: Vec::new(),
            manifests: Vec::new(),
            verified: Vec::new(),
            blobs: Vec::new(),
            trimmed: None,
            referrers: None,
            referrer_blobs: Vec::new(),
            absent: BTreeSet::new(),
        }
    }

    /// The manifests that the lock lists for this image and its referrers.
    pub(super) fn listed_manifests(&self) -> ListedManifests<'_> {
        let own = self.manifests.iter().map(|own| &own.digest);
        let referrers = self.referrers.iter().flatten();
        ListedManifests(own.chain(referrers.map(|one| &one.digest)).collect())
    }
}

/// The manifests that a lock lists for an image and its referrers, without the top.
pub(super) struct ListedManifests<'a>(BTreeSet<&'a Digest>);

impl ListedManifests<'_> {
    /// Whether a child of an index of the image is a manifest: by its media type or, if that is
    /// unknown, because the lock lists it as one.
    pub(super) fn has(&self, child: &ChildManifest) -> bool {
        let Descriptor {
            digest, media_type, ..
        } = &child.descriptor;
        media_type::is_manifest(media_type)
            || (media_type::may_be_unknown_manifest(media_type) && self.0.contains(digest))
    }
}

/// A manifest below the index of a [`LockedImage`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct LockedManifest {
    /// Digest of the manifest.
    pub digest: Digest,
    /// Size of the manifest in bytes.
    pub size: u64,
    /// Media type of the manifest.
    pub media_type: MediaType,
    /// Platform as the top index names it; `None` for artifacts, nested indexes and the manifests
    /// below nested indexes.
    pub platform: Option<String>,
}

/// The index without the children that `platforms` leaves out, as
/// [`trim_index`](landfall_model::trim_index) generates it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedTrimmedIndex {
    /// Digest of the trimmed index.
    pub digest: Digest,
    /// Size of the trimmed index in bytes.
    pub size: u64,
}

/// A signature, attestation, SBOM or other manifest that refers to the image, to one of its
/// manifests, or to another referrer. If a referrer is an index, the manifests below it are listed
/// as well; these have no tag, and usually no subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct LockedReferrer {
    /// Digest of the referring manifest.
    pub digest: Digest,
    /// Size of the referring manifest in bytes.
    pub size: u64,
    /// Media type of the referring manifest.
    pub media_type: MediaType,
    /// Tag of the referrer, if it follows the cosign tag convention.
    pub tag: Option<String>,
    /// Digest of the manifest that it refers to (the `subject` of the OCI image specification).
    pub subject: Option<Digest>,
}

impl LockedReferrer {
    /// Digest, size and media type of the referring manifest.
    pub fn descriptor(&self) -> Descriptor {
        Descriptor::new(self.digest.clone(), self.size, self.media_type.clone())
    }
}

impl LockedImage {
    /// The descriptor of the index, or of the only manifest.
    pub fn descriptor(&self) -> Descriptor {
        Descriptor::new(self.digest.clone(), self.size, self.media_type.clone())
    }

    /// The descriptor of the trimmed index, if there is one. It has the media type of the index.
    pub fn trimmed_descriptor(&self) -> Option<Descriptor> {
        self.trimmed.as_ref().map(|trimmed| {
            Descriptor::new(
                trimmed.digest.clone(),
                trimmed.size,
                self.media_type.clone(),
            )
        })
    }

    /// Every manifest of the image in the order in which a registry accepts them: children before
    /// parents, the top last. The trimmed index is not one of them.
    pub fn manifests_in_order(&self) -> impl Iterator<Item = Descriptor> + '_ {
        let children = self.manifests.iter().map(|child| {
            Descriptor::new(child.digest.clone(), child.size, child.media_type.clone())
        });
        children.chain(std::iter::once(self.descriptor()))
    }

    /// The carried platforms, if the image is not for `wanted`: a node of that platform cannot run
    /// it. `None` if it is, or if no platform of the image is known.
    pub fn platforms_without(&self, wanted: &Platform) -> Option<Vec<Platform>> {
        let children = self.manifests.iter();
        let children = children.filter_map(|child| child.platform.as_ref()?.parse().ok());
        let has: BTreeSet<Platform> = children
            .chain(self.platform.clone())
            .filter(|platform: &Platform| !platform.is_unknown())
            .collect();
        let lacks = !has.is_empty() && !has.iter().any(|own| own.satisfies(wanted));
        lacks.then(|| has.into_iter().collect())
    }

    /// The tag at a destination: the image's own, or `digest-<first 12 hex>` for an image that is
    /// locked without a tag. Clean-up jobs of registries delete untagged manifests.
    pub fn destination_tag(&self) -> String {
        match &self.name.tag {
            Some(tag) => tag.clone(),
            None => format!("digest-{}", self.digest.short(12)),
        }
    }
}

/// Reads and writes blobs as lines of the form `digest size mediaType`.
pub(crate) mod blob_lines {
    use landfall_model::{Descriptor, DigestError};
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        source: D,
    ) -> Result<Vec<Descriptor>, D::Error> {
        let lines = Vec::<String>::deserialize(source)?;
        // a lock may have a million blobs, and `collect` into a `Result` reserves more than is
        // needed
        let mut blobs = Vec::with_capacity(lines.len());
        for line in lines {
            blobs.push(read_blob(&line).map_err(Error::custom)?);
        }
        Ok(blobs)
    }

    fn read_blob(line: &str) -> Result<Descriptor, String> {
        // a media type may have parameters after a space, so it is the rest of the line
        let mut words = line.splitn(3, ' ');
        let (Some(digest), Some(Ok(size)), Some(media_type)) =
            (words.next(), words.next().map(str::parse), words.next())
        else {
            return Err(format!(
                "blob '{line}' is not of the form 'digest size mediaType'"
            ));
        };
        Ok(Descriptor {
            digest: digest
                .parse()
                .map_err(|error: DigestError| error.to_string())?,
            size,
            media_type: media_type.into(),
        })
    }

    pub(crate) fn serialize<S: Serializer>(
        blobs: &[Descriptor],
        out: S,
    ) -> Result<S::Ok, S::Error> {
        out.collect_seq(
            blobs
                .iter()
                .map(|blob| format!("{} {} {}", blob.digest, blob.size, blob.media_type)),
        )
    }
}
