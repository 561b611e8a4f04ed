//! Describes the packages of a set for an SBOM: with vendor, distribution and licence, as far as
//! the carried metadata contains them.

use super::carried_index::PackageIndexError;
use super::locked::{LockedPackage, LockedPackageSet, PackageSource};
use landfall_content::BlobRead;
use landfall_model::Limits;
use landfall_packages::apt::ReleaseNames;
use landfall_packages::yum::{PackageLabels, PackedIndex, Repomd, YumError};
use std::collections::{BTreeMap, BTreeSet};

/// The description of a package for an SBOM.
#[derive(Debug)]
pub struct PackageDescription<'a> {
    /// The lock's record of the package.
    pub package: &'a LockedPackage,
    /// Whether it is a Debian package; otherwise it is an RPM package.
    pub is_deb: bool,
    /// The URL of the repository that it comes from.
    pub repository: &'a str,
    /// The vendor: the `Origin` of the apt release, or the `Vendor` of the RPM package.
    pub vendor: Option<String>,
    /// The code name of its distribution, if it comes from an apt suite.
    pub distro: Option<String>,
    /// The licence that the repository names. apt indexes contain none.
    pub license: Option<String>,
}

/// Why the carried metadata of a source cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the metadata of {url}: {why}")]
pub struct DescribeError {
    url: String,
    why: DescribeReason,
}

#[derive(Debug, thiserror::Error)]
enum DescribeReason {
    #[error(transparent)]
    Index(#[from] PackageIndexError),
    #[error(transparent)]
    Yum(#[from] YumError),
}

impl LockedPackageSet {
    /// Describes the packages of all sources, from the metadata in `blobs`.
    ///
    /// # Errors
    /// If carried metadata is missing or damaged.
    pub fn describe(
        &self,
        blobs: &dyn BlobRead,
        limits: &Limits,
    ) -> Result<Vec<PackageDescription<'_>>, DescribeError> {
        let mut all = Vec::new();
        for source in self
            .sources
            .iter()
            .filter(|source| !source.packages.is_empty())
        {
            let described = if self.is_yum() {
                source.described_rpms(blobs, limits)
            } else {
                source.described_debs(blobs)
            };
            all.extend(described.map_err(|why| DescribeError {
                url: source.url.clone(),
                why,
            })?);
        }
        Ok(all)
    }
}

impl PackageSource {
    fn described_debs(
        &self,
        blobs: &dyn BlobRead,
    ) -> Result<Vec<PackageDescription<'_>>, DescribeReason> {
        let names = self
            .release(blobs)?
            .map(|(_, text)| ReleaseNames::parse(&text))
            .unwrap_or_default();
        let described = self.packages.iter().map(|package| PackageDescription {
            package,
            is_deb: true,
            repository: &self.url,
            vendor: names.origin.clone(),
            distro: names.distro.clone(),
            license: None,
        });
        Ok(described.collect())
    }

    fn described_rpms(
        &self,
        blobs: &dyn BlobRead,
        limits: &Limits,
    ) -> Result<Vec<PackageDescription<'_>>, DescribeReason> {
        let mut labels = self.labels(blobs, limits)?;
        let described = self.packages.iter().map(|package| {
            let PackageLabels { license, vendor } =
                labels.remove(&package.digest.hex()).unwrap_or_default();
            PackageDescription {
                package,
                is_deb: false,
                repository: &self.url,
                vendor,
                distro: None,
                license,
            }
        });
        Ok(described.collect())
    }

    /// The vendor and licence of each carried package, by hexadecimal digest. They are read from
    /// the carried primary index.
    fn labels(
        &self,
        blobs: &dyn BlobRead,
        limits: &Limits,
    ) -> Result<BTreeMap<String, PackageLabels>, DescribeReason> {
        let carried = |path: &str| self.indexes.iter().find(|index| index.path == path);
        let Some(repomd) = carried("repodata/repomd.xml") else {
            return Ok(BTreeMap::new());
        };
        let repomd = Repomd::parse(&repomd.read(blobs)?)?;
        let Some(index) = repomd.index(&self.url, "primary")? else {
            return Ok(BTreeMap::new());
        };
        let Some(primary) = carried(&index.path) else {
            return Ok(BTreeMap::new());
        };
        let mut packed = PackedIndex::of(&index, limits.package_index_bytes)?;
        packed.bytes = primary.read(blobs)?.into();
        // the index describes every package of the repository, but only a few are carried
        let digests: BTreeSet<String> = self
            .packages
            .iter()
            .map(|package| package.digest.hex())
            .collect();
        Ok(packed.labels(&digests)?)
    }
}
