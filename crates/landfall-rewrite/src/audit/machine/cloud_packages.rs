//! Finds the packages that cloud-init installs: the list `packages` of a document.

use super::commands::is_package;
use super::installs::{MachineInstall, PlacedInstall};

/// The packages of a document of cloud-init: names, and pairs of name and version. Those of `snap`
/// are no packages of apt, so they are skipped.
pub(super) fn packages(text: &str) -> Vec<PlacedInstall> {
    let mut found = Vec::new();
    let mut inside = false;
    // the column of the key `snap`, in its list
    let mut snap = None;
    for (at, line) in text.lines().enumerate() {
        let indented = line.starts_with([' ', '-']);
        let is_comment = line.starts_with('#') || line.starts_with("{%");
        if !indented && !line.trim().is_empty() && !is_comment {
            inside = line.trim_end() == "packages:";
            snap = None;
            continue;
        }
        let entry = line.trim_start_matches([' ', '-', '{']);
        let content = line.trim_start();
        if entry.starts_with("snap:") && !content.starts_with("- {") {
            snap = Some(line.len() - entry.len());
            continue;
        }
        let Some(item) = content.strip_prefix("- ").filter(|_| inside) else {
            snap = snap.filter(|_| !entry.starts_with("apt:"));
            continue;
        };
        if snap.is_some_and(|column| line.len() - content.len() >= column) {
            continue;
        }
        snap = None;
        let item = item.split(" #").next().unwrap_or(item).trim();
        let is_mapping = item.starts_with('{') && !item.starts_with("{{");
        let item = if is_mapping {
            packages_of_apt(item)
        } else {
            item
        };
        found.extend(
            item_packages(item)
                .into_iter()
                .filter_map(|(name, written)| {
                    let start = name.as_ptr() as usize - line.as_ptr() as usize;
                    Some(PlacedInstall::on_line(install(written)?, line, at, start))
                }),
        );
    }
    found
}

/// The list of packages of apt in a flow mapping of package managers; empty if there is none.
fn packages_of_apt(mapping: &str) -> &str {
    let list = mapping.split_once("apt:").map_or("", |(_, list)| list);
    let list = list.trim_start_matches([' ', '[']);
    list.split([']', '}']).next().unwrap_or_default()
}

/// The packages in an item of the list: the name in the item, and the text for apt.
fn item_packages(item: &str) -> Vec<(&str, String)> {
    // an expression of Jinja may contain blanks
    if item.contains("{{") {
        let written = item.trim_matches(['"', '\'']);
        return vec![(written, written.to_owned())];
    }
    let words: Vec<&str> = item
        .split([' ', ',', '[', ']', '"', '\''])
        .filter(|word| !word.is_empty() && *word != "apt:")
        .collect();
    match (&words[..], item.starts_with('[')) {
        ([name, version], true) => vec![(*name, format!("{name}={version}"))],
        (names, _) => names
            .iter()
            .map(|name| (*name, (*name).to_owned()))
            .collect(),
    }
}

/// The package `written`. `None` if it is not the name of a package to install.
fn install(written: String) -> Option<MachineInstall> {
    if written.contains('$') || written.contains("{{") {
        Some(MachineInstall::OpenPackage("apt", written))
    } else if is_package(&written) {
        Some(MachineInstall::Package("apt", written))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        packages(text)
            .into_iter()
            .map(|one| format!("{}:{} {:?}", one.line, one.column, one.install))
            .collect()
    }

    #[test]
    fn packages_of_snap_are_skipped() {
        for (text, expected) in [
            ("packages:\n- snap: [a, b]\n- jq\n", "3:3 jq"),
            (
                "packages:\n- snap:\n  - a\n\n  - [b, --edge]\n- apt:\n  - jq\n",
                "7:5 jq",
            ),
            ("packages:\n- apt: [jq]\n  snap:\n  - a\n", "2:9 jq"),
            (
                "packages:\n  - snap:\n      - a\n    apt:\n      - jq\n",
                "5:9 jq",
            ),
            ("packages:\n- {snap: [a]}\n- {apt: [jq]}\n", "3:10 jq"),
            ("packages:\n- {snap: [a], apt: [jq]}\n", "2:21 jq"),
            ("packages:\n- {apt: [jq], snap: [a]}\n", "2:10 jq"),
            ("packages:\n- {apt: jq}\n", "2:9 jq"),
            ("snap:\n  commands:\n  - a\npackages:\n- jq\n", "5:3 jq"),
        ] {
            let (place, name) = expected.split_once(' ').unwrap();
            let expected = format!("{place} Package(\"apt\", {name:?})");
            assert_eq!(found(text), [expected], "{text}");
        }
    }

    #[test]
    fn packages_with_placeholders_are_open() {
        let text = "packages:\n- a-${V}\n- [b, $V]\n- \"c={{ v1.x }}\"\n{% if v1.y %}\n- d-\n- e\n";
        assert_eq!(
            found(text),
            [
                "2:3 OpenPackage(\"apt\", \"a-${V}\")",
                "3:4 OpenPackage(\"apt\", \"b=$V\")",
                "4:4 OpenPackage(\"apt\", \"c={{ v1.x }}\")",
                "7:3 Package(\"apt\", \"e\")",
            ]
        );
    }
}
