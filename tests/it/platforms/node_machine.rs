//! The script of `render node` on a whole system with its own apt or dnf: it runs below a copy of
//! this machine's root, an overlay in a mount namespace, with everything from `landfall serve`.

use super::node::locked_files;
use crate::support::apt::{AptUpstream, deb};
use crate::support::peers::is_root;
use crate::support::yum::YumUpstream;
use crate::support::{Place, landfall_serve, need, run, skip, test_name};
use std::process::Command;

const HOSTS: [&str; 3] = ["dl.k8s.io", "github.com", "raw.githubusercontent.com"];

/// Prepares the machine in the folder `$1`, and runs the script, which is standard input, twice.
/// The proxy of the environment does not exist. Prints the content of the files `$2...` at the end.
const ON_MACHINE: &str = r#"
set -e
mount -t tmpfs machine "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay machine -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
root=$1/root
shift
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
mount -t tmpfs run "$root/run"
mount -t tmpfs tmp "$root/tmp"
rm -f "$root"/etc/apt/sources.list "$root"/etc/apt/sources.list.d/* "$root/etc/resolv.conf"
echo 'nameserver 172.20.0.2' >"$root/etc/resolv.conf"
for program in conntrack iptables ip; do
    [ -e "$root/usr/sbin/$program" ] || ln -s /bin/true "$root/usr/sbin/$program"
done
cat >"$root/root/install.sh"
for run in first second; do
    echo "== $run"
    chroot "$root" env -i HOME=/root LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin \
        http_proxy=http://127.0.0.1:1 sh /root/install.sh --replace
done
cd "$root"
cat "$@"
"#;

/// Whether this machine can be copied by an overlay; otherwise the test is skipped.
fn can_copy(place: &Place) -> bool {
    if !need(&["unshare", "chroot", "systemctl", "curl", "tar", "gzip"]) {
        return false;
    }
    let mut probe = Command::new("unshare");
    probe.args(["--mount", "sh", "-c"]).arg(
        "mount -t tmpfs machine \"$1\" && mkdir \"$1/upper\" \"$1/work\" \"$1/root\" && \
         mount -t overlay machine -o \"lowerdir=/,upperdir=$1/upper,workdir=$1/work\" \"$1/root\"",
    );
    std::fs::create_dir_all(place.path("machine")).unwrap();
    let ran = is_root().then(|| probe.arg("-").arg(place.path("machine")).output().unwrap());
    if !ran.is_some_and(|ran| ran.status.success()) {
        skip(
            &test_name(),
            "this machine cannot mount an overlay of its root",
        );
        return false;
    }
    true
}

/// Adds the files of a node to the manifest, serves everything that it locks, and returns the
/// output of two runs of the script with the content of `files`.
fn installed(place: &Place, upstream: &str, files: &[&str]) -> String {
    let mut manifest = place.read("m.yaml") + "files:\n";
    for (url, bytes) in locked_files(place) {
        let path = url.replacen("https:/", "up", 1);
        place.write(&path, bytes);
        manifest += &format!("- {{url: \"{url}\"}}\n");
    }
    place.write("m.yaml", manifest);
    let mirrors = HOSTS.map(|host| format!("  {host}: {{mirror: \"{upstream}/{host}\"}}\n"));
    let head = "apiVersion: landfall/v1\nkind: Site\n";
    place.write("up.yaml", format!("{head}upstreams:\n{}", mirrors.concat()));
    place.ok(&["lock", "-f", "m.yaml", "--site", "up.yaml"]);
    place.ok(&["pull", "--site", "up.yaml"]);
    place.ok(&["pack", "-o", "b"]);
    let server = landfall_serve(place, &["b"]);
    place.write(
        "site.yaml",
        format!("{head}files: http://{}\n", server.address),
    );
    place.ok(&[
        "render",
        "node",
        "--site",
        "site.yaml",
        "--bundle",
        "b",
        "-o",
        "out",
    ]);

    let mut machine = place.clean("unshare");
    machine
        .args([
            "--mount",
            "--propagation",
            "private",
            "bash",
            "-c",
            ON_MACHINE,
            "-",
        ])
        .arg(place.path("machine"))
        .args(files)
        .stdin(std::fs::File::open(place.path("out/install.sh")).unwrap());
    let output = String::from_utf8(run(&mut machine)).unwrap();
    println!("{output}");
    output
}

/// Checks the output of two runs: the first installs, the second has nothing to do.
fn assert_installed(output: &str, package: &str, content: &str) {
    let (first, second) = output.split_once("== second\n").unwrap();
    for line in [
        &format!("packages done: installed {package}"),
        "files done: installed kubelet (/usr/local/bin/kubelet)",
        "services done: enabled kubelet",
    ] {
        assert!(first.contains(line), "{line}: {output}");
    }
    assert!(second.contains("packages ok: "), "{output}");
    assert!(second.contains("ready: 0 changes"), "{output}");
    assert!(second.ends_with(content), "{output}");
}

#[test]
fn the_script_installs_packages_with_apt() {
    let Some(up) = AptUpstream::new() else { return };
    let place = &up.place;
    if !can_copy(place) {
        return;
    }
    up.build(
        "pool/s",
        &[
            deb(
                "landfall-conntrack",
                "1.4",
                "Depends: landfall-netlink (>= 1)\n",
            ),
            deb("landfall-netlink", "1.1", ""),
        ],
    );
    up.suite("s", "");
    up.wants("s", "landfall-conntrack", ", base: none");
    let status = "var/lib/dpkg/info/landfall-netlink.list";
    let output = installed(place, &up.server.url(), &[status]);
    assert_installed(&output, "landfall-conntrack", "/.\n");
}

#[test]
fn the_script_installs_packages_with_dnf() {
    let Some(up) = YumUpstream::new() else { return };
    let place = &up.place;
    if !can_copy(place) {
        return;
    }
    up.build(&[
        (
            "landfall-conntrack",
            "1.4",
            "Requires: landfall-netlink >= 1\n",
            &["/usr/share/landfall-conntrack/file"],
        ),
        (
            "landfall-netlink",
            "1.1",
            "",
            &["/usr/share/landfall-netlink/file"],
        ),
    ]);
    up.index("gz");
    up.wants("install: [landfall-conntrack], base: none");
    let file = "usr/share/landfall-netlink/file";
    let output = installed(place, &up.server.url(), &[file]);
    assert_installed(&output, "landfall-conntrack", "landfall-netlink 1.1\n");
}

/// Without the stream, dnf on the machine would install version 1.1, which the lock lacks.
#[test]
fn the_script_enables_the_module_streams_of_the_lock() {
    let Some(up) = YumUpstream::new() else { return };
    let place = &up.place;
    if !need(&["modifyrepo_c"]) || !can_copy(place) {
        return;
    }
    let netlink = |version| {
        let files: &[&str] = &["/usr/share/landfall-netlink/file"];
        ("landfall-netlink", version, "", files)
    };
    up.build(&[
        (
            "landfall-conntrack",
            "1.4",
            "Requires: landfall-netlink >= 1\n",
            &["/usr/share/landfall-conntrack/file"],
        ),
        netlink("1.1"),
        netlink("2"),
    ]);
    up.index("gz");
    let stream = "---\ndocument: modulemd\nversion: 2\ndata:\n  name: net\n  stream: \"2\"\n  \
        version: 1\n  context: aaaa\n  arch: x86_64\n  summary: s\n  description: d\n  \
        license: {module: [MIT]}\n  artifacts: {rpms: [landfall-netlink-0:2-1.noarch]}\n...\n";
    place.write("up/modules.yaml", stream);
    let mut modify = Command::new("modifyrepo_c");
    modify.current_dir(place.path("up/r"));
    run(modify.args(["--mdtype=modules", "../modules.yaml", "repodata"]));
    up.sign();
    up.wants("modules: ['net:2'], install: [landfall-conntrack], base: none");
    let file = "usr/share/landfall-netlink/file";
    let output = installed(place, &up.server.url(), &[file]);
    assert_installed(&output, "landfall-conntrack", "landfall-netlink 2\n");
}
