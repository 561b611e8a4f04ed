//! A file that a platform writes.

/// A file that a platform writes, with its path in the folder of `--out`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedFile {
    /// Its path in the folder, parts separated by `/`.
    pub path: String,
    /// Its content, without the header.
    pub text: String,
    /// Its mode, which is also the one that it has on a node. With a secret nobody but the owner
    /// has rights.
    pub mode: u32,
    /// Whether it holds credentials.
    pub secret: bool,
    /// Whether its format has comments, which begin with `#`.
    pub comments: bool,
}

impl RenderedFile {
    /// A file of a format in which `#` begins a comment.
    pub fn new(path: impl Into<String>, text: impl Into<String>) -> RenderedFile {
        RenderedFile {
            path: path.into(),
            text: text.into(),
            mode: 0o644,
            secret: false,
            comments: true,
        }
    }

    /// The same with this mode.
    #[must_use]
    pub fn mode(self, mode: u32) -> RenderedFile {
        RenderedFile { mode, ..self }
    }

    /// The same, with credentials in it where `secret`.
    #[must_use]
    pub fn secret(self, secret: bool) -> RenderedFile {
        let mode = if secret { self.mode & 0o700 } else { self.mode };
        RenderedFile {
            mode,
            secret,
            ..self
        }
    }

    /// The same in the folder `folder`.
    #[must_use]
    pub(super) fn in_folder(self, folder: &str) -> RenderedFile {
        RenderedFile {
            path: format!("{folder}/{}", self.path),
            ..self
        }
    }

    /// The same with the header that names `command`, where its format has comments. A first line
    /// that must be the first stays it.
    #[must_use]
    pub(super) fn with_header(self, command: &str) -> RenderedFile {
        if !self.comments {
            return self;
        }
        let first = ["#!", "#cloud-config"]
            .iter()
            .any(|start| self.text.starts_with(start));
        let split = self
            .text
            .find('\n')
            .filter(|_| first)
            .map_or(0, |end| end + 1);
        let (before, after) = self.text.split_at(split);
        let text = format!("{before}{}{after}", header(command));
        RenderedFile { text, ..self }
    }
}

/// The line that names the command that made a file.
pub(crate) fn header(command: &str) -> String {
    format!("{HEAD}{command}`; make it anew rather than edit it.\n")
}

/// How headers begin.
pub(super) const HEAD: &str = "# Written by `";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_comes_first_but_for_lines_that_must_be_first() {
        let text = |text: &str| {
            RenderedFile::new("a", text)
                .with_header("landfall render x")
                .text
        };
        let head = "# Written by `landfall render x`; make it anew rather than edit it.\n";
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
    fn a_secret_is_for_its_owner_alone() {
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
