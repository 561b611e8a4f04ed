//! Runs the sessions in README.md and the pages of `docs/`, and compares their output.
//!
//! Each fenced block marked `console` is run. Lines that begin with `$ ` are shell commands (`> `
//! continues a command), and the lines after a command are its stdout. `…` matches anything in a
//! line, and a line with only `…` matches any lines. The blocks of one document run in order in one
//! folder, which has the files of `examples/quickstart`. All blocks run in one network namespace:
//! the upstream registries are stand-ins, and the private registry is at 172.20.0.2:5000.

use crate::support::netns::Network;
use crate::support::{Images, Place, need, peers, run};
use std::path::{Path, PathBuf};
use std::process::Command;

/// One command of a session, with the output that the document shows.
#[derive(Debug, PartialEq)]
struct Step {
    line: usize,
    command: String,
    output: Vec<String>,
}

fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut inside = false;
    let mut fresh = true;
    for (number, line) in text.lines().enumerate() {
        match (inside, line.trim_end()) {
            (false, "```console") => (inside, fresh) = (true, true),
            (true, "```") => inside = false,
            (true, line) => {
                if let Some(command) = line.strip_prefix("$ ") {
                    steps.push(Step {
                        line: number + 1,
                        command: command.into(),
                        output: vec![],
                    });
                    fresh = false;
                } else {
                    let step = steps.last_mut().filter(|_| !fresh);
                    let step = step.unwrap_or_else(|| {
                        panic!("line {}: output before the first command", number + 1)
                    });
                    match line.strip_prefix("> ").filter(|_| step.output.is_empty()) {
                        Some(more) => step.command += &format!("\n{more}"),
                        None => step.output.push(line.into()),
                    }
                }
            }
            (false, _) => {}
        }
    }
    steps
}

/// Whether a line matches the pattern, in which `…` matches anything.
fn line_fits(pattern: &str, line: &str) -> bool {
    match pattern.split_once('…') {
        None => pattern == line,
        Some((head, tail)) => line.strip_prefix(head).is_some_and(|rest| {
            rest.char_indices()
                .map(|(at, _)| &rest[at..])
                .chain([""])
                .any(|rest| line_fits(tail, rest))
        }),
    }
}

fn fits(pattern: &[String], lines: &[&str]) -> bool {
    match pattern.split_first() {
        None => lines.is_empty(),
        Some((first, rest)) if first.trim() == "…" => {
            (0..=lines.len()).any(|skipped| fits(rest, &lines[skipped..]))
        }
        Some((first, rest)) => lines
            .split_first()
            .is_some_and(|(line, lines)| line_fits(first, line.trim_end()) && fits(rest, lines)),
    }
}

/// README.md and all pages of `docs/`.
fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![root.join("docs")];
    let mut documents = vec![root.join("README.md")];
    while let Some(folder) = folders.pop() {
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "md") {
                documents.push(path);
            }
        }
    }
    documents.sort();
    documents
}

/// Images that only some pages use, besides those of the example.
const FURTHER_IMAGES: [&str; 3] = [
    "quay.io/prometheus/node-exporter:v1.8.2",
    "quay.io/prometheus/node-exporter:v1.9.1",
    WINDOWS_IMAGE,
];

/// An image that is only for Windows.
const WINDOWS_IMAGE: &str = "quay.io/example/agent-windows:1.2.0";

/// Pushes a two-platform image to `registry` for each image of `manifest`, and the further ones.
fn stand_ins(place: &Place, network: &Network, registry: &str, manifest: &str) {
    let manifest: serde_json::Value = serde_yaml::from_str(manifest).unwrap();
    let mut images = Images::new(place.path("home/layout"));
    let base = images.layer(&[("etc/os-release", b"ID=stand-in\n")]);
    let listed = manifest["images"].as_array().unwrap().iter();
    let listed = listed.map(|name| name.as_str().unwrap());
    for (count, name) in listed.chain(FURTHER_IMAGES).enumerate() {
        let own = images.layer(&[("bin/app", name.as_bytes())]);
        let platforms: &[&str] = match name {
            WINDOWS_IMAGE => &["windows/amd64"],
            _ => &["linux/amd64", "linux/arm64"],
        };
        let children = platforms.iter();
        let children: Vec<_> = children
            .map(|platform| images.image(platform, &[base.clone(), own.clone()]))
            .collect();
        images.tag(&format!("item-{count}"), &images.index(&children));
        let mut push = peers::skopeo(place);
        push.args(["copy", "--quiet", "--all", "--dest-tls-verify=false"])
            .arg(format!("oci:{}:item-{count}", images.dir().display()))
            .arg(format!("docker://{registry}/{name}"));
        run(&mut network.on("registry", &push));
    }
}

#[test]
fn the_sessions_in_the_documentation_are_reproducible() {
    if !need(&[
        "docker-registry",
        "skopeo",
        "curl",
        "gzip",
        "bash",
        "ssh-keygen",
        "ssh-agent",
        "tar",
        "zstd",
    ]) {
        return;
    }
    let Some(network) = Network::new() else {
        return;
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let upstream = "127.0.0.1:5001";
    let upstream_place = Place::new();
    let config = peers::docker_registry_config(&upstream_place, upstream, "");
    let mut serve = upstream_place.clean("docker-registry");
    serve.arg("serve").arg(config);
    let _upstream = network.serve("registry", &serve, upstream);
    let manifest = std::fs::read_to_string(root.join("examples/quickstart/manifest.yaml")).unwrap();
    stand_ins(&upstream_place, &network, upstream, &manifest);
    for document in documents() {
        let steps = steps(&std::fs::read_to_string(&document).unwrap());
        if steps.is_empty() {
            assert_ne!(document, root.join("README.md"), "the README has a session");
            continue;
        }
        let place = Place::new();
        for entry in std::fs::read_dir(root.join("examples/quickstart"))
            .unwrap()
            .flatten()
        {
            std::fs::copy(entry.path(), place.path(entry.file_name())).unwrap();
        }
        let _private = network.docker_registry(&place);
        let mirrors: String = ["registry.k8s.io", "quay.io", "docker.io"]
            .iter()
            .map(|host| format!("  {host}: {{mirror: \"http://{upstream}/{host}\"}}\n"))
            .collect();
        let site = format!("apiVersion: landfall/v1\nkind: Site\nupstreams:\n{mirrors}");
        let site = place.write("home/site.yaml", site);

        let program = Path::new(env!("CARGO_BIN_EXE_landfall")).parent().unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        for step in steps {
            let mut shell: Command = place.clean("bash");
            // on the connected side, the site has the stand-ins as mirrors
            let connected = ["landfall lock", "landfall pull"]
                .iter()
                .any(|verb| step.command.starts_with(verb));
            let command = if connected {
                step.command
                    .replace("kit/site.yaml", &site.display().to_string())
            } else {
                step.command.clone()
            };
            shell.args(["-c", &command]).env("LANDFALL_SITE", &site);
            shell.env("PATH", format!("{}:{path}", program.display()));
            let ran = network.on("registry", &shell).output().unwrap();
            let out = String::from_utf8_lossy(&ran.stdout);
            let err = String::from_utf8_lossy(&ran.stderr);
            let place = format!("{}:{}: $ {}", document.display(), step.line, step.command);
            assert!(
                ran.status.success(),
                "{place}\n{}\n{out}\n{err}",
                ran.status
            );
            let lines: Vec<&str> = out.lines().collect();
            assert!(
                fits(&step.output, &lines),
                "{place}\n-- the document says\n{}\n-- it prints\n{out}",
                step.output.join("\n")
            );
        }
    }
}

#[test]
fn a_session_is_read_and_compared() {
    let text = "```console\n$ one \\\n> two\nout\n\n$ three\n```\nprose\n```sh\n$ not run\n```\n";
    let found = steps(text);
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(
        (found[0].line, found[0].command.as_str()),
        (2, "one \\\ntwo")
    );
    assert_eq!(found[0].output, ["out", ""]);
    let strings = |lines: &[&str]| {
        lines
            .iter()
            .map(|line| (*line).to_owned())
            .collect::<Vec<_>>()
    };
    for (pattern, lines, fit) in [
        (&["a"][..], &["a"][..], true),
        (&["a"], &["b"], false),
        (&["sha256:… (… MB)"], &["sha256:12 (3 MB)"], true),
        (&["sha256:… done"], &["sha256:12 failed"], false),
        (&["a", "…", "z"], &["a", "b", "c", "z"], true),
        (&["a", "…", "z"], &["a", "b"], false),
        (&["…"], &[], true),
        (&[], &["more"], false),
    ] {
        assert_eq!(fits(&strings(pattern), lines), fit, "{pattern:?} {lines:?}");
    }
}
