//! Git repositories, with real git on both sides.

mod bundles;
mod clients;
mod faults;
mod gitea;
mod large_files;
mod lfs_config;
mod repositories;
mod shallow;
mod signatures;
mod sources;
mod submodules;
mod verify;

use crate::support::Place;
use crate::support::git::git;
use crate::support::run;
use serde_json::Value;

/// A manifest with one repository.
fn manifest(url: &str, more: &str) -> String {
    format!("apiVersion: landfall/v1\nkind: Manifest\ngit:\n- {{url: \"{url}\", {more}}}\n")
}

/// The output of git in a folder of `place`.
fn output(place: &Place, folder: &str, args: &[&str]) -> String {
    let folder = place.path(folder);
    String::from_utf8(run(&mut git(place, &folder, args))).unwrap()
}

/// The first repository of a lock.
fn locked(place: &Place) -> Value {
    let lock: Value = serde_yaml::from_str(&place.read("landfall.lock")).unwrap();
    lock["git"][0].clone()
}

/// Replaces the only `DIGEST` in a lock with the right digest of its repository, which is computed
/// from the other fields.
fn digest_again(lock: &str) -> String {
    let zeros = format!("sha256:{}", "0".repeat(64));
    let place = Place::new();
    place.write("landfall.lock", lock.replace("DIGEST", &zeros));
    let report = place.json(2, &["ls", "landfall.lock"]);
    // the message has the right digest
    let message = report["error"]["message"].as_str().unwrap();
    let digest = message.split("fields have ").nth(1).unwrap();
    lock.replace("DIGEST", &digest[..zeros.len()])
}
