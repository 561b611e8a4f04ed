//! Compares landfall's selection with that of the machine's apt over random repositories: versions
//! in several suites, alternatives, virtual packages, conflicts, and machines with some of the
//! packages.
//!
//! All cases are in one repository. The names of each case have their own prefix, so that the cases
//! do not affect each other.

use crate::support::apt::{Apt, AptUpstream};
use crate::support::dice::Dice;
use crate::support::package_sets::{PackageSets, sorted};
use crate::support::{Place, rounds, run};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The suites: a release, its updates, and backports, which apt uses only on request.
const SUITES: [(&str, &str); 3] = [("old", ""), ("new", ""), ("back", "NotAutomatic: yes\n")];
const PRIORITIES: [&str; 6] = [
    "required",
    "important",
    "standard",
    "optional",
    "optional",
    "extra",
];

/// A version of a package.
#[derive(Clone, Default)]
struct MadePackage {
    name: String,
    version: usize,
    suite: usize,
    provides: Option<(String, Option<usize>)>,
    /// The dependencies, each a group of alternatives.
    needs: Vec<Vec<Target>>,
    conflicts: Vec<Target>,
    text: String,
}

impl MadePackage {
    /// Whether it conflicts with `other`. Versions of the same package do not conflict.
    fn excludes(&self, other: &MadePackage) -> bool {
        self.name != other.name && self.conflicts.iter().any(|target| target.fits(other))
    }
}

/// A name, with a version constraint if `bound` is set.
#[derive(Clone)]
struct Target {
    name: String,
    bound: Option<(&'static str, usize)>,
}

impl Target {
    fn written(&self) -> String {
        match self.bound {
            None => self.name.clone(),
            Some((op, version)) => format!("{} ({op} {version})", self.name),
        }
    }

    fn allows(&self, version: usize) -> bool {
        self.bound.is_none_or(|(op, wanted)| match op {
            "<<" => version < wanted,
            "<=" => version <= wanted,
            "=" => version == wanted,
            _ => version >= wanted,
        })
    }

    fn fits(&self, package: &MadePackage) -> bool {
        let is_provided = || {
            package.provides.as_ref().is_some_and(|(name, version)| {
                *name == self.name
                    && (self.bound.is_none() || version.is_some_and(|version| self.allows(version)))
            })
        };
        package.name == self.name && self.allows(package.version) || is_provided()
    }
}

/// The packages of one case, those that its machine has, and those that are requested.
struct MadeCase {
    packages: Vec<MadePackage>,
    installed: Vec<MadePackage>,
    requested: Vec<String>,
    recommends: bool,
}

fn chance(dice: &mut Dice, percent: usize) -> bool {
    dice.roll(100) < percent
}

fn target(dice: &mut Dice, prefix: &str, own: usize, count: usize) -> Target {
    if chance(dice, 1) {
        return Target {
            name: format!("{prefix}-gone"),
            bound: None,
        };
    }
    let name = match chance(dice, 18) {
        true => format!("{prefix}-v{}", dice.roll(3)),
        // mostly later packages, so that there are few cycles
        false if chance(dice, 85) && own + 1 < count => {
            format!("{prefix}-p{}", own + 1 + dice.roll(count - own - 1))
        }
        false => format!("{prefix}-p{}", dice.roll(count)),
    };
    // most constraints can be satisfied
    let bound = dice.pick(&[
        (">=", 1),
        (">=", 1),
        (">=", 2),
        ("<<", 2),
        ("<<", 3),
        ("<=", 2),
        ("=", 1),
    ]);
    let bound = chance(dice, 14).then_some(bound);
    Target { name, bound }
}

fn package(dice: &mut Dice, prefix: &str, own: usize, count: usize, suite: usize) -> MadePackage {
    let name = format!("{prefix}-p{own}");
    let version = suite + 1;
    let mut text =
        format!("Package: {name}\nVersion: {version}\nArchitecture: amd64\nMaintainer: nobody\n");
    writeln!(text, "Priority: {}", dice.pick(&PRIORITIES)).unwrap();
    if chance(dice, 3) {
        text += "Essential: yes\n";
    }
    if chance(dice, 10) {
        writeln!(
            text,
            "Multi-Arch: {}",
            dice.pick(&["foreign", "allowed", "same"])
        )
        .unwrap();
    }
    if chance(dice, 20) {
        writeln!(text, "Source: {prefix}-s{}", dice.roll(3)).unwrap();
    }
    let mut made = MadePackage {
        name,
        version,
        suite,
        ..MadePackage::default()
    };
    for (field, limit, percent) in [
        ("Pre-Depends", 1, 8),
        ("Depends", 3, 60),
        ("Recommends", 2, 30),
        ("Suggests", 1, 15),
    ] {
        if !chance(dice, percent) {
            continue;
        }
        let count_of_groups = 1 + dice.roll(limit);
        let mut groups = Vec::new();
        for _ in 0..count_of_groups {
            let alternatives = dice.pick(&[1, 1, 1, 2, 2, 3]);
            let group: Vec<Target> = (0..alternatives)
                .map(|_| target(dice, prefix, own, count))
                .collect();
            groups.push(group);
        }
        let written = groups.iter().map(|group| {
            group
                .iter()
                .map(Target::written)
                .collect::<Vec<_>>()
                .join(" | ")
        });
        writeln!(text, "{field}: {}", written.collect::<Vec<_>>().join(", ")).unwrap();
        if field.ends_with("Depends") {
            made.needs.extend(groups);
        }
    }
    if chance(dice, 25) {
        let version = chance(dice, 30).then(|| 1 + dice.roll(2));
        let provided = format!("{prefix}-v{}", dice.roll(3));
        let bound = version.map_or(String::new(), |version| format!(" (= {version})"));
        writeln!(text, "Provides: {provided}{bound}").unwrap();
        // like mail servers, of which only one can be installed at a time
        if chance(dice, 25) {
            writeln!(text, "Conflicts: {provided}\nReplaces: {provided}").unwrap();
            made.conflicts.push(Target {
                name: provided.clone(),
                bound: None,
            });
        }
        made.provides = Some((provided, version));
    }
    if made.conflicts.is_empty() && chance(dice, 8) {
        let against = Target {
            bound: None,
            ..target(dice, prefix, own, count)
        };
        writeln!(text, "Conflicts: {}", against.written()).unwrap();
        made.conflicts.push(against);
    }
    if chance(dice, 10) {
        let other = target(dice, prefix, own, count);
        let against = Target {
            bound: Some(("<<", 2)),
            ..other
        };
        writeln!(text, "Breaks: {0}\nReplaces: {0}", against.written()).unwrap();
        made.conflicts.push(against);
    }
    made.text = text;
    made
}

/// A set of `packages` that can be installed together, each with its dependencies.
fn installed(dice: &mut Dice, packages: &[MadePackage]) -> Vec<MadePackage> {
    let mut all: Vec<&MadePackage> = Vec::new();
    let mut left: Vec<&MadePackage> = packages.iter().filter(|one| one.suite == 0).collect();
    for _ in 0..4 {
        left.retain(|one| {
            let has = |group: &Vec<Target>| {
                group
                    .iter()
                    .any(|target| all.iter().any(|other| target.fits(other)))
            };
            let is_free = !all
                .iter()
                .any(|other| one.excludes(other) || other.excludes(one));
            let is_taken = one.needs.iter().all(has) && is_free && chance(dice, 55);
            if is_taken {
                all.push(one);
            }
            !is_taken
        });
    }
    all.into_iter().cloned().collect()
}

fn made_case(seed: u64, number: usize) -> MadeCase {
    let mut dice = Dice(seed.wrapping_mul(0x1_0000).wrapping_add(number as u64));
    let prefix = format!("c{number}");
    let count = 8 + dice.roll(20);
    let mut packages = Vec::new();
    for own in 0..count {
        for (suite, percent) in [(0, 97), (1, 40), (2, 10)] {
            if chance(&mut dice, percent) {
                packages.push(package(&mut dice, &prefix, own, count, suite));
            }
        }
    }
    let installed = if number.is_multiple_of(3) {
        Vec::new()
    } else {
        installed(&mut dice, &packages)
    };
    let mut requested: Vec<String> = Vec::new();
    for _ in 0..=dice.roll(3) {
        let one = dice.pick(&packages);
        if requested
            .iter()
            .any(|text| text.split(['=', '/']).next() == Some(&one.name))
        {
            continue;
        }
        requested.push(match dice.roll(10) {
            0 => format!("{}={}", one.name, one.version),
            1 => format!("{}/{}", one.name, SUITES[one.suite].0),
            _ => one.name,
        });
    }
    MadeCase {
        packages,
        installed,
        requested,
        recommends: chance(&mut dice, 50),
    }
}

/// The result of apt for a case.
struct AptsChoice {
    /// Names and versions of the packages that it installs, or its error.
    installs: Result<Vec<String>, String>,
    /// Whether dependencies were broken after apt marked the packages, so that its problem resolver
    /// had work.
    is_resolved: bool,
    /// Whether it selected packages for which dpkg has no order, because of circular `Pre-Depends`.
    has_no_order: bool,
}

fn apts_choice(apt: &Apt, place: &Place, case: &MadeCase) -> AptsChoice {
    let recommends = if case.recommends {
        "--install-recommends"
    } else {
        "--no-install-recommends"
    };
    let mut get = apt.get(place, &["install", "--simulate", recommends]);
    let output = get
        .args(["-o", "Debug::pkgProblemResolver=1"])
        .args(&case.requested)
        .output()
        .unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    let count = err.split_once("Starting pkgProblemResolver with broken count: ");
    let is_resolved = count.is_some_and(|(_, rest)| !rest.starts_with("0\n"));
    if !output.status.success() {
        let has_no_order = err.contains("E: Internal error");
        return AptsChoice {
            installs: Err(err),
            is_resolved,
            has_no_order,
        };
    }
    // Inst NAME [OLD] (VERSION SOURCE [ARCH])
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().filter_map(|line| line.strip_prefix("Inst "));
    let installs = lines.map(|line| {
        let name = line.split(' ').next().unwrap();
        format!(
            "{name} {}",
            line.split_once('(').unwrap().1.split(' ').next().unwrap()
        )
    });
    AptsChoice {
        installs: Ok(sorted(installs)),
        is_resolved,
        has_no_order: false,
    }
}

/// The broken dependencies, the conflicts and the missing requested packages on the machine of
/// `case` after `chosen` (names with versions) was installed. As in apt, installed packages that
/// conflict with a chosen package, or that lack a dependency, are removed first.
fn violations(case: &MadeCase, chosen: &[String]) -> Vec<String> {
    let is_chosen = |one: &&MadePackage| chosen.contains(&format!("{} {}", one.name, one.version));
    let new: Vec<&MadePackage> = case.packages.iter().filter(is_chosen).collect();
    let stays = |one: &&MadePackage| {
        !new.iter()
            .any(|other| other.name == one.name || one.excludes(other) || other.excludes(one))
    };
    let mut all: Vec<&MadePackage> = new
        .iter()
        .copied()
        .chain(case.installed.iter().filter(stays))
        .collect();
    loop {
        let has = |group: &Vec<Target>| {
            group
                .iter()
                .any(|target| all.iter().any(|one| target.fits(one)))
        };
        let is_sound = |one: &&MadePackage| {
            new.iter().any(|new| new.name == one.name) || one.needs.iter().all(has)
        };
        let kept: Vec<&MadePackage> = all.iter().copied().filter(is_sound).collect();
        if kept.len() == all.len() {
            break;
        }
        all = kept;
    }
    let mut found = Vec::new();
    for one in &all {
        for group in &one.needs {
            if !group
                .iter()
                .any(|target| all.iter().any(|other| target.fits(other)))
            {
                let written: Vec<String> = group.iter().map(Target::written).collect();
                found.push(format!("{} needs {}", one.name, written.join(" | ")));
            }
        }
        let excluded = all.iter().filter(|other| one.excludes(other));
        found.extend(excluded.map(|other| format!("{} excludes {}", one.name, other.name)));
    }
    let is_there = |name: &str| all.iter().any(|one| one.name == name);
    let requested = case
        .requested
        .iter()
        .map(|text| text.split(['=', '/']).next().unwrap());
    found.extend(
        requested
            .filter(|name| !is_there(name))
            .map(|name| format!("{name} is requested")),
    );
    found
}

/// The seed of this run: `PROPTEST_RNG_SEED`, which `scripts/test` sets.
fn seed() -> u64 {
    std::env::var("PROPTEST_RNG_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(20_261_120)
}

#[test]
fn the_selection_nearly_always_equals_that_of_apt_on_generated_repositories() {
    let Some(up) = AptUpstream::new() else { return };
    let place = &up.place;
    let cases: Vec<MadeCase> = (0..rounds(60))
        .map(|number| made_case(seed(), number))
        .collect();
    let mut sources = String::new();
    let mut entries = Vec::new();
    for (suite, (name, more)) in SUITES.iter().enumerate() {
        let packages = cases
            .iter()
            .flat_map(|case| &case.packages)
            .filter(|one| one.suite == suite);
        let text: String = packages
            .map(|one| {
                let MadePackage {
                    name,
                    version,
                    text,
                    ..
                } = one;
                let sum = crate::support::images::sha256_hex(text.as_bytes());
                format!("{text}Filename: pool/{name}_{version}.deb\nSize: 1\nSHA256: {sum}\n\n")
            })
            .collect();
        place.write(
            &format!("up/r/dists/{name}/main/binary-amd64/Packages"),
            text,
        );
        let head = format!("Suite: {name}\nComponents: main\nArchitectures: amd64\n{more}");
        up.release(&format!("dists/{name}"), &head);
        sources += &format!(
            "deb [signed-by={}] {} {name} main\n",
            place.path("key.asc").display(),
            up.url()
        );
        entries.push(format!(
            "{{url: '{}', suite: {name}, components: [main], key: key.asc}}",
            up.url()
        ));
    }
    let installed = cases.iter().flat_map(|case| &case.installed);
    let status: String = installed
        .map(|one| format!("{}Status: install ok installed\n\n", one.text))
        .collect();
    place.write("status", &status);
    let apt = Apt::new(place, "apt", &sources, &status);
    run(&mut apt.get(place, &["update"]));
    let mut manifest = "apiVersion: landfall/v1\nkind: Manifest\npackages:\n".to_owned();
    for (number, case) in cases.iter().enumerate() {
        writeln!(
            manifest,
            "- apt: {{name: c{number}, base: {{status: status}}, architectures: [amd64], recommends: {}, \
             install: ['{}'], sources: [{}]}}",
            case.recommends,
            case.requested.join("', '"),
            entries.join(", ")
        )
        .unwrap();
    }
    place.write("m.yaml", manifest);
    let theirs: Vec<AptsChoice> = cases
        .iter()
        .map(|case| apts_choice(&apt, place, case))
        .collect();
    let sets = PackageSets::lock_with_refusals(place);

    let mut log = String::new();
    let mut equal = [0; 3];
    let mut all = [0; 3];
    let mut invalid = 0;
    let compared = cases
        .iter()
        .zip(&theirs)
        .enumerate()
        .filter(|(_, (_, theirs))| !theirs.has_no_order);
    for (number, (case, theirs)) in compared {
        let ours = sets.chosen(&format!("apt:c{number}"), |[name, version, _]| {
            format!("{name} {version}")
        });
        let kind = match &theirs.installs {
            Err(_) => 2,
            Ok(_) => usize::from(theirs.is_resolved),
        };
        all[kind] += 1;
        let is_equal = match (&ours, &theirs.installs) {
            (Ok(ours), Ok(theirs)) => ours == theirs,
            (Err(_), Err(_)) => true,
            _ => false,
        };
        if is_equal {
            equal[kind] += 1;
            continue;
        }
        let kind = ["marked", "resolved", "refused"][kind];
        writeln!(
            log,
            "c{number} ({kind}, recommends {}): {:?}",
            case.recommends, case.requested
        )
        .unwrap();
        match (&ours, &theirs.installs) {
            (Ok(ours), Ok(theirs)) => {
                let [a, b]: [BTreeSet<&String>; 2] =
                    [theirs.iter().collect(), ours.iter().collect()];
                writeln!(
                    log,
                    "  apt alone {:?}, landfall alone {:?}",
                    &a - &b,
                    &b - &a
                )
                .unwrap();
            }
            (Err(why), _) => writeln!(log, "  landfall refuses: {why}").unwrap(),
            (Ok(ours), Err(why)) => {
                let wrong = violations(case, ours);
                writeln!(
                    log,
                    "  apt refuses: {why}\n  landfall selects {ours:?}; wrong: {wrong:?}"
                )
                .unwrap();
                invalid += usize::from(!wrong.is_empty());
            }
        }
    }
    println!(
        "equal to apt: {} of {} that it marks, {} of {} that its problem resolver settles, {} of {} that it refuses",
        equal[0], all[0], equal[1], all[1], equal[2], all[2]
    );
    println!("{log}");
    // apt's heuristics may miss a possible set; but if apt refuses a case, a set that landfall
    // selects for it must not have missing or conflicting packages
    assert_eq!(invalid, 0, "{log}");
    assert!(
        (all[0] + all[1]) * 3 > cases.len() && all[1] > 0,
        "the cases are one-sided: {all:?}"
    );
    let share = |equal: usize, all: usize, percent: usize| equal * 100 >= all * percent;
    assert!(share(equal[0], all[0], 99), "{log}");
    assert!(share(equal[0] + equal[1], all[0] + all[1], 97), "{log}");
}
