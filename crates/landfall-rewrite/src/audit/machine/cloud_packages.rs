//! Finds the packages that cloud-init installs: the list `packages` of a document.

use super::commands::{MachineInstall, PlacedInstall, is_package};
use crate::walk::start_of;
use crate::yaml::{self, YamlNode};
use landfall_model::document::LineIndex;

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
            let value = line.strip_prefix("packages:").map(without_comment);
            inside = value.is_some_and(str::is_empty);
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
        let item = without_comment(item);
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
    found.extend(in_brackets(text));
    found
}

/// The list of packages of apt in a flow mapping of package managers; empty if there is none.
fn packages_of_apt(mapping: &str) -> &str {
    let list = mapping.split_once("apt:").map_or("", |(_, list)| list);
    let list = list.trim_start_matches([' ', '[']);
    list.split([']', '}']).next().unwrap_or_default()
}

fn without_comment(value: &str) -> &str {
    value.split(" #").next().unwrap_or(value).trim()
}

/// The packages of a list in brackets. Such a list may have several lines, so the text is parsed.
fn in_brackets(text: &str) -> Vec<PlacedInstall> {
    if !text.lines().any(|line| line.starts_with("packages:")) {
        return Vec::new();
    }
    let mut words = Vec::new();
    for document in yaml::documents(text).flatten() {
        if let Some(YamlNode::Mapping(root)) = &document.root
            && let Some(YamlNode::Sequence(list)) = yaml::value_of(&root.entries, "packages")
            && list.flow
        {
            words.extend(list.items.iter().flat_map(node_packages));
        }
    }
    let lines = LineIndex::new(text);
    let placed = words.into_iter().filter_map(|(at, written)| {
        let (line, column) = lines.line_column(at);
        Some(PlacedInstall {
            install: install(written)?,
            line,
            column,
            inside: None,
        })
    });
    placed.collect()
}

/// The packages in an item of a list in brackets: the offset of the name, and the text for apt.
fn node_packages(item: &YamlNode<'_>) -> Vec<(usize, String)> {
    match item {
        YamlNode::Scalar(_) | YamlNode::Alias(_) => node_word(item).into_iter().collect(),
        YamlNode::Sequence(names) => {
            let words: Vec<(usize, String)> = names.items.iter().filter_map(node_word).collect();
            if let [(at, name), (_, version)] = &words[..] {
                return vec![(*at, format!("{name}={version}"))];
            }
            words
        }
        // `{apt: [NAME]}`; packages of other managers, such as `snap`, are skipped
        YamlNode::Mapping(managers) => match yaml::value_of(&managers.entries, "apt") {
            Some(YamlNode::Sequence(list)) => list.items.iter().flat_map(node_packages).collect(),
            _ => Vec::new(),
        },
    }
}

/// The text of a scalar, and its offset.
fn node_word(node: &YamlNode<'_>) -> Option<(usize, String)> {
    let text = node.scalar()?.text()?;
    Some((start_of(node)?, text.to_owned()))
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
    fn lists_in_brackets_and_lists_after_a_comment_are_read() {
        for (text, expected) in [
            ("packages: # tools\n- jq\n", &["2:3 jq"][..]),
            (
                "packages: [jq, \"socat\"] # tools\nruncmd: [a]\n",
                &["1:12 jq", "1:17 socat"],
            ),
            (
                "packages: [\n  jq, # why\n  [b, 1.0-1],\n  {snap: [c]}, {apt: [d]},\n]\n",
                &["2:3 jq", "3:4 b=1.0-1", "4:23 d"],
            ),
            ("other: [a]\npackages: []\n", &[]),
        ] {
            let expected: Vec<String> = expected
                .iter()
                .filter_map(|one| one.split_once(' '))
                .map(|(place, name)| format!("{place} Package(\"apt\", {name:?})"))
                .collect();
            assert_eq!(found(text), expected, "{text}");
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
