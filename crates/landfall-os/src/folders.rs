//! The folders of a user.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Returns the user's home folder, from the variables that `get` reads: `HOME`, and on Windows
/// `USERPROFILE` if that is not set. An empty variable counts as unset.
pub fn home_folder<T: Into<OsString>>(get: impl Fn(&str) -> Option<T>) -> Option<PathBuf> {
    let folder = |name| path(get(name));
    match folder("HOME") {
        None if cfg!(windows) => folder("USERPROFILE"),
        home => home,
    }
}

/// Returns the user's folder for cached data, from the variables that `get` reads:
/// `XDG_CACHE_HOME`, or else `~/.cache`, on macOS `~/Library/Caches`, and on Windows
/// `%LOCALAPPDATA%`.
pub fn cache_folder<T: Into<OsString>>(get: impl Fn(&str) -> Option<T>) -> Option<PathBuf> {
    path(get("XDG_CACHE_HOME")).or_else(|| {
        if cfg!(windows) {
            return path(get("LOCALAPPDATA"));
        }
        let below = if cfg!(target_os = "macos") {
            "Library/Caches"
        } else {
            ".cache"
        };
        home_folder(get).map(|home| home.join(below))
    })
}

/// Returns the folder for large temporary files, if `variable` is the value of `TMPDIR`: that
/// folder, or else `/var/tmp`, since `/tmp` is in memory on many systems. On Windows, it is the
/// folder for all temporary files (`TMP`).
pub fn scratch_folder(variable: Option<OsString>) -> PathBuf {
    let persistent = Path::new("/var/tmp");
    match path(variable) {
        Some(folder) => folder,
        None if cfg!(windows) => std::env::temp_dir(),
        None if persistent.is_dir() => persistent.into(),
        None => "/tmp".into(),
    }
}

/// The path in a variable. An empty variable counts as unset.
fn path(value: Option<impl Into<OsString>>) -> Option<PathBuf> {
    value
        .map(Into::into)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_below_home_unless_a_variable_names_it() {
        let get = |variables: &'static [(&str, &str)]| {
            move |name: &str| {
                let found = variables.iter().find(|(variable, _)| *variable == name);
                found.map(|(_, value)| *value)
            }
        };
        assert_eq!(
            cache_folder(get(&[("XDG_CACHE_HOME", "/c"), ("HOME", "/h")])),
            Some("/c".into())
        );
        let unset = cache_folder(get(&[
            ("XDG_CACHE_HOME", ""),
            ("HOME", "/h"),
            ("LOCALAPPDATA", "/l"),
        ]));
        let expected = match std::env::consts::OS {
            "windows" => "/l",
            "macos" => "/h/Library/Caches",
            _ => "/h/.cache",
        };
        assert_eq!(unset, Some(expected.into()));
        assert_eq!(cache_folder(get(&[("HOME", "")])), None);
        assert_eq!(home_folder(get(&[("HOME", "")])), None);
    }

    #[test]
    fn an_empty_variable_counts_as_unset() {
        let unset = scratch_folder(None);
        assert!(unset.is_absolute());
        assert_eq!(scratch_folder(Some("".into())), unset);
        assert_eq!(scratch_folder(Some("/x".into())), Path::new("/x"));
    }
}
