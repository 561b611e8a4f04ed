//! What `landfall doctor` says about a config.toml, beside the containerd that reads it.

use super::far_side::FarSide;
use crate::support::netns::{containerd, is_second};
use crate::support::{Place, need, run};
use serde_json::Value;
use std::process::Command;

const OLD: &str = "io.containerd.grpc.v1.cri";
const NEW: &str = "io.containerd.cri.v1.images";
const FOLDER: &str = "config_path = \"/etc/containerd/certs.d\"\n";
const PAIR: &str = "config_path = \"/etc/containerd/certs.d:/etc/docker/certs.d\"\n";

/// A file of this version with a table `registry`.
fn file(version: u32, plugin: &str, registry: &str) -> String {
    format!("\nversion = {version}\n[plugins.\"{plugin}\".registry]\n{registry}")
}

/// The verdicts of doctor on a config.toml with this text, as (check, verdict).
fn verdicts(place: &Place, text: &str) -> Vec<(String, String)> {
    place.write("config.toml", text);
    let mut doctor = place.command();
    doctor.args(["doctor", "config.toml", "--output", "json"]);
    let output = doctor.output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = report["targets"][0]["checks"].as_array().unwrap();
    let text_of = |check: &Value, key: &str| check[key].as_str().unwrap().to_owned();
    let verdicts: Vec<(String, String)> = checks
        .iter()
        .map(|check| (text_of(check, "check"), text_of(check, "verdict")))
        .collect();
    let has_failed = verdicts.iter().any(|(_, verdict)| verdict == "no");
    let code = if has_failed { 4 } else { 0 };
    assert_eq!(output.status.code(), Some(code), "{text}\n{report:#}");
    verdicts
}

#[test]
fn doctor_judges_a_configuration_as_containerd_reads_it() {
    if !need(&["containerd"]) {
        return;
    }
    let program = containerd();
    let place = Place::new();
    let is_second = is_second(&program);
    let default = run(Command::new(&program).args(["config", "default"]));
    let has_version_4 = String::from_utf8_lossy(&default).contains("version = 4\n");
    place.write("imported.toml", file(2, OLD, FOLDER));
    let mirrors = "[plugins.\"io.containerd.grpc.v1.cri\".registry.mirrors.\"docker.io\"]\n\
                   endpoint = [\"http://m:5000\"]\n";
    let mut texts = vec![
        // without a version, containerd 1.x reads the file as version 1
        file(2, OLD, FOLDER).replace("version = 2\n", ""),
        file(2, OLD, FOLDER),
        file(2, NEW, FOLDER),
        file(2, NEW, FOLDER) + &file(2, OLD, PAIR).replace("version = 2\n", ""),
        "version = 2\n".to_owned(),
        "version = 2\nimports = [\"imported.toml\"]\n".to_owned(),
        format!("version = 2\n{mirrors}"),
    ];
    let versions: &[u32] = match (is_second, has_version_4) {
        (false, _) => &[],
        (true, false) => &[3],
        (true, true) => &[3, 4],
    };
    for version in versions {
        texts.extend([OLD, NEW].map(|plugin| file(*version, plugin, FOLDER)));
    }
    for text in texts {
        let path = place.write("config.toml", &text);
        let mut dump = Command::new(&program);
        dump.arg("--config").arg(&path).args(["config", "dump"]);
        let dumped = String::from_utf8(run(&mut dump)).unwrap();
        let mut lines = dumped.lines().map(|line| line.trim().replace('\'', "\""));
        let read = if is_second { NEW } else { OLD };
        // tables that containerd ignores are in the dump too
        let header = format!("[plugins.\"{read}\".registry]");
        let found = lines.find(|line| *line == header).is_some();
        let own = lines.take_while(|line| !line.starts_with('['));
        let is_read = found && own.into_iter().any(|line| line == FOLDER.trim());
        let verdicts = verdicts(&place, &text);
        let is_good = verdicts.contains(&("config_path".to_owned(), "ok".to_owned()))
            && (is_second || verdicts.iter().all(|(check, _)| check != "plugin"));
        // 2.3 and newer also read some tables that older ones ignore
        let is_objected = verdicts.contains(&("plugin".to_owned(), "no".to_owned()));
        let is_newer = has_version_4 && is_read && is_objected;
        assert!(
            is_good == is_read || is_newer,
            "{text}\n{verdicts:#?}\n{dumped}"
        );
    }
}

/// A pull by the original name succeeds only with a hosts.toml, because the network has no other
/// registry.
#[test]
fn containerd_reads_hosts_toml_if_doctor_has_no_objection() {
    let Some(side) = FarSide::new(&[]) else {
        return;
    };
    let FarSide { network, place, .. } = &side;
    let _registry = network.docker_registry(place);
    side.site("registry: {address: \"172.20.0.2:5000\", plainHTTP: true}\n");
    side.push();
    side.render(&["containerd", "-o", "node"]);
    let (version, plugin, name) = match is_second(&containerd()) {
        false => (2, OLD, "config-1.x.toml"),
        true => (3, NEW, "config-2.x.toml"),
    };
    let below =
        |table: &str, line: &str| format!("[plugins.\"{plugin}\".registry.{table}]\n{line}\n");
    let mirrors = below(
        "mirrors.\"quay.io\"",
        "endpoint = [\"http://172.20.0.9:1\"]",
    );
    let account = below(
        "configs.\"m:5000\".auth",
        "username = \"u\"\npassword = \"p\"",
    );
    let tls = below("configs.\"m:5000\".tls", "insecure_skip_verify = true");
    let mut forms = vec![
        FOLDER.to_owned(),
        String::new(),
        PAIR.to_owned(),
        // as KubeOne and the operating system manager of KKP write it
        format!("{FOLDER}{account}"),
        // containerd 2 then pulls without the transfer service
        format!("{PAIR}{account}"),
        format!("{FOLDER}{mirrors}"),
    ];
    // containerd 2 ignores only this table
    if version == 2 {
        forms.push(format!("{FOLDER}{tls}"));
    }
    for registry in forms {
        let text = file(version, plugin, &registry);
        let verdicts = verdicts(place, &text);
        place.write(&format!("node/{name}"), &text);
        let node = network.containerd_with(place, &place.path("node"));
        let answer = node.pull_for_kubernetes(place, "calico/node:v3.8.2");
        let is_read = answer.contains("grpc-status: 0");
        let is_good = verdicts.iter().all(|(_, verdict)| verdict != "no");
        assert_eq!(is_good, is_read, "{text}\n{verdicts:#?}\n{answer}");
    }
}
