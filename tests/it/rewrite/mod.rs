//! `landfall rewrite`: a folder to run it in, and its lock.

mod command;
mod corpus;
mod fuzz;
mod properties;
mod secrets;
mod writing;

use crate::support::images::lock_of as lock;
use crate::support::library::Digest;
use assert_cmd::Command;
use std::path::PathBuf;
use std::{fs, process::Output};

const KKP: &str = include_str!("../../data/kkp-values.yaml");
const DEPLOYMENT: &str = include_str!("../../data/deployment.yaml");

const IMAGES: [&str; 8] = [
    "docker.io/library/nginx:1.27",
    "gcr.io/google_containers/hyperkube-amd64:v1.15.0",
    "ghcr.io/dexidp/dex:v2.42.0",
    "k8s.gcr.io/pause:3.1",
    "quay.io/brancz/kube-rbac-proxy:v0.19.0",
    "quay.io/jetstack/cert-manager-controller:v1.16.1",
    "quay.io/kubermatic/kubermatic:v2.26.2",
    "quay.io/prometheus/node-exporter:v1.9.0",
];

const SITE: &str = "\
apiVersion: landfall/v1
kind: Site
registry:
  address: 172.20.0.2:5000
  paths:
    k8s.gcr.io: kubernetes
    gcr.io/google_containers: kubernetes
";

fn digest(name: &str) -> Digest {
    Digest::sha256(name.as_bytes())
}

fn deployment() -> String {
    DEPLOYMENT.replace(
        "DIGEST",
        &digest("quay.io/prometheus/node-exporter:v1.9.0").hex(),
    )
}

/// A folder with a lock, a site and some files.
struct Place(tempfile::TempDir);

impl Place {
    fn new(files: &[(&str, &str)]) -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        place.put(
            "landfall.lock",
            &lock(
                &[
                    &IMAGES[..],
                    &["registry.k8s.io/ingress-nginx/controller:1.10"],
                ]
                .concat(),
            ),
        );
        place.put("site.yaml", SITE);
        files.iter().for_each(|(name, text)| place.put(name, text));
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn put(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_landfall"));
        command
            .env_clear()
            .current_dir(self.0.path())
            .arg("rewrite")
            .args(args);
        command
    }

    /// Runs with the site and the lock of the folder; checks the exit code.
    fn run(&self, args: &[&str], exit: i32) -> Output {
        let output = self
            .command(args)
            .args(["--site", "site.yaml"])
            .output()
            .unwrap();
        assert_eq!(
            output.status.code(),
            Some(exit),
            "{args:?}: {}",
            err(&output)
        );
        output
    }

    fn json(&self, args: &[&str], exit: i32) -> serde_json::Value {
        let output = self.run(&[args, &["--output", "json"]].concat(), exit);
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Replaces the first text of each pair by the second one. `text` must contain the first text.
fn replaced(text: &str, pairs: &[(&str, &str)]) -> String {
    pairs.iter().fold(text.to_owned(), |text, (old, new)| {
        assert!(text.contains(old), "{old}");
        text.replace(old, new)
    })
}

fn rewritten_deployment() -> String {
    let to = "172.20.0.2:5000";
    replaced(
        &deployment(),
        &[
            (
                "'registry.k8s.io/pause:3.1'",
                &format!("'{to}/kubernetes/pause:3.1'"),
            ),
            (
                "\"k8s.gcr.io/pause:3.1\"",
                &format!("\"{to}/kubernetes/pause:3.1\""),
            ),
            (
                "   nginx:1.27   #",
                &format!("   {to}/library/nginx:1.27   #"),
            ),
            (
                "\"index.docker.io/library/nginx:1.27\"",
                &format!("\"{to}/library/nginx:1.27\""),
            ),
            (
                " quay.io/prometheus/node-exporter:v1.9.0@",
                &format!(" {to}/prometheus/node-exporter:v1.9.0@"),
            ),
            (
                " Quay.IO/prometheus/node-exporter:v1.9.0,",
                &format!(" {to}/prometheus/node-exporter:v1.9.0,"),
            ),
        ],
    )
}

fn rewritten_kkp() -> String {
    let to = "172.20.0.2:5000";
    replaced(
        KKP,
        &[
            (
                "repository: ghcr.io/dexidp/dex\n",
                &format!("repository: {to}/dexidp/dex\n"),
            ),
            (
                "'quay.io/kubermatic/kubermatic'",
                &format!("'{to}/kubermatic/kubermatic'"),
            ),
            ("{registry: quay.io, ", &format!("{{registry: {to}, ")),
            (" quay.io/jetstack/", &format!(" {to}/jetstack/")),
            (
                "   registry.k8s.io/ingress-nginx/",
                &format!("   {to}/ingress-nginx/"),
            ),
        ],
    )
}
