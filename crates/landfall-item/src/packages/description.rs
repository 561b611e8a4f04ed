//! Describes the packages of a set for an SBOM: with vendor, distribution and licence, as far as
//! the carried metadata contains them.

use super::locked::{LockedPackage, LockedPackageSet, PackageIndex, PackageSource};
use landfall_content::BlobRead;
use landfall_model::sign::{OpenPgpKeys, SignatureTime};
use landfall_model::{Descriptor, Failure, Limits, media_type};
use landfall_packages::apt::ReleaseNames;
use landfall_packages::yum::{PackageLabels, PackedIndex, Repomd};
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

impl LockedPackageSet {
    /// Describes the packages of all sources, from the metadata in `blobs`.
    ///
    /// # Errors
    /// If carried metadata is missing or damaged.
    pub fn describe(
        &self,
        blobs: &dyn BlobRead,
        limits: &Limits,
    ) -> Result<Vec<PackageDescription<'_>>, Failure> {
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
            all.extend(described.map_err(|why| {
                let url = &source.url;
                Failure::failed(format!("cannot read the metadata of {url}: {why}"))
            })?);
        }
        Ok(all)
    }
}

impl PackageSource {
    fn described_debs(&self, blobs: &dyn BlobRead) -> Result<Vec<PackageDescription<'_>>, Failure> {
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
    ) -> Result<Vec<PackageDescription<'_>>, Failure> {
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
    ) -> Result<BTreeMap<String, PackageLabels>, Failure> {
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
        let mut packed = PackedIndex::of(&index, limits)?;
        packed.bytes = primary.read(blobs)?.into();
        // the index describes every package of the repository, but only a few are carried
        let digests: BTreeSet<String> = self
            .packages
            .iter()
            .map(|package| package.digest.hex())
            .collect();
        packed.labels(&digests)
    }
}

// Reads the indexes of a locked set from a store or a bundle, and verifies their digests.

impl PackageIndex {
    /// Reads the index from `blobs`.
    ///
    /// # Errors
    /// If the index is missing or damaged.
    pub fn read(&self, blobs: &dyn BlobRead) -> Result<Vec<u8>, Failure> {
        let descriptor = Descriptor::new(self.digest.clone(), self.size, media_type::OCTETS);
        let bytes = blobs.read(&descriptor);
        bytes.map_err(|error| Failure::failed(format!("{}: {error}", self.path)))
    }

    /// Decodes the content of this index as UTF-8.
    ///
    /// # Errors
    /// If the content is not UTF-8.
    pub fn text_of(&self, bytes: Vec<u8>) -> Result<String, Failure> {
        String::from_utf8(bytes)
            .map_err(|_| Failure::failed(format!("{} is not UTF-8 text", self.path)))
    }
}

impl PackageSource {
    /// The Release file of an apt suite and its text; `None` if the lock has none. The signature of
    /// `InRelease` is verified, but not a detached one.
    ///
    /// # Errors
    /// If the file is missing, damaged or not UTF-8 text, or if `InRelease` is not signed by the
    /// locked key.
    pub fn release(
        &self,
        blobs: &dyn BlobRead,
    ) -> Result<Option<(&PackageIndex, String)>, Failure> {
        if let Some(index) = self.index_called("InRelease") {
            let signed = index.text_of(index.read(blobs)?)?;
            // The key may have expired since it signed. `lock` verified the signature while the
            // key was valid, and a bundle may be used after the key expired.
            let (text, _) = OpenPgpKeys::parse(self.key.as_bytes())
                .and_then(|keys| keys.verify(&signed, SignatureTime::Made))
                .map_err(|error| Failure::failed(format!("{}: {error}", index.path)))?;
            return Ok(Some((index, text)));
        }
        let Some(index) = self.index_called("Release") else {
            return Ok(None);
        };
        Ok(Some((index, index.text_of(index.read(blobs)?)?)))
    }

    /// The carried index with this file name.
    fn index_called(&self, name: &str) -> Option<&PackageIndex> {
        self.indexes
            .iter()
            .find(|index| index.path.rsplit('/').next() == Some(name))
    }
}
