//! Content next to the manifest: files, folders, image archives, charts and git repositories.

mod charts;
mod files;
mod folders;
mod images;
mod imports;
mod repositories;

use crate::support::Place;

/// Writes a manifest with this body.
fn manifest(place: &Place, name: &str, body: &str) {
    let head = "apiVersion: landfall/v1\nkind: Manifest\n";
    place.write(name, format!("{head}{body}"));
}

/// Runs landfall, asserts the exit code, and returns both outputs.
fn output(place: &Place, exit: i32, args: &[&str]) -> String {
    let run = place.command().args(args).output().unwrap();
    let text = String::from_utf8_lossy(&[run.stdout, run.stderr].concat()).into_owned();
    assert_eq!(run.status.code(), Some(exit), "{args:?}: {text}");
    text
}
