//! Errors in the metadata of an apt repository, and in compressed indexes.

use std::fmt;

// The identity of a package according to its own file.

/// The name, version and architecture in the control file or header of a package file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageIdentity {
    /// The name of the package, without version and architecture.
    pub name: String,
    /// The Debian version, or `[epoch:]version-release` of an RPM package. An epoch of 0 is
    /// omitted.
    pub version: String,
    /// The architecture that the package was built for, such as `amd64` or `noarch`.
    pub arch: String,
}

impl fmt::Display for PackageIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // the fields come from the file, which may contain control characters
        let text = format!("{} {} {}", self.name, self.version, self.arch);
        write!(f, "{}", text.escape_debug())
    }
}
