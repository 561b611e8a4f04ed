//! Generated apt repositories: packages by dpkg-deb, and indexes by apt-ftparchive, signed with a
//! new key. Also an apt with its own folders.

use super::charts::Signer;
use super::images::sha256_hex;
use super::package_sets::{packages, sorted};
use super::peers::Server;
use super::peers::file_server;
use super::{Place, need, run};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The programs that the apt tests need.
pub const PROGRAMS: [&str; 6] = ["apt-get", "apt-ftparchive", "dpkg-deb", "gpg", "gpgv", "xz"];

/// A package to be built.
pub struct Deb<'a> {
    pub name: &'a str,
    pub version: &'a str,
    pub arch: &'a str,
    /// Additional fields of the control file, each with its newline.
    pub fields: &'a str,
}

pub fn deb<'a>(name: &'a str, version: &'a str, fields: &'a str) -> Deb<'a> {
    Deb {
        name,
        version,
        arch: "amd64",
        fields,
    }
}

/// A file server with apt repositories below `/r`, and a place for a manifest and its lock.
pub struct AptUpstream {
    pub place: Place,
    pub server: Server,
    pub signer: Signer,
}

impl AptUpstream {
    /// `None` if a program is missing; the test is then skipped.
    pub fn new() -> Option<AptUpstream> {
        if !need(&PROGRAMS) {
            return None;
        }
        let place = Place::new();
        fs::create_dir_all(place.path("up/r")).unwrap();
        let signer = Signer::new(&place, "repository");
        place.write("key.asc", signer.public());
        Some(AptUpstream {
            server: file_server(&place.path("up")),
            signer,
            place,
        })
    }

    /// The URL of the repositories.
    pub fn url(&self) -> String {
        format!("{}/r", self.server.url())
    }

    /// Adds a changelog in Debian's format to the package `name`, which is built later.
    pub fn changelog(&self, name: &str, version: &str, text: &str) {
        let file = format!("build/{name}_{version}_amd64/usr/share/doc/{name}/changelog.Debian");
        run(Command::new("gzip")
            .arg("-9n")
            .arg(self.place.write(&file, text)));
    }

    /// Builds packages into `up/r/FOLDER`, as `NAME_VERSION_ARCH.deb` without the epoch.
    pub fn build(&self, folder: &str, debs: &[Deb<'_>]) {
        let out = self.place.path(format!("up/r/{folder}"));
        fs::create_dir_all(&out).unwrap();
        for Deb {
            name,
            version,
            arch,
            fields,
        } in debs
        {
            let root = self.place.path(format!("build/{name}_{version}_{arch}"));
            fs::create_dir_all(root.join("DEBIAN")).unwrap();
            let control = format!(
                "Package: {name}\nVersion: {version}\nArchitecture: {arch}\nMaintainer: nobody <n@example.com>\n{fields}\
                 Description: a test\n"
            );
            fs::write(root.join("DEBIAN/control"), control).unwrap();
            let file = format!(
                "{name}_{}_{arch}.deb",
                version.split_once(':').map_or(*version, |(_, rest)| rest)
            );
            let mut build = Command::new("dpkg-deb");
            build
                .args(["--root-owner-group", "-Zgzip", "-z1", "--build"])
                .arg(&root)
                .arg(out.join(file));
            run(&mut build);
        }
    }

    /// Writes the suite `suite` with the component `main` and all packages in `pool/SUITE`. `more`
    /// are additional lines of the Release file.
    pub fn suite(&self, suite: &str, more: &str) {
        let root = self.place.path("up/r");
        let folder = format!("dists/{suite}");
        for arch in ["amd64", "i386"] {
            let index = format!("{folder}/main/binary-{arch}");
            fs::create_dir_all(root.join(&index)).unwrap();
            let mut list = Command::new("apt-ftparchive");
            list.current_dir(&root)
                .args(["--arch", arch, "packages", &format!("pool/{suite}")]);
            self.index(&index, "Packages", &run(&mut list));
        }
        self.index(
            &format!("{folder}/main/i18n"),
            "Translation-en",
            b"Package: none\n",
        );
        let head = format!(
            "Origin: test\nSuite: {suite}\nCodename: {suite}\nArchitectures: amd64 i386\nComponents: main\n{more}"
        );
        self.release(&folder, &head);
    }

    /// Writes a flat repository of the packages in `folder`. `more` are additional lines of the
    /// Release file.
    pub fn flat(&self, folder: &str, more: &str) {
        let root = self.place.path(format!("up/r/{folder}"));
        let mut list = Command::new("apt-ftparchive");
        self.index(
            folder,
            "Packages",
            &run(list.current_dir(&root).args(["packages", "."])),
        );
        self.release(folder, more);
    }

    /// Writes an index uncompressed, as gz and as xz, and each form also to `by-hash`.
    pub fn index(&self, folder: &str, name: &str, text: &[u8]) {
        let root = self.place.path(format!("up/r/{folder}"));
        fs::create_dir_all(root.join("by-hash/SHA256")).unwrap();
        let path = root.join(name);
        fs::write(&path, text).unwrap();
        for program in ["gzip", "xz"] {
            run(Command::new(program).args(["--keep", "--force"]).arg(&path));
        }
        for ending in ["", ".gz", ".xz"] {
            let bytes = fs::read(root.join(format!("{name}{ending}"))).unwrap();
            let hex = sha256_hex(&bytes);
            fs::write(root.join("by-hash/SHA256").join(hex), bytes).unwrap();
        }
    }

    /// Writes the Release file of a folder, with an inline and a detached signature. `head` are its
    /// first lines.
    pub fn release(&self, folder: &str, head: &str) {
        let root = self.place.path(format!("up/r/{folder}"));
        for old in ["Release", "InRelease", "Release.gpg"] {
            let _ = fs::remove_file(root.join(old));
        }
        let mut list = Command::new("apt-ftparchive");
        // apt-ftparchive does not list the indexes of command-not-found by default
        let patterns = ["-o", "APT::FTPArchive::Release::Patterns::=Commands-*"];
        let sums = String::from_utf8(run(list
            .current_dir(&root)
            .args(patterns)
            .args(["release", "."])))
        .unwrap();
        let sums = sums
            .lines()
            .filter(|line| !line.contains("by-hash/"))
            .fold(String::new(), |all, line| all + line + "\n");
        let sums = if head.contains("Date: ") {
            without(&sums, "Date: ")
        } else {
            sums
        };
        self.sign(folder, &format!("{head}{sums}"));
    }

    /// Writes this text as the Release file of a folder, with an inline and a detached signature.
    pub fn sign(&self, folder: &str, text: &str) {
        let root = self.place.path(format!("up/r/{folder}"));
        fs::write(root.join("Release"), text).unwrap();
        fs::write(root.join("InRelease"), self.signer.sign(text)).unwrap();
        fs::write(root.join("Release.gpg"), self.signer.detached(text)).unwrap();
    }

    /// Writes a manifest with one apt entry, which has these fields.
    pub fn manifest(&self, fields: &str) {
        let head = "apiVersion: landfall/v1\nkind: Manifest\npackages:\n";
        self.place
            .write("m.yaml", format!("{head}- apt: {{{fields}}}\n"));
    }

    /// Like `manifest`, for packages of the suite `suite`.
    pub fn wants(&self, suite: &str, install: &str, more: &str) {
        let url = self.url();
        self.manifest(&format!(
            "url: '{url}', suite: {suite}, components: [main], key: key.asc, install: [{install}]{more}"
        ));
    }

    pub fn lock(&self, exit: i32, more: &[&str]) -> Value {
        self.place
            .json(exit, &[&["lock", "-f", "m.yaml"], more].concat())
    }

    /// Name and version of every package in the lock, sorted.
    pub fn locked(&self) -> Vec<String> {
        locked(&self.place.read("landfall.lock"))
    }
}

fn without(text: &str, start: &str) -> String {
    text.lines()
        .filter(|line| !line.starts_with(start))
        .fold(String::new(), |all, line| all + line + "\n")
}

/// Name and version of every package in a lock, sorted.
pub fn locked(lock: &str) -> Vec<String> {
    sorted(packages(lock).map(|[name, version, _]| format!("{name} {version}")))
}

/// An apt with its own folders, without the sources of the machine.
pub struct Apt {
    pub root: PathBuf,
    /// The architectures of the machine, the native one first.
    pub architectures: &'static str,
}

impl Apt {
    /// Returns an apt with these sources, in the one-line or deb822 format, and this status file.
    pub fn new(place: &Place, name: &str, sources: &str, status: &str) -> Apt {
        let root = place.path(name);
        for folder in [
            "state/lists/partial",
            "cache/archives/partial",
            "etc/parts",
            "etc/preferences",
            "etc/trusted",
        ] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        let ending = if sources.contains("Types: ") {
            "sources"
        } else {
            "list"
        };
        fs::write(root.join(format!("etc/parts/a.{ending}")), sources).unwrap();
        fs::write(root.join("status"), status).unwrap();
        Apt {
            root,
            architectures: "amd64",
        }
    }

    /// `apt-get ARGUMENTS`.
    pub fn get(&self, place: &Place, arguments: &[&str]) -> Command {
        let mut get = place.clean("apt-get");
        let at = |path: &str| self.root.join(path).display().to_string();
        for (key, value) in [
            ("Dir::State", at("state")),
            ("Dir::State::status", at("status")),
            ("Dir::Cache", at("cache")),
            ("Dir::Etc::sourcelist", "/dev/null".into()),
            ("Dir::Etc::sourceparts", at("etc/parts")),
            ("Dir::Etc::preferencesparts", at("etc/preferences")),
            ("Dir::Etc::trustedparts", at("etc/trusted")),
            ("APT::Architecture", "amd64".into()),
            ("APT::Architectures", self.architectures.into()),
            ("APT::Sandbox::User", "root".into()),
            // for fast simulations: uncompressed lists, a package cache, no record of the plan, and
            // no locking
            ("Acquire::GzipIndexes", "false".into()),
            ("Dir::Cache::pkgcache", "pkgcache.bin".into()),
            ("Dir::Log::Planner", String::new()),
            ("Debug::NoLocking", "1".into()),
        ] {
            get.arg("-o").arg(format!("{key}={value}"));
        }
        get.args(arguments);
        get
    }

    /// Returns the name and version of each package that `apt-get install --simulate` would
    /// install, sorted. The error is the output of apt-get. The name of a package of a foreign
    /// architecture includes the architecture.
    pub fn simulate(
        &self,
        place: &Place,
        recommends: bool,
        install: &[&str],
    ) -> Result<Vec<String>, String> {
        let recommends = if recommends {
            "--install-recommends"
        } else {
            "--no-install-recommends"
        };
        let output = self
            .get(place, &["install", "--simulate", recommends])
            .args(install)
            .output()
            .unwrap();
        if !output.status.success() {
            return Err(
                String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned(),
            );
        }
        let text = String::from_utf8(output.stdout).unwrap();
        // Inst NAME [OLD] (VERSION SOURCE [ARCH])
        let lines = text.lines().filter_map(|line| line.strip_prefix("Inst "));
        Ok(sorted(lines.map(|line| {
            let name = line.split(' ').next().unwrap();
            let version = line.split_once('(').unwrap().1.split(' ').next().unwrap();
            format!("{name} {version}")
        })))
    }
}

/// The sorted names of the files in a folder.
pub fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
