//! Finds the files that documents of clusters name by their URLs.

use super::commands::{MachineInstall, PlacedInstall, fetched};
use super::file_at;
use crate::git_source::GitSource;
use crate::walk::start_of;
use crate::yaml::{YamlDocument, YamlEntry, YamlNode, documents, items_of, value_of};
use landfall_model::document::LineIndex;
use std::path::Path;

/// Lists of URLs of manifests: those of Talos and RKE.
const URL_LISTS: [&str; 2] = ["extraManifests", "addons_include"];

/// Lists of a kustomization. An item is a file or a folder, here or at a URL, or in git.
const KUSTOMIZE_LISTS: [&str; 9] = [
    "resources",
    "bases",
    "components",
    "configurations",
    "crds",
    "generators",
    "patchesStrategicMerge",
    "transformers",
    "validators",
];

/// Modules of Ansible, each with the argument that may be the URL of a file.
const DOWNLOADS: [(&str, &str); 7] = [
    ("get_url", "url"),
    ("unarchive", "src"),
    ("apt", "deb"),
    ("dnf", "name"),
    ("yum", "name"),
    ("apt_key", "url"),
    ("rpm_key", "key"),
];

/// Mappings of Talos with a list of URLs, each with the key of the list: a custom network, and the
/// manifests of a cloud provider.
const URL_MAPPINGS: [(&str, &str); 2] = [("cni", "urls"), ("externalCloudProvider", "manifests")];

/// Words of documents that may have sources of the form `http: {url: …}`: those of vendir,
/// kapp-controller and KubeVirt.
const HTTP_SOURCES: [&str; 4] = [
    "k14s.io/",
    "carvel.dev/",
    "cdi.kubevirt.io/",
    "dataVolumeTemplates",
];

/// The group of charts of k3s.
const K3S: &str = "helm.cattle.io/";

/// Names of files without their endings, whose charts may be archives at a URL.
const CHART_FILES: [&str; 2] = ["fleet", "helmfile"];

/// Words of other documents that may name files, except kustomizations.
const FILE_WORDS: [&str; 13] = [
    "extraManifests",
    "addons_include",
    "get_url",
    "unarchive",
    "deb:",
    "dnf:",
    "yum:",
    "apt_key",
    "rpm_key",
    "cni:",
    "externalCloudProvider",
    K3S,
    "osImage",
];

/// The files that `text`, a document in the file at `path`, names by their URLs: in kustomizations,
/// configurations of Talos and RKE, tasks of Ansible, sources of vendir, kapp-controller and
/// KubeVirt, machines of KKP, and as charts of k3s, Fleet and Helmfile.
pub(crate) fn document_files(path: &Path, text: &str) -> Vec<PlacedInstall> {
    let stem = path.file_stem().unwrap_or_default();
    let is_kustomization = stem.eq_ignore_ascii_case("kustomization");
    let has_one_of = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let has_http_sources = has_one_of(&HTTP_SOURCES);
    let is_named = CHART_FILES
        .iter()
        .any(|name| stem.eq_ignore_ascii_case(name));
    if !(is_kustomization || has_http_sources || is_named || has_one_of(&FILE_WORDS)) {
        return Vec::new();
    }
    let has_charts = is_named || text.contains(K3S);
    let lines = LineIndex::new(text);
    let mut found = Vec::new();
    for document in documents(text).flatten() {
        let nodes = document.root.iter().flat_map(YamlNode::descendants);
        let file = |node: &YamlNode<'_>| file_at(&document, node, &lines);
        for YamlEntry { key, value } in nodes.flat_map(YamlNode::entries) {
            if let Some(argument) = url_argument(key) {
                found.extend(downloaded(&document, value, argument, &lines));
            }
            let is_one_of = |names: &[&str]| names.iter().any(|name| key.is_text(name));
            match value {
                YamlNode::Sequence(list) if is_one_of(&URL_LISTS) => {
                    found.extend(list.items.iter().filter_map(file));
                }
                YamlNode::Sequence(list) if is_kustomization && is_one_of(&KUSTOMIZE_LISTS) => {
                    let items = list.items.iter().filter(|item| !is_git_source(item));
                    found.extend(items.filter_map(file));
                }
                YamlNode::Mapping(source) if has_http_sources && key.is_text("http") => {
                    found.extend(value_of(&source.entries, "url").and_then(file));
                }
                // a file of patches, of replacements or of `openapi`
                YamlNode::Scalar(_) if is_kustomization && key.is_text("path") => {
                    found.extend(file(value));
                }
                YamlNode::Scalar(_) if has_charts && key.is_text("chart") => {
                    found.extend(file(value));
                }
                // the disk of a machine of KKP on KubeVirt
                _ if key.is_text("osImage") => {
                    found.extend(file(value_of(value.entries(), "value").unwrap_or(value)));
                }
                YamlNode::Mapping(mapping) => {
                    let list = URL_MAPPINGS.iter().find(|(name, _)| key.is_text(name));
                    let urls = list.map(|(_, list)| items_of(&mapping.entries, list));
                    found.extend(urls.unwrap_or_default().iter().filter_map(file));
                }
                _ => {}
            }
        }
    }
    found.sort_by_key(|file| (file.line, file.column));
    found
}

/// The argument with the URL of a file, if `key` is the name of a module of Ansible that downloads
/// one.
fn url_argument(key: &YamlNode<'_>) -> Option<&'static str> {
    // the name of its collection may precede that of a module
    let module = key.scalar()?.text()?.rsplit('.').next()?;
    let mut modules = DOWNLOADS.into_iter();
    let (_, argument) = modules.find(|(name, _)| *name == module)?;
    Some(argument)
}

/// The files whose URLs are the value of `name` in `arguments` of Ansible: a mapping, or a text
/// such as `url=URL dest=PATH`.
fn downloaded(
    document: &YamlDocument<'_>,
    arguments: &YamlNode<'_>,
    name: &str,
    lines: &LineIndex<'_>,
) -> Vec<PlacedInstall> {
    let install = |node: &YamlNode<'_>, url: &str| {
        // the variable may have the beginning of a URL, or in `src` that of a path
        let install = if name == "url" && url.starts_with("{{") {
            MachineInstall::Unclear(url.to_owned())
        } else {
            fetched(url)?
        };
        Some(PlacedInstall::new(install, lines, start_of(node)?))
    };
    if let Some(source) = value_of(arguments.entries(), name) {
        let nodes = std::iter::once(source).chain(source.items());
        return nodes
            .filter_map(|node| install(node, document.text(node)?))
            .collect();
    }
    let of_text = || {
        let mut words = arguments.scalar()?.text()?.split_whitespace();
        let url = words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='))?;
        install(arguments, url.trim_matches(['"', '\'']))
    };
    of_text().into_iter().collect()
}

fn is_git_source(node: &YamlNode<'_>) -> bool {
    let text = node.scalar().and_then(|scalar| scalar.text());
    text.is_some_and(|text| GitSource::parse(text.trim()).is_some())
}

#[cfg(test)]
mod tests {
    use super::document_files;
    use crate::audit::MachineInstall;
    use std::path::Path;

    #[test]
    fn files_that_documents_name_by_their_urls_are_found() {
        let talos = "cluster:\n  network:\n    cni:\n      name: custom\n      urls:\n      - https://h.test/c.yaml\n  \
                     extraManifests: [\"https://h.test/a.yaml\"]\n  \
                     externalCloudProvider: {enabled: true, manifests: ['https://h.test/b.yaml']}\n  \
                     inlineManifests: [{name: x, contents: 'https://h.test/no.yaml'}]\n";
        let chart = |chart: &str| {
            format!("apiVersion: helm.cattle.io/v1\nkind: HelmChart\nspec:\n  chart: {chart}\n")
        };
        let kustomization = "resources:\n- https://h.test/i.yaml\n- ./x\n- https://h.test/r.git//d?ref=v1\n\
                             - https://github.com/o/r/releases/download/v1/j.yaml\n- https://github.com/o/r\n\
                             transformers: [https://h.test/t.yaml]\npatches:\n- path: https://h.test/p.yaml\n\
                             - path: p.yaml\n  patch: '- {op: add, path: /x, value: https://h.test/no}'\n";
        let tasks = "- get_url: {url: 'https://h.test/b.tgz', dest: /b}\n\
                     - ansible.builtin.get_url:\n    url: \"https://h.test/{{ v }}.tgz\"\n\
                     - get_url: url=\"https://h.test/c.tgz\" dest=/c\n\
                     - ansible.legacy.unarchive:\n    src: https://h.test/d.tgz\n    remote_src: true\n\
                     - unarchive: {src: d.tgz, dest: /d}\n- unarchive: src=e.tgz dest=/e\n\
                     - ansible.builtin.dnf: {name: [jq, 'https://h.test/d.rpm']}\n\
                     - get_url: {url: '{{ base }}/f.tgz', dest: /f}\n- unarchive: {src: '{{ path }}'}\n";
        let vendir = "apiVersion: vendir.k14s.io/v1alpha1\ndirectories:\n- contents:\n  \
                      - http: {url: https://h.test/v.tgz}\n";
        for (name, text, expected) in [
            (
                "vendir.yml",
                vendir.to_owned(),
                &["4:17 https://h.test/v.tgz"][..],
            ),
            (
                "vm.yaml",
                "dataVolumeTemplates:\n- spec: {source: {http: {url: 'https://h.test/a.img'}}}\n"
                    .to_owned(),
                &["2:32 https://h.test/a.img"],
            ),
            (
                "machines.yaml",
                "a: {osImage: https://h.test/a.img}\nb: {osImage: {value: https://h.test/b.img}}\n"
                    .to_owned(),
                &["1:14 https://h.test/a.img", "2:22 https://h.test/b.img"],
            ),
            (
                "c.yaml",
                talos.to_owned(),
                &[
                    "6:9 https://h.test/c.yaml",
                    "7:21 https://h.test/a.yaml",
                    "8:55 https://h.test/b.yaml",
                ],
            ),
            (
                "cluster.yml",
                "addons_include:\n  - https://h.test/x.yaml\n".to_owned(),
                &["2:5 https://h.test/x.yaml"],
            ),
            (
                "c.yaml",
                chart("https://h.test/c-1.0.0.tgz"),
                &["4:10 https://h.test/c-1.0.0.tgz"],
            ),
            ("c.yaml", chart("oci://h.test/c"), &[]),
            (
                "fleet.yaml",
                "helm: {chart: https://h.test/c-1.0.0.tgz}\n".to_owned(),
                &["1:15 https://h.test/c-1.0.0.tgz"],
            ),
            (
                "x/kustomization.yaml",
                kustomization.to_owned(),
                &[
                    "2:3 https://h.test/i.yaml",
                    "5:3 https://github.com/o/r/releases/download/v1/j.yaml",
                    "7:16 https://h.test/t.yaml",
                    "9:9 https://h.test/p.yaml",
                ],
            ),
            ("x/other.yaml", kustomization.to_owned(), &[]),
            (
                "tasks/main.yml",
                tasks.to_owned(),
                &[
                    "1:19 https://h.test/b.tgz",
                    "3:11 https://h.test/{{ v }}.tgz",
                    "4:12 https://h.test/c.tgz",
                    "6:10 https://h.test/d.tgz",
                    "10:37 https://h.test/d.rpm",
                    "11:19 {{ base }}/f.tgz",
                ],
            ),
        ] {
            let found = document_files(Path::new(name), &text).into_iter();
            let found = found.map(|one| match one.install {
                MachineInstall::File(url) | MachineInstall::Unclear(url) => {
                    format!("{}:{} {url}", one.line, one.column)
                }
                other => panic!("{other:?}"),
            });
            assert_eq!(found.collect::<Vec<String>>(), expected, "{name}");
        }
    }
}
