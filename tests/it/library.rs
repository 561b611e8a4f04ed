//! The library as an embedding program uses it: `examples/mirror.rs` runs against two registries.

#[path = "../../examples/mirror.rs"]
#[allow(dead_code, reason = "its `main` is for the command line")]
mod example;

use crate::support::faults::Rig;
use crate::support::library::{Item, Status};

#[test]
fn the_example_mirrors_a_manifest() {
    let rig = Rig::new();
    let manifest = rig.place.path("m.yaml");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let lines = runtime.block_on(example::mirror(manifest, &rig.down.address)).unwrap();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines.iter().all(|line| line.ends_with(": Done")), "{lines:?}");
    rig.assert_arrived("the example");
    let again: Vec<Item> = rig.push("first").unwrap().items;
    assert!(again.iter().all(|item| item.status == Status::Present), "{again:?}");
}

#[test]
fn a_library_build_has_neither_the_command_line_nor_the_server() {
    let tree = |flags: &[&str]| {
        let mut cargo = std::process::Command::new(env!("CARGO"));
        cargo
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .args(["tree", "--locked", "--edges", "normal", "--prefix", "none"]);
        let out = cargo.args(flags).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    };
    let (all, library) = (tree(&[]), tree(&["--no-default-features"]));
    for name in ["axum", "clap", "indicatif"] {
        let is_in = |tree: &str| tree.lines().any(|line| line.split(' ').next() == Some(name));
        assert!(is_in(&all) && !is_in(&library), "{name}");
    }
}
