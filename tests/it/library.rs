//! The library as used by other programs: `examples/rewrite.rs`, and `examples/mirror.rs` with two
//! registries.

#[path = "../../examples/mirror.rs"]
#[allow(dead_code, reason = "its `main` is for the command line")]
mod mirror_example;
#[path = "../../examples/rewrite.rs"]
#[allow(dead_code, reason = "its `main` is for the command line")]
mod rewrite_example;

use crate::support::faults::Rig;
use crate::support::images::noise;
use crate::support::library::{
    ClientBuilder, ItemStatus, PinPolicy, ReportItem, Store, load_manifests,
};
use crate::support::peers::own_registry;
use crate::support::{Images, Place};
use std::fs::File;
use std::sync::mpsc;
use std::time::Duration;

#[test]
fn the_example_rewrites_a_text_for_a_registry() {
    let text = rewrite_example::pointed_at("172.20.0.2:5000").unwrap();
    assert_eq!(text, "image: 172.20.0.2:5000/team/app:v1\n");
}

#[test]
fn the_example_mirrors_a_manifest() {
    let rig = Rig::new();
    let manifest = rig.place.path("m.yaml");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let lines = runtime
        .block_on(mirror_example::mirror(manifest, &rig.down.address))
        .unwrap();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(
        lines.iter().all(|line| line.ends_with(": Done")),
        "{lines:?}"
    );
    rig.assert_arrived("the example");
    let again: Vec<ReportItem> = rig.push("first").unwrap().items;
    assert!(
        again.iter().all(|item| item.status == ItemStatus::Present),
        "{again:?}"
    );
}

#[test]
fn a_library_build_has_neither_the_command_line_nor_the_server() {
    let tree = |flags: &[&str]| {
        let mut cargo = std::process::Command::new(env!("CARGO"));
        cargo
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .args(["tree", "--locked", "--edges", "normal", "--prefix", "none"]);
        let out = cargo.args(flags).output().unwrap();
        assert!(
            out.status.success(),
            "{}",
            String::from_utf8_lossy(&out.stderr)
        );
        String::from_utf8(out.stdout).unwrap()
    };
    let all = tree(&[]);
    let library = tree(&["--no-default-features"]);
    for name in ["landfall-serve", "clap", "indicatif"] {
        let is_in = |tree: &str| {
            tree.lines()
                .any(|line| line.split(' ').next() == Some(name))
        };
        assert!(is_in(&all) && !is_in(&library), "{name}");
    }
}

/// Waiting for another writer of the store must not block the thread, which the rest of the program
/// needs.
#[test]
fn waiting_for_the_store_does_not_block_a_thread() {
    let place = Place::new();
    let registry = own_registry();
    let images = Images::new(place.path("layout"));
    let image = images.image("linux/amd64", &[images.layer(&[("a", &noise(1, 100))])]);
    images.push(&registry.address, "app", "v1", &image);
    let manifest = format!(
        "apiVersion: landfall/v1\nkind: Manifest\nreferrers: false\nimages: [\"{}/app:v1\"]\n",
        registry.address
    );
    let wanted = load_manifests(&[place.write("m.yaml", manifest)]).unwrap();
    let store = Store::open(&place.path("store")).unwrap();
    let hex = image["digest"].as_str().unwrap().replace("sha256:", "");
    let partial =
        File::create(place.path(format!("store/.landfall/partial/sha256-{hex}"))).unwrap();
    partial.lock().unwrap();
    let (others, done) = mpsc::channel();
    let released = std::thread::spawn(move || {
        let in_time = done.recv_timeout(Duration::from_mins(1)).is_ok();
        partial.unlock().unwrap();
        in_time
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let locked = runtime.block_on(async {
        let client = ClientBuilder::default()
            .without_environment()
            .build()
            .unwrap();
        let other = async {
            while registry.requests("/v2/app/manifests/") == 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            // by now, `client.lock` waits for the partial file, or will soon
            for _ in 0..20 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            others.send(()).unwrap();
        };
        tokio::join!(client.lock(&wanted, None, PinPolicy::Keep, &store), other).0
    });
    assert_eq!(locked.lock.images.len(), 1);
    assert!(
        released.join().unwrap(),
        "nothing else ran while `lock` waited"
    );
}
