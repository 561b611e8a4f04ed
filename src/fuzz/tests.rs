//! Runs all targets with inputs that are the same in every run.

use super::{TARGETS, Target};
use std::time::{Duration, Instant};

/// A linear congruential generator, so that a failing input can be reproduced.
struct Numbers(u64);

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

/// Runs a target for `FUZZ_SECONDS`, or with 300 inputs if the variable is not set.
fn run(target: &Target, number: u64) {
    let seconds = std::env::var("FUZZ_SECONDS")
        .ok()
        .and_then(|seconds| seconds.parse().ok());
    let end = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut numbers = Numbers(number);
    let seeds = (target.seeds)();
    assert!(!seeds.is_empty(), "{}", target.name);
    for seed in &seeds {
        (target.run)(seed);
    }
    (target.run)(b"");
    let mut round = 0;
    while end.map_or(round < 300, |end| Instant::now() < end) {
        let input = mutate(&seeds[numbers.below(seeds.len())], &mut numbers);
        let done = std::panic::catch_unwind(|| (target.run)(&input));
        assert!(
            done.is_ok(),
            "{}, input {round}: {:?}",
            target.name,
            String::from_utf8_lossy(&input)
        );
        round += 1;
    }
}

/// Defines a test for each target, so that they run in parallel and a failure names its target.
macro_rules! targets {
    ($($name:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                let at = TARGETS.iter().position(|target| target.name == stringify!($name)).unwrap();
                run(&TARGETS[at], at as u64 + 1);
            }
        )*

        #[test]
        fn every_target_has_a_test_and_a_program() {
            let tested = [$(stringify!($name)),*];
            let manifest = include_str!("../../fuzz/Cargo.toml");
            for target in TARGETS {
                assert!(tested.contains(&target.name), "{}", target.name);
                assert!(manifest.contains(&format!("name = \"{}\"\n", target.name)), "{}", target.name);
            }
        }
    };
}

targets!(
    reader,
    footer,
    index,
    deflate,
    recipe,
    patch,
    git_pack,
    git_repository,
    provider_package,
    provider_lock_file,
    yaml,
    merge,
    lock,
    chart,
    image_archive,
    deb,
    rpm,
    apt,
    yum,
    openpgp,
    image_signature,
    egress,
    evidence,
    htpasswd,
    node_config,
    registry_error,
    lfs_answer,
    token,
    sbom,
);
