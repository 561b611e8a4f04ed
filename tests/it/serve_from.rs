//! `landfall serve --from`: the server reads the locks, files and charts that landfall pushed to a
//! docker-registry.

use crate::support::charts::{Chart, Upstream};
use crate::support::http::{get, manifest, request};
use crate::support::images::{noise, sha256, sha256_hex};
use crate::support::peers::{Server, docker_registry, file_server, own_registry};
use crate::support::{Place, landfall_serve, need, wait_for};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::process::{Command, Stdio};

/// A web server with two releases of a file and their checksum files, and a registry.
struct Site {
    place: Place,
    registry: Server,
    _upstream: Server,
}

fn content(version: &str) -> Vec<u8> {
    noise(
        version.len() as u64 + u64::from(version.as_bytes()[1]),
        2_500_000,
    )
}

impl Site {
    fn new() -> Site {
        Site::with(docker_registry())
    }

    fn with(registry: Server) -> Site {
        let place = Place::new();
        for version in ["v1", "v2"] {
            let tool = content(version);
            place.write(&format!("www/{version}/tool"), &tool);
            place.write(&format!("www/{version}/tool.sha256"), sha256_hex(&tool));
            let manifest = format!(
                "apiVersion: landfall/v1\nkind: Manifest\nmetadata: {{name: tools}}\nfiles:\n\
                 - {{url: \"https://dl.example/{version}/tool\", checksum: \"${{url}}.sha256\", \
                 also: [\"https://dl.example/other/{version}\"], mode: \"0755\"}}\n"
            );
            place.write(&format!("{version}.yaml"), manifest);
        }
        let upstream = file_server(&place.path("www"));
        place.write(
            "site.yaml",
            format!(
                "apiVersion: landfall/v1\nkind: Site\nupstreams: {{dl.example: {{mirror: \"{}\"}}}}\n",
                upstream.url()
            ),
        );
        Site {
            place,
            registry,
            _upstream: upstream,
        }
    }

    fn mirror(&self, version: &str) -> Value {
        let manifest = format!("{version}.yaml");
        let to = format!("{}/base", self.registry.address);
        self.place.json(
            0,
            &[
                "mirror",
                "--site",
                "site.yaml",
                "-f",
                &manifest,
                "--to",
                &to,
            ],
        )
    }

    fn serve(&self) -> Server {
        let from = format!("{}/base", self.registry.address);
        landfall_serve(&self.place, &["--from", &from])
    }

    fn locks(&self) -> usize {
        let list = manifest(&self.registry.address, "base/landfall/locks", "latest");
        list.json()["layers"].as_array().unwrap().len()
    }
}

#[test]
fn a_server_whose_registry_does_not_answer_can_be_stopped() {
    let place = Place::new();
    let registry = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = registry.local_addr().unwrap().to_string();
    let mut server = place
        .command()
        .args(["serve", "--listen", "127.0.0.1:0", "--from", &address])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _request = registry.accept().unwrap();
    let pid = server.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-TERM", &pid])
            .status()
            .unwrap()
            .success()
    );
    wait_for("the end of the server", || {
        server.try_wait().unwrap().is_some()
    });
    assert!(server.wait().unwrap().success());
}

#[test]
fn files_are_served_from_a_registry() {
    if !need(&["docker-registry"]) {
        return;
    }
    let site = Site::new();
    site.mirror("v1");
    let server = site.serve();
    let tool = content("v1");
    for path in ["dl.example/v1/tool", "dl.example/other/v1"] {
        assert!(
            get(&server.address, &format!("/files/{path}")).body == tool,
            "{path}"
        );
    }
    let own = [("Host", "dl.example")];
    assert!(
        request("GET", &server.address, "/v1/tool", &own, b"").body == tool,
        "the file under its original URL"
    );
    let sum = request("GET", &server.address, "/other/v1.sha256", &own, b"");
    assert_eq!(sum.text(), sha256_hex(&tool));
    for (range, part) in [
        ("bytes=1048570-1048590", &tool[1_048_570..1_048_591]),
        ("bytes=-5", &tool[2_499_995..]),
        ("bytes=2097152-", &tool[2_097_152..]),
    ] {
        let answer = request(
            "GET",
            &server.address,
            "/v1/tool",
            &[own[0], ("Range", range)],
            b"",
        );
        assert!((answer.status, &answer.body[..]) == (206, part), "{range}");
    }

    // after a reload, the server offers content that was pushed later, and still the old content
    assert_eq!(
        get(&server.address, "/files/dl.example/v2/tool").status,
        404
    );
    site.mirror("v2");
    assert!(
        Command::new("kill")
            .args(["-HUP", &server.pid().to_string()])
            .status()
            .unwrap()
            .success()
    );
    wait_for("the file after the reload", || {
        get(&server.address, "/files/dl.example/v2/tool").status == 200
    });
    assert!(get(&server.address, "/files/dl.example/v2/tool").body == content("v2"));
    assert!(get(&server.address, "/files/dl.example/v1/tool").body == tool);
    let news = get(&server.address, "/changes").text();
    assert!(
        news.contains("added") && news.contains("https://dl.example/v2/tool"),
        "{news}"
    );

    // after the artifact of a file is deleted, the lock with the file is reported as incomplete,
    // and a request for the file gets 404
    let page = get(&server.address, "/?q=v1").text();
    assert!(
        page.contains("tools at ") && !page.contains("incomplete"),
        "{page}"
    );
    let artifact = page
        .split("<code>")
        .find(|part| part.contains("/files/dl.example/"))
        .unwrap();
    let (_, place) = artifact.split('<').next().unwrap().split_once('/').unwrap();
    let (repository, tag) = place.rsplit_once(':').unwrap();
    let head = request(
        "HEAD",
        &site.registry.address,
        &format!("/v2/base/{repository}/manifests/{tag}"),
        &[("Accept", "application/vnd.oci.image.manifest.v1+json")],
        b"",
    );
    let digest = head.header("docker-content-digest").unwrap();
    let target = format!("/v2/base/{repository}/manifests/{digest}");
    assert_eq!(
        request("DELETE", &site.registry.address, &target, &[], b"").status,
        202
    );
    let later = site.serve();
    assert!(get(&later.address, "/?q=v1").text().contains("incomplete"));
    assert_eq!(get(&later.address, "/files/dl.example/v1/tool").status, 404);
    assert!(get(&later.address, "/files/dl.example/v2/tool").body == content("v2"));
}

#[test]
fn wrong_bytes_of_the_registry_are_never_sent() {
    if !need(&["docker-registry"]) {
        return;
    }
    let site = Site::new();
    site.mirror("v1");
    let early = site.serve();
    let tool = content("v1");
    assert!(get(&early.address, "/files/dl.example/v1/tool").body == tool);
    let file = site.registry.blob_file(&sha256(&tool));
    let mut damaged = tool.clone();
    damaged[1_500_000] ^= 1;
    std::fs::write(&file, &damaged).unwrap();
    let late = site.serve();
    for _ in 0..2 {
        let answer = get(&late.address, "/files/dl.example/v1/tool");
        assert_eq!(
            answer.status,
            500,
            "no wrong byte is sent: {}",
            answer.body.len()
        );
    }
    let answer = get(&early.address, "/files/dl.example/v1/tool");
    assert_eq!(
        answer.body.len(),
        1 << 20,
        "the response ends before the changed MiB"
    );
    assert!(tool.starts_with(&answer.body));
}

#[test]
fn pushes_keep_one_list_that_names_each_lock_once() {
    if !need(&["docker-registry"]) {
        return;
    }
    let site = Site::new();
    site.mirror("v1");
    let before = site.registry.requests("\"PUT ");
    assert!(site.mirror("v1").get("unlisted").is_none());
    assert_eq!(
        (site.locks(), site.registry.requests("\"PUT ")),
        (1, before),
        "a second run writes nothing"
    );
    site.mirror("v2");
    site.mirror("v1");
    assert_eq!(site.locks(), 2);
}

#[test]
fn serving_a_registry_without_pushed_locks_fails_at_the_start() {
    if !need(&["docker-registry"]) {
        return;
    }
    let site = Site::new();
    let from = site.registry.address.clone();
    let report = site
        .place
        .json(1, &["serve", "--from", &from, "--listen", "127.0.0.1:0"]);
    let error = report["error"]["message"].as_str().unwrap();
    assert!(
        error.contains("landfall/locks:latest") && error.contains("landfall push"),
        "{error}"
    );
}

#[test]
fn a_registry_with_a_lock_that_is_not_expected_is_not_served() {
    if !need(&["docker-registry"]) {
        return;
    }
    let site = Site::new();
    let mirrored = site.mirror("v1");
    let from = format!("{}/base", site.registry.address);
    let other = sha256(b"other");
    let serve = ["serve", "--from", &from, "--listen", "127.0.0.1:0"];
    let report = site
        .place
        .json(4, &[&serve[..], &["--expect", &other]].concat());
    let error = report["error"]["message"].as_str().unwrap();
    assert!(error.contains("is not expected"), "{error}");
    let fingerprint = mirrored["lock"].as_str().unwrap();
    let expected = ["--from", &from, "--expect", &other, "--expect", fingerprint];
    landfall_serve(&site.place, &expected);
}

#[test]
fn charts_are_served_from_a_registry() {
    if !need(&["docker-registry"]) {
        return;
    }
    let up = Upstream::new();
    let place = &up.place;
    let registry = docker_registry();
    let app = Chart::new("app", "1.2.3+b", "", &[("values.yaml", "a: 1\n")]);
    let app = Chart {
        provenance: Some(b"signed\n".to_vec()),
        ..app
    };
    up.repository(std::slice::from_ref(&app));
    let more = Chart::new("more", "2.0.0", "", &[]);
    more.push(&up.images, &up.registry.address, "team/more");
    let oci = format!("oci://{}/team/more:2.0.0", up.registry.address);
    up.manifest(
        &json!([oci, {"repo": up.repo(), "name": "app", "version": "1.2.3+b"}]),
        "",
    );
    let to = format!("{}/base", registry.address);
    let mirror = ["mirror", "-f", "m.yaml", "--to", &to, "--receipt", "r.json"];
    let mirrored = place.json(0, &mirror);
    let receipt: Value = serde_json::from_str(&place.read("r.json")).unwrap();
    let locked = place.json(0, &["lock", "-f", "m.yaml"]);
    assert!(locked["lock"].is_string(), "{locked:#}");
    assert_eq!(
        (&mirrored["lock"], &receipt["lock"]),
        (&locked["lock"], &locked["lock"]),
        "{mirrored:#}"
    );
    let server = landfall_serve(place, &["--from", &to]);
    assert!(server.log().contains("2 charts"), "{}", server.log());
    let index = get(&server.address, "/charts/index.yaml").text();
    for chart in [&app, &more] {
        assert!(
            index.contains(&chart.digest()["sha256:".len()..]),
            "{index}"
        );
        assert_eq!(
            get(&server.address, &format!("/charts/{}", chart.file())).body,
            chart.archive
        );
    }
    assert_eq!(
        get(&server.address, "/charts/app-1.2.3+b.tgz.prov").body,
        b"signed\n"
    );
    assert!(get(&server.address, "/?q=app").text().contains("helm pull"));
    // a chart whose blob the registry lost is not served; the other chart is still served
    std::fs::remove_file(registry.blob_file(&app.digest())).unwrap();
    let later = landfall_serve(place, &["--from", &to]);
    assert_ne!(get(&later.address, "/charts/app-1.2.3+b.tgz").status, 200);
    assert_eq!(
        get(&later.address, "/charts/more-2.0.0.tgz").body,
        more.archive
    );
}

#[test]
fn push_says_when_a_server_must_read_the_list_again() {
    let site = Site::with(own_registry());
    for (version, is_new) in [("v1", true), ("v1", false), ("v2", true)] {
        let place = &site.place;
        let manifest = format!("{version}.yaml");
        place.ok(&[
            "lock",
            "-f",
            &manifest,
            "--store",
            "s",
            "--site",
            "site.yaml",
        ]);
        place.ok(&["pull", "--store", "s", "--site", "site.yaml"]);
        let mut push = place.command();
        let push = push.args(["push", "--store", "s", "--to", &site.registry.address]);
        let printed = push.output().unwrap();
        let printed = String::from_utf8_lossy(&printed.stderr).into_owned();
        let note = "landfall/locks:latest lists new content: a server that runs \
                    `landfall serve --from` reads it on SIGHUP";
        assert_eq!(printed.contains(note), is_new, "{printed}");
    }
}
