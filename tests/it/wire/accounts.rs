//! Accounts and tokens: the effect of a refusal, the hosts that secrets are sent to, and missing
//! helpers.

use super::{manifest, reasons};
use crate::support::gate::Gate;
use crate::support::peers::{Server, file_server, own_registry};
use crate::support::pki::Authority;
use crate::support::reverse_proxy::{ProxyAction, RecordedRequest, ReverseProxy};
use crate::support::{Images, Place, need};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

fn basic(account: &str) -> String {
    format!("Basic {}", STANDARD.encode(account))
}

fn challenge(challenge: &str) -> ProxyAction {
    ProxyAction::Answer(
        401,
        vec![("WWW-Authenticate".into(), challenge.into())],
        String::new(),
    )
}

fn docker_config(place: &Place, config: &Value) {
    place.write("home/.docker/config.json", config.to_string());
}

fn auth(account: &str) -> Value {
    json!({"auth": STANDARD.encode(account)})
}

/// A test registry with these images at `v1`, each with one small layer.
pub(super) fn registry_with(place: &Place, names: &[String]) -> Server {
    let images = Images::new(place.path("layout"));
    let registry = own_registry();
    for name in names {
        let image = images.image("linux/amd64", &[images.layer(&[("own", name.as_bytes())])]);
        images.push(&registry.address, name, "v1", &image);
    }
    registry
}

pub(super) fn images_of(place: &Place, host: &str, names: &[String]) {
    let lines: String = names
        .iter()
        .map(|name| format!("- {host}/{name}:v1\n"))
        .collect();
    manifest(place, &format!("images:\n{lines}"));
}

pub(super) fn lock(place: &Place, exit: i32, host: &str) -> Value {
    let _ = std::fs::remove_file(place.path("landfall.lock"));
    place.json(
        exit,
        &["lock", "-f", "m.yaml", "--store", "s", "--plain-http", host],
    )
}

/// `registry` behind a realm at the same address: `token` answers token requests, and requests with
/// the token are forwarded.
pub(super) fn behind_realm(
    registry: &Server,
    token: impl Fn(&RecordedRequest) -> ProxyAction + Send + Sync + Clone + 'static,
) -> ReverseProxy {
    ReverseProxy::new(&registry.address, move |request| {
        let realm = |request: &RecordedRequest| {
            format!(
                "Bearer realm=\"http://{}/token\",service=\"r\"",
                request.header("host").unwrap()
            )
        };
        if request.target.starts_with("/token") {
            let token = token.clone();
            return ProxyAction::Read(Box::new(move |request| token(request)));
        }
        match request.header("authorization") {
            Some("Bearer good") => ProxyAction::Pass,
            _ if request.target.starts_with("/v2/") => challenge(&realm(request)),
            _ => ProxyAction::status(404),
        }
    })
}

fn good_token() -> ProxyAction {
    ProxyAction::Answer(
        200,
        Vec::new(),
        r#"{"access_token":"good","expires_in":300}"#.into(),
    )
}

#[test]
fn an_identity_token_is_exchanged_at_the_realm_and_its_refusal_is_final() {
    if !need(&["gzip"]) {
        return;
    }
    let place = Place::new();
    let names: Vec<String> = (0..6).map(|n| format!("app{n}")).collect();
    let registry = registry_with(&place, &names);
    let forms: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = forms.clone();
    let front = behind_realm(&registry, move |request| {
        let form = String::from_utf8(request.body.clone()).unwrap();
        seen.lock()
            .unwrap()
            .push(format!("{} {form}", request.method));
        match form.contains("refresh_token=fresh%2Btoken") {
            true => good_token(),
            // RFC 6749, 5.2
            false => ProxyAction::Answer(400, Vec::new(), r#"{"error":"invalid_grant"}"#.into()),
        }
    });
    let host = &front.address;
    images_of(&place, host, &names);
    docker_config(
        &place,
        &json!({"auths": {host: {"identitytoken": "fresh+token"}}}),
    );
    lock(&place, 0, host);
    place.json(0, &["pull", "--store", "s", "--plain-http", host]);
    let request = std::mem::take(&mut *forms.lock().unwrap());
    assert_eq!(
        request.len(),
        2 * names.len(),
        "one request for each repository and process: {request:?}"
    );
    for form in request {
        assert!(
            form.starts_with("POST grant_type=refresh_token&refresh_token=fresh%2Btoken&"),
            "{form}"
        );
        assert!(
            form.contains("&scope=repository%3Aapp") && form.contains("&service=r"),
            "{form}"
        );
    }
    // a credential helper returns a stale token: the run sends it only once
    let helper = place.write(
        "bin/docker-credential-idtest",
        "#!/bin/sh\necho '{\"Username\":\"<token>\",\"Secret\":\"stale\"}'\n",
    );
    std::fs::set_permissions(&helper, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    docker_config(&place, &json!({"credHelpers": {host: "idtest"}}));
    let path = format!(
        "{}:{}",
        place.path("bin").display(),
        std::env::var("PATH").unwrap()
    );
    let _ = std::fs::remove_file(place.path("landfall.lock"));
    let mut command = place.command();
    command.args([
        "lock",
        "-f",
        "m.yaml",
        "--store",
        "s2",
        "--plain-http",
        host,
        "--output",
        "json",
    ]);
    let output = command.env("PATH", path).output().unwrap();
    assert_eq!(
        output.status.code(),
        Some(1),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    for why in reasons(&report) {
        assert!(
            why.contains("identity token from docker-credential-idtest was refused"),
            "{why}"
        );
        assert!(!why.contains("stale"), "{why}");
    }
    assert_eq!(forms.lock().unwrap().len(), 1, "{forms:?}");
}

#[test]
fn a_token_service_that_answers_only_post_gets_the_password_in_a_form() {
    if !need(&["gzip"]) {
        return;
    }
    let place = Place::new();
    let names = ["app".to_owned()];
    let registry = registry_with(&place, &names);
    for status in [404, 405, 501] {
        let front = behind_realm(&registry, move |request| {
            let form = String::from_utf8_lossy(&request.body);
            let good = "grant_type=password&username=u&password=a%26b&client_id=landfall&scope=";
            match request.method.as_str() {
                "POST" if form.starts_with(good) => good_token(),
                "POST" => {
                    ProxyAction::Answer(400, Vec::new(), r#"{"error":"invalid_grant"}"#.into())
                }
                _ => ProxyAction::status(status),
            }
        });
        images_of(&place, &front.address, &names);
        docker_config(&place, &json!({"auths": {&front.address: auth("u:a&b")}}));
        lock(&place, 0, &front.address);
        docker_config(&place, &json!({"auths": {&front.address: auth("u:other")}}));
        let report = lock(&place, 1, &front.address);
        let why = reasons(&report)[0];
        assert!(
            why.contains("account 'u'") && why.contains("was refused"),
            "{why}"
        );
        // the realm is wrong
        let front = behind_realm(&registry, move |_| ProxyAction::status(status));
        images_of(&place, &front.address, &names);
        docker_config(&place, &json!({"auths": {&front.address: auth("u:a&b")}}));
        let report = lock(&place, 1, &front.address);
        let why = reasons(&report)[0];
        assert!(why.contains(&format!("/token answered {status}")), "{why}");
    }
}

#[test]
fn public_content_that_an_account_may_not_read_is_read_without_it() {
    if !need(&["gzip"]) {
        return;
    }
    let place = Place::new();
    let names = ["own/app", "public/app", "secret/app", "hidden/app"].map(str::to_owned);
    let registry = registry_with(&place, &names);
    let presented: Arc<Mutex<usize>> = Arc::default();
    let count = presented.clone();
    let front = behind_realm(&registry, move |request| {
        let is_of = |part: &str| request.target.contains(part);
        if is_of("hidden") && request.header("authorization").is_some() {
            *count.lock().unwrap() += 1;
        }
        match request.header("authorization") {
            Some(_) if is_of("own") => good_token(),
            None if is_of("public") => good_token(),
            // a token without any right
            None if is_of("hidden") => {
                ProxyAction::Answer(200, Vec::new(), r#"{"token":"poor"}"#.into())
            }
            Some(_) => ProxyAction::status(403),
            None => ProxyAction::status(401),
        }
    });
    let host = &front.address;
    images_of(&place, host, &names);
    docker_config(&place, &json!({"auths": {host: auth("u:p")}}));
    let report = lock(&place, 3, host);
    for item in report["items"].as_array().unwrap() {
        let why = item["reason"].as_str().unwrap_or_default();
        let name = item["name"].as_str().unwrap();
        match name.contains("/secret/") || name.contains("/hidden/") {
            true => assert!(
                why.contains("account 'u'") && why.contains("may not do this"),
                "{why}"
            ),
            false => assert_eq!(item["status"], "done", "{why}"),
        }
    }
    // repeated denials could lock the account
    assert_eq!(*presented.lock().unwrap(), 1);
    // the test of an account is about the account
    for (target, words) in [("/public", "may not read public"), ("", "may not sign in")] {
        let target = format!("{host}{target}");
        let report = place.json(4, &["doctor", &target, "--plain-http", host]);
        let checks = report["targets"][0]["checks"].as_array().unwrap();
        let last = checks.last().unwrap();
        assert_eq!(
            (&last["check"], &last["verdict"]),
            (&json!("sign-in"), &json!("no"))
        );
        let says = last["says"].as_str().unwrap();
        assert!(says.contains(words), "{says}");
    }
}

#[test]
fn no_secret_follows_a_redirect_of_the_realm_to_another_host() {
    if !need(&["gzip"]) {
        return;
    }
    let place = Place::new();
    let names = ["app".to_owned()];
    let registry = registry_with(&place, &names);
    let thief = ReverseProxy::new("", |_| good_token());
    for status in [301, 302, 303, 307, 308] {
        for config in [json!({"identitytoken": "secret"}), auth("u:secret")] {
            let to = format!("http://{}/token", thief.address);
            let front = behind_realm(&registry, move |_| {
                ProxyAction::Answer(status, vec![("Location".into(), to.clone())], String::new())
            });
            docker_config(&place, &json!({"auths": {&front.address: config}}));
            images_of(&place, &front.address, &names);
            let report = lock(&place, 1, &front.address);
            let why = reasons(&report)[0];
            assert!(
                thief.requests().is_empty(),
                "{status}: {:?}",
                thief.requests()
            );
            // the identity token is sent by POST; 301, 302 and 303 do not preserve POST, so these
            // redirects are not followed at all
            let is_followed = status > 303 || config.get("identitytoken").is_none();
            let words = match is_followed {
                true => "redirects to another host".to_owned(),
                false => format!("answered {status}"),
            };
            assert!(
                why.contains(&words) && why.contains(&thief.address) == is_followed,
                "{status}: {why}"
            );
        }
    }
    // without a secret, every redirect is followed; with a secret, only redirects within the host
    let to = format!("http://{}/token", thief.address);
    let open = behind_realm(&registry, move |_| {
        ProxyAction::Answer(307, vec![("Location".into(), to.clone())], String::new())
    });
    docker_config(&place, &json!({}));
    images_of(&place, &open.address, &names);
    lock(&place, 0, &open.address);
    assert!(
        thief
            .requests()
            .iter()
            .all(|request| request.header("authorization").is_none())
    );
    let front = behind_realm(&registry, |request| {
        match request.target.starts_with("/token/new") {
            true if String::from_utf8_lossy(&request.body).contains("refresh_token=secret") => {
                good_token()
            }
            true => ProxyAction::status(401),
            false => ProxyAction::Answer(
                307,
                vec![("Location".into(), "/token/new".into())],
                String::new(),
            ),
        }
    });
    docker_config(
        &place,
        &json!({"auths": {&front.address: {"identitytoken": "secret"}}}),
    );
    images_of(&place, &front.address, &names);
    lock(&place, 0, &front.address);
}

#[test]
fn an_error_names_the_token_service_that_an_account_is_not_sent_to() {
    if !need(&["gzip"]) {
        return;
    }
    let place = Place::new();
    let names = ["app".to_owned()];
    let registry = registry_with(&place, &names);
    // the realm refuses to issue a token, or issues one that the registry refuses
    for token in ["", r#"{"token":"bad"}"#] {
        let realm = ReverseProxy::new("", move |_| match token {
            "" => ProxyAction::status(401),
            token => ProxyAction::Answer(200, Vec::new(), token.into()),
        });
        let named = format!("http://{}/token", realm.address);
        let words = format!("Bearer realm=\"{named}\",service=\"r\"");
        let front = ReverseProxy::new(&registry.address, move |_| challenge(&words));
        docker_config(
            &place,
            &json!({"auths": {&front.address: auth("u:secret")}}),
        );
        images_of(&place, &front.address, &names);
        let report = lock(&place, 1, &front.address);
        let why = reasons(&report)[0];
        let expected = format!("is not sent to its token service {named}");
        assert!(
            why.contains("account 'u'") && why.contains(&expected),
            "{why}"
        );
        let mut requests = realm.requests().into_iter();
        assert!(requests.all(|request| request.header("authorization").is_none()));
    }
}

/// Over plain http that was found by probing, others could read an account, or pretend to be the
/// registry.
#[test]
fn plain_http_is_not_probed_if_an_account_or_tls_is_configured() {
    if !need(&["gzip"]) {
        return;
    }
    let place = Place::new();
    let names = ["app".to_owned()];
    let registry = registry_with(&place, &names);
    let host = registry.address.as_str();
    images_of(&place, host, &names);
    let lock = |exit: i32, settings: Value| {
        let site = json!({"apiVersion": "landfall/v1", "kind": "Site",
            "upstreams": {host: settings}});
        place.write("site.yaml", site.to_string());
        let _ = std::fs::remove_file(place.path("landfall.lock"));
        let before = registry.requests("/v2/");
        let args = [
            "lock",
            "-f",
            "m.yaml",
            "--store",
            "s",
            "--site",
            "site.yaml",
        ];
        let report = place.json(exit, &args);
        (report, registry.requests("/v2/") - before)
    };
    let (report, requests) = lock(0, json!({"maxConcurrent": 3}));
    assert!(requests > 0, "{report:#}");
    let is_refused = |settings: Value| {
        let (report, requests) = lock(1, settings);
        let why = reasons(&report)[0];
        assert!(why.contains(&format!("use --plain-http {host}")), "{why}");
        assert_eq!(requests, 0, "{report:#}");
    };
    let authority = Authority::new(&place, "ca");
    let (certificate, key) = authority.issue(&place, &["client"]);
    place.write("account", "u:secret\n");
    is_refused(json!({"credentials": {"file": "account"}}));
    is_refused(json!({"ca": authority.pem}));
    is_refused(json!({"clientCert": certificate, "clientKey": key}));
    is_refused(json!({"skipVerify": true}));
    docker_config(&place, &json!({"auths": {host: auth("u:secret")}}));
    is_refused(json!({"maxConcurrent": 3}));
}

#[test]
fn a_stale_account_of_a_namespace_fails_only_that_namespace() {
    if !need(&["gzip"]) {
        return;
    }
    let place = Place::new();
    let names: Vec<String> = (0..12)
        .map(|n| format!("{}/app{n}", if n % 4 == 1 { "stale" } else { "fine" }))
        .collect();
    let registry = registry_with(&place, &names);
    let by_basic = ReverseProxy::new(&registry.address, |request| {
        match request.header("authorization") {
            Some(header) if header == basic("good:pw") => ProxyAction::Pass,
            _ => challenge("Basic realm=\"r\""),
        }
    });
    let by_token = behind_realm(&registry, |request| match request.header("authorization") {
        Some(header) if header == basic("good:pw") => good_token(),
        _ => ProxyAction::status(401),
    });
    for front in [by_basic, by_token] {
        let host = &front.address;
        let stale = format!("{host}/stale");
        docker_config(
            &place,
            &json!({"auths": {host: auth("good:pw"), stale: auth("old:pw")}}),
        );
        images_of(&place, host, &names);
        let report = lock(&place, 3, host);
        for item in report["items"].as_array().unwrap() {
            let why = item["reason"].as_str().unwrap_or_default();
            match item["name"].as_str().unwrap().contains("/stale/") {
                true => assert!(
                    why.contains("account 'old'") && why.contains("was refused"),
                    "{why}"
                ),
                false => assert_eq!(item["status"], "done", "{why}"),
            }
        }
        let tried = front.requests();
        let tried = tried
            .iter()
            .filter(|request| request.header("authorization") == Some(&basic("old:pw")))
            .count();
        assert_eq!(
            tried, 1,
            "an account that never worked is tried only once, so that the server does not lock it"
        );
    }
}

#[test]
fn a_401_after_successful_responses_is_retried() {
    if !need(&["gzip"]) {
        return;
    }
    let place = Place::new();
    let names: Vec<String> = (0..30).map(|n| format!("app{n}")).collect();
    let registry = registry_with(&place, &names);
    let count = AtomicUsize::new(0);
    let front = ReverseProxy::new(&registry.address, move |request| {
        match request.header("authorization") {
            Some(header) if header == basic("u:p") => match count.fetch_add(1, Ordering::Relaxed) {
                20 | 100 => challenge("Basic realm=\"r\""),
                _ => ProxyAction::Pass,
            },
            _ => challenge("Basic realm=\"r\""),
        }
    });
    docker_config(&place, &json!({"auths": {&front.address: auth("u:p")}}));
    images_of(&place, &front.address, &names);
    lock(&place, 0, &front.address);
    place.json(0, &["pull", "--store", "s", "--plain-http", &front.address]);
    // the same with a token service that refuses an account once
    let count = Arc::new(AtomicUsize::new(0));
    let front = behind_realm(&registry, move |_| {
        match count.fetch_add(1, Ordering::Relaxed) {
            10 => ProxyAction::status(401),
            _ => good_token(),
        }
    });
    docker_config(&place, &json!({"auths": {&front.address: auth("u:p")}}));
    images_of(&place, &front.address, &names);
    lock(&place, 0, &front.address);
}

#[test]
fn an_account_that_expires_during_a_run_is_not_retried_for_every_image() {
    if !need(&["gzip"]) {
        return;
    }
    let place = Place::new();
    let names: Vec<String> = (0..90).map(|n| format!("app{n}")).collect();
    let registry = registry_with(&place, &names);
    let good = AtomicUsize::new(0);
    let refused = Arc::new(AtomicUsize::new(0));
    let seen = refused.clone();
    let front = ReverseProxy::new(&registry.address, move |request| {
        let signed = request.header("authorization") == Some(&basic("u:p"));
        if signed && good.fetch_add(1, Ordering::Relaxed) < 120 {
            return ProxyAction::Pass;
        }
        seen.fetch_add(usize::from(signed), Ordering::Relaxed);
        challenge("Basic realm=\"r\"")
    });
    docker_config(&place, &json!({"auths": {&front.address: auth("u:p")}}));
    images_of(&place, &front.address, &names);
    let report = lock(&place, 3, &front.address);
    assert!(
        reasons(&report)
            .iter()
            .any(|why| why.contains("account 'u'")),
        "{report:#}"
    );
    // only requests that were in flight, and a few later ones, may send the expired account
    let tried = refused.load(Ordering::Relaxed);
    assert!(tried <= 40, "presented {tried} times");
}

/// `registry` that challenges only requests of `/v2/`. Others are answered with `without_account`
/// unless they have the account `u:p`, or a token for it if `by_token` is set.
fn challenging_only_the_api(
    registry: &Server,
    by_token: bool,
    without_account: impl Fn() -> ProxyAction + Send + Sync + 'static,
) -> ReverseProxy {
    ReverseProxy::new(&registry.address, move |request| {
        let sent = request.header("authorization");
        let account = basic("u:p");
        let is_account = sent == Some(account.as_str());
        if request.target.starts_with("/token") {
            return if is_account {
                good_token()
            } else {
                ProxyAction::status(401)
            };
        }
        let is_accepted = if by_token {
            sent == Some("Bearer good")
        } else {
            is_account
        };
        let host = request.header("host").unwrap();
        match request.target.as_str() {
            _ if is_accepted => ProxyAction::Pass,
            "/v2/" if by_token => challenge(&format!(
                "Bearer realm=\"http://{host}/token\",service=\"r\""
            )),
            "/v2/" => challenge("Basic realm=\"r\""),
            _ => without_account(),
        }
    })
}

#[test]
fn a_registry_may_challenge_only_requests_of_its_api() {
    if !need(&["gzip"]) {
        return;
    }
    let place = Place::new();
    let names: Vec<String> = (0..6).map(|n| format!("app{n}")).collect();
    let registry = registry_with(&place, &names);
    for (by_token, hidden) in [
        (false, 404),
        (false, 403),
        (false, 401),
        (true, 404),
        (true, 403),
        (true, 401),
    ] {
        let front = challenging_only_the_api(&registry, by_token, move || {
            ProxyAction::refuse(hidden, "MANIFEST_UNKNOWN", "not here")
        });
        let host = &front.address;
        images_of(&place, host, &names);
        docker_config(&place, &json!({"auths": {host: auth("u:p")}}));
        lock(&place, 0, host);
        let requests = front.requests();
        let unsigned = requests
            .iter()
            .filter(|request| request.header("authorization").is_none());
        // one for the content, and the one that is challenged
        assert_eq!(unsigned.count(), 2, "{by_token} {hidden}: {requests:#?}");
    }
    // the content is public, but not the API, and some tags are absent
    for by_token in [false, true] {
        let front = challenging_only_the_api(&registry, by_token, || ProxyAction::Pass);
        let host = &front.address;
        images_of(&place, host, &names);
        docker_config(&place, &json!({"auths": {host: auth("old:pw")}}));
        let _ = std::fs::remove_file(place.path("landfall.lock"));
        let args = ["lock", "-f", "m.yaml", "--store", "s", "--plain-http", host];
        let printed = place.stderr(0, &args);
        let notes = printed.matches("; continuing without an account").count();
        assert_eq!(notes, 1, "{by_token}: {printed}");
        let old = basic("old:pw");
        let requests = front.requests();
        let tried = requests
            .iter()
            .filter(|request| request.header("authorization") == Some(old.as_str()));
        assert_eq!(tried.count(), 1, "{by_token}: {requests:#?}");
    }
}

#[test]
fn a_missing_credential_helper_fails_only_hosts_that_require_an_account() {
    if !need(&["gzip"]) {
        return;
    }
    let place = Place::new();
    let names: Vec<String> = (0..3).map(|n| format!("app{n}")).collect();
    let registry = registry_with(&place, &names);
    place.write("www/tool.bin", "tool");
    let files = file_server(&place.path("www"));
    let gate = Gate::new(&registry.address, None, usize::MAX);
    let closed = ReverseProxy::new(&registry.address, |_| challenge("Basic realm=\"r\""));
    let helpers =
        [&gate.address, &files.address].map(|host| (host.clone(), json!("landfall-none")));
    for config in [
        json!({"credsStore": "landfall-none"}),
        json!({"credHelpers": helpers.into_iter().collect::<serde_json::Map<_, _>>()}),
    ] {
        docker_config(&place, &config);
        manifest(
            &place,
            &format!("files: [{{url: \"{}/tool.bin\"}}]\n", files.url()),
        );
        lock(&place, 0, &files.address);
        images_of(&place, &registry.address, &names);
        lock(&place, 0, &registry.address);
        // the gate gives tokens to anonymous clients; one message says that the helper was not used
        images_of(&place, &gate.address, &names);
        let _ = std::fs::remove_file(place.path("landfall.lock"));
        let printed = place.stderr(
            0,
            &[
                "lock",
                "-f",
                "m.yaml",
                "--store",
                "s",
                "--plain-http",
                &gate.address,
            ],
        );
        assert_eq!(
            printed.matches("docker-credential-landfall-none").count(),
            1,
            "{printed}"
        );
    }
    docker_config(&place, &json!({"credsStore": "landfall-none"}));
    images_of(&place, &closed.address, &names);
    let report = lock(&place, 1, &closed.address);
    for why in reasons(&report) {
        assert!(
            why.contains("requires authentication")
                && why.contains("docker-credential-landfall-none"),
            "{why}"
        );
    }
    // like docker, landfall accepts null values, and an empty helper name for no helper
    let front = ReverseProxy::new(&registry.address, |request| {
        match request.header("authorization") {
            Some(header) if header == basic("u:p") => ProxyAction::Pass,
            _ => challenge("Basic realm=\"r\""),
        }
    });
    let host = &front.address;
    images_of(&place, host, &names);
    for config in [
        json!({"auths": {host: auth("u:p"), "other.test": null}, "credHelpers": {host: ""}, "credsStore": ""}),
        json!({"auths": {host: auth("u:p")}, "credHelpers": null, "credsStore": null}),
    ] {
        docker_config(&place, &config);
        lock(&place, 0, host);
    }
    docker_config(&place, &json!({"auths": null}));
    images_of(&place, &registry.address, &names);
    lock(&place, 0, &registry.address);
}

#[test]
fn helpers_may_have_no_account_and_their_errors_are_shown() {
    if !need(&["gzip"]) {
        return;
    }
    let place = Place::new();
    let names = ["app".to_owned()];
    let registry = registry_with(&place, &names);
    let path = std::env::var("PATH").unwrap();
    place.set("PATH", &format!("{}:{path}", place.path("bin").display()));
    let helper = |script: &str| {
        let script = format!("#!/bin/sh\n{script}\n");
        let program = place.write("bin/docker-credential-test", script);
        std::fs::set_permissions(
            &program,
            std::os::unix::fs::PermissionsExt::from_mode(0o755),
        )
        .unwrap();
    };
    docker_config(&place, &json!({"credsStore": "test"}));
    let public = behind_realm(&registry, |request| match request.header("authorization") {
        None => good_token(),
        Some(_) => ProxyAction::status(401),
    });
    images_of(&place, &public.address, &names);
    for script in [
        r#"echo '{"ServerURL": "", "Username": "", "Secret": ""}'"#,
        "echo '{}'",
        "echo credentials not found in native keychain; exit 1",
    ] {
        helper(script);
        lock(&place, 0, &public.address);
    }
    let private = behind_realm(&registry, |request| match request.header("authorization") {
        Some(header) if header == basic("u:p") => good_token(),
        _ => ProxyAction::status(401),
    });
    images_of(&place, &private.address, &names);
    helper(r#"echo '{"username": "u", "secret": "p"}'"#);
    lock(&place, 0, &private.address);
    helper("echo 'ERROR: no account is active' >&2; echo ' run: login' >&2; exit 1");
    let report = lock(&place, 1, &private.address);
    let why = reasons(&report)[0];
    assert!(
        why.contains("ERROR: no account is active run: login"),
        "{why}"
    );
}
