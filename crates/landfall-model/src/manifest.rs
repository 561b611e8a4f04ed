//! Parsing of manifests and indexes.
//!
//! landfall stores and sends the raw bytes. It does not serialize a parsed manifest, because that
//! would change the digest; the only exceptions are trimmed indexes and lists of referrers.

use super::{Descriptor, Digest, DigestError, Platform, media_type};
use serde::Deserialize;
use std::collections::BTreeSet;

/// A manifest that an index lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildManifest {
    /// The descriptor of the manifest.
    pub descriptor: Descriptor,
    /// The platform, if the index names one.
    pub platform: Option<Platform>,
    /// For an attestation manifest, the digest of the manifest that it describes. It is read from
    /// the annotation `vnd.docker.reference.digest`.
    pub attests: Option<Digest>,
}

/// A parsed OCI or Docker manifest, which is either an index or an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Manifest {
    /// An index: a list of manifests (rarely of blobs).
    Index(Vec<ChildManifest>),
    /// An image or an artifact.
    Image {
        /// The config blob, which for an artifact is often the empty object.
        config: Descriptor,
        /// The layers, in order, with repetitions.
        layers: Vec<Descriptor>,
        /// The manifest that this one refers to.
        subject: Option<Descriptor>,
        /// The `artifactType` or, if it is missing, the media type of the config.
        artifact_type: String,
    },
}

/// Why a manifest cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// It is not JSON, or lacks a required field.
    #[error("invalid manifest: {0}")]
    Json(String),
    /// A digest in it is not valid.
    #[error("invalid digest in the manifest: {0}")]
    Digest(#[from] DigestError),
    /// It is a Docker schema 1 manifest.
    #[error(
        "it is a Docker schema 1 manifest, which current registries and nodes refuse; use a newer \
         tag of the image"
    )]
    Schema1,
    /// It names a media type that no manifest has. If a registry served a manifest as `text/html`,
    /// for example, a browser would run it.
    #[error("its media type is '{0}', not that of an image manifest or an index of OCI or Docker")]
    MediaType(String),
    /// It lacks `manifests`, and also `config` or `layers`.
    #[error("it is neither an image manifest nor an index (media type '{0}')")]
    NotAManifest(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawDescriptor {
    media_type: Option<String>,
    digest: String,
    size: u64,
    platform: Option<RawPlatform>,
    annotations: Option<RawAnnotations>,
}

/// The only annotation that is read. The others are skipped, because a manifest may have hundreds
/// of thousands.
#[derive(Deserialize)]
struct RawAnnotations {
    #[serde(rename = "vnd.docker.reference.digest")]
    attests: Option<String>,
}

#[derive(Deserialize)]
struct RawPlatform {
    #[serde(default)]
    os: String,
    #[serde(default)]
    architecture: String,
    variant: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawManifest {
    schema_version: Option<u64>,
    media_type: Option<String>,
    artifact_type: Option<String>,
    manifests: Option<Vec<RawDescriptor>>,
    config: Option<RawDescriptor>,
    layers: Option<Vec<RawDescriptor>>,
    subject: Option<RawDescriptor>,
}

impl RawDescriptor {
    fn read(&self) -> Result<Descriptor, ManifestError> {
        Ok(Descriptor {
            digest: self.digest.parse()?,
            size: self.size,
            media_type: self
                .media_type
                .as_deref()
                .unwrap_or(media_type::OCTETS)
                .into(),
        })
    }
}

impl Manifest {
    /// Parses a manifest. Returns it with its media type: the `mediaType` of the body; else
    /// `content_type` without parameters, if it is the media type of a manifest; else the OCI type
    /// that matches the members (manifest.md, "mediaType"). [`media_type::is_manifest`] accepts
    /// every returned type.
    ///
    /// # Errors
    /// Fails if `bytes` are not a manifest of a supported media type.
    pub fn parse(
        bytes: &[u8],
        content_type: Option<&str>,
    ) -> Result<(Manifest, String), ManifestError> {
        let raw: RawManifest = serde_json::from_slice(bytes)
            .map_err(|error| ManifestError::Json(error.to_string()))?;
        let sent = content_type.map(|value| value.split(';').next().unwrap_or(value).trim());
        let own = raw.media_type.as_deref().filter(|own| !own.is_empty());
        let named = own.or(sent.filter(|value| media_type::is_manifest(value)));
        let schema1 = [
            media_type::DOCKER_SCHEMA1,
            media_type::DOCKER_SCHEMA1_SIGNED,
        ];
        if raw.schema_version == Some(1) || named.is_some_and(|named| schema1.contains(&named)) {
            return Err(ManifestError::Schema1);
        }
        if let Some(other) = named.filter(|named| !media_type::is_manifest(named)) {
            return Err(ManifestError::MediaType(other.into()));
        }
        if let Some(children) = &raw.manifests {
            let media_type = named.unwrap_or(media_type::OCI_INDEX).to_owned();
            let children = children.iter().map(read_child).collect::<Result<_, _>>()?;
            return Ok((Manifest::Index(children), media_type));
        }
        let (Some(config), Some(layers)) = (&raw.config, &raw.layers) else {
            return Err(ManifestError::NotAManifest(
                named.or(sent).unwrap_or("").into(),
            ));
        };
        let media_type = named.unwrap_or(media_type::OCI_MANIFEST).to_owned();
        let config = config.read()?;
        let manifest = Manifest::Image {
            artifact_type: raw
                .artifact_type
                .clone()
                .unwrap_or_else(|| config.media_type.to_string()),
            config,
            layers: layers
                .iter()
                .map(RawDescriptor::read)
                .collect::<Result<_, _>>()?,
            subject: raw.subject.as_ref().map(RawDescriptor::read).transpose()?,
        };
        Ok((manifest, media_type))
    }
}

fn read_child(raw: &RawDescriptor) -> Result<ChildManifest, ManifestError> {
    let attests = raw
        .annotations
        .as_ref()
        .and_then(|annotations| annotations.attests.as_deref());
    Ok(ChildManifest {
        descriptor: raw.read()?,
        platform: raw.platform.as_ref().map(|platform| Platform {
            os: platform.os.clone(),
            architecture: platform.architecture.clone(),
            variant: platform
                .variant
                .clone()
                .filter(|variant| !variant.is_empty()),
        }),
        attests: attests.map(str::parse).transpose()?,
    })
}

/// Removes all children from `index` that are not in `keep`. The result has the same members in the
/// same order, without white space.
///
/// This rule must never change: every machine must compute the same bytes, and so the same digest,
/// from the same index.
///
/// # Errors
/// Fails if `index` is not a JSON object with a list `manifests`.
pub fn trim_index(index: &[u8], keep: &BTreeSet<Digest>) -> Result<Vec<u8>, ManifestError> {
    let json = |error: serde_json::Error| ManifestError::Json(error.to_string());
    let mut value: serde_json::Value = serde_json::from_slice(index).map_err(json)?;
    children_mut(&mut value)?.retain(|child| {
        let digest = child.get("digest").and_then(serde_json::Value::as_str);
        digest
            .and_then(|digest| digest.parse().ok())
            .is_some_and(|digest| keep.contains(&digest))
    });
    serde_json::to_vec(&value).map_err(json)
}

/// Returns the member `manifests` of an index.
pub(super) fn children_mut(
    index: &mut serde_json::Value,
) -> Result<&mut Vec<serde_json::Value>, ManifestError> {
    let list = index
        .get_mut("manifests")
        .and_then(serde_json::Value::as_array_mut);
    list.ok_or_else(|| ManifestError::Json("it has no list `manifests`".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const INDEX: &str = r#"{ "schemaVersion": 2, "manifests": [
      {"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","size":1,"platform":{"os":"linux","architecture":"amd64"}},
      {"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb","size":2,"platform":{"os":"linux","architecture":"arm64","variant":"v8"},"x":1}
    ], "annotations": {"k":"v"} }"#;

    #[test]
    fn foreign_layers_are_recognized_by_media_type() {
        assert!(media_type::is_foreign(
            "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip"
        ));
        assert!(media_type::is_foreign(
            "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip"
        ));
        assert!(!media_type::is_foreign(
            "application/vnd.oci.image.layer.v1.tar+gzip"
        ));
    }

    #[test]
    fn an_index_without_media_type_is_read() {
        let (manifest, kind) =
            Manifest::parse(INDEX.as_bytes(), Some("application/json; charset=x")).unwrap();
        assert_eq!(kind, media_type::OCI_INDEX);
        let Manifest::Index(children) = manifest else {
            panic!("not an index")
        };
        assert_eq!(
            children[1].platform.as_ref().unwrap().to_string(),
            "linux/arm64/v8"
        );
    }

    #[test]
    fn trimming_keeps_member_order_and_unknown_members() {
        let keep = ["sha256:".to_owned() + &"b".repeat(64)]
            .iter()
            .map(|d| d.parse().unwrap())
            .collect();
        let trimmed = String::from_utf8(trim_index(INDEX.as_bytes(), &keep).unwrap()).unwrap();
        assert!(
            trimmed.starts_with(r#"{"schemaVersion":2,"manifests":[{"mediaType""#),
            "{trimmed}"
        );
        assert!(trimmed.contains(r#""x":1"#) && !trimmed.contains("amd64"));
    }

    #[test]
    fn schema1_and_other_documents_are_refused_with_distinct_errors() {
        assert_eq!(
            Manifest::parse(br#"{"schemaVersion":1,"fsLayers":[]}"#, None),
            Err(ManifestError::Schema1)
        );
        assert!(matches!(
            Manifest::parse(b"{}", None),
            Err(ManifestError::NotAManifest(_))
        ));
        assert!(matches!(
            Manifest::parse(b"<html>", None),
            Err(ManifestError::Json(_))
        ));
    }

    #[test]
    fn manifests_with_the_media_type_of_another_document_are_refused() {
        for fields in [
            r#""manifests":[]"#,
            r#""layers":[],"config":{"digest":"sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","size":1}"#,
        ] {
            let of = |kind: &str| {
                let text = format!(r#"{{"schemaVersion":2,"mediaType":"{kind}",{fields}}}"#);
                Manifest::parse(text.as_bytes(), Some(media_type::OCI_MANIFEST))
            };
            for kind in [
                "text/html",
                "application/vnd.oci.artifact.manifest.v1+json",
                "image/svg+xml",
            ] {
                assert_eq!(of(kind), Err(ManifestError::MediaType(kind.into())));
            }
            assert!(of("").is_ok(), "an empty media type is ignored");
        }
    }
}
