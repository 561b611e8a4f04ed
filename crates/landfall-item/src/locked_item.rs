//! A locked item of any kind, with what push, rewrite, audit, serve and reports need of it.

use crate::chart::{self, LockedChart};
use crate::file::{self, LockedFile, UrlFile, file_repository};
use crate::git::{self, LockedGitRepository};
use crate::image::{self, LockedImage, LockedReferrer, verified_signatures};
use crate::lock_yaml::write_item;
use crate::packages::{self, LockedPackageSet, PackageSummary};
use crate::provider::{self, LockedProvider, ProviderName};
use crate::text::digest_tag;
use landfall_content::{BlobRead, LockEntry};
use landfall_model::report::{EntryKind, count_of};
use landfall_model::sign::SignatureTime;
use landfall_model::{
    Destination, DestinationMap, Digest, ImageRef, Platform, host_component, local_path,
};
use landfall_signature::{RuleSubject, SignaturePolicy, VerifiedSignature};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// One locked item of any kind.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(untagged)]
pub enum LockedItem<'l> {
    /// A container image or another artifact of a registry.
    Image(&'l LockedImage),
    /// A plain file.
    File(&'l LockedFile),
    /// A Helm chart.
    Chart(&'l LockedChart),
    /// A set of OS packages.
    Packages(&'l LockedPackageSet),
    /// A git repository.
    Git(&'l LockedGitRepository),
    /// A provider of OpenTofu or Terraform.
    Provider(&'l LockedProvider),
}

/// The names of the item.
impl<'l> LockedItem<'l> {
    /// The kind, as reports name it.
    pub fn kind(self) -> EntryKind {
        match self {
            LockedItem::Image(_) => EntryKind::Image,
            LockedItem::File(_) => EntryKind::File,
            LockedItem::Chart(_) => EntryKind::Chart,
            LockedItem::Packages(_) => EntryKind::Package,
            LockedItem::Git(_) => EntryKind::Git,
            LockedItem::Provider(_) => EntryKind::Provider,
        }
    }

    /// The item's `name` in the lock.
    pub fn name(self) -> Cow<'l, str> {
        match self {
            LockedItem::Image(image) => image.name.to_string().into(),
            LockedItem::File(file) => file.name.as_str().into(),
            LockedItem::Chart(chart) => chart.name.as_str().into(),
            LockedItem::Packages(set) => set.name.as_str().into(),
            LockedItem::Git(repository) => repository.name.as_str().into(),
            LockedItem::Provider(provider) => provider.name.as_str().into(),
        }
    }

    /// The item's `digest` in the lock.
    pub fn digest(self) -> &'l Digest {
        match self {
            LockedItem::Image(image) => &image.digest,
            LockedItem::File(file) => &file.digest,
            LockedItem::Chart(chart) => &chart.digest,
            LockedItem::Packages(set) => &set.digest,
            LockedItem::Git(repository) => &repository.digest,
            LockedItem::Provider(provider) => &provider.digest,
        }
    }

    /// The digest that upstream has while the item is unchanged: its `digest` or, since no git
    /// server knows that of a repository, the digest of the refs.
    pub fn upstream_digest(self) -> Cow<'l, Digest> {
        match self {
            LockedItem::Git(repository) => Cow::Owned(git::refs_digest(&repository.refs)),
            _ => Cow::Borrowed(self.digest()),
        }
    }

    /// Whether the content comes from a path next to the manifest, and not from upstream.
    pub fn is_local(self) -> bool {
        match self {
            LockedItem::Image(image) => image.archive.is_some(),
            LockedItem::File(file) => local_path(&file.name).is_some(),
            LockedItem::Chart(chart) => chart.name.folder().is_some(),
            LockedItem::Git(repository) => repository.path.is_some(),
            LockedItem::Packages(_) | LockedItem::Provider(_) => false,
        }
    }

    /// Where the item comes from, without a version: the repository of an image or chart, otherwise
    /// the name.
    pub fn source(self) -> String {
        match (self, self.reference()) {
            (_, Some(reference)) => reference.name(),
            (LockedItem::Provider(provider), _) => {
                format!("{}{}", ProviderName::PREFIX, provider.name.address)
            }
            _ => self.name().into_owned(),
        }
    }
}

/// The repositories and tags to which `push` and `mirror` deliver the item.
impl<'l> LockedItem<'l> {
    /// The item's repositories at a registry. Rewritten references point to the first one.
    pub fn destinations(self, mapping: &DestinationMap) -> Vec<Destination> {
        match self.reference() {
            Some(reference) => mapping.destinations(reference),
            None => vec![mapping.own_destination(&self.own_repository())],
        }
    }

    /// The tag that the item gets in each of its destinations.
    pub fn tag(self) -> String {
        match self {
            LockedItem::Image(image) => image.destination_tag(),
            LockedItem::Chart(chart) => chart.name.reference.tag.clone().unwrap_or_default(),
            LockedItem::File(_) | LockedItem::Packages(_) | LockedItem::Git(_) => {
                digest_tag(self.digest())
            }
            LockedItem::Provider(provider) => provider::tag(&provider.name),
        }
    }

    /// The tags that signatures and other referrers get in each destination, each with the digest
    /// of its manifest.
    pub fn referrer_tags(self) -> Vec<(&'l str, &'l Digest)> {
        let referrers: Option<&[LockedReferrer]> = match self {
            LockedItem::Image(image) => image.referrers.as_deref(),
            LockedItem::Chart(chart) => chart.referrers.as_deref(),
            _ => None,
        };
        let referrers = referrers.into_iter().flatten();
        referrers
            .filter_map(|referrer| Some((referrer.tag.as_deref()?, &referrer.digest)))
            .collect()
    }
}

/// The references and digests by which `rewrite` and `audit` find the item.
impl<'l> LockedItem<'l> {
    /// The image reference that resolves to this item. `None` if the item is found by URL alone.
    pub fn reference(self) -> Option<&'l ImageRef> {
        match self {
            LockedItem::Image(image) => Some(&image.name),
            LockedItem::Chart(chart) => Some(&chart.name.reference),
            _ => None,
        }
    }

    /// Every digest that an image reference to this item may contain: of an image, the digests of
    /// the index, its children and the trimmed index.
    pub fn digests(self) -> Vec<&'l Digest> {
        let LockedItem::Image(image) = self else {
            return vec![self.digest()];
        };
        let children = image.manifests.iter().map(|child| &child.digest);
        children
            .chain([&image.digest])
            .chain(image.trimmed.iter().map(|trimmed| &trimmed.digest))
            .collect()
    }

    /// Whether `digest` is a blob of this item.
    pub fn has_blob(self, digest: &Digest) -> bool {
        let is_own = self.digest() == digest;
        match self {
            LockedItem::Image(image) => image.blobs.iter().any(|blob| blob.digest == *digest),
            LockedItem::File(_) => is_own,
            LockedItem::Chart(chart) => {
                is_own || chart.blobs.iter().any(|blob| blob.digest == *digest)
            }
            LockedItem::Packages(set) => {
                let mut digests = set.sources.iter().flat_map(|source| {
                    let indexes = source.indexes.iter().map(|index| &index.digest);
                    indexes.chain(source.packages.iter().map(|package| &package.digest))
                });
                is_own || digests.any(|held| held == digest)
            }
            LockedItem::Git(repository) => {
                let mut large_files = repository.large_files.iter().flatten();
                is_own
                    || repository.packs.iter().any(|pack| pack.digest == *digest)
                    || large_files.any(|file| file.digest == *digest)
            }
            LockedItem::Provider(provider) => {
                let mut packages = provider.packages.iter();
                is_own || packages.any(|package| package.digest == *digest)
            }
        }
    }

    /// The platforms of an image; `None` for kinds that have no platforms.
    pub fn platforms(self) -> Option<BTreeSet<String>> {
        let LockedItem::Image(image) = self else {
            return None;
        };
        let children = image
            .manifests
            .iter()
            .filter_map(|manifest| manifest.platform.clone());
        let own = image.platform.as_ref().map(Platform::to_string);
        // attestations of BuildKit are children with the platform `unknown/unknown`
        let platforms = children
            .chain(own)
            .filter(|platform| !platform.starts_with("unknown"));
        Some(platforms.collect())
    }

    /// What reports say of the item: that it lacks platforms, which may be missing, that it lists
    /// other images, or that upstream lists it with a wrong digest.
    pub fn note(self) -> Option<String> {
        let lacks: Vec<String> = match self {
            LockedItem::Image(image) if !image.lists.is_empty() => {
                return Some(format!(
                    "it lists {}",
                    count_of(image.lists.len(), "other image")
                ));
            }
            LockedItem::Image(image) => image.lacks.iter().map(Platform::to_string).collect(),
            LockedItem::Provider(provider) => {
                let has: BTreeSet<_> = provider.packages.iter().map(|one| &one.platform).collect();
                let lacking = provider.platforms.iter().filter(|one| !has.contains(one));
                lacking.map(ToString::to_string).collect()
            }
            LockedItem::Chart(chart) => {
                let listed = chart.listed.as_ref()?;
                return Some(format!(
                    "its repository lists {listed} instead of its digest"
                ));
            }
            LockedItem::File(_) | LockedItem::Packages(_) | LockedItem::Git(_) => Vec::new(),
        };
        (!lacks.is_empty()).then(|| format!("it has no {}", lacks.join(" and no ")))
    }
}

/// The repository and files that `serve` and `export` offer.
impl<'l> LockedItem<'l> {
    /// The repository under which landfall's own registry serves the item, in addition to the
    /// item's destinations. That of an image or chart begins with the source host; a port is
    /// written as `host_5001`.
    pub fn own_repository(self) -> String {
        match self {
            LockedItem::Image(image) => hosted_repository(&image.name),
            LockedItem::Chart(chart) => hosted_repository(&chart.name.reference),
            LockedItem::File(file) => file_repository(&file.name),
            LockedItem::Packages(set) => packages::repository(&set.name),
            LockedItem::Git(repository) => git::own_repository(repository),
            LockedItem::Provider(provider) => provider::own_repository(&provider.name),
        }
    }

    /// The files that clients download by URL and `export` writes, the item's own file first.
    pub fn files(self) -> Vec<UrlFile<'l>> {
        match self {
            LockedItem::Image(_) | LockedItem::Git(_) => Vec::new(),
            LockedItem::File(file) => file.files(),
            LockedItem::Chart(chart) => chart.files(),
            LockedItem::Packages(set) => set.files(),
            LockedItem::Provider(provider) => provider.files(),
        }
    }

    /// Whether `serve --from` offers the item from a registry. It does not offer images, since
    /// nodes pull them from that registry directly.
    pub fn is_served_from_registry(self) -> bool {
        !matches!(self, LockedItem::Image(_))
    }
}

fn hosted_repository(name: &ImageRef) -> String {
    format!("{}/{}", host_component(&name.registry), name.repository)
}

/// The text, content and signatures of the item.
impl<'l> LockedItem<'l> {
    /// Writes the item as YAML, as the lock contains it. Equal items give equal text.
    ///
    /// # Errors
    /// Only errors of `out`.
    pub fn write(self, out: &mut dyn fmt::Write) -> fmt::Result {
        write_item(&self, out)
    }

    /// Why landfall would never have written this item, or `None` if it is plausible. A lock may
    /// come from the other side of an air gap, so sizes, paths and tags are untrusted.
    pub fn implausibility(self) -> Option<String> {
        match self {
            LockedItem::Image(image) => image.implausibility(),
            LockedItem::File(file) => file.implausibility(),
            LockedItem::Chart(chart) => chart.implausibility(),
            LockedItem::Packages(set) => set.implausibility(),
            LockedItem::Git(repository) => repository.implausibility(),
            LockedItem::Provider(provider) => provider.implausibility(),
        }
    }

    /// The manifests and blobs that make up the item.
    pub fn entry(self) -> LockEntry {
        match self {
            LockedItem::Image(image) => image::entry(image),
            LockedItem::File(file) => file::entry(file),
            LockedItem::Chart(chart) => chart::entry(chart),
            LockedItem::Packages(set) => packages::entry(set),
            LockedItem::Git(repository) => git::entry(repository),
            LockedItem::Provider(provider) => provider::entry(provider),
        }
    }

    /// Compares the content in `blobs` with the lock. Returns one sentence for each contradiction.
    /// Signatures are checked as of `time`.
    pub fn contradictions(self, blobs: &dyn BlobRead, time: SignatureTime) -> Vec<String> {
        match self {
            LockedItem::Image(image) => image::contradictions(image, blobs),
            LockedItem::Chart(chart) => chart.contradictions(blobs),
            LockedItem::Packages(set) => packages::package_faults(set, blobs, time),
            LockedItem::Provider(provider) => provider::hash_faults(provider, blobs),
            LockedItem::File(_) | LockedItem::Git(_) => Vec::new(),
        }
    }

    /// The names by which rules of `verify:` match the item; `None` for kinds without such rules.
    pub fn signature_subject(self) -> Option<RuleSubject> {
        match self {
            LockedItem::Image(image) => Some((&image.name).into()),
            LockedItem::File(file) => Some(file.rule_subject()),
            LockedItem::Chart(chart) => Some(chart.rule_subject()),
            LockedItem::Git(repository) => Some(RuleSubject::Git(repository.name.clone())),
            LockedItem::Packages(_) | LockedItem::Provider(_) => None,
        }
    }

    /// The verified signatures that the lock records.
    pub fn recorded_signatures(self) -> &'l [VerifiedSignature] {
        match self {
            LockedItem::Image(image) => &image.verified,
            LockedItem::File(file) => &file.verified,
            LockedItem::Chart(chart) => &chart.verified,
            LockedItem::Packages(_) | LockedItem::Git(_) | LockedItem::Provider(_) => &[],
        }
    }

    /// Verifies the signatures of the item, which are read from `blobs`. Returns those that meet
    /// the policy; empty if the item needs none. OpenPGP signatures must be valid at `time`.
    ///
    /// # Errors
    /// If the item does not meet the policy, or a signature cannot be read.
    pub fn verify_signatures(
        self,
        policy: &SignaturePolicy,
        blobs: &Arc<dyn BlobRead>,
        time: SignatureTime,
    ) -> Result<Vec<VerifiedSignature>, String> {
        match self {
            LockedItem::Image(image) => {
                verified_signatures(image, policy, &**blobs).map_err(|error| error.to_string())
            }
            LockedItem::File(file) => file
                .verified_signatures(policy, &**blobs, time)
                .map_err(|error| error.to_string()),
            LockedItem::Chart(chart) => chart
                .verified_signatures(policy, &**blobs, time)
                .map_err(|error| error.to_string()),
            LockedItem::Git(repository) => {
                let keys = repository.signing_keys(policy, blobs, time);
                let keys = keys.map_err(|error| error.to_string())?;
                Ok(keys.into_iter().map(VerifiedSignature::by_key).collect())
            }
            LockedItem::Packages(_) | LockedItem::Provider(_) => Ok(Vec::new()),
        }
    }

    /// URLs that `lock` requests, but `pull` does not, such as the index of a repository or a
    /// transparency log.
    pub fn lookup_urls(self) -> Vec<String> {
        match self {
            LockedItem::Chart(chart) => chart.index_urls(),
            LockedItem::Provider(provider) => {
                vec![provider::discovery_url(
                    &provider.name.address.host,
                    "https",
                )]
            }
            LockedItem::File(file) => file.log_url().into_iter().collect(),
            _ => Vec::new(),
        }
    }

    /// The packages of a set; empty for other kinds.
    pub fn packages(self) -> Vec<PackageSummary<'l>> {
        match self {
            LockedItem::Packages(set) => set.packages(),
            _ => Vec::new(),
        }
    }
}
