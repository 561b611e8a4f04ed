//! Finds the git repositories that documents of Argo CD, Flux, Kustomize and Terraform use.

use super::positions::start_of;
use crate::git_source::{GitSource, GitSourceForm};
use crate::yaml::{YamlDocument, YamlMapping, YamlNode, YamlSequence, text_of, value_of};
use std::fmt;
use std::path::Path;

/// A use of a git repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GitUse {
    /// The offset of its first byte in the text.
    pub(super) at: usize,
    /// The keys that lead to the value.
    pub(super) path: Vec<String>,
    /// The source or URL, as written.
    pub(super) written: String,
    /// The http or https URL of the repository.
    pub(super) url: String,
    /// The branch, tag, commit or range of versions.
    pub(super) revision: Option<String>,
    pub(super) form: GitSourceForm,
    /// Whether the locked URL may also be this URL with `.git` added: a rewrite changes such
    /// sources, too.
    pub(super) is_source: bool,
}

/// The lists of a kustomization whose items may be in git.
const KUSTOMIZE_LISTS: [&str; 3] = ["resources", "bases", "components"];
/// The keys with the version of a repository in documents of Argo CD.
const ARGO_REVISIONS: [&str; 2] = ["targetRevision", "revision"];
/// The keys of `spec.ref` of Flux's `GitRepository`. The first one that is present counts.
const FLUX_REVISIONS: [&str; 5] = ["commit", "name", "semver", "tag", "branch"];

/// The kind of a document.
#[derive(Clone, Copy, PartialEq, Eq)]
enum GitDocumentKind {
    FluxRepository,
    Kustomization,
    Other,
}

/// Whether the file is a configuration of Terraform or OpenTofu.
pub(super) fn is_terraform(name: &Path) -> bool {
    name.extension()
        .is_some_and(|ending| ending == "tf" || ending == "tofu")
}

/// The sources of modules in a configuration of Terraform.
pub(super) fn in_terraform(text: &str) -> Vec<GitUse> {
    let mut uses = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if let Some(value) = quoted_source(line)
            && let Some(source) = GitSource::parse(value)
        {
            let at = start + (value.as_ptr() as usize - line.as_ptr() as usize);
            uses.push(GitUse::of_source(at, Vec::new(), value, &source));
        }
        start += line.len();
    }
    uses
}

/// The value of a line `source = "…"` or `module "…" { source = "…" }`.
fn quoted_source(line: &str) -> Option<&str> {
    let mut argument = line.trim_start();
    if argument.starts_with("module") {
        argument = argument.split_once('{')?.1.trim_start();
    }
    let value = argument.strip_prefix("source")?.trim_start();
    let value = value.strip_prefix('=')?.trim_start().strip_prefix('"')?;
    Some(value.split_once('"')?.0)
}

/// The repositories that a document of the file `name` uses.
pub(super) fn in_document(name: &Path, document: &YamlDocument<'_>) -> Vec<GitUse> {
    let mut uses = Vec::new();
    if let Some(root) = &document.root {
        let mut finder = GitUseFinder {
            kind: kind_of(name, root),
            path: Vec::new(),
            uses: &mut uses,
        };
        finder.visit(root);
    }
    uses
}

fn kind_of(name: &Path, root: &YamlNode<'_>) -> GitDocumentKind {
    let YamlNode::Mapping(YamlMapping { entries, .. }) = root else {
        return GitDocumentKind::Other;
    };
    let version = text_of(entries, "apiVersion");
    let is_kustomize = |version: &str| version.starts_with("kustomize.config.k8s.io/");
    let stem = name.file_stem().unwrap_or_default();
    match text_of(entries, "kind") {
        Some("GitRepository") => GitDocumentKind::FluxRepository,
        Some("Kustomization" | "Component") if version.is_some_and(is_kustomize) => {
            GitDocumentKind::Kustomization
        }
        None if stem.eq_ignore_ascii_case("kustomization") => GitDocumentKind::Kustomization,
        _ => GitDocumentKind::Other,
    }
}

/// A step from a node to one below it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NodeStep<'d> {
    Key(&'d str),
    Item(usize),
}

impl fmt::Display for NodeStep<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NodeStep::Key(key) => f.write_str(key),
            NodeStep::Item(at) => write!(f, "[{at}]"),
        }
    }
}

struct GitUseFinder<'d, 'f> {
    kind: GitDocumentKind,
    /// The steps to the current node. Every node is visited, so the steps are converted to texts
    /// only when a use is found.
    path: Vec<NodeStep<'d>>,
    uses: &'f mut Vec<GitUse>,
}

impl<'d> GitUseFinder<'d, '_> {
    fn visit(&mut self, node: &'d YamlNode<'d>) {
        match node {
            // the node that an alias refers to was visited already
            YamlNode::Scalar(_) | YamlNode::Alias(_) => {}
            YamlNode::Sequence(YamlSequence { items, .. }) => {
                for (at, item) in items.iter().enumerate() {
                    self.visit_child(NodeStep::Item(at), item);
                }
            }
            YamlNode::Mapping(mapping) => {
                self.add_mapping(mapping);
                for entry in &mapping.entries {
                    if let Some(key) = entry.key.scalar() {
                        self.visit_child(NodeStep::Key(&key.value), &entry.value);
                    }
                }
            }
        }
    }

    fn visit_child(&mut self, step: NodeStep<'d>, node: &'d YamlNode<'d>) {
        self.path.push(step);
        if self.kind == GitDocumentKind::Kustomization
            && let [NodeStep::Key(list), _] = &self.path[..]
            && KUSTOMIZE_LISTS.contains(list)
        {
            self.add_source(node);
        }
        self.visit(node);
        self.path.pop();
    }

    fn path_texts(&self) -> Vec<String> {
        self.path.iter().map(NodeStep::to_string).collect()
    }

    /// Adds the repository that an item of a kustomization names, if it names one.
    fn add_source(&mut self, node: &YamlNode<'_>) {
        if let Some(text) = node.scalar().and_then(|scalar| scalar.text())
            && let Some(source) = GitSource::parse(text.trim())
            && let Some(at) = start_of(node)
        {
            let used = GitUse::of_source(at, self.path_texts(), text.trim(), &source);
            self.uses.push(used);
        }
    }

    /// Adds the repository that a mapping of Argo CD or Flux names.
    fn add_mapping(&mut self, mapping: &YamlMapping<'_>) {
        let entries = &mapping.entries;
        // with `chart`, `repoURL` is a chart repository
        let is_argo = text_of(entries, "repoURL").is_some() && value_of(entries, "chart").is_none();
        let is_flux =
            self.kind == GitDocumentKind::FluxRepository && self.path == [NodeStep::Key("spec")];
        let key = match (is_argo, is_flux) {
            (true, _) => "repoURL",
            (_, true) => "url",
            _ => return,
        };
        let Some(node) = value_of(entries, key) else {
            return;
        };
        let Some(written) = text_of(entries, key).map(str::trim) else {
            return;
        };
        let (Some(source), Some(at)) = (GitSource::of_repository(written), start_of(node)) else {
            return;
        };
        let revision = if is_argo {
            let mut keys = ARGO_REVISIONS.iter();
            keys.find_map(|key| text_of(entries, key))
        } else if let Some(YamlNode::Mapping(reference)) = value_of(entries, "ref") {
            let mut keys = FLUX_REVISIONS.iter();
            keys.find_map(|key| text_of(&reference.entries, key))
        } else {
            // Flux's default
            Some("master")
        };
        let mut path = self.path_texts();
        path.push(key.to_owned());
        self.uses.push(GitUse {
            at,
            path,
            written: written.to_owned(),
            url: source.url,
            revision: revision.map(|text| text.trim().to_owned()),
            form: source.form,
            is_source: false,
        });
    }
}

impl GitUse {
    fn of_source(at: usize, path: Vec<String>, written: &str, source: &GitSource<'_>) -> GitUse {
        GitUse {
            at,
            path,
            written: written.to_owned(),
            url: source.url.clone(),
            revision: source.revision.map(str::to_owned),
            form: source.form,
            is_source: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_of_modules_are_found_in_terraform_and_opentofu() {
        let text = "module \"a\" {\n  source = \"git::https://h.example/a?ref=v1\"\n}\n\
                    module \"b\" { source = \"git::https://h.example/b?ref=v2\" }\n\
                    # source = \"git::https://h.example/c\"\nmodule \"d\" {}\n";
        let found = in_terraform(text);
        let urls: Vec<&str> = found.iter().map(|one| one.url.as_str()).collect();
        assert_eq!(urls, ["https://h.example/a", "https://h.example/b"]);
        assert!(found.iter().all(|one| text[one.at..].starts_with("git::")));
        for (name, is_read) in [("main.tf", true), ("main.tofu", true), ("main.hcl", false)] {
            assert_eq!(is_terraform(Path::new(name)), is_read, "{name}");
        }
    }
}
