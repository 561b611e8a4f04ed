//! The commands of docs/how-to/nodes.md, run unchanged, and the values in its playbook.

use super::{files, place};
use crate::support::{need, run};
use std::os::unix::fs::PermissionsExt;

/// A replacement for ssh: the node's `/` is a folder, no service is restarted, and connections to
/// the node `bad` fail.
const SSH: &str = "#!/bin/sh
root=nodes/${1#root@}
case $root in *bad) exit 255;; esac
mkdir -p \"$root\"
exec sh -ec \"systemctl() { :; }; $(printf %s \"$2\" | sed \"s#-C /#-C $root#\")\"
";

#[test]
fn the_recipes_copy_every_file_with_its_mode() {
    if !need(&["tar", "base64", "find"]) {
        return;
    }
    let site = "registry: {address: r.test, credentials: {file: account}}\nfiles: http://files.test\nproxy: {http: \"http://p.test:1\"}\n";
    let place = place(site, &["quay.io/team/app:v1"]);
    let packages = include_str!("../../data/packages/machines.lock").replace("version: 1\n", "");
    place.write("landfall.lock", place.read("landfall.lock") + &packages);
    place.write("account", "u:hush\n");
    place.write("nodes.txt", "one\nbad\ntwo\n");
    let ssh = place.write("bin/ssh", SSH);
    std::fs::set_permissions(ssh, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_landfall"), place.path("bin/landfall")).unwrap();
    let page = include_str!("../../../docs/how-to/nodes.md");
    let mut printed = String::new();
    for script in page
        .split("```sh\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
    {
        let mut shell = place.clean("sh");
        let path = format!(
            "{}:{}",
            place.path("bin").display(),
            std::env::var("PATH").unwrap_or_default()
        );
        shell.args(["-ec", script]).env("PATH", path);
        printed += &String::from_utf8_lossy(&run(&mut shell));
    }
    assert!(
        printed.contains("bad failed") && !printed.contains("one failed"),
        "{printed}"
    );
    let made = files(&place.path("node/etc"));
    for file in [
        "quay.io/hosts.toml",
        "landfall.sources.d/landfall.sources",
        "apt.conf.d/99landfall",
    ] {
        assert!(
            made.keys().any(|path| path.ends_with(file)),
            "{file}: {made:?}"
        );
    }
    let user_data: serde_json::Value = serde_json::to_value(
        serde_yaml::from_str::<serde_yaml::Value>(&place.read("user-data")).unwrap(),
    )
    .unwrap();
    let written = user_data["write_files"].as_array().unwrap();
    assert_eq!(written.len(), made.len());
    for (path, text) in &made {
        let mode = |root: &str| {
            let path = place.path(root).join("etc").join(path);
            std::fs::metadata(path).unwrap().permissions().mode() & 0o777
        };
        for node in ["nodes/one", "nodes/two"] {
            assert_eq!(files(&place.path(node).join("etc"))[path], *text);
            assert_eq!(mode(node), mode("node"), "{}", path.display());
        }
        let there = format!("/etc/{}", path.display());
        let entry = written
            .iter()
            .find(|entry| entry["path"] == *there)
            .unwrap();
        assert_eq!(
            entry["permissions"],
            format!("{:04o}", mode("node")),
            "{there}"
        );
    }
}

#[test]
fn the_playbook_copies_the_rendered_files_and_keeps_modes() {
    let page = include_str!("../../../docs/how-to/nodes.md");
    let playbook = page
        .split("```yaml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next())
        .unwrap();
    let plays: serde_yaml::Value = serde_yaml::from_str(playbook).unwrap();
    let copy = &plays[0]["tasks"][0]["ansible.builtin.copy"];
    assert_eq!(
        (&copy["src"], &copy["dest"]),
        (&"node/etc/".into(), &"/etc/".into())
    );
    assert_eq!(copy["mode"], "preserve");
    // every notified handler exists
    assert_eq!(
        plays[0]["tasks"][0]["notify"],
        plays[0]["handlers"][0]["name"]
    );
}
