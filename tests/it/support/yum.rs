//! Repositories of yum made on the spot: packages by rpmbuild and rpmsign, indexes by `createrepo_c`. And a dnf with folders of
//! its own.

use super::charts::Signer;
use super::peers::{Server, file_server};
use super::{Place, need, run};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// What the tests of yum need.
pub const PROGRAMS: [&str; 5] = ["dnf", "rpmbuild", "rpmsign", "createrepo_c", "gpg"];

/// A file server with repositories of yum below `/r`, and a place with a manifest.
pub struct YumUpstream {
    pub place: Place,
    pub server: Server,
    pub signer: Signer,
}

impl YumUpstream {
    /// `None` where this machine lacks a program; the test is skipped then.
    pub fn new() -> Option<YumUpstream> {
        if !need(&PROGRAMS) {
            return None;
        }
        let place = Place::new();
        fs::create_dir_all(place.path("up/r")).unwrap();
        let signer = Signer::new(&place, "packages");
        place.write("key.asc", signer.public());
        Some(YumUpstream { server: file_server(&place.path("up")), signer, place })
    }

    /// The URL of the repositories.
    pub fn url(&self) -> String {
        format!("{}/r", self.server.url())
    }

    /// Builds and signs packages into `up/r/Packages`. Each is `(name, version, lines of its spec, files)`.
    pub fn build(&self, packages: &[(&str, &str, &str, &[&str])]) {
        let out = self.place.path("up/r/Packages");
        for (name, version, lines, files) in packages {
            let make: String = files
                .iter()
                .map(|file| format!("mkdir -p %{{buildroot}}$(dirname {file})\necho {name} {version} > %{{buildroot}}{file}\n"))
                .collect();
            let spec = format!(
                "Name: {name}\nVersion: {version}\nRelease: 1\nSummary: test\nLicense: MIT\nBuildArch: noarch\n{lines}\
                 %description\ntest\n%install\n{make}%files\n{}\n",
                files.join("\n")
            );
            let path = self.place.write(&format!("build/{name}-{version}.spec"), spec);
            let mut build = self.place.clean("rpmbuild");
            let top = self.place.path("build/top");
            build.args(["-bb", "--quiet", "--define"]).arg(format!("_topdir {}", top.display()));
            build.arg("--define").arg(format!("_rpmdir {}", out.display()));
            run(build
                .args(["--define", "_build_name_fmt %{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}.rpm"])
                .arg(path));
        }
        let all: Vec<PathBuf> = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path()).collect();
        self.signer.sign_packages(&all);
    }

    /// Writes the indexes of `up/r`, packed as `form`, and signs them.
    pub fn index(&self, form: &str) {
        let root = self.place.path("up/r");
        let form = format!("--general-compress-type={form}");
        run(Command::new("createrepo_c").args(["--quiet", "--update", &form]).arg(&root));
        self.sign();
    }

    /// Signs `repomd.xml` as it is.
    pub fn sign(&self) {
        let repomd = self.place.read("up/r/repodata/repomd.xml");
        self.place.write("up/r/repodata/repomd.xml.asc", self.signer.detached(&repomd));
    }

    /// Writes a manifest of one entry of yum, whose fields are those of the one source and `fields`.
    pub fn wants(&self, fields: &str) {
        let url = self.url();
        let head = "apiVersion: landfall/v1\nkind: Manifest\npackages:\n";
        self.place.write("m.yaml", format!("{head}- yum: {{url: '{url}', key: key.asc, {fields}}}\n"));
    }

    pub fn lock(&self, exit: i32, more: &[&str]) -> Value {
        self.place.json(exit, &[&["lock", "-f", "m.yaml"], more].concat())
    }
}

/// A dnf that knows one repository, and installs into a folder.
pub fn dnf(place: &Place, name: &str, baseurl: &str, more: &str) -> Command {
    let root = place.path(name);
    fs::create_dir_all(&root).unwrap();
    let repository = format!("[main]\n[t]\nname=t\nbaseurl={baseurl}\n{more}");
    let config = place.write(&format!("{name}.conf"), repository);
    let mut dnf = place.clean("dnf");
    dnf.env("LC_ALL", "C")
        .arg("-c")
        .arg(config)
        .arg(format!("--installroot={}", root.join("root").display()));
    dnf.arg(format!("--setopt=cachedir={}", root.join("cache").display()));
    dnf.args(["--noplugins", "--setopt=reposdir=/dev/null", "--forcearch=x86_64", "--releasever=9"]);
    dnf
}

/// `name arch version` of what a dnf that was told `--assumeno` would install, sorted; nothing where it refuses.
pub fn planned(output: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(output);
    let table = text.split("Skipping packages").next().unwrap();
    let words = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let rows = words.filter(|words| words.len() >= 5 && words[3] == "t");
    let mut all: Vec<String> = rows.map(|words| words[..3].join(" ")).collect();
    all.sort();
    all
}
