//! Compares OpenPGP verification with gpgv: for a table of keys and signatures, landfall must
//! accept and refuse the same cases as gpgv with the options of apt. Cases with a `stricter` reason
//! are exceptions: landfall refuses them although gpgv accepts them.

mod clear;
mod crafted;
mod detached;
mod keys;
mod revokers;

use crate::support::peers::{Server, file_server};
use crate::support::{Place, need};
use serde_json::Value;
use std::process::Command;

/// Keys, and a signature that one of them may have made.
pub struct Case {
    pub name: &'static str,
    pub keys: Vec<u8>,
    /// The detached signature of `content`, or a clear-signed text.
    pub signature: Vec<u8>,
    pub content: Vec<u8>,
    /// The expected verdict: whether gpgv accepts the signature.
    pub good: bool,
    /// The reason why landfall refuses a case that gpgv accepts.
    pub stricter: Option<&'static str>,
}

impl Case {
    pub fn new(name: &'static str, good: bool, keys: &[u8], signature: &[u8]) -> Case {
        let keys = keys.to_vec();
        let signature = signature.to_vec();
        Case {
            name,
            keys,
            signature,
            content: detached::CONTENT.to_vec(),
            good,
            stricter: None,
        }
    }

    /// The same case, but landfall refuses it because of `why`.
    pub fn stricter(self, why: &'static str) -> Case {
        Case {
            stricter: Some(why),
            ..self
        }
    }
}

/// The prefix of the files of a case.
fn file(at: usize) -> String {
    format!("c{at:03}")
}

/// Whether apt would accept the case: gpgv reports at least one good signature, and none that is
/// bad (apt's `methods/gpgv.cc`). With apt's options, gpgv refuses SHA-1 and RIPEMD-160.
fn gpgv(place: &Place, case: &Case, at: usize) -> bool {
    let name = file(at);
    let keys = place.write(&format!("gpgv/{name}.gpg"), dearmored(place, &case.keys));
    let signature = place.write(&format!("gpgv/{name}.sig"), &case.signature);
    let mut gpgv = Command::new("gpgv");
    gpgv.args([
        "--status-fd",
        "1",
        "--weak-digest",
        "SHA1",
        "--weak-digest",
        "RIPEMD160",
        "--keyring",
    ]);
    gpgv.arg(keys).arg(signature);
    if !case.content.is_empty() {
        gpgv.arg(place.write(&format!("gpgv/{name}"), &case.content));
    }
    let output = gpgv.output().unwrap();
    let status = String::from_utf8_lossy(&output.stdout).into_owned();
    println!(
        "{name} {}: {}",
        case.name,
        status.replace("[GNUPG:] ", "").replace('\n', " | ")
    );
    println!(
        "    {}",
        String::from_utf8_lossy(&output.stderr).replace('\n', " | ")
    );
    status.contains("] GOODSIG ") && !status.contains("] BADSIG ")
}

fn dearmored(place: &Place, keys: &[u8]) -> Vec<u8> {
    if !keys.starts_with(b"-----") {
        return keys.to_vec();
    }
    let armored = place.write("gpgv/armored", keys);
    crate::support::run(
        Command::new("gpg")
            .args(["--output", "-", "--dearmor"])
            .arg(armored),
    )
}

/// The beginnings of the messages for texts that have a valid signature but do not describe the
/// chart. Only the signatures are compared here.
const WELL_SIGNED: [&str; 2] = [
    "its provenance is signed for another chart",
    "the Chart.yaml in its provenance cannot be read",
];

/// Compares the verdicts for `cases`. `manifest` gets the URL of `server`, and returns a manifest
/// that requests the cases from there. Locking this manifest must exit with `exit`.
fn compare(
    place: &Place,
    server: &Server,
    cases: &[Case],
    exit: i32,
    manifest: impl Fn(&str) -> String,
) {
    for (at, case) in cases.iter().enumerate() {
        place.write(&format!("keys/{}", file(at)), &case.keys);
    }
    place.write("m.yaml", manifest(&server.url()));
    let report = place.json(exit, &["lock", "-f", "m.yaml"]);
    let items = report["items"].as_array().unwrap();
    let mut wrong = Vec::new();
    for (at, case) in cases.iter().enumerate() {
        let is_own = |item: &&Value| {
            item["name"]
                .as_str()
                .is_some_and(|name| name.contains(&file(at)))
        };
        let item = items
            .iter()
            .find(is_own)
            .unwrap_or_else(|| panic!("{}: {report}", case.name));
        let reason = item["reason"].as_str().unwrap_or_default();
        let is_well_signed = WELL_SIGNED.iter().any(|words| reason.starts_with(words));
        let by_gpgv = gpgv(place, case, at);
        let by_landfall = item["status"] == "done" || is_well_signed;
        let expected = case.good && case.stricter.is_none();
        println!(
            "    landfall: {}",
            item["reason"].as_str().unwrap_or("accepts")
        );
        if by_gpgv != case.good || by_landfall != expected {
            wrong.push(format!(
                "{}: gpgv {by_gpgv} (expected {}), landfall {by_landfall} (expected {expected}): {}",
                case.name, case.good, item["reason"]
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
}

#[test]
fn detached_signatures_are_accepted_as_by_gpgv_with_known_exceptions() {
    if !need(&["gpg", "gpgv", "gpgconf"]) {
        return;
    }
    let place = Place::new();
    let cases = detached::cases(&place);
    for (at, case) in cases.iter().enumerate() {
        place.write(&format!("www/{}", file(at)), &case.content);
        place.write(&format!("www/{}.sig", file(at)), &case.signature);
    }
    let server = file_server(&place.path("www"));
    compare(&place, &server, &cases, 3, |url| {
        let entry = |at: usize| {
            let name = file(at);
            format!(
                "- {{url: \"{url}/{name}\", signatures: [\"{url}/{name}.sig\"], key: keys/{name}}}\n"
            )
        };
        let entries: String = (0..cases.len()).map(entry).collect();
        format!("apiVersion: landfall/v1\nkind: Manifest\nfiles:\n{entries}")
    });
}

#[test]
fn clear_signed_texts_are_accepted_as_by_gpgv_with_known_exceptions() {
    if !need(&["gpg", "gpgv", "gpgconf"]) {
        return;
    }
    let place = Place::new();
    let (charts, cases) = clear::cases(&place);
    crate::support::charts::repository(&place, "www", "", &charts);
    let server = file_server(&place.path("www"));
    compare(&place, &server, &cases, 1, |url| {
        let entry = |at: usize| {
            let name = file(at);
            format!("- {{repo: \"{url}\", name: {name}, version: 1.0.0, key: keys/{name}}}\n")
        };
        let entries: String = (0..cases.len()).map(entry).collect();
        format!("apiVersion: landfall/v1\nkind: Manifest\ncharts:\n{entries}")
    });
}
