//! `landfall doctor` at a site: rights at the private registry, ports by role, endpoints, names and
//! certificates.

use crate::support::images::noise;
use crate::support::netns::Network;
use crate::support::peers::nginx_command;
use crate::support::peers::{Server, docker_registry_config, nginx_with, own_registry};
use crate::support::pki::Authority;
use crate::support::process::Guard;
use crate::support::reverse_proxy::{ProxyAction, ReverseProxy};
use crate::support::squid::SERVER;
use crate::support::tokens::Tokens;
use crate::support::{Images, Place, free_port, need};
use serde_json::Value;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

/// The verdict, text and fix of each step with this name, in all targets.
pub(super) fn steps(report: &Value, check: &str) -> Vec<[String; 3]> {
    let targets = report["targets"].as_array().unwrap();
    let all = targets
        .iter()
        .flat_map(|target| target["checks"].as_array().unwrap());
    let text = |step: &Value, key: &str| step[key].as_str().unwrap_or_default().to_owned();
    all.filter(|step| step["check"] == check)
        .map(|step| [text(step, "verdict"), text(step, "says"), text(step, "fix")])
        .collect()
}

/// The only step with this name.
pub(super) fn step(report: &Value, check: &str) -> [String; 3] {
    let mut found = steps(report, check);
    assert_eq!(found.len(), 1, "{check}: {report:#}");
    found.remove(0)
}

/// The files under a folder, except the hash state that docker-registry keeps of cancelled uploads.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path());
    let entries = entries.filter(|path| !path.ends_with("hashstates"));
    entries
        .flat_map(|path| {
            if path.is_dir() {
                files_below(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}

/// An address of loopback that ends with `last`. Other test runs on this machine have others.
fn own_address(last: u8) -> String {
    let id = std::process::id();
    format!("127.{}.{}.{last}", 64 + (id >> 8) % 128, id % 256)
}

/// Writes a lock of one image and these endpoints. Returns the registry that has the image.
pub(super) fn locked(place: &Place, endpoints: &str) -> Server {
    let upstream = own_registry();
    let images = Images::new(place.path("layout"));
    let image = images.image("linux/amd64", &[images.layer(&[("app", &noise(1, 3000))])]);
    images.push(&upstream.address, "team/app", "v1", &image);
    let head = "apiVersion: landfall/v1\nkind: Manifest\nmetadata: {name: t}\n";
    place.write(
        "m.yaml",
        format!(
            "{head}images: [\"{}/team/app:v1\"]\n{endpoints}",
            upstream.address
        ),
    );
    place.json(0, &["lock", "-f", "m.yaml", "--store", "store"]);
    upstream
}

fn site(place: &Place, registry: &str, more: &str) {
    let keys = format!("{{address: \"{registry}\", plainHTTP: true{more}}}");
    place.write(
        "site.yaml",
        format!("apiVersion: landfall/v1\nkind: Site\nregistry: {keys}\n"),
    );
}

#[test]
fn checks_of_the_private_registry_leave_no_content() {
    if !need(&["docker-registry", "nginx", "gzip"]) {
        return;
    }
    let place = Place::new();
    let _upstream = locked(&place, "");
    let users = place.write(
        "htpasswd",
        "puller:$2y$05$LATlS73W.R.eF7/IR5XdVuCOgj9GGLqQcaRji6lexBxUk5Ho27Wry\n",
    );
    let address = format!("127.0.0.1:{}", free_port());
    let auth = format!("auth: {{htpasswd: {{realm: r, path: {users:?}}}}}");
    let mut registry = place.clean("docker-registry");
    registry
        .arg("serve")
        .arg(docker_registry_config(&place, &address, &auth));
    let mut registry = Guard::start(registry);
    registry.wait_for_http(address.parse().unwrap());
    place.write("account", "puller:p@ss:word\n");
    let front = |directives: &str| {
        nginx_with(&format!(
            "location / {{ {directives} proxy_pass http://{address}; proxy_set_header Host $http_host; }}"
        ))
    };
    let look = |exit: i32, front: &Server, more: &[&str]| {
        site(&place, &front.address, ", credentials: {file: account}");
        let args = ["doctor", "--disconnected", "--site", "site.yaml"];
        place.json(exit, &[&args, more].concat())
    };

    let open = front("client_max_body_size 0;");
    let report = look(0, &open, &[]);
    assert!(
        step(&report, "sign-in")[1].ends_with(", which was accepted"),
        "{report:#}"
    );
    let [verdict, says, fix] = step(&report, "item");
    assert!(
        verdict == "note" && says.ends_with("/team/app:v1 does not exist"),
        "{says}"
    );
    assert_eq!(fix, "push the bundle");
    assert_eq!(
        step(&report, "referrers")[0],
        "note",
        "docker-registry has no referrers API"
    );
    assert_eq!(step(&report, "push")[0], "ok");
    assert!(
        step(&report, "index")[1].contains("refuses an index with missing children"),
        "{report:#}"
    );
    assert_eq!(
        step(&report, "body")[..2],
        ["ok", "a body of 64 MiB passes; larger ones were not tried"]
    );
    assert!(!report.to_string().contains("p@ss"), "{report:#}");
    assert_eq!(
        files_below(&place.path("registry")),
        Vec::<PathBuf>::new(),
        "no blob, tag or upload is left"
    );

    let small = front("client_max_body_size 1m;");
    let report = look(4, &small, &[]);
    let [verdict, says, fix] = step(&report, "body");
    assert!(
        verdict == "no" && says.contains("a body of 16 MiB is refused (413)"),
        "{says}"
    );
    assert!(fix.contains("client_max_body_size"), "{fix}");
    let middle = front("client_max_body_size 20m;");
    let [verdict, says, _] = step(&look(0, &middle, &[]), "body");
    assert!(
        verdict == "note" && says.contains("in chunks of 16 MiB"),
        "{says}"
    );

    let reading = front("limit_except GET HEAD { deny all; }");
    let [verdict, says, _] = step(&look(4, &reading, &[]), "push");
    assert!(
        verdict == "no"
            && says.starts_with("cannot start an upload to ")
            && says.contains("/team/app: "),
        "{says}"
    );
    let report = look(0, &reading, &["--read-only"]);
    assert!(
        step(&report, "push")[1].contains("not tried (--read-only)"),
        "{report:#}"
    );

    place.write("account", "puller:hush\n");
    let report = look(4, &open, &[]);
    assert!(
        step(&report, "sign-in")[1].contains("was refused") && !report.to_string().contains("hush")
    );
    assert!(
        steps(&report, "push").is_empty(),
        "without a login, nothing else is checked"
    );
}

/// docker-registry requires the action `delete` to cancel an upload and to delete a manifest.
#[test]
fn checks_of_a_registry_with_tokens_delete_their_content_if_allowed() {
    if !need(&["docker-registry", "nginx", "openssl", "gzip"]) {
        return;
    }
    for may_delete in [true, false] {
        let place = Place::new();
        let _upstream = locked(&place, "");
        let [address, front] = [(); 2].map(|()| format!("127.0.0.1:{}", free_port()));
        let tokens = Tokens::new(&place, "registry", "puller:p@ss:word", move |_, action| {
            may_delete || action != "delete"
        });
        let auth = format!(
            "auth: {{token: {{realm: \"http://{front}/token\", service: registry, issuer: tokens, \
             rootcertbundle: {:?}}}}}",
            tokens.certificate
        );
        let mut registry = place.clean("docker-registry");
        registry
            .arg("serve")
            .arg(docker_registry_config(&place, &address, &auth));
        let mut registry = Guard::start(registry);
        registry.wait_for_http(address.parse().unwrap());
        // nginx accepts an index with missing children, because not every docker-registry can be
        // configured to do so
        let directives = format!(
            "client_max_body_size 0; proxy_set_header Host $http_host;\n\
             location ~ /manifests/ {{ if ($request_method = PUT) {{ return 201; }} \
             proxy_pass http://{address}; }}\n\
             location /v2/ {{ proxy_pass http://{address}; }}\n\
             location /token {{ proxy_pass http://{}; }}",
            tokens.address
        );
        let mut nginx = Guard::start(nginx_command(&place, &directives, &front));
        nginx.wait_for_http(front.parse().unwrap());
        place.write("account", "puller:p@ss:word\n");
        site(&place, &front, ", credentials: {file: account}");
        let report = place.json(0, &["doctor", "--site", "site.yaml"]);
        assert_eq!(step(&report, "push")[0], "ok", "{report:#}");
        assert_eq!(step(&report, "body")[0], "ok", "{report:#}");
        let scopes = tokens.scopes();
        if may_delete {
            let deleted = "accepts an index with missing children; the test index was deleted";
            assert_eq!(step(&report, "index")[..2], ["ok", deleted], "{report:#}");
            assert_eq!(
                files_below(&place.path("registry")),
                Vec::<PathBuf>::new(),
                "no upload is left"
            );
        } else {
            let [verdict, says, _] = step(&report, "index");
            assert!(
                verdict == "note" && says.contains("cannot be deleted, and stays"),
                "{says}"
            );
        }
        // if the deletion is denied, the token with `delete` is requested a second time; the token
        // for uploads is requested only once
        for (actions, times) in [
            ("pull,push", 1),
            ("pull,delete", 2 - usize::from(may_delete)),
        ] {
            let scope = format!("repository:team/app:{actions}");
            let found = scopes.iter().filter(|found| **found == scope).count();
            assert_eq!(found, times, "{scopes:?}");
        }
    }
}

/// Quay requires the action `push` for a deletion, and refuses to issue tokens for actions that it
/// does not know.
#[test]
fn a_token_service_without_the_action_delete_can_be_used() {
    if !need(&["gzip"]) {
        return;
    }
    let place = Place::new();
    let registry = own_registry();
    let _upstream = locked(&place, "");
    let front = ReverseProxy::new(&registry.address, |request| {
        if request.target.starts_with("/token?") {
            if request.target.contains("delete") {
                return ProxyAction::refuse(400, "INVALID_REQUEST", "unknown action");
            }
            let token = serde_json::json!({"token": request.target, "expires_in": 3600});
            return ProxyAction::Answer(200, Vec::new(), token.to_string());
        }
        let needed = if request.method == "GET" || request.method == "HEAD" {
            "pull"
        } else {
            "push"
        };
        let token = request.header("authorization").unwrap_or_default();
        if !request.target.starts_with("/v2/team/") && !token.is_empty() || token.contains(needed) {
            match request.method.as_str() {
                "PUT" if request.target.contains("/manifests/") => ProxyAction::status(201),
                "DELETE" => ProxyAction::status(202),
                _ => ProxyAction::Pass,
            }
        } else {
            let challenge = "Bearer realm=\"/token\",service=\"quay\"";
            let headers = vec![("WWW-Authenticate".to_owned(), challenge.to_owned())];
            ProxyAction::Answer(401, headers, String::new())
        }
    });
    place.write("account", "puller:p@ss:word\n");
    site(&place, &front.address, ", credentials: {file: account}");
    let report = place.json(0, &["doctor", "--site", "site.yaml"]);
    let [verdict, says, _] = step(&report, "index");
    assert!(
        verdict == "ok" && says.contains("was deleted"),
        "{report:#}"
    );
    let opened = front.count("POST", "/blobs/uploads/");
    assert!(opened > 0);
    assert_eq!(front.count("DELETE", "/uploads/"), opened, "{report:#}");
    assert_eq!(
        front.count("GET", "delete"),
        1,
        "a refused scope is not requested again"
    );
}

#[test]
fn an_accepted_test_index_is_deleted_or_reported() {
    if !need(&["gzip"]) {
        return;
    }
    let place = Place::new();
    let registry = own_registry();
    let upstream = locked(&place, "");
    for (removes, verdict, words) in [
        (202, "ok", "was deleted"),
        (405, "note", "stays in team/app without a tag"),
    ] {
        let front = ReverseProxy::new(&registry.address, move |request| {
            match request.method.as_str() {
                "PUT" if request.target.contains("/manifests/sha256:") => ProxyAction::status(201),
                "DELETE" if request.target.contains("/manifests/") => ProxyAction::status(removes),
                _ => ProxyAction::Pass,
            }
        });
        site(&place, &front.address, "");
        let report = place.json(
            0,
            &["doctor", "--site", "site.yaml", "--lock", "landfall.lock"],
        );
        let [found, says, _] = step(&report, "index");
        assert!(found == verdict && says.contains(words), "{found} {says}");
        let of = |method: &str| {
            front
                .requests()
                .iter()
                .filter(|request| {
                    request.method == method && request.target.contains("/manifests/")
                })
                .map(|request| request.target.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            of("PUT"),
            of("DELETE"),
            "the deletion of the test index is requested"
        );
    }
    // without a site, the source registries are checked for the items of the lock
    let report = place.json(0, &["doctor"]);
    assert!(
        step(&report, "item")[1].contains("/team/app@sha256:"),
        "{report:#}"
    );
    drop(upstream);
    place.json(4, &["doctor"]);
}

#[test]
fn the_ports_of_a_role_are_probed() {
    let place = Place::new();
    let doctor_role =
        |exit: i32, args: &[&str]| place.json(exit, &[&["doctor", "--role"], args].concat());
    let [open, closed] = [1, 2].map(own_address);
    let _listening = [6443, 8088].map(|port| TcpListener::bind((&*open, port)).unwrap());
    let tunnel = ["user-cluster-node", "--expose", "Tunneling", "--set"];
    let report = doctor_role(
        0,
        &[&tunnel[..], &[&format!("seed-nodeport-proxy={open}")]].concat(),
    );
    let lines: Vec<String> = steps(&report, "port")
        .into_iter()
        .map(|[verdict, says, _]| format!("{verdict} {says}"))
        .collect();
    assert!(
        lines[0].starts_with(&format!(
            "ok {open}:6443 is open: seed-nodeport-proxy, API of user clusters"
        )),
        "{lines:?}"
    );
    assert!(
        lines.len() == 2 && lines[1].starts_with(&format!("ok {open}:8088 is open")),
        "{lines:?}"
    );
    let [tunneling, nodes] = &steps(&report, "not tried")[..] else {
        panic!("{report:#}")
    };
    assert!(tunneling[1].contains("is not supported where worker nodes reach"));
    assert!(nodes[1].contains("cannot be tested from one host"));

    let closed_proxy = format!("seed-nodeport-proxy={closed}");
    let report = doctor_role(4, &[&tunnel[..], &[&closed_proxy]].concat());
    let [verdict, says, fix] = steps(&report, "port").remove(1);
    assert!(
        verdict == "no" && says.starts_with(&format!("nothing listens at {closed}:8088")),
        "{says}"
    );
    assert!(fix.contains(&format!("allow {closed}:8088")), "{fix}");

    let range = [
        "user-cluster-node",
        "--expose",
        "NodePort",
        "--set",
        &closed_proxy,
    ];
    let [verdict, says, _] = step(&doctor_role(0, &range), "port");
    assert_eq!(verdict, "ok");
    assert!(
        says.contains("30000, 30691, 31383, 32075, 32767")
            && says.contains("the other ports were not tried"),
        "{says}"
    );

    let report = doctor_role(0, &["seed-cluster-node"]);
    let [_, says, fix] = steps(&report, "not tried").remove(0);
    assert!(
        says.starts_with("cloud-provider-api: ")
            && fix.contains("--set cloud-provider-api=ADDRESS"),
        "{says}"
    );
    assert!(
        doctor_role(2, &["seed-cluster-nod"])["error"]["message"]
            .as_str()
            .unwrap()
            .contains("did you mean seed-cluster-node?")
    );
    doctor_role(2, &["kkp-user", "--set", "seed=10.0.0.1"]);
}

#[test]
fn a_port_range_whose_packets_are_dropped_gets_the_verdict_no() {
    let Some(network) = Network::new() else {
        return;
    };
    if !network.drop_silently("registry", "30000:31000") {
        return;
    }
    let place = Place::new();
    let mut doctor = place.command();
    doctor.args([
        "doctor",
        "--role",
        "user-cluster-node",
        "--expose",
        "NodePort",
        "--output",
        "json",
    ]);
    doctor.args(["--set", "seed-nodeport-proxy=172.20.0.2"]);
    let run = network.on("node", &doctor).output().unwrap();
    assert_eq!(
        run.status.code(),
        Some(4),
        "{}",
        String::from_utf8_lossy(&run.stderr)
    );
    let [verdict, says, fix] = step(&serde_json::from_slice(&run.stdout).unwrap(), "port");
    assert_eq!(verdict, "no");
    // ports without a listener refuse the connection, and are not reported
    assert!(says.contains("no response from 30000, 30691: "), "{says}");
    assert!(says.contains("no answer within"), "the cause: {says}");
    assert!(
        fix.contains("allow the whole range 172.20.0.2:30000-32767 at every firewall"),
        "{fix}"
    );
}

#[test]
fn endpoints_of_the_lock_are_probed_with_and_without_a_role() {
    if !need(&["gzip"]) {
        return;
    }
    let place = Place::new();
    let [open, closed] = [3, 4].map(own_address);
    let _open = TcpListener::bind((&*open, 9443)).unwrap();
    let _upstream = locked(
        &place,
        &format!(
            "endpoints:\n- {{host: {open}, port: 9443, why: the hypervisor, from: [seed-cluster-node]}}\n\
             - {{host: {closed}, port: 9443, why: backups, from: [backup-host]}}\n\
             - {{host: '*.corp.test', port: 443, why: many}}\n"
        ),
    );
    let report = place.json(4, &["doctor"]);
    let [good, bad] = &steps(&report, "port")[..] else {
        panic!("{report:#}")
    };
    assert!(
        good[1].contains(&format!(
            "{open}:9443 is open: endpoint of the lock, the hypervisor"
        )),
        "{}",
        good[1]
    );
    assert!(bad[0] == "no" && bad[1].contains("backups"), "{}", bad[1]);
    assert_eq!(
        step(&report, "not tried")[1],
        "*.corp.test:443: many: a wildcard has no name to connect to"
    );
    let report = place.json(0, &["doctor", "--role", "seed-cluster-node"]);
    assert_eq!(steps(&report, "port").len(), 1, "{report:#}");
    place.json(4, &["doctor", "--role", "backup-host"]);
}

#[test]
fn a_seed_with_keys_of_old_releases_is_refused() {
    let place = Place::new();
    place.write(
        "seed.yaml",
        "kind: Seed\nspec: {datacenters: {eu: {node: {pause_image: p}}}}\n",
    );
    let report = place.json(4, &["doctor", "seed.yaml"]);
    let [_, says, fix] = step(&report, "key");
    assert!(
        says.contains("spec.datacenters.eu.node.pause_image") && fix == "write pauseImage",
        "{says}; {fix}"
    );
    place.write("other.yaml", "kind: Deployment\n");
    place.json(2, &["doctor", "other.yaml"]);
}

#[test]
fn names_and_the_certificates_that_should_cover_them_are_checked() {
    if !need(&["nginx", "curl", "unshare"]) {
        return;
    }
    let Some(network) = Network::behind_proxy() else {
        return;
    };
    let place = Place::new();
    let authority = Authority::new(&place, "SiteCA");
    let (certificate, key) = authority.issue(&place, &["kkp.test", "*.kkp.test"]);
    let listen = format!(
        "listen {SERVER}:443 ssl; ssl_certificate {}; ssl_certificate_key {};",
        certificate.display(),
        key.display()
    );
    let plain = format!("{SERVER}:80");
    let _nginx = network.serve("server", &nginx_command(&place, &listen, &plain), &plain);
    // the hosts file of this test. doctor looks up a wildcard with the label `landfall-doctor`; the
    // file has that name below kkp.test, but not below seed.kkp.test
    let names = [
        "kkp.test",
        "landfall-doctor.kkp.test",
        "grafana.seed.kkp.test",
    ];
    place.write(
        "hosts",
        names.map(|name| format!("{SERVER} {name}\n")).concat(),
    );
    let look = |exit: i32, names: &str| {
        place.write(
            "site.yaml",
            format!("apiVersion: landfall/v1\nkind: Site\nnames: {names}\n"),
        );
        let mut shell = place.clean("unshare");
        let landfall = place.command();
        let program = landfall.get_program().to_str().unwrap().to_owned();
        let line = format!(
            "mount --bind hosts /etc/hosts && exec {program} doctor --site site.yaml --output json"
        );
        shell
            .args(["-m", "sh", "-c", &line])
            .current_dir(place.dir());
        let run = network.on("server", &shell).output().unwrap();
        let out = String::from_utf8_lossy(&run.stdout);
        let err = String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.code(), Some(exit), "{out}\n{err}");
        serde_json::from_str::<Value>(&out).unwrap()
    };
    let lines = |report: &Value, check: &str| {
        let names = report["targets"]
            .as_array()
            .unwrap()
            .iter()
            .find(|target| target["target"] == "names")
            .unwrap();
        let steps = names["checks"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|step| step["check"] == check);
        steps
            .map(|step| {
                format!(
                    "{} {}",
                    step["verdict"].as_str().unwrap(),
                    step["says"].as_str().unwrap()
                )
            })
            .collect::<Vec<_>>()
    };

    let report = look(0, r#"[kkp.test, "*.kkp.test"]"#);
    let found = lines(&report, "name");
    assert_eq!(
        found,
        [
            format!("ok kkp.test resolves to {SERVER}"),
            format!("ok *.kkp.test (looked up as landfall-doctor.kkp.test) resolves to {SERVER}")
        ]
    );
    let found = lines(&report, "certificate");
    assert!(
        found.len() == 2
            && found[1].starts_with(
                "note the certificate at landfall-doctor.kkp.test:443 covers *.kkp.test"
            ),
        "{found:?}"
    );
    assert!(
        found[0].contains("issued by 'CN=SiteCA', which is not trusted here"),
        "{found:?}"
    );

    // three failures: the certificate's wildcard covers only one label; *.seed.kkp.test is not in
    // DNS; the certificate does not cover kibana.test (names under `certificate` need no DNS)
    let report = look(
        4,
        r#"[{dns: [grafana.seed.kkp.test]}, {dns: ["*.seed.kkp.test"]}, {dns: [kkp.test], certificate: [kibana.kkp.test, kibana.test]}]"#,
    );
    assert!(
        lines(&report, "name")[1].starts_with(
            "no *.seed.kkp.test (looked up as landfall-doctor.seed.kkp.test) does not resolve"
        ),
        "{report:#}"
    );
    let found = lines(&report, "certificate");
    assert!(found[0].starts_with("no the certificate at grafana.seed.kkp.test:443 does not cover grafana.seed.kkp.test: it is for kkp.test, *.kkp.test"), "{found:?}");
    assert!(
        found[1].starts_with("note the certificate for *.seed.kkp.test was not checked"),
        "{found:?}"
    );
    assert!(
        found[2].starts_with("note the certificate at kkp.test:443 covers kibana.kkp.test"),
        "{found:?}"
    );
    assert!(
        found[3].starts_with("no ") && found[3].contains("does not cover kibana.test"),
        "{found:?}"
    );
}
