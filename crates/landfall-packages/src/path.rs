//! Paths below the URL of a repository. They come from its indexes, so they are checked.

use landfall_model::{Failure, is_path_below, without_scheme};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

/// The characters that are percent-encoded in the path of a URL. `+`, `~` and `:` are common in the
/// names of packages and are not encoded; servers accept both forms.
const ENCODED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'`')
    .add(b'{')
    .add(b'}');

/// Whether `path` stays below the URL that it is relative to, and can be one word in a line of the
/// lock.
pub fn is_plain_path(path: &str) -> bool {
    path.len() < 1024
        && is_path_below(path)
        // U+FFFD replaces bytes that are not UTF-8, so the original path is lost
        && !path.contains(|c: char| {
            c.is_whitespace() || c.is_control() || matches!(c, '\\' | '\u{fffd}')
        })
}

/// Returns where a file is that an index of the repository `base` lists at `text`, in the form that
/// locks have: the path below the repository; for other files on its host, that path with `../` at
/// its start; for files on other hosts, the URL.
///
/// # Errors
/// If `text` leads above the host, or is not the location of a file.
pub fn location(base: &str, text: &str) -> Result<String, Failure> {
    let shown = text.escape_default();
    let no_file = || Failure::failed(format!("'{shown}' is not the path of a file"));
    let below = folders(base);
    let mut target = below.clone();
    let mut path = text;
    if let Some((scheme, rest)) = text.split_once("://") {
        let (host, path_of_url) = rest.split_once('/').ok_or_else(no_file)?;
        let scheme = scheme.to_ascii_lowercase();
        let is_plain = matches!(&*scheme, "http" | "https") && !rest.contains(['?', '#']);
        if !is_plain || host.is_empty() || host.contains(['@', '\\', ' ', '%']) {
            return Err(Failure::failed(format!(
                "'{shown}' is not a plain http or https URL"
            )));
        }
        let path_of_url = percent_decode_str(path_of_url)
            .decode_utf8()
            .map_err(|_| no_file())?;
        let root = format!("{scheme}://{}", host.to_ascii_lowercase());
        let root = format!("{scheme}://{}", host_of(&root));
        let found = location(&root, &path_of_url)?;
        if host_of(&root) != host_of(base) {
            return Ok(file_url(&root, &found));
        }
        target = found.split('/').map(str::to_owned).collect();
        path = "";
    }
    // both apt and dnf append a path with a slash at its start to the URL of the repository
    for part in path.trim_start_matches('/').split('/') {
        match part {
            "." => {}
            "" if path.is_empty() => {}
            ".." if target.pop().is_none() => {
                return Err(Failure::failed(format!(
                    "'{shown}' leads above the host of the repository, so machines behind the gap \
                     would look for it on another path than landfall serves"
                )));
            }
            ".." => {}
            part => target.push(part.to_owned()),
        }
    }
    let is_folder = matches!(path.rsplit('/').next(), Some("." | ".."));
    let common = below.iter().zip(&target).take_while(|(a, b)| a == b);
    let same = common.count();
    let path = "../".repeat(below.len() - same) + &target[same..].join("/");
    if is_folder || !is_file_path(path.trim_start_matches("../")) || path.len() >= 1024 {
        return Err(no_file());
    }
    Ok(path)
}

/// Whether `path` is a location in the form that [`location`] returns.
pub fn is_location(base: &str, path: &str) -> bool {
    location(base, path).is_ok_and(|found| found == path)
}

/// Whether `path` can be the path of a file, in a line of the lock and on any file system.
fn is_file_path(path: &str) -> bool {
    // U+FFFD replaces bytes that are not UTF-8, so the original path is lost
    let is_good = |c: char| {
        c == ' ' || !(c.is_whitespace() || c.is_control() || matches!(c, '\\' | '\u{fffd}'))
    };
    !path.contains("://")
        && !path.starts_with([' ', '/'])
        && !path.ends_with([' ', '/'])
        && !path.is_empty()
        && path.chars().all(is_good)
}

/// The host of a URL, without the default port. http and https count as one host.
pub fn host_of(url: &str) -> &str {
    let host = without_scheme(url).split('/').next().unwrap_or_default();
    let default = if url.starts_with("https") {
        ":443"
    } else {
        ":80"
    };
    host.strip_suffix(default).unwrap_or(host)
}

/// The decoded folders in the path of a URL.
fn folders(url: &str) -> Vec<String> {
    let path = url.trim_end_matches('/').splitn(4, '/').nth(3);
    let folders = path.into_iter().flat_map(|path| path.split('/'));
    folders
        .map(|folder| percent_decode_str(folder).decode_utf8_lossy().into_owned())
        .collect()
}

/// Returns the URL of `path`, a [`location`] of the repository `base`.
pub fn file_url(base: &str, path: &str) -> String {
    if path.contains("://") {
        return path.to_owned();
    }
    let mut folder = base.trim_end_matches('/');
    let mut rest = path;
    while let Some(below) = rest.strip_prefix("../")
        && let Some((parent, _)) = folder.rsplit_once('/').filter(|(up, _)| !up.ends_with('/'))
    {
        (folder, rest) = (parent, below);
    }
    format!("{folder}/{}", utf8_percent_encode(rest, ENCODED))
}

/// Returns the path of `path`, a [`location`] of the repository `base`, in a tree that has a folder
/// for each host, relative to the folder of the repository.
pub(crate) fn served_path(base: &str, path: &str) -> String {
    let Some((_, rest)) = path.split_once("://") else {
        return path.to_owned();
    };
    let (_, file) = rest.split_once('/').unwrap_or((rest, ""));
    let up = "../".repeat(folders(base).len() + 1);
    let file = percent_decode_str(file).decode_utf8_lossy();
    format!("{up}{}/{file}", host_of(path))
}

/// Returns the location of a file whose `href` is relative to the `xml:base` of its element, as a
/// URL if the element has one. dnf replaces the URL of the repository by it.
pub(crate) fn based_href(base: Option<&str>, href: &str) -> String {
    match base.filter(|base| base.contains("://") && !href.contains("://")) {
        Some(base) => format!(
            "{}/{}",
            base.trim_end_matches('/'),
            utf8_percent_encode(href.trim_start_matches('/'), ENCODED)
        ),
        None => href.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_lead_out_are_rejected() {
        for good in [
            "pool/main/a/a_1+b1~c_amd64.deb",
            "dists/x/InRelease",
            "v1:2/x",
        ] {
            assert!(is_plain_path(good), "{good}");
        }
        for bad in [
            "../x",
            "a/../x",
            "/etc/passwd",
            "a//b",
            "",
            "a/",
            "./a",
            "a b",
            "a\\b",
            "a\nb",
            "a/.",
        ] {
            assert!(!is_plain_path(bad), "{bad}");
        }
    }

    #[test]
    fn a_path_is_percent_encoded_as_servers_expect() {
        assert_eq!(
            file_url("https://h/x/", "a/b_1+c~d:e.deb"),
            "https://h/x/a/b_1+c~d:e.deb"
        );
        assert_eq!(
            file_url("https://h/x", "a%2e?#"),
            "https://h/x/a%252e%3F%23"
        );
    }
}
