//! Authentication: Basic and Bearer, accounts from files, variables, a helper and the site, and
//! refusals.

use crate::support::gate::Gate;
use crate::support::http;
use crate::support::peers::{Server, docker_registry, docker_registry_with, nginx_with_tls};
use crate::support::pki::Authority;
use crate::support::tokens::Tokens;
use crate::support::{Images, Place, free_port, need, skopeo};
use base64::Engine as _;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

/// `htpasswd -nbB puller 'p@ss:word'`
const HTPASSWD: &str = "puller:$2y$05$LATlS73W.R.eF7/IR5XdVuCOgj9GGLqQcaRji6lexBxUk5Ho27Wry\n";
const USER: &str = "puller";
const PASSWORD: &str = "p@ss:word";

/// A folder, and an empty registry that requires a password.
fn guarded() -> (Place, Server) {
    let place = Place::new();
    let passwords = place.write("htpasswd", HTPASSWD);
    let more = format!(
        "auth: {{htpasswd: {{realm: r, path: \"{}\"}}}}",
        passwords.display()
    );
    let server = docker_registry_with(&more);
    (place, server)
}

fn images(place: &Place) -> (Images, Vec<Value>) {
    let images = Images::new(place.path("layout"));
    let base = images.layer(&[("base", b"shared by all")]);
    let list = (0..4).map(|n| {
        let own = images.layer(&[("own", format!("image {n}").as_bytes())]);
        images.image("linux/amd64", &[base.clone(), own])
    });
    let list = list.collect();
    (images, list)
}

/// A registry without authentication that has four images, and a manifest that lists them.
fn sources(place: &Place) -> (Server, String) {
    let open = docker_registry();
    let (images, list) = images(place);
    let mut manifest =
        "apiVersion: landfall/v1\nkind: Manifest\nmetadata: {name: auth}\nimages:\n".to_owned();
    for (n, image) in list.iter().enumerate() {
        images.push(&open.address, &format!("team/app{n}"), "v1", image);
        manifest += &format!("- {}/team/app{n}:v1\n", open.address);
    }
    (open, manifest)
}

fn encoded(password: &str) -> String {
    base64::engine::general_purpose::STANDARD.encode(format!("{USER}:{password}"))
}

fn auth_file(host: &str, password: &str) -> String {
    json!({"auths": {host: {"auth": encoded(password)}}}).to_string()
}

/// Counts requests in the log of the registry: those with the account of [`USER`], and landfall's
/// requests, with or without an account, that the registry refused with 401.
fn attempts(server: &Server) -> (usize, usize) {
    let log = server.log();
    let mine: Vec<&str> = log
        .lines()
        .filter(|line| line.contains(&format!("- {USER} [")))
        .collect();
    let ours = |line: &&str| line.contains("\" 401 ") && line.contains("landfall/");
    let refused = log.lines().filter(ours).count();
    (mine.len(), refused)
}

#[test]
fn basic_credentials_are_read_from_files_variables_a_helper_and_the_site() {
    if !need(&["docker-registry", "gzip"]) {
        return;
    }
    let (place, server) = guarded();
    let (_open, manifest) = sources(&place);
    place.write("m.yaml", manifest);
    let host = server.address.clone();
    let site = format!(
        "apiVersion: landfall/v1\nkind: Site\nregistry:\n  address: {host}\n  plainHTTP: true\n  credentials: "
    );
    let env_site = place.write(
        "env-site.yaml",
        format!("{site}{{usernameEnv: REG_USER, passwordEnv: REG_TOKEN}}\n"),
    );
    let file_site = place.write("file-site.yaml", format!("{site}{{file: secret}}\n"));
    place.write("secret", format!("{USER}:{PASSWORD}\n"));
    let helper = place.write(
        "bin/docker-credential-landfalltest",
        format!("#!/bin/sh\nread host\n[ \"$host\" = \"{host}\" ] || {{ echo credentials not found; exit 1; }}\necho '{{\"Username\":\"{USER}\",\"Secret\":\"{PASSWORD}\"}}'\n"),
    );
    std::fs::set_permissions(&helper, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!(
        "{}:{}",
        place.path("bin").display(),
        std::env::var("PATH").unwrap()
    );
    let docker = |content: &str| place.write("home/.docker/config.json", content);
    let auth = auth_file(&host, PASSWORD);
    let good = place.write("podman.json", &auth);

    type Setting<'a> = (
        &'a str,
        Vec<(&'a str, String)>,
        Option<&'a std::path::Path>,
        Option<String>,
    );
    let settings: Vec<Setting> = vec![
        ("docker's config.json", vec![], None, Some(auth.clone())),
        (
            "a namespace key",
            vec![],
            None,
            Some(auth_file(&format!("{host}/one"), PASSWORD)),
        ),
        (
            "DOCKER_AUTH_CONFIG",
            vec![("DOCKER_AUTH_CONFIG", auth.clone())],
            None,
            None,
        ),
        (
            "REGISTRY_AUTH_FILE",
            vec![("REGISTRY_AUTH_FILE", good.display().to_string())],
            None,
            None,
        ),
        (
            "a helper",
            vec![("PATH", path)],
            None,
            Some(json!({"credHelpers": {&host: "landfalltest"}}).to_string()),
        ),
        (
            "the site's variables",
            vec![("REG_USER", USER.into()), ("REG_TOKEN", PASSWORD.into())],
            Some(&env_site),
            None,
        ),
        ("the site's file", vec![], Some(&file_site), None),
    ];
    for (at, (what, variables, site, config)) in settings.into_iter().enumerate() {
        docker(config.as_deref().unwrap_or("{}"));
        let prefix = if what == "a namespace key" {
            "one".into()
        } else {
            format!("p{at}")
        };
        let mut command = place.command();
        command.args([
            "mirror",
            "-f",
            "m.yaml",
            "--to",
            &format!("{host}/{prefix}"),
            "--output",
            "json",
        ]);
        match site {
            Some(site) => command.arg("--site").arg(site),
            None => command.args(["--plain-http", &host]),
        };
        let output = command.envs(variables).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr).into_owned()
            + &String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{what}: {printed}");
        assert!(
            !printed.contains(PASSWORD) && !printed.contains(&encoded(PASSWORD)),
            "{what}: {printed}"
        );
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["totals"]["done"], 4, "{what}");
    }
}

#[test]
fn a_wrong_password_is_tried_once_and_its_account_is_named() {
    if !need(&["docker-registry", "gzip"]) {
        return;
    }
    let (place, server) = guarded();
    let (_open, manifest) = sources(&place);
    place.write("m.yaml", manifest);
    let config = place.write(
        "home/.docker/config.json",
        auth_file(&server.address, "wrong"),
    );
    let to = server.address.as_str();
    let report = place.json(
        1,
        &[
            "mirror",
            "-f",
            "m.yaml",
            "--to",
            to,
            "--plain-http",
            to,
            "--jobs",
            "32",
        ],
    );
    let message = report["error"]["message"].as_str().unwrap();
    assert!(
        message.contains(&format!("account '{USER}' from {}", config.display())),
        "{message}"
    );
    assert_eq!(report["error"]["side"], "destination");
    // one request without an account, and one with the account
    assert_eq!(attempts(&server).1, 2, "{}", server.log());
}

#[test]
fn the_message_for_missing_credentials_has_a_fix() {
    if !need(&["docker-registry", "gzip"]) {
        return;
    }
    let (place, server) = guarded();
    let (_open, manifest) = sources(&place);
    place.write("m.yaml", manifest);
    let to = server.address.as_str();
    let report = place.json(
        1,
        &["mirror", "-f", "m.yaml", "--to", to, "--plain-http", to],
    );
    let message = report["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("there is no account for it; sign in with docker or podman login"),
        "{message}"
    );
    // if plain http was only detected, no password is sent; the message names the flag that
    // permits sending one
    let report = place.json(1, &["mirror", "-f", "m.yaml", "--to", to]);
    let message = report["error"]["message"].as_str().unwrap();
    assert!(message.contains("--plain-http"), "{message}");
    // with a configured account, plain http is not probed
    place.write("home/.docker/config.json", auth_file(to, PASSWORD));
    let report = place.json(1, &["mirror", "-f", "m.yaml", "--to", to]);
    let message = report["error"]["message"].as_str().unwrap();
    assert!(message.contains(&format!("--plain-http {to}")), "{message}");
    assert_eq!(attempts(&server).0, 0, "{}", server.log());
}

#[test]
fn bearer_tokens_are_fetched_once_for_all_workers() {
    if !need(&["docker-registry", "gzip"]) {
        return;
    }
    let place = Place::new();
    let (open, manifest) = sources(&place);
    let gate = Gate::new(&open.address, None, usize::MAX);
    place.write("m.yaml", manifest.replace(&open.address, &gate.address));
    place.ok(&["--store", "s", "lock", "-f", "m.yaml"]);
    place.ok(&["--store", "s", "pull"]);
    let seen = gate.seen();
    // lock and pull are two processes; each requests one token for each of the four repositories
    let mut tokens = seen.tokens.clone();
    tokens.sort();
    tokens.dedup();
    assert_eq!(
        (tokens.len(), seen.tokens.len()),
        (4, 8),
        "{:?}",
        seen.tokens
    );
    assert!(
        tokens[0].starts_with("nobody repository:team/app0:pull"),
        "{tokens:?}"
    );
    assert_eq!(seen.refused, 2, "one challenge for each process");
}

#[test]
fn bearer_tokens_of_an_account_are_renewed_when_they_expire() {
    if !need(&["docker-registry", "gzip"]) {
        return;
    }
    let place = Place::new();
    let (open, manifest) = sources(&place);
    let registry = docker_registry();
    let account = format!("{USER}:{PASSWORD}");
    // each token is valid for three requests: pushes get a 401 in between and continue
    let gate = Gate::new(&registry.address, Some(&account), 3);
    place.write("m.yaml", manifest);
    place.write(
        "home/.docker/config.json",
        auth_file(&gate.address, PASSWORD),
    );
    let to = gate.address.as_str();
    let report = place.json(
        0,
        &["mirror", "-f", "m.yaml", "--to", to, "--plain-http", to],
    );
    assert_eq!(report["totals"]["done"], 4);
    let seen = gate.seen();
    assert!(
        seen.refused > 4 && seen.tokens.iter().all(|line| line.starts_with(USER)),
        "{seen:?}"
    );
    for n in 0..4 {
        let repository = format!("team/app{n}");
        let ours = http::manifest(&open.address, &repository, "v1");
        let theirs = http::manifest(&registry.address, &repository, "v1");
        assert_eq!((theirs.status, theirs.body), (200, ours.body));
    }
}

#[test]
fn the_path_of_a_mirror_is_part_of_scope_and_credentials_lookup() {
    if !need(&["docker-registry", "gzip"]) {
        return;
    }
    let place = Place::new();
    let (open, _) = sources(&place);
    let gate = Gate::new(
        &open.address,
        Some(&format!("{USER}:{PASSWORD}")),
        usize::MAX,
    );
    let site = format!(
        "apiVersion: landfall/v1\nkind: Site\nupstreams:\n  one.test: {{mirror: \"http://{}/team\"}}\n",
        gate.address
    );
    place.write("site.yaml", site);
    place.write(
        "home/.docker/config.json",
        auth_file(&format!("{}/team", gate.address), PASSWORD),
    );
    place.write(
        "m.yaml",
        "apiVersion: landfall/v1\nkind: Manifest\nmetadata: {name: t}\nimages: [one.test/app0:v1]\n",
    );
    place.json(
        0,
        &[
            "lock",
            "-f",
            "m.yaml",
            "--site",
            "site.yaml",
            "--store",
            "s",
        ],
    );
    assert_eq!(
        gate.seen().tokens,
        [format!("{USER} repository:team/app0:pull")]
    );
    let hosts = &place.json(0, &["pull", "--site", "site.yaml", "--store", "s"])["hosts"];
    assert!(
        hosts
            .as_array()
            .unwrap()
            .iter()
            .any(|host| host["why"] == "token"),
        "{hosts}"
    );
}

/// Like Harbor: nginx with TLS in front of a token server and a docker-registry with `auth: token`.
#[test]
fn docker_registry_with_a_token_server_can_be_used() {
    if !need(&["docker-registry", "gzip", "nginx", "openssl", "skopeo"]) {
        return;
    }
    let place = Place::new();
    let (_open, manifest) = sources(&place);
    place.write("m.yaml", manifest);
    let address = format!("127.0.0.1:{}", free_port());
    let account = format!("{USER}:{PASSWORD}");
    // everything is allowed except pushing to one repository
    let tokens = Tokens::new(&place, "registry", &account, |name, action| {
        (name, action) != ("team/app3", "push")
    });
    let registry = docker_registry_with(&format!(
        "auth: {{token: {{realm: \"https://{address}/token\", service: registry, issuer: tokens, rootcertbundle: \"{}\"}}}}",
        tokens.certificate.display()
    ));
    let authority = Authority::new(&place, "ca");
    let directives = format!(
        "client_max_body_size 0;\n\
         location /v2/ {{ proxy_pass http://{}; proxy_set_header Host $http_host; proxy_set_header X-Forwarded-Proto https; }}\n\
         location /token {{ proxy_pass http://{}; }}",
        registry.address, tokens.address
    );
    let _nginx = nginx_with_tls(&authority, &address, &directives);
    place.write(
        "site.yaml",
        format!(
            "apiVersion: landfall/v1\nkind: Site\nregistry: {{address: \"{address}\", ca: {}}}\n",
            authority.pem.display()
        ),
    );
    let mirror = |exit, password: &str| {
        place.write("home/.docker/config.json", auth_file(&address, password));
        place.json(exit, &["mirror", "-f", "m.yaml", "--site", "site.yaml"])
    };

    let wrong = mirror(1, "wrong").to_string();
    assert!(
        wrong.contains(USER) && wrong.contains("config.json"),
        "{wrong}"
    );
    assert_eq!(
        tokens.scopes().len(),
        1,
        "a refusal is final: {:?}",
        tokens.scopes()
    );

    let report = mirror(3, PASSWORD);
    assert_eq!(
        (
            report["totals"]["done"].as_u64(),
            report["totals"]["failed"].as_u64()
        ),
        (Some(3), Some(1)),
        "{report:#}"
    );
    let failed = report["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|item| item["status"] == "failed")
        .unwrap();
    assert!(
        failed["name"].as_str().unwrap().ends_with("/team/app3:v1"),
        "{failed:#}"
    );
    assert!(
        failed["reason"].as_str().unwrap().contains(USER),
        "{failed:#}"
    );
    let mounts = |scope: &&String| scope.matches("repository:").count() > 1;
    assert!(
        tokens.scopes().iter().any(|scope| mounts(&scope)),
        "{:?}",
        tokens.scopes()
    );
    // another client, with the same account, finds the image
    let found = skopeo(&place)
        .args([
            "inspect",
            "--raw",
            "--tls-verify=false",
            "--creds",
            &account,
        ])
        .arg(format!("docker://{address}/team/app1:v1"))
        .output()
        .unwrap();
    assert!(
        found.status.success(),
        "{}",
        String::from_utf8_lossy(&found.stderr)
    );
}
