//! The pages of `docs/` that are compiled into the program, so that `landfall help` shows them
//! without a network.

use crate::cli::shared::VerbOutcome;
use flate2::read::GzDecoder;
use std::io::{IsTerminal, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// The name of each page, sorted, and its file below `docs/`.
const PAGES: &[(&str, &str)] = &[
    ("apt", "how-to/platforms/apt.md"),
    ("architecture", "explanation/architecture.md"),
    ("archives", "how-to/archives.md"),
    ("audit", "how-to/audit.md"),
    ("bundle-format", "reference/bundle-format.md"),
    ("capi", "how-to/platforms/capi.md"),
    ("catalogue", "how-to/catalogue.md"),
    ("changed-names", "reference/changed-names.md"),
    ("charts", "how-to/charts.md"),
    ("ci", "how-to/ci.md"),
    ("cluster", "tutorials/cluster.md"),
    ("coming-from", "how-to/coming-from.md"),
    ("command-line", "reference/command-line.md"),
    ("concepts", "explanation/concepts.md"),
    ("containerd", "how-to/platforms/containerd.md"),
    ("crio", "how-to/platforms/crio.md"),
    ("deltas", "how-to/deltas.md"),
    ("development", "how-to/development.md"),
    ("docker", "how-to/platforms/docker.md"),
    ("doctor", "how-to/doctor.md"),
    ("egress", "how-to/egress.md"),
    ("evidence", "how-to/evidence.md"),
    ("formats", "reference/formats.md"),
    ("getting-started", "tutorials/getting-started.md"),
    ("giantswarm", "how-to/platforms/giantswarm.md"),
    ("git", "how-to/platforms/git.md"),
    ("git-repositories", "how-to/git-repositories.md"),
    ("gitops", "how-to/gitops.md"),
    ("helm", "how-to/helm.md"),
    ("install", "how-to/install.md"),
    ("k0s", "how-to/platforms/k0s.md"),
    ("k3s", "how-to/platforms/k3s.md"),
    ("known-behaviours", "reference/known-behaviours.md"),
    ("kubeadm", "how-to/platforms/kubeadm.md"),
    ("kubeone", "how-to/platforms/kubeone.md"),
    ("kubermatic", "how-to/platforms/kubermatic.md"),
    ("kubernetes", "how-to/platforms/kubernetes.md"),
    ("kubespray", "how-to/platforms/kubespray.md"),
    ("kustomize", "how-to/platforms/kustomize.md"),
    ("kyverno", "how-to/platforms/kyverno.md"),
    ("load-images", "how-to/load-images.md"),
    ("lock", "reference/lock.md"),
    ("log", "reference/log.md"),
    ("manifest", "reference/manifest.md"),
    ("node", "how-to/platforms/node.md"),
    ("nodes", "how-to/nodes.md"),
    ("object-store", "how-to/object-store.md"),
    ("openshift", "how-to/platforms/openshift.md"),
    ("package-sources", "reference/package-sources.md"),
    ("packages", "how-to/packages.md"),
    ("performance", "explanation/performance.md"),
    ("platform-serve", "how-to/platforms/serve.md"),
    ("platforms", "how-to/platforms.md"),
    ("podman", "how-to/platforms/podman.md"),
    ("ports", "reference/ports.md"),
    ("providers", "how-to/providers.md"),
    ("proxies", "how-to/proxies.md"),
    ("push", "how-to/push.md"),
    ("recipes", "reference/recipes.md"),
    ("remote", "how-to/remote.md"),
    ("report", "reference/report.md"),
    ("rewrite", "how-to/rewrite.md"),
    ("sbom", "how-to/sbom.md"),
    ("scale", "how-to/scale.md"),
    ("scanners", "how-to/scanners.md"),
    ("serve", "how-to/serve.md"),
    ("signing", "how-to/signing.md"),
    ("site", "reference/site.md"),
    ("store", "reference/store.md"),
    ("systemd", "how-to/platforms/systemd.md"),
    ("talos", "how-to/platforms/talos.md"),
    ("threat-model", "explanation/threat-model.md"),
    ("tkg", "how-to/platforms/tkg.md"),
    ("tofu", "how-to/platforms/tofu.md"),
    ("trivy", "how-to/platforms/trivy.md"),
    ("update", "how-to/update.md"),
    ("upgrade-kubernetes", "how-to/upgrade-kubernetes.md"),
    ("vendor-pages", "how-to/vendor-pages.md"),
    (
        "verify-image-signatures",
        "how-to/verify-image-signatures.md",
    ),
    ("yum", "how-to/platforms/yum.md"),
];

/// Other words for pages.
const ALIASES: &[(&str, &str)] = &[("firewall", "egress"), ("kkp", "kubermatic")];

/// All pages, compressed by the build script.
const ARCHIVE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/pages.tar.gz"));

/// The page whose name, or whose path in `docs/`, is `word`.
pub(crate) fn page(word: &str) -> Option<String> {
    let word = word.trim_start_matches("docs/").trim_end_matches(".md");
    let last = word.rsplit('/').next().unwrap_or(word);
    let alias = ALIASES.iter().find(|(alias, _)| *alias == last);
    let last = alias.map_or(last, |(_, name)| name);
    let by_path = PAGES
        .iter()
        .find(|(_, path)| path.trim_end_matches(".md") == word);
    let (_, path) = by_path.or_else(|| PAGES.iter().find(|(name, _)| *name == last))?;
    archived_file(&Path::new("docs").join(path))
}

/// The name of the page whose file is `path` below `docs/`.
pub(crate) fn name_of(path: &str) -> Option<&'static str> {
    let page = PAGES.iter().find(|(_, known)| *known == path);
    page.map(|(name, _)| *name)
}

/// The text of the file at `path` in the archive, or `None` if the archive does not contain it.
/// `path` begins with `docs/`.
pub(crate) fn archived_file(path: &Path) -> Option<String> {
    let mut archive = tar::Archive::new(GzDecoder::new(ARCHIVE));
    let mut page = archive
        .entries()
        .ok()?
        .filter_map(Result::ok)
        .find(|entry| entry.path().is_ok_and(|name| name == path))?;
    let mut text = String::new();
    page.read_to_string(&mut text).ok()?;
    Some(text)
}

/// The names of all pages, and other words for them.
pub(crate) fn words() -> impl Iterator<Item = &'static str> {
    PAGES.iter().chain(ALIASES).map(|(word, _)| *word)
}

/// The names of all pages, in lines of at most `width` columns, not counting a comma at the end.
pub(crate) fn listing(width: usize) -> String {
    let mut text = String::new();
    let mut line = String::new();
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

// Shows long texts in the user's pager if stdout is a terminal.

/// Shows `text` in the pager; without a terminal or a pager, the outcome prints it.
pub(crate) fn show(text: &str) -> VerbOutcome {
    let is_shown = std::io::stdout().is_terminal() && show_in_pager(text);
    VerbOutcome::text(if is_shown { "" } else { text }).document()
}

/// Shows `text` in `MANPAGER` or `PAGER`, or else in less or more. Returns whether a pager
/// succeeded.
fn show_in_pager(text: &str) -> bool {
    let configured = ["MANPAGER", "PAGER"]
        .into_iter()
        .filter_map(|name| std::env::var(name).ok())
        .find(|pager| !pager.trim().is_empty());
    let pagers = match configured {
        Some(pager) => vec![pager],
        None => vec!["less".to_owned(), "more".to_owned()],
    };
    pagers.iter().any(|pager| {
        // Through a shell, since the variable may contain flags.
        let started = Command::new("sh")
            .args(["-c", pager])
            .stdin(Stdio::piped())
            .spawn();
        let Ok(mut started) = started else {
            return false;
        };
        if let Some(mut stdin) = started.stdin.take() {
            // A pager that is quit early closes the pipe, which is not an error.
            let _ = stdin.write_all(text.as_bytes());
        }
        started.wait().is_ok_and(|status| status.success())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_page_is_included() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
        let mut folders = vec![docs.clone()];
        let mut files = BTreeSet::new();
        while let Some(folder) = folders.pop() {
            for file in std::fs::read_dir(folder).unwrap() {
                let path = file.unwrap().path();
                // The table of contents and the introduction contain only links.
                let is_index = path == docs.join("README.md") || path == docs.join("SUMMARY.md");
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|ending| ending == "md") && !is_index {
                    files.insert(std::fs::read_to_string(path).unwrap());
                }
            }
        }
        let included: BTreeSet<String> = PAGES.iter().filter_map(|(word, _)| page(word)).collect();
        assert!(
            included == files,
            "PAGES lists {} of {} pages",
            included.len(),
            files.len()
        );
        assert!(PAGES.is_sorted_by_key(|(word, _)| *word));
        for (alias, name) in ALIASES {
            assert!(
                page(alias).is_some() && page(alias) == page(name),
                "{alias}"
            );
        }
        let platform = page("docs/how-to/platforms/serve.md");
        assert!(platform.is_some() && platform == page("platform-serve"));
        for word in ["signing", "docs/how-to/signing.md", "platforms/nonsense"] {
            assert_eq!(page(word).is_some(), word != "platforms/nonsense", "{word}");
        }
    }
}
