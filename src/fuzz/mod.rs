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
mod network;
mod packages;
mod patch;
mod providers;
mod signatures;
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
        providers::package_seeds,
        providers::package,
    ),
    target(
        "provider_lock_file",
        providers::lock_file_seeds,
        providers::lock_file,
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
        signatures::signature_seeds,
        landfall_signature::fuzz,
    ),
    target("egress", network::egress_seeds, network::egress),
    target("evidence", network::evidence_seeds, network::evidence),
    target("htpasswd", network::htpasswd_seeds, network::htpasswd),
    target(
        "node_config",
        network::node_config_seeds,
        network::node_config,
    ),
    target(
        "registry_error",
        network::error_seeds,
        network::registry_error,
    ),
    target("lfs_answer", network::lfs_answer_seeds, network::lfs_answer),
    target("token", network::token_seeds, network::token),
    target("sbom", network::sbom_seeds, network::sbom),
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

/// A linear congruential generator, so that a failing input can be reproduced.
struct Numbers(pub(super) u64);

impl Numbers {
    /// The next number in `0..end`, or 0 if the range is empty.
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        // the low bits of a linear congruential generator repeat after a few steps
        (self.0 >> 33) as usize % end.max(1)
    }
}

/// Applies one to four random changes.
fn mutate(seed: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=numbers.below(4) {
        let at = numbers.below(bytes.len());
        let end = (at + 1 + numbers.below(64)).min(bytes.len());
        match numbers.below(8) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << numbers.below(8),
            1 if !bytes.is_empty() => {
                bytes[at] = [0, 1, 0x7f, 0x80, 0xff, b'0', b'9', b'"'][numbers.below(8)];
            }
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(at.min(end)..end)),
            4 => {
                let copy = bytes[at.min(end)..end].to_vec();
                let to = numbers.below(bytes.len() + 1);
                bytes.splice(to..to, copy);
            }
            5 => {
                // Many formats have sizes and counts in decimal digits. One of them is replaced by
                // a number at the edge of a range.
                let digit = bytes[at.min(bytes.len())..]
                    .iter()
                    .position(u8::is_ascii_digit);
                if let Some(from) = digit.map(|offset| at + offset) {
                    let length = bytes[from..]
                        .iter()
                        .take_while(|byte| byte.is_ascii_digit())
                        .count();
                    let edge_numbers = [
                        "0",
                        "1",
                        "17",
                        "1048576",
                        "4294967295",
                        "18446744073709551615",
                    ];
                    let number = edge_numbers[numbers.below(6)].bytes();
                    bytes.splice(from..from + length, number);
                }
            }
            6 => bytes.extend(vec![0; numbers.below(300)]),
            _ => bytes[at.min(end)..end].reverse(),
        }
    }
    bytes
}
