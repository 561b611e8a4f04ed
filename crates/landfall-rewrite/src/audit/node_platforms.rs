//! Finds the node platforms that manifests require by node selectors and affinities.

use crate::error::RewriteError;
use crate::inputs::{InputContent, inputs, read};
use crate::yaml::{self, YamlEntry, YamlMapping, YamlNode, YamlSequence};
use landfall_model::Platform;
use landfall_model::document::LineIndex;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The text that both labels for the architecture contain.
const LABEL: &str = "kubernetes.io/arch";
const ARCHITECTURE: [&str; 2] = ["kubernetes.io/arch", "beta.kubernetes.io/arch"];
const SYSTEM: [&str; 2] = ["kubernetes.io/os", "beta.kubernetes.io/os"];

/// Returns the platforms that the files at `paths` require, each with its positions (`file:line`).
/// Files that cannot be read are skipped.
///
/// # Errors
/// If a path cannot be listed.
pub fn node_platforms(paths: &[PathBuf]) -> Result<BTreeMap<Platform, Vec<String>>, RewriteError> {
    let mut found: BTreeMap<Platform, Vec<String>> = BTreeMap::new();
    for input in inputs(paths, None)? {
        let Ok(InputContent::Text(text)) = read(&input) else {
            continue;
        };
        for (platform, line) in of_text(&text) {
            found
                .entry(platform)
                .or_default()
                .push(format!("{}:{line}", input.path.display()));
        }
    }
    Ok(found)
}

/// The platforms that a text requires, with their lines.
fn of_text(text: &str) -> Vec<(Platform, usize)> {
    if !text.contains(LABEL) {
        return Vec::new();
    }
    let Ok(documents) = yaml::documents(text).collect::<Result<Vec<_>, _>>() else {
        return of_template(text);
    };
    let mut found = Vec::new();
    documents
        .iter()
        .filter_map(|document| document.root.as_ref())
        .for_each(|root| walk(root, &mut found));
    let lines = LineIndex::new(text);
    let platform = |(system, architecture, at): &(String, String, usize)| {
        Some((platform(system, architecture)?, lines.line_column(*at).0))
    };
    found.iter().filter_map(platform).collect()
}

fn platform(system: &str, architecture: &str) -> Option<Platform> {
    format!("{system}/{architecture}").parse().ok()
}

fn walk(node: &YamlNode<'_>, found: &mut Vec<(String, String, usize)>) {
    match node {
        YamlNode::Sequence(YamlSequence { items, .. }) => {
            items.iter().for_each(|item| walk(item, found))
        }
        YamlNode::Mapping(YamlMapping { entries, .. }) => {
            found.extend(selected(entries));
            entries.iter().for_each(|entry| walk(&entry.value, found));
        }
        YamlNode::Scalar(_) | YamlNode::Alias(_) => {}
    }
}

/// The systems and architectures that the entries of one mapping require, with their offsets:
/// `LABEL: amd64` of a selector, or `{key: LABEL, operator: In, values: [amd64]}` of an affinity.
fn selected(entries: &[YamlEntry<'_>]) -> Vec<(String, String, usize)> {
    let scalar = |node: &YamlNode<'_>| {
        let scalar = node.scalar()?;
        Some((scalar.text()?.to_owned(), scalar.span.start))
    };
    // a selector without a system is assumed to select Linux nodes
    let system = SYSTEM
        .iter()
        .find_map(|name| yaml::text_of(entries, name))
        .unwrap_or("linux");
    let is_expression = yaml::text_of(entries, "key")
        .is_some_and(|key| ARCHITECTURE.contains(&key))
        && yaml::text_of(entries, "operator") == Some("In");
    let values = entries
        .iter()
        .flat_map(|YamlEntry { key, value }| match (scalar(key), value) {
            (Some((key, _)), value) if ARCHITECTURE.contains(&key.as_str()) => vec![value],
            (Some((key, _)), YamlNode::Sequence(YamlSequence { items, .. }))
                if is_expression && key == "values" =>
            {
                items.iter().collect()
            }
            _ => Vec::new(),
        });
    values
        .filter_map(scalar)
        .map(|(architecture, at)| (system.to_owned(), architecture, at))
        .collect()
}

/// Reads the lines `LABEL: amd64` of a text that is not YAML.
fn of_template(text: &str) -> Vec<(Platform, usize)> {
    let bare = |text: &str| text.trim().trim_matches(['"', '\'']).to_owned();
    let line = |(at, line): (usize, &str)| {
        let (key, value) = line.split_once(": ")?;
        let is_label = ARCHITECTURE.contains(&bare(key).as_str());
        Some((
            platform("linux", &bare(value)).filter(|_| is_label)?,
            at + 1,
        ))
    };
    text.lines().enumerate().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        of_text(text)
            .iter()
            .map(|(platform, line)| format!("{platform} {line}"))
            .collect()
    }

    #[test]
    fn selectors_and_affinities_name_architectures() {
        let text = "spec:\n  nodeSelector: {kubernetes.io/arch: amd64, kubernetes.io/os: linux}\n---\n\
                    nodeSelector:\n  kubernetes.io/os: windows\n  beta.kubernetes.io/arch: amd64\n---\n\
                    - matchExpressions:\n  - key: kubernetes.io/arch\n    operator: In\n    values: [arm64, s390x]\n  \
                    - {key: kubernetes.io/arch, operator: NotIn, values: [ppc64le]}\n---\n\
                    topologyKey: kubernetes.io/arch\nnodeSelector: {kubernetes.io/arch: \"{{ .Values.arch }}\"}\n";
        assert_eq!(
            found(text),
            [
                "linux/amd64 2",
                "windows/amd64 6",
                "linux/arm64 11",
                "linux/s390x 11"
            ]
        );
        let template = "{{- if .x }}\nnodeSelector:\n  \"kubernetes.io/arch\": 'arm64'\n  kubernetes.io/arch: {{ .y }}\n{{- end }}\n";
        assert_eq!(found(template), ["linux/arm64 3"]);
    }
}
