//! The pages of `docs/` that the program carries, so that `landfall help` has them where there is
//! no network.

/// Each page: its word, and its Markdown.
macro_rules! pages {
    ($($word:literal: $file:literal),* $(,)?) => {
        /// Every page, sorted by its word.
        const PAGES: &[(&str, &str)] = &[$(($word, include_str!(concat!("../../../docs/", $file)))),*];
    };
}

pages! {
    "apt": "platforms/apt.md",
    "architecture": "architecture.md",
    "archives": "archives.md",
    "audit": "audit.md",
    "bundle-format": "bundle-format.md",
    "capi": "platforms/capi.md",
    "catalogue": "catalogue.md",
    "charts": "charts.md",
    "ci": "ci/README.md",
    "coming-from": "coming-from.md",
    "containerd": "platforms/containerd.md",
    "crio": "platforms/crio.md",
    "deltas": "deltas.md",
    "development": "development.md",
    "docker": "platforms/docker.md",
    "doctor": "doctor.md",
    "egress": "egress.md",
    "formats": "formats.md",
    "giantswarm": "platforms/giantswarm.md",
    "helm": "helm.md",
    "import": "import.md",
    "install": "install.md",
    "k3s": "platforms/k3s.md",
    "kubeadm": "platforms/kubeadm.md",
    "kubeone": "platforms/kubeone.md",
    "kubermatic": "platforms/kubermatic.md",
    "kubernetes": "platforms/kubernetes.md",
    "kustomize": "platforms/kustomize.md",
    "kyverno": "platforms/kyverno.md",
    "lock": "lock.md",
    "manifest": "manifest.md",
    "nodes": "nodes.md",
    "object-store": "object-store.md",
    "openshift": "platforms/openshift.md",
    "packages": "packages.md",
    "performance": "performance.md",
    "platform-serve": "platforms/serve.md",
    "platforms": "platforms/README.md",
    "podman": "platforms/podman.md",
    "proxies": "proxies.md",
    "push": "push.md",
    "remote": "remote.md",
    "report": "report.md",
    "rewrite": "rewrite.md",
    "sbom": "sbom.md",
    "scale": "scale.md",
    "serve": "serve.md",
    "signing": "signing.md",
    "site": "site.md",
    "store": "store.md",
    "systemd": "platforms/systemd.md",
    "threat-model": "threat-model.md",
    "tkg": "platforms/tkg.md",
    "tutorial": "tutorial.md",
    "update": "update.md",
    "yum": "platforms/yum.md",
}

/// The page called `word`.
pub(crate) fn page(word: &str) -> Option<&'static str> {
    let word = word.trim_start_matches("docs/").trim_end_matches(".md");
    let word = word.rsplit('/').next().unwrap_or(word);
    PAGES
        .iter()
        .find(|(name, _)| *name == word)
        .map(|(_, text)| *text)
}

/// The words of all pages, in lines of at most `width` columns.
pub(crate) fn listing(width: usize) -> String {
    let (mut text, mut line) = (String::new(), String::new());
    for (word, _) in PAGES {
        if line.len() + word.len() + 2 > width {
            text += &format!("{line},\n");
            line.clear();
        }
        line += if line.is_empty() { "  " } else { ", " };
        line += word;
    }
    text + &line
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn every_page_is_carried() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
        let mut files = BTreeSet::new();
        for folder in ["", "platforms", "ci"] {
            for file in std::fs::read_dir(docs.join(folder)).unwrap() {
                let path = file.unwrap().path();
                if path.extension().is_some_and(|ending| ending == "md") {
                    files.insert(std::fs::read_to_string(path).unwrap());
                }
            }
        }
        let carried: BTreeSet<String> = PAGES.iter().map(|(_, text)| (*text).to_owned()).collect();
        assert!(
            carried == files,
            "pages! lists {} of {} pages",
            carried.len(),
            files.len()
        );
        assert!(PAGES.is_sorted_by_key(|(word, _)| *word));
        for word in ["signing", "docs/signing.md", "platforms/README"] {
            assert_eq!(page(word).is_some(), word != "platforms/README", "{word}");
        }
    }
}
