//! Provenance: the signed text that says which archive a chart is (helm.sh, "Helm Provenance and Integrity").

use crate::model::Digest;
use crate::sign::{OpenPgpKeys, SignatureTime};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Sums {
    #[serde(default)]
    files: BTreeMap<String, String>,
}

/// The fingerprint of the key that signed `provenance`, which must be about the archive with `digest`.
///
/// # Errors
/// When none of the keys signed it, or it is about other archives.
pub(super) fn check(provenance: &[u8], digest: &Digest, keys: &OpenPgpKeys) -> Result<String, String> {
    let text = std::str::from_utf8(provenance).map_err(|_| "its provenance is no text")?;
    let (signed, key) =
        keys.verify(text, SignatureTime::Now).map_err(|error| format!("its provenance: {error}"))?;
    // Chart.yaml, and behind the end of that document the sums
    let sums = signed.rsplit_once("\n...\n").map(|(_, sums)| sums);
    let sums: Option<Sums> = sums.and_then(|sums| serde_yaml::from_str(sums).ok());
    let sums = sums.ok_or("its provenance holds no list of files")?;
    let wanted = digest.to_string();
    match sums.files.values().any(|sum| *sum == wanted) {
        true => Ok(key),
        false => Err(format!(
            "its provenance is signed for another archive: for {}, and this one is {wanted}",
            sums.files.iter().map(|(name, sum)| format!("{name} ({sum})")).collect::<Vec<_>>().join(", ")
        )),
    }
}
