//! Machines configured by KKP and TKG with rendered files: their scripts, authorities and proxies,
//! up to a pull by containerd.

use super::far_side::{CREDENTIALS, FarSide};
use super::proxy::Outside;
use crate::platforms::{environment, lock};
use crate::support::netns::REGISTRY;
use crate::support::squid::PROXY;
use crate::support::{Place, need, run};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_yaml::Value;
use std::path::Path;

fn yaml(place: &Place, file: &str) -> Value {
    serde_yaml::from_str(&place.read(file)).unwrap()
}

#[test]
fn the_script_of_a_profile_downloads_binaries_from_the_site() {
    let Some(side) = FarSide::new(&["bash", "sha256sum"]) else {
        return;
    };
    let FarSide {
        network,
        place: far,
        world,
    } = &side;
    let mut serve = far.command();
    serve.args([
        "serve",
        "bundle.tar.zst",
        "--listen",
        REGISTRY,
        "--site",
        "site.yaml",
    ]);
    let _server = network.serve("registry", &serve, REGISTRY);
    side.site(
        "registry: {address: \"172.20.0.2:5000\", plainHTTP: true}\nfiles: http://172.20.0.2:5000/files\n\
         consumers: [kubermatic]\n",
    );
    far.write("osp.yaml", include_str!("../../data/osp-example.yaml"));
    side.render(&["kubermatic", "--osp", "osp.yaml", "-o", "kkp"]);
    let profile = yaml(far, "kkp/osp-example-landfall.yaml");
    let script = profile["spec"]["provisioningConfig"]["templates"]["fetchBinaries"]
        .as_str()
        .unwrap();
    // replace the template expressions as operating-system-manager does
    let script = script
        .replace("{{- /* where binaries go */}}", "")
        .replace("{{ .KubeVersion }}", "v1.33.4");
    std::fs::create_dir(far.path("bin")).unwrap();
    let mut bash = far.clean("bash");
    bash.args(["-euo", "pipefail", "-c", &script])
        .env("BIN_DIR", far.path("bin"));
    let printed = run(&mut network.on("node", &bash));
    assert!(String::from_utf8_lossy(&printed).contains("kubelet: OK"));
    let arch = if cfg!(target_arch = "x86_64") {
        "amd64"
    } else {
        "arm64"
    };
    assert_eq!(
        far.read_bytes("bin/kubelet"),
        [&world.kubelet[..], arch.as_bytes()].concat()
    );
}

/// Writes the files that operating-system-manager creates on a machine, from the settings `node` of
/// a datacenter and the Secret `credentials`: the configuration of containerd 1.x and 2.x, and the
/// hosts.toml files.
fn machine_of_kkp(far: &Place, node: &Value, credentials: &Value) {
    for (host, of_host) in node["containerdRegistryMirrors"]["registries"]
        .as_mapping()
        .unwrap()
    {
        let host = host.as_str().unwrap();
        let server = if host == "docker.io" {
            "https://registry-1.docker.io"
        } else {
            host
        };
        let mut text = format!("server = \"{server}\"\n");
        for mirror in of_host["mirrors"].as_sequence().unwrap() {
            let (url, more) = mirror
                .as_str()
                .unwrap()
                .split_once('?')
                .unwrap_or((mirror.as_str().unwrap(), ""));
            text += &format!("\n[host.\"{url}\"]\n  capabilities = [\"pull\", \"resolve\"]\n");
            if more.contains("override_path") {
                text += "  override_path = true\n";
            }
        }
        far.write(
            &format!("machine/etc/containerd/certs.d/{host}/hosts.toml"),
            text,
        );
    }
    let auths = credentials["stringData"][".dockerconfigjson"]
        .as_str()
        .unwrap();
    let auths: Value = serde_yaml::from_str(auths).unwrap();
    let account = STANDARD
        .decode(auths["auths"][REGISTRY]["auth"].as_str().unwrap())
        .unwrap();
    let account = String::from_utf8(account).unwrap();
    let (user, password) = account.split_once(':').unwrap();
    let registry = |plugin: &str| {
        format!(
            "[plugins.\"{plugin}\".registry]\nconfig_path = \"/etc/containerd/certs.d\"\n\
             [plugins.\"{plugin}\".registry.configs.\"{REGISTRY}\".auth]\nusername = {user:?}\npassword = {password:?}\n"
        )
    };
    let pause = node["pauseImage"].as_str().unwrap();
    let first = "io.containerd.grpc.v1.cri";
    let head = format!("version = 2\n\n[plugins.\"{first}\"]\nsandbox_image = {pause:?}\n");
    far.write("machine/config-1.x.toml", head + &registry(first));
    let second = "io.containerd.cri.v1.images";
    let head =
        format!("version = 3\n\n[plugins.\"{second}\".pinned_images]\nsandbox = {pause:?}\n");
    far.write("machine/config-2.x.toml", head + &registry(second));
}

#[test]
fn a_machine_of_kkp_pulls_with_the_sites_authority_and_account() {
    let Some(side) = FarSide::new(&["htpasswd", "update-ca-certificates"]) else {
        return;
    };
    let FarSide {
        network,
        place: far,
        world,
    } = &side;
    let (_registry, authority) = side.registry_with_account(false);
    side.site(&format!(
        "registry:\n  address: {REGISTRY}\n  ca: {:?}\n  {CREDENTIALS}\nconsumers: [kubermatic]\n",
        authority.pem
    ));
    run(&mut side.operator(&["doctor"]));
    side.push();
    far.write("osp.yaml", include_str!("../../data/osp-example.yaml"));
    let sandbox = "sandbox=registry.k8s.io/pause:3.10.1";
    side.render(&[
        "kubermatic",
        "--osp",
        "osp.yaml",
        "--set",
        "datacenter=dc-1",
        "--set",
        sandbox,
        "-o",
        "kkp",
    ]);
    let seed = yaml(far, "kkp/kubermatic-seed.yaml");
    let datacenter = &seed["spec"]["datacenters"]["dc-1"];
    assert_eq!(
        datacenter["spec"]["operatingSystemProfiles"]["ubuntu"],
        Value::from("osp-example-landfall")
    );
    machine_of_kkp(
        far,
        &datacenter["node"],
        &yaml(far, "kkp/registry-credentials.yaml"),
    );
    // write the files of the profile; the commands in `trust` mount the machine's certificate
    // folders on the node
    let profile = yaml(far, "kkp/osp-example-landfall.yaml");
    for file in profile["spec"]["bootstrapConfig"]["files"]
        .as_sequence()
        .unwrap()
    {
        let path = file["path"].as_str().unwrap();
        far.write(
            &format!("machine{path}"),
            file["content"]["inline"]["data"].as_str().unwrap(),
        );
    }
    assert!(
        far.read("machine/etc/systemd/system/bootstrap.service.d/50-landfall.conf")
            .contains("use-site.sh")
    );
    std::fs::create_dir_all(far.path("machine/etc/ssl/certs")).unwrap();
    let machine = far.path("machine").display().to_string();
    let trust = format!(
        "for folder in /usr/local/share/ca-certificates /etc/ssl/certs; do mount --bind '{machine}'$folder $folder; done; \
         PATH=$PATH:/usr/sbin sh '{machine}/opt/landfall/use-site.sh' >&2; "
    );
    let node = network.containerd_on("node", far, Path::new(&machine), &trust);
    for upstream in world
        .upstreams
        .iter()
        .filter(|upstream| !upstream.name.contains("nested"))
    {
        let answer = node.pull_for_kubernetes(far, upstream.name);
        assert!(
            answer.contains("grpc-status: 0"),
            "{}: {answer}",
            upstream.name
        );
    }
    let answer = node.pull_for_kubernetes(far, datacenter["node"]["pauseImage"].as_str().unwrap());
    assert!(answer.contains("grpc-status: 0"), "{answer}");
}

/// Does what cloud-init does with the rendered TKG template: writes the files of the machine, and
/// runs the commands for containerd on its configuration. Returns the environment of containerd's
/// drop-in as `export` commands for a shell.
fn machine_of_tkg(place: &Place, template: &str) -> String {
    let template = yaml(place, template);
    let spec = &template["spec"]["template"]["spec"];
    // the configuration of containerd in the machine's image
    let pause = "[plugins.\"io.containerd.grpc.v1.cri\"]\nsandbox_image = \"projects.registry.vmware.com/tkg/pause:3.10.1\"\n";
    let config = place.write("machine/config-1.x.toml", format!("version = 2\n\n{pause}"));
    let mut exports = String::new();
    for file in spec["files"].as_sequence().unwrap() {
        let path = file["path"].as_str().unwrap();
        let text = file["content"].as_str().unwrap();
        place.write(&format!("machine{path}"), text);
        if path.ends_with("/containerd.service.d/http-proxy.conf") {
            let variables = environment(text).into_iter();
            exports = variables
                .map(|(name, value)| format!("export {name}='{value}'; "))
                .collect();
        }
    }
    let commands = spec["preKubeadmCommands"]
        .as_sequence()
        .unwrap()
        .iter()
        .filter_map(Value::as_str);
    for command in commands.filter(|command| command.contains("/etc/containerd/config.toml")) {
        let command = command.replace("/etc/containerd/config.toml", &config.display().to_string());
        // cloud-init may run the commands again
        run(place
            .clean("sh")
            .args(["-ec", &format!("{command}\n{command}")]));
    }
    exports
}

#[test]
fn a_machine_of_tkg_trusts_the_sites_authority() {
    let Some(side) = FarSide::new(&[]) else {
        return;
    };
    let (_registry, authority) = side.registry_with_authority();
    side.site(&format!(
        "registry: {{address: \"{REGISTRY}\", ca: {:?}}}\nconsumers: [tkg]\n",
        authority.pem
    ));
    side.push();
    side.render(&[
        "tkg",
        "--set",
        "source=registry.k8s.io",
        "--set",
        "cluster=blue",
        "-o",
        "tkg",
    ]);
    machine_of_tkg(&side.place, "tkg/kubeadm-config-template.yaml");
    let config = side.place.read("machine/config-1.x.toml");
    assert!(
        config.contains("sandbox_image = \"172.20.0.2:5000/pause:3.10.1\""),
        "{config}"
    );
    assert_eq!(config.matches(".registry.configs.").count(), 1, "{config}");
    let node = side
        .network
        .containerd_with(&side.place, &side.place.path("machine"));
    let answer = node.pull_for_kubernetes(&side.place, "172.20.0.2:5000/pause:3.10.1");
    assert!(answer.contains("grpc-status: 0"), "{answer}");
}

#[test]
fn a_machine_of_tkg_pulls_through_the_proxy() {
    if !need(&["containerd", "ctr", "curl"]) {
        return;
    }
    let Some(mut outside) = Outside::new(&["registry.test"], false) else {
        return;
    };
    let place = &outside.place;
    let ca = place.path("Registry CA/ca.pem");
    place.write(
        "far.yaml",
        format!(
            "apiVersion: landfall/v1\nkind: Site\nregistry: {{address: registry.test, ca: {ca:?}, viaProxy: true}}\n\
             consumers: [tkg]\nproxy: {{http: \"http://{PROXY}\", https: \"http://{PROXY}\", noProxy: {{cluster: {{domain: cluster.local}}}}}}\n\
             clusters: [{{name: blue, namespace: default}}]\n"
        ),
    );
    place.write("tkg.lock", lock(&["registry.test/team/pause:3.10.1"]));
    let render = [
        "render",
        "tkg",
        "--set",
        "source=registry.test/team",
        "-o",
        "tkg",
    ];
    place.ok(&[&render[..], &["--lock", "tkg.lock", "--site", "far.yaml"]].concat());
    let exports = machine_of_tkg(place, "tkg/blue/kubeadm-config-template.yaml");
    assert_eq!(exports.matches("export ").count(), 3, "{exports}");
    let node = outside
        .network
        .containerd_on("client", place, &place.path("machine"), &exports);
    let answer = node.pull_for_kubernetes(place, "registry.test/team/app:v1");
    assert!(answer.contains("grpc-status: 0"), "{answer}");
    drop(node);
    outside.wait_for("200 CONNECT registry.test:443");
}
