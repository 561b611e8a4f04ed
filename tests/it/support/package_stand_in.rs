//! apt or yum repositories with all packages that a shipped manifest requests.

use super::Place;
use super::apt::AptUpstream;
use super::images::sha256_hex;
use super::library::MergedManifest;
use super::yum::YumUpstream;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Repositories of the kind that the manifest needs.
pub enum PackageStandIn {
    Apt(AptUpstream),
    Yum(YumUpstream),
}

impl PackageStandIn {
    /// Returns repositories for the manifests in `folder`, and writes their key to each path that
    /// the manifests name for a key.
    /// `None` if the manifests name no packages, or if a program is missing.
    pub fn new(folder: &Path) -> Option<PackageStandIn> {
        let files = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let text: String = files
            .filter_map(|file| fs::read_to_string(file).ok())
            .collect();
        let made = match () {
            () if text.contains("\n  - apt:") => PackageStandIn::Apt(AptUpstream::new()?),
            () if text.contains("\n  - yum:") => PackageStandIn::Yum(YumUpstream::new()?),
            () => return None,
        };
        put_keys(
            folder,
            &text,
            &fs::read(made.place().path("key.asc")).unwrap(),
        );
        Some(made)
    }

    fn place(&self) -> &Place {
        match self {
            PackageStandIn::Apt(apt) => &apt.place,
            PackageStandIn::Yum(yum) => &yum.place,
        }
    }

    /// Writes the repositories for everything that `wanted` requests. Returns the folder that
    /// contains them, each below `files/HOST`.
    pub fn make(&self, wanted: &MergedManifest) -> PathBuf {
        let requested: BTreeSet<(&str, String)> = wanted
            .requests
            .packages
            .iter()
            .flat_map(|wish| &wish.install)
            .map(|requested| match self {
                PackageStandIn::Apt(_) => named(requested, requested.split_once('=')),
                PackageStandIn::Yum(_) => named(requested, version_of(requested)),
            })
            .collect();
        let sources = wanted
            .requests
            .packages
            .iter()
            .flat_map(|wish| &wish.sources);
        let folder = |url: &str| format!("files/{}", url.split_once("://").unwrap().1);
        match self {
            PackageStandIn::Apt(apt) => {
                let mut all = requested;
                // apt is installed on every machine
                all.insert(("apt", "1".into()));
                let text: String = all
                    .iter()
                    .map(|(name, version)| self.deb(name, version))
                    .collect();
                for source in sources {
                    apt_repository(
                        apt,
                        &folder(&source.url),
                        &source.suite,
                        &source.components,
                        &text,
                    );
                }
            }
            PackageStandIn::Yum(yum) => {
                let packages: Vec<_> = requested
                    .iter()
                    .map(|(name, version)| (*name, version.as_str(), "", &[] as &[&str]))
                    .collect();
                yum.build(&packages);
                for url in sources.map(|source| &source.url).collect::<BTreeSet<_>>() {
                    yum.copy(&folder(url));
                }
            }
        }
        self.place().path("up/r")
    }

    /// Writes the file of a package to `pool`, and returns the package's index entry.
    fn deb(&self, name: &str, version: &str) -> String {
        let bytes = format!("{name} {version}");
        let path = format!("pool/{name}.deb");
        self.place().write(&format!("up/r/{path}"), &bytes);
        let size = bytes.len();
        let digest = sha256_hex(bytes.as_bytes());
        format!(
            "Package: {name}\nVersion: {version}\nArchitecture: amd64\nPriority: required\nFilename: {path}\nSize: {size}\n\
             SHA256: {digest}\nDescription: a test\n\n"
        )
    }
}

/// Writes `key` below `folder` at each path that `text` names for a key.
pub fn put_keys(folder: &Path, text: &str, key: &[u8]) {
    for path in text
        .split("key: ")
        .skip(1)
        .filter_map(|rest| rest.split(['}', ',', '\n']).next())
    {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, key).unwrap();
    }
}

fn apt_repository(
    apt: &AptUpstream,
    root: &str,
    suite: &str,
    components: &[String],
    packages: &str,
) {
    let pool = apt.place.path(format!("up/r/{root}/pool"));
    if !pool.exists() {
        fs::create_dir_all(pool.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(apt.place.path("up/r/pool"), pool).unwrap();
    }
    if suite.ends_with('/') {
        apt.index(root, "Packages", packages.as_bytes());
        return apt.release(root, "");
    }
    let folder = format!("{root}/dists/{suite}");
    for component in components {
        apt.index(
            &format!("{folder}/{component}/binary-amd64"),
            "Packages",
            packages.as_bytes(),
        );
    }
    let components = components.join(" ");
    apt.release(
        &folder,
        &format!(
            "Suite: {suite}\nCodename: {suite}\nArchitectures: amd64\nComponents: {components}\n"
        ),
    );
}

/// The name in a request, and a version that satisfies it.
fn named<'a>(requested: &'a str, parts: Option<(&'a str, &'a str)>) -> (&'a str, String) {
    let (name, version) = parts.unwrap_or((requested, "1"));
    (name, version.replace('*', "1"))
}

/// Splits `containerd.io-2.2*` before the number that begins the version.
fn version_of(requested: &str) -> Option<(&str, &str)> {
    let at = requested
        .match_indices('-')
        .find(|(at, _)| requested[at + 1..].starts_with(|c: char| c.is_ascii_digit()))?
        .0;
    Some((&requested[..at], &requested[at + 1..]))
}
