//! The machine's own apt and its own suites, whose names are read from its sources: packages carried into a network
//! without a way out and installed there, and landfall's choice of packages beside apt's.

use crate::support::apt::{Apt, AptUpstream, PROGRAMS, deb};
use crate::support::netns::{Network, REGISTRY};
use crate::support::{Place, need, rounds, run, skip, test_name};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
const STATUS: &str = "/var/lib/dpkg/status";
/// Small packages, of which a dozen is installed: those that the machine lacks and its suites have.
const SMALL: [&str; 24] = [
    "tree",
    "pv",
    "hello",
    "sl",
    "figlet",
    "toilet",
    "ncal",
    "bc",
    "dc",
    "units",
    "rig",
    "sysvbanner",
    "boxes",
    "cpulimit",
    "datamash",
    "dos2unix",
    "entr",
    "fdupes",
    "hexedit",
    "jo",
    "par",
    "pwgen",
    "symlinks",
    "timelimit",
];

/// A suite of the machine: URL, name, components, and the file of its packages.
struct Suite {
    url: String,
    name: String,
    component: String,
    file: String,
}

/// The suites of the machine that are at the host of the first one; none where it knows no packages.
fn suites() -> Vec<Suite> {
    let mut targets = Command::new("apt-get");
    targets.args([
        "indextargets",
        "--format",
        "$(CREATED_BY) $(REPO_URI) $(RELEASE) $(COMPONENT) $(FILENAME)",
    ]);
    let Ok(output) = targets.output() else { return Vec::new() };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = text.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let all: Vec<Vec<&str>> = lines.filter(|words| words.len() == 5 && words[0] == "Packages").collect();
    let host = |words: &Vec<&str>| words[1].split('/').nth(2).map(str::to_owned);
    let first = all.first().and_then(host);
    let own = all.iter().filter(|words| host(words) == first && words[1].starts_with("http"));
    own.map(|words| {
        let [url, name, component, file] = [words[1], words[2], words[3], words[4]].map(str::to_owned);
        Suite { url, name, component, file }
    })
    .collect()
}

/// The suites, where the machine has what these tests need.
fn machine() -> Option<Vec<Suite>> {
    if !need(&PROGRAMS) {
        return None;
    }
    let suites = suites();
    let is_known = Path::new(KEYRING).exists() && Path::new(STATUS).exists();
    if suites.is_empty() || !is_known || !suites.iter().all(|suite| Path::new(&suite.file).exists()) {
        skip(&test_name(), "the machine's apt has no indexes of a suite that the archive's keyring signs");
        return None;
    }
    Some(suites)
}

fn text_of(suite: &Suite) -> String {
    let bytes = run(Command::new("/usr/lib/apt/apt-helper").args(["cat-file", &suite.file]));
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_machine_installs_from_the_bundle_alone_under_the_stock_keyring() {
    let Some(suites) = machine() else { return };
    let status = fs::read_to_string(STATUS).unwrap();
    let texts: Vec<String> = suites.iter().map(text_of).collect();
    let is_offered = |name: &str| texts.iter().any(|text| text.contains(&format!("\nPackage: {name}\n")));
    let is_there = |name: &str| status.contains(&format!("Package: {name}\n"));
    let wanted: Vec<&str> =
        SMALL.into_iter().filter(|name| is_offered(name) && !is_there(name)).take(12).collect();
    if wanted.len() < 4 {
        return skip(&test_name(), "the machine has nearly all of the packages already");
    }
    let Some(network) = Network::new() else { return };
    let place = Place::new();
    let sources: Vec<String> = suites
        .iter()
        .map(|suite| {
            let Suite { url, name, component, .. } = suite;
            format!("{{url: '{url}', suite: {name}, components: [{component}], key: {KEYRING}}}")
        })
        .collect();
    let list = wanted.join(", ");
    place.write(
        "m.yaml",
        format!(
            "apiVersion: landfall/v1\nkind: Manifest\npackages:\n- apt:\n    name: machine\n    install: [{list}]\n    \
             base: {{status: {STATUS}}}\n    sources: [{}]\n",
            sources.join(", ")
        ),
    );
    // to the archive as apt itself goes there
    let proxied = |arguments: &[&str]| {
        let mut command = place.command();
        for name in ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "no_proxy", "NO_PROXY"] {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        command.args(arguments).args(["--progress", "none"]).output().unwrap()
    };
    let locked = proxied(&["lock", "-f", "m.yaml"]);
    let told = String::from_utf8_lossy(&[locked.stdout, locked.stderr].concat()).into_owned();
    if told.contains("was not reached") || told.contains("cannot connect") || told.contains("is not known") {
        return skip(&test_name(), "the machine's archive is not reached");
    }
    assert!(locked.status.success(), "{told}");
    assert!(proxied(&["pull"]).status.success());
    place.ok(&["pack", "-o", "b"]);
    place.ok(&["doctor", "packages", "--status", STATUS, "--bundle", "b"]);
    place.ok(&[
        "render",
        "apt",
        "--bundle",
        "b",
        "--set",
        &format!("url=http://{REGISTRY}/apt"),
        "--to",
        REGISTRY,
        "-o",
        "node",
    ]);
    let path = "node/etc/apt/landfall.sources.d/landfall.sources";
    let stock: String = place
        .read(path)
        .lines()
        .map(|line| {
            if line.starts_with("Signed-By:") {
                format!("Signed-By: {KEYRING}\n")
            } else {
                format!("{line}\n")
            }
        })
        .collect();
    place.write(path, stock);

    let mut serve = place.command();
    serve.args(["serve", "b", "--listen", REGISTRY]);
    let server = network.serve("registry", &serve, REGISTRY);
    // a copy of this machine that is gone with the shell: writes go to memory
    let script = format!(
        "set -e\nmount -t tmpfs none {root}\nmkdir {root}/upper {root}/work {root}/all\n\
         mount -t overlay overlay -o lowerdir=/,upperdir={root}/upper,workdir={root}/work {root}/all\n\
         mount -t proc proc {root}/all/proc\nmount --bind /dev {root}/all/dev\n\
         rm -rf {root}/all/var/lib/apt/lists\ncp -r {node}/. {root}/all/\n\
         printf '#!/bin/sh\\nexit 101\\n' > {root}/all/usr/sbin/policy-rc.d\nchmod 755 {root}/all/usr/sbin/policy-rc.d\n\
         exec chroot {root}/all sh -ec 'apt-get update; apt-get install --yes {names}; \
         dpkg-query -W -f \"installed:\\${{db:Status-Status}} \\${{Package}}\\n\" {names}'\n",
        root = place.path("root").display(),
        node = place.path("node").display(),
        names = wanted.join(" "),
    );
    fs::create_dir_all(place.path("root")).unwrap();
    let mut machine = Command::new("unshare");
    machine.args(["--mount", "--propagation", "private", "sh", "-c", &script]);
    machine
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("DEBIAN_FRONTEND", "noninteractive")
        .env("LC_ALL", "C");
    let output = network.on("node", &machine).output().unwrap();
    let told = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if told.contains("mount: ") {
        return skip(&test_name(), "this machine allows no overlay in a namespace");
    }
    assert!(output.status.success(), "{told}\n{}", server.log());
    assert_eq!(told.matches("installed:installed ").count(), wanted.len(), "{told}");
}

/// Packages of very different kinds: tools, libraries, servers, languages, desktops' parts, metapackages, virtual ones.
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

/// Of the indexes `texts`, the packages that something in `wanted` may need and those that are installed, in their order.
fn reachable(texts: &[String], wanted: &[&str], status: &str) -> Vec<String> {
    let field = |paragraph: &str, name: &str| -> String {
        let lines = paragraph.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        lines.collect::<Vec<_>>().join(", ")
    };
    let names = |text: &str| -> Vec<String> {
        let all = text
            .split([',', '|'])
            .filter_map(|one| one.trim().split([' ', ':', '(']).next().map(str::to_owned));
        all.filter(|name| !name.is_empty()).collect()
    };
    let mut own: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut provided: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for paragraph in
        texts.iter().flat_map(|text| text.split("\n\n")).filter(|text| text.contains("Package: "))
    {
        let name = field(paragraph, "Package");
        for other in names(&field(paragraph, "Provides")) {
            provided.entry(other).or_default().push(name.clone());
        }
        own.entry(name).or_default().push(paragraph);
    }
    let mut next: Vec<String> = wanted.iter().map(|name| (*name).to_owned()).collect();
    let mut known: BTreeSet<String> = next.iter().cloned().collect();
    while let Some(name) = next.pop() {
        let mut found = Vec::new();
        match own.get(&name) {
            None => found.extend(provided.get(&name).into_iter().flatten().cloned()),
            Some(all) => all.iter().for_each(|paragraph| {
                found.extend(names(&field(paragraph, "Pre-Depends")));
                found.extend(names(&field(paragraph, "Depends")));
            }),
        }
        next.extend(found.into_iter().filter(|name| known.insert(name.clone())));
    }
    known.extend(status.lines().filter_map(|line| line.strip_prefix("Package: ")).map(str::to_owned));
    let keeps = |paragraph: &&str| known.contains(&field(paragraph, "Package"));
    let kept = texts
        .iter()
        .map(|text| text.split("\n\n").filter(keeps).map(|one| format!("{}\n\n", one.trim())).collect());
    kept.collect()
}

#[test]
fn the_choice_is_apts_for_packages_of_all_kinds_on_an_empty_machine_and_on_this_one() {
    let Some(suites) = machine() else { return };
    let Some(up) = AptUpstream::new() else { return };
    let place = &up.place;
    let texts: Vec<String> = suites.iter().map(text_of).collect();
    let status = fs::read_to_string(STATUS).unwrap();
    let is_offered = |name: &str| texts.iter().any(|text| text.contains(&format!("Package: {name}\n")));
    let wanted: Vec<&str> = KINDS.into_iter().filter(|name| is_offered(name)).collect();
    assert!(wanted.len() >= 60, "the suites have {} of the packages", wanted.len());
    // all of them with LANDFALL_TEST_ROUNDS=2: a minute of CPU
    let step = if rounds(1) > 1 { 1 } else { 6 };
    let wanted: Vec<&str> = wanted.into_iter().step_by(step).collect();
    up.build("none", &[deb("none", "1", "")]);
    let (mut sources, mut entries) = (String::new(), Vec::new());
    for (at, text) in reachable(&texts, &wanted, &status).iter().enumerate() {
        up.index(&format!("dists/s{at}/main/binary-amd64"), "Packages", text.as_bytes());
        up.release(
            &format!("dists/s{at}"),
            &format!("Suite: s{at}\nComponents: main\nArchitectures: amd64\n"),
        );
        sources += &format!("deb [signed-by={}] {} s{at} main\n", place.path("key.asc").display(), up.url());
        entries.push(format!("{{url: '{}', suite: s{at}, components: [main], key: key.asc}}", up.url()));
    }
    for (machine, status, base) in
        [("empty", "", "none".to_owned()), ("this", &*status, format!("{{status: {STATUS}}}"))]
    {
        let mut manifest = "apiVersion: landfall/v1\nkind: Manifest\npackages:\n".to_owned();
        for (at, name) in wanted.iter().enumerate() {
            let all = entries.join(", ");
            manifest +=
                &format!("- apt: {{name: p{at}, base: {base}, install: [{name}], sources: [{all}]}}\n");
        }
        place.write("m.yaml", manifest);
        up.lock(0, &["--lock", machine]);
        let lock = place.read(machine);
        let sets: BTreeMap<&str, &str> =
            lock.split("\n- name: apt:").skip(1).filter_map(|set| set.split_once('\n')).collect();
        let apt = Apt::new(place, &format!("apt-{machine}"), &sources, status);
        run(&mut apt.get(place, &["update"]));
        let mut differ = Vec::new();
        for (at, name) in wanted.iter().enumerate() {
            let ours = crate::support::apt::locked(sets[format!("p{at}").as_str()]);
            let theirs = apt.simulate(place, false, &[name]).unwrap();
            if ours != theirs {
                let only = |a: &[String], b: &[String]| {
                    a.iter().filter(|one| !b.contains(one)).cloned().collect::<Vec<_>>()
                };
                differ.push(format!(
                    "{name}: apt alone {:?}, landfall alone {:?}",
                    only(&theirs, &ours),
                    only(&ours, &theirs)
                ));
            }
        }
        assert!(
            differ.is_empty(),
            "{} of {} on {machine}:\n{}",
            differ.len(),
            wanted.len(),
            differ.join("\n")
        );
    }
}
