//! What the file of a package says that it is.

use std::fmt;

/// Name, version and architecture, as the file of a package has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageIdentity {
    /// Its name.
    pub name: String,
    /// Its version: that of Debian, or `[epoch:]version-release` of RPM, without an epoch of 0.
    pub version: String,
    /// Its architecture.
    pub arch: String,
}

impl fmt::Display for PackageIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{} {} {}", self.name, self.version, self.arch);
        write!(f, "{}", text.escape_debug())
    }
}
