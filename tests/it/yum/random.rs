//! Compares landfall's selection of packages with that of dnf on random repositories, for empty
//! machines and for machines with packages.
//!
//! `LANDFALL_YUM_SEEDS=1000..1300` uses these seeds instead of the default ones.

use crate::support::charts::Signer;
use crate::support::dice::Dice;
use crate::support::package_sets::PackageSets;
use crate::support::peers::file_server;
use crate::support::yum::{dnf, dnf_each, documented_format};
use crate::support::{Place, need, rpm_repository, run};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;

/// The default seeds. The solver was developed with other seeds.
const SEEDS: Range<u64> = 90_000..90_060;

const CAPABILITIES: [&str; 5] = ["cap(a)", "cap(b)", "cap(c)", "libd.so.1()(64bit)", "cap(e)"];
/// Files in the primary index.
const PROGRAMS: [&str; 4] = [
    "/usr/bin/one",
    "/usr/bin/two",
    "/usr/sbin/three",
    "/etc/four",
];
/// Files that are only in the list of all files.
const LISTED: [&str; 4] = [
    "/usr/share/one",
    "/usr/share/doc/two",
    "/usr/lib/three",
    "/opt/four with a space",
];

/// A repository, the packages of a machine, and the packages to install.
struct Case {
    packages: String,
    base: Vec<BasePackage>,
    install: Vec<String>,
    weak: bool,
}

/// A package that the machine has.
struct BasePackage {
    name: String,
    version: usize,
    /// The release. Packages of repositories have another one, so no repository has this package.
    release: usize,
    lines: String,
    files: Vec<String>,
}

/// Generates the case of a seed.
struct Author {
    dice: Dice,
    /// The prefix of all package names. It differs for each case, since one run of rpmbuild builds
    /// the packages of all machines.
    prefix: String,
    names: usize,
}

impl Author {
    fn is(&mut self, percent: usize) -> bool {
        self.dice.roll(100) < percent
    }

    fn name(&mut self) -> String {
        let number = self.dice.roll(self.names);
        self.named(number)
    }

    fn named(&self, number: usize) -> String {
        format!("{}{}", self.prefix, char::from(b'a' + number as u8))
    }

    fn version(&mut self) -> usize {
        self.dice.roll(3) + 1
    }

    /// Returns a dependency without operators such as `or`.
    fn plain(&mut self) -> String {
        match self.dice.roll(20) {
            0..9 => self.name(),
            9..13 => {
                let sense = self.dice.pick(&["=", ">=", "<", "<=", ">"]);
                format!("{} {sense} {}", self.name(), self.version())
            }
            13..16 => self.dice.pick(&CAPABILITIES).to_owned(),
            16 => format!("{} >= {}", self.dice.pick(&CAPABILITIES), self.version()),
            17 => self.dice.pick(&PROGRAMS).to_owned(),
            _ => self.dice.pick(&LISTED[..3]).to_owned(),
        }
    }

    /// A dependency. In `rich` percent of the cases it is a rich one, such as `(a or b)`.
    fn dependency(&mut self, rich: usize) -> String {
        if !self.is(rich) {
            return self.plain();
        }
        let [a, b, c] = [self.plain(), self.plain(), self.plain()];
        match self.dice.roll(9) {
            0 | 1 => format!("({a} or {b})"),
            2 | 3 => format!("({a} and {b})"),
            4 | 5 => format!("({a} if {b})"),
            6 => format!("({a} if {b} else {c})"),
            7 => format!("({a} and ({b} or {c}))"),
            _ => format!(
                "({} with {})",
                self.dice.pick(&CAPABILITIES),
                self.dice.pick(&CAPABILITIES)
            ),
        }
    }

    fn package(&mut self, number: usize, version: usize) -> String {
        let mut relations = Vec::new();
        for _ in 0..self.dice.pick(&[0, 0, 1, 1, 2]) {
            relations.push(format!("requires {}", self.dependency(15)));
        }
        for (kind, percent, rich) in [
            ("recommends", 40, 40),
            ("supplements", 18, 40),
            ("suggests", 15, 15),
            ("enhances", 10, 15),
        ] {
            if self.is(percent) {
                relations.push(format!("{kind} {}", self.dependency(rich)));
            }
        }
        if self.is(8) {
            relations.push(format!("conflicts {}", self.dependency(10)));
        }
        if self.is(10) {
            let other = self.name();
            let bound = self.dice.pick(&["", " < 2", " < 3", " <= 3"]);
            relations.push(format!("obsoletes {other}{bound}"));
            if self.is(40) {
                relations.push(format!("provides {other} = 9"));
            }
        }
        if self.is(40) {
            let capability = self.dice.pick(&CAPABILITIES);
            let version = if self.is(50) {
                format!(" = {}", self.version())
            } else {
                String::new()
            };
            relations.push(format!("provides {capability}{version}"));
        }
        if self.is(25) {
            relations.push(format!("file {}", self.dice.pick(&PROGRAMS)));
        }
        if self.is(30) {
            relations.push(format!("listed {}", self.dice.pick(&LISTED[..3])));
        }
        format!(
            "{} {version}: {}\n",
            self.named(number),
            relations.join("; ")
        )
    }

    /// A package of a machine. It has no dependencies, so that the machine lacks none.
    fn base_package(&mut self, number: usize) -> BasePackage {
        let mut lines = String::new();
        if self.is(40) {
            let _ = writeln!(lines, "Provides: {}", self.dice.pick(&CAPABILITIES));
        }
        if self.is(10) {
            let _ = writeln!(lines, "Conflicts: {}", self.name());
        }
        let mut files = Vec::new();
        if self.is(40) {
            files.push(self.dice.pick(&[PROGRAMS, LISTED].concat()[..7]).to_owned());
        }
        let release = self.dice.pick(&[0, 0, 5]);
        BasePackage {
            name: self.named(number),
            version: self.version(),
            release,
            lines,
            files,
        }
    }

    fn install(&mut self) -> String {
        match self.dice.roll(20) {
            0 => self.dice.pick(&CAPABILITIES).to_owned(),
            1 => self.dice.pick(&PROGRAMS).to_owned(),
            2 | 3 => self.dice.pick(&LISTED[..3]).to_owned(),
            4 => format!("{}-{}", self.name(), self.version()),
            5 => format!("{} >= {}", self.name(), self.version()),
            6 => format!("{} < {}", self.name(), self.version()),
            _ => self.name(),
        }
    }
}

fn case(seed: u64) -> Case {
    let mut author = Author {
        dice: Dice(seed),
        prefix: format!("r{seed}"),
        names: 0,
    };
    author.names = 6 + author.dice.roll(18);
    let mut packages = String::new();
    for number in 0..author.names {
        let versions = author
            .dice
            .pick(&[vec![1], vec![2], vec![1, 2], vec![1, 2, 3], vec![3]]);
        for version in versions {
            packages += &author.package(number, version);
        }
    }
    let mut base = Vec::new();
    if author.is(50) {
        for number in 0..author.names {
            if author.is(25) {
                base.push(author.base_package(number));
            }
        }
    }
    let mut install: Vec<String> = (0..author.dice.pick(&[1, 1, 2, 3]))
        .map(|_| author.install())
        .collect();
    install.sort();
    install.dedup();
    let weak = author.is(90);
    Case {
        packages,
        base,
        install,
        weak,
    }
}

/// Builds the packages of all machines at once into `base-rpms`.
fn build_bases(place: &Place, cases: &BTreeMap<u64, Case>) {
    let all: Vec<&BasePackage> = cases.values().flat_map(|case| &case.base).collect();
    let mut spec =
        "Name: made\nVersion: 1\nRelease: 1\nSummary: t\nLicense: MIT\nBuildArch: noarch\nAutoReqProv: no\n\
                    %description\nt\n"
            .to_owned();
    for BasePackage {
        name,
        version,
        release,
        lines,
        ..
    } in &all
    {
        let _ = write!(
            spec,
            "%package -n {name}\nVersion: {version}\nRelease: {release}\nSummary: t\nAutoReqProv: no\n{lines}%description -n {name}\nt\n"
        );
    }
    spec += "%install\n";
    for file in PROGRAMS.iter().chain(&LISTED[..3]) {
        let _ = writeln!(
            spec,
            "mkdir -p %{{buildroot}}$(dirname {file})\necho f > %{{buildroot}}{file}"
        );
    }
    for BasePackage { name, files, .. } in &all {
        let _ = writeln!(spec, "%files -n {name}\n{}", files.join("\n"));
    }
    let path = place.write("base/made.spec", spec);
    let mut build = place.clean("rpmbuild");
    build.args([
        "-bb",
        "--quiet",
        "--define",
        "_unpackaged_files_terminate_build 0",
        "--define",
    ]);
    build.arg(format!("_topdir {}", place.path("base/top").display()));
    build
        .arg("--define")
        .arg(format!("_rpmdir {}", place.path("base-rpms").display()));
    build
        .args(["--define", "_build_name_fmt %%{NAME}.rpm"])
        .arg(path);
    run(&mut build);
}

/// The result of dnf: `name arch version` of each package that it would install, sorted, or its
/// error.
fn answer(output: &[u8]) -> Result<Vec<String>, String> {
    let text = String::from_utf8_lossy(output);
    if let Some(error) = text.find("Error: ") {
        return Err(text[error..].to_owned());
    }
    Ok(crate::support::yum::planned(output))
}

#[test]
fn the_selection_equals_that_of_dnf_on_98_percent_of_random_repositories() {
    if !need(&["dnf", "gpg", "rpm", "rpmbuild"]) {
        return;
    }
    let seeds = std::env::var("LANDFALL_YUM_SEEDS").ok().map(|range| {
        let (first, end) = range
            .split_once("..")
            .expect("LANDFALL_YUM_SEEDS is FIRST..END");
        first.parse().expect("a seed")..end.parse().expect("a seed")
    });
    let cases: BTreeMap<u64, Case> = seeds
        .unwrap_or(SEEDS)
        .map(|seed| (seed, case(seed)))
        .collect();
    let place = Place::new();
    let signer = Signer::new(&place, "packages");
    place.write("key.asc", signer.public());
    std::fs::create_dir_all(place.path("up")).unwrap();
    build_bases(&place, &cases);
    let server = file_server(&place.path("up"));
    // the documented format for the packages of a node
    let query = documented_format();
    let mut manifest = "apiVersion: landfall/v1\nkind: Manifest\npackages:\n".to_owned();
    for (
        seed,
        Case {
            packages,
            base,
            install,
            weak,
        },
    ) in &cases
    {
        rpm_repository::write(&place.path(format!("up/{seed}")), packages);
        let base = match base.is_empty() {
            true => "none".to_owned(),
            false => {
                let root = place.path(format!("dnf-{seed}/root"));
                let rpms = base
                    .iter()
                    .map(|one| place.path(format!("base-rpms/{}.rpm", one.name)));
                let mut rpm = place.clean("rpm");
                rpm.arg("--root").arg(&root).args([
                    "-i",
                    "--justdb",
                    "--nodeps",
                    "--noscripts",
                    "--nosignature",
                ]);
                run(rpm.args(rpms));
                let mut rpm = place.clean("rpm");
                let listed = run(rpm.arg("--root").arg(&root).args(["-qa", "--qf", query]));
                place.write(&format!("{seed}.rpms"), listed);
                format!("{{rpms: {seed}.rpms}}")
            }
        };
        let words: Vec<String> = install.iter().map(|word| format!("'{word}'")).collect();
        manifest += &format!(
            "- yum: {{name: s{seed}, url: '{}/{seed}', key: key.asc, install: [{}], base: {base}, weak: {weak}}}\n",
            server.url(),
            words.join(", "),
        );
    }
    place.write("m.yaml", manifest);
    let ours = PackageSets::lock(&place, 3);
    let ask = |(seed, case): (&u64, &Case)| {
        let folder = format!("file://{}", place.path(format!("up/{seed}")).display());
        let mut ask = dnf(&place, &format!("dnf-{seed}"), &folder, "gpgcheck=0\n");
        ask.arg(format!("--setopt=install_weak_deps={}", case.weak));
        ask.args(["--assumeno", "install"]).args(&case.install);
        ask
    };
    let Some(answers) = dnf_each(&place, &cases.iter().map(ask).collect::<Vec<_>>()) else {
        return;
    };
    let mut differences = Vec::new();
    let mut refused = 0;
    for ((seed, case), answer) in cases
        .iter()
        .zip(answers.iter().map(|output| self::answer(output)))
    {
        let shown = |[name, version, arch]: [&str; 3]| [name, arch, version].join(" ");
        let ours = ours.chosen(&format!("yum:s{seed}"), shown);
        refused += usize::from(answer.is_err());
        if ours.as_ref().ok() != answer.as_ref().ok() {
            let base = case.base.iter().map(|one| {
                let BasePackage {
                    name,
                    version,
                    release,
                    lines,
                    files,
                } = one;
                format!(
                    "    {name}-{version}-{release} {} {files:?}\n",
                    lines.replace('\n', "; ")
                )
            });
            differences.push(format!(
                "{seed}: install {:?}, weak {}, base\n{}{}  landfall {ours:?}\n  dnf {answer:?}\n",
                case.install,
                case.weak,
                base.collect::<String>(),
                case.packages
            ));
        }
    }
    let all = cases.len();
    let equal = cases.len() - differences.len();
    println!(
        "{equal} of {all} are equal; dnf refuses {refused}\n{}",
        differences.join("\n")
    );
    // dnf must accept most requests, so that most cases compare a selection of packages
    assert!(refused * 2 < all, "{refused} of {all} cannot be installed");
    assert!(equal * 100 >= all * 98, "{equal} of {all} are equal");
}
