//! The folder for large temporary files.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The folder for large temporary files: `TMPDIR`, or else `/var/tmp`, since `/tmp` is in memory on
/// many systems.
pub fn scratch_folder() -> PathBuf {
    scratch_folder_of(std::env::var_os("TMPDIR"))
}

/// An empty variable counts as unset.
fn scratch_folder_of(variable: Option<OsString>) -> PathBuf {
    let persistent = Path::new("/var/tmp");
    match variable.filter(|folder| !folder.is_empty()) {
        Some(folder) => folder.into(),
        None if persistent.is_dir() => persistent.into(),
        None => "/tmp".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_variable_counts_as_unset() {
        let unset = scratch_folder_of(None);
        assert!(unset.is_absolute());
        assert_eq!(scratch_folder_of(Some("".into())), unset);
        assert_eq!(scratch_folder_of(Some("/x".into())), Path::new("/x"));
    }
}
