//! Packages are copied into a closed network and installed there by the machine's own apt.

use super::{KEYRING, Offered, STATUS, Suite, suites};
use crate::support::netns::{Network, REGISTRY};
use crate::support::{Place, skip, test_name};
use std::fs;
use std::process::Command;

/// Small packages. The test installs the first twelve that the suites have and the machine lacks.
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

#[test]
fn a_machine_installs_from_the_bundle_with_the_stock_keyring() {
    let Some(suites) = suites() else { return };
    let status = fs::read_to_string(STATUS).unwrap();
    let offered = Offered::by(suites).own;
    let is_there = |name: &str| status.contains(&format!("Package: {name}\n"));
    let wanted: Vec<&str> = SMALL
        .into_iter()
        .filter(|name| offered.contains_key(name) && !is_there(name))
        .take(12)
        .collect();
    if wanted.len() < 4 {
        return skip(
            &test_name(),
            "the machine has nearly all of the packages already",
        );
    }
    let Some(network) = Network::new() else {
        return;
    };
    let place = Place::new();
    let sources: Vec<String> = suites
        .iter()
        .map(|suite| {
            let Suite {
                url,
                name,
                component,
                ..
            } = suite;
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
    // the archive is reached through the proxy of the environment, if there is one
    let proxied = |arguments: &[&str]| {
        let mut command = place.command();
        for name in [
            "http_proxy",
            "https_proxy",
            "HTTP_PROXY",
            "HTTPS_PROXY",
            "no_proxy",
            "NO_PROXY",
        ] {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        command
            .args(arguments)
            .args(["--progress", "none"])
            .output()
            .unwrap()
    };
    let locked = proxied(&["lock", "-f", "m.yaml"]);
    let printed = String::from_utf8_lossy(&[locked.stdout, locked.stderr].concat()).into_owned();
    if printed.contains("was not reached")
        || printed.contains("cannot connect")
        || printed.contains("is not known")
    {
        return skip(&test_name(), "the archive of the machine cannot be reached");
    }
    assert!(locked.status.success(), "{printed}");
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
    // the script makes a copy-on-write view of this machine. Its changes are in memory, and are
    // discarded when the shell ends. The script turns off the index of manual pages, questions, the
    // compression of lists, and the start of services
    let script = format!(
        "set -e\nmount -t tmpfs none {root}\nmkdir {root}/upper {root}/work {root}/all\n\
         mount -t overlay overlay -o lowerdir=/,upperdir={root}/upper,workdir={root}/work {root}/all\n\
         mount -t proc proc {root}/all/proc\nmount --bind /dev {root}/all/dev\n\
         rm -rf {root}/all/var/lib/apt/lists\ncp -r {node}/. {root}/all/\n\
         rm -f {root}/all/var/lib/man-db/auto-update {root}/all/etc/apt/apt.conf.d/70debconf\n\
         echo 'Acquire::GzipIndexes \"false\";' > {root}/all/etc/apt/apt.conf.d/zz-plain\n\
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
    let printed = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if printed.contains("mount: ") {
        return skip(
            &test_name(),
            "this machine allows no overlay in a namespace",
        );
    }
    assert!(output.status.success(), "{printed}\n{}", server.log());
    assert_eq!(
        printed.matches("installed:installed ").count(),
        wanted.len(),
        "{printed}"
    );
}
