//! The providers of locks as a mirror: the tree that the provider network mirror protocol defines
//! (opentofu.org/docs/internals/provider-network-mirror-protocol). OpenTofu and Terraform also read
//! it as a filesystem mirror.

use super::address::{ProviderAddress, ProviderPlatform};
use super::kind::{LockedProvider, LockedProviderPackage};
use landfall_model::Digest;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A mirror of providers.
#[derive(Debug, Clone, Default)]
pub struct ProviderMirror(
    BTreeMap<ProviderAddress, BTreeMap<String, BTreeMap<ProviderPlatform, MirroredPackage>>>,
);

#[derive(Debug, Clone)]
struct MirroredPackage {
    file: String,
    package: LockedProviderPackage,
}

/// A file of a mirror.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MirrorFile {
    /// A JSON document that lists versions or packages.
    Document(String),
    /// A package.
    Package {
        /// Its digest.
        digest: Digest,
        /// Its size in bytes.
        size: u64,
    },
}

impl ProviderMirror {
    /// Adds the packages of a provider. Returns a line for each package that replaces a package
    /// whose digest differs.
    pub fn add(&mut self, provider: &LockedProvider) -> Vec<String> {
        let name = &provider.name;
        let versions = self.0.entry(name.address.clone()).or_default();
        let version = versions.entry(name.version.clone()).or_default();
        let mut replaced = Vec::new();
        for package in &provider.packages {
            let added = MirroredPackage {
                file: name.package_file(&package.platform),
                package: package.clone(),
            };
            let before = version.insert(package.platform.clone(), added);
            if let Some(before) = before.filter(|one| one.package.digest != package.digest) {
                replaced.push(format!(
                    "{name} for {}: {} instead of {}",
                    package.platform, package.digest, before.package.digest
                ));
            }
        }
        replaced
    }

    /// Whether there are no providers.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All files by their paths: `<host>/<namespace>/<type>/index.json`, `<version>.json` beside
    /// it, and the packages.
    pub fn files(&self) -> BTreeMap<String, MirrorFile> {
        let mut files = BTreeMap::new();
        for (address, versions) in &self.0 {
            let listed: Map<String, Value> = versions
                .keys()
                .map(|version| (version.clone(), json!({})))
                .collect();
            let index = document(&json!({"versions": listed}));
            files.insert(format!("{address}/index.json"), index);
            for (version, packages) in versions {
                let archives = document(&json!({"archives": archives(packages)}));
                files.insert(format!("{address}/{version}.json"), archives);
                for MirroredPackage { file, package } in packages.values() {
                    let file = format!("{address}/{file}");
                    let digest = package.digest.clone();
                    let size = package.size;
                    files.insert(file, MirrorFile::Package { digest, size });
                }
            }
        }
        files
    }
}

/// The archives of a version, by platform.
fn archives(packages: &BTreeMap<ProviderPlatform, MirroredPackage>) -> Map<String, Value> {
    let archives = packages.iter();
    let archives = archives.map(|(platform, MirroredPackage { file, package })| {
        let archive = json!({"url": file, "hashes": [package.h1, package.zh()]});
        (platform.to_string(), archive)
    });
    archives.collect()
}

fn document(value: &Value) -> MirrorFile {
    MirrorFile::Document(format!("{value:#}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn provider(version: &str, content: &[u8]) -> LockedProvider {
        let name = format!("provider:h.test/a/b:{version}");
        LockedProvider {
            name: name.parse().unwrap(),
            digest: Digest::sha256(b""),
            platforms: Vec::new(),
            packages: vec![LockedProviderPackage {
                platform: "linux_amd64".parse().unwrap(),
                url: "https://h.test/x.zip".into(),
                digest: Digest::sha256(content),
                size: content.len() as u64,
                h1: "h1:x".into(),
            }],
        }
    }

    #[test]
    fn a_mirror_has_documents_and_packages() {
        let mut mirror = ProviderMirror::default();
        assert!(mirror.is_empty());
        for (version, content) in [("1.0.0", b"1"), ("1.1.0", b"2"), ("1.1.0", b"2")] {
            assert_eq!(mirror.add(&provider(version, content)), [""; 0]);
        }
        assert_eq!(mirror.add(&provider("1.1.0", b"3")).len(), 1);
        let files = mirror.files();
        let paths: Vec<&str> = files.keys().map(String::as_str).collect();
        assert_eq!(
            paths,
            [
                "h.test/a/b/1.0.0.json",
                "h.test/a/b/1.1.0.json",
                "h.test/a/b/index.json",
                "h.test/a/b/terraform-provider-b_1.0.0_linux_amd64.zip",
                "h.test/a/b/terraform-provider-b_1.1.0_linux_amd64.zip",
            ]
        );
        let MirrorFile::Document(document) = &files["h.test/a/b/1.1.0.json"] else {
            panic!("not a document")
        };
        let document: Value = serde_json::from_str(document).unwrap();
        let zh = format!("zh:{}", Digest::sha256(b"3").hex());
        let archive = json!({
            "url": "terraform-provider-b_1.1.0_linux_amd64.zip", "hashes": ["h1:x", zh],
        });
        assert_eq!(document, json!({"archives": {"linux_amd64": archive}}));
    }
}
