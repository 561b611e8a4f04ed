//! Finds the URLs of a yum repository: its own, and the mirrors of a metalink or mirror list. The
//! mirrors are looked up once per run and not recorded in the lock.

use super::request::{MirrorsRequest, PackageSourceRequest};
use crate::resolver::{ResolveError, Resolver};
use landfall_model::Digest;
use landfall_packages::yum::{MirrorList, read_mirrors};

/// The URLs of a repository, without trailing slashes.
pub(super) struct RepositoryUrls {
    /// The URL in the manifest.
    pub(super) own: String,
    /// The URLs of mirrors, which are used if the URL in the manifest fails.
    pub(super) mirrors: Vec<String>,
    /// The accepted digests of `repomd.xml`, if a metalink names any.
    pub(super) repomd: Option<Vec<Digest>>,
}

/// Returns the URLs of the source `requested`. Fetches its list of mirrors if it names one.
pub(super) async fn repository_urls(
    resolver: &Resolver,
    requested: &PackageSourceRequest,
) -> Result<RepositoryUrls, ResolveError> {
    let mut urls = RepositoryUrls {
        own: requested.url.clone(),
        mirrors: Vec::new(),
        repomd: None,
    };
    let (list_url, list) = match &requested.mirrors {
        None => return Ok(urls),
        // a metalink that cannot be used is an error: only its digest protects an unsigned
        // `repomd.xml`
        Some(MirrorsRequest::Metalink(url)) => {
            let list = fetch_list(resolver, url)
                .await
                .map_err(|cause| cause.about("the metalink"))?;
            if list.repomd.is_empty() {
                return Err("the metalink: it has no digest of repomd.xml".into());
            }
            (url, list)
        }
        // a plain list is optional: the repository's own URL still works without it
        Some(MirrorsRequest::List(url)) => match fetch_list(resolver, url).await {
            Ok(list) => (url, list),
            Err(cause) => {
                resolver.note_once(&format!(
                    "{}: its list of mirrors is not used: {cause}",
                    urls.own
                ));
                return Ok(urls);
            }
        },
    };
    let mirrors = list
        .urls
        .iter()
        .map(|url| url.trim_end_matches('/').to_owned())
        .filter(|url| *url != urls.own)
        // limited before the checks, which look up each host: a list may have any number of mirrors
        .take(resolver.limits().package_mirrors);
    let mut usable = Vec::new();
    for mirror in mirrors {
        // anybody may have written the list, so it must not lead to hosts of the local network
        match resolver
            .sessions()
            .check_named_target(&mirror, list_url)
            .await
        {
            Ok(()) => usable.push(mirror),
            Err(error) => {
                resolver.note_once(&format!("{}: a mirror is not used: {error}", urls.own));
            }
        }
    }
    urls.mirrors = usable;
    urls.repomd = Some(list.repomd).filter(|digests| !digests.is_empty());
    Ok(urls)
}

async fn fetch_list(resolver: &Resolver, url: &str) -> Result<MirrorList, ResolveError> {
    // several repositories may name the same list
    let bytes = resolver
        .shared_file(url, resolver.limits().document_bytes)
        .await?;
    Ok(read_mirrors(&bytes)?)
}
