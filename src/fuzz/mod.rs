//! The fuzz targets: one function for each reader of foreign bytes. A target panics only if the
//! reader has a bug. The programs in `fuzz/` call the targets, and `cargo test` runs each of them
//! with a few hundred inputs that are the same in every run.
#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a target reports a bug by panicking"
)]

mod charts;
#[cfg(test)]
mod cost;
mod deflate;
mod documents;
mod git;
mod packages;
mod patch;
mod seeds;
#[cfg(test)]
mod tests;

use landfall_bundle::fuzz as bundles;

/// A fuzz target: one kind of input with its reader.
pub struct Target {
    /// The name of the target, and of its program in `fuzz/`.
    pub name: &'static str,
    /// Valid inputs, which are mutated.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Reads any bytes as this kind of input.
    pub run: fn(&[u8]),
}

const fn target(name: &'static str, seeds: fn() -> Vec<Vec<u8>>, run: fn(&[u8])) -> Target {
    Target { name, seeds, run }
}

/// All fuzz targets, each with its seeds.
pub const TARGETS: &[Target] = &[
    target(
        "reader",
        || vec![bundles::seeds()[0].clone()],
        bundles::reader,
    ),
    target(
        "footer",
        || vec![bundles::seeds()[1].clone()],
        bundles::footer,
    ),
    target(
        "index",
        || vec![bundles::seeds()[2].clone()],
        bundles::index,
    ),
    target("deflate", deflate::stream_seeds, deflate::deflate),
    target("recipe", deflate::recipe_seeds, deflate::recipe),
    target("patch", patch::seeds, patch::patch),
    target("git_pack", git::pack_seeds, git::pack),
    target("git_repository", git::repository_seeds, git::repository),
    target(
        "provider_package",
        seeds::provider_package_seeds,
        landfall_item::read_provider_package,
    ),
    target(
        "provider_lock_file",
        seeds::provider_lock_file_seeds,
        landfall_item::read_provider_lock_file,
    ),
    target("yaml", documents::yaml_seeds, documents::yaml),
    target("merge", documents::yaml_seeds, documents::merge),
    target("lock", documents::lock_seeds, documents::lock),
    target("chart", charts::seeds, charts::chart),
    target(
        "image_archive",
        charts::archive_seeds,
        charts::image_archive,
    ),
    target("deb", packages::deb_seeds, packages::deb),
    target("rpm", packages::rpm_seeds, packages::rpm),
    target("apt", packages::apt_seeds, packages::apt),
    target("yum", packages::yum_seeds, packages::yum),
    target("openpgp", packages::openpgp_seeds, packages::openpgp),
    target(
        "image_signature",
        seeds::image_signature_seeds,
        landfall_signature::fuzz,
    ),
    target("egress", seeds::egress_seeds, crate::egress::fuzz),
    target(
        "evidence",
        || vec![crate::evidence::fuzz_seed()],
        crate::evidence::fuzz,
    ),
    target("htpasswd", seeds::htpasswd_seeds, landfall_serve::fuzz),
    target(
        "node_config",
        seeds::node_config_seeds,
        crate::doctor::fuzz_node_config,
    ),
    target("registry_error", seeds::error_seeds, seeds::registry_error),
    target(
        "lfs_answer",
        seeds::lfs_answer_seeds,
        landfall_content::upstream::fuzz,
    ),
    target(
        "token",
        seeds::token_seeds,
        landfall_content::registry::fuzz_token,
    ),
    target("sbom", seeds::sbom_seeds, landfall_bundle::sbom::fuzz),
];

/// Runs the target `name` with `bytes`.
///
/// # Panics
/// If there is no such target, or if the reader has a bug.
pub fn run(name: &str, bytes: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    (target
        .unwrap_or_else(|| panic!("no target is called {name}"))
        .run)(bytes);
}
