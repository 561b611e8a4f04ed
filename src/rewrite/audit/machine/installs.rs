//! What a machine fetches and installs, with places.

/// One thing that is fetched or installed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Install {
    /// A file by its URL.
    File(String),
    /// A URL of which a part stands elsewhere.
    Unclear(String),
    /// A package: who installs it, and its name with the version that is written.
    Package(&'static str, String),
}

/// What was found, each with `file:line`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Installs(pub(crate) Vec<(Install, String)>);

impl Install {
    /// The package and its version, as the package manager `by` takes them together.
    pub(super) fn package(by: &'static str, written: &str) -> Install {
        Install::Package(by, written.to_owned())
    }

    /// Whether a package is written with a version.
    pub(crate) fn has_version(by: &str, written: &str) -> bool {
        match by {
            "apt" | "apk" | "zypper" => written.contains('='),
            // name-1.2-3: the version begins with a digit
            _ => written
                .match_indices('-')
                .any(|(at, _)| written[at + 1..].starts_with(|c: char| c.is_ascii_digit())),
        }
    }
}
