//! The manifests of one repository, read as far as needed, and the ones that must be kept.

use super::needed::Needed;
use landfall_content::registry::RegistrySession;
use landfall_content::run_concurrently;
use landfall_http::{ErrorKind, HttpError};
use landfall_model::{Descriptor, Digest, Manifest, media_type, read_referrer, tagged_subject};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The manifests of one repository. Documents are read once.
pub(super) struct ManifestGraph<'a> {
    pub(super) session: &'a RegistrySession,
    pub(super) repository: &'a str,
    pub(super) needed: &'a Needed,
    pub(super) digest_by_tag: &'a BTreeMap<&'a str, Digest>,
    /// Manifests that were read; `None` if the registry does not have the digest.
    documents: HashMap<Digest, Option<ManifestNode>>,
    /// The referrers that the registry lists for each manifest that was looked up.
    referrers: HashMap<Digest, Vec<Digest>>,
    /// The manifests that are kept.
    pub(super) kept: BTreeSet<Digest>,
}

/// A manifest, and the manifest that it refers to.
pub(super) struct ManifestNode {
    pub(super) manifest: Manifest,
    /// Read separately, because [`Manifest`] has the subject of an image but not of an index.
    subject: Option<Digest>,
}

/// The manifests that tags lead to and that are not kept.
#[derive(Default)]
pub(super) struct PruneCandidates {
    /// The digests, each once. A manifest comes after the index or subject through which it was
    /// found.
    pub(super) digests: Vec<Digest>,
    /// For each manifest, the indexes that contain it.
    indexes: BTreeMap<Digest, BTreeSet<Digest>>,
    /// For each referrer, its subjects according to its manifest or the referrers API.
    subjects: BTreeMap<Digest, BTreeSet<Digest>>,
    /// For each referrer, its subjects according to the form of its tags.
    tagged_subjects: BTreeMap<Digest, BTreeSet<Digest>>,
}

impl<'a> ManifestGraph<'a> {
    pub(super) fn new(
        session: &'a RegistrySession,
        repository: &'a str,
        needed: &'a Needed,
        digest_by_tag: &'a BTreeMap<&'a str, Digest>,
    ) -> ManifestGraph<'a> {
        ManifestGraph {
            session,
            repository,
            needed,
            digest_by_tag,
            documents: HashMap::new(),
            referrers: HashMap::new(),
            kept: BTreeSet::new(),
        }
    }

    async fn fetch(&self, digest: &Digest) -> Result<Option<ManifestNode>, HttpError> {
        let raw = match self
            .session
            .manifest(self.repository, &digest.to_string())
            .await
        {
            Ok(raw) => raw,
            Err(error) if error.kind == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let (manifest, media_type) = Manifest::parse(&raw.bytes, raw.content_type.as_deref())
            .map_err(|error| {
                HttpError::new(ErrorKind::Invalid, format!("{error}"))
                    .about(format!("{}@{digest}", self.repository))
            })?;
        let descriptor = Descriptor {
            digest: raw.digest,
            size: raw.bytes.len() as u64,
            media_type: media_type.into(),
        };
        let subject = read_referrer(&raw.bytes, &descriptor).map(|referrer| referrer.subject);
        Ok(Some(ManifestNode { manifest, subject }))
    }

    pub(super) async fn read(
        &mut self,
        digest: &Digest,
    ) -> Result<Option<&ManifestNode>, HttpError> {
        if !self.documents.contains_key(digest) {
            let read = self.fetch(digest).await?;
            self.documents.insert(digest.clone(), read);
        }
        Ok(self.documents.get(digest).and_then(Option::as_ref))
    }

    /// Keeps a manifest and, if it is an index, all its descendants.
    pub(super) async fn keep(&mut self, digest: &Digest) -> Result<(), HttpError> {
        let mut todo = vec![digest.clone()];
        while let Some(digest) = todo.pop() {
            if !self.kept.insert(digest.clone()) {
                continue;
            }
            if let Some(Manifest::Index(children)) =
                self.read(&digest).await?.map(|node| &node.manifest)
            {
                let (indexes, others): (Vec<_>, Vec<_>) = children
                    .iter()
                    .map(|child| child.descriptor.clone())
                    .partition(|child| may_have_children(&child.media_type));
                todo.extend(indexes.into_iter().map(|child| child.digest));
                // images have no children, so they need not be read
                self.kept
                    .extend(others.into_iter().map(|child| child.digest));
            }
        }
        Ok(())
    }

    /// Keeps the tags that refer to kept manifests. That may keep further referrers, such as the
    /// signature of an SBOM, so it is repeated until nothing is added.
    pub(super) async fn keep_referring_tags(&mut self) -> Result<(), HttpError> {
        let tags = self.digest_by_tag;
        loop {
            let before = self.kept.len();
            for (tag, digest) in tags {
                if !self.kept.contains(digest) && self.refers_to_kept(tag, digest).await? {
                    self.keep(digest).await?;
                }
            }
            if self.kept.len() == before {
                return Ok(());
            }
        }
    }

    /// Whether a tag refers to a manifest that is kept. The subject is given by the form of the tag
    /// (cosign's tags and lists of referrers), or by the tag's manifest. A needed manifest counts
    /// as kept even if no tag leads to it.
    async fn refers_to_kept(&mut self, tag: &str, digest: &Digest) -> Result<bool, HttpError> {
        let needed = &self.needed.digests;
        if let Some(subject) = tagged_subject(tag) {
            return Ok(match subject.digest.parse::<Digest>() {
                Ok(subject) => self.kept.contains(&subject) || needed.contains(&subject),
                // a tag has only the beginning of a longer digest
                Err(_) => self
                    .kept
                    .iter()
                    .chain(needed)
                    .any(|kept| kept.to_string().starts_with(&subject.digest)),
            });
        }
        let subject = self
            .read(digest)
            .await?
            .and_then(|node| node.subject.clone());
        Ok(
            subject
                .is_some_and(|subject| self.kept.contains(&subject) || needed.contains(&subject)),
        )
    }

    /// Finds the manifests that tags lead to and that are not kept: those of tags, their children
    /// and their referrers.
    pub(super) async fn candidates(&mut self) -> Result<PruneCandidates, HttpError> {
        let mut found = PruneCandidates::default();
        let mut seen = BTreeSet::new();
        let tagged = self.digest_by_tag.iter();
        for (tag, digest) in tagged.clone() {
            if let Some(subject) = tagged_subject(tag).and_then(|tag| tag.digest.parse().ok()) {
                add(&mut found.tagged_subjects, digest, subject);
            }
        }
        let mut todo: Vec<Digest> = tagged.map(|(_, digest)| digest.clone()).rev().collect();
        while let Some(digest) = todo.pop() {
            if self.kept.contains(&digest) || !seen.insert(digest.clone()) {
                continue;
            }
            let Some(node) = self.read(&digest).await? else {
                continue;
            };
            if let Some(subject) = &node.subject {
                add(&mut found.subjects, &digest, subject.clone());
            }
            let mut next = Vec::new();
            if let Manifest::Index(children) = &node.manifest {
                next.extend(children.iter().map(|child| child.descriptor.digest.clone()));
            }
            for child in &next {
                add(&mut found.indexes, child, digest.clone());
            }
            for referrer in self.referrers(&digest).await? {
                add(&mut found.subjects, referrer, digest.clone());
                next.push(referrer.clone());
            }
            todo.extend(next.into_iter().rev());
            found.digests.push(digest);
        }
        Ok(found)
    }

    async fn referrers(&mut self, subject: &Digest) -> Result<&[Digest], HttpError> {
        if !self.referrers.contains_key(subject) {
            // Without a referrers API (`None`), the list of referrers is an index with a tag, which
            // is surveyed like every tag.
            let listed = self
                .session
                .referrers(self.repository, subject, false)
                .await?;
            let listed = listed.into_iter().flatten().map(|one| one.digest).collect();
            self.referrers.insert(subject.clone(), listed);
        }
        Ok(self.referrers.get(subject).map_or(&[], Vec::as_slice))
    }

    /// Keeps the `candidates` that are needed. Returns whether there were any.
    ///
    /// No kept tag leads to such a manifest, so all indexes and subjects that lead to it are kept
    /// too: many registries delete a manifest as soon as no tag leads to it, and Harbor deletes the
    /// children of an index and the referrers of a subject together with it. For the same reason,
    /// the subject of a kept manifest is kept.
    pub(super) async fn keep_needed(
        &mut self,
        candidates: &PruneCandidates,
    ) -> Result<bool, HttpError> {
        let needed = candidates.digests.iter();
        let needed = needed.filter(|digest| self.needed.digests.contains(digest));
        let listed = candidates.subjects.iter();
        let listed = listed.filter(|(referrer, _)| self.kept.contains(referrer));
        let read = self.kept.iter();
        let read = read.filter_map(|kept| self.documents.get(kept)?.as_ref()?.subject.as_ref());
        let mut todo: Vec<Digest> = needed
            .chain(listed.flat_map(|(_, subjects)| subjects))
            .chain(read)
            .cloned()
            .collect();
        let present: BTreeSet<&Digest> = candidates.digests.iter().collect();
        let mut found = BTreeSet::new();
        while let Some(digest) = todo.pop() {
            if !present.contains(&digest) || !found.insert(digest.clone()) {
                continue;
            }
            let PruneCandidates {
                indexes,
                subjects,
                tagged_subjects,
                ..
            } = candidates;
            for leading in [indexes, subjects, tagged_subjects] {
                todo.extend(leading.get(&digest).into_iter().flatten().cloned());
            }
        }
        for digest in &found {
            self.keep(digest).await?;
        }
        Ok(!found.is_empty())
    }

    /// Keeps the repository's needed manifests that no tag leads to, and their descendants, which
    /// may have tags. Returns whether there were any such manifests. Manifests of a lock are not
    /// read, because the lock lists their descendants.
    pub(super) async fn keep_untagged(&mut self, jobs: usize) -> Result<bool, HttpError> {
        let needed = self.needed.digests.difference(&self.needed.locked);
        let unread: Vec<&Digest> = needed
            .filter(|digest| !self.kept.contains(digest) && !self.documents.contains_key(digest))
            .collect();
        let read = run_concurrently(unread.len(), jobs, |at| self.fetch(unread[at])).await;
        let mut has_any = false;
        for (digest, node) in unread.into_iter().zip(read) {
            let node = node?;
            let is_present = node.is_some();
            self.documents.insert(digest.clone(), node);
            if is_present {
                has_any = true;
                self.keep(digest).await?;
            }
        }
        Ok(has_any)
    }
}

/// Whether a child of this media type may be an index.
fn may_have_children(media_type: &str) -> bool {
    media_type::is_manifest(media_type) && !media_type::is_image_manifest(media_type)
}

fn add(map: &mut BTreeMap<Digest, BTreeSet<Digest>>, key: &Digest, value: Digest) {
    map.entry(key.clone()).or_default().insert(value);
}
