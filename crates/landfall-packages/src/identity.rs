//! What the file of a package says that it is.

use std::fmt;

/// The name, version and architecture in the header of a package file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageIdentity {
    /// The name of the package, without version and architecture.
    pub name: String,
    /// Its version: that of Debian, or `[epoch:]version-release` of RPM, without an epoch of 0.
    pub version: String,
    /// The architecture that it was built for, such as `amd64` or `noarch`.
    pub arch: String,
}

impl fmt::Display for PackageIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{} {} {}", self.name, self.version, self.arch);
        write!(f, "{}", text.escape_debug())
    }
}
