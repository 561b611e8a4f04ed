//! Files and packages that a machine fetches and installs, with their positions.

use landfall_packages::yum::RpmPin;

/// A file or package that a machine fetches or installs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum MachineInstall {
    /// The URL of a file.
    File(String),
    /// A URL with placeholders whose values are not known, or the URL of a folder: the file is not
    /// known.
    Unclear(String),
    /// A package: the package manager, and the name as written, with the version if it has one.
    Package(&'static str, String),
    /// A package whose name has placeholders: the package manager, and the name as written.
    OpenPackage(&'static str, String),
}

/// A file or package, and its position in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlacedInstall {
    pub install: MachineInstall,
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// The path of the embedded file that contains the line, if there is one.
    pub inside: Option<String>,
}

impl PlacedInstall {
    /// Places `install` at the byte `start` of `line`, which has the index `at`.
    pub(super) fn on_line(
        install: MachineInstall,
        line: &str,
        at: usize,
        start: usize,
    ) -> PlacedInstall {
        PlacedInstall {
            install,
            line: at + 1,
            column: line[..start].chars().count() + 1,
            inside: None,
        }
    }

    /// The name of the file for messages: `file`, or the embedded file in it.
    pub(crate) fn file(&self, file: &str) -> String {
        self.inside
            .as_ref()
            .map_or_else(|| file.to_owned(), |inside| format!("{file} ({inside})"))
    }
}

/// Files and packages, each with its position `file:line`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MachineInstalls(pub Vec<(MachineInstall, String)>);

impl MachineInstall {
    /// Returns the package `written`, which may have a version, for the package manager `by`.
    pub(super) fn package(by: &'static str, written: &str) -> MachineInstall {
        MachineInstall::Package(by, written.to_owned())
    }

    /// The reason why the file of the URL `url` is not known.
    pub fn why_unclear(url: &str) -> &'static str {
        if url.ends_with('/') {
            "it is the URL of a folder"
        } else {
            "a part of this URL is defined elsewhere"
        }
    }

    /// Whether the package `written` for the package manager `by` has a version.
    pub fn has_version(by: &str, written: &str) -> bool {
        match by {
            "apt" | "apk" | "zypper" => written.contains('='),
            // a pattern such as `kubelet-1.31.*` restricts the version, so it counts as one
            _ => RpmPin::parse(&written.replace(['*', '?'], "x")).is_some(),
        }
    }
}
