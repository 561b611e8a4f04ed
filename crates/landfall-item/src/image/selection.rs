//! Selects the manifests and blobs of a locked image for some platforms, from local content.

use super::locked::LockedImage;
use super::manifests::{ReadError, read_manifest, read_small};
use super::platforms::{MissingPlatforms, check_platforms, select_children};
use landfall_content::BlobRead;
use landfall_model::{
    ChildManifest, Descriptor, Digest, Manifest, Platform, media_type, platform_of_config,
    trim_index,
};
use std::collections::{BTreeSet, VecDeque};

/// The manifests and blobs of an image for some platforms.
#[derive(Debug)]
pub struct Selection {
    /// The index or manifest that the exported image refers to.
    pub top: Descriptor,
    /// The bytes of `top` if it is a trimmed index, which is computed rather than read.
    pub trimmed: Option<Vec<u8>>,
    /// Manifests, then the blobs that they name, each once. A trimmed index is not included.
    pub parts: Vec<Descriptor>,
}

/// The manifest of an image for one platform.
#[derive(Debug)]
pub struct OneManifest {
    /// The descriptor of the manifest.
    pub manifest: Descriptor,
    /// The descriptor of its config blob.
    pub config: Descriptor,
    /// The layers, in order. A layer may be repeated.
    pub layers: Vec<Descriptor>,
    platform: Option<Platform>,
}

/// Why no manifests can be selected.
#[derive(Debug, thiserror::Error)]
pub enum SelectionError {
    /// A manifest cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The image does not have a requested platform.
    #[error(transparent)]
    MissingPlatforms(#[from] MissingPlatforms),
    /// One manifest is needed, and several match.
    #[error("it is for {}", .0.join(", "))]
    Several(Vec<String>),
    /// An image is needed, and the config has the media type of something else.
    #[error("it is not a container image: its config has the type {0}")]
    NotAnImage(String),
}

impl LockedImage {
    /// Selects the locked manifests and blobs for `platforms`, or all of them if `platforms` is
    /// empty. If the index has children that are not selected, it is trimmed by
    /// [`trim_index`](landfall_model::trim_index).
    ///
    /// # Errors
    /// If the image has no manifest for a requested platform, if a manifest cannot be read, or if
    /// the trimmed index differs from the one in the lock.
    pub fn select(
        &self,
        blobs: &dyn BlobRead,
        platforms: &[Platform],
    ) -> Result<Selection, SelectionError> {
        let own = self.descriptor();
        let (bytes, top, _) = read_manifest(blobs, &own)?;
        let Manifest::Index(children) = top else {
            let image = image_manifest(own.clone(), top, self.platform.clone())
                .filter(OneManifest::is_image);
            if let Some(image) = image.filter(|_| !platforms.is_empty())
                && let Some(platform) = image.platform(blobs)?
            {
                check_platforms(&[&platform], platforms)?;
            }
            let parts = self.manifests_and_blobs(blobs, [(own.clone(), true)])?;
            return Ok(Selection {
                top: own,
                trimmed: None,
                parts,
            });
        };
        let locked = self.locked_children(&children);
        let selected = select_children(&locked, platforms)?;
        let listed = self.listed_manifests();
        let roots = selected
            .iter()
            .map(|child| (child.descriptor.clone(), listed.has(child)));
        let mut parts = self.manifests_and_blobs(blobs, roots)?;
        if selected.len() == children.len() && self.trimmed.is_none() {
            parts.insert(0, own.clone());
            return Ok(Selection {
                top: own,
                trimmed: None,
                parts,
            });
        }
        let keep = selected
            .iter()
            .map(|child| child.descriptor.digest.clone())
            .collect();
        let bytes = trim_index(&bytes, &keep)
            .map_err(|error| ReadError::from(format!("{}: {error}", own.digest)))?;
        let top = Descriptor {
            digest: Digest::sha256(&bytes),
            size: bytes.len() as u64,
            ..own
        };
        match &self.trimmed {
            // with all locked children, the result must be the trimmed index of the lock
            Some(trimmed) if selected.len() == locked.len() && trimmed.digest != top.digest => {
                let digest = &trimmed.digest;
                let message = format!("the trimmed index is not {digest}, as the lock says");
                Err(ReadError::from(message).into())
            }
            _ => Ok(Selection {
                top,
                trimmed: Some(bytes),
                parts,
            }),
        }
    }

    /// Selects the manifest for `platform`, or the only manifest if `platform` is `None`.
    ///
    /// # Errors
    /// If no container image matches, if several match and none has exactly this platform, or if a
    /// manifest or config cannot be read.
    pub fn select_one(
        &self,
        blobs: &dyn BlobRead,
        platform: Option<&Platform>,
    ) -> Result<OneManifest, SelectionError> {
        let own = self.descriptor();
        let (_, top, _) = read_manifest(blobs, &own)?;
        let mut found = Vec::new();
        let mut queue = VecDeque::new();
        match top {
            Manifest::Index(children) => queue.extend(self.locked_children(&children)),
            top @ Manifest::Image { .. } => {
                found.extend(image_manifest(own, top, self.platform.clone()))
            }
        }
        let listed = self.listed_manifests();
        let mut seen = BTreeSet::new();
        while let Some(child) = queue.pop_front() {
            let is_attestation = child.attests.is_some()
                || child.platform.as_ref().is_some_and(Platform::is_unknown);
            if is_attestation
                || !listed.has(&child)
                || !seen.insert(child.descriptor.digest.clone())
            {
                continue;
            }
            match read_manifest(blobs, &child.descriptor)?.1 {
                Manifest::Index(children) => queue.extend(children),
                manifest @ Manifest::Image { .. } => {
                    found.extend(image_manifest(child.descriptor, manifest, child.platform));
                }
            }
        }
        let first_type = found.first().map(|one| one.config.media_type.to_string());
        found.retain(OneManifest::is_image);
        if found.is_empty() {
            return Err(SelectionError::NotAnImage(
                first_type.unwrap_or_else(|| "(none)".into()),
            ));
        }
        let Some(requested) = platform else {
            return only_manifest(blobs, found);
        };
        let platforms = found
            .iter()
            .map(|one| one.platform(blobs))
            .collect::<Result<Vec<_>, _>>()?;
        // a manifest without a platform matches every platform
        if platforms.iter().all(Option::is_some) {
            let has: Vec<&Platform> = platforms.iter().flatten().collect();
            check_platforms(&has, std::slice::from_ref(requested))?;
        }
        let matches =
            |own: &Option<Platform>| own.as_ref().is_none_or(|own| own.satisfies(requested));
        let mut matching: Vec<(OneManifest, Option<Platform>)> = found
            .into_iter()
            .zip(platforms)
            .filter(|(_, platform)| matches(platform))
            .collect();
        // `linux/arm64/v8` satisfies `linux/arm64` too, but an equal platform is the better match
        if let Some(at) = matching
            .iter()
            .position(|(_, platform)| platform.as_ref() == Some(requested))
        {
            return Ok(matching.swap_remove(at).0);
        }
        only_manifest(blobs, matching.into_iter().map(|(one, _)| one).collect())
    }

    /// The manifests among `roots` and those below them, then all blobs that they name, each once. A
    /// root is a manifest if the boolean is true, and a blob otherwise.
    fn manifests_and_blobs(
        &self,
        blobs: &dyn BlobRead,
        roots: impl IntoIterator<Item = (Descriptor, bool)>,
    ) -> Result<Vec<Descriptor>, ReadError> {
        let listed = self.listed_manifests();
        let mut manifests = Vec::new();
        let mut named = Vec::new();
        let mut seen = BTreeSet::new();
        let mut queue: VecDeque<(Descriptor, bool)> = roots.into_iter().collect();
        while let Some((next, is_parsed)) = queue.pop_front() {
            if !is_parsed {
                named.push(next);
            } else if seen.insert(next.digest.clone()) {
                match read_manifest(blobs, &next)?.1 {
                    Manifest::Index(children) => queue.extend(children.into_iter().map(|child| {
                        let is_manifest = listed.has(&child);
                        (child.descriptor, is_manifest)
                    })),
                    Manifest::Image { config, layers, .. } => {
                        named.extend(config);
                        named.extend(layers);
                    }
                }
                manifests.push(next);
            }
        }
        manifests.extend(
            named
                .into_iter()
                .filter(|blob| seen.insert(blob.digest.clone())),
        );
        Ok(manifests)
    }

    /// The `children` of the index that are also in the lock.
    fn locked_children(&self, children: &[ChildManifest]) -> Vec<ChildManifest> {
        let manifests = self.manifests.iter().map(|child| &child.digest);
        let locked: BTreeSet<&Digest> = manifests
            .chain(self.blobs.iter().map(|blob| &blob.digest))
            .collect();
        children
            .iter()
            .filter(|child| locked.contains(&child.descriptor.digest))
            .cloned()
            .collect()
    }
}

impl OneManifest {
    /// Whether it is a container image rather than another OCI artifact.
    fn is_image(&self) -> bool {
        media_type::is_image_config(&self.config.media_type)
    }

    /// The platform that the index names, otherwise the one that the config names, if it names
    /// one.
    fn platform(&self, blobs: &dyn BlobRead) -> Result<Option<Platform>, SelectionError> {
        if let Some(platform) = &self.platform {
            return Ok(Some(platform.clone()));
        }
        Ok(platform_of_config(&read_small(blobs, &self.config)?))
    }
}

fn image_manifest(
    manifest: Descriptor,
    parsed: Manifest,
    platform: Option<Platform>,
) -> Option<OneManifest> {
    match parsed {
        Manifest::Image { config, layers, .. } => Some(OneManifest {
            manifest,
            config: config?,
            layers,
            platform,
        }),
        Manifest::Index(_) => None,
    }
}

/// Returns the only manifest in `found`, which is not empty.
fn only_manifest(
    blobs: &dyn BlobRead,
    mut found: Vec<OneManifest>,
) -> Result<OneManifest, SelectionError> {
    match found.len() {
        1 => Ok(found.swap_remove(0)),
        _ => {
            let platforms = found.iter().map(|one| {
                let platform = one.platform(blobs)?;
                Ok(platform.map_or_else(|| "no platform".to_owned(), |own| own.to_string()))
            });
            let platforms = platforms.collect::<Result<BTreeSet<_>, SelectionError>>()?;
            Err(SelectionError::Several(platforms.into_iter().collect()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::testing::Memory;
    use crate::{LockedManifest, LockedTrimmedIndex};
    use landfall_model::media_type::{OCI_CONFIG, OCI_INDEX, OCI_MANIFEST};
    use serde_json::{Value, json};

    fn p(text: &str) -> Platform {
        text.parse().unwrap()
    }

    /// The platform as indexes and configs write it.
    fn object(platform: &str) -> Value {
        let Platform {
            os,
            architecture,
            variant,
        } = p(platform);
        json!({"os": os, "architecture": architecture, "variant": variant.unwrap_or_default()})
    }

    /// A manifest whose config has this platform.
    fn manifest(memory: &mut Memory, platform: &str) -> Descriptor {
        let config = memory.json(&object(platform), OCI_CONFIG);
        let layer = memory.put(
            platform.as_bytes(),
            "application/vnd.oci.image.layer.v1.tar",
        );
        memory.json(
            &json!({"schemaVersion": 2, "config": config, "layers": [layer, layer]}),
            OCI_MANIFEST,
        )
    }

    fn child(manifest: &Descriptor, platform: &str) -> Value {
        let mut child = json!(manifest);
        child["platform"] = object(platform);
        child
    }

    /// An image with these children. The lock omits the last `left_out` of them.
    fn image(memory: &mut Memory, children: &[Value], left_out: usize) -> LockedImage {
        let top = memory.json(
            &json!({"schemaVersion": 2, "manifests": children}),
            OCI_INDEX,
        );
        let locked = children[..children.len() - left_out].iter().map(|child| {
            let Descriptor {
                digest,
                size,
                media_type,
            } = serde_json::from_value(child.clone()).unwrap();
            LockedManifest {
                digest,
                size,
                media_type,
                platform: None,
            }
        });
        LockedImage {
            manifests: locked.collect(),
            ..LockedImage::new("h.example/app:1".parse().unwrap(), top)
        }
    }

    /// Returns an image, and its manifests for amd64 and arm64. Its index lists the manifest for
    /// amd64, the attestation of that manifest, an index with the manifest for arm64, and an
    /// artifact.
    fn nested(memory: &mut Memory) -> (LockedImage, [Descriptor; 2]) {
        let [amd64, arm64] =
            ["linux/amd64", "linux/arm64"].map(|platform| manifest(memory, platform));
        let mut attestation = child(&manifest(memory, "unknown/unknown"), "unknown/unknown");
        attestation["annotations"] = json!({"vnd.docker.reference.digest": amd64.digest});
        let below = memory.json(
            &json!({"schemaVersion": 2, "manifests": [arm64]}),
            OCI_INDEX,
        );
        let artifact =
            json!({"schemaVersion": 2, "config": memory.put(b"{}", "application/x"), "layers": []});
        let artifact = memory.json(&artifact, OCI_MANIFEST);
        let children = [
            child(&amd64, "linux/amd64"),
            attestation,
            json!(below),
            json!(artifact),
        ];
        (image(memory, &children, 0), [amd64, arm64])
    }

    #[test]
    fn a_manifest_is_found_by_its_platform_in_the_index_or_in_the_config() {
        let mut memory = Memory::default();
        let (image, [amd64, arm64]) = nested(&mut memory);
        for (platform, wanted) in [("linux/amd64", amd64), ("linux/arm64/v8", arm64)] {
            let one = image.select_one(&memory, Some(&p(platform))).unwrap();
            assert_eq!((one.manifest, one.layers.len()), (wanted, 2));
        }
        let message = |platform: Option<&str>| {
            image
                .select_one(&memory, platform.map(p).as_ref())
                .unwrap_err()
                .to_string()
        };
        assert_eq!(message(None), "it is for linux/amd64, linux/arm64");
        assert_eq!(
            message(Some("linux/s390x")),
            "it has no linux/s390x, only linux/amd64, linux/arm64"
        );
    }

    #[test]
    fn an_equal_platform_is_preferred_to_a_matching_platform() {
        let mut memory = Memory::default();
        let children = [
            "linux/arm/v6",
            "linux/arm/v7",
            "linux/arm64/v8",
            "linux/arm64",
        ];
        let children = children.map(|platform| child(&manifest(&mut memory, platform), platform));
        let image = image(&mut memory, &children, 0);
        let digest = |platform: &str| {
            image
                .select_one(&memory, Some(&p(platform)))
                .map(|one| one.manifest.digest)
        };
        for (platform, at) in [
            ("linux/arm/v7", 1),
            ("linux/arm64", 3),
            ("linux/arm64/v8", 2),
        ] {
            assert_eq!(
                children[at]["digest"],
                digest(platform).unwrap().to_string(),
                "{platform}"
            );
        }
        assert_eq!(
            digest("linux/arm").unwrap_err().to_string(),
            "it is for linux/arm/v6, linux/arm/v7"
        );
    }

    #[test]
    fn an_index_is_trimmed_to_the_selected_children_and_all_parts_below_them_are_included() {
        let mut memory = Memory::default();
        let (whole, _) = nested(&mut memory);
        let all = whole.select(&memory, &[]).unwrap();
        assert_eq!((all.top, all.trimmed), (whole.descriptor(), None));
        let digests: BTreeSet<_> = all.parts.iter().map(|part| &part.digest).collect();
        assert_eq!(
            (all.parts.len(), digests.len()),
            (13, 13),
            "each once: 6 manifests, 4 configs, 3 layers"
        );

        let children = ["linux/amd64", "linux/arm64", "linux/s390x"];
        let children = children.map(|platform| child(&manifest(&mut memory, platform), platform));
        let mut image = image(&mut memory, &children, 1);
        let chosen = image.select(&memory, &[p("linux/arm64")]).unwrap();
        let trimmed: Value = serde_json::from_slice(&chosen.trimmed.unwrap()).unwrap();
        assert_eq!(trimmed["manifests"], json!([children[1]]));
        assert_eq!(chosen.parts.len(), 3);
        // manifests that the lock omits cannot be selected
        let lacks = image
            .select(&memory, &[p("linux/s390x")])
            .unwrap_err()
            .to_string();
        assert_eq!(
            lacks,
            "it has no linux/s390x, only linux/amd64, linux/arm64"
        );
        // the trimmed index must be the one in the lock
        let two = image.select(&memory, &[]).unwrap().top;
        image.trimmed = Some(LockedTrimmedIndex {
            digest: two.digest,
            size: two.size,
        });
        image.select(&memory, &[]).unwrap();
        image.trimmed.as_mut().unwrap().digest = Digest::sha256(b"another");
        let error = image.select(&memory, &[]).unwrap_err().to_string();
        assert!(error.contains("the trimmed index is not"), "{error}");
        image.size = 1 << 40;
        let error = image.select(&memory, &[]).unwrap_err().to_string();
        assert!(error.ends_with("is larger than any manifest"), "{error}");
    }
}
