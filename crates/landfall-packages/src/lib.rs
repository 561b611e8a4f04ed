//! Package repositories of apt and dnf, without network access: parses their signed metadata,
//! compares versions, and selects packages with their dependencies. The crate can be used on its
//! own.
//!
//! [`apt`] reads Debian repositories (`Release`, `Packages`) and selects packages as apt does.
//! [`yum`] reads RPM repositories (`repomd.xml`, `primary.xml`, modules) and selects packages with
//! a solver that follows libsolv's rules and policies.
//!
//! The crate imports `landfall-model`. Begin with `apt/choose.rs` and `yum/solve/mod.rs`.

pub mod apt;
mod decompress;
mod path;
pub mod yum;

use std::fmt;

pub use crate::decompress::{COMPRESSIONS, Compression, decompress, decompressed};
pub use crate::path::{file_url, host_of, is_location, is_plain_path, location};

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

// Excerpts of changelogs: the first lines of the newest entry, which `diff` shows below a package
// that was upgraded.

/// The maximum number of lines per package.
const LINES: usize = 3;

/// The maximum length of a line in characters; longer lines end with `…`.
const LINE_CHARS: usize = 200;

/// The maximum number of bytes that are read from a changelog, which lists all versions, the newest
/// first.
pub(crate) const CHANGELOG_BYTES: u64 = 16 << 10;

/// Returns the first non-empty lines, trimmed and shortened.
pub(crate) fn first_lines<'a>(lines: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    lines
        .into_iter()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .take(LINES)
        .map(shorten)
        .collect()
}

fn shorten(line: &str) -> String {
    match line.char_indices().nth(LINE_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_non_empty_lines_are_returned_and_shortened() {
        assert_eq!(
            first_lines(["", "  - a", "\t", "- b ", "c", "d"]),
            ["- a", "- b", "c"]
        );
        assert_eq!(
            first_lines(["é".repeat(500).as_str()]),
            [format!("{}…", "é".repeat(200))]
        );
        assert!(first_lines([" "]).is_empty());
    }
}
