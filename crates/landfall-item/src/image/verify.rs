//! Compares a locked image with its manifests: the lock must name exactly the content that they
//! name.
//!
//! A lock may come from the other side of an air gap. If it left out a layer, a bundle would be
//! incomplete without anyone noticing. If it added one, the bundle would contain a blob that no
//! manifest names.

use super::kind;
use super::locked::{ListedManifests, LockedImage};
use super::manifests::{blobs_of, read_manifest};
use landfall_content::{BlobRead, ListedAttestations};
use landfall_model::{
    ChildManifest, Descriptor, Digest, Manifest, media_type, read_referrer, trim_index,
};
use std::collections::{BTreeMap, BTreeSet};

/// Compares `image` with its manifests, which are read from `blobs`. Returns one sentence for each
/// contradiction. Children that a trimmed index leaves out are not expected in the lock.
pub(crate) fn contradictions(image: &LockedImage, blobs: &dyn BlobRead) -> Vec<String> {
    let manifests = image.listed_manifests();
    let mut verifier = ImageVerifier {
        image,
        manifests: &manifests,
        blobs,
        contradictions: Vec::new(),
    };
    verifier.check_image();
    verifier.check_absent();
    verifier.check_referrers();
    verifier.contradictions
}

struct ImageVerifier<'a> {
    image: &'a LockedImage,
    manifests: &'a ListedManifests<'a>,
    blobs: &'a dyn BlobRead,
    contradictions: Vec<String>,
}

impl ImageVerifier<'_> {
    /// Reads and parses a manifest. Records a contradiction if that fails.
    fn read(&mut self, descriptor: &Descriptor) -> Option<(Vec<u8>, Manifest)> {
        let Descriptor {
            digest,
            media_type: locked_type,
            ..
        } = descriptor;
        match read_manifest(self.blobs, descriptor) {
            // earlier releases took the type of a manifest that names none from the Content-Type
            Ok((bytes, _, kind))
                if *locked_type != kind.as_str()
                    && (Manifest::declares_type(&bytes)
                        || !media_type::is_manifest(locked_type)) =>
            {
                self.contradictions.push(format!(
                    "{digest} has the type {kind}, but the lock says {locked_type}"
                ));
                None
            }
            Ok((bytes, manifest, _)) => Some((bytes, manifest)),
            Err(why) => {
                self.contradictions.push(why.to_string());
                None
            }
        }
    }

    /// Checks the manifests of the image, their configs and layers, and the trimmed index.
    fn check_image(&mut self) {
        let (image, manifests) = (self.image, self.manifests);
        let mut locked: BTreeMap<&Digest, Descriptor> = BTreeMap::new();
        for child in &image.manifests {
            locked.insert(
                &child.digest,
                Descriptor::new(child.digest.clone(), child.size, child.media_type.clone()),
            );
        }
        let Some((bytes, top)) = self.read(&image.descriptor()) else {
            return;
        };
        let mut kept: Vec<ChildManifest> = match &top {
            Manifest::Index(children) => children.clone(),
            Manifest::Image { .. } => Vec::new(),
        };
        if let Some(trimmed) = &image.trimmed {
            let keep: BTreeSet<Digest> = locked
                .keys()
                .copied()
                .chain(image.blobs.iter().map(|blob| &blob.digest))
                .cloned()
                .collect();
            kept.retain(|child| keep.contains(&child.descriptor.digest));
            let is_expected = trim_index(&bytes, &keep).is_ok_and(|index| {
                index.len() as u64 == trimmed.size && trimmed.digest.matches(&index)
            });
            if !is_expected {
                self.contradictions.push(format!(
                    "{} is not the trimmed form of its index",
                    trimmed.digest
                ));
            }
        }
        let loose: Vec<&ChildManifest> =
            kept.iter().filter(|child| !manifests.has(child)).collect();
        let mut reached: BTreeMap<Digest, Manifest> = BTreeMap::new();
        let mut absent = BTreeSet::new();
        let mut next: Vec<Descriptor> = kept
            .iter()
            .filter(|child| manifests.has(child))
            .map(|child| child.descriptor.clone())
            .collect();
        while let Some(child) = next.pop() {
            if reached.contains_key(&child.digest) {
                continue;
            }
            let Some(known) = locked
                .get(&child.digest)
                .filter(|known| known.size == child.size)
            else {
                self.contradictions.push(format!(
                    "the lock lacks its manifest {} with {} bytes",
                    child.digest, child.size
                ));
                continue;
            };
            if image.absent.contains(&known.digest) {
                absent.insert(&known.digest);
                continue;
            }
            let Some((_, manifest)) = self.read(known) else {
                continue;
            };
            if let Manifest::Index(children) = &manifest {
                let below = children.iter().filter(|child| manifests.has(child));
                next.extend(below.map(|child| child.descriptor.clone()));
            }
            reached.insert(child.digest, manifest);
        }
        for digest in locked.keys() {
            if !reached.contains_key(*digest) && !absent.contains(*digest) {
                self.contradictions.push(format!(
                    "the lock has the manifest {digest}, which no index of the image lists"
                ));
            }
        }
        let only = matches!(top, Manifest::Image { .. }).then_some(&top);
        let named = blobs_of(
            reached.values().chain(only),
            |child| manifests.has(child),
            &loose,
        );
        // the content of an absent attestation is unknown
        let is_known = |blob: &&Descriptor| !image.absent.contains(&blob.digest);
        let [named, locked] = [&named, &image.blobs]
            .map(|blobs| -> Vec<Descriptor> { blobs.iter().filter(is_known).cloned().collect() });
        self.compare_blobs(&named, &locked);
    }

    /// Checks that only attestations need the content that a partial bundle lacks.
    fn check_absent(&mut self) {
        let image = self.image;
        if image.absent.is_empty() {
            return;
        }
        let read = |descriptor: &Descriptor| self.blobs.read(descriptor).ok();
        let whole = LockedImage {
            absent: BTreeSet::new(),
            ..image.clone()
        };
        let attestations = ListedAttestations::of(&kind::entry(&whole), read);
        let needed = image
            .absent
            .iter()
            .filter(|digest| attestations.is_needed(digest));
        let needed = needed
            .map(|digest| format!("the bundle lacks {digest}, which not only attestations need"));
        self.contradictions.extend(needed.collect::<Vec<_>>());
    }

    /// Checks signatures and other referrers, with their blobs.
    fn check_referrers(&mut self) {
        let (image, manifests) = (self.image, self.manifests);
        let listed = || image.referrers.iter().flatten();
        let known: BTreeSet<&Digest> = listed()
            .map(|one| &one.digest)
            .chain(image.manifests.iter().map(|child| &child.digest))
            .chain([&image.digest])
            .collect();
        let mut found: BTreeMap<Digest, Manifest> = BTreeMap::new();
        for referrer in listed() {
            let Some((bytes, manifest)) = self.read(&referrer.descriptor()) else {
                continue;
            };
            let subject =
                read_referrer(&bytes, &referrer.descriptor()).map(|referring| referring.subject);
            if subject != referrer.subject {
                self.contradictions.push(format!(
                    "{} refers to another manifest than the lock says",
                    referrer.digest
                ));
            }
            if let Manifest::Index(children) = &manifest {
                let below = children
                    .iter()
                    .filter(|child| manifests.has(child))
                    .map(|child| &child.descriptor.digest);
                let lacking = below.filter(|digest| !known.contains(digest));
                self.contradictions.extend(
                    lacking.map(|digest| {
                        format!("the lock lacks the manifest {digest} of a referrer")
                    }),
                );
            }
            found.insert(referrer.digest.clone(), manifest);
        }
        let own: BTreeSet<&Digest> = image.blobs.iter().map(|blob| &blob.digest).collect();
        let mut blobs = blobs_of(found.values(), |child| manifests.has(child), &[]);
        blobs.retain(|blob| !own.contains(&blob.digest));
        self.compare_blobs(&blobs, &image.referrer_blobs);
    }

    /// Compares the blobs that the manifests name with those in the lock.
    fn compare_blobs(&mut self, named: &[Descriptor], locked: &[Descriptor]) {
        let named = by_digest(named);
        let locked = by_digest(locked);
        for (digest, blob) in &named {
            match locked.get(digest) {
                None => self
                    .contradictions
                    .push(format!("the lock lacks its blob {digest}")),
                Some(other) if other != blob => self.contradictions.push(format!(
                    "{digest} has {} bytes of type {}, but the lock says {} of type {}",
                    blob.size, blob.media_type, other.size, other.media_type
                )),
                Some(_) => {}
            }
        }
        let added = locked.keys().filter(|digest| !named.contains_key(*digest));
        self.contradictions.extend(
            added.map(|digest| format!("the lock has the blob {digest}, which no manifest names")),
        );
    }
}

fn by_digest(blobs: &[Descriptor]) -> BTreeMap<&Digest, &Descriptor> {
    blobs.iter().map(|blob| (&blob.digest, blob)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::testing::Memory;
    use crate::{LockedManifest, LockedReferrer, LockedTrimmedIndex};
    use landfall_model::document::growth::assert_linear;
    use landfall_model::media_type::{OCI_CONFIG, OCI_INDEX, OCI_MANIFEST};
    use serde_json::json;

    fn locked(manifest: &Descriptor) -> LockedManifest {
        let Descriptor {
            digest,
            size,
            media_type,
        } = manifest.clone();
        LockedManifest {
            digest,
            size,
            media_type,
            platform: None,
        }
    }

    /// A signed image with two platforms, one of them in an index of its own. The trimmed index
    /// leaves out a third platform.
    fn sample() -> (Memory, LockedImage) {
        let mut memory = Memory::default();
        let [(first, mut blobs), (second, more), (third, _)] =
            ["a", "b", "c"].map(|name| memory.manifest(name, &json!({})));
        blobs.extend(more);
        let nested = memory.json(
            &json!({"schemaVersion": 2, "manifests": [second]}),
            OCI_INDEX,
        );
        let loose = memory.put(b"loose", "application/other");
        blobs.push(loose.clone());
        blobs.sort();
        let index = json!({"schemaVersion": 2, "manifests": [first, third, nested, loose]});
        let trimmed = json!({"schemaVersion": 2, "manifests": [first, nested, loose]}).to_string();
        let top = memory.json(&index, OCI_INDEX);
        let (signature, signed) = memory.manifest("signature", &json!({"subject": top}));
        let subject = Some(top.digest.clone());
        let image = LockedImage {
            manifests: [&first, &second, &nested].map(locked).into(),
            blobs,
            trimmed: Some(LockedTrimmedIndex {
                digest: Digest::sha256(trimmed.as_bytes()),
                size: trimmed.len() as u64,
            }),
            referrers: Some(vec![LockedReferrer {
                digest: signature.digest,
                size: signature.size,
                media_type: signature.media_type,
                tag: None,
                subject,
            }]),
            referrer_blobs: signed,
            ..LockedImage::new("h.example/app:1".parse().unwrap(), top)
        };
        (memory, image)
    }

    #[test]
    fn a_correct_lock_has_no_contradictions() {
        let (mut memory, image) = sample();
        assert_eq!(contradictions(&image, &memory), Vec::<String>::new());
        let (top, blobs) = memory.manifest("alone", &json!({"mediaType": OCI_MANIFEST}));
        let Descriptor {
            digest,
            size,
            media_type,
        } = top;
        let bare = (vec![], None, None, vec![]);
        let (manifests, trimmed, referrers, referrer_blobs) = bare;
        let alone = LockedImage {
            digest,
            media_type,
            size,
            manifests,
            blobs,
            trimmed,
            referrers,
            referrer_blobs,
            ..image
        };
        assert_eq!(contradictions(&alone, &memory), Vec::<String>::new());
    }

    #[test]
    fn changes_of_a_locked_image_are_found() {
        type Change = fn(&mut LockedImage);
        let changes: [(&str, Change); 15] = [
            ("lacks its blob", |image| drop(image.blobs.remove(0))),
            ("which no manifest names", |image| {
                image.blobs.extend(image.referrer_blobs.clone())
            }),
            ("the lock says 99", |image| image.blobs[0].size = 99),
            ("the lock says", |image| {
                image.blobs[0].media_type = "application/x".into()
            }),
            ("lacks its manifest", |image| {
                drop(image.manifests.remove(1))
            }),
            ("lacks its manifest", |image| image.manifests[0].size += 1),
            ("has the type", |image| {
                image.manifests[2].media_type = OCI_CONFIG.into()
            }),
            ("which no index of the image lists", |image| {
                let referrer = image.referrers.as_ref().unwrap()[0].descriptor();
                image.manifests.push(locked(&referrer));
            }),
            ("not the trimmed form", |image| {
                drop(image.manifests.remove(0))
            }),
            ("lacks its manifest", |image| image.trimmed = None),
            ("not the trimmed form", |image| {
                image.trimmed.as_mut().unwrap().size += 1
            }),
            ("is missing", |image| {
                image.digest = Digest::sha256(b"elsewhere")
            }),
            ("larger than any manifest", |image| image.size = 1 << 40),
            ("another manifest than the lock says", |image| {
                image.referrers.as_mut().unwrap()[0].subject =
                    Some(image.manifests[0].digest.clone());
            }),
            ("lacks its blob", |image| image.referrer_blobs.clear()),
        ];
        for (n, (why, change)) in changes.into_iter().enumerate() {
            let (memory, mut image) = sample();
            change(&mut image);
            let found = contradictions(&image, &memory);
            assert!(
                found.iter().any(|one| one.contains(why)),
                "{n} {why}: {found:?}"
            );
        }
    }

    #[test]
    fn only_attestations_may_be_absent() {
        let (memory, image) = sample();
        let manifests = image.manifests.iter().map(|child| &child.digest);
        let listed: Vec<Digest> = manifests
            .chain(image.blobs.iter().map(|blob| &blob.digest))
            .cloned()
            .collect();
        for digest in listed {
            let lacking = LockedImage {
                absent: BTreeSet::from([digest.clone()]),
                ..image.clone()
            };
            let found = contradictions(&lacking, &memory).concat();
            assert!(
                found.contains("not only attestations need"),
                "{digest}: {found}"
            );
        }
    }

    #[test]
    fn many_children_of_an_unknown_type_take_linear_time() {
        assert_linear(2_000, |count| {
            let mut memory = Memory::default();
            let unknown = |number: usize| {
                let digest = Digest::sha256(number.to_string().as_bytes()).to_string();
                json!({"mediaType": "application/vnd.x+json", "size": 1, "digest": digest})
            };
            let children: Vec<_> = (0..count).map(unknown).collect();
            let index = json!({"schemaVersion": 2, "manifests": children});
            let top = memory.json(&index, OCI_INDEX);
            let (child, _) = memory.manifest("child", &json!({}));
            let image = LockedImage {
                manifests: vec![locked(&child); count],
                ..LockedImage::new("h.example/app:1".parse().unwrap(), top)
            };
            // the lock lacks the children, which are blobs then, and has a manifest too many
            assert_eq!(contradictions(&image, &memory).len(), count + 1);
        });
    }
}
