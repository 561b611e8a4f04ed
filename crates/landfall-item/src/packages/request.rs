//! Packages as a manifest asks for them.

use landfall_model::Digest;
use landfall_model::document::SourceLocation;
use landfall_model::sign::OpenPgpKeys;
use landfall_packages::apt;
use landfall_packages::yum::Pin;
use schemars::JsonSchema;
use serde::Deserialize;
use std::fmt;
use std::sync::Arc;

/// What a kind of machine is to install, and from where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageSetRequest {
    /// Its name in the lock.
    pub name: String,
    /// Where it comes from, in the order of preference.
    pub sources: Vec<PackageSourceRequest>,
    /// The architectures, the native one first.
    pub architectures: Vec<String>,
    /// What is installed, as `apt-get install` or `dnf install` takes it, each once: for apt in the
    /// order of the manifest, which its choice follows, and for dnf sorted.
    pub install: Vec<String>,
    /// Whether what is recommended is installed too.
    pub recommends: bool,
    /// Under whose metadata they are offered.
    pub index: OfferedIndex,
    /// What the machines have; several where there are several kinds of them. Without one nobody
    /// says.
    pub bases: Vec<MachineBase>,
    /// The position of the entry in the manifest.
    pub at: SourceLocation,
}

/// A suite of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageSourceRequest {
    /// The URL of the repository, without a slash at its end.
    pub url: String,
    /// The suite; it ends with a slash where the repository is flat. Empty for yum.
    pub suite: String,
    /// The `Codename` or `Suite` that its release must have in place of the name of the suite.
    pub codename: Option<String>,
    /// The components; none in a flat repository.
    pub components: Vec<String>,
    /// Which indexes are carried besides those of packages, by the names of apt's targets, sorted;
    /// none for yum.
    pub targets: Vec<String>,
    /// Who may have signed it.
    pub keys: OpenPgpKeys,
    /// The list of mirrors from which metadata and packages are fetched.
    pub mirrors: Option<MirrorsRequest>,
}

/// What names the mirrors of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MirrorsRequest {
    /// The URL of a metalink, which also has the digest that the list of the indexes must have.
    Metalink(String),
    /// The URL of a plain list.
    List(String),
}

/// Under whose metadata packages are offered at the far side.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OfferedIndex {
    /// What the repositories signed, unchanged: machines see all their packages.
    #[default]
    Signed,
    /// Metadata of what is carried alone, which the site signs.
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

/// What a machine has before anything is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MachineBase {
    /// Nothing is installed.
    None,
    /// What debootstrap makes a minimal root of.
    Minimal,
    /// What debootstrap installs by default, and all of the priority `standard`.
    Standard,
    /// What a dpkg status file says.
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
    /// Whether it comes from repositories of yum.
    pub fn is_yum(&self) -> bool {
        self.name.starts_with("yum:")
    }

    /// What upstream calls the version of a package: without epoch and revision.
    pub fn upstream_version<'v>(&self, version: &'v str) -> &'v str {
        if self.is_yum() {
            Pin::upstream(version)
        } else {
            apt::upstream_version(version)
        }
    }
}

/// Adds `text` to `install`, unless it is there.
pub(super) fn add_request(install: &mut Vec<String>, text: String) {
    if !install.contains(&text) {
        install.push(text);
    }
}

impl PackageSourceRequest {
    /// Its URL and suite, for people.
    pub(super) fn place(&self) -> String {
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
            ..
        } = self;
        let targets = targets
            .iter()
            .map(|target| format!(" with {target}"))
            .collect::<String>();
        write!(
            f,
            "{url} {suite} {}{targets} by {keys}",
            components.join(" ")
        )
    }
}
