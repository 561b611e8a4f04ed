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
