//! Compares landfall's selection of packages with that of the machine's apt, for packages of the
//! machine's suites.

use super::base::minimal_root;
use super::{Offered, STATUS, field, names, paragraphs, suites};
use crate::support::apt::{Apt, AptUpstream};
use crate::support::package_sets::PackageSets;
use crate::support::{rounds, run};
use std::collections::BTreeSet;
use std::fs;

/// Packages of different kinds: tools, libraries, servers, languages, desktop components,
/// metapackages, virtual packages.
const KINDS: [&str; 66] = [
    "jq",
    "conntrack",
    "socat",
    "ipvsadm",
    "ebtables",
    "ethtool",
    "nfs-common",
    "open-iscsi",
    "cifs-utils",
    "iptables",
    "util-linux",
    "containerd",
    "runc",
    "systemd",
    "apache2",
    "nginx-light",
    "postgresql-client",
    "mariadb-client",
    "postfix",
    "exim4",
    "mailutils",
    "default-mta",
    "bsd-mailx",
    "python3",
    "python3-pip",
    "python3-numpy",
    "perl",
    "ruby",
    "nodejs",
    "golang-go",
    "gcc",
    "build-essential",
    "cmake",
    "default-jre-headless",
    "git",
    "vim",
    "emacs-nox",
    "nano",
    "curl",
    "wget",
    "openssh-server",
    "rsync",
    "tmux",
    "htop",
    "strace",
    "gdb",
    "grub-common",
    "libreadline-dev",
    "libssl-dev",
    "x11-apps",
    "imagemagick",
    "php-cli",
    "samba-common",
    "bind9-dnsutils",
    "haproxy",
    "redis-server",
    "memcached",
    "fonts-dejavu",
    "ca-certificates",
    "apt-transport-https",
    "software-properties-common",
    "lsb-release",
    "chrony",
    "sudo",
    "cloud-init",
    "open-vm-tools",
];

/// Requests for packages of another architecture on an amd64 machine.
const FOREIGN: [&str; 8] = [
    "libc6:i386",
    "zlib1g:i386",
    "libssl3:i386",
    "libgcc-s1:i386",
    "bash:i386",
    "libstdc++6:i386 curl",
    "jq:i386",
    "perl-base:i386",
];

/// Further requests on a minimal machine. The order of the packages in a request matters: the first
/// one decides between alternatives of the second.
const ON_MINIMAL: [&str; 6] = [
    "postgresql",
    "lxc docker.io",
    "docker.io lxc",
    "iptables nftables",
    "default-mta mailutils",
    "mailutils postfix",
];

/// A kind of machine, and the requests for it, each tested separately.
struct Machine {
    name: &'static str,
    /// The base as in the manifest.
    base: &'static str,
    /// The text of the status file, which has the installed packages.
    status: String,
    architectures: &'static str,
    recommends: bool,
    requested: Vec<String>,
}

/// The names that `wanted` may need, including recommended ones if `recommends` is set.
fn reachable<'t>(
    offered: &Offered<'t>,
    wanted: impl Iterator<Item = &'t str>,
    recommends: bool,
) -> BTreeSet<&'t str> {
    let mut next: Vec<&str> = wanted.collect();
    let mut known: BTreeSet<&str> = next.iter().copied().collect();
    while let Some(name) = next.pop() {
        let mut found = Vec::new();
        match offered.own.get(name) {
            None => found.extend(offered.provided.get(name).into_iter().flatten().copied()),
            Some(all) => {
                let count = if recommends { 3 } else { 2 };
                let fields = ["Pre-Depends", "Depends", "Recommends"]
                    .into_iter()
                    .take(count);
                found.extend(
                    fields.flat_map(|name| all.iter().flat_map(move |one| names(field(one, name)))),
                );
            }
        }
        next.extend(found.into_iter().filter(|name| known.insert(name)));
    }
    known
}

#[test]
fn the_selection_equals_that_of_apt_for_many_packages_and_machines() {
    let Some(suites) = suites() else { return };
    let Some(up) = AptUpstream::new() else { return };
    let place = &up.place;
    let offered = Offered::by(suites);
    let status = fs::read_to_string(STATUS).unwrap();
    let kinds: Vec<&str> = KINDS
        .into_iter()
        .filter(|name| offered.own.contains_key(name))
        .collect();
    assert!(
        kinds.len() >= 60,
        "the suites have {} of the packages",
        kinds.len()
    );
    let recommending: Vec<&str> = kinds.iter().copied().step_by(4).collect();
    // the packages that debootstrap installs; landfall assumes them for `base: minimal`
    let minimal = minimal_root(&up, &suites[0]).unwrap_or_default();
    let minimal_status: String = paragraphs(&suites[0].text)
        .filter(|(name, _)| minimal.contains(*name))
        .map(|(_, paragraph)| format!("{}\nStatus: install ok installed\n\n", paragraph.trim_end()))
        .collect();
    let plain = |text: &'static str| names(text).filter(|name| offered.own.contains_key(name));

    // the suites offer only the packages that the requests may need, so that apt and landfall do
    // not read all packages again for each request
    let mut needed = reachable(&offered, kinds.iter().copied(), false);
    needed.extend(reachable(
        &offered,
        ON_MINIMAL.iter().flat_map(|text| text.split(' ')),
        false,
    ));
    needed.extend(reachable(&offered, recommending.iter().copied(), true));
    needed.extend(
        status
            .lines()
            .filter_map(|line| line.strip_prefix("Package: ")),
    );
    needed.extend(reachable(
        &offered,
        minimal.iter().map(String::as_str),
        false,
    ));
    let foreign = reachable(
        &offered,
        FOREIGN
            .iter()
            .flat_map(|text| text.split(' '))
            .flat_map(plain),
        false,
    );
    let mut sources = String::new();
    let mut entries = Vec::new();
    for (at, suite) in suites.iter().enumerate() {
        let of = |names: &BTreeSet<&str>| -> String {
            let kept = paragraphs(&suite.text).filter(|(name, _)| names.contains(name));
            kept.map(|(_, paragraph)| format!("{}\n\n", paragraph.trim_end()))
                .collect()
        };
        // i386 has copies of the amd64 packages that the requests in FOREIGN may need
        let other = of(&foreign).replace("\nArchitecture: amd64\n", "\nArchitecture: i386\n");
        for (arch, text) in [
            ("amd64", of(&needed)),
            ("i386", other.replace("_amd64.deb\n", "_i386.deb\n")),
        ] {
            place.write(
                &format!("up/r/dists/s{at}/main/binary-{arch}/Packages"),
                text,
            );
        }
        let head = format!("Suite: s{at}\nComponents: main\nArchitectures: amd64 i386\n");
        up.release(&format!("dists/s{at}"), &head);
        sources += &format!(
            "deb [signed-by={}] {} s{at} main\n",
            place.path("key.asc").display(),
            up.url()
        );
        entries.push(format!(
            "{{url: '{}', suite: s{at}, components: [main], key: key.asc}}",
            up.url()
        ));
    }

    let of = |names: &[&str]| {
        names
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<Vec<_>>()
    };
    // requests for one version of each package that has several: the first in the order of strings
    let pinned = kinds.iter().filter_map(|name| {
        let versions = offered.own[name].iter().map(|one| field(one, "Version"));
        let all: BTreeSet<&str> = versions.collect();
        all.first()
            .filter(|_| all.len() > 1)
            .map(|version| format!("{name}={version}"))
    });
    // requests for the version in the first suite, for packages that have several versions
    let of_suite = |limit: usize| -> Vec<String> {
        let several = kinds.iter().filter(|name| {
            let versions: BTreeSet<&str> = offered.own[*name]
                .iter()
                .map(|one| field(one, "Version"))
                .collect();
            versions.len() > 1
        });
        several
            .take(limit)
            .map(|name| format!("{name}/s0"))
            .collect()
    };
    let together = [
        "jq socat ethtool conntrack",
        "apache2 php-cli mariadb-client",
        "postfix mailutils",
        "postfix exim4",
    ];
    let empty = Machine {
        name: "empty",
        base: "none",
        status: String::new(),
        architectures: "amd64",
        recommends: false,
        requested: of(&kinds),
    };
    let on_minimal: Vec<&str> = kinds
        .iter()
        .copied()
        .chain(ON_MINIMAL)
        .filter(|_| !minimal.is_empty())
        .collect();
    let machines = [
        Machine {
            name: "minimal",
            base: "minimal",
            requested: of(&on_minimal),
            status: minimal_status,
            ..empty
        },
        Machine {
            name: "words",
            requested: pinned.take(6).chain(together.map(str::to_owned)).collect(),
            status: String::new(),
            ..empty
        },
        Machine {
            name: "recommending",
            recommends: true,
            requested: of(&recommending),
            status: String::new(),
            ..empty
        },
        Machine {
            name: "two",
            architectures: "amd64,i386",
            requested: of(&FOREIGN),
            status: String::new(),
            ..empty
        },
        Machine {
            name: "suite",
            requested: of_suite(rounds(4)),
            status: String::new(),
            ..empty
        },
        Machine {
            name: "suite-this",
            base: "{status: status}",
            requested: of_suite(rounds(12)),
            status: status.clone(),
            ..empty
        },
        Machine {
            name: "this",
            base: "{status: status}",
            requested: of(&kinds),
            status,
            ..empty
        },
        empty,
    ];
    let mut manifest = "apiVersion: landfall/v1\nkind: Manifest\npackages:\n".to_owned();
    let mut chosen_by_apt = Vec::new();
    for Machine {
        name,
        base,
        status,
        architectures,
        recommends,
        requested,
    } in &machines
    {
        if !status.is_empty() {
            place.write("status", status);
        }
        let apt = Apt {
            architectures,
            ..Apt::new(place, name, &sources, status)
        };
        run(&mut apt.get(place, &["update"]));
        for (at, requested) in requested.iter().enumerate() {
            let words: Vec<&str> = requested.split(' ').collect();
            manifest += &format!(
                "- apt: {{name: {name}-{at}, base: {base}, architectures: [{architectures}], recommends: {recommends}, \
                 install: ['{}'], sources: [{}]}}\n",
                words.join("', '"),
                entries.join(", ")
            );
            chosen_by_apt.push((
                format!("{name}-{at}"),
                requested,
                apt.simulate(place, *recommends, &words),
            ));
        }
    }
    place.write("m.yaml", manifest);
    let exit = if chosen_by_apt.iter().any(|(_, _, theirs)| theirs.is_err()) {
        3
    } else {
        0
    };
    let sets = PackageSets::lock(place, exit);
    let mut differ = Vec::new();
    for (machine, requested, theirs) in &chosen_by_apt {
        let ours = sets.chosen(&format!("apt:{machine}"), |[name, version, arch]| {
            let arch = if arch == "i386" { ":i386" } else { "" };
            format!("{name}{arch} {version}")
        });
        let difference = match (&ours, theirs) {
            (Ok(ours), Ok(theirs)) => {
                let only = |a: &[String], b: &[String]| -> Vec<String> {
                    a.iter().filter(|one| !b.contains(one)).cloned().collect()
                };
                (ours != theirs).then(|| {
                    format!(
                        "apt alone {:?}, landfall alone {:?}",
                        only(theirs, ours),
                        only(ours, theirs)
                    )
                })
            }
            (Err(why), Ok(_)) => Some(format!("landfall refuses: {why}")),
            (Ok(_), Err(why)) => Some(format!("apt refuses: {why}")),
            (Err(_), Err(_)) => None,
        };
        differ.extend(difference.map(|difference| format!("{machine}: {requested}: {difference}")));
    }
    let all = chosen_by_apt.len();
    let bad = differ.len();
    assert!(
        differ.is_empty(),
        "{bad} of {all} differ:\n{}",
        differ.join("\n")
    );
}
