//! File names that a system does not have, and the folders of a user.

use std::ffi::OsString;
use std::io::Result;
use std::path::{Component, Path, PathBuf};

/// Why this system cannot have a file with a relative path that comes from a document; `None` if it
/// can. Windows lacks some characters, such as `:`, names that end with a dot or space, and names
/// of devices, such as `aux`. On Unix, every path is possible.
pub fn path_fault(path: &Path) -> Option<String> {
    if cfg!(windows) {
        fault_on_windows(path)
    } else {
        None
    }
}

/// Returns a path to an existing folder below which every name is possible that the file system can
/// store: Windows reads the names of devices and dots at the end as they are only below such a
/// path.
///
/// # Errors
/// If there is no such folder.
pub fn exact_path(folder: &Path) -> Result<PathBuf> {
    if cfg!(windows) {
        folder.canonicalize()
    } else {
        Ok(folder.to_owned())
    }
}

/// Returns the key by which two paths name the same file on this system's usual file systems: on
/// Windows and macOS, names that differ in upper and lower case only are equal.
pub fn path_key(path: &Path) -> PathBuf {
    if cfg!(any(windows, target_os = "macos")) {
        path.to_string_lossy().to_lowercase().into()
    } else {
        path.to_owned()
    }
}

/// The characters that no name contains on Windows; `\` separates names.
const FORBIDDEN: &str = "<>:\"/\\|?*";
/// The names of devices, whatever their extension.
const DEVICES: [&str; 6] = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"];
/// The names of devices that a digit follows.
const NUMBERED_DEVICES: [&str; 2] = ["COM", "LPT"];

fn fault_on_windows(path: &Path) -> Option<String> {
    path.components().find_map(|component| {
        let Component::Normal(name) = component else {
            return Some("the path leads to another folder".to_owned());
        };
        let name = name.to_string_lossy();
        let why = if name
            .chars()
            .any(|c| c.is_control() || FORBIDDEN.contains(c))
        {
            "has a character that Windows does not allow in names"
        } else if name.ends_with(['.', ' ']) {
            "ends with a dot or space, which Windows does not allow"
        } else if is_device(&name) {
            "is the name of a device on Windows"
        } else {
            return None;
        };
        Some(format!("'{}' {why}", name.escape_debug()))
    })
}

fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name).trim_end();
    let stem = stem.to_uppercase();
    let is_numbered = NUMBERED_DEVICES.iter().any(|start| {
        let mut number = stem.strip_prefix(start).unwrap_or_default().chars();
        number.next().is_some_and(|c| "0123456789¹²³".contains(c)) && number.next().is_none()
    });
    is_numbered || DEVICES.contains(&&*stem)
}

// The folders of a user.

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
    fn windows_lacks_names_of_devices_and_some_characters() {
        for (path, why) in [
            ("host:5000/hosts.toml", "'host:5000' has a character"),
            ("a/b?c", "'b?c' has a character"),
            ("a\\b", "'a\\\\b' has a character"),
            ("a/tag./x", "'tag.' ends with"),
            ("a/tag /x", "'tag ' ends with"),
            ("a/aux", "'aux' is the name of a device"),
            ("Con.tar.gz/x", "'Con.tar.gz' is the name of a device"),
            ("lpt1", "'lpt1' is the name of a device"),
            ("../x", "the path leads to another folder"),
            ("/x", "the path leads to another folder"),
        ] {
            let fault = fault_on_windows(Path::new(path)).unwrap();
            assert!(fault.starts_with(why), "{path}: {fault}");
        }
        for path in [
            "a/b.tar",
            "auxiliary",
            "com",
            "com10",
            "console.txt",
            ".x",
            "a b",
        ] {
            assert_eq!(fault_on_windows(Path::new(path)), None, "{path}");
        }
        assert_eq!(path_fault(Path::new("a/aux")).is_some(), cfg!(windows));
    }

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
