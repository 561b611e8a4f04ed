//! Hosts that redirect to other hosts, and hosts that do not answer.

use super::accounts::{behind_realm, images_of, lock, registry_with};
use super::{manifest, reasons};
use crate::support::faults::quick;
use crate::support::gate::Gate;
use crate::support::library::{ClientBuilder, Limits, PinPolicy, Store, load_manifests};
use crate::support::reverse_proxy::{ProxyAction, ReverseProxy};
use crate::support::{Place, free_port, need};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

#[test]
fn a_backend_with_its_own_realm_costs_one_token_per_repository() {
    if !need(&["gzip"]) {
        return;
    }
    let place = Place::new();
    let names: Vec<String> = (0..24).map(|n| format!("app{n}")).collect();
    let registry = registry_with(&place, &names);
    let gate = Gate::new(&registry.address, None, usize::MAX);
    // like registry.k8s.io: all content is at another host
    let backend = gate.address.clone();
    let inside = AtomicUsize::new(0);
    let most_in_flight = Arc::new(AtomicUsize::new(0));
    let peak = most_in_flight.clone();
    let front = ReverseProxy::new("", move |request| {
        peak.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(20));
        inside.fetch_sub(1, Ordering::SeqCst);
        let to = format!("http://{backend}{}", request.target);
        ProxyAction::Answer(307, vec![("Location".into(), to)], String::new())
    });
    images_of(&place, &front.address, &names);
    let report = lock(&place, 0, &front.address);
    let seen = gate.seen();
    assert_eq!(seen.tokens.len(), names.len(), "{:?}", seen.tokens);
    assert!(
        most_in_flight.load(Ordering::SeqCst) >= 4,
        "{most_in_flight:?} requests in flight"
    );
    // the gate sends one challenge per repository, and later requests send the token. Requests in
    // flight at the same time as the first one may get a challenge, too
    assert!(
        seen.refused <= names.len() + 12,
        "{} refused of {}",
        seen.refused,
        report["totals"]["requests"]
    );
    place.json(0, &["pull", "--store", "s", "--plain-http", &front.address]);
    assert_eq!(gate.seen().tokens.len(), 2 * names.len());
}

#[test]
fn expired_tokens_of_a_backend_are_fetched_again() {
    if !need(&["gzip"]) {
        return;
    }
    let place = Place::new();
    let names: Vec<String> = (0..4).map(|n| format!("app{n}")).collect();
    let registry = registry_with(&place, &names);
    let front = |backend: &str, pause: u64| {
        let backend = backend.to_owned();
        ReverseProxy::new("", move |request| {
            std::thread::sleep(Duration::from_millis(pause));
            let to = format!("http://{backend}{}", request.target);
            ProxyAction::Answer(307, vec![("Location".into(), to)], String::new())
        })
    };
    // a token is refused after three requests
    let gate = Gate::new(&registry.address, None, 3);
    let by_uses = front(&gate.address, 0);
    images_of(&place, &by_uses.address, &names);
    lock(&place, 0, &by_uses.address);
    place.json(
        0,
        &["pull", "--store", "s", "--plain-http", &by_uses.address],
    );
    // each token expires after one second, as its response says, and each request takes 0.7 seconds
    let backend = behind_realm(&registry, |_| {
        ProxyAction::Answer(200, Vec::new(), r#"{"token":"good","expires_in":1}"#.into())
    });
    let by_time = front(&backend.address, 700);
    images_of(&place, &by_time.address, &names);
    lock(&place, 0, &by_time.address);
    assert!(backend.count("GET", "/token") > names.len());
}

/// A host at which nothing listens.
fn dead() -> String {
    format!("127.0.0.1:{}", free_port())
}

#[test]
fn a_dead_registry_fails_after_its_first_request_and_is_reported_once() {
    if !need(&["gzip"]) {
        return;
    }
    let place = Place::new();
    let names: Vec<String> = (0..24).map(|n| format!("app{n}")).collect();
    let registry = registry_with(&place, &names);
    let dead = dead();
    let lines = |host: &str| {
        names
            .iter()
            .map(|name| format!("- {host}/{name}:v1\n"))
            .collect::<String>()
    };
    manifest(
        &place,
        &format!("images:\n{}{}", lines(&dead), lines(&registry.address)),
    );
    let args = [
        "lock",
        "-f",
        "m.yaml",
        "--store",
        "s",
        "--plain-http",
        &dead,
        "--plain-http",
        &registry.address,
    ];
    let report = place.json(3, &args);
    let cause = format!("{dead}: skipped for the rest of this run: ");
    let mut lost = 0;
    let mut good = 0;
    for item in report["items"].as_array().unwrap() {
        match item["reason"].as_str() {
            None => good += 1,
            Some(why) => {
                assert!(
                    why.starts_with(&cause) && why.contains("the connection is refused"),
                    "{why}"
                );
                assert!(
                    why.ends_with(&format!("; `landfall doctor http://{dead}/` diagnoses it")),
                    "{why}"
                );
                lost += 1;
            }
        }
    }
    assert_eq!((lost, good), (24, 24));
    let hosts = report["hosts"].as_array().unwrap();
    let port = dead.rsplit(':').next().unwrap().parse::<u64>().unwrap();
    let host = hosts.iter().find(|host| host["port"] == port).unwrap();
    assert_eq!(host["requests"], 5, "the attempts at one request");
    let recorded = place.read("landfall.lock");
    assert_eq!(
        recorded.matches("upstream was not reached").count(),
        24,
        "{recorded}"
    );

    // in text mode, the items are listed below the single cause
    let _ = std::fs::remove_file(place.path("landfall.lock"));
    let output = place.command().args(args).output().unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(
        out.contains(&format!("missing  24 images: {cause}")),
        "{out}"
    );
    assert_eq!(
        (out.matches("doctor").count(), err.matches("doctor").count()),
        (1, 0),
        "{out}\n{err}"
    );
    let listed = names
        .iter()
        .filter(|name| out.contains(&format!("\n           {dead}/{name}:v1\n")));
    assert_eq!(listed.count(), 10, "{out}");
    assert!(
        out.contains("\n           … and 14 more; `--report FILE` writes all of them\n"),
        "{out}"
    );
}

#[test]
fn pull_and_push_fail_early_for_a_registry_that_died_since_the_lock() {
    if !need(&["gzip"]) {
        return;
    }
    let place = Place::new();
    let names: Vec<String> = (0..12).map(|n| format!("app{n}")).collect();
    let registry = registry_with(&place, &names);
    let host = registry.address.clone();
    images_of(&place, &host, &names);
    lock(&place, 0, &host);
    place.json(0, &["pull", "--store", "s", "--plain-http", &host]);
    drop(registry);
    let report = place.json(1, &["pull", "--store", "empty", "--plain-http", &host]);
    assert_eq!(report["totals"]["requests"], 5, "{report:#}");
    for why in reasons(&report) {
        assert!(
            why.starts_with(&format!(
                "source: {host}: skipped for the rest of this run: "
            )),
            "{why}"
        );
    }
    place.json(0, &["pack", "--store", "s", "-o", "b"]);
    let report = place.json(1, &["push", "b", "--to", &host, "--plain-http", &host]);
    let why = report["error"]["message"].as_str().unwrap();
    assert!(
        why.contains("skipped for the rest of this run") && why.contains("landfall doctor"),
        "{why}"
    );
    assert_eq!(report["totals"]["requests"], 5, "{report:#}");
    // the note during the push does not contain the cause; the error after it does
    let args = ["push", "b", "--to", &host, "--plain-http", &host];
    let output = place.command().args(args).output().unwrap();
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8_lossy(&printed);
    let skipped = printed
        .lines()
        .filter(|line| line.contains("skipped for the rest of this run"));
    let reasons: Vec<bool> = skipped
        .map(|line| line.contains("the connection is refused"))
        .collect();
    assert_eq!(reasons, [false, true], "{printed}");
    assert_eq!(printed.matches("landfall doctor").count(), 1, "{printed}");
}

#[test]
fn a_silent_private_host_is_probed_once() {
    let place = Place::new();
    // the host accepts connections and sends nothing
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let taken = Arc::new(AtomicUsize::new(0));
    let count = taken.clone();
    std::thread::spawn(move || {
        let mut open = Vec::new();
        for stream in listener.incoming().flatten() {
            count.fetch_add(1, Ordering::SeqCst);
            open.push(stream);
        }
    });
    let names: Vec<String> = (0..24).map(|n| format!("app{n}")).collect();
    images_of(&place, &host, &names);
    let limits = Limits {
        connect: Duration::from_millis(300),
        ..quick()
    };
    let client = ClientBuilder::default()
        .without_environment()
        .limits(limits)
        .build()
        .unwrap();
    let wanted = load_manifests(&[place.path("m.yaml")]).unwrap();
    let store = Store::open(&place.path("s")).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let locked = runtime.block_on(client.lock(&wanted, None, PinPolicy::Keep, &store));
    assert_eq!(taken.load(Ordering::SeqCst), 1);
    let reasons: BTreeSet<_> = locked
        .items
        .iter()
        .map(|item| item.reason.clone().unwrap())
        .collect();
    let reasons: Vec<_> = reasons.into_iter().collect();
    let [why] = &reasons[..] else {
        panic!("{reasons:?}")
    };
    assert!(
        why.contains("no answer to TLS") && why.contains("landfall doctor"),
        "{why}"
    );
}

#[test]
fn the_fix_of_a_refused_handshake_is_not_about_certificates() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            // unread bytes would reset the connection before the client has read the alert
            if stream.read(&mut [0; 4096]).is_ok_and(|length| length > 0) {
                // HandshakeFailure (RFC 8446, 6)
                let _ = stream.write_all(&[21, 3, 3, 0, 2, 2, 40]);
            }
        }
    });
    let report = Place::new().json(4, &["doctor", &url]);
    let checks = report["targets"][0]["checks"].as_array().unwrap();
    let tls = checks.iter().find(|check| check["check"] == "tls").unwrap();
    let fix = tls["fix"].as_str().unwrap();
    assert!(fix.starts_with("enable TLS 1.3"), "{fix}");
    // as without a client certificate that the server requires
    let says = tls["says"].as_str().unwrap();
    assert!(says.contains("client certificate"), "{says}");
}

#[test]
fn a_page_to_sign_in_is_not_a_registry() {
    let page = ReverseProxy::new("", |_| {
        let html = "<html><title>Sign in</title></html>".to_owned();
        ProxyAction::Answer(200, vec![("Content-Type".into(), "text/html".into())], html)
    });
    let to = format!("http://{}/login", page.address);
    let front = ReverseProxy::new("", move |_| {
        ProxyAction::Answer(302, vec![("Location".into(), to.clone())], String::new())
    });
    for host in [&front.address, &page.address] {
        let report = Place::new().json(4, &["doctor", host, "--plain-http", host]);
        let checks = report["targets"][0]["checks"].as_array().unwrap();
        let answer = checks.iter().find(|check| check["check"] == "answer");
        let says = answer.unwrap()["says"].as_str().unwrap();
        assert!(says.contains("no registry answers"), "{says}");
    }
}
