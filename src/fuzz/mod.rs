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

/// All fuzz targets, each with its seeds.
pub const TARGETS: &[Target] = &[
    Target {
        name: "reader",
        seeds: || vec![bundles::seeds()[0].clone()],
        run: bundles::reader,
    },
    Target {
        name: "footer",
        seeds: || vec![bundles::seeds()[1].clone()],
        run: bundles::footer,
    },
    Target {
        name: "index",
        seeds: || vec![bundles::seeds()[2].clone()],
        run: bundles::index,
    },
    Target {
        name: "deflate",
        seeds: deflate::stream_seeds,
        run: deflate::deflate,
    },
    Target {
        name: "recipe",
        seeds: deflate::recipe_seeds,
        run: deflate::recipe,
    },
    Target {
        name: "patch",
        seeds: patch::seeds,
        run: patch::patch,
    },
    Target {
        name: "git_pack",
        seeds: git::pack_seeds,
        run: git::pack,
    },
    Target {
        name: "git_repository",
        seeds: git::repository_seeds,
        run: git::repository,
    },
    Target {
        name: "provider_package",
        seeds: providers::package_seeds,
        run: providers::package,
    },
    Target {
        name: "provider_lock_file",
        seeds: providers::lock_file_seeds,
        run: providers::lock_file,
    },
    Target {
        name: "yaml",
        seeds: documents::yaml_seeds,
        run: documents::yaml,
    },
    Target {
        name: "merge",
        seeds: documents::yaml_seeds,
        run: documents::merge,
    },
    Target {
        name: "lock",
        seeds: documents::lock_seeds,
        run: documents::lock,
    },
    Target {
        name: "chart",
        seeds: charts::seeds,
        run: charts::chart,
    },
    Target {
        name: "image_archive",
        seeds: charts::archive_seeds,
        run: charts::image_archive,
    },
    Target {
        name: "deb",
        seeds: packages::deb_seeds,
        run: packages::deb,
    },
    Target {
        name: "rpm",
        seeds: packages::rpm_seeds,
        run: packages::rpm,
    },
    Target {
        name: "apt",
        seeds: packages::apt_seeds,
        run: packages::apt,
    },
    Target {
        name: "yum",
        seeds: packages::yum_seeds,
        run: packages::yum,
    },
    Target {
        name: "openpgp",
        seeds: packages::openpgp_seeds,
        run: packages::openpgp,
    },
    Target {
        name: "image_signature",
        seeds: signatures::signature_seeds,
        run: landfall_signature::fuzz,
    },
    Target {
        name: "egress",
        seeds: network::egress_seeds,
        run: network::egress,
    },
    Target {
        name: "evidence",
        seeds: network::evidence_seeds,
        run: network::evidence,
    },
    Target {
        name: "htpasswd",
        seeds: network::htpasswd_seeds,
        run: network::htpasswd,
    },
    Target {
        name: "node_config",
        seeds: network::node_config_seeds,
        run: network::node_config,
    },
    Target {
        name: "registry_error",
        seeds: network::error_seeds,
        run: network::registry_error,
    },
    Target {
        name: "lfs_answer",
        seeds: network::lfs_answer_seeds,
        run: network::lfs_answer,
    },
    Target {
        name: "token",
        seeds: network::token_seeds,
        run: network::token,
    },
    Target {
        name: "sbom",
        seeds: network::sbom_seeds,
        run: network::sbom,
    },
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
