//! Names in a folder, and paths that stay below it.

/// Whether `name` can be the name of a file or folder: it is not empty, `.` or `..`.
pub fn is_file_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..")
}

/// Whether `path`, with `/` between its components, stays below the folder or URL that it is
/// relative to. An empty component is a leading, trailing or double slash.
pub fn is_path_below(path: &str) -> bool {
    path.split('/').all(is_file_name)
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
