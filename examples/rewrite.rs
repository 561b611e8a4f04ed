//! Rewrites the image references of a text to a private registry.
//!
//!     cargo run --example rewrite

#![allow(clippy::print_stdout, reason = "it is a program")]

use landfall::{DestinationMap, Lock, ReferenceIndex, RewriteOptions, TextSyntax, rewrite};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{}", pointed_at("172.20.0.2:5000")?);
    Ok(())
}

/// Returns a text with one image, rewritten to its name at `registry`.
pub(crate) fn pointed_at(registry: &str) -> Result<String, Box<dyn std::error::Error>> {
    let digest = "0".repeat(64);
    let lock = Lock::parse(
        "landfall.lock",
        &format!(
            "version: 1\nimages:\n- name: quay.io/team/app:v1\n  digest: sha256:{digest}\n  \
             mediaType: application/vnd.oci.image.manifest.v1+json\n  size: 2\n"
        ),
    )?;
    let index = ReferenceIndex::new(&lock, &DestinationMap::to(registry.parse()?));
    let text = "image: quay.io/team/app:v1\n";
    Ok(rewrite(
        text,
        TextSyntax::Document,
        &index,
        RewriteOptions::default(),
    )
    .text)
}
