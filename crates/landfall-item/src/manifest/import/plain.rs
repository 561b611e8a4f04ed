//! `images-txt`, `kkp`, `kubeone`, `kubeadm`: plain lists.

use super::imported::{ImportSource, ImportedItems};
use super::yaml::{documents, scalar};
use crate::ManifestResult;
use crate::image::undecorated;
use crate::manifest::lists::{ImageListFormat, format_named};
use landfall_model::{ImageRef, is_web_url};
use serde_json::Value;

/// A list with more lines that are not references has another format.
const MAX_NOT_IMPORTED: usize = 10_000;

/// Reads a list with one image reference, or the URL of a file, on each line.
pub(super) fn images_txt(
    source: &ImportSource,
    imported: &mut ImportedItems,
) -> ManifestResult<()> {
    listed("images-txt", source, imported)
}

/// Reads the log of `kubermatic-installer mirror-images`.
pub(super) fn kkp(source: &ImportSource, imported: &mut ImportedItems) -> ManifestResult<()> {
    listed("kkp", source, imported)
}

/// Reads the list of kubeadm, which may be JSON or YAML: `{"kind": "Images", "images": […]}`.
pub(super) fn kubeadm(source: &ImportSource, imported: &mut ImportedItems) -> ManifestResult<()> {
    let Ok(json) = serde_json::from_str::<Value>(&source.text) else {
        let lists = documents(source).unwrap_or_default();
        let Some(images) = lists.iter().find_map(|list| list.get("images")) else {
            return images_txt(source, imported);
        };
        for (index, image) in images.as_sequence().into_iter().flatten().enumerate() {
            let at = format!("images[{index}]");
            imported.image(source.at(&at), &scalar(image).unwrap_or_default(), &[]);
        }
        return Ok(());
    };
    let Some(images) = json["images"].as_array() else {
        return Err(source.format_error(
            "a list of kubeadm",
            "write it with `kubeadm config images list -o json`",
        ));
    };
    for (index, image) in images.iter().enumerate() {
        imported.image(
            source.at(&format!("images[{index}]")),
            image.as_str().unwrap_or_default(),
            &[],
        );
    }
    Ok(())
}

/// Reads a list in one of the formats that `lists:` of a manifest accepts.
fn listed(name: &str, source: &ImportSource, imported: &mut ImportedItems) -> ManifestResult<()> {
    let Some(format) = format_named(name) else {
        return Ok(());
    };
    let mut has_columns = false;
    for (line, span) in ImageListFormat::read(format, &source.plain())? {
        let position = format!("line {}", span.location().line);
        let at = source.at(&position);
        if is_web_url(&line) {
            imported.file(at, &line, None, false);
        } else if let Some(reference) = in_columns(&line) {
            imported.image(at, &reference, &[]);
            if !std::mem::replace(&mut has_columns, true) {
                imported.note(at, "of several columns, only the image is imported");
            }
        } else {
            imported.image(at, undecorated(&line).unwrap_or(&line), &[]);
        }
        // each takes a hundred times the bytes of a short line
        if imported.not_imported.len() > MAX_NOT_IMPORTED {
            return Err(source.format_error(
                &format!("a list of images: more than {MAX_NOT_IMPORTED} lines are not references"),
                "name the format of the file; `landfall import --help` lists the formats",
            ));
        }
    }
    Ok(())
}

/// The image in a line of several columns: before who uses it, as Rancher lists it, or as name and
/// tag around its destination, as hangar reads it.
fn in_columns(line: &str) -> Option<String> {
    let is_pinned = |word: &str| {
        word.parse::<ImageRef>()
            .is_ok_and(|image| image.is_pinned())
    };
    let words: Vec<&str> = line.split_whitespace().collect();
    // several images in one line are not columns
    match words[..] {
        [image, users] if is_pinned(image) && !is_pinned(users) => Some(image.to_owned()),
        [image, to, tag] if !is_pinned(image) && to.contains('/') && !tag.contains('/') => {
            Some(format!("{image}:{tag}"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::import;

    /// Before, none of these lines was imported.
    #[test]
    fn lists_may_have_urls_columns_and_decorations() {
        let text = "https://dl.k8s.io/release/v1.33.4/bin/linux/amd64/kubelet\n\
            https://get.helm.sh/helm-v3.18.4-linux-amd64.tar.gz\n\
            rancher/pause:3.6 rancher,rke-metadata\n\
            docker.io/rancher/k3s r.test/rancher/k3s v1.33.4-k3s1\n\
            - quay.io/a/b:1\n\
            docker pull quay.io/a/c:1\n\
            nginx:1.27 redis:7\n\
            nginx redis busybox\n\
            ubuntu latest 1 2\n";
        let imported = import("images-txt", text).unwrap();
        assert_eq!(
            imported.images(),
            [
                "docker.io/rancher/k3s:v1.33.4-k3s1",
                "docker.io/rancher/pause:3.6",
                "quay.io/a/b:1",
                "quay.io/a/c:1"
            ]
        );
        assert_eq!(imported.entries(), 6);
        assert_eq!(imported.notes.len(), 1, "{:?}", imported.notes);
        assert_eq!(imported.not_imported.len(), 3);
    }

    #[test]
    fn each_output_of_kubeadm_is_read() {
        let names = ["registry.k8s.io/etcd:3.5.9-0", "registry.k8s.io/pause:3.10"];
        let [etcd, pause] = names;
        for text in [
            format!("{etcd}\n{pause}\n"),
            format!("{{\"kind\": \"Images\", \"images\": [\"{etcd}\", \"{pause}\"]}}"),
            format!(
                "apiVersion: output.kubeadm.k8s.io/v1alpha3\nimages:\n- {etcd}\n- {pause}\nkind: Images\n"
            ),
        ] {
            let imported = import("kubeadm", &text).unwrap();
            assert_eq!(imported.images(), names, "{text}");
            assert_eq!(imported.not_imported.len(), 0, "{text}");
        }
    }
}
