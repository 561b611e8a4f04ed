//! Finds the images of Dockerfiles.

use crate::text::{ImageWord, images};
use crate::walk::ImageCandidate;
use std::path::Path;

/// Whether `name` is the name of a Dockerfile.
pub(super) fn is_dockerfile(name: &Path) -> bool {
    let name = name
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default()
        .to_ascii_lowercase();
    ["dockerfile", "containerfile"].iter().any(|word| {
        name == *word
            || name.starts_with(&format!("{word}."))
            || name.ends_with(&format!(".{word}"))
    })
}

/// The images of a Dockerfile, at the words that name them.
pub(super) fn candidates(text: &str) -> Vec<ImageCandidate> {
    let candidates =
        |word: &ImageWord| ImageCandidate::all(word.span.start, &[], &word.name, true, true);
    images(text).iter().flat_map(candidates).collect()
}
