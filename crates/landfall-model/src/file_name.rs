//! Names in a folder, paths that stay below it, and names of content next to a manifest.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether `name` can be the name of a file or folder: it is not empty, `.` or `..`.
pub fn is_file_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..")
}

/// Whether `path`, with `/` between its components, stays below the folder or URL that it is
/// relative to. An empty component is a leading, trailing or double slash.
pub fn is_path_below(path: &str) -> bool {
    path.split('/').all(is_file_name)
}

/// The prefix in the name of an item whose content is next to the manifest.
pub const LOCAL_PREFIX: &str = "local:";

/// The path in the name of an item whose content is next to the manifest: `scripts/setup.sh` of
/// `local:scripts/setup.sh`. `None` for other names.
pub fn local_path(name: &str) -> Option<&str> {
    name.strip_prefix(LOCAL_PREFIX)
}

/// How a folder next to the manifest becomes one file.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum FolderPacking {
    /// A tar archive without times and owners, sorted by path: equal folders give equal bytes.
    Tar,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_below_a_folder_has_names_only() {
        for path in ["a", "a/b", "...", ".a/b."] {
            assert!(is_path_below(path), "{path}");
        }
        for path in ["", ".", "..", "/a", "a/", "a//b", "./a", "a/../b"] {
            assert!(!is_path_below(path), "{path}");
        }
    }
}
