//! Finds the images of files that are code or that no reader of documents reads: pipelines of
//! Jenkins, and the features of a development container.

use crate::index::is_pinned;
use crate::inventory::Inventory;
use crate::walk::ImageCandidate;
use std::path::Path;

/// Finds the images of a file that is named like one of these.
pub(super) fn candidates(
    name: &Path,
    text: &str,
    inventory: &Inventory<'_>,
) -> Vec<ImageCandidate> {
    let name = name.file_name().unwrap_or_default().to_string_lossy();
    let name = name.to_ascii_lowercase();
    if name.starts_with("jenkinsfile") || name.ends_with(".jenkinsfile") {
        return of_jenkins(text);
    }
    if name.ends_with("devcontainer.json") {
        return features(text, inventory);
    }
    Vec::new()
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
        .flat_map(|(at, literal)| ImageCandidate::all(at, &[], literal, true, true))
        .collect()
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
    let mut next = 0;
    let lines = text.split_inclusive('\n').map(move |line| {
        let start = next;
        next += line.len();
        (start, line)
    });
    lines
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
