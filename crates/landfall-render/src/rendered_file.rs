//! A rendered file and its header.

use landfall_content::{OutputGuard, OutputRecord};
use landfall_model::Failure;
use landfall_model::document::read_input;
use landfall_model::report::one_line;
use landfall_os::path_fault;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Component, Path, PathBuf};

/// A file that a platform writes, with its path in the folder of `--out`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedFile {
    /// The path in the folder, with `/` as separator.
    pub path: String,
    /// The content. The header is added when all files are rendered.
    pub text: String,
    /// The mode, here and on a node. A file with credentials is readable by its owner only.
    pub mode: u32,
    /// Whether the file contains credentials.
    pub secret: bool,
    /// Whether the format has comments that start with `#`.
    pub comments: bool,
    /// The cluster for which the file was rendered, if the platform writes files for clusters.
    pub cluster: Option<String>,
}

impl RenderedFile {
    /// Creates a file of a format in which `#` starts a comment.
    pub fn new(path: impl Into<String>, text: impl Into<String>) -> RenderedFile {
        RenderedFile {
            path: path.into(),
            text: text.into(),
            mode: 0o644,
            secret: false,
            comments: true,
            cluster: None,
        }
    }

    /// Creates a file of a format without comments, which gets no header.
    pub(super) fn without_comments(
        path: impl Into<String>,
        text: impl Into<String>,
    ) -> RenderedFile {
        RenderedFile {
            comments: false,
            ..RenderedFile::new(path, text)
        }
    }

    /// Sets the mode of the file.
    #[must_use]
    pub fn mode(self, mode: u32) -> RenderedFile {
        RenderedFile { mode, ..self }
    }

    /// Sets whether the file contains credentials. If it does, only its owner can access it.
    #[must_use]
    pub fn secret(self, secret: bool) -> RenderedFile {
        // the mask keeps the execute bit of a script
        let mode = if secret { self.mode & 0o700 } else { self.mode };
        RenderedFile {
            mode,
            secret,
            ..self
        }
    }

    /// Moves the file into `folder`.
    #[must_use]
    pub(super) fn in_folder(self, folder: &str) -> RenderedFile {
        RenderedFile {
            path: format!("{folder}/{}", self.path),
            ..self
        }
    }

    /// Sets the cluster for which the file was rendered.
    #[must_use]
    pub(super) fn of_cluster(self, cluster: &str) -> RenderedFile {
        RenderedFile {
            cluster: Some(cluster.to_owned()),
            ..self
        }
    }

    /// Adds the header that names `command`, if the format has comments. If the file begins with
    /// `#!` or `#cloud-config`, that line stays the first one, and the header is the second.
    #[must_use]
    pub(super) fn with_header(self, command: &str) -> RenderedFile {
        if !self.comments {
            return self;
        }
        let has_fixed_first_line = ["#!", "#cloud-config"]
            .iter()
            .any(|start| self.text.starts_with(start));
        let split = self
            .text
            .find('\n')
            .filter(|_| has_fixed_first_line)
            .map_or(0, |end| end + 1);
        let (before, after) = self.text.split_at(split);
        let text = format!("{before}{}{after}", header(command));
        RenderedFile { text, ..self }
    }
}

/// Returns the header of a file that `command` rendered.
pub(crate) fn header(command: &str) -> String {
    format!("{HEAD}{command}`; render it again instead of editing it.\n")
}

/// The start of every header, by which rendered files are recognized.
pub(super) const HEAD: &str = "# Written by `";

// Writes rendered files into a folder, and finds stale files of earlier runs there.

/// Writes `files` of `platform` into `folder`. Each file is replaced atomically. Unless `replaces`
/// is set, files that the platform did not write earlier are not replaced.
///
/// # Errors
/// Before anything is written: if the path of a file leads out of `folder` or is impossible on this
/// system, or if a file of others exists. Afterwards: if a file cannot be written. The error
/// contains its path.
pub fn write_files(
    folder: &Path,
    platform: &str,
    files: &[RenderedFile],
    replaces: bool,
) -> Result<(), Failure> {
    if let Some(file) = files.iter().find(|file| !stays_below(&file.path)) {
        return Err(Failure::usage(format!(
            "cannot write '{}': the path leads out of the output folder",
            one_line(&file.path)
        )));
    }
    for file in files {
        if let Some(why) = path_fault(Path::new(&file.path)) {
            let path = one_line(&file.path);
            return Err(Failure::usage(format!("cannot write '{path}': {why}"))
                .with_help("render on Linux or macOS"));
        }
    }
    claim(folder, platform, files, replaces)?;
    for file in files {
        let path = folder.join(&file.path);
        write_file(&path, file).map_err(|error| Failure::write(&path, error))?;
    }
    Ok(())
}

/// Checks that no file of others is replaced, and records the files whose format has no comments.
fn claim(
    folder: &Path,
    platform: &str,
    files: &[RenderedFile],
    replaces: bool,
) -> Result<(), Failure> {
    let record = OutputRecord::read(folder, &format!("render {platform}"))?;
    let mut guard = OutputGuard::new(replaces);
    let mut unmarked = Vec::new();
    for file in files {
        let path = folder.join(&file.path);
        let is_same = read_input(&path).is_ok_and(|present| present == file.text.as_bytes());
        guard.check(&path, |path| {
            is_same || is_rendered_by(path, platform) || record.has(Path::new(&file.path))
        });
        if !file.comments && !is_same {
            unmarked.push(Path::new(&file.path));
        }
    }
    guard.finish()?;
    record.add(unmarked)
}

/// Whether each component of `path` is the name of a file or folder. Parts of a path may come from
/// a lock, which is untrusted.
fn stays_below(path: &str) -> bool {
    let mut components = Path::new(path).components().peekable();
    components.peek().is_some() && components.all(|part| matches!(part, Component::Normal(_)))
}

fn write_file(path: &Path, file: &RenderedFile) -> std::io::Result<()> {
    let folder = landfall_content::parent_folder(path);
    fs::create_dir_all(folder)?;
    // a rename would replace a device or a link by a plain file
    landfall_content::refuse_special(path)?;
    let written = landfall_content::private_file_in(folder)?;
    written.as_file().write_all(file.text.as_bytes())?;
    landfall_content::publish_file(written, path, Some(file.mode))?;
    landfall_content::sync_folder(folder)
}

/// Returns the files in `folder` that an earlier run of `platform` wrote, according to their
/// headers, and that are not in `files`, such as the hosts.toml of a host that is no longer locked.
///
/// `folder` may be the root of a machine, so only those of its folders are searched in which
/// `files` are. If these are the folders of clusters, all are searched: the site may have lost a
/// cluster.
pub fn stale_files(folder: &Path, platform: &str, files: &[RenderedFile]) -> Vec<PathBuf> {
    let written: BTreeSet<PathBuf> = files.iter().map(|file| folder.join(&file.path)).collect();
    let first = files.iter().filter_map(|file| file.path.split_once('/'));
    let first: BTreeSet<&str> = first.map(|(first, _)| first).collect();
    let mut clusters = files.iter().filter_map(|file| file.cluster.as_deref());
    let has_clusters = clusters.any(|cluster| first.contains(cluster));
    let mut folders = vec![folder.to_owned()];
    let mut stale = Vec::new();
    while let Some(open) = folders.pop() {
        for entry in fs::read_dir(&open).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name();
            let is_searched = has_clusters
                || open != folder
                || name.to_str().is_some_and(|name| first.contains(name));
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && is_searched => folders.push(path),
                Ok(kind)
                    if kind.is_file()
                        && !written.contains(&path)
                        && is_rendered_by(&path, platform) =>
                {
                    stale.push(path);
                }
                _ => {}
            }
        }
    }
    stale.sort();
    stale
}

/// The number of bytes at the start of a file that are searched for its header.
const HEADER_BYTES: u64 = 1 << 10;

/// Whether the file at `path` has the header of `platform`.
fn is_rendered_by(path: &Path, platform: &str) -> bool {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEADER_BYTES).read_to_end(&mut bytes));
    read.is_ok() && has_header_of(&String::from_utf8_lossy(&bytes), platform)
}

/// Whether a text has the header of `platform`.
pub fn has_header_of(text: &str, platform: &str) -> bool {
    let head = format!("{HEAD}landfall render {platform}");
    // the header is on the second line if the format needs the first one, as for `#!/bin/sh`
    let mut first_lines = text.lines().take(2);
    first_lines.any(|line| {
        line.strip_prefix(&*head)
            // the whole name: `kube` must not match `kubeadm`
            .is_some_and(|rest| rest.starts_with(['`', ' ']))
    })
}

// Quotes values for systemd units, TOML and JSON.

/// Returns the `Environment=` line of a systemd unit, with C escapes (systemd.syntax(7),
/// "Quoting").
///
/// An unescaped `%` would start a specifier: systemd expands the specifier, or drops the variable
/// if it cannot expand it. A line feed would start another line of the unit.
pub(crate) fn systemd_environment(name: &str, value: &str) -> String {
    let mut quoted = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '\\' | '"' => quoted.extend(['\\', c]),
            '%' => quoted.push_str("%%"),
            c if c.is_control() => quoted += &format!("\\u{:04x}", u32::from(c)),
            c => quoted.push(c),
        }
    }
    format!("Environment=\"{name}={quoted}\"\n")
}

/// Returns `value` as a JSON string literal. If `value` is a single line, the literal is valid in
/// TOML and YAML too.
pub(crate) fn quoted_string(value: &str) -> String {
    serde_json::Value::from(value).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_is_first_or_follows_a_line_that_must_be_first() {
        let text = |text: &str| {
            RenderedFile::new("a", text)
                .with_header("landfall render x")
                .text
        };
        let head = "# Written by `landfall render x`; render it again instead of editing it.\n";
        assert_eq!(text("a = 1\n"), format!("{head}a = 1\n"));
        assert_eq!(
            text("#!/bin/sh\nset -e\n"),
            format!("#!/bin/sh\n{head}set -e\n")
        );
        assert_eq!(
            text("#cloud-config\na: 1\n"),
            format!("#cloud-config\n{head}a: 1\n")
        );
    }

    #[test]
    fn only_its_owner_can_read_a_file_with_credentials() {
        assert_eq!(RenderedFile::new("a", "").secret(true).mode, 0o600);
        assert_eq!(
            RenderedFile::new("a", "").mode(0o755).secret(true).mode,
            0o700
        );
        assert_eq!(
            RenderedFile::new("a", "").mode(0o640).secret(false).mode,
            0o640
        );
    }

    #[test]
    fn nothing_is_written_if_a_path_leads_out_of_the_folder() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("out");
        for path in ["../x", "a/../../x", "a/..", "/x", "", ".", "./x"] {
            let files = ["first", path].map(|path| RenderedFile::new(path, "x"));
            let error = write_files(&folder, "p", &files, true).unwrap_err();
            assert!(
                error
                    .message
                    .ends_with(": the path leads out of the output folder"),
                "{path}: {error}"
            );
        }
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
        write_files(&folder, "p", &[RenderedFile::new("a/..b", "x")], false).unwrap();
        assert!(folder.join("a/..b").is_file());
    }

    #[test]
    fn only_folders_of_this_run_are_searched_for_stale_files() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path();
        for path in ["etc/a/old", "proc/kmsg", "old"] {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, header("landfall render p")).unwrap();
        }
        let file = RenderedFile::new("etc/new", "x").of_cluster("blue");
        let stale = ["etc/a/old", "old"].map(|path| folder.join(path));
        assert_eq!(stale_files(folder, "p", std::slice::from_ref(&file)), stale);
        let files = [file.in_folder("blue")];
        assert_eq!(stale_files(folder, "p", &files).len(), 3);
    }

    #[test]
    fn characters_with_a_meaning_are_escaped() {
        assert_eq!(
            systemd_environment("A", r#"p%40s"\x"#),
            "Environment=\"A=p%%40s\\\"\\\\x\"\n"
        );
        let broken = systemd_environment("A", "x\"\nExecStartPre=/bin/sh\r\u{85}");
        assert_eq!(
            broken,
            "Environment=\"A=x\\\"\\u000aExecStartPre=/bin/sh\\u000d\\u0085\"\n"
        );
        assert_eq!(quoted_string("a\"b\\c"), r#""a\"b\\c""#);
    }
}
