//! Fetches the metadata of a repository of yum and checks it: `repomd.xml` by its signature, each index by `repomd.xml`.

use super::fetch::{fetch, kept};
use super::locked::{PackageIndex, PackageSource};
use super::wish::WantedSource;
use crate::http::ErrorKind;
use crate::item::resolver::{Cause, Resolver};
use crate::packages::file_url;
use crate::packages::yum::{Index, Metadata, MetadataError, PackedIndex, Repomd, YumError, read_mirrors};

const REPOMD: &str = "repodata/repomd.xml";
const SIGNATURE: &str = "repodata/repomd.xml.asc";

/// A repository whose metadata is right.
#[derive(Debug, Clone)]
pub(super) struct Repository {
    /// What the lock says of it, still without packages.
    pub(super) source: PackageSource,
    repomd: Repomd,
    /// The indexes that were read.
    pub(super) metadata: Metadata,
}

impl From<YumError> for Cause {
    fn from(error: YumError) -> Cause {
        error.to_string().into()
    }
}

impl From<MetadataError> for Cause {
    fn from(error: MetadataError) -> Cause {
        error.to_string().into()
    }
}

/// Fetches the metadata of `wanted`, without the list of all files.
pub(super) async fn repository(resolver: &Resolver, wanted: &WantedSource) -> Result<Repository, Cause> {
    let most = resolver.limits().document_bytes;
    let url = file_url(&wanted.url, REPOMD);
    let bytes = resolver.small_file(&url, most, None).await?;
    if let Some(metalink) = &wanted.metalink {
        check_metalink(resolver, metalink, &bytes).await.map_err(|cause| cause.of("the metalink"))?;
    }
    let mut indexes = Vec::new();
    match resolver.small_file(&file_url(&wanted.url, SIGNATURE), most, None).await {
        Ok(signature) => {
            let signed = wanted.keys.verify_detached(&signature, &bytes[..]);
            signed.map_err(|error| Cause::from(format!("{SIGNATURE}: {error}")))?;
            indexes.push(kept(resolver, wanted, SIGNATURE.into(), signature).await);
        }
        Err(error) if error.kind == ErrorKind::NotFound => resolver.note_once(&format!(
            "{} does not sign its metadata; its packages are checked by `landfall pull`",
            wanted.url
        )),
        Err(error) => return Err(Cause::from(error).of(SIGNATURE)),
    }
    let repomd = Repomd::parse(&bytes).map_err(|error| Cause::from(error).of(REPOMD))?;
    indexes.push(kept(resolver, wanted, REPOMD.into(), bytes).await);
    for index in repomd.indexes.iter().filter(|index| is_carried(&index.kind)) {
        indexes.push(listed(wanted, index)?);
    }
    indexes.sort_by(|a, b| a.path.cmp(&b.path));
    indexes.dedup();
    let source = PackageSource {
        url: wanted.url.clone(),
        suite: String::new(),
        components: Vec::new(),
        by_hash: false,
        date: None,
        valid_until: None,
        signed_by: wanted.keys.to_string(),
        key: wanted.keys.certificates().ok_or("its keys cannot be written")?,
        indexes,
        packages: Vec::new(),
    };
    let primary = packed(resolver, wanted, &source, &repomd, "primary").await?;
    let primary = primary.ok_or("its repomd.xml names no primary index")?;
    let modules = packed(resolver, wanted, &source, &repomd, "modules").await?;
    let metadata = Metadata { url: source.url.clone(), primary, modules, files: None };
    Ok(Repository { source, repomd, metadata })
}

impl Repository {
    /// Fetches the list of all files too.
    pub(super) async fn fetch_files(
        &mut self,
        resolver: &Resolver,
        wanted: &WantedSource,
    ) -> Result<(), Cause> {
        self.metadata.files = packed(resolver, wanted, &self.source, &self.repomd, "filelists").await?;
        Ok(())
    }
}

/// Whether a client may ask for an index of this kind without being told to: not for the forms of sqlite, which the yum of
/// release 7 alone takes where it finds them, and not for changelogs.
fn is_carried(kind: &str) -> bool {
    !kind.starts_with("other") && !kind.ends_with("_db")
}

fn listed(wanted: &WantedSource, index: &Index) -> Result<PackageIndex, Cause> {
    let path = index.path.clone();
    let size = index.size.ok_or_else(|| format!("its repomd.xml gives {path} no size"))?;
    Ok(PackageIndex { digest: index.digest.clone(), size, url: file_url(&wanted.url, &path), path })
}

/// The index of this kind as it is packed, where the repository has one.
async fn packed(
    resolver: &Resolver,
    wanted: &WantedSource,
    source: &PackageSource,
    repomd: &Repomd,
    kind: &str,
) -> Result<Option<PackedIndex>, Cause> {
    let Some(index) = repomd.index(kind) else { return Ok(None) };
    let mut packed = PackedIndex::of(index, resolver.limits().package_index_bytes)?;
    packed.bytes = fetch(resolver, source, &listed(wanted, index)?).await?;
    Ok(Some(packed))
}

async fn check_metalink(resolver: &Resolver, url: &str, repomd: &[u8]) -> Result<(), Cause> {
    let bytes = resolver.small_file(url, resolver.limits().document_bytes, None).await?;
    let mirrors = read_mirrors(&bytes)?;
    match mirrors.repomd.iter().any(|digest| digest.matches(repomd)) {
        true => Ok(()),
        false => {
            Err("none of its digests is that of repomd.xml: the mirror is behind, or was changed".into())
        }
    }
}
