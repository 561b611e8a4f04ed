//! Messages about connections and counts.

use super::{run, run_with};
use crate::support::Place;
use crate::support::faults::{Fault, FaultKind, RequestKind, Rig};
use std::io::Write;
use std::net::TcpListener;

/// Starts a server that answers every connection with `answer`. Returns its address.
fn answering(answer: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let _ = (&stream).write_all(answer);
        }
    });
    address
}

#[test]
fn messages_about_connections_contain_no_texts_of_libraries() {
    let place = Place::new();
    let http = answering(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    let closed = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string();
    place.write(
        "m.yaml",
        format!(
            "apiVersion: landfall/v1\nkind: Manifest\nimages: ['nowhere.invalid/a/b:1']\nfiles:\n- {{url: 'https://{http}/x'}}\n- \
             {{url: 'http://{closed}/y'}}\n"
        ),
    );
    run(
        &place,
        &[("HTTP", &http), ("CLOSED", &closed)],
        &[
            (
                "lock m.yaml --store s",
                1,
                &[
                    "nowhere.invalid: skipped for the rest of this run: its name cannot be resolved",
                    "the answer is not TLS; if http is meant, use --plain-http HTTP",
                    "the connection is refused; nothing listens at CLOSED",
                    "!client error",
                    "!dns error",
                    "!InvalidContentType",
                    "!os error 111",
                    "!lookup address",
                ],
            ),
            (
                "doctor https://nowhere.invalid",
                4,
                &[
                    "nowhere.invalid: its name cannot be resolved",
                    "!lookup address",
                ],
            ),
            (
                "doctor https://HTTP/",
                4,
                &["the answer is not TLS", "!corrupt message"],
            ),
        ],
    );
}

#[test]
fn a_refusal_is_reported_once() {
    let rig = Rig::new();
    rig.set_faults([]);
    run_with(&rig, &[("lock m.yaml --plain-http UP", 0, &[])]);
    rig.set_faults(
        [RequestKind::Manifest, RequestKind::Blob]
            .map(|on| Fault::always(on, FaultKind::Status(403))),
    );
    let args = [
        "pull",
        "--store",
        "s",
        "--progress",
        "none",
        "--plain-http",
        &rig.up.address,
    ];
    let output = output_of(rig.place.command().args(args));
    let line = output
        .lines()
        .find(|line| line.contains("may not read"))
        .unwrap_or_else(|| panic!("{output}"));
    assert_eq!(line.matches("403").count(), 1, "{line}");
    assert_eq!(
        line.matches("there is no account for it").count(),
        1,
        "{line}"
    );
}

fn output_of(command: &mut std::process::Command) -> String {
    let output = command.output().unwrap();
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

#[test]
fn an_empty_bundle_has_no_size_ratio() {
    let place = Place::new();
    place.write("landfall.lock", "version: 1\n");
    run(
        &place,
        &[],
        &[
            ("pull --store s", 0, &[]),
            (
                "pack -o b --store s",
                0,
                &["for 0 B of content", "!% of the content"],
            ),
            ("gc --store s", 0, &["removed 0 files", "0 blobs kept"]),
        ],
    );
}
