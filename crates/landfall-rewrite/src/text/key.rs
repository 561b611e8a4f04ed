//! The key that a value has on its line, in texts that do not parse.

/// The key that a value after `before` has on its line: `image` in `  - image: "`, `FROM` has none.
pub(super) fn key(before: &str) -> Option<&str> {
    let before = before.trim_end_matches(['"', '\'', ' ', '\t']);
    let key = before
        .strip_suffix([':', '='])?
        .trim_end_matches(['"', '\'', ' ']);
    key.rsplit(|c: char| !(c.is_ascii_alphanumeric() || "_-.".contains(c)))
        .next()
        .filter(|key| !key.is_empty())
}

/// Whether `key` is named after an image.
pub(super) fn is_image_key(key: &str) -> bool {
    key.to_ascii_lowercase().ends_with("image")
}

/// Whether the tag of what this key names may stand under another key.
pub(super) fn has_tag_beside(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    // dockerRepository's tag is the version of what reads it
    key != "dockerrepository"
        && ["image", "repository", "repo", "name"]
            .iter()
            .any(|end| key.ends_with(end))
}
