//! The log of `-v`, `-vv` and `LANDFALL_LOG`: its content, and that it contains no secret.

use crate::support::Place;
use crate::support::faults::{Auth, Fault, FaultKind, RequestKind, RetryAfter, Rig, Settings};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use std::process::Output;

const ACCOUNT: &str = "joe:hunter2-secret";

/// An upstream and a private registry that require tokens, and an account for both.
fn with_accounts() -> Rig {
    let rig = Rig::new();
    for server in [&rig.up, &rig.down] {
        server.set(Settings {
            auth: Some(Auth {
                uses: 1000,
                answer: r#"{"token":"TOKEN","expires_in":300}"#.into(),
            }),
            ..Settings::default()
        });
    }
    let auth = json!({"auth": STANDARD.encode(ACCOUNT)});
    let auths = json!({"auths": {&rig.up.address: auth, &rig.down.address: auth}});
    rig.place
        .write("home/.docker/config.json", auths.to_string());
    rig
}

fn run(rig: &Rig, log: Option<&str>, args: &[&str]) -> Output {
    let mut command = rig.place.command();
    command.args(args).args(["--progress", "none"]).args([
        "--plain-http",
        &rig.up.address,
        "--plain-http",
        &rig.down.address,
    ]);
    if let Some(log) = log {
        command.env("LANDFALL_LOG", log);
    }
    command.output().unwrap()
}

/// The stderr of a command that must succeed.
fn logged(rig: &Rig, log: Option<&str>, args: &[&str]) -> String {
    let output = run(rig, log, args);
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{args:?}\n{log}");
    log
}

/// The lines of the log: each has a level and the module of landfall that wrote it.
fn lines(log: &str) -> Vec<&str> {
    let levels = [" ERROR ", " WARN ", " INFO ", " DEBUG ", " TRACE "];
    log.lines()
        .filter(|line| levels.iter().any(|level| line.contains(level)))
        .inspect(|line| assert!(line.contains(" landfall"), "{line}"))
        .collect()
}

fn assert_has(log: &str, words: &[&str]) {
    assert!(
        lines(log)
            .iter()
            .any(|line| words.iter().all(|word| line.contains(word))),
        "no line has {words:?}:\n{log}"
    );
}

fn assert_no_secret(log: &str) {
    let (_, password) = ACCOUNT.split_once(':').unwrap();
    let basic = STANDARD.encode(ACCOUNT);
    for secret in [
        password,
        &basic,
        "opaque/",
        "signature=good",
        "Bearer",
        "uthorization",
    ] {
        let line = log.lines().find(|line| line.contains(secret));
        assert_eq!(line, None, "it contains '{secret}'");
    }
}

#[test]
fn requests_waits_and_decisions_are_logged_without_secrets() {
    let rig = with_accounts();
    let up = rig.up.address.clone();
    let down = rig.down.address.clone();
    rig.set_faults([Fault::once(RequestKind::Manifest, FaultKind::Status(502))]);
    let log = logged(
        &rig,
        Some("trace"),
        &["lock", "m.yaml", "--refresh", "--store", "stores/log"],
    );
    assert_no_secret(&log);
    assert_has(&log, &["answered method=", "status=401", "attempt=1"]);
    assert_has(&log, &["DEBUG", "401: signing in", &up]);
    assert_has(&log, &[&format!("url=http://{up}/token?…"), "status=200"]);
    assert_has(&log, &["WARN", "retrying", "attempt=1", "reason=502"]);
    assert_has(&log, &["answered", "status=200", "attempt=2", "slot_wait="]);

    rig.set_faults([
        Fault::always(RequestKind::Blob, FaultKind::Redirect { expired: false }),
        Fault::once(RequestKind::Second, FaultKind::Cut(5000)),
        Fault::once(
            RequestKind::File,
            FaultKind::Busy(429, RetryAfter::Seconds(1)),
        ),
    ]);
    // one blob at a time, the largest first, so that the cut body is longer than 5000 bytes
    let pull = ["pull", "--store", "stores/log", "--jobs", "1"];
    let log = logged(&rig, Some("trace"), &pull);
    assert_no_secret(&log);
    let signed = format!("url=http://{}/signed/sha256:", rig.up.second);
    assert_has(&log, &[&signed, "?…", "status=200"]);
    assert_has(&log, &["a transfer slot is free", "waited="]);
    assert_has(&log, &["receiving a blob digest=sha256:"]);
    assert_has(&log, &["the source broke off; resuming", "offset="]);
    assert_has(&log, &["retrying", "reason=429", "pause=1"]);
    let log = logged(&rig, Some("landfall_content=trace"), &pull);
    assert_has(
        &log,
        &["TRACE", "in the store; unchanged since it was hashed"],
    );
    assert!(!log.contains("landfall_http"), "{log}");

    rig.set_faults([]);
    let push = ["push", "--store", "stores/log", "--to", &down];
    let log = logged(&rig, Some("trace"), &push);
    assert_no_secret(&log);
    assert_has(&log, &["got an upload slot", "waited="]);
    assert_has(&log, &["INFO", "uploading digest=sha256:", "repository="]);
    assert_has(&log, &["method=PUT", &down, "status=201"]);

    rig.empty_far_side();
    rig.set_faults([Fault::always(
        RequestKind::Blob,
        FaultKind::Redirect { expired: false },
    )]);
    let log = logged(
        &rig,
        Some("trace"),
        &[
            "mirror",
            "--lock",
            "landfall.lock",
            "--store",
            "stores/mirror",
            "--to",
            &down,
        ],
    );
    assert_no_secret(&log);
    assert_has(&log, &["not in the store; read from upstream"]);
    assert_has(&log, &[&signed, "class=UploadSource"]);
}

#[test]
fn flags_choose_the_level_and_nothing_is_logged_without_them() {
    let rig = with_accounts();
    rig.set_faults([]);
    let pull = |store: &str, flags: &[&str]| {
        let args = [&["pull", "--store", store][..], flags].concat();
        logged(&rig, None, &args)
    };
    assert_eq!(lines(&pull("stores/quiet", &[])), Vec::<&str>::new());
    let info = pull("stores/info", &["-v"]);
    assert_has(&info, &["INFO", "answered method=GET", "status=200"]);
    assert!(!info.contains(" DEBUG "), "{info}");
    assert_no_secret(&info);
    let debug = pull("stores/debug", &["-vv"]);
    assert_has(&debug, &["DEBUG", "a transfer slot is free"]);
    assert!(!debug.contains(" TRACE "), "{debug}");
    assert_no_secret(&debug);
}

#[test]
fn a_wrong_directive_is_a_usage_error() {
    let rig = Rig::new();
    for (directive, words) in [
        ("landfall_http=loud", "LANDFALL_LOG: 'loud' is not a level"),
        ("hyper=trace", "LANDFALL_LOG: 'hyper' is neither a level"),
        ("debgu", "LANDFALL_LOG: 'debgu' is neither a level"),
    ] {
        let output = run(&rig, Some(directive), &["pull", "--store", "stores/wrong"]);
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn an_argument_that_is_a_url_is_printed_without_its_account() {
    let place = Place::new();
    let url = "https://joe:hunter2-secret@files.test/l.lock?X-Amz-Signature=hunter2-secret";
    let mut wrong = Vec::new();
    let missing = "https://joe:hunter2-secret@files.test/b.tar.zst";
    for line in [
        "pull URL",
        "pull --lock URL",
        "pack URL -o b",
        "pack -o URL",
        "pack --since URL -o b",
        "lock -f URL",
        "update -f URL",
        "refresh -f URL -o b",
        "verify URL",
        "verify BUNDLE --allowed-signers URL",
        "verify --bundle URL",
        "push URL --to r.test:5000",
        "push BUNDLE --to URL",
        "push BUNDLE --to r.test:5000 --receipt URL",
        "sign URL --key URL",
        "status --lock URL",
        "serve URL",
        "rewrite URL --lock URL",
        "audit URL --lock URL",
        "render containerd --site URL -o x",
        "egress --lock URL",
        "diff URL BUNDLE",
        "report URL",
        "sbom URL",
        "ls URL",
        "export images URL -o x",
        "import hauler URL",
        "discover URL",
        "log verify URL",
        "gc --store URL",
        "publish URL",
        "mirror --lock URL",
        "doctor --site URL",
        "pull --site URL",
        "pull --from URL",
        "pull --log URL/x/y",
        "pull --report URL/x/y",
        "pull a URL",
        "URL",
        "pull --URL",
        "pull --jobs URL",
    ] {
        let args: Vec<String> = line
            .split(' ')
            .map(|word| word.replace("URL", url).replace("BUNDLE", missing))
            .collect();
        let mut command = place.command();
        let output = command.args(&args).output().unwrap();
        let printed = [output.stdout, output.stderr].concat();
        let printed = String::from_utf8_lossy(&printed);
        // the message still names the host of the URL, or says how to fix the command
        let is_named = printed.contains("files.test") || printed.contains("help:");
        if output.status.success() || printed.contains("hunter2") || !is_named {
            wrong.push(format!("{line}: {printed}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
