//! Generated Helm charts: archives, repositories with an index, artifacts in registries, and
//! provenance by gpg.

use super::images::{Images, OCI_MANIFEST, gzip, sha256, tarball};
use super::peers::{Server, file_server, own_registry};
use super::{Place, run};
use serde_json::{Value, json};
use std::path::PathBuf;

pub const HELM_CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
pub const HELM_CHART: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
pub const HELM_PROVENANCE: &str = "application/vnd.cncf.helm.chart.provenance.v1.prov";

/// A generated Helm chart.
#[derive(Clone)]
pub struct Chart {
    pub name: String,
    pub version: String,
    /// The text of its Chart.yaml.
    pub yaml: String,
    /// The packed archive.
    pub archive: Vec<u8>,
    pub provenance: Option<Vec<u8>>,
}

impl Chart {
    /// A chart with these files, and a Chart.yaml that ends with `more`.
    pub fn new(name: &str, version: &str, more: &str, files: &[(&str, &str)]) -> Chart {
        let yaml = format!(
            "apiVersion: v2\nname: {name}\nversion: {version}\nappVersion: \"9.1\"\n{more}"
        );
        let mut all = vec![(format!("{name}/Chart.yaml"), yaml.clone())];
        all.extend(
            files
                .iter()
                .map(|(path, text)| (format!("{name}/{path}"), (*text).to_owned())),
        );
        let all: Vec<(&str, &[u8])> = all
            .iter()
            .map(|(path, text)| (&**path, text.as_bytes()))
            .collect();
        let archive = gzip(&tarball(&all));
        Chart {
            name: name.into(),
            version: version.into(),
            yaml,
            archive,
            provenance: None,
        }
    }

    pub fn file(&self) -> String {
        format!("{}-{}.tgz", self.name, self.version)
    }

    pub fn digest(&self) -> String {
        sha256(&self.archive)
    }

    /// Adds provenance that `signer` has signed.
    pub fn signed(self, signer: &Signer) -> Chart {
        let sums = format!("\n...\nfiles:\n  {}: {}\n", self.file(), self.digest());
        Chart {
            provenance: Some(signer.sign(&format!("{}{sums}", self.yaml))),
            ..self
        }
    }

    /// Uploads the chart to a registry, as `helm push` does.
    pub fn push(&self, images: &Images, address: &str, repository: &str) -> serde_json::Value {
        let config =
            json!({"name": self.name, "version": self.version, "apiVersion": "v2"}).to_string();
        let mut layers = vec![images.blob(HELM_CHART, &self.archive)];
        layers.extend(
            self.provenance
                .iter()
                .map(|bytes| images.blob(HELM_PROVENANCE, bytes)),
        );
        let manifest = json!({"schemaVersion": 2, "mediaType": OCI_MANIFEST,
            "config": images.blob(HELM_CONFIG, config.as_bytes()), "layers": layers});
        let manifest = images.blob(OCI_MANIFEST, manifest.to_string().as_bytes());
        images.push(
            address,
            repository,
            &self.version.replace('+', "_"),
            &manifest,
        );
        manifest
    }
}

/// Writes a repository of `charts` into `folder`. Each URL is `base`, followed by the name of the
/// archive.
pub fn repository(place: &Place, folder: &str, base: &str, charts: &[Chart]) {
    let mut names: Vec<&str> = charts.iter().map(|chart| &*chart.name).collect();
    names.dedup();
    let mut index = String::from("apiVersion: v1\nentries:\n");
    for name in names {
        index += &format!("  {name}:\n");
        for chart in charts.iter().filter(|chart| chart.name == name) {
            let file = chart.file();
            let hex = chart.digest().replace("sha256:", "");
            index += &format!(
                "  - apiVersion: v2\n    name: {name}\n    version: {}\n",
                chart.version
            );
            index += &format!("    digest: {hex}\n    urls:\n    - {base}{file}\n");
        }
    }
    index += "generated: \"2026-01-01T00:00:00Z\"\n";
    place.write(&format!("{folder}/index.yaml"), index);
    for chart in charts {
        place.write(&format!("{folder}/{}", chart.file()), &chart.archive);
        if let Some(provenance) = &chart.provenance {
            place.write(&format!("{folder}/{}.prov", chart.file()), provenance);
        }
    }
}

/// A file server with a repository at `/charts`, and a registry.
pub struct Upstream {
    pub place: Place,
    pub files: Server,
    pub registry: Server,
    pub images: Images,
}

impl Upstream {
    pub fn new() -> Upstream {
        let place = Place::new();
        std::fs::create_dir_all(place.path("up")).unwrap();
        let files = file_server(&place.path("up"));
        let images = Images::new(place.path("layout"));
        Upstream {
            files,
            registry: own_registry(),
            images,
            place,
        }
    }

    pub fn repository(&self, charts: &[Chart]) {
        repository(&self.place, "up/charts", "", charts);
    }

    pub fn repo(&self) -> String {
        format!("{}/charts", self.files.url())
    }

    /// Writes a manifest of these charts.
    pub fn manifest(&self, charts: &Value, more: &str) {
        let head = "apiVersion: landfall/v1\nkind: Manifest\n";
        self.place
            .write("m.yaml", format!("{head}{more}\ncharts: {charts}\n"));
    }

    pub fn lock(&self, exit: i32, more: &[&str]) -> Value {
        self.place
            .json(exit, &[&["lock", "-f", "m.yaml"], more].concat())
    }

    pub fn requests(&self) -> usize {
        self.files.requests("\"") + self.registry.requests("\"")
    }

    pub fn image(&self, repository: &str, tag: &str) -> String {
        let layer = self.images.layer(&[("a", repository.as_bytes())]);
        let image = self.images.image("linux/amd64", &[layer]);
        self.images
            .push(&self.registry.address, repository, tag, &image);
        format!("{}/{repository}:{tag}", self.registry.address)
    }
}

/// The reasons of the items in a report, and the message of its error, one per line.
pub fn failure_reasons(report: &Value) -> String {
    let items = report["items"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|item| item["reason"].as_str());
    items
        .chain(report["error"]["message"].as_str())
        .collect::<Vec<_>>()
        .join("\n")
}

/// An OpenPGP key in a folder of its own.
pub struct Signer {
    home: PathBuf,
    /// The time that gpg uses instead of the current time, in seconds since 1970.
    time: Option<&'static str>,
}

impl Signer {
    pub fn new(place: &Place, name: &str) -> Signer {
        Signer::with_life(place, name, None, ["ed25519", "never"])
    }

    /// A signer whose key and signatures are from 2021-01-01. The key expired a year later.
    pub fn expired(place: &Place, name: &str) -> Signer {
        // `!` stops the clock: otherwise a key that took a second to create is in the future of
        // the next command, which begins at the given time again
        Signer::with_life(place, name, Some("1609459200!"), ["ed25519", "1y"])
    }

    /// A signer whose key expires in a month.
    pub fn expiring(place: &Place, name: &str) -> Signer {
        Signer::with_life(place, name, None, ["ed25519", "30d"])
    }

    /// A signer with an RSA key.
    pub fn rsa(place: &Place, name: &str) -> Signer {
        Signer::with_life(place, name, None, ["rsa2048", "never"])
    }

    fn with_life(
        place: &Place,
        name: &str,
        time: Option<&'static str>,
        [algorithm, life]: [&str; 2],
    ) -> Signer {
        let home = place.path(format!("gpg-{name}"));
        std::fs::create_dir_all(&home).unwrap();
        run(std::process::Command::new("chmod").arg("700").arg(&home));
        let signer = Signer { home, time };
        let who = format!("{name} <{name}@example.com>");
        run(signer.gpg().args([
            "--passphrase",
            "",
            "--quick-gen-key",
            &who,
            algorithm,
            "sign",
            life,
        ]));
        signer
    }

    fn gpg(&self) -> std::process::Command {
        let mut gpg = std::process::Command::new("gpg");
        gpg.arg("--homedir").arg(&self.home).args([
            "--batch",
            "--quiet",
            "--pinentry-mode",
            "loopback",
        ]);
        gpg.args(
            self.time
                .map(|time| ["--faked-system-time", time])
                .into_iter()
                .flatten(),
        );
        gpg
    }

    /// Signs `text` inline: the result contains the text and the signature below it.
    pub fn sign(&self, text: &str) -> Vec<u8> {
        let input = self.home.join("text");
        std::fs::write(&input, text).unwrap();
        run(self
            .gpg()
            .args(["--passphrase", "", "--output", "-", "--clearsign"])
            .arg(input))
    }

    /// The detached signature of `text`.
    pub fn detached(&self, text: &str) -> Vec<u8> {
        let input = self.home.join("text");
        std::fs::write(&input, text).unwrap();
        run(self
            .gpg()
            .args([
                "--passphrase",
                "",
                "--output",
                "-",
                "--armor",
                "--detach-sign",
            ])
            .arg(input))
    }

    /// The public key, armored.
    pub fn public(&self) -> Vec<u8> {
        run(self.gpg().args(["--armor", "--export"]))
    }

    /// Signs the RPM packages at `paths`, which changes the files.
    pub fn sign_packages(&self, paths: &[PathBuf]) {
        let mut sign = std::process::Command::new("rpmsign");
        sign.env("GNUPGHOME", &self.home)
            .args(["--define", "__gpg /usr/bin/gpg", "--define"]);
        run(sign
            .arg("_gpg_name @example.com")
            .arg("--addsign")
            .args(paths));
    }

    /// The public key as a keyring, the format that helm reads.
    pub fn keyring(&self) -> Vec<u8> {
        run(self.gpg().arg("--export"))
    }
}

impl Drop for Signer {
    fn drop(&mut self) {
        let mut end = std::process::Command::new("gpgconf");
        let _ = end
            .arg("--homedir")
            .arg(&self.home)
            .args(["--kill", "gpg-agent"])
            .status();
    }
}
