//! A bundle that has the approved lock, but frames with different content: `verify`, `push` and
//! `export` fail, and deliver none of its content.

use super::Cli;
use crate::cli::shared::{CliError, Context, Exit, VerbOutcome};
use clap::Parser;
use landfall_bundle::testkit::sample::forged_bundle;
use landfall_model::Digest;
use landfall_serve::ServedContent;
use landfall_serve::testing::{get, start};
use std::fs;
use std::path::Path;

#[test]
fn verify_push_and_export_refuse_frames_that_differ_from_the_approved_lock() {
    let locked: Vec<u8> = (0..3_146_505_u32).map(|at| (at * 31 / 7) as u8).collect();
    let carried: Vec<u8> = locked.iter().map(|byte| !byte).collect();
    let (packed, lock) = forged_bundle(&locked, &carried);
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    fs::copy(&packed.path, dir.join("B")).unwrap();
    fs::write(dir.join("l"), lock.to_text()).unwrap();

    let verified = run(dir, "verify DIR/B --lock DIR/l").err().unwrap();
    assert_eq!(verified.exit, Exit::Refused, "{}", verified.message);
    assert!(verified.message.contains("digest"), "{}", verified.message);

    let registry = start(Some(&dir.join("pushed")), ServedContent::default);
    let pushed = run(
        dir,
        &format!("push DIR/B --lock DIR/l --to {}", registry.address),
    );
    assert!(pushed.is_err() || pushed.is_ok_and(|outcome| outcome.exit != Exit::Done));
    let target = format!("/v2/app/blobs/{}", Digest::sha256(&locked));
    assert_eq!(get(&registry.address, &target, "").0, 404);
    assert_eq!(get(&registry.address, "/v2/app/manifests/1", "").0, 404);

    let exported = run(dir, "export files --bundle DIR/B -o DIR/www");
    assert!(exported.is_err() || exported.is_ok_and(|outcome| outcome.exit != Exit::Done));
    assert!(!dir.join("www/h.example/layer.tgz").exists());
}

/// Runs a command line, in which `DIR` is replaced by the folder, and returns its result.
fn run(dir: &Path, line: &str) -> Result<VerbOutcome, CliError> {
    let store = dir.join("store").display().to_string();
    let words = ["landfall", "--store", &store, "--progress", "none"]
        .map(str::to_owned)
        .into_iter();
    let path = |word: &str| word.replace("DIR", &dir.display().to_string());
    let cli = Cli::try_parse_from(words.chain(line.split(' ').map(path))).unwrap();
    let context = Context::new(cli.global).unwrap();
    cli.verb.run(&context)
}
