//! Parsing of manifests and indexes.
//!
//! landfall stores and sends the raw bytes. It does not serialize a parsed manifest, because that
//! would change the digest; the only exceptions are trimmed indexes and lists of referrers.
//!
//! Only members that landfall needs are parsed: digests, sizes and media types of what must be
//! carried, and platforms. Other members may be missing or have any type, since the bytes are kept
//! and the clients judge them.

use crate::json::{JsonText, from_json};
use crate::{Descriptor, Digest, DigestError, Platform, media_type};
use std::collections::BTreeSet;

/// A manifest that an index lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildManifest {
    /// The descriptor of the manifest.
    pub descriptor: Descriptor,
    /// The platform, if the index names an operating system and an architecture.
    pub platform: Option<Platform>,
    /// For an attestation manifest, the digest of the manifest that it describes. It is read from
    /// the annotation `vnd.docker.reference.digest`.
    pub attests: Option<Digest>,
}

/// A child of an index that cannot be carried, because its descriptor cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableChild {
    /// The digest as the index writes it; empty if it names none.
    pub digest: String,
    /// The platform, as in [`ChildManifest`].
    pub platform: Option<Platform>,
    /// Why the descriptor cannot be read.
    pub why: ManifestError,
}

/// A parsed manifest, which is either an index or an image. Artifacts, and manifests of media types
/// that landfall does not know, are read as images.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Manifest {
    /// An index: a list of manifests (rarely of blobs), without those of [`unreadable_children`].
    Index(Vec<ChildManifest>),
    /// An image or an artifact.
    Image {
        /// The config blob, which for an artifact is often the empty object. An artifact may have
        /// none.
        config: Option<Descriptor>,
        /// The layers, in order, with repetitions; then the `blobs` of an artifact manifest of an
        /// older specification.
        layers: Vec<Descriptor>,
        /// The `artifactType` or, if it is missing, the media type of the config.
        artifact_type: String,
    },
}

/// Why a manifest cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// It is not JSON, or a member that is needed has another type.
    #[error("invalid manifest: {0}")]
    Json(String),
    /// A digest in it is not valid.
    #[error("invalid digest in the manifest: {0}")]
    Digest(#[from] DigestError),
    /// The size of content that it names is missing or not a number.
    #[error(
        "invalid manifest: it names {0} without a valid size, so the download cannot be checked"
    )]
    Size(Digest),
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
    /// It has none of the members of a manifest.
    #[error("it is neither an image manifest nor an index (media type '{0}')")]
    NotAManifest(String),
}

impl Manifest {
    /// Parses a manifest. Returns it with its media type. The members decide whether it is an index
    /// or an image; the declared type decides only if it has the members of both, or of neither.
    ///
    /// The returned media type is the `mediaType` of the body, since registries compare it with the
    /// `Content-Type` of a push; else the OCI type that matches the members, since manifests of
    /// Docker must have a `mediaType` (manifest.md, "mediaType"). A `content_type` of neither OCI
    /// nor Docker, such as that of an older artifact manifest, is kept.
    /// [`media_type::may_be_manifest`] accepts every returned type.
    ///
    /// # Errors
    /// Fails if `bytes` are not a manifest, or if a digest or size of its config or layers is not
    /// valid.
    pub fn parse(
        bytes: &[u8],
        content_type: Option<&str>,
    ) -> Result<(Manifest, String), ManifestError> {
        // text of an annotation may be in another encoding
        let text = String::from_utf8_lossy(bytes);
        let raw = RawManifest::read(&text)?;
        let sent = content_type.map(|value| value.split(';').next().unwrap_or(value).trim());
        let sent = sent.map(str::to_ascii_lowercase);
        let own = raw.media_type.as_deref();
        let names_kind = |value: &&str| {
            media_type::is_manifest(value) || media_type::may_be_unknown_manifest(value)
        };
        let named = own.or(sent.as_deref().filter(names_kind));
        if raw.is_schema1 || named.is_some_and(media_type::is_schema1) {
            return Err(ManifestError::Schema1);
        }
        if let Some(other) = named.filter(|named| !media_type::may_be_manifest(named)) {
            return Err(ManifestError::MediaType(other.into()));
        }
        let Some(is_index) = raw.is_index(named) else {
            let declared = named.or(sent.as_deref()).unwrap_or("");
            return Err(ManifestError::NotAManifest(declared.into()));
        };
        let of_members = if is_index {
            media_type::OCI_INDEX
        } else {
            media_type::OCI_MANIFEST
        };
        let media_type = match (own, named) {
            (Some(own), _) => own,
            (None, Some(sent)) if !is_common(sent) => sent,
            _ => of_members,
        };
        let media_type = media_type.to_owned();
        let manifest = if is_index {
            let children = raw
                .children
                .iter()
                .filter_map(|child| read_child(*child).ok());
            Manifest::Index(children.collect())
        } else {
            raw.image()?
        };
        Ok((manifest, media_type))
    }

    /// The digests that the manifest names: its children, or its config and layers.
    pub fn into_digests(self) -> BTreeSet<Digest> {
        let descriptors: Vec<Descriptor> = match self {
            Manifest::Index(children) => {
                children.into_iter().map(|child| child.descriptor).collect()
            }
            Manifest::Image { config, layers, .. } => config.into_iter().chain(layers).collect(),
        };
        descriptors
            .into_iter()
            .map(|content| content.digest)
            .collect()
    }

    /// Whether the body of a manifest names its media type.
    pub fn declares_type(bytes: &[u8]) -> bool {
        let text = String::from_utf8_lossy(bytes);
        let [kind] = JsonText::new(&text).members_if_object(["mediaType"]);
        kind.and_then(JsonText::string).is_some()
    }
}

/// Whether this is the type of an index or image manifest of OCI or Docker.
fn is_common(media_type: &str) -> bool {
    media_type::is_index(media_type) || media_type::is_image_manifest(media_type)
}

/// The members of a manifest.
struct RawManifest<'a> {
    is_schema1: bool,
    has_version: bool,
    media_type: Option<String>,
    artifact_type: Option<String>,
    /// Whether there is a list of children, possibly empty or `null`.
    lists_children: bool,
    children: Vec<JsonText<'a>>,
    /// Whether there is a config or a list of layers, possibly empty or `null`.
    lists_blobs: bool,
    config: Option<JsonText<'a>>,
    layers: Layers<'a>,
}

/// The layers of an image; the reason if the member is not a list.
type Layers<'a> = Result<Vec<JsonText<'a>>, ManifestError>;

impl<'a> RawManifest<'a> {
    fn read(text: &'a str) -> Result<RawManifest<'a>, ManifestError> {
        let names = [
            "schemaVersion",
            "mediaType",
            "artifactType",
            "manifests",
            "config",
            "layers",
            "blobs",
        ];
        let (found, present) = JsonText::new(text)
            .members_and_presence(names)
            .map_err(|error| ManifestError::Json(error.to_string()))?;
        let [
            version,
            media_type,
            artifact_type,
            manifests,
            config,
            layers,
            blobs,
        ] = found;
        let [.., has_children, has_config, has_layers, has_blobs] = present;
        let list = |value: Option<JsonText<'a>>, name: &str| match value {
            None => Ok(Vec::new()),
            Some(value) => value
                .elements()
                .ok_or_else(|| ManifestError::Json(format!("its `{name}` is not a list"))),
        };
        let layers = list(layers, "layers").and_then(|mut layers| {
            layers.extend(list(blobs, "blobs")?);
            Ok(layers)
        });
        Ok(RawManifest {
            is_schema1: version.and_then(JsonText::unsigned) == Some(1),
            has_version: version.is_some(),
            media_type: media_type.and_then(JsonText::string),
            artifact_type: artifact_type.and_then(JsonText::string),
            lists_children: has_children,
            children: manifests.and_then(JsonText::elements).unwrap_or_default(),
            lists_blobs: has_config || has_layers || has_blobs,
            config: config.filter(|config| config.members(["digest"]).is_ok()),
            layers,
        })
    }

    /// Whether the manifest is an index; `None` if it is no manifest.
    fn is_index(&self, named: Option<&str>) -> Option<bool> {
        let has_blobs = self.config.is_some() || !self.layers.as_ref().is_ok_and(Vec::is_empty);
        let of_type = named.filter(|named| media_type::is_manifest(named));
        let of_type = of_type.map(media_type::is_index);
        match (!self.children.is_empty(), has_blobs) {
            (true, false) => Some(true),
            (false, true) => Some(false),
            (true, true) => Some(of_type.unwrap_or(true)),
            (false, false) => match of_type {
                // an error document is no manifest, whatever its Content-Type
                Some(is_index) if self.media_type.is_some() || self.has_version => Some(is_index),
                _ if self.lists_children => Some(true),
                _ if self.lists_blobs => Some(false),
                _ => None,
            },
        }
    }

    fn image(self) -> Result<Manifest, ManifestError> {
        // the config `{}` of some artifacts has no digest
        let has_digest = |config: &JsonText<'_>| {
            let [digest] = config.members_if_object(["digest"]);
            digest.and_then(JsonText::string).is_some()
        };
        let config = self.config.filter(has_digest);
        let config = config.map(read_descriptor).transpose()?;
        let config_type = self
            .config
            .and_then(|config| config.members_if_object(["mediaType"])[0]?.string());
        let layers = self.layers?.into_iter().map(read_descriptor);
        Ok(Manifest::Image {
            config,
            layers: layers.collect::<Result<_, _>>()?,
            artifact_type: self.artifact_type.or(config_type).unwrap_or_default(),
        })
    }
}

fn read_descriptor(raw: JsonText<'_>) -> Result<Descriptor, ManifestError> {
    let [digest, size, kind] = raw
        .members(["digest", "size", "mediaType"])
        .map_err(|error| ManifestError::Json(error.to_string()))?;
    let digest = digest
        .and_then(JsonText::string)
        .ok_or_else(|| ManifestError::Json("an entry names no digest".into()))?;
    let digest: Digest = digest.parse()?;
    let Some(size) = size.and_then(JsonText::unsigned) else {
        return Err(ManifestError::Size(digest));
    };
    let kind = kind.and_then(JsonText::string);
    Ok(Descriptor::new(
        digest,
        size,
        kind.as_deref().unwrap_or(media_type::OCTETS),
    ))
}

fn read_child(raw: JsonText<'_>) -> Result<ChildManifest, ManifestError> {
    let mut descriptor = read_descriptor(raw)?;
    let [kind, platform, annotations] =
        raw.members_if_object(["mediaType", "platform", "annotations"]);
    if kind.and_then(JsonText::string).is_none() {
        // an index lists manifests unless it says otherwise
        descriptor.media_type = media_type::OCI_MANIFEST.into();
    }
    let [attests] = annotations
        .map(|annotations| annotations.members_if_object(["vnd.docker.reference.digest"]))
        .unwrap_or_default();
    Ok(ChildManifest {
        descriptor,
        platform: platform.and_then(read_platform),
        attests: attests
            .and_then(JsonText::string)
            .and_then(|digest| digest.parse().ok()),
    })
}

/// The platform in a child of an index or in a config, if it names an operating system and an
/// architecture.
pub(super) fn read_platform(raw: JsonText<'_>) -> Option<Platform> {
    let [os, architecture, variant] = raw
        .members_if_object(["os", "architecture", "variant"])
        .map(|part| part.and_then(JsonText::string));
    Platform::of_parts(&os?, &architecture?, variant.as_deref())
}

/// The platform that an image config names. `None` for the config of an artifact, which may be any
/// content.
pub fn platform_of_config(config: &[u8]) -> Option<Platform> {
    read_platform(JsonText::new(&String::from_utf8_lossy(config)))
}

/// The children of an index whose descriptors cannot be read, for example because landfall does not
/// support the algorithm of the digest. There are none if `bytes` are not an index.
pub fn unreadable_children(bytes: &[u8]) -> Vec<UnreadableChild> {
    let text = String::from_utf8_lossy(bytes);
    let [children] = JsonText::new(&text).members_if_object(["manifests"]);
    let children = children.and_then(JsonText::elements).unwrap_or_default();
    // an entry `null` names nothing that could be lost
    let named = children.into_iter().filter(|raw| !raw.is_null());
    let unreadable = named.filter_map(|raw| {
        let why = read_child(raw).err()?;
        let [digest, platform] = raw.members_if_object(["digest", "platform"]);
        Some(UnreadableChild {
            digest: digest.and_then(JsonText::string).unwrap_or_default(),
            platform: platform.and_then(read_platform),
            why,
        })
    });
    unreadable.collect()
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
    let text = String::from_utf8_lossy(index);
    let mut value: serde_json::Value = from_json(text.as_bytes()).map_err(json)?;
    children_mut(&mut value)?.retain(|child| {
        let digest = child.get("digest").and_then(serde_json::Value::as_str);
        digest
            .and_then(|digest| digest.parse().ok())
            .is_some_and(|digest| keep.contains(&digest))
    });
    serde_json::to_vec(&value).map_err(json)
}

/// Returns the member `manifests` of an index.
fn children_mut(
    index: &mut serde_json::Value,
) -> Result<&mut Vec<serde_json::Value>, ManifestError> {
    let list = index.get_mut("manifests");
    // tools written in Go write an empty list as `null`
    let list = list.map(|list| match list {
        serde_json::Value::Null => {
            *list = serde_json::Value::Array(Vec::new());
            list
        }
        list => list,
    });
    let list = list.and_then(serde_json::Value::as_array_mut);
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
            for kind in ["text/html", "image/svg+xml", "application/xhtml+xml"] {
                assert_eq!(of(kind), Err(ManifestError::MediaType(kind.into())));
            }
            assert!(of("").is_ok(), "an empty media type is ignored");
        }
    }

    const A: &str = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

    fn parse(text: &str, content_type: Option<&str>) -> Result<(Manifest, String), ManifestError> {
        let text = text.replace("BLOB", &format!(r#"{{"digest":"{A}","size":1}}"#));
        Manifest::parse(text.as_bytes(), content_type)
    }

    /// The number of children, or of config and layers, and the media type.
    fn count(text: &str, content_type: Option<&str>) -> (bool, usize, String) {
        match parse(text, content_type).unwrap_or_else(|error| panic!("{text}: {error}")) {
            (Manifest::Index(children), kind) => (true, children.len(), kind),
            (Manifest::Image { config, layers, .. }, kind) => {
                (false, layers.len() + usize::from(config.is_some()), kind)
            }
        }
    }

    #[test]
    fn absent_and_null_members_are_empty_lists() {
        let image = |text: &str, blobs| {
            let wanted = (false, blobs, media_type::OCI_MANIFEST.to_owned());
            assert_eq!(
                count(text, Some(media_type::OCI_MANIFEST)),
                wanted,
                "{text}"
            );
        };
        image(r#"{"schemaVersion":2,"config":BLOB}"#, 1);
        image(
            r#"{"schemaVersion":2,"config":BLOB,"layers":null,"manifests":null}"#,
            1,
        );
        image(r#"{"config":null,"layers":[BLOB,BLOB]}"#, 2);
        image(r#"{"layers":[null,BLOB],"config":{}}"#, 1);
        image(r#"{"schemaVersion":2,"artifactType":"a/b"}"#, 0);
        for text in [r#"{"manifests":null}"#, r#"{"manifests":[],"layers":null}"#] {
            let wanted = (true, 0, media_type::OCI_INDEX.to_owned());
            assert_eq!(count(text, None), wanted, "{text}");
        }
        let declared = r#"{"mediaType":"application/vnd.oci.image.index.v1+json"}"#;
        assert_eq!(
            count(declared, None),
            (true, 0, media_type::OCI_INDEX.into())
        );
    }

    #[test]
    fn members_decide_whether_it_is_an_index() {
        let (index, image) = (media_type::OCI_INDEX, media_type::OCI_MANIFEST);
        let layers = r#"{"schemaVersion":2,"config":BLOB,"layers":[BLOB]}"#;
        let children = r#"{"schemaVersion":2,"manifests":[BLOB]}"#;
        for sent in [
            index,
            image,
            media_type::DOCKER_LIST,
            "application/json",
            "text/html",
        ] {
            assert_eq!(
                count(layers, Some(sent)),
                (false, 2, image.into()),
                "{sent}"
            );
        }
        assert_eq!(count(children, Some(image)), (true, 1, index.into()));
        // the manifests of Docker name their type
        let docker = media_type::DOCKER_LIST;
        assert_eq!(count(children, Some(docker)), (true, 1, index.into()));
        assert!(!Manifest::declares_type(layers.as_bytes()));
        let upper = "Application/Vnd.OCI.Image.Index.v1+json; charset=utf-8";
        assert_eq!(count(children, Some(upper)), (true, 1, index.into()));
        // registries compare the `mediaType` of the body with the type of the push
        let named = |kind: &str, more: &str| {
            format!(r#"{{"schemaVersion":2,"mediaType":"{kind}",{more}}}"#)
        };
        let odd = named(index, r#""config":BLOB,"layers":[BLOB]"#);
        assert_eq!(count(&odd, Some(image)), (false, 2, index.into()));
        let odd = named(image, r#""manifests":[BLOB]"#);
        assert_eq!(count(&odd, None), (true, 1, image.into()));
        // with the members of both, the declared type decides
        for (kind, is_index) in [(index, true), (image, false)] {
            let both = named(kind, r#""manifests":[BLOB],"layers":[BLOB]"#);
            assert_eq!(count(&both, None), (is_index, 1, kind.into()));
        }
    }

    #[test]
    fn other_types_of_manifests_are_carried_with_their_blobs() {
        let old = "application/vnd.oci.artifact.manifest.v1+json";
        let text = format!(r#"{{"mediaType":"{old}","artifactType":"a/b","blobs":[BLOB,BLOB]}}"#);
        assert_eq!(count(&text, Some(old)), (false, 2, old.into()));
        assert_eq!(
            count(r#"{"blobs":[BLOB]}"#, Some(old)),
            (false, 1, old.into())
        );
        let unknown = "application/vnd.example.thing.v7+json";
        let text = format!(r#"{{"mediaType":"{unknown}","layers":[BLOB]}}"#);
        assert_eq!(count(&text, None), (false, 1, unknown.into()));
        let empty = format!(r#"{{"mediaType":"{unknown}","things":[BLOB]}}"#);
        assert!(matches!(
            parse(&empty, None),
            Err(ManifestError::NotAManifest(_))
        ));
    }

    #[test]
    fn members_that_are_not_needed_may_have_any_type() {
        let odd = r#"{"schemaVersion":"2","mediaType":7,"artifactType":[],"subject":"x",
          "annotations":[1],"config":{"digest":"sha256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
          "size":2.0,"mediaType":null,"annotations":{"a":1}},
          "layers":[{"digest":"SHA256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
          "size":"3","urls":null,"platform":null}],"layers2":[],"config2":1}"#;
        let (Manifest::Image { config, layers, .. }, _) = parse(odd, None).unwrap() else {
            panic!("not an image")
        };
        let config = config.unwrap();
        assert_eq!((config.digest.to_string(), config.size), (A.to_owned(), 2));
        assert_eq!(
            (layers[0].digest.to_string(), layers[0].size),
            (A.to_owned(), 3)
        );
        let index = format!(
            r#"{{"manifests":[
              {{"digest":"{A}","size":1,"platform":null,"annotations":[]}},
              {{"digest":"{A}","size":1,"platform":{{"os":"linux","architecture":"X86_64","os.features":null}}}},
              {{"digest":"{A}","size":1,"platform":{{"os":7,"architecture":""}},
                "annotations":{{"vnd.docker.reference.digest":"md5:00","n":1}}}}]}}"#
        );
        let (Manifest::Index(children), _) = parse(&index, None).unwrap() else {
            panic!("not an index")
        };
        let platforms: Vec<_> = children
            .iter()
            .map(|child| child.platform.as_ref().map(ToString::to_string))
            .collect();
        assert_eq!(platforms, [None, Some("linux/amd64".to_owned()), None]);
        assert!(children.iter().all(|child| child.attests.is_none()));
        assert!(
            children
                .iter()
                .all(|child| child.descriptor.media_type == media_type::OCI_MANIFEST)
        );
        let latin1 = b"{\"manifests\":[],\"annotations\":{\"a\":\"\xe9\"}}";
        assert!(Manifest::parse(latin1, None).is_ok());
    }

    #[test]
    fn digests_and_sizes_of_content_are_checked() {
        let layer = |text: &str| parse(&format!(r#"{{"layers":[{text}]}}"#), None);
        for size in ["-1", "1.5", "null", r#""x""#, "{}"] {
            let text = format!(r#"{{"digest":"{A}","size":{size}}}"#);
            assert!(
                matches!(layer(&text), Err(ManifestError::Size(_))),
                "{size}"
            );
        }
        for digest in ["md5:00", "sha384:00", "sha256:00"] {
            let text = format!(r#"{{"digest":"{digest}","size":1}}"#);
            assert!(
                matches!(layer(&text), Err(ManifestError::Digest(_))),
                "{digest}"
            );
        }
        for text in [
            r#"{"layers":{}}"#,
            r#"{"layers":[1]}"#,
            r#"{"layers":[{}]}"#,
            "[]",
            "1",
            "<html>",
        ] {
            assert!(
                matches!(parse(text, None), Err(ManifestError::Json(_))),
                "{text}"
            );
        }
        let error = parse(r#"{"errors":[]}"#, Some(media_type::OCI_MANIFEST));
        assert!(matches!(error, Err(ManifestError::NotAManifest(_))));
    }

    #[test]
    fn children_with_unsupported_digests_are_listed_apart() {
        let text = format!(
            r#"{{"manifests":[{{"digest":"{A}","size":1}},
              {{"digest":"sha384:00","size":1,"platform":{{"os":"linux","architecture":"s390x"}}}}]}}"#
        );
        assert_eq!(count(&text, None).1, 1);
        let [unreadable] = &unreadable_children(text.as_bytes())[..] else {
            panic!("not one")
        };
        assert_eq!(unreadable.digest, "sha384:00");
        assert_eq!(
            unreadable.platform.as_ref().unwrap().to_string(),
            "linux/s390x"
        );
    }

    #[test]
    fn a_config_without_a_platform_is_that_of_an_artifact() {
        let read = |config: &str| platform_of_config(config.as_bytes()).map(|one| one.to_string());
        let full = r#"{"os":"linux","architecture":"arm64","variant":"v8","rootfs":{}}"#;
        assert_eq!(read(full).as_deref(), Some("linux/arm64/v8"));
        for artifact in [
            "",
            "{}",
            "[]",
            "name: chart",
            r#"{"os":"linux"}"#,
            r#"{"os":1}"#,
        ] {
            assert_eq!(read(artifact), None, "{artifact}");
        }
    }
}
