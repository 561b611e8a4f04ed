//! Finds the key of a value on its line, in texts that are not YAML.

/// The key at the end of `before`, the text before a value: `image` in `  - image: "`. `None` if
/// no `:` or `=` precedes the value, as after `FROM`.
pub(super) fn key(before: &str) -> Option<&str> {
    let before = before.trim_end_matches(['"', '\'', ' ', '\t']);
    let key = before
        .strip_suffix([':', '='])?
        .trim_end_matches(['"', '\'', ' ']);
    key.rsplit(|c: char| !(c.is_ascii_alphanumeric() || "_-.".contains(c)))
        .next()
        .filter(|key| !key.is_empty())
}

/// Whether the name of `key` says that its value is an image.
pub(super) fn is_image_key(key: &str) -> bool {
    key.to_ascii_lowercase().ends_with("image")
}

/// Whether the tag of the image at `key` may be the value of another key.
pub(super) fn has_tag_beside(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    // the tag of KKP's dockerRepository is KKP's own version
    key != "dockerrepository"
        && ["image", "repository", "repo", "name"]
            .iter()
            .any(|end| key.ends_with(end))
}
