//! Locks a manifest and mirrors its items to a registry: `cargo run --example mirror --
//! MANIFEST HOST[:PORT]`

#![allow(
    clippy::print_stdout,
    clippy::missing_errors_doc,
    reason = "it is a program"
)]

use landfall::{
    CachePolicy, ClientBuilder, DestinationMap, PinPolicy, PushOptions, Store, load_manifests,
};
use std::error::Error;
use std::path::PathBuf;

/// Mirrors the items of `manifest` to the registry `to`. Returns a line for each item.
pub async fn mirror(manifest: PathBuf, to: &str) -> Result<Vec<String>, Box<dyn Error>> {
    let wanted = load_manifests(&[manifest])?;
    let client = ClientBuilder::default().build()?;
    // manifests are kept here while the mirror runs; blobs are not stored
    let folder = tempfile::tempdir()?;
    let store = Store::open(folder.path())?;
    let locked = client.lock(&wanted, None, PinPolicy::Keep, &store).await;
    let mapping = DestinationMap::to(to.parse()?);
    let pushed = client
        .mirror(
            &locked.lock,
            &store,
            CachePolicy::ReadOnly,
            &mapping,
            PushOptions::default(),
        )
        .await?;
    Ok(pushed
        .items
        .iter()
        .map(|item| format!("{} {}: {:?}", item.kind, item.name, item.status))
        .collect())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let [manifest, to] = std::env::args()
        .skip(1)
        .collect::<Vec<_>>()
        .try_into()
        .map_err(|_| "MANIFEST HOST[:PORT]")?;
    for line in mirror(manifest.into(), &to).await? {
        println!("{line}");
    }
    Ok(())
}
