//! Headers and lists in forms that the specifications do not have, but servers send.

use crate::support::faults::{
    Auth, Fault, FaultKind, Location, RequestKind, RetryAfter, Rig, Settings,
};
use crate::support::library::{ItemStatus, ReportItem};

fn header(on: RequestKind, name: &'static str, value: &str) -> Fault {
    Fault::always(on, FaultKind::Header(name, value.to_owned()))
}

fn all_are(items: &[ReportItem], status: ItemStatus) -> bool {
    items.iter().all(|item| item.status == status)
}

fn reasons(items: &[ReportItem]) -> Vec<&str> {
    let reasons = items.iter().filter_map(|item| item.reason.as_deref());
    reasons.collect()
}

/// The number of requests of a kind that the private registry got.
fn count(rig: &Rig, on: RequestKind) -> usize {
    let seen = rig.down.seen();
    seen.iter().filter(|seen| seen.on == Some(on)).count()
}

#[test]
fn a_digest_in_quotes_is_read_like_any_other() {
    let rig = Rig::new();
    rig.push("first").unwrap();
    for value in ["\"VALUE\"", "VALUE\r\nDocker-Content-Digest: other"] {
        rig.down.set_faults([header(
            RequestKind::ManifestHead,
            "Docker-Content-Digest",
            value,
        )]);
        let again = rig.push("first").unwrap();
        assert!(
            all_are(&again.items, ItemStatus::Present),
            "{:?}",
            again.items
        );
        // the digest was in the header, so no GET was needed
        let gets = rig.down.seen();
        let gets = gets
            .iter()
            .filter(|seen| seen.on == Some(RequestKind::Manifest))
            .filter(|seen| !seen.path.contains("landfall/locks"));
        assert_eq!(gets.count(), 0, "{value}: {}", rig.down.shown());
    }
}

/// A proxy with a cache may otherwise answer with a list of packages that is days old. apt, dnf and
/// git demand the same.
#[test]
fn caches_must_ask_the_server_for_what_is_locked() {
    let rig = Rig::new();
    let of_file = |ending: &str| {
        let seen = rig.up.seen();
        let requests = seen.iter().filter(|one| one.path.ends_with(ending));
        let requests = requests.map(|one| (one.method.clone(), one.is_revalidated));
        requests.collect::<Vec<(String, bool)>>()
    };
    rig.set_faults([]);
    rig.resolve("again");
    let one = |method: &str, is_revalidated| [(method.to_owned(), is_revalidated)];
    assert_eq!(of_file("/tool.bin.sha256"), one("GET", true));
    // its digest is in the checksum file, and only its size is needed
    assert_eq!(of_file("/tool.bin"), one("HEAD", true));
    rig.set_faults([]);
    rig.pull("again");
    assert_eq!(of_file("/tool.bin"), one("GET", false));
    // a cache would send the same wrong bytes once more
    rig.set_faults([Fault::once(RequestKind::File, FaultKind::Corrupt).at("/tool.bin$")]);
    rig.pull("once more");
    let twice = [one("GET", false), one("GET", true)].concat();
    assert_eq!(of_file("/tool.bin"), twice, "{}", rig.up.shown());
}

#[test]
fn challenges_in_odd_forms_are_answered() {
    let rig = Rig::new();
    for challenge in [
        "Bearer realm = \"http://HOST/token\", service = \"faults\"",
        "bearer realm=\"http://HOST/token\" service=\"faults\"",
        "BEARER realm=http://HOST/token,service=faults",
        "Bearer realm=\"/token\"",
        "Bearer realm=\"HOST/token\",scope=\"\"",
        "Negotiate, Basic realm=\"\", Bearer realm=\"http://HOST/token\"",
    ] {
        let challenge = challenge.replace("HOST", &rig.up.address);
        rig.up.set(Settings {
            auth: Some(Auth {
                uses: 1000,
                answer: r#"{"token":"TOKEN"}"#.into(),
            }),
            ..Settings::default()
        });
        let kinds = [
            RequestKind::Manifest,
            RequestKind::ManifestHead,
            RequestKind::Tags,
        ];
        let faults = kinds.map(|on| header(on, "WWW-Authenticate", &challenge));
        rig.up.set_faults(faults);
        let locked = rig.resolve("again").lock;
        assert_eq!(locked.unresolved, [], "{challenge}");
    }
}

#[test]
fn the_words_of_a_token_service_that_refuses_are_shown() {
    let rig = Rig::new();
    rig.up.set(Settings {
        auth: Some(Auth {
            uses: 1000,
            answer: r#"{"token":"TOKEN"}"#.into(),
        }),
        ..Settings::default()
    });
    for status in [401, 403] {
        rig.up.set_faults([Fault::always(
            RequestKind::Token,
            FaultKind::Refusal(status, "LICENSE_EXPIRED"),
        )]);
        let items = rig.pull("empty");
        let why = reasons(&items);
        assert!(
            why[0].contains("LICENSE_EXPIRED as the test requested"),
            "{why:?}"
        );
    }
}

#[test]
fn a_wait_in_an_odd_form_is_obeyed_or_refused() {
    let rig = Rig::new();
    let busy = |text| FaultKind::Busy(503, RetryAfter::Text(text));
    let texts = [
        "0.5",
        "-3",
        "\"0\"",
        "1s",
        "soon",
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "",
    ];
    for (at, text) in texts.into_iter().enumerate() {
        rig.up
            .set_faults([Fault::once(RequestKind::Blob, busy(text))]);
        let items = rig.pull(&format!("wait{at}"));
        assert!(all_are(&items, ItemStatus::Done), "{text}: {items:?}");
    }
    for text in ["99999999999999999999999", "2199-01-01T00:00:00Z"] {
        rig.up
            .set_faults([Fault::always(RequestKind::Blob, busy(text))]);
        let items = rig.pull("huge");
        let why = reasons(&items);
        assert!(why[0].contains("asks to retry in"), "{why:?}");
    }
}

/// Before, the upload was refused as one without a Location.
#[test]
fn a_location_may_contain_blanks_and_bytes_that_are_not_ascii() {
    let rig = Rig::new();
    rig.down.set_faults([
        header(RequestKind::Begin, "Location", "VALUE&n=a b\u{e9}"),
        header(RequestKind::Patch, "Location", "VALUE&n=a b\u{e9}"),
    ]);
    let pushed = rig.push("first").unwrap();
    assert!(
        all_are(&pushed.items, ItemStatus::Done),
        "{:?}",
        pushed.items
    );
    rig.assert_arrived("odd locations");
}

/// Before, each blob failed after several attempts, and no message named the cause.
#[test]
fn uploads_that_name_an_internal_host_continue_at_the_registry() {
    let rig = Rig::new();
    let silent = || Fault::always(RequestKind::Begin, FaultKind::Location(Location::Silent));
    rig.down.set_faults([silent()]);
    let pushed = rig.push("first").unwrap();
    assert!(
        all_are(&pushed.items, ItemStatus::Done),
        "{:?}",
        pushed.items
    );
    rig.assert_arrived("internal host");
    let notes = rig.notes.lines();
    let notes = notes.iter().filter(|note| note.contains("X-Forwarded"));
    assert_eq!(notes.count(), 1);
    let begun = count(&rig, RequestKind::Begin);
    assert!(begun < 30, "{begun} uploads were begun");

    // the registry does not have its uploads at its own address either
    rig.empty_far_side();
    rig.down.set_faults([
        silent(),
        Fault::always(RequestKind::Upload, FaultKind::Status(404)),
    ]);
    let pushed = rig.push("first").unwrap();
    let why = reasons(&pushed.items);
    assert!(
        why.iter()
            .any(|why| why.contains("127.0.0.1:1 in the Location")),
        "{why:?}"
    );
    let begun = count(&rig, RequestKind::Begin);
    assert!(begun < 30, "{begun} uploads were begun");
}

/// Before, everything was delivered again, and `status` said that all tags are missing.
#[test]
fn manifests_whose_head_is_answered_with_404_are_found_by_get() {
    let rig = Rig::of_images(8);
    rig.push("first").unwrap();
    rig.down.set_faults([Fault::always(
        RequestKind::ManifestHead,
        FaultKind::Status(404),
    )]);
    let again = rig.push("first").unwrap();
    assert!(
        all_are(&again.items, ItemStatus::Present),
        "{:?}",
        again.items
    );
    // a registry that has nothing gets few more requests
    rig.empty_far_side();
    rig.down.set_faults([]);
    rig.push("first").unwrap();
    let gets = count(&rig, RequestKind::Manifest);
    assert!(gets <= 4, "{gets}: {}", rig.down.shown());
}
