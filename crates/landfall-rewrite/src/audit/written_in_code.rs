//! Finds the images and charts of files that are code or that no reader of documents reads:
//! pipelines of Jenkins, configurations of Terraform, the features of a development container,
//! commands of helm, and images that container engines pull or run.

use super::git_coverage::is_terraform;
use super::is_page;
use crate::index::is_pinned;
use crate::inventory::Inventory;
use crate::rules::InstalledChart;
use crate::text::{
    OCI, ShellVariables, TerraformResource, engine_images, helm_charts, lines_at, reference_at,
    resources,
};
use crate::walk::{ImageCandidate, ImageClaim};
use landfall_model::{Limits, has_host};
use std::collections::BTreeMap;
use std::path::Path;

/// Finds the images of a file that is named like one of these.
pub(super) fn candidates(
    name: &Path,
    text: &str,
    inventory: &Inventory<'_>,
) -> Vec<ImageCandidate> {
    if is_terraform(name) {
        let resources = resources(text).into_iter();
        return resources
            .filter_map(|resource| of_terraform(text, &resource, inventory))
            .collect();
    }
    let mut found = Vec::new();
    if has_commands(name) {
        found.extend(of_helm(text, inventory));
        found.extend(of_engines(text));
    }
    let name = name.file_name().unwrap_or_default().to_string_lossy();
    let name = name.to_ascii_lowercase();
    if name.starts_with("jenkinsfile") || name.ends_with(".jenkinsfile") {
        found.extend(of_jenkins(text));
    } else if name.ends_with("devcontainer.json") {
        found.extend(features(text, inventory));
    }
    found
}

/// Whether the commands in a file may be run. Those in pages and in the notes of a chart are
/// examples.
pub(super) fn has_commands(name: &Path) -> bool {
    !is_page(name) && !name.ends_with("NOTES.txt")
}

/// The charts of the commands of helm. Variables are filled in if their values are known.
fn of_helm(text: &str, inventory: &Inventory<'_>) -> Vec<ImageCandidate> {
    let variables = ShellVariables::of(text);
    let filled = |word: &str| variables.filled_or_written(word);
    let charts = helm_charts(text).into_iter().filter_map(|command| {
        let mut version = command.version.map(filled);
        let (written, repository, chart) = match command.repository {
            Some(repository) => (command.chart, filled(repository), filled(command.chart)),
            None => {
                let written = command.chart.strip_prefix(OCI)?;
                let address = filled(written);
                let (repository, chart) = address.rsplit_once('/')?;
                let (chart, tag) = chart.split_once(':').unwrap_or((chart, ""));
                if chart.contains('@') || tag.contains('@') {
                    // a digest is found as a word of the text
                    return None;
                }
                version = version.or((!tag.is_empty()).then(|| tag.to_owned()));
                (written, format!("{OCI}{repository}"), chart.to_owned())
            }
        };
        let at = written.as_ptr() as usize - text.as_ptr() as usize;
        let installed = InstalledChart {
            repository,
            chart: &chart,
            version: version.as_deref(),
        };
        Some(installed.candidate(at, inventory))
    });
    charts.collect()
}

/// The maximum number of images that the variables of one file give. Without it, a script with
/// loops of a few kilobytes could name millions.
const MAX_EXPANDED: usize = 1_000;

/// The images that container engines pull or run, with each value that the file gives a variable in
/// their names. The script may build them as well. Names with a host are found as words of the
/// text.
fn of_engines(text: &str) -> Vec<ImageCandidate> {
    let names = engine_images(text).into_iter();
    let names = names.filter(|name| {
        if name.contains('$') {
            // a variable alone is the name of any image
            name.contains(['/', ':'])
        } else {
            is_pinned(name) && !has_host(name)
        }
    });
    let names = names.map(|name| (name.as_ptr() as usize - text.as_ptr() as usize, name));
    let names: BTreeMap<usize, &str> = names.collect();
    if names.is_empty() {
        return Vec::new();
    }
    let variables = ShellVariables::of(text);
    let mut found = Vec::new();
    for (at, name) in names {
        let values = variables.expansions(name);
        let is_bounded = |all: &Vec<String>| {
            let expanded = found.len() + all.len();
            all.len() == 1 || expanded <= MAX_EXPANDED
        };
        let Some(values) = values.filter(is_bounded) else {
            let written = reference_at(name, Limits::default().reference_bytes).to_owned();
            let why = "a part of this name is defined elsewhere";
            found.push(ImageCandidate::undecided(at, written, why));
            continue;
        };
        let values = values.into_iter().filter(|value| is_pinned(value));
        found.extend(values.map(|value| ImageCandidate {
            sure: false,
            ..ImageCandidate::certain(at, value)
        }));
    }
    found
}

/// The images of agents (`image 'a/b:1'`) and scripts (`docker.image('a/b:1')`) of a pipeline. A
/// name without a tag may be that of an image that the pipeline builds.
fn of_jenkins(text: &str) -> Vec<ImageCandidate> {
    let literals = literals(text).filter(|(at, literal)| {
        let before = text[..*at - 1].trim_end_matches([' ', '(']);
        let is_argument = before.len() + 1 < *at;
        let word = before.rsplit(|c: char| !c.is_ascii_alphanumeric()).next();
        is_argument && word == Some("image") && is_pinned(literal)
    });
    literals
        .flat_map(|(at, literal)| ImageCandidate::all(at, ImageClaim::of_container(literal)))
        .collect()
}

/// The chart of a `helm_release`, the image that a `docker_image` pulls, or the default of a
/// variable that is named after an image. Other resources have arguments whose names end in
/// `image`.
fn of_terraform(
    text: &str,
    resource: &TerraformResource<'_>,
    inventory: &Inventory<'_>,
) -> Option<ImageCandidate> {
    let argument = |name: &str| {
        let span = resource.arguments.get(name)?.clone();
        (!span.is_empty()).then(|| (span.start, &text[span]))
    };
    // an untagged text may be the image of a virtual machine; only variables have a default
    if resource.kind.to_ascii_lowercase().ends_with("image")
        && let Some((at, image)) = argument("default").filter(|(_, image)| is_pinned(image))
    {
        return Some(ImageCandidate::certain(at, image.to_owned()));
    }
    match resource.kind {
        "helm_release" => {
            let (chart_at, chart) = argument("chart")?;
            let (at, repository) = match argument("repository") {
                Some(repository) => repository,
                // a local chart, or one in a registry
                None => (chart_at, chart.strip_prefix(OCI)?.rsplit_once('/')?.0),
            };
            let version = argument("version").map(|(_, version)| version);
            let chart = InstalledChart {
                repository: repository.to_owned(),
                chart: chart.rsplit('/').next().unwrap_or(chart),
                version,
            };
            Some(chart.candidate(at, inventory))
        }
        "docker_image" | "docker_registry_image" if !resource.blocks.contains(&"build") => {
            let (at, name) = argument("name")?;
            ImageCandidate::all(at, ImageClaim::of_container(name)).pop()
        }
        _ => None,
    }
}

/// The features, which are artifacts of a registry and the keys of a mapping:
/// `"ghcr.io/devcontainers/features/go:1": {}`. The file may have comments.
fn features(text: &str, inventory: &Inventory<'_>) -> Vec<ImageCandidate> {
    let keys = literals(text).filter(|(at, literal)| {
        let after = text[at + literal.len() + 1..].trim_start();
        after.starts_with(':') && inventory.is_full_name(literal)
    });
    keys.map(|(at, key)| ImageCandidate::certain(at, key.to_owned()))
        .collect()
}

/// The quoted texts of each line, with their offsets, except in comments.
fn literals(text: &str) -> impl Iterator<Item = (usize, &str)> {
    lines_at(text)
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
        .flat_map(|(start, line)| {
            let mut found = Vec::new();
            let mut rest = line;
            while let Some(open) = rest.find(['"', '\'']) {
                let quote = &rest[open..=open];
                let Some((literal, after)) = rest[open + 1..].split_once(quote) else {
                    break;
                };
                found.push((start + line.len() - rest.len() + open + 1, literal));
                rest = after;
            }
            found
        })
}

#[cfg(test)]
mod tests {
    use crate::audit::{Inventory, audit};
    use landfall_item::lockfile::Lock;
    use std::path::Path;

    fn found(name: &str, text: &str) -> Vec<(usize, String)> {
        let lock = Lock::parse("l", "version: 1\n").unwrap();
        let inventory = Inventory::new(&lock, None, None, "2026-01-01");
        let found = audit(Path::new(name), text, &inventory).into_iter();
        let missing = found.filter(|one| one.coverage.is_missing());
        missing.map(|one| (one.column, one.reference)).collect()
    }

    #[test]
    fn images_of_a_pipeline_of_jenkins_are_found() {
        let text = "agent { docker { image 'a/b:1'; args '-v x:1' } }\n// image 'no:1'\n\
                    docker.image(\"c:2\").inside { sh \"x 'y:1'\" }\ndocker.image('built').push()\n\
                    docker.image( 'quay.io/d/e:3' )\nmyimage 'no:1'\nimage = 'f:4'\nx.image(\"$G:1\")\n";
        let expected = [(25, "a/b:1"), (15, "c:2"), (16, "quay.io/d/e:3")];
        let expected = expected.map(|(column, name)| (column, name.to_owned()));
        for name in ["Jenkinsfile", "Jenkinsfile.release", "x.jenkinsfile"] {
            assert_eq!(found(name, text)[..3], expected, "{name}");
        }
    }

    #[test]
    fn charts_and_images_of_terraform_are_found() {
        let resource = |kind: &str, arguments: &str| {
            let arguments = arguments.replace(", ", "\n  ");
            format!("resource \"{kind}\" \"x\" {{\n  {arguments}\n}}\n")
        };
        for (kind, arguments, expected) in [
            (
                "helm_release",
                "repository = \"oci://quay.io/c\", chart = \"d\", version = \"1.2.3\"",
                &["quay.io/c/d:1.2.3"][..],
            ),
            (
                "helm_release",
                "chart = \"oci://quay.io/c/d\", version = \"1.2.3\"",
                &["quay.io/c/d:1.2.3"],
            ),
            ("docker_image", "name = \"a:1\"", &["a:1"]),
            ("docker_image", "name = \"a\"", &["a"]),
            (
                "docker_image",
                "name = \"a:1\", build {, path = \"x\", }",
                &[],
            ),
            (
                "docker_container",
                "name = \"a:1\", image = \"b:1\"",
                &["b:1"],
            ),
            ("helm_release", "chart = \"./d\", version = \"1.2.3\"", &[]),
            (
                "helm_release",
                "repository = \"oci://quay.io/c\", chart = \"d\", version = \"${var.v}\"",
                &[],
            ),
        ] {
            let names: Vec<String> = found("main.tf", &resource(kind, arguments))
                .into_iter()
                .map(|(_, name)| name)
                .collect();
            assert_eq!(names, expected, "{arguments}");
        }
        let variable = |name: &str, image: &str| {
            format!("variable \"{name}\" {{\n  type    = string\n  default = \"{image}\"\n}}\n")
        };
        for (name, image, count) in [
            ("web_image", "a/b:1", 1),
            ("docker_image", "a/b:1", 1),
            ("Image", "quay.io/a/b:1", 1),
            ("image", "debian-cloud/debian-12", 0),
            ("tag", "a:1", 0),
        ] {
            let found = found("main.tf", &variable(name, image));
            assert_eq!(found.len(), count, "{name}: {found:?}");
        }
        let web = "repository = \"https://h.test\", chart = \"d\", version = \"1.2.3\"";
        assert_eq!(found("main.tofu", &resource("helm_release", web)).len(), 1);
    }

    #[test]
    fn charts_of_helm_commands_are_found() {
        let script = "#!/bin/sh\nV=1.2.3\nhelm repo add r https://h.test/r\n\
            helm install x oci://h.test/c/d:1.2.4\n\
            helm install x r/e --version \"${V}\"\nhelm install x oci://h.test/c/f\n\
            helm install x oci://h.test/c/$NAME --version 1.2.3\n";
        let expected = ["h.test/c/d:1.2.4", "h.test/r/e:1.2.3"].map(str::to_owned);
        for name in ["x.sh", "ci.yaml", "Jenkinsfile"] {
            let names = found(name, script).into_iter().map(|(_, name)| name);
            assert_eq!(names.collect::<Vec<_>>(), expected, "{name}");
        }
        for name in ["README.md", "a/templates/NOTES.txt"] {
            assert_eq!(found(name, script), [], "{name}");
        }
    }

    #[test]
    fn images_of_engines_are_found_with_each_value_of_their_variables() {
        let script = "#!/bin/sh\nV=1.2\nREG=h.test\ndocker pull quay.io/a/b:$V\n\
            for i in c d; do sudo docker pull -q $REG/x/$i:${V}; done\n\
            k3s ctr images pull e:$V\ncrictl pull \"$REG/f\"\ndocker pull $IMAGE\n\
            podman pull quay.io/g/h:$OTHER && podman pull i:$(cat v)\n";
        let lock = Lock::parse("l", "version: 1\n").unwrap();
        let inventory = Inventory::new(&lock, None, None, "2026-01-01");
        let found = audit(Path::new("x.sh"), script, &inventory);
        assert!(
            !found.iter().any(|one| one.coverage.is_missing()),
            "{found:?}"
        );
        let mut names: Vec<(usize, &str)> = found
            .iter()
            .map(|one| (one.line, &*one.reference))
            .collect();
        names.sort_unstable();
        assert_eq!(
            names,
            [
                (4, "quay.io/a/b:1.2"),
                (5, "h.test/x/c:1.2"),
                (5, "h.test/x/d:1.2"),
                (6, "e:1.2"),
                (9, "i:$(cat"),
                (9, "quay.io/g/h:$OTHER"),
            ]
        );
        let many = "for a in 1 2 3 4 5 6 7 8; do docker pull x:$a\n".repeat(1_000);
        assert!(audit(Path::new("x.sh"), &many, &inventory).len() <= 2_000);
    }

    #[test]
    fn features_of_a_development_container_are_found() {
        for comment in ["", "// a comment with \"ghcr.io/no/no:1\": {}\n"] {
            let text = format!(
                "{comment}{{\"image\": \"quay.io/a/b:1\",\n\"features\": {{\"ghcr.io/c/d:2\": {{}},\n\
                 \"./local\": {{}}}}}}\n"
            );
            let names: Vec<String> = found(".devcontainer/devcontainer.json", &text)
                .into_iter()
                .map(|(_, name)| name)
                .collect();
            assert_eq!(names, ["quay.io/a/b:1", "ghcr.io/c/d:2"]);
        }
    }
}
