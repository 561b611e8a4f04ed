//! Fetches and verifies the metadata of a yum repository: `repomd.xml` by its signature, each index
//! by its digest in `repomd.xml`.

use super::consistent::read_consistent;
use super::fetch::{check_age, fetch, kept};
use super::locked::{PackageIndex, PackageSource};
use super::request::PackageSourceRequest;
use super::yum_mirrors::{MirrorUrls, places};
use crate::resolver::{ResolveError, Resolver};
use bytes::Bytes;
use landfall_http::ErrorKind;
use landfall_model::sign::SignatureTime;
use landfall_packages::file_url;
use landfall_packages::yum::{
    MetadataError, PackedIndex, Repomd, RepomdIndex, SourceMetadata, YumError,
};

const REPOMD: &str = "repodata/repomd.xml";
const SIGNATURE: &str = "repodata/repomd.xml.asc";

/// A repository with verified metadata.
#[derive(Debug, Clone)]
pub(super) struct YumRepository {
    /// The lock's record of the repository, still without packages.
    pub(super) source: PackageSource,
    repomd: Repomd,
    mirrors: Vec<String>,
    /// The decompressed indexes.
    pub(super) metadata: SourceMetadata,
}

impl From<YumError> for ResolveError {
    fn from(error: YumError) -> ResolveError {
        error.to_string().into()
    }
}

impl From<MetadataError> for ResolveError {
    fn from(error: MetadataError) -> ResolveError {
        error.to_string().into()
    }
}

/// Fetches the metadata of `wanted`, without the full file lists. It must not be older than `old`,
/// the metadata in the last lock.
pub(super) async fn repository(
    resolver: &Resolver,
    wanted: &PackageSourceRequest,
    old: Option<&PackageSource>,
) -> Result<YumRepository, ResolveError> {
    let places = places(resolver, wanted).await?;
    read_consistent(
        async || signed_list(resolver, wanted, &places, old).await,
        async |list: &SignedList| indexed(resolver, wanted, &places, list.clone()).await,
    )
    .await
}

/// Fetches the indexes that the `repomd.xml` of a repository names.
async fn indexed(
    resolver: &Resolver,
    wanted: &PackageSourceRequest,
    places: &MirrorUrls,
    list: SignedList,
) -> Result<YumRepository, ResolveError> {
    let SignedList {
        bytes,
        signature,
        repomd,
    } = list;
    let mut indexes = Vec::new();
    match signature {
        Some(signature) => indexes.push(kept(resolver, wanted, SIGNATURE.into(), signature).await),
        None => resolver.note_once(&format!(
            "{} does not sign its metadata; its packages are checked by `landfall pull`",
            wanted.url
        )),
    }
    indexes.push(kept(resolver, wanted, REPOMD.into(), bytes).await);
    for index in repomd
        .indexes
        .iter()
        .filter(|index| is_carried(&index.kind))
    {
        indexes.push(listed(&wanted.url, index)?);
    }
    indexes.sort_by(|a, b| a.path.cmp(&b.path));
    indexes.dedup();
    let source = PackageSource {
        url: wanted.url.clone(),
        suite: String::new(),
        components: Vec::new(),
        targets: Vec::new(),
        by_hash: false,
        snapshot: None,
        date: repomd.date.map(|date| date.to_string()),
        valid_until: None,
        signed_by: wanted.keys.to_string(),
        key: wanted
            .keys
            .certificates()
            .ok_or("its keys cannot be written")?,
        indexes,
        packages: Vec::new(),
    };
    let mirrors = places.urls[1..].to_vec();
    let read = async |kind| packed(resolver, &source, &repomd, &mirrors, kind).await;
    let primary = read("primary")
        .await?
        .ok_or("its repomd.xml names no primary index")?;
    let modules = read("modules").await?;
    let metadata = SourceMetadata {
        url: source.url.clone(),
        primary,
        modules,
        files: None,
    };
    Ok(YumRepository {
        source,
        repomd,
        mirrors,
        metadata,
    })
}

/// A verified `repomd.xml`.
#[derive(Clone, PartialEq)]
struct SignedList {
    bytes: Bytes,
    signature: Option<Bytes>,
    repomd: Repomd,
}

/// Fetches `repomd.xml` from the first of `places` that has a valid one.
async fn signed_list(
    resolver: &Resolver,
    wanted: &PackageSourceRequest,
    places: &MirrorUrls,
    old: Option<&PackageSource>,
) -> Result<SignedList, ResolveError> {
    let (own, mirrors) = places.urls.split_first().ok_or("it has no URL")?;
    let mut found = list_at(resolver, wanted, own, places, old).await;
    for mirror in mirrors {
        let Err(cause) = found else { break };
        let next = list_at(resolver, wanted, mirror, places, old)
            .await
            .and_then(|list| {
                // an unsigned `repomd.xml` is accepted from the repository's own URL, but never
                // from a mirror, which anybody may run
                if list.signature.is_some() || places.repomd.is_some() {
                    Ok(list)
                } else {
                    Err("it is not signed, and no metalink has its digest".into())
                }
            });
        found = next.map_err(|next| cause.followed_by(&next.about(mirror)));
    }
    found
}

/// Fetches `repomd.xml` below `url` and verifies it: by its digest in a metalink, its signature,
/// and its age.
async fn list_at(
    resolver: &Resolver,
    wanted: &PackageSourceRequest,
    url: &str,
    places: &MirrorUrls,
    old: Option<&PackageSource>,
) -> Result<SignedList, ResolveError> {
    let most = resolver.limits().document_bytes;
    let bytes = resolver
        .small_file(&file_url(url, REPOMD), most, None)
        .await?;
    if let Some(digests) = &places.repomd
        && !digests.iter().any(|digest| digest.matches(&bytes))
    {
        let why = "none of its digests is that of repomd.xml: the mirror is behind, or was changed";
        return Err(ResolveError::from(why).about("the metalink"));
    }
    let signature = match resolver
        .small_file(&file_url(url, SIGNATURE), most, None)
        .await
    {
        Ok(signature) => {
            let signed = wanted
                .keys
                .verify_detached(&signature, SignatureTime::Now, || Ok(&bytes[..]));
            signed.map_err(|error| ResolveError::from(format!("{SIGNATURE}: {error}")))?;
            Some(signature)
        }
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
    if was_signed && signature.is_none() && places.repomd.is_none() {
        let why = "it has no signature any more, and had one when it was locked; take the item \
                   out of the lock to accept that";
        return Err(ResolveError::from(why).about(REPOMD));
    }
    Ok(SignedList {
        bytes,
        signature,
        repomd,
    })
}

impl YumRepository {
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

/// Whether clients download an index of this kind by default: not the sqlite forms, which only yum
/// of release 7 uses, and not changelogs.
fn is_carried(kind: &str) -> bool {
    !kind.starts_with("other") && !kind.ends_with("_db")
}

fn listed(url: &str, index: &RepomdIndex) -> Result<PackageIndex, ResolveError> {
    let path = index.path.clone();
    let size = index
        .size
        .ok_or_else(|| format!("its repomd.xml gives {path} no size"))?;
    Ok(PackageIndex {
        digest: index.digest.clone(),
        size,
        url: file_url(url, &path),
        path,
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
    let Some(index) = repomd.index(kind) else {
        return Ok(None);
    };
    let mut packed = PackedIndex::of(index, resolver.limits().package_index_bytes)?;
    packed.bytes = fetch(resolver, source, &listed(&source.url, index)?, mirrors).await?;
    Ok(Some(packed))
}
