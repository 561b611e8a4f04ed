//! Runs the verbs for notes, a kind of item that exists only in tests. This shows that a kind needs
//! only its own file and the registrations that `kinds.rs` of landfall-item describes.

use crate::cli::shared::VerbOutcome;
use landfall_content::VerifiedRead;
use landfall_model::report::{EntryKind, ItemStatus};
use landfall_model::{Digest, TargetRegistry};
use landfall_serve::testing::{TestServer, start};
use landfall_serve::{ServedBundle, ServedContent};
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

const NOTE: &str = "note://notes.example/team/hello:v1";

/// Runs a verb that must succeed, and returns its outcome.
fn run(dir: &Path, line: &str) -> VerbOutcome {
    super::testing::run(dir, line).unwrap_or_else(|failure| panic!("{line}: {failure:?}"))
}

/// The status of each note in the report of a verb.
fn notes(outcome: &VerbOutcome) -> Vec<ItemStatus> {
    let notes = outcome
        .report
        .items
        .iter()
        .filter(|item| item.kind == EntryKind::Note);
    notes.map(|item| item.status).collect()
}

fn manifest(dir: &Path, text: &str) {
    let manifest = json!({
        "apiVersion": "landfall/v1", "kind": "Manifest", "vars": {"name": ["hello", "bye"]},
        "notes": [{"name": "note://notes.example/team/${name}:v1", "text": text}],
        "exclude": ["note://notes.example/team/bye:v1"],
    });
    fs::write(dir.join("m.yaml"), manifest.to_string()).unwrap();
}

/// A server in the background.
fn serving(
    bundles: Vec<ServedBundle>,
    content: Vec<Arc<dyn VerifiedRead>>,
    writable: Option<&Path>,
) -> TestServer {
    start(writable, move || ServedContent {
        bundles: bundles.clone(),
        content: content.clone(),
        ..ServedContent::default()
    })
}

/// The status code and the body of `url`.
fn get(url: &str) -> (u16, String) {
    let (host, path) = url["http://".len()..].split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path} HTTP/1.0\r\nHost: {host}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (
        head.split(' ').nth(1).unwrap().parse().unwrap(),
        body.to_owned(),
    )
}

#[test]
fn a_note_passes_through_all_stages() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    manifest(dir, "hello, world");
    let digest = Digest::sha256(b"hello, world");

    // lock: the kind has its own section, which is read back and kept
    assert_eq!(
        notes(&run(dir, "lock -f DIR/m.yaml --lock DIR/l")),
        [ItemStatus::Done]
    );
    let lock = fs::read_to_string(dir.join("l")).unwrap();
    assert!(
        lock.contains(&format!("\nnotes:\n- name: {NOTE}\n  digest: {digest}\n")),
        "{lock}"
    );
    assert_eq!(
        notes(&run(dir, "lock -f DIR/m.yaml --lock DIR/l")),
        [ItemStatus::Present]
    );

    // pull, pack, verify
    assert_eq!(notes(&run(dir, "pull --lock DIR/l")), [ItemStatus::Present]);
    assert_eq!(
        notes(&run(dir, "pack --lock DIR/l -o DIR/b")),
        [ItemStatus::Done]
    );
    assert_eq!(
        notes(&run(dir, "verify DIR/b --lock DIR/l")),
        [ItemStatus::Present]
    );

    // ls, diff, export
    let listed = run(dir, "ls DIR/b");
    assert!(
        listed.text.contains(NOTE) && listed.text.contains("0 images, 0 files and 1 note"),
        "{}",
        listed.text
    );
    manifest(dir, "hello, moon");
    run(dir, "lock -f DIR/m.yaml --lock DIR/l2");
    let differs = run(dir, "diff DIR/b DIR/l2");
    let change = &differs.report.members()["changes"][0];
    assert_eq!(
        [&change["kind"], &change["change"], &change["name"]],
        [&json!("note"), &json!("moved"), &json!(NOTE)]
    );
    assert_eq!(
        notes(&run(dir, "export files --bundle DIR/b -o DIR/out")),
        [ItemStatus::Done]
    );
    let exported = fs::read(dir.join("out/notes.example/team/hello/v1.txt")).unwrap();
    assert_eq!(exported, b"hello, world");

    // serve: the note by its name, by its source, by its digest and by its URL
    let bundle = landfall_bundle::Bundle::open(&dir.join("b")).unwrap();
    let lock = bundle.lock().unwrap();
    let bundle = Arc::new(bundle);
    let served = ServedBundle {
        name: "b".into(),
        digest: None,
        missing: vec![],
        signatures: Vec::new(),
        lock,
        blobs: bundle.clone(),
        changes: None,
        registry: None,
    };
    let server = serving(vec![served], vec![bundle], None);
    let here = &server.address;
    let (status, by_name) = get(&format!("http://{here}/v2/team/hello/manifests/v1"));
    let read: Value = serde_json::from_str(&by_name).unwrap();
    assert_eq!(
        (status, &read["layers"][0]["digest"]),
        (200, &json!(digest))
    );
    assert_eq!(
        get(&format!(
            "http://{here}/v2/notes.example/team/hello/manifests/v1"
        ))
        .1,
        by_name
    );
    assert_eq!(
        get(&format!("http://{here}/v2/team/hello/blobs/{digest}")).1,
        "hello, world"
    );
    assert_eq!(
        get(&format!(
            "http://{here}/files/notes.example/team/hello/v1.txt"
        ))
        .1,
        "hello, world"
    );
    assert!(
        get(&format!("http://{here}/"))
            .1
            .contains("notes.example/team/hello:v1")
    );

    // push: the second push finds everything at the registry
    let pushed = serving(vec![], vec![], Some(&dir.join("pushed")));
    let there = &pushed.address;
    assert_eq!(
        notes(&run(dir, &format!("push DIR/b --to {there}"))),
        [ItemStatus::Done]
    );
    assert_eq!(
        get(&format!("http://{there}/v2/team/hello/manifests/v1")).1,
        by_name
    );
    assert_eq!(
        notes(&run(dir, &format!("push DIR/b --to {there}"))),
        [ItemStatus::Present]
    );

    // audit and rewrite: the lock matches the note by its reference and by its URL
    let reference = "notes.example/team/hello:v1";
    let url = "https://notes.example/team/hello/v1.txt";
    fs::write(
        dir.join("app.yaml"),
        format!("image: {reference}\nurl: {url}\n"),
    )
    .unwrap();
    let audited = run(dir, "audit DIR/app.yaml --lock DIR/l");
    assert!(
        audited
            .report
            .items
            .iter()
            .all(|item| item.status == ItemStatus::Present),
        "{}",
        audited.text
    );
    let flags = format!("--lock DIR/l --to {there} --files http://{here}/files -o DIR/new");
    run(dir, &format!("rewrite DIR/app.yaml {flags}"));
    let new = fs::read_to_string(dir.join("new/app.yaml")).unwrap();
    let wanted = format!(
        "image: {there}/team/hello:v1\nurl: http://{here}/files/notes.example/team/hello/v1.txt\n"
    );
    assert_eq!(new, wanted);
    assert!(there.parse::<TargetRegistry>().is_ok());
}
