//! Resolves an image: its index, the manifests of the requested platforms, and every blob below. An
//! image of an archive next to the manifest is resolved without the network.

use super::locked::{LockedImage, LockedManifest, LockedTrimmedIndex};
use super::manifests::{
    ImageManifest, ManifestBudget, add_children_first, blobs_of, fetch_below, is_manifest,
    refuse_unreadable,
};
use super::platforms::{ChosenPlatforms, choose_platforms, known_platforms, select_children};
use super::referrer_search::listed_tags;
use super::referrers;
use super::request::ImageRequest;
use crate::LocalPlace;
use crate::resolver::{ATTESTATION, LostReferrer, ResolveError, Resolver};
use landfall_content::archives::ImageInArchive;
use landfall_model::{
    ChildManifest, Descriptor, Digest, ImageRef, Manifest, Platform, media_type,
    platform_of_config, trim_index, unreadable_children,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Resolves `request` at `reference`, which is a tag or a digest.
pub(super) async fn resolve(
    resolver: &Resolver,
    request: &ImageRequest,
    reference: &str,
) -> Result<LockedImage, ResolveError> {
    let name = &request.name;
    let raw = resolver.manifest(name, reference, None).await?;
    if let Some(pin) = request.pin.as_ref().filter(|pin| **pin != raw.digest) {
        return Err(format!(
            "upstream has {}, but the manifest requires {pin}",
            raw.digest
        )
        .into());
    }
    let (manifest, kind) = Manifest::parse(&raw.bytes, raw.content_type.as_deref())?;
    let top = Descriptor::new(raw.digest.clone(), raw.bytes.len() as u64, kind.clone());
    let mut image = LockedImage {
        pin: request.pin.clone(),
        ..LockedImage::new(name.clone(), top)
    };
    let mut lost = Vec::new();
    match &manifest {
        Manifest::Image { config, .. } => {
            let platform = config_platform(resolver, request, config.as_ref()).await?;
            let has: Vec<&Platform> = platform.iter().collect();
            let chosen = choose_platforms(&has, &request.platforms)?;
            (image.platforms, image.lacks) = (chosen.platforms, chosen.lacks);
            image.platform = platform;
            image.blobs = blobs_of([&manifest], is_manifest, &[]);
        }
        Manifest::Index(children) => {
            let (mut kept, count, chosen) = requested_children(&raw.bytes, children, request)?;
            let known = BTreeSet::new();
            let budget = ManifestBudget::new(resolver.limits());
            // The look-up of referrers needs the tags. They are listed while the manifests are
            // fetched, to save a round trip; if that fails, the look-up reports it.
            let (below, ()) =
                tokio::join!(fetch_below(resolver, name, &kept, &known, &budget), async {
                    if request.referrers {
                        drop(listed_tags(resolver, name, kept.len() + 1, false).await);
                    }
                });
            let below = below?;
            // Clients do not need an attestation to run the image. Without it, the index has a
            // missing child, as if the child were for another platform.
            let absent = kept.extract_if(.., |child| {
                is_manifest(child) && !below.contains_key(&child.descriptor.digest)
            });
            lost.extend(absent.map(lost_attestation));
            for LostReferrer { reference, cause } in &lost {
                resolver.note_once(&format!("{name}: the {reference} is left out: {cause}"));
            }
            let loose: Vec<&ChildManifest> = kept
                .iter()
                .copied()
                .filter(|child| !below.contains_key(&child.descriptor.digest))
                .collect();
            let manifests = below.values().map(|fetched| &fetched.manifest);
            let is_fetched = |child: &ChildManifest| below.contains_key(&child.descriptor.digest);
            image.blobs = blobs_of(manifests, is_fetched, &loose);
            let platforms = platforms_of(&kept, &chosen.platforms);
            image.manifests = ordered_manifests(&kept, &below, &platforms);
            (image.platforms, image.lacks) = (chosen.platforms, chosen.lacks);
            // Many registries refuse an index with missing children. `push` then needs the trimmed
            // index, whose digest the lock must name.
            if kept.len() < count {
                let keep: BTreeSet<Digest> = kept
                    .iter()
                    .map(|child| child.descriptor.digest.clone())
                    .collect();
                let bytes = trim_index(&raw.bytes, &keep)?;
                let descriptor = Descriptor::of(&bytes, kind);
                image.trimmed = Some(LockedTrimmedIndex {
                    digest: descriptor.digest.clone(),
                    size: descriptor.size,
                });
                resolver.keep(descriptor, bytes.into()).await;
            }
        }
    }
    let image = referrers::look_up_new(resolver, &image, request.referrers).await?;
    resolver.lost_referrers.add(&name.to_string(), lost);
    Ok(image)
}

/// The loss of an attestation that an index lists and upstream does not have.
fn lost_attestation(child: &ChildManifest) -> LostReferrer {
    LostReferrer {
        reference: format!("{ATTESTATION} {}", child.descriptor.digest),
        cause: "upstream does not have it, although the index of the image lists it".into(),
    }
}

/// Checks that the manifest `digest` is that of an image with the requested platforms.
pub(super) async fn check_content(
    resolver: &Resolver,
    request: &ImageRequest,
    digest: &Digest,
) -> Result<(), ResolveError> {
    let reference = digest.to_string();
    let raw = resolver.manifest(&request.name, &reference, None).await?;
    let (manifest, _) = Manifest::parse(&raw.bytes, raw.content_type.as_deref())?;
    match &manifest {
        Manifest::Image { config, .. } => {
            let platform = config_platform(resolver, request, config.as_ref()).await?;
            let has: Vec<&Platform> = platform.iter().collect();
            choose_platforms(&has, &request.platforms).map(drop)
        }
        Manifest::Index(children) => requested_children(&raw.bytes, children, request).map(drop),
    }
}

/// The children of an index that `request` locks, the number of all children, and the platforms of
/// the request that the index has. `children` are those of the index `bytes` that can be read.
fn requested_children<'c>(
    bytes: &[u8],
    children: &'c [ChildManifest],
    request: &ImageRequest,
) -> Result<(Vec<&'c ChildManifest>, usize, ChosenPlatforms), ResolveError> {
    let requested: Vec<Platform> = request
        .platforms
        .iter()
        .map(|one| one.platform.clone())
        .collect();
    let mut unreadable = unreadable_children(bytes);
    let count = children.len() + unreadable.len();
    // a child of another platform is left out, whatever its digest looks like
    unreadable.retain(|child| is_requested(child.platform.as_ref(), &requested));
    refuse_unreadable(&unreadable)?;
    let chosen = choose_platforms(&known_platforms(children), &request.platforms)?;
    let kept = select_children(children, &chosen.platforms).map_err(|error| error.to_string())?;
    Ok((kept, count, chosen))
}

/// The digest that the tag of `name` has upstream now; without a tag, the digest in `name`.
pub(super) async fn upstream_digest(
    resolver: &Resolver,
    name: &ImageRef,
) -> Result<Option<Digest>, ResolveError> {
    let Some(tag) = &name.tag else {
        return Ok(name.digest.clone());
    };
    if let Some(archived) = resolver.archives.find(name, tag) {
        return Ok(Some(archived.digest));
    }
    let session = resolver.sessions.upstream(&name.registry).await?;
    session
        .head_manifest(&name.repository, tag, false)
        .await
        .map_err(ResolveError::from)
}

/// The manifests, children before parents, otherwise in the order of the index.
fn ordered_manifests(
    kept: &[&ChildManifest],
    below: &BTreeMap<Digest, ImageManifest>,
    platforms: &BTreeMap<Digest, Option<Platform>>,
) -> Vec<LockedManifest> {
    let mut seen = BTreeSet::new();
    let mut ordered = Vec::new();
    let find = |digest: &Digest| below.get(digest);
    for child in kept {
        add_children_first(&child.descriptor.digest, &find, &mut seen, &mut ordered);
    }
    let locked = ordered.into_iter().map(|fetched| {
        let descriptor = fetched.descriptor.clone();
        let platform = platforms.get(&descriptor.digest).and_then(Option::as_ref);
        LockedManifest {
            platform: platform.map(Platform::to_string),
            digest: descriptor.digest,
            size: descriptor.size,
            media_type: descriptor.media_type,
        }
    });
    locked.collect()
}

/// The platform of each child. An index may list a manifest for several platforms; a requested one
/// is preferred.
fn platforms_of(
    kept: &[&ChildManifest],
    requested: &[Platform],
) -> BTreeMap<Digest, Option<Platform>> {
    let mut platforms: BTreeMap<Digest, Option<Platform>> = BTreeMap::new();
    for child in kept {
        let is_better = match platforms.get(&child.descriptor.digest) {
            None | Some(None) => true,
            Some(known) => !is_requested(known.as_ref(), requested),
        };
        if is_better {
            platforms.insert(child.descriptor.digest.clone(), child.platform.clone());
        }
    }
    platforms
}

/// Whether a child with this platform is wanted for `requested`.
fn is_requested(platform: Option<&Platform>, requested: &[Platform]) -> bool {
    requested.is_empty()
        || platform.is_none_or(|own| {
            own.is_unknown() || requested.iter().any(|requested| own.satisfies(requested))
        })
}

/// The platform of an image without an index, from its config. The config is fetched only if
/// platforms were requested, since that takes another request.
async fn config_platform(
    resolver: &Resolver,
    request: &ImageRequest,
    config: Option<&Descriptor>,
) -> Result<Option<Platform>, ResolveError> {
    let Some(config) = config.filter(|config| {
        !request.platforms.is_empty() && media_type::is_image_config(&config.media_type)
    }) else {
        return Ok(None);
    };
    // larger than any config of an image
    if config.size > resolver.limits().document_bytes as u64 {
        return Ok(None);
    }
    let bytes = resolver.small_blob(&request.name, config).await?;
    // an artifact may have a config of any content, and no platform excludes it
    Ok(platform_of_config(&bytes))
}

/// Resolves `request` for the archive at `place`: reads the image with all its manifests and blobs
/// into the store.
pub(super) async fn resolve_archived(
    resolver: &Resolver,
    request: &ImageRequest,
    place: &LocalPlace,
) -> Result<LockedImage, ResolveError> {
    if resolver.signatures.applies_to(&request.name) {
        return Err(
            "a rule of `verify` requires a signature, and an image of an archive has none; add a \
             rule with `none` and the reason"
                .into(),
        );
    }
    let path = place.path.clone();
    let name = request.name.clone();
    let limits = *resolver.limits();
    let opening = tokio::task::spawn_blocking(move || ImageInArchive::open(&path, &name, &limits));
    // the message names a path of this machine
    let fault = |why: String| ResolveError::local(format!("{}: {why}", place.path.display()));
    let archive = Arc::new(opening.await?.map_err(fault)?);
    let request = ImageRequest {
        referrers: false,
        ..request.clone()
    };
    let offline = resolver.with_archived_image(archive.clone());
    let top = archive.top.digest.to_string();
    let mut image = resolve(&offline, &request, &top).await?;
    image.archive = Some(
        place
            .path_in_lock(&resolver.lock_folder)
            .unwrap_or_default(),
    );
    let blobs = image.blobs.clone();
    let disk = resolver.disk.clone();
    let progress = resolver.progress.clone();
    let storing = tokio::task::spawn_blocking(move || {
        let lacking = blobs.into_iter();
        let lacking = lacking.filter(|blob| !disk.has(&blob.digest, blob.size).unwrap_or(false));
        archive.import(&lacking.collect::<Vec<_>>(), &disk, &*progress)
    });
    storing.await?.map_err(fault)?;
    Ok(image)
}
