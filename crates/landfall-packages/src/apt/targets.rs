//! Indexes that apt asks for besides those of packages, where a program of the machine wants them:
//! its «targets».
//!
//! apt.conf(5) and `apt-get indextargets` have their names. apt-file wants `Contents-deb`,
//! command-not-found `CNF`, and appstream the others. A release that names such an index promises
//! it: where it is not there, apt throws away all that it fetched.

/// Each target by its name, and its path below a suite without what it is compressed by.
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

/// The names of those that `targets` of a manifest may have. `Translation-<language>` stands beside
/// them.
pub fn target_names() -> impl Iterator<Item = &'static str> {
    TARGETS.iter().map(|(name, _)| *name)
}

/// The language of the descriptions that `target` has, as in `Translation-pt_BR`; `None` for
/// another target.
pub fn target_language(target: &str) -> Option<&str> {
    let is_language = |text: &&str| {
        text.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_@-".contains(&byte))
    };
    target
        .strip_prefix("Translation-")
        .filter(|text| !text.is_empty())
        .filter(is_language)
}

/// Whether `name` is a target that may be carried.
pub fn is_target(name: &str) -> bool {
    target_names().any(|known| known == name) || target_language(name).is_some()
}

/// The paths at which the target `name` may stand, for machines of `architectures`, the native one
/// first.
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
    for architecture in architectures {
        let of_one = pattern
            .replace("{architecture}", architecture)
            .replace("{native}", native);
        paths.extend(
            components
                .iter()
                .map(|component| of_one.replace("{component}", component)),
        );
    }
    paths.sort();
    paths.dedup();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_stands_where_apt_looks_for_it() {
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
