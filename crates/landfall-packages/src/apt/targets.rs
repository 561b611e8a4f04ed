//! Index targets: the indexes that apt downloads besides `Packages`, if a program on the machine
//! needs them.
//!
//! `apt-get indextargets` prints their names (apt.conf(5)). apt-file needs `Contents-deb`,
//! command-not-found needs `CNF`, and appstream needs the `DEP-11` targets. If a release lists such
//! an index and it is missing, apt discards everything that it downloaded from the source.

/// The name of each target, and its path in a suite. The path has no compression suffix such as
/// `.xz`.
const TARGETS: [(&str, &str); 10] = [
    ("CNF", "{component}/cnf/Commands-{native}"),
    ("Contents-deb", "{component}/Contents-{architecture}"),
    ("Contents-deb-legacy", "Contents-{architecture}"),
    ("DEP-11", "{component}/dep11/Components-{native}.yml"),
    ("DEP-11-icons", "{component}/dep11/icons-64x64.tar"),
    ("DEP-11-icons-hidpi", "{component}/dep11/icons-64x64@2.tar"),
    ("DEP-11-icons-large", "{component}/dep11/icons-128x128.tar"),
    (
        "DEP-11-icons-large-hidpi",
        "{component}/dep11/icons-128x128@2.tar",
    ),
    ("DEP-11-icons-small", "{component}/dep11/icons-48x48.tar"),
    (
        "DEP-11-icons-small-hidpi",
        "{component}/dep11/icons-48x48@2.tar",
    ),
];

/// Returns the names that `targets` of a manifest may contain, besides `Translation-<language>`.
pub fn target_names() -> impl Iterator<Item = &'static str> {
    TARGETS.iter().map(|(name, _)| *name)
}

/// Returns the language of a target of translated descriptions, such as `pt_BR` for
/// `Translation-pt_BR`; `None` for other targets.
pub fn target_language(target: &str) -> Option<&str> {
    target
        .strip_prefix("Translation-")
        .filter(|text| !text.is_empty())
        // the language becomes part of a path
        .filter(|text| {
            text.bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_@-".contains(&byte))
        })
}

/// Whether a manifest may list the target `name`.
pub fn is_target(name: &str) -> bool {
    target_names().any(|known| known == name) || target_language(name).is_some()
}

/// Returns the possible paths of the target `name` in a suite, sorted. The first of the machine's
/// `architectures` is the native one.
pub fn target_paths(name: &str, components: &[String], architectures: &[String]) -> Vec<String> {
    let pattern = match (
        TARGETS.iter().find(|(known, _)| *known == name),
        target_language(name),
    ) {
        (Some((_, pattern)), _) => (*pattern).to_owned(),
        (None, Some(_)) => format!("{{component}}/i18n/{name}"),
        (None, None) => return Vec::new(),
    };
    let native = architectures.first().map_or("", String::as_str);
    let mut paths: Vec<String> = Vec::new();
    // only the release says which of the paths exist
    for architecture in architectures {
        let per_component = pattern
            .replace("{architecture}", architecture)
            .replace("{native}", native);
        paths.extend(
            components
                .iter()
                .map(|component| per_component.replace("{component}", component)),
        );
    }
    // patterns without `{architecture}` give the same path for each architecture
    paths.sort();
    paths.dedup();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_have_the_paths_that_apt_requests() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let paths =
            |name| target_paths(name, &words("main contrib"), &words("amd64 all")).join(" ");
        assert_eq!(
            paths("CNF"),
            "contrib/cnf/Commands-amd64 main/cnf/Commands-amd64"
        );
        assert_eq!(paths("Contents-deb-legacy"), "Contents-all Contents-amd64");
        assert_eq!(
            paths("DEP-11-icons"),
            "contrib/dep11/icons-64x64.tar main/dep11/icons-64x64.tar"
        );
        assert_eq!(
            paths("Contents-deb"),
            "contrib/Contents-all contrib/Contents-amd64 main/Contents-all main/Contents-amd64"
        );
        assert_eq!(
            paths("Translation-pt_BR"),
            "contrib/i18n/Translation-pt_BR main/i18n/Translation-pt_BR"
        );
        for name in ["Sources", "Translation-", "Translation-../x"] {
            assert!(!is_target(name) && paths(name).is_empty(), "{name}");
        }
    }
}
