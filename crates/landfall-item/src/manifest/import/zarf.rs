//! `zarf`: zarf.yaml, as defined in zarf-dev/zarf, src/api/v1alpha1.

use super::imported::{ImportPosition, ImportSource, ImportedChart, ImportedItems};
use super::yaml::{documents, list, map, mapping, note_other_keys, scalar, text};
use landfall_model::document::Diagnostic;
use serde_yaml::Mapping;

pub(super) fn read(
    source: &ImportSource,
    imported: &mut ImportedItems,
) -> Result<(), Box<Diagnostic>> {
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
        note_other_keys(
            imported,
            source.at(""),
            &package,
            &["apiVersion", "kind", "metadata", "components", "build"],
        );
        for component in list(&package, "components")
            .iter()
            .filter_map(|one| one.as_mapping())
        {
            let name = text(component, "name").unwrap_or_default();
            read_component(
                component,
                &format!("component {name}"),
                &platforms,
                source,
                imported,
            );
        }
    }
    Ok(())
}

fn read_component(
    component: &Mapping,
    at: &str,
    platforms: &[String],
    source: &ImportSource,
    imported: &mut ImportedItems,
) {
    for (index, image) in list(component, "images").iter().enumerate() {
        imported.image(
            source.at(&format!("{at}, images[{index}]")),
            &scalar(image).unwrap_or_default(),
            platforms,
        );
    }
    for (index, file) in list(component, "files").iter().enumerate() {
        let at = format!("{at}, files[{index}]");
        let Some(file) = mapping(imported, source.at(&at), file) else {
            continue;
        };
        let is_executable = text(file, "executable").as_deref() == Some("true");
        let url = text(file, "source").unwrap_or_default();
        let sha256 = text(file, "shasum");
        imported.file(source.at(&at), &url, sha256.as_deref(), is_executable);
        note_other_keys(
            imported,
            source.at(&at),
            file,
            &["source", "shasum", "executable"],
        );
    }
    for (index, chart) in list(component, "charts").iter().enumerate() {
        if let Some(chart) = chart.as_mapping() {
            let at = format!("{at}, charts[{index}]");
            read_chart(chart, source.at(&at), imported);
        }
    }
    for (index, archive) in list(component, "imageArchives").iter().enumerate() {
        let at = format!("{at}, imageArchives[{index}]");
        let Some(archive) = mapping(imported, source.at(&at), archive) else {
            continue;
        };
        let path = text(archive, "path").unwrap_or_default();
        for image in list(archive, "images") {
            let reference = scalar(image).unwrap_or_default();
            imported.archived_image(source.at(&at), &path, &reference);
        }
        note_other_keys(imported, source.at(&at), archive, &["path", "images"]);
    }
    for (key, why) in [
        ("repos", "list it under `git`, with its branches or tags"),
        ("dataInjections", "landfall does not inject data into pods"),
        (
            "manifests",
            "`landfall discover` and `landfall rewrite` read them; list their images",
        ),
    ] {
        for (index, one) in list(component, key).iter().enumerate() {
            let what = scalar(one)
                .or_else(|| text(one.as_mapping()?, "name").or(text(one.as_mapping()?, "path")));
            imported.not_imported(
                source.at(&format!("{at}, {key}[{index}]")),
                &what.unwrap_or_default(),
                why,
            );
        }
    }
    let known = [
        "name",
        "description",
        "required",
        "default",
        "images",
        "files",
        "charts",
        "repos",
        "imageArchives",
        "dataInjections",
        "manifests",
    ];
    note_other_keys(imported, source.at(at), component, &known);
}

fn read_chart(chart: &Mapping, at: ImportPosition<'_>, imported: &mut ImportedItems) {
    let value = |key| text(chart, key).filter(|text| !text.is_empty());
    if let (None, Some(path)) = (value("url"), value("localPath")) {
        return imported.local_chart(at, &path);
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
    // the other keys are about the installation; values files are noted, because they can change
    // the images
    if !list(chart, "valuesFiles").is_empty() {
        imported.note(at, "`valuesFiles` is not imported");
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::import;

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
}
