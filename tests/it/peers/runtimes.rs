//! Exported archives are loaded by the container runtimes, with the commands of
//! docs/how-to/load-images.md.

use crate::export_images::{NEEDS, Site};
use crate::support::netns::{Network, within};
use crate::support::process::Guard;
use crate::support::{Place, need, peers, run, skip, test_name};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

const TO: &str = "172.20.0.2:5000/pre";

/// The command in docs/how-to/load-images.md that begins with `beginning`.
fn documented(beginning: &str) -> String {
    let page = include_str!("../../../docs/how-to/load-images.md");
    let command = page
        .split('`')
        .find(|text| text.starts_with(beginning) && text.contains(".tar"));
    command
        .unwrap_or_else(|| panic!("docs/how-to/load-images.md has no '{beginning}'"))
        .to_owned()
}

/// Exports to the site's folder the two archives that the documented commands load. Returns their
/// image names, which are the same in both archives.
fn archives(site: &Site) -> BTreeSet<String> {
    let report = site.export(0, &["-o", "images.tar", "--to", TO]);
    let docker = [
        "-o",
        "docker.tar",
        "--format",
        "docker",
        "--platform",
        "linux/amd64",
        "--to",
        TO,
    ];
    let other = site.export(0, &docker);
    let names = |report: &Value| {
        let images = report["archive"]["images"].as_array().unwrap().clone();
        let names = images
            .iter()
            .flat_map(|image| image["names"].as_array().unwrap().clone());
        names
            .map(|name| name.as_str().unwrap().to_owned())
            .collect::<BTreeSet<_>>()
    };
    assert_eq!(names(&report), names(&other));
    names(&report)
}

/// A folder whose path is short enough for sockets.
pub(super) fn short() -> tempfile::TempDir {
    tempfile::Builder::new()
        .prefix("landfall-")
        .tempdir()
        .unwrap()
}

fn shell(place: &Place, script: &str) -> Command {
    let mut shell = place.clean("sh");
    shell.args(["-ec", script]);
    shell
}

/// Whether this machine can unpack the images, which are for amd64. If not, the test counts as
/// skipped.
fn is_amd64() -> bool {
    let yes = cfg!(target_arch = "x86_64");
    if !yes {
        skip(&test_name(), "the images are for amd64");
    }
    yes
}

fn lines(output: &[u8]) -> BTreeSet<String> {
    String::from_utf8_lossy(output)
        .lines()
        .map(str::to_owned)
        .collect()
}

#[test]
fn containerd_imports_every_name_of_both_formats() {
    if !need(&NEEDS) || !need(&["containerd", "ctr"]) || !is_amd64() {
        return;
    }
    let Some(network) = Network::new() else {
        return;
    };
    let site = Site::new();
    let names = archives(&site);
    let node = network.containerd(&site.place);
    let documented = documented("ctr ");
    let page = include_str!("../../../docs/how-to/load-images.md");
    let (_, pin) = page.split_once("```sh\n").unwrap();
    let (pin, _) = pin.split_once("```").unwrap();
    for (number, archive, option) in [
        (1, "images.tar", ""),
        (2, "images.tar", "--all-platforms"),
        (3, "docker.tar", ""),
    ] {
        let space = format!("k{number}");
        let import = documented
            .replace("k8s.io", &space)
            .replace("images.tar", archive);
        run(&mut node.shell(&site.place, &format!("{import} {option}")));
        let there = run(&mut node.shell(&site.place, &format!("ctr -n {space} images list -q")));
        assert_eq!(lines(&there), names, "{archive} {option}");
        run(&mut node.shell(&site.place, &pin.replace("k8s.io", &space)));
        let pinned = r#"images list -q 'labels."io.cri-containerd.pinned"==pinned'"#;
        let pinned = run(&mut node.shell(&site.place, &format!("ctr -n {space} {pinned}")));
        assert_eq!(lines(&pinned), names, "{archive} {option}");
        let check = run(&mut node.shell(&site.place, &format!("ctr -n {space} images check")));
        let check = lines(&check);
        assert_eq!(
            check
                .iter()
                .filter(|line| line.contains("complete"))
                .count(),
            names.len(),
            "{check:?}"
        );
        for name in ["app", "plain"] {
            // containerd uses the path as the name of the snapshot
            let mount = format!(
                "mkdir {name}-{space}; ctr -n {space} images mount {TO}/team/{name}:v1 {name}-{space} >&2; \
                 cat {name}-{space}/bin/app; umount {name}-{space}"
            );
            let content = run(&mut node.shell(&site.place, &mount));
            assert_eq!(
                String::from_utf8_lossy(&content),
                format!("{name} for linux/amd64"),
                "{archive}"
            );
        }
    }
}

#[test]
fn podman_loads_a_docker_archive() {
    if !need(&NEEDS) || !need(&["podman"]) || !is_amd64() {
        return;
    }
    if !peers::is_root() {
        return skip(&test_name(), "podman is tested only as root");
    }
    let site = Site::new();
    let tags: BTreeSet<String> = archives(&site)
        .into_iter()
        .filter(|name| !name.contains('@'))
        .collect();
    let dir = short();
    let at = dir.path().display();
    let conf = site.place.write(
        "storage.conf",
        format!("[storage]\ndriver = \"vfs\"\ngraphroot = \"{at}/root\"\nrunroot = \"{at}/run\"\n"),
    );
    let podman =
        |script: &str| run(shell(&site.place, script).env("CONTAINERS_STORAGE_CONF", &conf));
    podman(&documented("podman "));
    assert_eq!(
        lines(&podman("podman images --format '{{.Repository}}:{{.Tag}}'")),
        tags
    );
    let content = podman(&format!(
        "cat $(podman image mount {TO}/team/app:v1)/bin/app"
    ));
    assert_eq!(String::from_utf8_lossy(&content), "app for linux/amd64");
}

/// dockerd with its data in `dir`, and these flags.
pub(super) fn dockerd(place: &Place, dir: &Path, flags: &str) -> Command {
    let at = dir.display();
    let mut command = shell(
        place,
        &format!(
            "exec dockerd --data-root {at}/data --exec-root {at}/exec --pidfile {at}/pid --host unix://{at}/sock \
             --storage-driver vfs --bridge none --iptables=false --ip6tables=false --ip-forward=false --ip-masq=false {flags}"
        ),
    );
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:/usr/sbin:/sbin"));
    command
}

/// Starts dockerd, and waits until it answers.
pub(super) fn start_dockerd(place: &Place, dir: &Path, command: Command) -> Guard {
    let mut guard = Guard::start(command);
    guard.wait_until("a docker that answers", || {
        let mut version = docker(place, dir, "docker version");
        version.stdout(Stdio::null()).stderr(Stdio::null());
        version.status().is_ok_and(|status| status.success())
    });
    guard
}

/// The command that runs `script`. In the script, `docker` uses the dockerd of `dir`.
pub(super) fn docker(place: &Place, dir: &Path, script: &str) -> Command {
    let mut command = shell(place, script);
    command.env("DOCKER_HOST", format!("unix://{}/sock", dir.display()));
    command
}

#[test]
fn docker_loads_a_docker_archive() {
    if !need(&NEEDS) || !need(&["dockerd", "docker", "containerd", "unshare", "tar"]) || !is_amd64()
    {
        return;
    }
    let mut unshare = Command::new("unshare");
    if !unshare
        .args(["--net", "true"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
    {
        return skip(&test_name(), "this machine allows no network namespaces");
    }
    let site = Site::new();
    let tags: BTreeSet<String> = archives(&site)
        .into_iter()
        .filter(|name| !name.contains('@'))
        .collect();
    let dir = short();
    // a separate network namespace, whose only interface is a loopback that is down
    let daemon = dockerd(&site.place, dir.path(), "");
    let mut unshare = Command::new("unshare");
    unshare.arg("--net");
    let alone = within(unshare, &daemon);
    let _daemon = start_dockerd(&site.place, dir.path(), alone);
    let docker = |script: &str| run(&mut docker(&site.place, dir.path(), script));
    docker(&documented("docker "));
    assert_eq!(
        lines(&docker("docker images --format '{{.Repository}}:{{.Tag}}'")),
        tags
    );
    let content = docker(&format!(
        "docker create --name landfall {TO}/team/app:v1 >&2; docker cp landfall:/bin/app - | tar -xO"
    ));
    assert_eq!(String::from_utf8_lossy(&content), "app for linux/amd64");
}

#[test]
fn skopeo_reads_both_formats() {
    if !need(&NEEDS) || !need(&["skopeo"]) {
        return;
    }
    let site = Site::new();
    archives(&site);
    let policy = site.place.write(
        "home/policy.json",
        r#"{"default":[{"type":"insecureAcceptAnything"}]}"#,
    );
    let skopeo = |command: &str, name: &str, dir: &str| {
        let command = command.replace("skopeo", &format!("skopeo --policy {}", policy.display()));
        run(&mut shell(
            &site.place,
            &command.replace("NAME", name).replace("DIR", dir),
        ));
        let index: Value =
            serde_json::from_slice(&site.place.read_bytes(&format!("{dir}/index.json"))).unwrap();
        index["manifests"][0]["digest"].as_str().unwrap().to_owned()
    };
    let tool = site.tool["digest"].as_str().unwrap();
    let pinned = format!("{TO}/team/tool@{tool}");
    assert_eq!(
        skopeo(&documented("skopeo copy --all"), &pinned, "oci"),
        tool,
        "every platform, byte for byte"
    );
    skopeo(
        &documented("skopeo copy docker-archive"),
        &format!("{TO}/team/app:v1"),
        "docker",
    );
    let inspect = format!(
        "skopeo inspect --format '{{{{.Architecture}}}}' docker-archive:docker.tar:{TO}/team/app:v1"
    );
    assert_eq!(
        run(&mut shell(&site.place, &inspect)).trim_ascii(),
        b"amd64"
    );
}
