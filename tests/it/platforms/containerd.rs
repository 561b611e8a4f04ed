//! `containerd`: hosts.toml, configuration and drop-in, and destinations that no mirror can
//! express.

use super::{files, golden, place};
use std::path::Path;

const IMAGES: [&str; 6] = [
    "k8s.gcr.io/pause:3.1",
    "docker.io/library/nginx:1.27",
    "quay.io/prometheus/node-exporter:v1.9.0",
    "quay.io/team/app:v1",
    "localhost:5001/a/b:1",
    "gcr.io/google_containers/hyperkube-amd64:v1.15.3",
];

#[test]
fn hosts_are_dropped_and_paths_become_prefixes() {
    let site = "registry:\n  address: 172.20.0.2:5000\n  plainHTTP: true\n  \
                paths: {k8s.gcr.io: kubernetes, quay.io/team: mirror/team, gcr.io/google_containers: kubernetes}\n\
                consumers: [containerd]\n";
    golden(&place(site, &IMAGES), "containerd-dropped", &["containerd"]);
}

#[test]
fn a_certificate_an_account_and_a_proxy_are_configured() {
    let site = "registry:\n  address: registry.corp.test/mirror\n  keepHost: true\n  ca: ca.pem\n  clientCert: c.pem\n  \
                clientKey: c.key\n  credentials: {usernameEnv: U, passwordEnv: P}\n\
                proxy: {https: \"http://10.0.0.1:3128\"}\n";
    let place = place(site, &IMAGES);
    let begin = "-----BEGIN CERTIFICATE-----";
    let end = "-----END CERTIFICATE-----";
    let key = "-----BEGIN PRIVATE KEY-----\nk\n-----END PRIVATE KEY-----\n";
    place.write("ca.pem", format!("the CA\n{begin}\nca\n{end}\n{key}"));
    place.write("c.pem", format!("{begin}\nclient\n{end}\n"));
    place.write("c.key", key);
    let run = |args: &[&str]| {
        let mut command = place.command();
        command
            .args(["render", "containerd", "--site", "site.yaml"])
            .args(args);
        command
            .env("U", "robot")
            .env("P", "hu\"sh")
            .output()
            .unwrap()
    };
    // if a variable of the account is not set, nothing is written
    let printed = place.stderr(
        2,
        &["render", "containerd", "--site", "site.yaml", "-o", "out"],
    );
    assert!(printed.contains("variable U is not set"), "{printed}");
    assert!(!place.path("out").exists());
    for (auth, folder) in [("header", "out"), ("config", "out-config")] {
        let printed = run(&["-o", folder, "--set", &format!("auth={auth}")]);
        assert_eq!(
            printed.status.code(),
            Some(0),
            "{}",
            String::from_utf8_lossy(&printed.stderr)
        );
        assert!(!String::from_utf8_lossy(&printed.stdout).contains("hu"));
        super::compare(&files(&place.path(folder)), &format!("containerd-{auth}"));
    }
}

#[test]
fn upstream_is_the_fallback_if_the_site_allows_it() {
    let site = "registry: {address: r.test, upstreamFallback: true}\n";
    let place = place(
        site,
        &["docker.io/library/nginx:1.27", "quay.io/team/app:v1"],
    );
    place.ok(&["render", "containerd", "--site", "site.yaml", "-o", "out"]);
    let hosts = |host: &str| place.read(&format!("out/etc/containerd/certs.d/{host}/hosts.toml"));
    let mirror = "\n[host.\"https://r.test\"]\ncapabilities = [\"pull\", \"resolve\"]\n";
    assert!(hosts("docker.io").ends_with(&format!(
        "server = \"https://registry-1.docker.io\"\n{mirror}"
    )));
    assert!(hosts("quay.io").ends_with(&format!("server = \"https://quay.io\"\n{mirror}")));
    assert!(!place.path("out/etc/containerd/certs.d/_default").exists());
}

#[test]
fn an_upstream_with_plain_http_is_the_fallback_over_plain_http() {
    let site = "registry: {address: r.test, upstreamFallback: true}\nupstreams:\n  \
                \"old.test:5000\": {plainHTTP: true}\n  \
                quay.io: {mirror: \"http://cache.test\", plainHTTP: true}\n";
    let place = place(
        site,
        &["old.test:5000/team/app:v1", "quay.io/team/other:v1"],
    );
    for platform in ["containerd", "crio", "kubespray"] {
        place.ok(&["render", platform, "--site", "site.yaml", "-o", "out"]);
    }
    let hosts = |host: &str| place.read(&format!("out/etc/containerd/certs.d/{host}/hosts.toml"));
    assert!(hosts("old.test_5000_").contains("server = \"http://old.test:5000\"\n"));
    // the setting is about the mirror, which only landfall uses
    assert!(hosts("quay.io").contains("server = \"https://quay.io\"\n"));
    let crio = place.read("out/etc/containers/registries.conf.d/50-landfall.conf");
    let mirror = "\n[[registry.mirror]]\nlocation = \"r.test\"\n";
    for upstream in [
        "location = \"old.test:5000\"\ninsecure = true\n",
        "location = \"quay.io\"\n",
    ] {
        assert!(crio.contains(&format!("{upstream}{mirror}")), "{crio}");
    }
    let variables = place.read("out/group_vars/all/landfall.yml");
    for server in ["http://old.test:5000", "https://quay.io"] {
        assert!(
            variables.contains(&format!("server: {server}\n")),
            "{variables}"
        );
    }
}

#[test]
fn destinations_that_no_mirror_can_express_are_refused_with_a_fix() {
    let site = "registry: {address: \"172.20.0.2:5000/p\", paths: {gcr.io/google_containers: kubernetes}}\n";
    let place = place(site, &IMAGES);
    let printed = place.stderr(
        4,
        &["render", "containerd", "--site", "site.yaml", "-o", "out"],
    );
    assert!(printed.contains("consumers: [containerd]"), "{printed}");
    let line = "gcr.io/google_containers/hyperkube-amd64: [kubernetes/hyperkube-amd64, google_containers/hyperkube-amd64]";
    assert!(
        printed.contains(line) && !printed.contains("nginx"),
        "{printed}"
    );
    assert!(!Path::new(&place.path("out")).exists());
    // the suggested line works
    let site = place
        .read("site.yaml")
        .replace("gcr.io/google_containers: kubernetes", line);
    place.write("site.yaml", site);
    place.ok(&["render", "containerd", "--site", "site.yaml", "-o", "out"]);
}

#[test]
fn a_mirror_with_another_image_of_the_same_name_is_refused() {
    let site = "registry: {address: \"r.test\", paths: {quay.io/team: mirror/team, docker.io/team: team}}\n";
    let images = [
        "quay.io/other/app:v1",
        "quay.io/team/app:v1",
        "docker.io/team/app:v1",
    ];
    let place = place(site, &images);
    let printed = place.stderr(
        4,
        &["render", "containerd", "--site", "site.yaml", "-o", "out"],
    );
    assert!(
        printed.contains(
            "quay.io/team/app:v1 would be pulled from team/app:v1, which is docker.io/team/app:v1"
        ),
        "{printed}"
    );
}

#[test]
fn the_mirrors_of_an_alias_have_the_right_images() {
    let render = |paths: &str, images: &[&str], exit: i32| {
        let site = format!("registry: {{address: r.test, paths: {{{paths}}}}}\n");
        let place = place(&site, images);
        if exit == 0 {
            place.ok(&["render", "containerd", "--site", "site.yaml", "-o", "out"]);
            return place.read("out/etc/containerd/certs.d/k8s.gcr.io/hosts.toml");
        }
        super::refused(&place, exit, &["containerd"])
    };
    // for the alias too, the mirror at the usual path of registry.k8s.io is tried first
    let paths = "registry.k8s.io: k, registry.k8s.io/a: special/a, quay.io: special";
    let images = [
        "registry.k8s.io/a:v1",
        "registry.k8s.io/b:v1",
        "quay.io/b:v1",
    ];
    let mirrors = render(paths, &images, 0);
    let position = |path: &str| mirrors.find(&format!("r.test/v2/{path}\"]"));
    assert!(
        position("k").is_some() && position("k") < position("special"),
        "{mirrors}"
    );
    // the image that is locked under the alias needs a mirror at `old`, where `b` is another image
    let paths = "k8s.gcr.io: old, registry.k8s.io: k, quay.io: old";
    let images = ["k8s.gcr.io/a:v1", "registry.k8s.io/b:v1", "quay.io/b:v1"];
    let told = render(paths, &images, 4);
    let why = "registry.k8s.io/b:v1, requested from k8s.gcr.io, would be pulled from old/b:v1, \
               which is quay.io/b:v1";
    assert!(told.contains(why), "{told}");
}

#[test]
fn several_pause_images_require_a_setting() {
    let site = "registry: {address: r.test}\n";
    let place = place(
        site,
        &["registry.k8s.io/pause:3.9", "registry.k8s.io/pause:3.10"],
    );
    let render = |args: &[&str]| {
        place.ok(&[
            &["render", "containerd", "--site", "site.yaml", "-o", "out"],
            args,
        ]
        .concat())
    };
    assert!(
        render(&[])
            .contains("--set sandbox=IMAGE: registry.k8s.io/pause:3.10, registry.k8s.io/pause:3.9")
    );
    assert!(!place.read("out/config-1.x.toml").contains("sandbox"));
    render(&["--set", "sandbox=registry.k8s.io/pause:3.9"]);
    assert!(
        place
            .read("out/config-1.x.toml")
            .contains("sandbox_image = \"r.test/pause:3.9\"")
    );
    assert!(
        place
            .read("out/config-2.x.toml")
            .contains("sandbox = \"r.test/pause:3.9\"")
    );
    // CRI-O pulls the image by its upstream name
    let crio = ["render", "crio", "--site", "site.yaml", "-o", "crio"];
    let printed = place.ok(&crio);
    assert!(
        printed.contains("choose one with --set sandbox=IMAGE"),
        "{printed}"
    );
    place.ok(&[&crio[..], &["--set", "sandbox=registry.k8s.io/pause:3.9"]].concat());
    assert!(
        place
            .read("crio/etc/crio/crio.conf.d/50-landfall.conf")
            .contains("pause_image = \"registry.k8s.io/pause:3.9\"")
    );
    place.write("landfall.lock", super::lock(&[]));
    let printed = place.ok(&crio);
    assert!(
        printed.contains("the one in CRI-O's configuration"),
        "{printed}"
    );
}

#[test]
fn a_second_account_for_one_mirror_is_reported() {
    let site = "registry:
  address: r.test
  credentials: {file: account}
  paths:
    quay.io/team: {to: [team], credentials: {file: team}}
    quay.io/far: {to: [far/far], credentials: {file: team}}
consumers: [containerd]
";
    let place = place(
        site,
        &[
            "quay.io/far/app:v1",
            "quay.io/other/app:v1",
            "quay.io/team/app:v1",
        ],
    );
    place.write("account", "all:hush\n");
    place.write("team", "team:hush\n");
    let printed = place.ok(&["render", "containerd", "--site", "site.yaml", "-o", "out"]);
    // `far` is a separate mirror with its own account
    assert_eq!(
        printed.matches("containerd has one account").count(),
        1,
        "{printed}"
    );
    assert!(
        printed.contains("team/app needs another account; allow the account of ")
            && !printed.contains("hush"),
        "{printed}"
    );
    // under Kubespray, containerd has one account for the whole registry
    let site = site
        .replace("consumers: [containerd]", "consumers: [kubespray]")
        .replace(
            "    quay.io/far: {to: [far/far], credentials: {file: team}}\n",
            "",
        );
    place.write(
        "kubespray.yaml",
        format!("apiVersion: landfall/v1\nkind: Site\n{site}"),
    );
    let render = ["render", "kubespray", "--site", "kubespray.yaml"];
    let printed = place.ok(&[&render[..], &["-o", "kubespray"]].concat());
    assert!(
        printed.contains("that of the registry; ") && !printed.contains("that of ;"),
        "{printed}"
    );
}

/// containerd 1.x cannot read a file with `]` in the name of a table. Only the fallback to upstream
/// needs such a table.
#[test]
fn without_the_fallback_no_table_name_contains_an_ipv6_address() {
    let site = "registry:\n  address: \"[fd00::2]:5000\"\n  plainHTTP: true\n  credentials: {usernameEnv: U, passwordEnv: P}\n";
    let place = place(
        site,
        &["docker.io/library/nginx:1.27", "quay.io/team/app:v1"],
    );
    let render = |args: &[&str]| {
        let mut command = place.command();
        command
            .args(["render", "containerd", "--site", "site.yaml", "-o", "out"])
            .args(args);
        let run = command.env("U", "robot").env("P", "hush").output().unwrap();
        assert_eq!(
            run.status.code(),
            Some(0),
            "{}",
            String::from_utf8_lossy(&run.stderr)
        );
        String::from_utf8_lossy(&run.stdout).into_owned()
    };
    let bracketed = |text: &str| {
        text.lines()
            .any(|line| line.starts_with('[') && line.contains("fd00"))
    };
    for auth in ["auth=header", "auth=config"] {
        let printed = render(&["--set", auth]);
        assert!(!printed.contains("containerd 1.x"), "{printed}");
        for (path, text) in files(&place.path("out")) {
            assert!(!bracketed(&text), "{}: {text}", path.display());
            if path.ends_with("hosts.toml") {
                assert!(
                    text.contains("server = \"http://[fd00::2]:5000\"\n")
                        && text.ends_with("\n[host]\n"),
                    "{text}"
                );
                assert_eq!(
                    text.contains("[header]\nAuthorization"),
                    auth == "auth=header",
                    "{text}"
                );
            }
        }
    }
    let config = place.read("out/config-1.x.toml");
    assert!(
        config.ends_with(
            "configs]\n\"[fd00::2]:5000\" = {auth = {username = \"robot\", password = \"hush\"}}\n"
        ),
        "{config}"
    );
    // with the fallback to upstream, the mirror needs such a table, and a message says so
    place.write(
        "site.yaml",
        "apiVersion: landfall/v1\nkind: Site\nregistry: {address: \"[fd00::2]:5000\", plainHTTP: true, upstreamFallback: true}\n",
    );
    let printed = render(&[]);
    assert!(
        printed.contains("containerd 1.x ignores the hosts.toml of docker.io,")
            && printed.contains("quay.io"),
        "{printed}"
    );
}
