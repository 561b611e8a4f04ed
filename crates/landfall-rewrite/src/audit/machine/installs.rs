//! What a machine fetches and installs, with places.

/// One thing that is fetched or installed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Install {
    /// A file by its URL.
    File(String),
    /// A URL of which a part stands elsewhere.
    Unclear(String),
    /// A package: who installs it, and its name with the version that is written.
    Package(&'static str, String),
    /// A package whose name is put together elsewhere: who installs it, and what is written.
    OpenPackage(&'static str, String),
}

/// What is fetched or installed, and where a text says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placed {
    pub install: Install,
    /// Line, from 1.
    pub line: usize,
    /// Column, in characters from 1.
    pub column: usize,
    /// The file that is written by the text, and has the line.
    pub inside: Option<String>,
}

impl Placed {
    /// The name of the file, which is `file` or inside of it.
    pub(crate) fn file(&self, file: &str) -> String {
        self.inside
            .as_ref()
            .map_or_else(|| file.to_owned(), |inside| format!("{file} ({inside})"))
    }
}

/// What was found, each with `file:line`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Installs(pub Vec<(Install, String)>);

impl Install {
    /// The package and its version, as the package manager `by` takes them together.
    pub(super) fn package(by: &'static str, written: &str) -> Install {
        Install::Package(by, written.to_owned())
    }

    /// Whether a package is written with a version.
    pub fn has_version(by: &str, written: &str) -> bool {
        match by {
            "apt" | "apk" | "zypper" => written.contains('='),
            // name-1.2-3: the version begins with a digit
            _ => written
                .match_indices('-')
                .any(|(at, _)| written[at + 1..].starts_with(|c: char| c.is_ascii_digit())),
        }
    }
}
