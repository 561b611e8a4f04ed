//! `zarf`: zarf.yaml, as defined in zarf-dev/zarf, src/api/v1alpha1 and v1beta1, with the
//! components that it imports from other files.

use super::imported::{ImportPosition, ImportSource, ImportedChart, ImportedItems};
use super::yaml::{
    documents, for_each_mapping, list, map, mapping, mapping_at, note_other_keys, scalar, text,
};
use crate::ManifestResult;
use landfall_model::document::read_text_input;
use serde_yaml::{Mapping, Value};
use std::path::Path;

/// How many files may import each other.
const MAX_DEPTH: usize = 16;
/// How many components a file may import. Each of several components of one name counts, and what
/// it imports, too.
const MAX_IMPORTS: usize = 1000;

/// How far imports of components may still go.
struct ImportLimits {
    depth: usize,
    imports: usize,
}

pub(super) fn read(source: &ImportSource, imported: &mut ImportedItems) -> ManifestResult<()> {
    let mut limits = ImportLimits {
        depth: MAX_DEPTH,
        imports: MAX_IMPORTS,
    };
    for package in documents(source)? {
        if !text(&package, "kind").is_some_and(|kind| kind.starts_with("Zarf")) {
            return Err(
                source.format_error("a package of Zarf", "it needs `kind: ZarfPackageConfig`")
            );
        }
        let architecture =
            map(&package, "metadata").and_then(|metadata| text(metadata, "architecture"));
        let platforms: Vec<String> = architecture
            .iter()
            .map(|name| format!("linux/{name}"))
            .collect();
        let known = [
            "apiVersion",
            "kind",
            "metadata",
            "components",
            "component",
            "build",
        ];
        note_other_keys(imported, source.at(""), &package, &known);
        for component in components(&package) {
            let Some(component) = mapping(imported, source.at("components"), &component) else {
                continue;
            };
            read_component(component, &platforms, source, imported, &mut limits);
        }
    }
    Ok(())
}

/// The components of a package, or the one component of a component file, which has the name of
/// the file.
fn components(package: &Mapping) -> Vec<Value> {
    let mut all = list(package, "components").to_vec();
    if let Some(component) = map(package, "component") {
        let mut component = component.clone();
        let name = map(package, "metadata").and_then(|metadata| metadata.get("name"));
        component.insert("name".into(), name.cloned().unwrap_or_default());
        all.push(component.into());
    }
    all
}

fn read_component(
    component: &Mapping,
    platforms: &[String],
    source: &ImportSource,
    imported: &mut ImportedItems,
    limits: &mut ImportLimits,
) {
    let name = text(component, "name").unwrap_or_default();
    let at = format!("component {name}");
    let at = source.at(&at);
    let inherited = inherited_components(component, &name, at, imported, limits);
    let mut inherited_charts: Vec<String> = Vec::new();
    for (file, folder, mut base) in inherited {
        inherited_charts.extend(change_charts(&mut base, list(component, "charts")));
        limits.depth -= 1;
        imported.in_folder(&folder, |imported| {
            read_component(&base, platforms, &file, imported, limits);
        });
        limits.depth += 1;
    }
    for (index, image) in list(component, "images").iter().enumerate() {
        let at = at.below(format_args!("images[{index}]"));
        let at = source.at(&at);
        let reference = match image {
            Value::Mapping(image) => text(image, "name"),
            image => scalar(image),
        };
        let reference = reference.unwrap_or_default();
        let from = image.get("source").and_then(scalar);
        if from.as_deref() == Some("daemon") {
            imported.not_imported(at, &reference, "it is in the local Docker daemon");
            continue;
        }
        imported.image(at, &reference, platforms);
    }
    for_each_mapping(imported, at, component, "files", |imported, at, file| {
        let is_executable = text(file, "executable").as_deref() == Some("true");
        let url = text(file, "source").unwrap_or_default();
        let sha256 = text(file, "shasum").or_else(|| text(file, "checksum"));
        let sha256 = sha256
            .as_deref()
            .map(|sum| sum.trim_start_matches("sha256:"));
        imported.file(at, &url, sha256, is_executable);
        let known = ["source", "shasum", "checksum", "executable"];
        note_other_keys(imported, at, file, &known);
    });
    for_each_mapping(imported, at, component, "charts", |imported, at, chart| {
        let is_inherited = text(chart, "name").is_some_and(|name| inherited_charts.contains(&name));
        read_chart(chart, is_inherited, at, imported);
    });
    let archives = "imageArchives";
    for_each_mapping(imported, at, component, archives, |imported, at, one| {
        let path = text(one, "path").unwrap_or_default();
        for image in list(one, "images") {
            let reference = scalar(image).unwrap_or_default();
            imported.archived_image(at, &path, &reference);
        }
        note_other_keys(imported, at, one, &["path", "images"]);
    });
    let git = "list it under `git`, with its branches or tags";
    for (key, why) in [
        ("repos", git),
        ("repositories", git),
        ("dataInjections", "landfall does not inject data into pods"),
        (
            "manifests",
            "`landfall discover` and `landfall rewrite` read them; list their images",
        ),
    ] {
        for (index, one) in list(component, key).iter().enumerate() {
            let label = |one: &Mapping| {
                ["name", "path", "url"]
                    .iter()
                    .find_map(|key| text(one, key))
            };
            let what = scalar(one).or_else(|| label(one.as_mapping()?));
            imported.not_imported(
                source.at(&at.below(format_args!("{key}[{index}]"))),
                &what.unwrap_or_default(),
                why,
            );
        }
    }
    let known = [
        "name",
        "description",
        "required",
        "optional",
        "default",
        "import",
        "images",
        "files",
        "charts",
        "repos",
        "repositories",
        "imageArchives",
        "dataInjections",
        "manifests",
    ];
    note_other_keys(imported, at, component, &known);
}

/// The components that `component` imports: each with its file, and the folder of that file
/// relative to the one of `component`. What cannot be read is reported.
fn inherited_components(
    component: &Mapping,
    name: &str,
    at: ImportPosition<'_>,
    imported: &mut ImportedItems,
    limits: &mut ImportLimits,
) -> Vec<(ImportSource, String, Mapping)> {
    let Some(import) = mapping_at(imported, at, component, "import") else {
        return Vec::new();
    };
    let name = text(import, "name").unwrap_or_else(|| name.to_owned());
    let in_lists = |list_key: &str, key: &str| -> Vec<String> {
        let entries = list(import, list_key).iter();
        entries
            .map(|one| {
                one.as_mapping()
                    .and_then(|one| text(one, key))
                    .unwrap_or_default()
            })
            .collect()
    };
    let mut urls = in_lists("remote", "url");
    urls.extend(text(import, "url").filter(|url| !url.is_empty()));
    for url in urls {
        let why =
            "its component is in a package in a registry: import the zarf.yaml of that package";
        imported.not_imported(at, &url, why);
    }
    let mut paths = in_lists("local", "path");
    paths.extend(text(import, "path").filter(|path| !path.is_empty()));
    let mut all = Vec::new();
    for path in paths {
        if limits.depth == 0 || limits.imports == 0 {
            let why = format!(
                "more than {MAX_DEPTH} files import each other, or there are more than \
                 {MAX_IMPORTS} imports"
            );
            imported.not_imported(at, &path, &why);
            continue;
        }
        match components_in(&path, &name, Path::new(&at.file())) {
            Ok(found) => {
                limits.imports = limits.imports.saturating_sub(found.len());
                all.extend(found);
            }
            Err(why) => imported.not_imported(at, &path, &why),
        }
    }
    all
}

/// The components called `name` in the file or package folder `path`, which the file `from` names.
/// There may be several, one for each flavor.
fn components_in(
    path: &str,
    name: &str,
    from: &Path,
) -> Result<Vec<(ImportSource, String, Mapping)>, String> {
    let mut file = from.with_file_name(path);
    let is_folder = file.is_dir();
    if is_folder {
        file.push("zarf.yaml");
    }
    let cause = "the component that it imports cannot be read";
    let read = read_text_input(&file).map_err(|error| format!("{cause}: {error}"))?;
    let folder = if is_folder {
        path
    } else {
        path.rsplit_once('/').map_or("", |(folder, _)| folder)
    };
    let source = |text: &str| ImportSource {
        file: file.display().to_string(),
        text: text.trim_start_matches('\u{feff}').to_owned(),
    };
    let packages = documents(&source(&read)).map_err(|error| format!("{cause}: {error}"))?;
    let found: Vec<(ImportSource, String, Mapping)> = packages
        .iter()
        .flat_map(|package| {
            let all = components(package);
            // a component file has one component, whatever its name
            let is_any = package.contains_key("component");
            all.into_iter().filter(move |one| {
                is_any || one.get("name").and_then(scalar).as_deref() == Some(name)
            })
        })
        .filter_map(|one| match one {
            // only positions need the source
            Value::Mapping(one) => Some((source(""), folder.to_owned(), one)),
            _ => None,
        })
        .collect();
    if found.is_empty() {
        return Err(format!("the package there has no component `{name}`"));
    }
    Ok(found)
}

/// Changes the charts of an inherited component as the component that inherits it does. Returns the
/// names of all charts of the inherited component.
fn change_charts(base: &mut Mapping, changes: &[Value]) -> Vec<String> {
    let mut names = Vec::new();
    let Some(Value::Sequence(charts)) = base.get_mut("charts") else {
        return names;
    };
    for chart in charts.iter_mut().filter_map(Value::as_mapping_mut) {
        let Some(name) = text(chart, "name") else {
            continue;
        };
        let changes = changes.iter().filter_map(Value::as_mapping);
        for change in changes.filter(|change| text(change, "name").as_ref() == Some(&name)) {
            for key in [
                "url",
                "repoName",
                "gitPath",
                "version",
                "helmRepository",
                "git",
                "oci",
            ] {
                if let Some(value) = change.get(key) {
                    chart.insert(key.into(), value.clone());
                }
            }
        }
        names.push(name);
    }
    names
}

/// The chart with the keys of v1alpha1, of which v1beta1 puts those of the source into a mapping.
fn with_keys_of_v1alpha1(chart: &Mapping) -> Mapping {
    let mut flat = chart.clone();
    for (source, keys) in [
        (
            "helmRepository",
            &[("url", "url"), ("name", "repoName"), ("version", "version")][..],
        ),
        ("git", &[("url", "url"), ("path", "gitPath")]),
        ("local", &[("path", "localPath")]),
        ("oci", &[("url", "url")]),
    ] {
        let Some(source_keys) = map(chart, source) else {
            continue;
        };
        for (from, to) in keys {
            if let Some(value) = source_keys.get(*from) {
                flat.insert((*to).into(), value.clone());
            }
        }
        if let Some(tag) = map(source_keys, "ref").and_then(|at| at.get("tag")) {
            flat.insert("version".into(), tag.clone());
        }
        if source == "git" {
            flat.entry("gitPath".into()).or_insert_with(|| ".".into());
        }
    }
    flat
}

/// Adds a chart. If it is inherited, it was added with the component that has it, unless it has
/// another local path here.
fn read_chart(
    chart: &Mapping,
    is_inherited: bool,
    at: ImportPosition<'_>,
    imported: &mut ImportedItems,
) {
    // the other keys are about the installation; values files are noted, because they can change
    // the images
    if !list(chart, "valuesFiles").is_empty() {
        imported.note(at, "`valuesFiles` is not imported");
    }
    let chart = &with_keys_of_v1alpha1(chart);
    let value = |key| text(chart, key).filter(|text| !text.is_empty());
    if let (None, Some(path)) = (value("url"), value("localPath")) {
        return imported.local_chart(at, &path, false);
    }
    if is_inherited {
        return;
    }
    let repository = value("url").unwrap_or_default();
    // `name` is Zarf's own name for the chart; an oci URL already contains the name of the chart
    let name = if repository.starts_with("oci://") {
        None
    } else {
        value("repoName").or_else(|| value("name"))
    };
    // Zarf clones a URL of this form; `gitPath` is a folder in the repository
    let is_git = repository.ends_with(".git") || repository.contains(".git@");
    if is_git || value("gitPath").is_some() {
        let why = "the chart is in a git repository, which must be listed under `git`";
        return imported.not_imported(at, &repository, why);
    }
    imported.chart(
        at,
        ImportedChart {
            repository: &repository,
            name: &name.unwrap_or_default(),
            version: &value("version").unwrap_or_default(),
            has_images: false,
            values: None,
        },
    );
}

#[cfg(test)]
mod tests {
    use super::super::testing::import;
    use super::*;

    #[test]
    fn images_and_files_of_components_are_imported() {
        let sum = "0".repeat(64);
        let text = format!(
            "kind: ZarfPackageConfig\nmetadata: {{name: p, architecture: arm64}}\ncomponents:\n- name: c\n  required: true\n  \
             images: ['ghcr.io/x/y:v1', '###ZARF_X###']\n  files:\n  - {{source: 'https://a.test/f', shasum: '{sum}', target: f, \
             executable: true}}\n  charts: [{{name: podinfo, url: 'oci://ghcr.io/c/podinfo', version: 6.4.0}}]\n  \
             repos: ['https://github.com/a/b.git']\n  manifests: [{{name: m, files: [a.yaml]}}]\n  actions: {{}}\n"
        );
        let imported = import("zarf", &text).unwrap();
        let text = super::super::manifest_of(&imported, "p", "t");
        for words in [
            "  - {ref: \"ghcr.io/x/y:v1\", platforms: [linux/arm64]}\n",
            &format!(
                "  - url: \"https://a.test/f\"\n    checksum: sha256:{sum}\n    mode: \"0755\"\n"
            ),
            "#   f: component c, images[1]: ###ZARF_X###: ",
            "charts:\n  - \"oci://ghcr.io/c/podinfo:6.4.0\"\n",
            "repos[0]: https://github.com/a/b.git: list it under `git`, with its branches or tags",
            "manifests[0]: m: ",
            "`actions` is not imported",
            "`target` is not imported",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }

    #[test]
    fn charts_are_imported_under_the_name_in_their_repository() {
        let text = "kind: ZarfPackageConfig\nmetadata: {name: p}\ncomponents:\n- name: c\n  charts:\n  \
                    - {name: mine, repoName: real, url: 'https://c.test/charts', version: 1.0.0, \
                    valuesFiles: [v.yaml]}\n  \
                    - {name: other, url: 'oci://ghcr.io/c/podinfo', version: 6.4.0}\n  \
                    - {name: git, url: 'https://github.com/x/y.git@v1', version: 1.0.0}\n";
        let imported = import("zarf", text).unwrap();
        let text = super::super::manifest_of(&imported, "p", "t");
        for words in [
            "name: \"real\"",
            "  - \"oci://ghcr.io/c/podinfo:6.4.0\"\n",
            "charts[2]: https://github.com/x/y.git@v1: the chart is in a git repository",
            "charts[0]: `valuesFiles` is not imported",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(!text.contains("mine") && !text.contains("other"), "{text}");
    }

    #[test]
    fn components_of_other_files_are_imported_with_the_changes_of_those_that_inherit_them() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(
            "common/zarf.yaml",
            "kind: ZarfPackageConfig\ncomponents:\n- name: c\n  import: {path: ../base, name: b}\n  images: ['h.test/common:1']\n  \
             charts:\n  - {name: app, url: 'https://c.test', version: 1.0.0}\n  - {name: here, localPath: ../chart}\n  \
             - {name: there, localPath: own}\n- {name: other, images: ['h.test/other:1']}\n",
        );
        write(
            "base/zarf.yaml",
            "kind: ZarfPackageConfig\ncomponents: [{name: b, files: [{source: f.txt}]}]\n",
        );
        write(
            "part.yaml",
            "apiVersion: zarf.dev/v1beta1\nkind: ZarfComponentConfig\nmetadata: {name: p}\ncomponent: {images: [{name: \
             'h.test/part:1'}, {name: 'h.test/daemon:1', source: daemon}]}\n",
        );
        for path in ["base/f.txt", "chart/Chart.yaml", "common/own/Chart.yaml"] {
            write(path, "name: x\n");
        }
        let text = "kind: ZarfPackageConfig\ncomponents:\n- name: c\n  import: {path: common}\n  images: ['h.test/own:1']\n  \
                    charts: [{name: app, version: 2.0.0, valuesFiles: [v.yaml]}]\n- name: d\n  import: {local: [{path: \
                    part.yaml}], remote: [{url: 'oci://h.test/p'}]}\n- {name: e, import: {path: absent}}\n- {name: f, \
                    import: {path: common}}\n";
        let mut imported = ImportedItems::for_folder(folder.path());
        let file = folder.path().join("zarf.yaml").display().to_string();
        let text = text.into();
        read(&ImportSource { file, text }, &mut imported).unwrap();
        let names = ["h.test/common:1", "h.test/own:1", "h.test/part:1"];
        assert_eq!(imported.images(), names);
        let made = super::super::manifest_of(&imported, "p", "t");
        for words in [
            r#"{repo: "https://c.test", name: "app", version: "2.0.0"}"#,
            r#"{path: "chart"}"#,
            r#"{path: "common/own"}"#,
            r#"- path: "base/f.txt""#,
            "component d: oci://h.test/p: its component is in a package in a registry",
            "component e: absent: the component that it imports cannot be read: ",
            "component f: common: the package there has no component `f`",
            "images[1]: h.test/daemon:1: it is in the local Docker daemon",
        ] {
            assert!(made.contains(words), "{words}: {made}");
        }
        assert_eq!(imported.not_imported.len(), 4, "{made}");
    }

    #[test]
    fn files_that_import_each_other_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let text = "kind: ZarfPackageConfig\ncomponents: [{name: c, import: {path: .}}]\n";
        let file = folder.path().join("zarf.yaml");
        std::fs::write(&file, text).unwrap();
        let source = ImportSource {
            file: file.display().to_string(),
            text: text.into(),
        };
        let mut imported = ImportedItems::for_folder(folder.path());
        read(&source, &mut imported).unwrap();
        let left = &imported.not_imported;
        assert!(
            left.len() == 1 && left[0].contains("import each other"),
            "{left:?}"
        );
        // two components of one name: each import doubles their number
        let text = text.replace("[{name: c,", "[{name: c, import: {path: .}}, {name: c,");
        std::fs::write(&file, &text).unwrap();
        let file = file.display().to_string();
        let mut imported = ImportedItems::for_folder(folder.path());
        read(&ImportSource { file, text }, &mut imported).unwrap();
        let left = imported.not_imported.len();
        assert!(left > 2 && left < 2 * MAX_IMPORTS, "{left}");
    }

    #[test]
    fn sources_of_charts_are_read_as_in_v1beta1() {
        let text = "apiVersion: zarf.dev/v1beta1\nkind: ZarfPackageConfig\ncomponents:\n- name: c\n  charts:\n  - {name: a, \
                    helmRepository: {name: real, url: 'https://c.test', version: 1.0.0}}\n  - {name: b, oci: {url: \
                    'oci://h.test/b', ref: {tag: 2.0.0}}}\n  - {name: g, git: {url: 'https://g.test/x', ref: {tag: v1}}}\n  \
                    repositories: [{url: 'https://g.test/y'}]\n";
        let imported = import("zarf", text).unwrap();
        let made = super::super::manifest_of(&imported, "p", "t");
        for words in [
            r#"{repo: "https://c.test", name: "real", version: "1.0.0"}"#,
            r#"  - "oci://h.test/b:2.0.0""#,
            "charts[2]: https://g.test/x: the chart is in a git repository",
            "repositories[0]: https://g.test/y: list it under `git`",
        ] {
            assert!(made.contains(words), "{words}: {made}");
        }
        assert_eq!(imported.not_imported.len(), 2, "{made}");
    }
}
