//! Fetches and verifies the metadata of a yum repository: `repomd.xml` by its signature and by its
//! digest in a metalink, if these exist; each index by its digest in `repomd.xml`.

use super::fetch::{check_age, fetch, read_consistent, store_index};
use super::locked::{PackageIndex, PackageSource};
use super::resolvable::{MirrorsRequest, PackageSourceRequest};
use crate::resolver::{ResolveError, Resolver};
use bytes::Bytes;
use landfall_http::ErrorKind;
use landfall_model::sign::SignatureTime;
use landfall_model::{Algorithm, Digest};
use landfall_packages::file_url;
use landfall_packages::yum::{
    MirrorList, PackedIndex, Repomd, RepomdIndex, SourceMetadata, read_mirrors,
};

const REPOMD: &str = "repodata/repomd.xml";
const SIGNATURE: &str = "repodata/repomd.xml.asc";

/// A repository with verified metadata.
#[derive(Debug, Clone)]
pub(super) struct YumRepository {
    /// The lock's record of the repository, still without packages.
    pub(super) source: PackageSource,
    repomd: Repomd,
    /// The URLs of mirrors, for indexes that are fetched later.
    mirrors: Vec<String>,
    /// The compressed indexes that have been fetched.
    pub(super) metadata: SourceMetadata,
}

/// Fetches the metadata of the source `requested`, without the full file lists. The metadata must
/// not be older than that of `old`, the source in the last lock.
pub(super) async fn repository(
    resolver: &Resolver,
    requested: &PackageSourceRequest,
    old: Option<&PackageSource>,
) -> Result<YumRepository, ResolveError> {
    let urls = repository_urls(resolver, requested).await?;
    read_consistent(
        async || fetch_repomd(resolver, requested, &urls, old).await,
        async |list: &SignedRepomd| fetch_indexes(resolver, requested, &urls, list.clone()).await,
    )
    .await
}

/// Fetches the indexes that the `repomd.xml` of a repository names.
async fn fetch_indexes(
    resolver: &Resolver,
    requested: &PackageSourceRequest,
    urls: &RepositoryUrls,
    list: SignedRepomd,
) -> Result<YumRepository, ResolveError> {
    let repomd = list.repomd;
    let mut indexes = Vec::new();
    match list.signature {
        Some(signature) => {
            indexes.push(store_index(resolver, requested, SIGNATURE.into(), signature).await);
        }
        // `pull` verifies the signature of each package instead
        None => resolver.note_once(&format!(
            "{} does not sign its metadata; `landfall pull` verifies the signatures of its \
             packages",
            requested.url
        )),
    }
    for (key, why) in requested.keys.outdated() {
        resolver.note_once(&format!(
            "{}: rpm of RHEL 9 and later refuses the key {key}, which {why}; get the renewed key \
             from its owner",
            requested.url
        ));
    }
    indexes.push(store_index(resolver, requested, REPOMD.into(), list.bytes).await);
    let mut source = PackageSource {
        url: requested.url.clone(),
        module_hotfixes: requested.module_hotfixes,
        date: repomd.date.map(|date| date.to_string()),
        // all keys, since any of them may have signed a package
        signed_by: requested.keys.to_string(),
        key: requested
            .keys
            .certificates()
            .ok_or("its keys cannot be encoded")?,
        indexes,
        ..PackageSource::default()
    };
    let mirrors = urls.mirrors.clone();
    for kind in repomd.kinds().into_iter().filter(|kind| is_carried(kind)) {
        let record = carried_index(resolver, &source, &repomd, &mirrors, kind).await;
        match record {
            Ok(record) => source.indexes.push(record),
            // dnf downloads these with every installation, and fails without one of them
            Err(cause) if is_required(kind) => {
                return Err(cause.about(&format!("the index '{kind}', which dnf needs")));
            }
            Err(cause) => resolver.note_once(&format!(
                "{}: the index '{kind}' is not carried, which dnf does not need: {cause}",
                source.url
            )),
        }
    }
    source.indexes.sort_by(|a, b| a.path.cmp(&b.path));
    // two kinds may name the same file
    source.indexes.dedup();
    let primary = packed(resolver, &source, &repomd, &mirrors, "primary")
        .await?
        .ok_or("its repomd.xml names no primary index")?;
    let modules = packed(resolver, &source, &repomd, &mirrors, "modules").await?;
    let metadata = SourceMetadata {
        url: source.url.clone(),
        primary,
        modules,
        groups: None,
        is_hotfixes: source.module_hotfixes,
        files: None,
    };
    Ok(YumRepository {
        source,
        repomd,
        mirrors,
        metadata,
    })
}

/// A `repomd.xml` whose signature was verified, if the repository signs its metadata.
#[derive(Clone, PartialEq)]
struct SignedRepomd {
    bytes: Bytes,
    /// The content of `repomd.xml.asc`, if the repository signs its metadata.
    signature: Option<Bytes>,
    repomd: Repomd,
}

/// Fetches `repomd.xml` from the repository, or else from the first mirror that has a valid one.
async fn fetch_repomd(
    resolver: &Resolver,
    requested: &PackageSourceRequest,
    urls: &RepositoryUrls,
    old: Option<&PackageSource>,
) -> Result<SignedRepomd, ResolveError> {
    let mut found = fetch_repomd_at(resolver, requested, &urls.own, urls, old).await;
    for mirror in &urls.mirrors {
        let Err(cause) = found else { break };
        let next = fetch_repomd_at(resolver, requested, mirror, urls, old)
            .await
            .and_then(|list| {
                // an unsigned `repomd.xml` is accepted from the repository's own URL, but never
                // from a mirror, which anybody may run
                if list.signature.is_some() || urls.repomd.is_some() {
                    Ok(list)
                } else {
                    Err("it is not signed, and no metalink has its digest".into())
                }
            });
        found = next.map_err(|next| cause.followed_by(&next.about(mirror)));
        resolver.sessions.note_named(mirror, &urls.own);
    }
    found
}

/// Fetches `repomd.xml` below `url` and verifies its digest if a metalink names one, its signature
/// if it has one, and its age.
async fn fetch_repomd_at(
    resolver: &Resolver,
    requested: &PackageSourceRequest,
    url: &str,
    urls: &RepositoryUrls,
    old: Option<&PackageSource>,
) -> Result<SignedRepomd, ResolveError> {
    let bytes = resolver.document(&file_url(url, REPOMD)).await?;
    if let Some(digests) = &urls.repomd
        && !is_one_of(&bytes, digests)
    {
        let why = "none of its digests is that of repomd.xml, which is outdated or was changed";
        return Err(ResolveError::from(why).about("the metalink"));
    }
    let signature = match resolver.document(&file_url(url, SIGNATURE)).await {
        Ok(signature) => {
            requested
                .keys
                .verify_detached(&signature, SignatureTime::Now, || Ok(&bytes[..]))
                .map_err(|error| ResolveError::from(format!("{SIGNATURE}: {error}")))?;
            Some(signature)
        }
        // unlike for apt, only 404 and 410 mean that there is no signature: an unsigned file is
        // accepted, so an error of the server must not count as a missing signature
        Err(error) if error.kind == ErrorKind::NotFound => None,
        Err(error) => return Err(ResolveError::from(error).about(SIGNATURE)),
    };
    let repomd = Repomd::parse(&bytes).map_err(|error| ResolveError::from(error).about(REPOMD))?;
    let date = repomd.date.map(|date| date.to_string());
    check_age(
        REPOMD,
        date.as_deref(),
        old.and_then(|old| old.date.as_deref()),
    )?;
    // an unsigned file can carry any date, so removing the signature must not bypass the age check
    let was_signed = old.is_some_and(|old| old.indexes.iter().any(|index| index.path == SIGNATURE));
    if was_signed && signature.is_none() && urls.repomd.is_none() {
        let why = "it has no signature, but had one when it was locked; remove the item from the \
                   lock to accept that";
        return Err(ResolveError::from(why).about(REPOMD));
    }
    Ok(SignedRepomd {
        bytes,
        signature,
        repomd,
    })
}

/// Whether `bytes` have one of `digests`. A metalink may list any number of them, so the bytes are
/// not hashed for each.
fn is_one_of(bytes: &[u8], digests: &[Digest]) -> bool {
    Algorithm::ALL
        .into_iter()
        .any(|algorithm| digests.contains(&Digest::compute(algorithm, bytes)))
}

impl YumRepository {
    /// Fetches the index of groups as well, if the repository has one.
    pub(super) async fn fetch_groups(&mut self, resolver: &Resolver) -> Result<(), ResolveError> {
        let Some(kind) = self.repomd.group_kind() else {
            return Ok(());
        };
        self.metadata.groups =
            packed(resolver, &self.source, &self.repomd, &self.mirrors, kind).await?;
        Ok(())
    }

    /// Fetches the full file lists as well.
    pub(super) async fn fetch_files(&mut self, resolver: &Resolver) -> Result<(), ResolveError> {
        self.metadata.files = packed(
            resolver,
            &self.source,
            &self.repomd,
            &self.mirrors,
            "filelists",
        )
        .await?;
        Ok(())
    }
}

/// Whether an index of this kind is carried. Changelogs (`other`) are omitted because clients do
/// not download them by default, and the sqlite forms (`_db`) because only the yum of RHEL 7 uses
/// them.
fn is_carried(kind: &str) -> bool {
    !kind.starts_with("other") && !kind.ends_with("_db")
}

/// Whether dnf downloads indexes of this kind from a repository with default settings, so that it
/// refuses the repository without them.
fn is_required(kind: &str) -> bool {
    let kind = kind.strip_suffix("_zck").unwrap_or(kind);
    let kinds = [
        "primary",
        "filelists",
        "updateinfo",
        "modules",
        "prestodelta",
    ];
    kinds.contains(&kind) || kind.starts_with("group")
}

/// The lock's record of the index of this kind. An index that dnf does not need is fetched, because
/// the server may lack it.
async fn carried_index(
    resolver: &Resolver,
    source: &PackageSource,
    repomd: &Repomd,
    mirrors: &[String],
    kind: &str,
) -> Result<PackageIndex, ResolveError> {
    let index = repomd.index(&source.url, kind)?;
    let index = index.ok_or_else(|| format!("repomd.xml has no index '{kind}'"))?;
    let record = record(resolver, source, &index).await?;
    if !is_required(kind) {
        fetch(resolver, source, &record, mirrors).await?;
    }
    Ok(record)
}

/// The lock's record of `index`. An index may be listed without a size, but the lock must have it,
/// so such an index is fetched.
async fn record(
    resolver: &Resolver,
    source: &PackageSource,
    index: &RepomdIndex,
) -> Result<PackageIndex, ResolveError> {
    let RepomdIndex { digest, path, .. } = index;
    let url = file_url(&source.url, path);
    let size = match index.size {
        Some(size) => size,
        None => {
            let limit = resolver.limits().package_index_bytes;
            let bytes = resolver
                .small_file(&url, limit as usize, Some(digest))
                .await;
            let bytes = bytes.map_err(|error| ResolveError::from(error).about(path))?;
            bytes.len() as u64
        }
    };
    Ok(PackageIndex {
        digest: digest.clone(),
        size,
        url,
        path: path.clone(),
    })
}

/// The compressed index of this kind, if the repository has one.
async fn packed(
    resolver: &Resolver,
    source: &PackageSource,
    repomd: &Repomd,
    mirrors: &[String],
    kind: &str,
) -> Result<Option<PackedIndex>, ResolveError> {
    let Some(index) = repomd.index(&source.url, kind)? else {
        return Ok(None);
    };
    let mut packed = PackedIndex::of(&index, resolver.limits())?;
    let record = record(resolver, source, &index).await?;
    packed.bytes = fetch(resolver, source, &record, mirrors).await?;
    Ok(Some(packed))
}

// Finds the URLs of a yum repository: its own, and the mirrors of a metalink or mirror list. The
// mirrors are looked up once per run and not recorded in the lock.

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
            let list = fetch_list(resolver, url, &urls.own)
                .await
                .map_err(|cause| cause.about("the metalink"))?;
            if list.repomd.is_empty() {
                return Err("the metalink: it has no digest of repomd.xml".into());
            }
            (url, list)
        }
        // a plain list is optional: the repository's own URL still works without it
        Some(MirrorsRequest::List(url)) => match fetch_list(resolver, url, &urls.own).await {
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
            .sessions
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

/// Fetches the list of mirrors of the repository `own`.
async fn fetch_list(resolver: &Resolver, url: &str, own: &str) -> Result<MirrorList, ResolveError> {
    // several repositories may name the same list
    let bytes = resolver
        .shared_file(url, resolver.limits().document_bytes)
        .await;
    resolver.sessions.note_named(url, own);
    Ok(read_mirrors(&bytes?)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_model::document::growth::assert_linear;

    #[test]
    fn a_file_is_compared_with_many_digests_in_linear_time() {
        let digests = |count: usize| {
            let digests = (0..count).map(|number| Digest::sha256(&number.to_le_bytes()));
            digests.collect::<Vec<Digest>>()
        };
        let mut known = digests(3);
        assert!(!is_one_of(b"text", &known));
        for algorithm in Algorithm::ALL {
            known.push(Digest::compute(algorithm, b"text"));
            assert!(is_one_of(b"text", &known));
            known.pop();
        }
        assert_linear(300, |size| {
            assert!(!is_one_of(&vec![0_u8; 100 * size], &digests(size)));
        });
    }
}
