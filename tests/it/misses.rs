//! What nodes asked for and did not get: the list of `landfall serve`, and the logs of others.

use crate::support::http::{get, request};
use crate::support::peers::{Server, docker_registry, nginx};
use crate::support::{Place, landfall_serve, need};
use base64::Engine as _;

/// A place with an empty lock and the site of a registry at 172.20.0.2:5000.
fn place() -> Place {
    let place = Place::new();
    place.write("empty.lock", "version: 1\n");
    place
}

#[test]
fn the_server_lists_what_clients_asked_for_in_vain() {
    let place = place();
    std::fs::create_dir(place.path("pushed")).unwrap();
    let server = landfall_serve(&place, &["--writable", "pushed"]);
    let at = &server.address;
    for target in [
        "/v2/team/app/manifests/v1?ns=quay.io&token=s3cr3t",
        "/v2/team/app/manifests/v1?ns=quay.io",
        "/v2/other/manifests/v2",
        "/files/dl.k8s.io/v1.35.0/kubelet",
        "/charts/app-1.0.tgz",
        "/favicon.ico",
        "/v2/team/app/blobs/sha256:00",
        "/v2/a/manifests/%3Cscript%3E",
        "/files/h/%3Cscript%3Ealert(1)%3C/script%3E",
    ] {
        assert!([404, 400].contains(&get(at, target).status), "{target}");
    }
    // an address that the server does not know, as behind a forwarded port
    let by_address = [("Host", "172.20.0.9:5000")];
    for target in ["/v2/more/manifests/v3", "/favicon.ico"] {
        let answer = request("GET", at, target, &by_address, b"");
        assert_eq!(answer.status, 404, "{target}");
    }
    let listed = |document: &serde_json::Value| -> Vec<(String, u64)> {
        let misses = document["misses"].as_array().unwrap().iter();
        misses
            .map(|miss| {
                let name = miss["name"].as_str().unwrap().to_owned();
                assert_eq!(miss["clients"], serde_json::json!(["127.0.0.1"]));
                assert!(miss["first"].as_str() <= miss["last"].as_str());
                (name, miss["count"].as_u64().unwrap())
            })
            .collect()
    };
    let document = get(at, "/misses.json").json();
    assert!(!document.to_string().contains("s3cr3t"));
    let names = listed(&document);
    assert_eq!(names[0], ("quay.io/team/app:v1".into(), 2));
    for name in ["other:v2", "more:v3", "https://dl.k8s.io/v1.35.0/kubelet"] {
        assert!(names.contains(&(name.into(), 1)), "{names:?}");
    }
    assert!(!names.iter().any(|(name, _)| name.contains("favicon")));
    let page = get(at, "/misses").text();
    assert!(page.contains("<code>quay.io/team/app:v1</code>"), "{page}");
    assert!(!page.contains("<script>alert"), "{page}");
    // the document drafts a manifest
    place.write("misses.json", document.to_string());
    let draft = place.ok(&["discover", "--access-log", "misses.json"]);
    for line in [
        "- quay.io/team/app:v1  # misses.json:1",
        "- url: \"https://dl.k8s.io/v1.35.0/kubelet\"",
        "# - other:v2",
    ] {
        assert!(draft.contains(line), "{line}: {draft}");
    }
    // what was pushed meanwhile is no longer missing
    let index = "application/vnd.oci.image.index.v1+json";
    let manifest = format!("{{\"schemaVersion\":2,\"mediaType\":\"{index}\",\"manifests\":[]}}");
    let headers = [("content-type", index)];
    let answer = request(
        "PUT",
        at,
        "/v2/other/manifests/v2",
        &headers,
        manifest.as_bytes(),
    );
    assert_eq!(answer.status, 201, "{}", answer.text());
    let names = listed(&get(at, "/misses.json").json());
    assert!(
        !names.iter().any(|(name, _)| name == "other:v2"),
        "{names:?}"
    );
}

#[test]
fn a_miss_at_a_mirror_with_a_path_has_the_name_at_the_source() {
    let place = place();
    place.write(
        "site.yaml",
        "apiVersion: landfall/v1\nkind: Site\nregistry: {address: 'r.test:5000', keepHost: true}\n",
    );
    for args in [&["--site", "site.yaml"][..], &[]] {
        let server = landfall_serve(&place, &[&["--writable", "pushed"][..], args].concat());
        // as containerd asks with the settings of `render containerd`
        let target = "/v2/quay.io/team/app/manifests/v1?ns=quay.io";
        assert_eq!(get(&server.address, target).status, 404);
        let misses = get(&server.address, "/misses.json").json();
        assert_eq!(misses["misses"][0]["name"], "quay.io/team/app:v1");
    }
}

#[test]
fn clients_are_named_only_to_users() {
    let place = place();
    place.write("users", format!("anna:{}\n", bcrypt::hash("a", 4).unwrap()));
    std::fs::create_dir(place.path("pushed")).unwrap();
    let account = base64::engine::general_purpose::STANDARD.encode("anna:a");
    let header = format!("Basic {account}");
    let headers = [("authorization", header.as_str())];
    for more in [&[][..], &["--anonymous-read"]] {
        let args = ["--writable", "pushed", "--htpasswd", "users"];
        let server = landfall_serve(&place, &[&args, more].concat());
        for target in ["/misses", "/misses.json"] {
            let status = get(&server.address, target).status;
            assert_eq!(status, 401, "{target} {more:?}");
        }
        assert_eq!(get(&server.address, "/").status, 200);
        let answer = request("GET", &server.address, "/misses.json", &headers, b"");
        assert_eq!(
            answer.json(),
            serde_json::json!({"misses": [], "dropped": 0})
        );
    }
}

/// Saves the log of `server` in `place` when it has a line that contains `word`.
fn save_log(place: &Place, server: &Server, word: &str) {
    for _ in 0..600 {
        let log = server.log();
        if log.contains(word) {
            place.write("log", log);
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("{word} is not in the log:\n{}", server.log());
}

#[test]
fn the_logs_of_docker_registry_and_nginx_are_read() {
    if !need(&["docker-registry", "nginx"]) {
        return;
    }
    let place = place();
    let registry = docker_registry();
    for target in [
        "/v2/team/app/manifests/v1?ns=quay.io",
        "/v2/team/other/manifests/v1",
    ] {
        assert_eq!(get(&registry.address, target).status, 404);
    }
    save_log(&place, &registry, "team/other");
    let audit = |more: &[&str]| {
        let args = ["audit", "--lock", "empty.lock", "--access-log", "log"];
        place.json(4, &[&args, more].concat())
    };
    let names = |report: &serde_json::Value, list: &str| -> Vec<String> {
        let list = report[list].as_array().unwrap().iter();
        list.map(|one| one["reference"].as_str().unwrap().to_owned())
            .collect()
    };
    let report = audit(&[]);
    assert_eq!(names(&report, "missing"), ["quay.io/team/app:v1"]);
    assert_eq!(names(&report, "undecided"), ["team/other:v1"]);
    let report = audit(&["--to", "172.20.0.2:5000"]);
    let both = ["quay.io/team/app:v1", "172.20.0.2:5000/team/other:v1"];
    assert_eq!(names(&report, "missing"), both);

    std::fs::create_dir(place.path("www")).unwrap();
    let server = nginx(&place.path("www"));
    assert_eq!(
        get(&server.address, "/files/dl.k8s.io/v1.35.0/kubelet").status,
        404
    );
    save_log(&place, &server, "kubelet");
    let report = audit(&[]);
    assert_eq!(
        names(&report, "missing"),
        ["https://dl.k8s.io/v1.35.0/kubelet"]
    );
}

#[test]
fn a_file_without_requests_is_refused() {
    let place = place();
    place.write("log", "a: 1\n");
    let args = ["--access-log", "log"];
    for verb in [&["discover"][..], &["audit", "--lock", "empty.lock"]] {
        let error = place.json(2, &[verb, &args].concat())["error"].to_string();
        assert!(
            error.contains("log has no line of an access log") && error.contains("docker-registry"),
            "{error}"
        );
    }
    let report = place.json(2, &["discover", "--access-log", "nothing"]);
    let error = report["error"].to_string();
    assert!(error.contains("cannot read nothing"), "{error}");
}
