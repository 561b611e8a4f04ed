//! A request for a set of packages.

use landfall_model::Digest;
use landfall_model::document::SourceLocation;
use landfall_model::sign::OpenPgpKeys;
use landfall_packages::apt;
use landfall_packages::yum::RpmPin;
use schemars::JsonSchema;
use serde::Deserialize;
use std::fmt;
use std::sync::Arc;

/// The packages that machines install, and their sources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageSetRequest {
    /// The name in the lock.
    pub name: String,
    /// The repositories, in order of preference.
    pub sources: Vec<PackageSourceRequest>,
    /// The architectures, the native one first.
    pub architectures: Vec<String>,
    /// The packages, as `apt-get install` or `dnf install` accepts them, without duplicates: for
    /// apt in the order of the manifest, which influences its choice; for dnf sorted.
    pub install: Vec<String>,
    /// Whether recommended packages are installed as well.
    pub recommends: bool,
    /// The metadata with which the packages are served.
    pub index: OfferedIndex,
    /// What is installed on the machines already; one base for each kind of machine. If the list is
    /// empty, the installed packages are not known.
    pub bases: Vec<MachineBase>,
    /// The position of the entry in the manifest.
    pub at: SourceLocation,
}

/// A repository, or a suite of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageSourceRequest {
    /// The URL of the repository, without a trailing slash.
    pub url: String,
    /// The suite. It ends with a slash if the repository is flat, and is empty for yum.
    pub suite: String,
    /// The `Codename` or `Suite` that the Release file must have, if it differs from the suite's
    /// name.
    pub codename: Option<String>,
    /// Whether a release is rejected after its `Valid-Until`.
    pub check_valid_until: bool,
    /// The components. A flat repository has none.
    pub components: Vec<String>,
    /// The indexes to carry in addition to the package indexes, by the names of apt's targets,
    /// sorted; none for yum.
    pub targets: Vec<String>,
    /// The keys that may have signed the repository.
    pub keys: OpenPgpKeys,
    /// The list of mirrors from which metadata is fetched if `url` fails.
    pub mirrors: Option<MirrorsRequest>,
    /// Other hosts from which packages may come, because the repository lists their URLs; none for
    /// apt.
    pub hosts: Vec<String>,
}

/// A list of mirrors of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MirrorsRequest {
    /// The URL of a metalink, which also contains the digest of `repomd.xml`.
    Metalink(String),
    /// The URL of a plain list of mirrors.
    List(String),
}

/// The metadata with which packages are served on the other side of the air gap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OfferedIndex {
    /// The signed metadata of the repositories, unchanged. Machines see all packages of the
    /// repositories, carried or not.
    #[default]
    Signed,
    /// Generated metadata that lists only the carried packages, signed by the site.
    Trimmed,
}

impl fmt::Display for OfferedIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OfferedIndex::Signed => "signed",
            OfferedIndex::Trimmed => "trimmed",
        })
    }
}

/// What is installed on a machine already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MachineBase {
    /// Nothing is installed.
    None,
    /// The packages that `debootstrap --variant=minbase` installs.
    Minimal,
    /// The packages that debootstrap installs by default, and those of the priority `standard`.
    Standard,
    /// The content of a dpkg status file.
    Status(Arc<str>),
    /// The output of `rpm -qa`.
    Rpms(Arc<str>),
}

impl fmt::Display for MachineBase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MachineBase::None => f.write_str("none"),
            MachineBase::Minimal => f.write_str("minimal"),
            MachineBase::Standard => f.write_str("standard"),
            MachineBase::Status(text) => write!(f, "status {}", Digest::sha256(text.as_bytes())),
            MachineBase::Rpms(text) => write!(f, "rpms {}", Digest::sha256(text.as_bytes())),
        }
    }
}

impl PackageSetRequest {
    /// Whether the request is for yum and dnf.
    pub fn is_yum(&self) -> bool {
        self.name.starts_with("yum:")
    }

    /// The upstream part of a package version, without epoch and revision.
    pub fn upstream_version<'v>(&self, version: &'v str) -> &'v str {
        if self.is_yum() {
            RpmPin::upstream(version)
        } else {
            apt::upstream_version(version)
        }
    }
}

/// Adds `text` to `install` unless it is listed already.
pub(super) fn add_request(install: &mut Vec<String>, text: String) {
    if !install.contains(&text) {
        install.push(text);
    }
}

impl PackageSourceRequest {
    /// URL and suite, for messages.
    pub(super) fn describe(&self) -> String {
        format!("{} {}", self.url, self.suite).trim_end().to_owned()
    }
}

impl fmt::Display for PackageSourceRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            url,
            suite,
            components,
            targets,
            keys,
            codename,
            check_valid_until,
            mirrors,
            hosts,
        } = self;
        let targets = targets
            .iter()
            .map(|target| format!(" with {target}"))
            .collect::<String>();
        write!(
            f,
            "{url} {suite} {}{targets} by {keys}",
            components.join(" ")
        )?;
        if let Some(codename) = codename {
            write!(f, " as {codename}")?;
        }
        if !check_valid_until {
            write!(f, ", also expired")?;
        }
        if !hosts.is_empty() {
            write!(f, ", also from {}", hosts.join(" "))?;
        }
        match mirrors {
            Some(MirrorsRequest::Metalink(url)) => write!(f, " with the metalink {url}"),
            Some(MirrorsRequest::List(url)) => write!(f, " with the mirror list {url}"),
            None => Ok(()),
        }
    }
}
