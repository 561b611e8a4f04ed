//! Templates for a first manifest.

use super::draft::head;

/// Examples of further sections, as comments for the end of a manifest.
pub const MORE: &str = r#"
# Further keys of a manifest. `landfall help manifest` explains every key; `landfall schema`
# prints a JSON schema for editors.
# files:
#   - {url: "https://dl.k8s.io/release/v1.33.4/bin/linux/amd64/kubelet", checksum: "${url}.sha256", mode: "0755"}
# exclude: [quay.io/example/unused]
# missing:
#   - {ref: "quay.io/example/gone:v1", reason: removed upstream, until: 2027-01-31}
# endpoints:
#   - {host: ec2.eu-central-1.amazonaws.com, port: 443, why: "cannot be mirrored, and must stay reachable"}
"#;

/// A manifest with one example image. `platforms` is the line from
/// [`platforms_line`](super::platforms_line).
pub fn example_manifest(name: &str, title: &str, platforms: &str) -> String {
    let images = "\n# Each image with its version; a tag that moves, such as latest, is pinned \
                  when it is locked.\n\
                  images:\n  - registry.k8s.io/pause:3.10.1  # an example\n";
    head(name, title) + platforms + images + MORE
}

/// A manifest that uses a list in this `format`. `file` is the path of the list, relative to the
/// manifest.
pub fn from_list(name: &str, title: &str, platforms: &str, format: &str, file: &str) -> String {
    let list = serde_json::Value::from(file);
    let lists = format!(
        "\n# The list stays the source of truth: nothing is copied from it.\n\
         lists:\n  - {{format: {format}, file: {list}}}\n"
    );
    head(name, title) + platforms + &lists + MORE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{load, platforms_line};

    #[test]
    fn the_example_and_its_commented_sections_are_valid() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.yaml");
        let text = example_manifest("first", "A title", &platforms_line(&[], ""));
        std::fs::write(&path, &text).unwrap();
        assert_eq!(
            load(std::slice::from_ref(&path))
                .unwrap()
                .requests
                .images
                .len(),
            1
        );
        let all = text
            .replace("\n# platforms", "\nplatforms")
            .replace(MORE, "");
        let more: Vec<&str> = MORE
            .lines()
            .filter_map(|line| line.strip_prefix("# "))
            .skip_while(|line| !line.ends_with(':'))
            .collect();
        let more = more
            .join("\n")
            .replace("quay.io/example/unused", "registry.k8s.io/other");
        let more = more.replace("quay.io/example/gone:v1", "registry.k8s.io/pause:3.10.1");
        let images = "  - registry.k8s.io/other:1\n";
        std::fs::write(&path, format!("{all}{images}{more}\n")).unwrap();
        let wanted = load(&[path]).unwrap();
        assert_eq!(
            (
                wanted.requests.images.len(),
                wanted.requests.files.len(),
                wanted.missing.len()
            ),
            (1, 1, 1)
        );
        assert_eq!(wanted.requests.images[0].platforms.len(), 1);
    }
}
