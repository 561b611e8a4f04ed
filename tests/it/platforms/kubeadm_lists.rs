//! What kubeadm itself requests, compared with the catalogue and with rendered files. kubeadm is
//! the one that `scripts/cluster` built; without it, the tests are skipped.

use super::place;
use crate::support::library::{Site, destination_map};
use crate::support::{skip, test_name};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The catalogue's images of Kubernetes and its version.
fn catalogue() -> (String, BTreeSet<String>) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests/kubeadm/kubeadm.yaml");
    let text = std::fs::read_to_string(file).unwrap();
    let (_, rest) = text.split_once("kubernetes: {value: ").unwrap();
    let version = rest.split(',').next().unwrap().to_owned();
    let images = text
        .lines()
        .filter_map(|line| line.strip_prefix("  - registry.k8s.io/"))
        .map(|name| format!("registry.k8s.io/{name}").replace("${kubernetes}", &version))
        .collect();
    (version, images)
}

/// The kubeadm of the catalogue's version. If there is none, the test counts as skipped.
fn kubeadm(version: &str) -> Option<PathBuf> {
    let cache = std::env::var_os("LANDFALL_CLUSTER_CACHE").map(PathBuf::from);
    let cache = cache.or_else(|| {
        let home = std::env::var_os("HOME")?;
        Some(Path::new(&home).join(".cache/landfall-cluster"))
    });
    let program = cache.map(|cache| cache.join("bin").join(version).join("kubeadm"));
    let program = program.filter(|program| program.is_file());
    if program.is_none() {
        let why = format!("kubeadm {version} was not built by `scripts/cluster build`");
        skip(&test_name(), &why);
    }
    program
}

/// The names that `kubeadm config images list` prints.
fn listed(kubeadm: &Path, args: &[&str]) -> BTreeSet<String> {
    let run = Command::new(kubeadm)
        .args(["config", "images", "list"])
        .args(args)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{errors}");
    let names = String::from_utf8(run.stdout).unwrap();
    names.lines().map(str::to_owned).collect()
}

#[test]
fn the_catalogue_has_the_images_that_kubeadm_lists() {
    let (version, images) = catalogue();
    let Some(kubeadm) = kubeadm(&version) else {
        return;
    };
    assert_eq!(
        listed(&kubeadm, &["--kubernetes-version", &version]),
        images
    );
}

#[test]
fn with_the_rendered_file_kubeadm_lists_names_that_a_push_delivers() {
    let (version, images) = catalogue();
    let Some(kubeadm) = kubeadm(&version) else {
        return;
    };
    let images: Vec<&str> = images.iter().map(String::as_str).collect();
    let site = "registry: {address: \"172.20.0.2:5000\"}\nconsumers: [kubeadm]\n";
    let place = place(site, &images);
    place.ok(&["render", "kubeadm", "--site", "site.yaml", "-o", "out"]);
    let file = place.path("out/kubeadm-config.yaml");
    let listed = listed(&kubeadm, &["--config", file.to_str().unwrap()]);
    assert_eq!(listed.len(), images.len());

    let site = Site::load(&place.path("site.yaml")).unwrap();
    let map = destination_map("172.20.0.2:5000".parse().unwrap(), Some(&site));
    let delivered: BTreeSet<String> = images
        .iter()
        .flat_map(|image| {
            let (_, tag) = image.rsplit_once(':').unwrap();
            let destinations = map.destinations(&image.parse().unwrap());
            destinations
                .into_iter()
                .map(move |at| format!("{at}:{tag}"))
        })
        .collect();
    let lacking: Vec<&String> = listed.difference(&delivered).collect();
    assert!(
        lacking.is_empty(),
        "{lacking:?} are not among {delivered:?}"
    );
}
