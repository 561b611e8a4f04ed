//! Recognizes digests and uncompressed layers by the names of members.

use landfall_model::Digest;

/// Returns the digest in the name of a member: `blobs/sha256/<hex>` in OCI layouts, in any folder;
/// `<hex>`, `<hex>.tar`, `<hex>.json`, `sha256:<hex>` and `<hex>.tar.gz` in docker archives of
/// skopeo and crane, and in `dir:` of skopeo.
pub(super) fn digest_of_name(path: &str) -> Option<Digest> {
    // read from the end, because tools put the layout into folders with various names
    let mut parts = path.rsplit('/');
    let name = parts.next()?;
    if let (Some(algorithm), Some("blobs")) = (parts.next(), parts.next())
        && let Ok(digest) = format!("{algorithm}:{name}").parse()
    {
        return Some(digest);
    }
    // the names in docker archives contain no algorithm; all docker archives use SHA-256
    let name = name.strip_prefix("sha256:").unwrap_or(name);
    let endings = [".tar.gz", ".tar", ".json"];
    let hex = endings
        .iter()
        .find_map(|ending| name.strip_suffix(ending))
        .unwrap_or(name);
    // only the file name may be a digest: docker archives name folders by the IDs of layers
    (hex.len() == 64).then(|| format!("sha256:{hex}").parse().ok())?
}

/// Whether a member is an uncompressed layer of a docker archive: `<id>/layer.tar` or `<hex>.tar`.
/// In the registry, the same layer is compressed and has another digest.
pub(super) fn is_unpacked_layer(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name == "layer.tar" || (name.ends_with(".tar") && digest_of_name(path).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_recognized_in_the_names_that_tools_write() {
        let hex = "ab".repeat(32);
        let digest: Digest = format!("sha256:{hex}").parse().unwrap();
        for name in [
            format!("blobs/sha256/{hex}"),
            format!("images/blobs/sha256/{hex}"),
            format!("{hex}.tar.gz"),
            format!("sha256:{hex}"),
            format!("{hex}.json"),
            format!("{hex}.tar"),
            hex.clone(),
        ] {
            assert_eq!(digest_of_name(&name), Some(digest.clone()), "{name}");
        }
        for name in [
            "index.json",
            "manifest.json",
            "oci-layout",
            "blobs/sha256/x",
            "repositories",
            "a.tar",
        ] {
            assert_eq!(digest_of_name(name), None, "{name}");
        }
        assert!(
            is_unpacked_layer(&format!("{hex}/layer.tar"))
                && is_unpacked_layer(&format!("{hex}.tar"))
        );
        assert!(
            !is_unpacked_layer(&format!("{hex}.tar.gz")) && !is_unpacked_layer("components/a.tar")
        );
    }
}
