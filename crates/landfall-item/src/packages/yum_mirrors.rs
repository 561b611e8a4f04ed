//! Finds the URLs of a yum repository: its own, and the mirrors of a metalink or mirror list. They
//! are looked up once per run and not recorded in the lock.

use super::request::{MirrorsRequest, PackageSourceRequest};
use crate::resolver::{ResolveError, Resolver};
use landfall_model::Digest;
use landfall_packages::yum::{MirrorList, read_mirrors};

/// The URLs of a repository.
pub(super) struct MirrorUrls {
    /// The URLs without a trailing slash, the repository's own first.
    pub(super) urls: Vec<String>,
    /// The accepted digests of `repomd.xml`, if a metalink names any.
    pub(super) repomd: Option<Vec<Digest>>,
}

/// Fetches the list of mirrors that `wanted` names.
pub(super) async fn places(
    resolver: &Resolver,
    wanted: &PackageSourceRequest,
) -> Result<MirrorUrls, ResolveError> {
    let own = wanted.url.clone();
    let Some(mirrors) = &wanted.mirrors else {
        return Ok(MirrorUrls {
            urls: vec![own],
            repomd: None,
        });
    };
    let (MirrorsRequest::Metalink(list) | MirrorsRequest::List(list)) = mirrors;
    let found = match mirrors {
        MirrorsRequest::Metalink(url) => {
            let named = listed(resolver, url)
                .await
                .map_err(|cause| cause.about("the metalink"))?;
            if named.repomd.is_empty() {
                return Err("the metalink: it has no digest of repomd.xml".into());
            }
            named
        }
        // a plain list is optional: the repository's own URL still works without it
        MirrorsRequest::List(url) => match listed(resolver, url).await {
            Ok(named) => named,
            Err(cause) => {
                resolver.note_once(&format!("{own}: its list of mirrors is not used: {cause}"));
                return Ok(MirrorUrls {
                    urls: vec![own],
                    repomd: None,
                });
            }
        },
    };
    let mirrors = found
        .urls
        .iter()
        .map(|url| url.trim_end_matches('/').to_owned());
    let mirrors = mirrors
        .filter(|url| *url != own)
        .take(resolver.limits().package_mirrors);
    let mut urls = vec![own.clone()];
    for mirror in mirrors {
        match resolver.sessions().check_named_target(&mirror, list).await {
            Ok(()) => urls.push(mirror),
            Err(error) => resolver.note_once(&format!("{own}: a mirror is not used: {error}")),
        }
    }
    Ok(MirrorUrls {
        urls,
        repomd: Some(found.repomd).filter(|digests| !digests.is_empty()),
    })
}

async fn listed(resolver: &Resolver, url: &str) -> Result<MirrorList, ResolveError> {
    let bytes = resolver
        .shared_file(url, resolver.limits().document_bytes)
        .await?;
    Ok(read_mirrors(&bytes)?)
}
