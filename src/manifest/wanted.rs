//! What all manifests together ask for: expanded, merged, sorted.

use crate::lockfile::Accepted;
use crate::model::{Digest, ImageRef, Platform};
use std::fmt;

/// Everything that is wanted. Each list is sorted by name and holds a name once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Images.
    pub images: Vec<WantedImage>,
    /// Plain files.
    pub files: Vec<WantedFile>,
    /// Losses that are accepted.
    pub missing: Vec<Accepted>,
    /// Hosts that cannot be mirrored and must stay reachable.
    pub endpoints: Vec<Endpoint>,
}

/// A wanted image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedImage {
    /// With a tag and no digest, or, where no tag was written, with a digest alone.
    pub name: ImageRef,
    /// The digest that a tag must have. `None` for an image that is named by digest.
    pub pin: Option<Digest>,
    /// The platforms, sorted; empty means all.
    pub platforms: Vec<Platform>,
    /// What `landfall update` may move to.
    pub update: Option<String>,
    /// Whether its referrers are looked up and carried.
    pub referrers: bool,
    /// Where it is written.
    pub at: Location,
}

/// A wanted file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedFile {
    /// Where it comes from: http or https, no userinfo, in its normal form.
    pub url: String,
    /// What it is checked against.
    pub checksum: Option<Checksum>,
    /// Other URLs that it answers to, sorted.
    pub also: Vec<String>,
    /// Permission bits for exports, octal text such as `0755`.
    pub mode: Option<String>,
    /// Where it is written.
    pub at: Location,
}

/// What a file is checked against. Shown as it stands in a lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Checksum {
    /// A digest.
    Digest(Digest),
    /// The URL of a checksum file.
    Sidecar(String),
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Checksum::Digest(digest) => digest.fmt(f),
            Checksum::Sidecar(url) => f.write_str(url),
        }
    }
}

/// A host that cannot be mirrored and must stay reachable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Host name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// What it is needed for; several reasons are joined by `; `.
    pub why: String,
}

/// A place in an input file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The file as the user named it.
    pub file: String,
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}
