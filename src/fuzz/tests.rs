//! Runs all targets with inputs that are the same in every run.

use super::{Numbers, TARGETS, Target, mutate};
use std::time::{Duration, Instant};

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
