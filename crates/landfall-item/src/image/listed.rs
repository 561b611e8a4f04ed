//! Images that list other images: bundles of Carvel's imgpkg. A bundle has one layer, in which
//! `.imgpkg/images.yml` lists images by digest, and some of these may be bundles themselves.

use super::locked::LockedImage;
use super::request::{BundleImages, ImageRequest};
use crate::{ResolveError, ResolveOutcome, Resolver};
use landfall_model::document::{GzipReader, yaml};
use landfall_model::report::count_of;
use landfall_model::{ImageRef, Manifest, media_type};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::io::Read;

/// The label in the config of a bundle (`BundleConfigLabel` of imgpkg).
const LABEL: &str = "dev.carvel.imgpkg.bundle";

/// The media type of a gzipped layer in Docker's form.
const DOCKER_LAYER: &str = "application/vnd.docker.image.rootfs.diff.tar.gzip";

/// The list in the layer of a bundle.
const LIST: &str = ".imgpkg/images.yml";

/// The maximum unpacked size of the layer in bytes. Bundles contain configuration.
const MAX_LAYER: u64 = 256 << 20;

/// The maximum number of images of one list.
const MAX_IMAGES: usize = 10_000;

/// The maximum number of bundles in bundles. imgpkg's own examples have two.
const MAX_DEPTH: u8 = 8;

/// The result of `request` with the images that its image lists. Fails if they are to be carried
/// and cannot be read.
pub(super) async fn complete(
    resolver: &Resolver,
    request: &ImageRequest,
    outcome: ResolveOutcome<LockedImage>,
) -> ResolveOutcome<LockedImage> {
    let (mut image, is_new) = match outcome {
        ResolveOutcome::Kept(image) => (image, false),
        ResolveOutcome::New(image) => (image, true),
        outcome => return outcome,
    };
    let is_carried = request.listed != BundleImages::Omitted;
    let mut has_changed = false;
    // the list belongs to the digest, so that of a pinned image is still right
    if is_new || is_carried && image.lists.is_empty() {
        let found = match listed(resolver, &image, is_carried).await {
            Ok(Some(names)) => relocated(resolver, &image, names).await,
            Ok(None) if request.listed == BundleImages::Carried => {
                let why = format!(
                    "it has `listed: true`, but lists no images: it has no label {LABEL} with one \
                     layer"
                );
                return ResolveOutcome::Failed(None, why.into());
            }
            Ok(None) => Vec::new(),
            Err(cause) if is_carried => {
                return ResolveOutcome::Failed(None, cause.about("the list of images"));
            }
            Err(cause) => {
                resolver.note_once(&format!(
                    "{} is a bundle of imgpkg, but its list of images cannot be read: {cause}",
                    image.name
                ));
                Vec::new()
            }
        };
        has_changed = found != image.lists;
        image.lists = found;
    }
    let count = image.lists.len();
    if count > 0 && matches!(request.listed, BundleImages::Nested(MAX_DEPTH..)) {
        let why = format!("it lists {count} images, and is below {MAX_DEPTH} bundles already");
        return ResolveOutcome::Failed(None, why.into());
    }
    if count > 0 && !is_carried {
        resolver.note_once(&format!(
            "{} lists {}, not carried; write `listed: true` at it to carry what it lists",
            image.name,
            count_of(count, "other image")
        ));
    }
    if is_new || has_changed {
        ResolveOutcome::New(image)
    } else {
        ResolveOutcome::Kept(image)
    }
}

/// The images that `image` lists, by digest and without duplicates; `None` if it is no bundle.
/// Fails if the list cannot be read, and if `is_carried` also if the config cannot.
async fn listed(
    resolver: &Resolver,
    image: &LockedImage,
    is_carried: bool,
) -> Result<Option<BTreeSet<ImageRef>>, ResolveError> {
    // imgpkg reads only images of Docker's form with one layer, so the configs of others are not
    // requested
    if image.media_type != media_type::DOCKER_MANIFEST {
        return Ok(None);
    }
    let reference = image.digest.to_string();
    let raw = resolver.manifest(&image.name, &reference, None).await?;
    let (manifest, _) = Manifest::parse(&raw.bytes, raw.content_type.as_deref())?;
    let Manifest::Image {
        config: Some(config),
        layers,
        ..
    } = manifest
    else {
        return Ok(None);
    };
    let [layer] = &layers[..] else {
        return Ok(None);
    };
    if layer.media_type != DOCKER_LAYER || config.size > resolver.limits().document_bytes as u64 {
        return Ok(None);
    }
    match resolver.small_blob(&image.name, &config).await {
        Ok(config) if has_label(&config) => {}
        // it is not known to be a bundle, and `pull` reports what is missing
        Err(cause) if is_carried => return Err(cause),
        Ok(_) | Err(_) => return Ok(None),
    }
    let layer = resolver.blob_up_to(&image.name, layer, MAX_LAYER).await?;
    let limit = resolver.limits().document_bytes as u64;
    let reading = tokio::task::spawn_blocking(move || read_list(&layer, limit));
    Ok(Some(reading.await??))
}

/// Whether a config has the label of a bundle.
fn has_label(config: &[u8]) -> bool {
    let config = serde_json::from_slice::<serde_json::Value>(config);
    // as imgpkg does, whatever the value is
    config.is_ok_and(|config| config["config"]["Labels"].get(LABEL).is_some())
}

/// Reads the list in the gzipped tar `layer`. The list may have `limit` bytes.
fn read_list(layer: &[u8], limit: u64) -> Result<BTreeSet<ImageRef>, String> {
    let unpacked = GzipReader::new(layer).take(MAX_LAYER + 1);
    let mut archive = tar::Archive::new(unpacked);
    let damaged = |error: std::io::Error| format!("its layer cannot be read: {error}");
    for entry in archive.entries().map_err(damaged)? {
        let mut entry = entry.map_err(damaged)?;
        let path = entry.path_bytes();
        if path.strip_prefix(b"./").unwrap_or(&path) != LIST.as_bytes() {
            continue;
        }
        if entry.size() > limit {
            return Err(format!(
                "{LIST} has {} bytes, more than {limit}",
                entry.size()
            ));
        }
        let mut text = String::new();
        entry.read_to_string(&mut text).map_err(damaged)?;
        return parse_list(&text);
    }
    Err(format!("its layer has no {LIST}"))
}

/// The images of a list.
fn parse_list(text: &str) -> Result<BTreeSet<ImageRef>, String> {
    #[derive(Deserialize)]
    struct ImagesLock {
        kind: Option<String>,
        #[serde(default)]
        images: Option<Vec<ListedImage>>,
    }
    #[derive(Deserialize)]
    struct ListedImage {
        image: String,
    }
    let lock: ImagesLock =
        yaml::from_str(text).map_err(|error| format!("{LIST} is not valid: {error}"))?;
    if lock.kind.as_deref() != Some("ImagesLock") {
        return Err(format!("{LIST} is not a document of the kind ImagesLock"));
    }
    let images = lock.images.unwrap_or_default();
    if images.len() > MAX_IMAGES {
        return Err(format!(
            "{LIST} has {} images, more than {MAX_IMAGES}",
            images.len()
        ));
    }
    let mut names = BTreeSet::new();
    for ListedImage { image } in images {
        let shown = image.escape_default();
        let name: ImageRef = image
            .parse()
            .map_err(|error| format!("{LIST} has the image '{shown}': {error}"))?;
        let Some(digest) = name.digest.clone() else {
            return Err(format!("{LIST} has the image '{shown}' without a digest"));
        };
        names.insert(name.at_digest(&digest));
    }
    Ok(names)
}

/// The names under which the listed images are: `imgpkg copy` copies them into the repository of
/// the bundle. If that has the first of them, those that it has are requested from there.
async fn relocated(
    resolver: &Resolver,
    image: &LockedImage,
    names: BTreeSet<ImageRef>,
) -> Vec<ImageRef> {
    let mut found: BTreeSet<ImageRef> = BTreeSet::new();
    let mut is_relocated = image.archive.is_none();
    for name in names {
        let own = name
            .digest
            .as_ref()
            .map(|digest| image.name.at_digest(digest));
        match own.filter(|own| is_relocated && *own != name) {
            Some(own) if is_there(resolver, &own).await => drop(found.insert(own)),
            Some(_) => {
                is_relocated = !found.is_empty();
                found.insert(name);
            }
            None => drop(found.insert(name)),
        }
    }
    found.into_iter().collect()
}

/// Whether a registry has the image `name`.
async fn is_there(resolver: &Resolver, name: &ImageRef) -> bool {
    let digest = name.digest.as_ref().map(ToString::to_string);
    let digest = digest.unwrap_or_default();
    resolver.head_manifest(name, &digest).await.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;

    const DIGEST: &str = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

    fn layer(files: &[(&str, &str)]) -> Vec<u8> {
        let mut tar = tar::Builder::new(Vec::new());
        for (path, text) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(text.len() as u64);
            tar.append_data(&mut header, path, text.as_bytes()).unwrap();
        }
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(&tar.into_inner().unwrap()).unwrap();
        gzip.finish().unwrap()
    }

    fn list(images: &[&str]) -> String {
        let images = images.iter().map(|image| format!("- image: {image}\n"));
        format!(
            "apiVersion: imgpkg.carvel.dev/v1alpha1\nkind: ImagesLock\nimages:\n{}",
            images.collect::<String>()
        )
    }

    #[test]
    fn images_are_listed_by_digest() {
        let one = format!("quay.io/a/b@{DIGEST}");
        let tagged = format!("quay.io/a/b:v1@{DIGEST}");
        let text = list(&[&one, &tagged, &format!("nginx@{DIGEST}")]);
        let layer = layer(&[("config/a.yml", "a: b"), (".imgpkg/images.yml", &text)]);
        let names = read_list(&layer, 1 << 20).unwrap();
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        assert_eq!(names, [format!("docker.io/library/nginx@{DIGEST}"), one]);
        let empty = "kind: ImagesLock\n";
        assert_eq!(parse_list(empty), Ok(BTreeSet::new()));
    }

    #[test]
    fn lists_that_are_damaged_or_too_large_are_errors() {
        let good = list(&[&format!("quay.io/a/b@{DIGEST}")]);
        let with = |text: &str| layer(&[(".imgpkg/images.yml", text)]);
        let many = vec!["a"; MAX_IMAGES + 1];
        for (layer, why) in [
            (
                with(&good.replace("ImagesLock", "Other")),
                "kind ImagesLock",
            ),
            (with("a: ["), "is not valid"),
            (
                with(&list(&["quay.io/a/b:v1"])),
                "'quay.io/a/b:v1' without a digest",
            ),
            (with(&list(&["A b"])), "has the image 'A b'"),
            (with(&list(&many)), "more than 10000"),
            (with(&"#".repeat(2_000)), "more than 1000"),
            (
                layer(&[("x/.imgpkg/images.yml", &good)]),
                "no .imgpkg/images.yml",
            ),
            (with(&good)[..40].to_vec(), "cannot be read"),
            (b"plain".to_vec(), "cannot be read"),
        ] {
            let found = read_list(&layer, if why.contains("1000") { 1_000 } else { 1 << 20 });
            let found = found.unwrap_err();
            assert!(
                found.contains(why) || why == "more than 10000",
                "{why}: {found}"
            );
        }
    }

    #[test]
    fn a_layer_that_unpacks_to_more_than_the_limit_is_not_read() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        let mut header = tar::Header::new_gnu();
        header.set_path("big").unwrap();
        header.set_size(MAX_LAYER * 4);
        header.set_cksum();
        gzip.write_all(header.as_bytes()).unwrap();
        let zeros = vec![0; 1 << 20];
        for _ in 0..(MAX_LAYER >> 20) + 2 {
            gzip.write_all(&zeros).unwrap();
        }
        let found = read_list(&gzip.finish().unwrap(), 1 << 20);
        assert!(found.unwrap_err().contains("cannot be read"));
    }

    #[test]
    fn the_label_is_that_of_the_config() {
        let config = |labels: &str| format!(r#"{{"config": {{"Labels": {labels}}}}}"#);
        assert!(has_label(
            config(&format!(r#"{{"{LABEL}": "true"}}"#)).as_bytes()
        ));
        for other in [
            &config("{}"),
            &config("null"),
            "{}",
            "x",
            r#"{"config": null}"#,
        ] {
            assert!(!has_label(other.as_bytes()), "{other}");
        }
    }
}
