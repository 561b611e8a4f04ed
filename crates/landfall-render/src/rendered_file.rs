//! A rendered file and its header.

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

/// The start of every header, by which [`super::output_folder`] finds rendered files again.
pub(super) const HEAD: &str = "# Written by `";

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
}
