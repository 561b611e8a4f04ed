//! Generated yum repositories: packages by rpmbuild and rpmsign, indexes by `createrepo_c`. Also a
//! dnf with its own folders.

use super::charts::Signer;
use super::peers::{Server, file_server};
use super::{Place, need, run, skip, test_name, which};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::fs;
use std::process::{Command, Stdio};

/// The programs that the yum tests need.
pub const PROGRAMS: [&str; 5] = ["dnf", "rpmbuild", "rpmsign", "createrepo_c", "gpg"];

/// A file server with yum repositories below `/r`, and a place for a manifest and its lock.
pub struct YumUpstream {
    pub place: Place,
    pub server: Server,
    pub signer: Signer,
}

impl YumUpstream {
    /// `None` if a program is missing; the test is then skipped.
    pub fn new() -> Option<YumUpstream> {
        if !need(&PROGRAMS) {
            return None;
        }
        let place = Place::new();
        fs::create_dir_all(place.path("up/r")).unwrap();
        let signer = Signer::new(&place, "packages");
        place.write("key.asc", signer.public());
        Some(YumUpstream {
            server: file_server(&place.path("up")),
            signer,
            place,
        })
    }

    /// The URL of the repositories.
    pub fn url(&self) -> String {
        format!("{}/r", self.server.url())
    }

    /// Builds and signs packages into `up/r/Packages`. Each is `(name, version, lines of its spec,
    /// files)`.
    pub fn build(&self, packages: &[(&str, &str, &str, &[&str])]) {
        let mut left: Vec<_> = packages.iter().collect();
        while !left.is_empty() {
            // one run of rpmbuild can only build packages with distinct names and distinct files
            let mut seen = HashSet::new();
            let (batch, rest): (Vec<_>, Vec<_>) =
                left.into_iter().partition(|(name, _, _, files)| {
                    seen.insert(*name) && files.iter().all(|file| seen.insert(file))
                });
            self.build_batch(&batch);
            left = rest;
        }
        let made = fs::read_dir(self.place.path("up/r/Packages")).unwrap();
        self.signer
            .sign_packages(&made.map(|entry| entry.unwrap().path()).collect::<Vec<_>>());
    }

    fn build_batch(&self, packages: &[&(&str, &str, &str, &[&str])]) {
        let head = |(name, version, lines, _): &&(&str, &str, &str, &[&str])| {
            format!(
                "%package -n {name}\nVersion: {version}\nSummary: test\n{lines}%description -n {name}\ntest\n"
            )
        };
        let make = |(name, version, _, files): &&(&str, &str, &str, &[&str])| -> String {
            let make = |file| {
                format!(
                    "mkdir -p %{{buildroot}}$(dirname {file})\necho {name} {version} > %{{buildroot}}{file}\n"
                )
            };
            files.iter().map(make).collect()
        };
        let files = |(name, _, _, files): &&(&str, &str, &str, &[&str])| {
            format!("%files -n {name}\n{}\n", files.join("\n"))
        };
        let spec = format!(
            "Name: made\nVersion: 1\nRelease: 1\nSummary: test\nLicense: MIT\nBuildArch: noarch\n%description\ntest\n\
             {}%install\n{}{}",
            packages.iter().map(head).collect::<String>(),
            packages.iter().map(make).collect::<String>(),
            packages.iter().map(files).collect::<String>(),
        );
        let path = self.place.write("build/made.spec", spec);
        let mut build = self.place.clean("rpmbuild");
        build.args(["-bb", "--quiet", "--define"]);
        build.arg(format!(
            "_topdir {}",
            self.place.path("build/top").display()
        ));
        build.arg("--define").arg(format!(
            "_rpmdir {}",
            self.place.path("up/r/Packages").display()
        ));
        run(build
            .args([
                "--define",
                "_build_name_fmt %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm",
            ])
            .arg(path));
    }

    /// Writes the indexes of `up/r`, compressed as `form`, and signs `repomd.xml`.
    pub fn index(&self, form: &str) {
        run(self.createrepo(form).args(["--update", "."]));
        self.sign();
    }

    /// Like `index`, but removes the old indexes first: `createrepo_c --update` does not detect a
    /// package that is signed again within the second in which it was indexed.
    pub fn index_again(&self, form: &str) {
        fs::remove_dir_all(self.place.path("up/r/repodata")).unwrap();
        self.index(form);
    }

    /// Writes a repository with the packages of `up/r` to `up/r/FOLDER`.
    pub fn copy(&self, folder: &str) {
        let root = self.place.path(format!("up/r/{folder}"));
        fs::create_dir_all(&root).unwrap();
        std::os::unix::fs::symlink(self.place.path("up/r/Packages"), root.join("Packages"))
            .unwrap();
        run(self.createrepo("gz").args(["--revision", folder, folder]));
    }

    fn createrepo(&self, form: &str) -> Command {
        let mut create = Command::new("createrepo_c");
        create.current_dir(self.place.path("up/r"));
        create.args(["--quiet", &format!("--general-compress-type={form}")]);
        create
    }

    /// Signs `repomd.xml` as it is.
    pub fn sign(&self) {
        let repomd = self.place.read("up/r/repodata/repomd.xml");
        self.place.write(
            "up/r/repodata/repomd.xml.asc",
            self.signer.detached(&repomd),
        );
    }

    /// Writes a manifest with one yum entry. Its source is this repository, and it has these
    /// fields.
    pub fn wants(&self, fields: &str) {
        let url = self.url();
        let head = "apiVersion: landfall/v1\nkind: Manifest\npackages:\n";
        self.place.write(
            "m.yaml",
            format!("{head}- yum: {{url: '{url}', key: key.asc, {fields}}}\n"),
        );
    }

    pub fn lock(&self, exit: i32, more: &[&str]) -> Value {
        self.place
            .json(exit, &[&["lock", "-f", "m.yaml"], more].concat())
    }
}

/// A dnf command with only one repository. It installs below `NAME/root` in `place`.
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
    dnf.arg(format!(
        "--setopt=cachedir={}",
        root.join("cache").display()
    ));
    dnf.args([
        "--noplugins",
        "--setopt=reposdir=/dev/null",
        "--forcearch=x86_64",
        "--releasever=9",
    ]);
    dnf
}

/// A script that runs dnf once for each line of its input: a JSON list of an output file and the
/// arguments. All loaded objects are excluded from garbage collection, which saves each process
/// most of its time.
const DNF_EACH: &str = "
import gc, json, os, sys
from dnf.cli import main
gc.freeze()
for line in sys.stdin:
    output, *arguments = json.loads(line)
    if os.fork() == 0:
        try:
            sys.stdout = sys.stderr = open(output, 'w')
            main.user_main(arguments, exit_code=True)
        finally:
            sys.stdout.flush()
            os._exit(0)
    os.wait()
";

/// The output of each dnf command. The commands run one after the other in separate processes, and
/// dnf's modules are loaded once. `None` if dnf is not a Python program here; the test is then
/// skipped.
pub fn dnf_each(place: &Place, commands: &[Command]) -> Option<Vec<Vec<u8>>> {
    let program = fs::read(which("dnf").unwrap()).unwrap();
    let first =
        String::from_utf8_lossy(program.split(|byte| *byte == b'\n').next().unwrap()).into_owned();
    let Some(python) = first
        .strip_prefix("#!")
        .filter(|line| line.contains("python"))
    else {
        skip(&test_name(), "this machine's dnf is not a Python program");
        return None;
    };
    let outputs: Vec<_> = (0..commands.len())
        .map(|at| place.path(format!("dnf-each-{at}")))
        .collect();
    let lines = commands.iter().zip(&outputs).map(|(commands, output)| {
        let arguments = commands
            .get_args()
            .map(|argument| argument.to_str().unwrap());
        json!(
            [output.to_str().unwrap()]
                .into_iter()
                .chain(arguments)
                .collect::<Vec<_>>()
        )
        .to_string()
            + "\n"
    });
    let commands = place.write("dnf-each", lines.collect::<String>());
    let mut each = place.clean(python.trim());
    run(each
        .args(["-c", DNF_EACH])
        .stdin(Stdio::from(fs::File::open(commands).unwrap())));
    Some(
        outputs
            .iter()
            .map(|output| fs::read(output).unwrap())
            .collect(),
    )
}

/// `name arch version` of each package that `dnf --assumeno` would install, sorted. Empty if dnf
/// refuses the installation.
pub fn planned(output: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(output);
    let table = text.split("Skipping packages").next().unwrap();
    let words = table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    let rows = words.filter(|words| words.len() >= 5 && words[3] == "t");
    let mut all: Vec<String> = rows.map(|words| words[..3].join(" ")).collect();
    all.sort();
    all
}

/// The format in which the documentation lists the packages of a machine with `rpm -qa --qf`.
pub fn documented_format() -> &'static str {
    let page = include_str!("../../../docs/how-to/packages.md");
    let (_, rest) = page.split_once("rpm -qa --qf '").unwrap();
    rest.split_once('\'').unwrap().0
}
