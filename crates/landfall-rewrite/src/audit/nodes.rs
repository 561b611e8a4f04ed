//! Reads what describes nodes: the tables of images that container runtimes print, and the node
//! platforms that manifests require.

use crate::inputs::{InputContent, RewriteError, inputs, read};
use crate::text::lines_at;
use crate::walk::{ImageCandidate, ImageClaim};
use crate::yaml::{self, YamlEntry, YamlMapping, YamlNode, YamlSequence};
use landfall_model::document::LineIndex;
use landfall_model::{Digest, JsonText, Platform, PlatformRequest};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

// Reads lists of the images on a node: the tables of `ctr images ls`, `crictl images` and
// `docker images`, and the lines of `docker images --format json`, each of which is an object.

/// The first columns of each table.
const CTR: [&str; 3] = ["REF", "TYPE", "DIGEST"];

const CRICTL: [&str; 2] = ["IMAGE", "TAG"];

const DOCKER: [&str; 2] = ["REPOSITORY", "TAG"];

/// The images of a list, with their digests if the list has them. `None` if `text` is not such a
/// list.
pub(super) fn candidates(text: &str) -> Option<Vec<ImageCandidate>> {
    let first = text.lines().next()?;
    let is_json = json_row(first).is_some();
    let head: Vec<&str> = first.split_whitespace().collect();
    let read_row: fn(&[&str], Option<usize>) -> Option<NodeListRow> = if head.starts_with(&CTR) {
        ctr_row
    } else if is_json || head.starts_with(&CRICTL) || head.starts_with(&DOCKER) {
        row_by_columns
    } else {
        return None;
    };
    let digest_at = head.iter().position(|column| *column == "DIGEST");
    let mut found = Vec::new();
    for (start, line) in lines_at(text) {
        let cells: Vec<&str> = line.split_whitespace().collect();
        let row = if is_json {
            json_row(line)
        } else {
            // the first line is the head of the table
            read_row(&cells, digest_at).filter(|_| start > 0)
        };
        match row {
            Some(NodeListRow::Image(written)) => {
                let claim = ImageClaim::of_container(&written);
                found.extend(ImageCandidate::all(start, claim));
            }
            Some(NodeListRow::Nameless(shown)) => {
                let why = "the node has it without a tag: list it with its digest";
                found.push(ImageCandidate::undecided(start, shown, why));
            }
            None => {}
        }
    }
    Some(found)
}

/// Reads the object of an image, as docker and nerdctl write it.
fn json_row(line: &str) -> Option<NodeListRow> {
    let [id, name, tag, digest] =
        JsonText::new(line).members_if_object(["ID", "Repository", "Tag", "Digest"]);
    // values of a chart may have the other names
    id?;
    let (name, tag) = (name?.string()?, tag?.string()?);
    let digest = digest.and_then(JsonText::string).unwrap_or_default();
    row_by_columns(&[&name, &tag, &digest], Some(2))
}

/// A row of a list.
enum NodeListRow {
    Image(String),
    /// The name of an image whose row has neither a tag nor a digest, so that it cannot be looked
    /// up.
    Nameless(String),
}

/// Reads `REF TYPE DIGEST …`. A row whose reference is only a digest repeats an image of another
/// row.
fn ctr_row(cells: &[&str], _: Option<usize>) -> Option<NodeListRow> {
    let [reference, _, digest, ..] = cells else {
        return None;
    };
    if reference.parse::<Digest>().is_ok() {
        return None;
    }
    let is_pinned = reference.contains('@') || digest.parse::<Digest>().is_err();
    Some(NodeListRow::Image(if is_pinned {
        (*reference).to_owned()
    } else {
        format!("{reference}@{digest}")
    }))
}

/// Reads `IMAGE TAG [DIGEST] …`. crictl prints a part of the digest, docker all of it.
fn row_by_columns(cells: &[&str], digest_at: Option<usize>) -> Option<NodeListRow> {
    let [name, tag, ..] = cells else { return None };
    let digest = digest_at
        .and_then(|at| cells.get(at))
        .filter(|digest| digest.parse::<Digest>().is_ok());
    Some(match (*tag, digest) {
        ("<none>", None) => NodeListRow::Nameless((*name).to_owned()),
        ("<none>", Some(digest)) => NodeListRow::Image(format!("{name}@{digest}")),
        (tag, Some(digest)) => NodeListRow::Image(format!("{name}:{tag}@{digest}")),
        (tag, None) => NodeListRow::Image(format!("{name}:{tag}")),
    })
}

// Finds the node platforms that manifests require by node selectors and affinities.

/// The text that both labels for the architecture contain.
const LABEL: &str = "kubernetes.io/arch";

const ARCHITECTURE: [&str; 2] = ["kubernetes.io/arch", "beta.kubernetes.io/arch"];

const SYSTEM: [&str; 2] = ["kubernetes.io/os", "beta.kubernetes.io/os"];

/// The operating system of a node selector that names none.
const DEFAULT_SYSTEM: &str = "linux";

/// Returns the platforms that the files at `paths` require, each with its positions (`file:line`).
/// A platform that is only one of several of an affinity is optional. Files that cannot be read are
/// skipped.
///
/// # Errors
/// If a path cannot be listed.
pub fn node_platforms(
    paths: &[PathBuf],
) -> Result<Vec<(PlatformRequest, Vec<String>)>, RewriteError> {
    let mut found: BTreeMap<Platform, (bool, Vec<String>)> = BTreeMap::new();
    for input in inputs(paths, None)? {
        let Ok(InputContent::Text(text, _)) = read(&input) else {
            continue;
        };
        for (PlatformRequest { platform, optional }, line) in of_text(&text) {
            let (all_optional, places) = found.entry(platform).or_insert((true, Vec::new()));
            *all_optional &= optional;
            places.push(format!("{}:{line}", input.path.display()));
        }
    }
    let found = found.into_iter().map(|(platform, (optional, places))| {
        let request = PlatformRequest { platform, optional };
        (request, places)
    });
    Ok(found.collect())
}

/// The platforms that a text requires, with their lines.
fn of_text(text: &str) -> Vec<(PlatformRequest, usize)> {
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
        .for_each(|root| walk(root, &[DEFAULT_SYSTEM], &mut found));
    let lines = LineIndex::new(text);
    let request = |one: &SelectedNodes| {
        let request = PlatformRequest {
            platform: platform(&one.system, &one.architecture)?,
            optional: one.is_alternative,
        };
        Some((request, lines.line_column(one.at).0))
    };
    found.iter().filter_map(request).collect()
}

/// A system and an architecture that a selector or an affinity requires.
struct SelectedNodes {
    system: String,
    architecture: String,
    /// Whether nodes of another architecture will do as well.
    is_alternative: bool,
    /// The offset of the architecture.
    at: usize,
}

fn platform(system: &str, architecture: &str) -> Option<Platform> {
    format!("{system}/{architecture}").parse().ok()
}

/// Adds the systems and architectures that `node` requires. `systems` are the systems that apply
/// unless `node` names its own.
fn walk<'n>(node: &'n YamlNode<'n>, systems: &[&'n str], found: &mut Vec<SelectedNodes>) {
    match node {
        YamlNode::Sequence(YamlSequence { items, .. }) => {
            // the expressions of a list apply together; each system counts once, so that a hostile
            // document cannot combine many systems with many architectures
            let own: BTreeSet<&str> = items.iter().flat_map(expressed_systems).collect();
            let own: Vec<&str> = own.into_iter().collect();
            let systems = if own.is_empty() { systems } else { &own[..] };
            items.iter().for_each(|item| walk(item, systems, found));
        }
        YamlNode::Mapping(YamlMapping { entries, .. }) => {
            // a node selector applies together with the affinity next to it
            let own = match yaml::value_of(entries, "nodeSelector") {
                Some(YamlNode::Mapping(selector)) => {
                    // a selector is complete: that of another mapping does not apply here
                    Some(system_label(&selector.entries).unwrap_or(DEFAULT_SYSTEM))
                }
                _ => system_label(entries),
            };
            let own: Vec<&str> = own.into_iter().collect();
            let systems = if own.is_empty() { systems } else { &own[..] };
            found.extend(selected(entries, systems));
            entries
                .iter()
                .for_each(|entry| walk(&entry.value, systems, found));
        }
        YamlNode::Scalar(_) | YamlNode::Alias(_) => {}
    }
}

/// The value of the label for the system in the entries of a selector.
fn system_label<'n>(entries: &'n [YamlEntry<'n>]) -> Option<&'n str> {
    SYSTEM.iter().find_map(|name| yaml::text_of(entries, name))
}

/// The known systems of an expression of an affinity, such as
/// `{key: SYSTEM, operator: In, values: [windows]}`.
fn expressed_systems<'n>(node: &'n YamlNode<'n>) -> Vec<&'n str> {
    let entries = node.entries();
    if !is_expression(entries, &SYSTEM) {
        return Vec::new();
    }
    let values = yaml::items_of(entries, "values").iter();
    values
        .filter_map(|value| value.scalar()?.text())
        .filter(|system| platform(system, "amd64").is_some())
        .collect()
}

/// Whether `entries` are an expression of an affinity that requires one of several values of a
/// label.
fn is_expression(entries: &[YamlEntry<'_>], labels: &[&str]) -> bool {
    yaml::text_of(entries, "key").is_some_and(|key| labels.contains(&key))
        && yaml::text_of(entries, "operator") == Some("In")
}

/// The architectures that the entries of one mapping require: `LABEL: amd64` of a selector, or
/// `{key: LABEL, operator: In, values: [amd64]}` of an affinity. Each architecture is returned once
/// for each of `systems`.
fn selected(entries: &[YamlEntry<'_>], systems: &[&str]) -> Vec<SelectedNodes> {
    let scalar = |node: &YamlNode<'_>| {
        let scalar = node.scalar()?;
        Some((scalar.text()?.to_owned(), scalar.span.start))
    };
    let is_expression = is_expression(entries, &ARCHITECTURE);
    let mut found = Vec::new();
    for YamlEntry { key, value } in entries {
        let values: Vec<&YamlNode<'_>> = match (scalar(key), value) {
            (Some((key, _)), value) if ARCHITECTURE.contains(&key.as_str()) => vec![value],
            (Some((key, _)), YamlNode::Sequence(YamlSequence { items, .. }))
                if is_expression && key == "values" =>
            {
                items.iter().collect()
            }
            _ => continue,
        };
        let is_alternative = values.len() > 1;
        for (architecture, at) in values.into_iter().filter_map(scalar) {
            found.extend(systems.iter().map(|system| SelectedNodes {
                system: (*system).to_owned(),
                architecture: architecture.clone(),
                is_alternative,
                at,
            }));
        }
    }
    found
}

/// A line of a text that is not YAML: `key: value`, or only a key.
struct TemplateLine<'t> {
    /// The line, counted from 1.
    line: usize,
    indent: usize,
    key: &'t str,
    value: &'t str,
}

/// Reads the lines `LABEL: amd64` of a text that is not YAML. The label for the system applies to
/// the lines around it with the same indentation.
fn of_template(text: &str) -> Vec<(PlatformRequest, usize)> {
    let mut lines = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let content = line.trim_start();
        // actions may be between the entries of a selector
        if content.is_empty() || content.starts_with("{{") {
            continue;
        }
        let (key, value) = content.split_once(": ").unwrap_or((content, ""));
        lines.push(TemplateLine {
            line: at + 1,
            indent: line.len() - content.len(),
            key: without_quotes(key),
            value: without_quotes(value),
        });
    }
    let mut found = Vec::new();
    for selector in lines.chunk_by(|one, next| one.indent == next.indent) {
        let system = selector
            .iter()
            .find(|one| SYSTEM.contains(&one.key) && !one.value.contains("{{"))
            .map_or(DEFAULT_SYSTEM, |one| one.value);
        for one in selector
            .iter()
            .filter(|one| ARCHITECTURE.contains(&one.key))
        {
            let platform = platform(system, one.value).map(PlatformRequest::from);
            found.extend(platform.map(|platform| (platform, one.line)));
        }
    }
    found
}

fn without_quotes(text: &str) -> &str {
    text.trim().trim_matches(['"', '\''])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> Option<Vec<String>> {
        Some(
            candidates(text)?
                .into_iter()
                .map(|one| one.written)
                .collect(),
        )
    }

    #[test]
    fn the_table_of_each_tool_is_read() {
        let a = Digest::sha256(b"a");
        let b = Digest::sha256(b"b");
        let ctr = format!(
            "REF                 TYPE      DIGEST   SIZE  PLATFORMS LABELS\n\
         docker.io/library/busybox:1.36 application/x {a} 2.1 MiB linux/amd64 -\n\
         registry.k8s.io/pause@{b} application/x {b} 314.0 KiB linux/amd64 -\n{b} application/x {b} 1.0 KiB - -\n"
        );
        let expected = [
            format!("docker.io/library/busybox:1.36@{a}"),
            format!("registry.k8s.io/pause@{b}"),
        ];
        assert_eq!(written(&ctr).unwrap(), expected);
        let crictl = "IMAGE                  TAG      IMAGE ID        SIZE\nquay.io/x/y  v1  0123456789abc  1MB\nquay.io/x/z  <none>  0123  1MB\n";
        assert_eq!(written(crictl).unwrap(), ["quay.io/x/y:v1", "quay.io/x/z"]);
        let docker = format!(
            "REPOSITORY  TAG  DIGEST  IMAGE ID  CREATED  SIZE\nbusybox  1.36  {a}  01  2 weeks ago  4MB\nx/y <none> {b} 02 - 1MB\n"
        );
        assert_eq!(
            written(&docker).unwrap(),
            [format!("busybox:1.36@{a}"), format!("x/y@{b}")]
        );
        assert_eq!(written("quay.io/x/y:v1\n"), None);
    }

    #[test]
    fn an_object_for_each_image_is_read() {
        let a = Digest::sha256(b"a");
        let docker = format!(
            "{{\"ID\":\"01\",\"Repository\":\"busybox\",\"Tag\":\"1.36\",\"Digest\":\"<none>\"}}\n\
             {{\"ID\":\"02\",\"Repository\":\"quay.io/x/y\",\"Tag\":\"v1\",\"Digest\":\"{a}\"}}\n\
             {{\"ID\":\"03\",\"Repository\":\"<none>\",\"Tag\":\"<none>\"}}\n"
        );
        assert_eq!(
            written(&docker).unwrap(),
            ["busybox:1.36", &format!("quay.io/x/y:v1@{a}"), "<none>"]
        );
        for other in [
            "{\"Repository\":\"a/b\",\"Tag\":\"v1\"}\n",
            "{\"ID\":\"01\"}\n",
            "{\n",
        ] {
            assert_eq!(written(other), None, "{other}");
        }
    }

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
                // the pod runs on either
                "linux/arm64? 11",
                "linux/s390x? 11"
            ]
        );
        let template = "{{- if .x }}\nnodeSelector:\n  \"kubernetes.io/arch\": 'arm64'\n  kubernetes.io/arch: {{ .y }}\n{{- end }}\n";
        assert_eq!(found(template), ["linux/arm64 3"]);
    }

    #[test]
    fn the_system_may_be_in_another_expression_or_in_the_selector_next_to_an_affinity() {
        let system = "{key: kubernetes.io/os, operator: In, values: [windows]}";
        let architecture = "{key: kubernetes.io/arch, operator: In, values: [amd64]}";
        let template = "{{- if .x }}\nnodeSelector:\n  kubernetes.io/arch: amd64\n  {{- if .y }}\n  \
                    kubernetes.io/os: windows\n  {{- end }}\nmore:\n  \
                    kubernetes.io/arch: arm64\n{{- end }}\n";
        for (text, expected) in [
            (
                format!("- [{system}, {architecture}]\n- [{architecture}]\n"),
                "windows/amd64 1, linux/amd64 2",
            ),
            (
                format!(
                    "- [{}, {architecture}]\n",
                    system.replace("windows", "linux, windows")
                ),
                "linux/amd64 1, windows/amd64 1",
            ),
            (
                format!("- [{}, {architecture}]\n", system.replace("In", "NotIn")),
                "linux/amd64 1",
            ),
            (
                format!("nodeSelector: {{kubernetes.io/os: windows}}\nx:\n- {architecture}\n"),
                "windows/amd64 3",
            ),
            (template.to_owned(), "windows/amd64 3, linux/arm64 8"),
        ] {
            assert_eq!(found(&text).join(", "), expected, "{text}");
        }
    }
}
