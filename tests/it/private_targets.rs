//! A response of a public host must not lead to a private address unless the site allows it:
//! redirects, token realms, the `Location` of uploads, foreign layers, and URLs in indexes of
//! charts and packages. Hosts behind a proxy count as public, so a proxy on loopback stands in for
//! the internet.

use crate::support::Place;
use crate::support::apt::{AptUpstream, deb};
use crate::support::charts::Chart;
use crate::support::images::{noise, sha256};
use crate::support::reverse_proxy::{ProxyAction, RecordedRequest, ReverseProxy};
use serde_json::{Value, json};

/// A folder whose proxy stands in for the internet, and a server at a private address, which must
/// not be contacted unless the site allows it.
struct World {
    place: Place,
    _internet: ReverseProxy,
    inside: ReverseProxy,
}

impl World {
    /// `answer` responds to a request to the internet. Its second argument is the private address.
    fn new(
        answer: impl Fn(&RecordedRequest, &str) -> ProxyAction + Send + Sync + 'static,
    ) -> World {
        let place = Place::new();
        let inside = ReverseProxy::new("", |_| {
            ProxyAction::Answer(200, Vec::new(), "a secret".into())
        });
        let address = inside.address.clone();
        let internet = ReverseProxy::new("", move |request| answer(request, &address));
        place.set("http_proxy", &format!("http://{}", internet.address));
        World {
            place,
            _internet: internet,
            inside,
        }
    }

    fn manifest(&self, items: &str) {
        self.place.write(
            "m.yaml",
            format!("apiVersion: landfall/v1\nkind: Manifest\n{items}\n"),
        );
    }

    fn allow(&self, entries: &str) {
        let site = format!("apiVersion: landfall/v1\nkind: Site\nprivateTargets: [{entries}]\n");
        self.place.write("site.yaml", site);
    }

    fn lock(&self, exit: i32, more: &[&str]) -> Value {
        let plain = ["--plain-http", "public.test"];
        self.place.json(
            exit,
            &[
                &["lock", "-f", "m.yaml", "--store", "store"],
                &plain[..],
                more,
            ]
            .concat(),
        )
    }

    /// Asserts that the private server got no request, and that the report names the public host
    /// and the site key that allows the address.
    fn assert_refused(&self, report: &Value) {
        let json = report.to_string();
        assert!(
            json.contains("public.test:80, a public host, leads to"),
            "{report:#}"
        );
        assert!(
            json.contains("add `privateTargets: [\\\"127.0.0.1\\\"]` to the site"),
            "{report:#}"
        );
        assert_eq!(self.inside.requests().len(), 0, "{report:#}");
    }
}

fn found(location: String) -> ProxyAction {
    ProxyAction::Answer(302, vec![("Location".into(), location)], String::new())
}

#[test]
fn a_redirect_of_a_public_host_to_a_private_address_is_refused_unless_the_site_allows_it() {
    let world = World::new(|request, inside| match &*request.target {
        "http://public.test/address" => found(format!("http://{inside}/x")),
        // the name `localhost` bypasses the proxy, and resolves to loopback
        "http://public.test/name" => found(format!(
            "http://{}/x",
            inside.replace("127.0.0.1", "localhost")
        )),
        "http://public.test/around" => found("http://other.test/address".into()),
        "http://other.test/address" => found(format!("http://{inside}/x")),
        _ => ProxyAction::status(404),
    });
    for path in ["address", "name", "around"] {
        world.manifest(&format!("files: [{{url: \"http://public.test/{path}\"}}]"));
        let report = world.lock(1, &[]);
        let json = report.to_string();
        let host = if path == "around" {
            "other.test:80"
        } else {
            "public.test:80"
        };
        assert!(
            json.contains(&format!("{host}, a public host, leads to")),
            "{report:#}"
        );
        assert!(json.contains("`privateTargets:"), "{report:#}");
        assert_eq!(world.inside.requests().len(), 0, "{report:#}");
    }
    world.allow("10.0.0.0/8, 127.0.0.0/9, \"::1\"");
    for path in ["address", "name"] {
        world.manifest(&format!("files: [{{url: \"http://public.test/{path}\"}}]"));
        world.lock(0, &["--site", "site.yaml", "--refresh"]);
    }
    assert!(world.inside.requests().len() >= 2);
}

#[test]
fn a_private_host_may_redirect_to_private_addresses() {
    let world = World::new(|_, _| ProxyAction::status(404));
    let inside = world.inside.address.clone();
    let private = ReverseProxy::new("", move |_| {
        found(format!(
            "http://{}/x",
            inside.replace("127.0.0.1", "localhost")
        ))
    });
    world.manifest(&format!(
        "files: [{{url: \"http://{}/tool\"}}]",
        private.address
    ));
    world.lock(0, &[]);
    assert!(!world.inside.requests().is_empty());
}

#[test]
fn a_token_realm_at_a_private_address_is_refused() {
    let world = World::new(|_, inside| {
        let challenge = format!("Bearer realm=\"http://{inside}/token\",service=\"r\"");
        ProxyAction::Answer(
            401,
            vec![("WWW-Authenticate".into(), challenge)],
            String::new(),
        )
    });
    world.manifest("images: [\"public.test/app:v1\"]");
    let report = world.lock(1, &[]);
    world.assert_refused(&report);
}

#[test]
fn an_upload_location_at_a_private_address_is_refused() {
    let world = World::new(|request, inside| {
        match (&*request.method, request.target.contains("/uploads/")) {
            ("POST", true) => ProxyAction::Answer(
                202,
                vec![("Location".into(), format!("http://{inside}/upload"))],
                String::new(),
            ),
            ("GET", _) if request.target.ends_with("/v2/") => {
                ProxyAction::Answer(200, Vec::new(), "{}".into())
            }
            _ => ProxyAction::refuse(404, "NAME_UNKNOWN", "unknown"),
        }
    });
    world.place.write("www/tool", noise(1, 3000));
    let files = crate::support::peers::file_server(&world.place.path("www"));
    world.manifest(&format!(
        "files: [{{url: \"http://{}/tool\"}}]",
        files.address
    ));
    world.lock(0, &[]);
    world.place.json(0, &["pull", "--store", "store"]);
    let push = [
        "push",
        "--to",
        "public.test",
        "--plain-http",
        "public.test",
        "--store",
        "store",
    ];
    let report = world.place.json(1, &push);
    world.assert_refused(&report);
}

#[test]
fn urls_of_foreign_layers_at_private_addresses_are_refused() {
    let config =
        r#"{"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":[]}}"#;
    let layer = sha256(b"a secret");
    let world = World::new(move |request, inside| {
        let manifest = json!({
            "schemaVersion": 2, "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
            "config": {"mediaType": "application/vnd.docker.container.image.v1+json", "size": config.len(),
                "digest": sha256(config.as_bytes())},
            "layers": [{"mediaType": "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip", "size": 8,
                "digest": layer, "urls": [format!("http://{inside}/layer")]}],
        });
        let manifest = manifest.to_string();
        let kind = "application/vnd.docker.distribution.manifest.v2+json".to_owned();
        let headers = vec![
            ("Content-Type".to_owned(), kind),
            (
                "Docker-Content-Digest".to_owned(),
                sha256(manifest.as_bytes()),
            ),
        ];
        match &request.target {
            target if target.contains("/referrers/") => {
                ProxyAction::refuse(404, "NOT_FOUND", "no such page")
            }
            target if target.ends_with("/v2/") => ProxyAction::Answer(200, Vec::new(), "{}".into()),
            target
                if target.contains("/manifests/v1")
                    || target.ends_with(&sha256(manifest.as_bytes())) =>
            {
                ProxyAction::Answer(200, headers, manifest)
            }
            target if target.ends_with(&sha256(config.as_bytes())) => {
                ProxyAction::Answer(200, Vec::new(), config.into())
            }
            _ => ProxyAction::refuse(404, "BLOB_UNKNOWN", "unknown"),
        }
    });
    world.manifest("images: [\"public.test/app:v1\"]");
    world.lock(0, &[]);
    let pull = ["pull", "--store", "store", "--plain-http", "public.test"];
    let report = world.place.json(1, &pull);
    world.assert_refused(&report);
    // if the site allows the address, the layer is downloaded from it
    world.allow("127.0.0.1");
    world
        .place
        .json(0, &[&pull[..], &["--site", "site.yaml"]].concat());
    assert_eq!(world.inside.count("GET", "/layer"), 1);
}

#[test]
fn urls_in_chart_indexes_at_private_addresses_are_refused() {
    for scheme in ["http", "oci"] {
        let world = World::new(move |request, inside| {
            match request.target.ends_with("/index.yaml") {
                true => {
                    let url = match scheme {
                        "http" => format!("http://{inside}/app-1.0.0.tgz"),
                        _ => format!("oci://{inside}/app:1.0.0"),
                    };
                    let index = format!(
                        "apiVersion: v1\nentries:\n  app:\n  - version: 1.0.0\n    urls: [\"{url}\"]\n"
                    );
                    ProxyAction::Answer(200, Vec::new(), index)
                }
                false => ProxyAction::status(404),
            }
        });
        world
            .manifest("charts: [{repo: \"http://public.test/charts\", name: app, version: 1.0.0}]");
        let report = world.lock(1, &[]);
        world.assert_refused(&report);
    }
}

#[test]
fn chart_dependencies_at_private_addresses_are_refused() {
    let world =
        World::new(
            |request, inside| match request.target.rsplit_once('/').map(|(_, name)| name) {
                Some("index.yaml") => {
                    let entry = "app:\n  - {version: 1.0.0, urls: [app-1.0.0.tgz]}\n";
                    ProxyAction::Answer(
                        200,
                        Vec::new(),
                        format!("apiVersion: v1\nentries:\n  {entry}"),
                    )
                }
                Some("app-1.0.0.tgz") => {
                    let dependency = format!(
                        "{{name: dep, version: 1.0.0, repository: \"http://{inside}/charts\"}}"
                    );
                    ProxyAction::Bytes(
                        Chart::new(
                            "app",
                            "1.0.0",
                            &format!("dependencies: [{dependency}]\n"),
                            &[],
                        )
                        .archive,
                    )
                }
                _ => ProxyAction::status(404),
            },
        );
    world.manifest("charts: [{repo: \"http://public.test/charts\", name: app, version: 1.0.0}]");
    let report = world.lock(1, &[]);
    world.assert_refused(&report);
    world.allow("127.0.0.1");
    world.lock(1, &["--site", "site.yaml", "--refresh"]);
    assert_eq!(world.inside.count("GET", "/charts/index.yaml"), 1);
}

#[test]
fn package_snapshots_at_private_addresses_are_not_used() {
    let Some(up) = AptUpstream::new() else { return };
    let inside = ReverseProxy::new("", |_| ProxyAction::status(404));
    let internet = ReverseProxy::new(&up.server.address, |request| {
        ProxyAction::As(
            request
                .target
                .strip_prefix("http://public.test")
                .unwrap_or("/none")
                .to_owned(),
        )
    });
    up.place
        .set("http_proxy", &format!("http://{}", internet.address));
    up.build("pool/stable", &[deb("app", "1", "")]);
    let snapshots = format!("Snapshots: http://{}/@SNAPSHOTID@/\n", inside.address);
    up.suite(
        "stable",
        &format!("Date: Sat, 14 Nov 2026 00:00:00 UTC\n{snapshots}"),
    );
    let wanted = "url: \"http://public.test/r\", suite: stable, components: [main], key: key.asc";
    up.manifest(&format!("{wanted}, install: [app], base: none"));
    up.lock(0, &[]);
    assert_eq!(inside.requests().len(), 0);
    let site = "apiVersion: landfall/v1\nkind: Site\nprivateTargets: [\"127.0.0.1\"]\n";
    up.place.write("site.yaml", site);
    up.lock(0, &["--refresh", "--site", "site.yaml"]);
    assert!(!inside.requests().is_empty());
}

#[test]
fn package_mirrors_at_private_addresses_are_refused() {
    let world = World::new(
        |request, inside| match request.target.ends_with("/mirrorlist") {
            true => ProxyAction::Answer(200, Vec::new(), format!("http://{inside}/repo\n")),
            false => ProxyAction::status(404),
        },
    );
    let run = |exit| {
        let yum = "packages:\n- yum: {url: \"http://public.test/repo\", mirrorlist: \"http://public.test/mirrorlist\", \
                   key: key.asc, install: [app], base: none}";
        world.manifest(yum);
        let mut command = world.place.command();
        command.args([
            "lock",
            "-f",
            "m.yaml",
            "--store",
            "store",
            "--progress",
            "none",
        ]);
        let run = command.output().unwrap();
        let printed = String::from_utf8_lossy(&run.stderr).into_owned();
        assert_eq!(run.status.code(), Some(exit), "{printed}");
        printed
    };
    let key = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/packages/key.asc");
    std::fs::copy(key, world.place.path("key.asc")).unwrap();
    let printed = run(1);
    assert!(
        printed.contains("a mirror is not used")
            && printed.contains("public.test:80, a public host"),
        "{printed}"
    );
    assert_eq!(world.inside.requests().len(), 0, "{printed}");
}

#[test]
fn an_invalid_host_gets_no_request_and_no_firewall_rule() {
    let world =
        World::new(
            |request, _| match request.target.rsplit_once('/').map(|(_, name)| name) {
                Some("star") => found("http://*.*/x".into()),
                Some("flag") => found("http://-i/x".into()),
                Some("quote") => found("http://a\"b.test/x".into()),
                _ => ProxyAction::Answer(200, Vec::new(), "a tool".into()),
            },
        );
    let files = ["star", "flag", "quote", "tool"]
        .map(|name| format!("{{url: \"http://public.test/{name}\"}}"));
    world.manifest(&format!("files: [{}]", files.join(", ")));
    let report = world.lock(3, &[]);
    assert_eq!(
        report
            .to_string()
            .matches("its host is neither a DNS name nor an address")
            .count(),
        3,
        "{report:#}"
    );
    let hosts: Vec<&str> = report["hosts"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|row| row["host"].as_str())
        .collect();
    assert_eq!(hosts, ["public.test"], "{report:#}");
    let record = world.place.read("store/.landfall/egress");
    assert!(
        !record.contains("*.*") && !record.contains("-i"),
        "{record}"
    );

    // an invalid host that an earlier release recorded is not in any rule either
    let poisoned = record.replacen(
        "\"hosts\": [",
        "\"hosts\": [{\"host\": \"*.*\", \"port\": 443, \"scheme\": \"https\", \
        \"why\": [\"redirect\"], \"namedBy\": [\"public.test:80\"], \"by\": [\"pull\"]},",
        1,
    );
    assert_ne!(poisoned, record);
    world.place.write("store/.landfall/egress", poisoned);
    for format in [
        "squid",
        "cilium",
        "networkpolicy",
        "csv",
        "markdown",
        "text",
        "json",
    ] {
        let rules = world
            .place
            .ok(&["egress", "--store", "store", "--format", format]);
        assert!(
            rules.contains("public.test") && !rules.contains("*.*"),
            "{format}: {rules}"
        );
    }
}
