//! Foreign layers, such as those of Windows base images: a registry need not have them, and the
//! manifest lists URLs for them (image-spec, "Non-Distributable Layers").

use super::file::expect_file;
use super::registry_blob::open_registry_blob;
use crate::registry::{RegistrySession, RegistrySessions};
use crate::{EntryPart, OpenedPart};
use landfall_http::{HttpError, HttpRequest, RequestPurpose, send_from_offset};
use landfall_model::{Descriptor, Digest, JsonText};
use reqwest::Method;
use reqwest::header::RANGE;
use std::sync::Arc;

/// Opens a foreign layer: from the registry, or else from the URLs in the manifests of the image,
/// in order. The digest is verified, so the servers of the URLs need not be trusted. They get no
/// credentials.
pub(super) async fn open(
    sessions: &RegistrySessions,
    session: &Arc<RegistrySession>,
    repository: &str,
    manifests: &[Descriptor],
    part: &EntryPart,
    offset: u64,
) -> Result<OpenedPart, HttpError> {
    let digest = &part.descriptor.digest;
    let lacks = match open_registry_blob(session, repository, &part.descriptor, offset).await {
        // a registry may deny a blob that it lacks; after other errors it may still have it
        Err(error) if error.may_be_missing() => error,
        other => return other,
    };
    let mut first = None;
    for manifest in manifests {
        // another manifest of the image may list the same layer
        let Ok(manifest) = session.manifest_of(repository, manifest).await else {
            continue;
        };
        for url in urls(&manifest.bytes, digest) {
            match open_url(sessions, session, &url, offset, part.descriptor.size).await {
                Err(error) => first = first.or(Some(error)),
                opened => return opened,
            }
        }
    }
    Err(match first {
        Some(error) => HttpError::new(error.kind, format!("{lacks}; from its URLs: {error}")),
        None => lacks,
    })
}

/// Returns the URLs that a manifest lists for a layer.
fn urls(manifest: &[u8], digest: &Digest) -> Vec<String> {
    let text = String::from_utf8_lossy(manifest);
    let [layers] = JsonText::new(&text).members_if_object(["layers"]);
    let layers = layers.and_then(JsonText::elements).unwrap_or_default();
    let of_it = layers.into_iter().filter_map(|layer| {
        let [own, urls] = layer.members_if_object(["digest", "urls"]);
        let own: Digest = own?.string()?.parse().ok()?;
        urls.filter(|_| own == *digest)?.elements()
    });
    of_it.flatten().filter_map(JsonText::string).collect()
}

async fn open_url(
    sessions: &RegistrySessions,
    session: &RegistrySession,
    url: &str,
    offset: u64,
    size: u64,
) -> Result<OpenedPart, HttpError> {
    let (target, origin) = sessions.file_url(url)?;
    let send = |range: Option<String>| {
        let mut request = HttpRequest::new(Method::GET, target.clone(), RequestPurpose::File);
        request.origin.clone_from(&origin);
        // the URL comes from a manifest of the registry, not from the user
        request.named_by = Some(session.address());
        let request = range
            .iter()
            .fold(request, |request, range| request.header(RANGE, range));
        async move { sessions.transport().send(&request).await }
    };
    let (start, response) =
        send_from_offset(sessions.transport(), &target, offset, size, send).await?;
    let stream = expect_file(response, url).await?.stream();
    let transport = sessions.transport().clone();
    // if the bytes turn out wrong, this host is distrusted, not the registry
    Ok(OpenedPart::ranged(start, stream, move || {
        transport.distrust_ranges(&target);
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_from_the_layer_with_that_digest() {
        let digest = Digest::sha256(b"x");
        let manifest = format!(
            r#"{{"layers":[{{"digest":"sha256:00","urls":["http://no"]}},{{"digest":"{digest}","urls":["http://a","http://b"]}}]}}"#
        );
        assert_eq!(urls(manifest.as_bytes(), &digest), ["http://a", "http://b"]);
        assert!(urls(b"{}", &digest).is_empty() && urls(b"<", &digest).is_empty());
    }
}
