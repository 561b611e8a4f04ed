//! The media types that landfall knows, and the type [`MediaType`]. It does not allocate memory for
//! the most frequent media types, because a lock has thousands of them.

use crate::Digest;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

pub use oci_client::manifest::{
    IMAGE_CONFIG_MEDIA_TYPE as OCI_CONFIG, IMAGE_DOCKER_CONFIG_MEDIA_TYPE as DOCKER_CONFIG,
    IMAGE_MANIFEST_LIST_MEDIA_TYPE as DOCKER_LIST, IMAGE_MANIFEST_MEDIA_TYPE as DOCKER_MANIFEST,
    OCI_IMAGE_INDEX_MEDIA_TYPE as OCI_INDEX, OCI_IMAGE_MEDIA_TYPE as OCI_MANIFEST,
};

/// Signed manifests of Docker schema 1, which landfall refuses.
pub const DOCKER_SCHEMA1_SIGNED: &str = "application/vnd.docker.distribution.manifest.v1+prettyjws";

/// Unsigned manifests of Docker schema 1, which landfall refuses.
pub const DOCKER_SCHEMA1: &str = "application/vnd.docker.distribution.manifest.v1+json";

/// Artifact manifests of a release candidate of the OCI image specification, with `blobs` in place
/// of layers. Their media type is all that landfall knows about them.
pub const OCI_ARTIFACT: &str = "application/vnd.oci.artifact.manifest.v1+json";

/// Artifact manifests of ORAS before OCI 1.1.
pub const ORAS_ARTIFACT: &str = "application/vnd.cncf.oras.artifact.manifest.v1+json";

/// The config `{}` of an artifact without a config (manifest.md, "Guidance for an Empty
/// Descriptor").
pub const OCI_EMPTY: &str = "application/vnd.oci.empty.v1+json";

/// A plain file, as the layer of an artifact.
pub const OCTETS: &str = "application/octet-stream";

/// The `artifactType` of a plain file.
pub const LANDFALL_FILE: &str = "application/vnd.landfall.file.v1";

/// The `artifactType` of a git repository.
pub const LANDFALL_GIT: &str = "application/vnd.landfall.git.v1";

/// The refs of a git repository, as the config of its artifact.
pub const LANDFALL_GIT_REFS: &str = "application/vnd.landfall.git.refs.v1";

/// A git pack that landfall wrote, as the layer of a git repository.
pub const LANDFALL_GIT_PACK: &str = "application/vnd.landfall.git.pack.v1";

/// The `artifactType` of the index of a provider (opentofu.org, "Provider Mirrors in OCI
/// Registries").
pub const OPENTOFU_PROVIDER: &str = "application/vnd.opentofu.provider";

/// The `artifactType` of a provider for one platform.
pub const OPENTOFU_PROVIDER_TARGET: &str = "application/vnd.opentofu.provider-target";

/// A zip archive with a provider for one platform.
pub const ZIP_PACKAGE: &str = "archive/zip";

/// The `artifactType` of a set of OS packages.
pub const LANDFALL_PACKAGES: &str = "application/vnd.landfall.packages.v1";

/// A Debian package, as the layer of a package set.
pub const DEB: &str = "application/vnd.debian.binary-package";

/// An RPM package, as the layer of a package set.
pub const RPM: &str = "application/x-rpm";

/// The config of a Helm chart (helm.sh, "Use OCI-based registries").
pub const HELM_CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";

/// The archive of a Helm chart, as the layer of an artifact.
pub const HELM_CHART: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";

/// The archive of a Helm chart in artifacts that Helm before 3.7 pushed.
pub const HELM_CHART_OLD: &str = "application/tar+gzip";

/// The provenance file of a Helm chart, as the layer of an artifact.
pub const HELM_PROVENANCE: &str = "application/vnd.cncf.helm.chart.provenance.v1.prov";

/// Whether this is the media type of an index, which lists manifests.
pub fn is_index(media_type: &str) -> bool {
    media_type == OCI_INDEX || media_type == DOCKER_LIST
}

/// Whether this is the media type of an image manifest of OCI or Docker. Such a manifest has no
/// children.
pub fn is_image_manifest(media_type: &str) -> bool {
    media_type == OCI_MANIFEST || media_type == DOCKER_MANIFEST
}

/// Whether this is the media type of a manifest: an image manifest, an index, or another type that
/// says so in its name, such as `application/vnd.oci.artifact.manifest.v1+json`.
pub fn is_manifest(media_type: &str) -> bool {
    let is_named_so = || {
        let name = media_type.strip_prefix("application/vnd.");
        let name = name.and_then(|name| name.strip_suffix("+json"));
        name.is_some_and(|name| {
            name.split('.')
                .any(|word| word == "manifest" || word == "index")
        })
    };
    is_index(media_type)
        || is_image_manifest(media_type)
        || (is_named_so() && !is_schema1(media_type))
}

/// Whether a child of an index with this media type may be a manifest although its name does not
/// say so: another JSON document of a vendor that is no config. Registries have some of these as
/// manifests and others as blobs, so clients ask for both.
pub fn may_be_unknown_manifest(media_type: &str) -> bool {
    let name = media_type.strip_prefix("application/vnd.");
    let is_document = name.is_some_and(|name| name.ends_with("+json") && !name.contains("config"));
    is_document
        && media_type != OCI_EMPTY
        && media_type != DOCKER_CONFIG
        && !is_manifest(media_type)
        && !is_schema1(media_type)
        && may_be_manifest(media_type)
}

/// Whether this is the media type of a Docker schema 1 manifest, which landfall refuses.
pub(crate) fn is_schema1(media_type: &str) -> bool {
    media_type == DOCKER_SCHEMA1 || media_type == DOCKER_SCHEMA1_SIGNED
}

/// Whether a manifest may be carried and served with this media type. A browser would run documents
/// of other types, such as HTML, SVG and scripts, so a manifest must not be served as one of them.
pub fn may_be_manifest(media_type: &str) -> bool {
    let Some(name) = media_type.strip_prefix("application/") else {
        return false;
    };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte);
    let name = name.to_ascii_lowercase();
    !name.is_empty()
        && name.bytes().all(is_plain)
        && !["html", "xml", "script", "pdf", "flash"]
            .iter()
            .any(|word| name.contains(word))
}

/// Whether layers of this media type may be kept out of registries (image-spec, "Non-Distributable
/// Layers"; for Docker: manifest v2 schema 2, `foreign`).
pub fn is_foreign(media_type: &str) -> bool {
    media_type.contains(".nondistributable.") || media_type.contains(".foreign.")
}

/// Whether this is the media type of an image config, which names `os` and `architecture`.
pub fn is_image_config(media_type: &str) -> bool {
    media_type == OCI_CONFIG || media_type == DOCKER_CONFIG
}

/// A media type. Frequent ones are not allocated.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String")]
#[derive(derive_more::Display, derive_more::Debug, derive_more::Deref)]
#[debug("{_0:?}")]
#[deref(forward)]
pub struct MediaType(Cow<'static, str>);

const KNOWN: [&str; 13] = [
    OCI_INDEX,
    OCI_MANIFEST,
    OCI_CONFIG,
    OCI_EMPTY,
    DOCKER_LIST,
    DOCKER_MANIFEST,
    DOCKER_CONFIG,
    OCTETS,
    "application/vnd.oci.image.layer.v1.tar",
    "application/vnd.oci.image.layer.v1.tar+gzip",
    "application/vnd.oci.image.layer.v1.tar+zstd",
    "application/vnd.docker.image.rootfs.diff.tar.gzip",
    "application/vnd.in-toto+json",
];

impl<T: AsRef<str> + Into<String>> From<T> for MediaType {
    fn from(text: T) -> MediaType {
        let known = KNOWN.into_iter().find(|known| *known == text.as_ref());
        MediaType(known.map_or_else(|| Cow::Owned(text.into()), Cow::Borrowed))
    }
}

impl PartialEq<str> for MediaType {
    fn eq(&self, other: &str) -> bool {
        **self == *other
    }
}

impl PartialEq<&str> for MediaType {
    fn eq(&self, other: &&str) -> bool {
        **self == **other
    }
}

/// An OCI content descriptor, without its optional members (descriptor.md, "Properties").
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// The digest of the content.
    pub digest: Digest,
    /// The size of the content in bytes.
    pub size: u64,
    /// The media type of the content.
    pub media_type: MediaType,
}

impl Descriptor {
    /// The descriptor of the content with `digest`.
    pub fn new(digest: Digest, size: u64, media_type: impl Into<MediaType>) -> Descriptor {
        Descriptor {
            digest,
            size,
            media_type: media_type.into(),
        }
    }

    /// The descriptor of `bytes`.
    pub fn of(bytes: &[u8], media_type: impl Into<MediaType>) -> Descriptor {
        Descriptor::new(Digest::sha256(bytes), bytes.len() as u64, media_type)
    }
}

// The fixed parts of an OCI image layout (image-layout.md).

/// The file that marks a folder as an OCI image layout.
pub const LAYOUT_FILE: &str = "oci-layout";

/// The content of the file `oci-layout`.
pub const OCI_LAYOUT: &[u8] = br#"{"imageLayoutVersion":"1.0.0"}"#;

/// The file with the index of an OCI image layout.
pub const INDEX_FILE: &str = "index.json";

/// The host of Docker Hub in references.
pub(crate) const HUB: &str = "docker.io";

/// Returns the host that references use for `host`: `docker.io` for each name of Docker Hub.
pub fn canonical_host(host: &str) -> &str {
    if matches!(host, "index.docker.io" | "registry-1.docker.io") {
        HUB
    } else {
        host
    }
}
