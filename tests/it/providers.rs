//! Providers of OpenTofu and Terraform: locked from a registry, carried, served as a mirror, and
//! installed by the real programs.

use crate::support::peers::{Server, file_server, nginx_with_tls, own_registry};
use crate::support::pki::Authority;
use crate::support::providers::{ProviderFiles, lock_file, package, zh};
use crate::support::unchecked::pack_unchecked;
use crate::support::{Place, free_port, http, landfall_serve, need, run, skip, test_name, which};
use landfall_item::zip_package;
use serde_json::{Value, json};
use std::process::Command;

const HOST: &str = "registry.test";
const PLATFORMS: [&str; 3] = ["darwin_arm64", "linux_amd64", "linux_arm64"];

/// A web server that acts as the registry `registry.test`, and a folder to run landfall in.
struct Providers {
    files: ProviderFiles,
    server: Server,
    place: Place,
}

impl Providers {
    fn new() -> Providers {
        let mut files = ProviderFiles::new();
        files.publish("1.0.0", &PLATFORMS);
        let server = file_server(&files.root());
        let place = Place::new();
        let mirror = server.url();
        place.write(
            "site.yaml",
            format!("apiVersion: landfall/v1\nkind: Site\nupstreams: {{{HOST}: {{mirror: '{mirror}'}}}}\n"),
        );
        Providers {
            files,
            server,
            place,
        }
    }

    fn manifest(&self, entry: &str) {
        let text = format!("apiVersion: landfall/v1\nkind: Manifest\nproviders:\n- {{{entry}}}\n");
        self.place.write("m.yaml", text);
    }

    /// Writes a `.terraform.lock.hcl` with these hashes, and a manifest that names it.
    fn locked_by(&self, hashes: &[String], more: &str) {
        let text = lock_file(HOST, "1.0.0", hashes);
        self.place.write("infra/.terraform.lock.hcl", text);
        self.manifest(&format!("lockfile: infra/.terraform.lock.hcl{more}"));
    }

    fn lock(&self, exit: i32, more: &[&str]) -> Value {
        let args = [&["lock", "-f", "m.yaml", "--site", "site.yaml"], more].concat();
        self.place.json(exit, &args)
    }

    /// Locks and pulls the content of the manifest, and packs it as `bundle.tar.zst`.
    fn pack(&self) {
        self.lock(0, &[]);
        self.place.ok(&["pull", "--site", "site.yaml"]);
        self.place.ok(&["pack", "-o", "bundle.tar.zst"]);
    }

    fn locked(&self) -> Value {
        serde_yaml::from_str(&self.place.read("landfall.lock")).unwrap()
    }
}

#[test]
fn providers_of_a_lock_file_are_locked_carried_served_and_exported() {
    let up = Providers::new();
    let hashes = PLATFORMS.map(|platform| zh(&package("1.0.0", platform)));
    up.locked_by(&hashes, ", platforms: [linux_arm64, linux_amd64]");
    up.pack();
    let place = &up.place;
    place.ok(&["verify", "bundle.tar.zst"]);
    let listed = place.ok(&["ls", "bundle.tar.zst"]);
    assert!(
        listed.contains("provider:registry.test/acme/random:1.0.0"),
        "{listed}"
    );
    let lock = up.locked();
    let packages = &lock["providers"][0]["packages"];
    assert_eq!(packages.as_array().unwrap().len(), 2);
    let file = "terraform-provider-random_1.0.0_linux_amd64.zip";
    assert_eq!(packages[0]["url"], format!("https://{HOST}/files/{file}"));

    // an unchanged entry needs no request, and the same lock gives the same bundle in another
    // folder
    let requests = up.server.requests("GET /");
    up.lock(0, &[]);
    assert_eq!(up.server.requests("GET /"), requests);
    let other = Place::new();
    for name in ["landfall.lock", "site.yaml"] {
        other.write(name, place.read(name));
    }
    other.ok(&["pull", "--site", "site.yaml", "--bundle", "bundle.tar.zst"]);
    assert!(place.read_bytes("bundle.tar.zst") == other.read_bytes("bundle.tar.zst"));

    // the network mirror protocol
    let served = landfall_serve(place, &["bundle.tar.zst"]);
    let get = |path: &str| http::get(&served.address, &format!("/providers/{HOST}/acme/{path}"));
    let index = get("random/index.json");
    assert_eq!(index.header("content-type"), Some("application/json"));
    assert_eq!(index.json(), json!({"versions": {"1.0.0": {}}}));
    let archives = get("random/1.0.0.json").json()["archives"].clone();
    assert_eq!(
        archives["linux_amd64"],
        json!({"url": file, "hashes": [packages[0]["h1"], hashes[1]]})
    );
    assert!(archives["linux_arm64"].is_object() && archives["darwin_arm64"].is_null());
    let archive = package("1.0.0", "linux_amd64");
    let found = get(&format!("random/{file}"));
    assert_eq!(found.header("content-type"), Some("application/zip"));
    assert!((found.status, &found.body) == (200, &archive));
    assert_eq!(get("none/index.json").status, 404);
    assert_eq!(get("random/../random/index.json").status, 404);
    let by_url = http::get(&served.address, &format!("/files/{HOST}/files/{file}"));
    assert!(by_url.body == archive, "the archive at its own URL differs");

    // an exported folder has the same content
    place.ok(&["export", "providers", "bundle.tar.zst", "-o", "mirror"]);
    let folder = format!("mirror/{HOST}/acme/random");
    for path in ["index.json", "1.0.0.json", file] {
        let exported = place.read_bytes(&format!("{folder}/{path}"));
        assert!(exported == get(&format!("random/{path}")).body, "{path}");
    }
    let again = place.json(
        0,
        &["export", "providers", "bundle.tar.zst", "-o", "mirror"],
    );
    assert_eq!(again["totals"]["present"], 4, "{again}");
}

#[test]
fn a_push_delivers_providers_as_opentofu_reads_them_from_a_registry() {
    let mut up = Providers::new();
    up.files.publish("1.1.0+b", &PLATFORMS[..2]);
    up.place.write(
        "m.yaml",
        format!(
            "apiVersion: landfall/v1\nkind: Manifest\nplatforms: [linux/amd64]\nproviders:\n\
             - {{source: {HOST}/acme/random, version: 1.0.0}}\n\
             - {{source: {HOST}/acme/random, version: 1.1.0+b, platforms: [darwin_arm64, linux_amd64]}}\n"
        ),
    );
    up.pack();
    let site = own_registry();
    up.place
        .ok(&["push", "bundle.tar.zst", "--to", &site.address]);
    let repository = format!("providers/{HOST}/acme/random");
    let tags = http::get(&site.address, &format!("/v2/{repository}/tags/list")).json();
    assert_eq!(tags["tags"], json!(["1.0.0", "1.1.0_b"]));
    let index = http::manifest(&site.address, &repository, "1.1.0_b").json();
    assert_eq!(index["artifactType"], "application/vnd.opentofu.provider");
    let children = index["manifests"].as_array().unwrap();
    assert_eq!(children.len(), 2);
    let child = &children[1];
    assert_eq!(
        child["artifactType"],
        "application/vnd.opentofu.provider-target"
    );
    assert_eq!(
        child["platform"],
        json!({"os": "linux", "architecture": "amd64"})
    );
    let digest = child["digest"].as_str().unwrap();
    let manifest = http::manifest(&site.address, &repository, digest).json();
    assert_eq!(manifest["artifactType"], child["artifactType"]);
    let layers = manifest["layers"].as_array().unwrap();
    assert_eq!(
        (layers.len(), &layers[0]["mediaType"]),
        (1, &json!("archive/zip"))
    );
    let layer = layers[0]["digest"].as_str().unwrap();
    let blob = http::get(&site.address, &format!("/v2/{repository}/blobs/{layer}"));
    assert!(blob.body == package("1.1.0+b", "linux_amd64"));
    let status = up.place.json(
        0,
        &[
            "status",
            "--to",
            &site.address,
            "--bundle",
            "bundle.tar.zst",
        ],
    );
    assert_eq!(status["totals"]["present"], 2, "{status}");
    // a server that reads from the registry also offers the network mirror protocol
    let served = landfall_serve(&up.place, &["--from", &site.address]);
    let index = http::get(
        &served.address,
        &format!("/providers/{HOST}/acme/random/index.json"),
    );
    assert_eq!(
        index.json(),
        json!({"versions": {"1.0.0": {}, "1.1.0+b": {}}})
    );
}

#[test]
fn hashes_decide_which_packages_are_accepted() {
    let mut up = Providers::new();
    let archive = package("1.0.0", "linux_amd64");
    let platforms = ", platforms: [linux_amd64]";
    // the lock file has no hash of this package
    up.locked_by(&[zh(b"other")], platforms);
    let report = up.lock(1, &[]).to_string();
    assert!(
        report.contains("not in the lock file") && report.contains(&zh(&archive)),
        "{report}"
    );
    assert_eq!(
        up.server.requests("GET /files/"),
        0,
        "a package was downloaded"
    );
    // without a lock file, the package is locked, and the lock records its `h1` hash
    up.manifest(&format!(
        "source: {HOST}/acme/random, version: 1.0.0{platforms}"
    ));
    up.lock(0, &[]);
    let h1 = up.locked()["providers"][0]["packages"][0]["h1"]
        .as_str()
        .unwrap()
        .to_owned();
    let before = up.place.read("landfall.lock");
    // the `h1` hash alone is enough
    up.locked_by(&[h1, zh(b"other")], platforms);
    up.lock(0, &["--refresh"]);
    assert_eq!(up.place.read("landfall.lock"), before);
    let wrong = "h1:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
    up.locked_by(&[wrong.to_owned()], platforms);
    let report = up.lock(1, &[]).to_string();
    assert!(report.contains("not in the lock file"), "{report}");

    // if a version is published again with other content, an unchanged entry keeps its hashes, and
    // another platform can be added only with --refresh
    let entry = format!("source: {HOST}/acme/random, version: 1.0.0");
    up.manifest(&format!("{entry}{platforms}"));
    up.lock(0, &[]);
    up.files
        .put("1.0.0", "linux_amd64", &zip_package(&[("x", b"y")]));
    up.lock(0, &[]);
    up.manifest(&format!("{entry}, platforms: [linux_amd64, linux_arm64]"));
    let report = up.lock(1, &[]).to_string();
    assert!(report.contains("--refresh"), "{report}");
    up.lock(0, &["--refresh"]);
    assert_ne!(up.place.read("landfall.lock"), before);
}

/// Before, every package was accepted without a note.
#[test]
fn a_lock_file_without_hashes_accepts_no_package() {
    let up = Providers::new();
    let platforms = ", platforms: [linux_amd64]";
    // a pin that was made without the lock file does not stay either
    up.manifest(&format!(
        "source: {HOST}/acme/random, version: 1.0.0{platforms}"
    ));
    up.lock(0, &[]);
    up.locked_by(&[], platforms);
    let empty = up.place.read("infra/.terraform.lock.hcl");
    let start = empty.find("  hashes").unwrap();
    let without = format!("{}}}\n", &empty[..start]);
    for text in [&empty, &without] {
        up.place.write("infra/.terraform.lock.hcl", text);
        let report = up.lock(1, &[]);
        let reason = report["items"][0]["reason"].as_str().unwrap();
        assert!(reason.contains("no hashes for this version"), "{reason}");
        assert_eq!(report["items"][0]["status"], "missing");
    }
    let before = up.server.requests("GET /files/");
    up.lock(1, &["--refresh"]);
    assert_eq!(up.server.requests("GET /files/"), before);
    // another lock file may have the hashes
    let archive = package("1.0.0", "linux_amd64");
    let text = lock_file(HOST, "1.0.0", &[zh(&archive)]);
    up.place.write("other/.terraform.lock.hcl", text);
    up.manifest(&format!(
        "lockfile: infra/.terraform.lock.hcl{platforms}}}\n- {{lockfile: \
         other/.terraform.lock.hcl{platforms}"
    ));
    up.lock(0, &[]);
}

#[test]
fn hostile_registries_and_packages_are_refused() {
    let mut up = Providers::new();
    up.files.put(
        "2.0.0",
        "linux_amd64",
        &zip_package(&[("../../etc/cron.d/x", b"* * * * *")]),
    );
    up.files
        .put("2.0.1", "linux_amd64", b"<html>not a zip archive</html>");
    up.files.put(
        "2.0.2",
        "linux_amd64",
        &zip_package(&[("a", b"1"), ("a", b"2")]),
    );
    let file = "files/terraform-provider-random_1.0.0_linux_amd64.zip";
    let shasum = zh(b"other").replace("zh:", "");
    for (version, location) in [
        (
            "2.1.0",
            json!({"download_url": format!("/{file}"), "shasum": shasum}),
        ),
        (
            "2.1.1",
            json!({"download_url": format!("http://other.test/{file}"), "shasum": shasum}),
        ),
        (
            "2.1.2",
            json!({"download_url": "file:///etc/passwd", "shasum": shasum}),
        ),
        (
            "2.1.3",
            json!({"download_url": format!("/{file}"), "shasum": "none"}),
        ),
        ("2.1.4", json!([])),
    ] {
        up.files.locate(version, "linux_amd64", &location);
    }
    for (version, why) in [
        ("2.0.0", "unsafe in a folder"),
        ("2.0.1", "not a zip archive"),
        ("2.0.2", "twice"),
        ("2.1.0", "checksum"),
        ("2.1.1", "not a valid URL"),
        ("2.1.2", "not a valid URL"),
        ("2.1.3", "no SHA-256"),
        ("2.1.4", "does not answer as a registry"),
        ("9.9.9", "does not have it"),
    ] {
        up.manifest(&format!("source: {HOST}/acme/random, version: {version}"));
        let report = up.lock(1, &[]).to_string();
        assert!(report.contains(why), "{version}: {report}");
    }
    up.manifest(&format!(
        "source: {HOST}/acme/random, version: 1.0.0, platforms: [plan9_arm]"
    ));
    let report = up.lock(1, &[]).to_string();
    assert!(
        report.contains("no plan9_arm, only darwin_arm64"),
        "{report}"
    );
}

/// Before, such a version was refused. `tofu init` does not read the list.
#[test]
fn a_registry_may_list_no_platforms() {
    let up = Providers::new();
    let versions = up.files.root().join("v1/providers/acme/random/versions");
    let text = r#"{"versions": [{"version": "1.0.0", "platforms": []}]}"#;
    std::fs::write(versions, text).unwrap();
    let entry = format!("source: {HOST}/acme/random, version: 1.0.0");
    up.manifest(&format!("{entry}, platforms: [linux_amd64]"));
    up.lock(0, &[]);
    let locked = up.locked().to_string();
    assert!(locked.contains("linux_amd64"), "{locked}");
    for (more, why) in [
        ("", "lists no platform"),
        (", platforms: [plan9_arm]", "404"),
    ] {
        up.manifest(&format!("{entry}{more}"));
        let report = up.lock(1, &["--lock", "other.lock"]).to_string();
        assert!(report.contains(why), "{more}: {report}");
    }
}

#[test]
fn several_lock_files_may_name_the_same_version() {
    let up = Providers::new();
    for platform in ["linux_amd64", "linux_arm64"] {
        let text = lock_file(HOST, "1.0.0", &[zh(&package("1.0.0", platform))]);
        up.place.write(&format!("{platform}/lock.hcl"), text);
    }
    up.manifest(
        "lockfile: linux_amd64/lock.hcl, platforms: [linux_amd64]}\n\
         - {lockfile: linux_arm64/lock.hcl, platforms: [linux_arm64]",
    );
    up.lock(0, &[]);
    let locked = up.locked();
    let providers = locked["providers"].as_array().unwrap();
    assert_eq!(providers.len(), 1);
    assert_eq!(providers[0]["packages"].as_array().unwrap().len(), 2);

    up.manifest(&format!(
        "source: {HOST}/acme/random, version: 1.0.0}}\n\
         - {{source: {HOST}/acme/random, version: 1.0.0"
    ));
    let report = up.lock(2, &[]).to_string();
    assert!(report.contains("m.yaml:5:"), "{report}");
    assert!(report.contains("is listed twice"), "{report}");
}

#[test]
fn invalid_entries_are_errors_with_their_positions() {
    let up = Providers::new();
    up.place.write(
        "bad.hcl",
        "provider \"registry.test/acme/random\" {\n  version = 1\n}\n",
    );
    for (entry, position, word) in [
        ("lockfile: none.hcl", "m.yaml:4:", "cannot read"),
        ("lockfile: bad.hcl", "bad.hcl:2:13", "character"),
        (
            "lockfile: bad.hcl, version: 1.0.0",
            "m.yaml:4:",
            "need `lockfile`, or",
        ),
        (
            "lockfile: bad.hcl, update: minor",
            "m.yaml:4:",
            "no update policy",
        ),
        (
            "source: registry.test/acme/random",
            "m.yaml:4:",
            "need `lockfile`, or",
        ),
        (
            "source: acme/random, version: 1.0.0",
            "m.yaml:4:12",
            "registry.opentofu.org/acme/random",
        ),
        (
            "source: ../../x, version: 1.0.0",
            "m.yaml:4:12",
            "source address",
        ),
        (
            "source: registry.test/acme/random, version: v1.0.0",
            "m.yaml:4:",
            "write 1.0.0",
        ),
        (
            "source: registry.test/acme/random, version: 1.0.0, platforms: [linux]",
            "m.yaml:4:",
            "linux_amd64",
        ),
    ] {
        up.manifest(entry);
        let report = up.lock(2, &[]).to_string();
        assert!(
            report.contains(position) && report.contains(word),
            "{entry}: {report}"
        );
    }
}

#[test]
fn versions_are_updated_by_their_policy() {
    let mut up = Providers::new();
    for version in ["1.0.4", "1.3.0", "2.0.0", "1.4.0-rc.1"] {
        up.files.publish(version, &PLATFORMS);
    }
    up.manifest(&format!(
        "source: {HOST}/acme/random, version: 1.0.0, platforms: [linux_amd64], update: minor"
    ));
    let args = ["update", "-f", "m.yaml", "--site", "site.yaml"];
    up.place.ok(&args);
    assert!(
        up.place.read("m.yaml").contains("version: 1.3.0,"),
        "{}",
        up.place.read("m.yaml")
    );
    up.pack();
    let lock = up.locked();
    assert_eq!(
        lock["providers"][0]["name"],
        "provider:registry.test/acme/random:1.3.0"
    );
}

#[test]
fn the_configuration_names_the_mirror_and_its_providers() {
    let up = Providers::new();
    up.manifest(&format!(
        "source: {HOST}/acme/random, version: 1.0.0, platforms: [linux_amd64]"
    ));
    up.lock(0, &[]);
    let render = |more: &[&str]| up.place.ok(&[&["render", "tofu"], more].concat());
    assert_eq!(
        render(&["--set", "url=https://mirror.test:5000/"]),
        "# Written by `landfall render tofu`; render it again instead of editing it.\n\
         provider_installation {\n  network_mirror {\n    url     = \"https://mirror.test:5000/providers/\"\n    \
         include = [\"registry.test/acme/random\"]\n  }\n}\n"
    );
    assert_eq!(
        render(&[
            "--set",
            "from=registry",
            "--to",
            "172.20.0.2:5000/base",
            "--set",
            "others=stay"
        ]),
        "# Written by `landfall render tofu`; render it again instead of editing it.\n\
         provider_installation {\n  oci_mirror {\n    \
         repository_template = \"172.20.0.2:5000/base/providers/registry.test/${namespace}/${type}\"\n    \
         include             = [\"registry.test/acme/random\"]\n  }\n  direct {\n    \
         exclude = [\"registry.test/acme/random\"]\n  }\n}\n"
    );
    for (more, words) in [
        (
            &["--set", "url=http://mirror.test"][..],
            "nothing names an https server",
        ),
        (&[], "nothing names an https server"),
        (&["--set", "from=registry"], "nothing names a registry"),
    ] {
        let report = up.place.json(2, &[&["render", "tofu"], more].concat());
        let message = report["error"]["message"].as_str().unwrap();
        assert!(message.contains(words), "{more:?}: {message}");
    }
}

#[test]
fn a_registry_at_loopback_is_reached_over_tls() {
    if !need(&["nginx"]) {
        return;
    }
    let mut files = ProviderFiles::new();
    files.publish("1.0.0", &["linux_amd64"]);
    let place = Place::new();
    let authority = Authority::new(&place, "ca");
    let address = format!("127.0.0.1:{}", free_port());
    let root = format!("root {};", files.root().display());
    let _nginx = nginx_with_tls(&authority, &address, &root);
    let ca = authority.pem.display();
    place.write(
        "site.yaml",
        format!(
            "apiVersion: landfall/v1\nkind: Site\nupstreams: {{'{address}': {{ca: '{ca}'}}}}\n"
        ),
    );
    place.write(
        "m.yaml",
        format!(
            "apiVersion: landfall/v1\nkind: Manifest\nproviders:\n\
             - {{source: '{address}/acme/random', version: 1.0.0}}\n"
        ),
    );
    place.ok(&["lock", "-f", "m.yaml", "--site", "site.yaml"]);
    place.ok(&["pull", "--site", "site.yaml", "--bundle", "b.tar.zst"]);
    let hosts = place.ok(&["egress", "--lock", "landfall.lock"]);
    assert!(hosts.contains("127.0.0.1"), "{hosts}");
}

/// OpenTofu or Terraform in `folder` with the CLI configuration `config`.
fn program(place: &Place, name: &str, folder: &str, config: &str) -> Command {
    let config = place.write(&format!("{folder}.tfrc"), config);
    let mut command = place.clean(name);
    command
        .arg(format!("-chdir={}", place.path(folder).display()))
        .env("TF_CLI_CONFIG_FILE", config)
        .env("CHECKPOINT_DISABLE", "1")
        .env("TF_IN_AUTOMATION", "1");
    command
}

/// Whether the program is OpenTofu 1.10 or newer, which installs providers from OCI registries.
fn reads_registries(place: &Place, name: &str) -> bool {
    let printed = run(program(place, name, ".", "").arg("version"));
    let printed = String::from_utf8(printed).unwrap();
    let version = printed.strip_prefix("OpenTofu v1.").unwrap_or_default();
    let minor = version.split('.').next().unwrap_or_default();
    minor.parse().is_ok_and(|minor: u32| minor >= 10)
}

#[test]
fn the_real_programs_install_providers_from_the_mirror() {
    let programs: Vec<&str> = ["tofu", "terraform"]
        .into_iter()
        .filter(|name| which(name).is_some())
        .collect();
    if programs.is_empty() {
        return skip(&test_name(), "this machine has neither tofu nor terraform");
    }
    let up = Providers::new();
    let place = &up.place;
    up.manifest(&format!("source: {HOST}/acme/random, version: 1.0.0"));
    up.pack();
    let lock = up.locked();
    let packages = lock["providers"][0]["packages"].as_array().unwrap();
    let authority = Authority::new(place, "ca");
    let (certificate, key) = authority.issue(place, &["127.0.0.1"]);
    let [certificate, key] = [certificate, key].map(|path| path.display().to_string());
    let served = landfall_serve(
        place,
        &[
            "bundle.tar.zst",
            "--tls-cert",
            &certificate,
            "--tls-key",
            &key,
        ],
    );
    let url = format!("url=https://{}", served.address);
    let network = place.ok(&["render", "tofu", "--set", &url]);
    place.ok(&["export", "providers", "bundle.tar.zst", "-o", "mirror"]);
    let folder = place.path("mirror");
    let filesystem = format!(
        "provider_installation {{\n  filesystem_mirror {{\n    path = \"{}\"\n  }}\n}}\n",
        folder.display()
    );
    let configuration = format!(
        "terraform {{\n  required_providers {{\n    random = {{ source = \"{HOST}/acme/random\", version = \"1.0.0\" }}\n  }}\n}}\n"
    );
    // the server is an OCI registry, too
    let registry = place.ok(&[
        "render",
        "tofu",
        "--set",
        "from=registry",
        "--to",
        &served.address,
    ]);
    for name in programs {
        let mut configs = vec![("network", &network), ("filesystem", &filesystem)];
        if reads_registries(place, name) {
            configs.push(("registry", &registry));
        }
        for (kind, config) in configs {
            let work = format!("{name}-{kind}");
            place.write(&format!("{work}/main.tf"), &configuration);
            run(program(place, name, &work, config)
                .args(["init", "-no-color"])
                .env("SSL_CERT_FILE", &authority.pem));
            // the program computed the same `h1` hash as landfall
            let written = place.read(&format!("{work}/.terraform.lock.hcl"));
            let known = packages.iter().filter(|package| {
                let platform = package["platform"].as_str().unwrap();
                let installed =
                    format!("{work}/.terraform/providers/{HOST}/acme/random/1.0.0/{platform}");
                place.path(installed).exists() && written.contains(package["h1"].as_str().unwrap())
            });
            assert_eq!(known.count(), 1, "{work}: {written}");
            // a manifest can name a lock file that has the hashes of all platforms
            let platforms = packages
                .iter()
                .map(|package| format!("-platform={}", package["platform"].as_str().unwrap()));
            let mut locking = program(place, name, &work, config);
            locking
                .args(["providers", "lock", "-no-color"])
                .arg(format!("-fs-mirror={}", folder.display()))
                .args(platforms);
            run(&mut locking);
            up.manifest(&format!("lockfile: {work}/.terraform.lock.hcl"));
            up.lock(0, &["--refresh"]);
            assert_eq!(up.locked(), lock);
        }
    }
}

#[test]
fn a_provider_fails_if_its_hash_in_the_lock_was_edited() {
    let up = Providers::new();
    up.manifest(&format!(
        "source: {HOST}/acme/random, version: 1.0.0, platforms: [linux_amd64, linux_arm64]"
    ));
    up.pack();
    let place = &up.place;
    let lock = place.read("landfall.lock");
    let h1 = up.locked()["providers"][0]["packages"][1]["h1"].clone();
    let wrong = "h1:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
    place.write("landfall.lock", lock.replace(h1.as_str().unwrap(), wrong));
    let checked = |report: &Value| {
        let item = &report["items"][0];
        let reason = item["reason"].as_str().unwrap_or_default();
        assert!(
            reason.contains("linux_arm64 has the hash h1:") && reason.contains(wrong),
            "{report:#}"
        );
    };
    checked(&place.json(1, &["pull", "--site", "site.yaml"]));
    // the store has the packages, but the hash of one differs from the lock
    checked(&place.json(3, &["pack", "-o", "wrong.tar.zst"]));
    assert!(!place.path("wrong.tar.zst").exists());
    // a bundle that somebody packed without this check is refused
    pack_unchecked(place, "forged");
    let verified = place.json(4, &["verify", "forged"]).to_string();
    assert!(
        verified.contains("linux_arm64 has the hash h1:") && verified.contains(wrong),
        "{verified}"
    );
}
