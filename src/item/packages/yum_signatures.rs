//! Whether the packages of yum are signed, each by itself, by a key of their source.

use super::locked::PackageSet;
use crate::content::BlobRead;
use crate::model::Limits;
use crate::packages::yum::verify_package;
use crate::sign::OpenPgpKeys;
use std::io::BufReader;

/// The packages in `blobs` that none of the keys of their source signed; a sentence each. Packages of apt are signed by
/// their repository alone.
pub(super) fn signature_faults(set: &PackageSet, blobs: &dyn BlobRead) -> Vec<String> {
    if !set.is_yum() {
        return Vec::new();
    }
    let mut faults = Vec::new();
    for source in &set.sources {
        let keys = match OpenPgpKeys::parse(source.key.as_bytes()) {
            Ok(keys) => keys,
            Err(error) => {
                faults.push(format!("the key of {}: {error}", source.url));
                continue;
            }
        };
        for package in &source.packages {
            // what is not there is somebody else's fault to find
            let Ok(reader) = blobs.open(&package.digest, 0) else { continue };
            if let Err(error) = verify_package(BufReader::new(reader), &keys, &Limits::default()) {
                faults.push(format!("{}: {error}", package.path));
            }
        }
    }
    faults
}
