//! A bundle on three discs, one of which is damaged: the messages, and the repair.

use super::site::Site;
use crate::support::http;
use crate::support::images::noise;
use crate::support::peers::{landfall_serve, own_registry};
use crate::support::position_of;
use serde_json::Value;
use std::fs;

/// Three discs, `1`, `2` and `3`, each with a volume of `V` and the checksums. Each volume contains
/// layers of two images.
fn three_discs() -> Site {
    let site = Site::images(6, 50_000);
    let volumes = site.split("V", "130k");
    assert_eq!(volumes.len(), 3);
    for (volume, disc) in volumes.iter().zip(["1", "2", "3"]) {
        fs::create_dir(site.place.path(disc)).unwrap();
        fs::rename(
            volume,
            site.place.path(disc).join(volume.file_name().unwrap()),
        )
        .unwrap();
        fs::copy(
            site.place.path("V.sha256sums"),
            site.place.path(disc).join("V.sha256sums"),
        )
        .unwrap();
    }
    fs::remove_file(site.place.path("V.sha256sums")).unwrap();
    site
}

const DISCS: [&str; 3] = ["1", "2", "3"];
const VOLUMES: [&str; 3] = ["1/V.0001", "2/V.0002", "3/V.0003"];
const REPAIR: &str = "copy V.0002 again; or rebuild it where the bundle was packed, from its store and the other volumes:";

/// Changes a bit of the layer of image `app`.
fn change_layer(bytes: &mut [u8], app: u64) {
    let part = &noise(9_000 + app, 50_000)[25_000..25_032];
    let at = position_of(bytes, part);
    bytes[at] ^= 1;
}

/// Runs the command at the end of the message.
fn run_suggested_command(site: &Site, message: &str) {
    let command = message.lines().last().unwrap().trim();
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_landfall"));
    let folder = program.parent().unwrap().display();
    assert!(command.starts_with("landfall pack --like "), "{message}");
    site.sh(&format!("PATH={folder}:$PATH; {command} --progress none"));
}

fn tags(address: &str) -> Vec<usize> {
    (0..6)
        .filter(|app| http::manifest(address, &format!("example/app-{app}"), "v1").status == 200)
        .collect()
}

fn message(report: &Value) -> &str {
    report["error"]["message"].as_str().unwrap()
}

#[test]
fn a_damaged_disc_is_reported_with_its_images_and_a_repair_command() {
    let site = three_discs();
    let place = &site.place;
    let with = |verb: &'static str, places: [&'static str; 3], more: &[&'static str]| {
        [&[verb], &places[..], more].concat()
    };
    for places in [DISCS, VOLUMES, ["3", "1/V.0001", "2"]] {
        place.json(0, &with("verify", places, &[]));
        place.json(0, &with("ls", places, &[]));
    }

    // the volume on the second disc is truncated
    let good = fs::read(place.path("2/V.0002")).unwrap();
    fs::write(place.path("2/V.0002"), &good[..good.len() / 2]).unwrap();
    let printed = "1/V has missing or damaged volumes\n  \
                V.0002: its SHA-256 is not the one in V.sha256sums\n\
                affected:\n  image quay.io/example/app-2:v1\n  image quay.io/example/app-3:v1\n\
                all other items are complete: push and serve accept them with --allow-partial\n";
    let repair =
        |likes: &str| format!("{printed}{REPAIR}\n  landfall pack{likes} --only-volume 2 -o 2/V");
    let by_volume = repair(" --like 1/V.0001 --like 2/V.0002 --like 3/V.0003");
    assert_eq!(site.refused(&with("verify", VOLUMES, &[])), by_volume);
    assert_eq!(
        site.refused(&with("verify", DISCS, &[])),
        repair(" --like 1 --like 2 --like 3")
    );
    assert_eq!(site.refused(&with("ls", VOLUMES, &[])), by_volume);
    assert_eq!(
        site.refused(&with("serve", VOLUMES, &["--listen", "127.0.0.1:0"])),
        by_volume
    );
    // a push delivers nothing, or with `--allow-partial` all undamaged items
    let registry = own_registry();
    let address = registry.address.clone();
    let push = |exit: i32, places: [&'static str; 3], more: &[&str]| {
        place.json(
            exit,
            &[&["push"], &places[..], &["--to", &address], more].concat(),
        )
    };
    assert_eq!(message(&push(4, VOLUMES, &[])), by_volume);
    assert_eq!(registry.requests("/v2/example"), 0);
    let pushed = push(3, VOLUMES, &["--allow-partial"]);
    let missing: Vec<&str> = pushed["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|item| item["status"] == "missing")
        .map(|item| item["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        missing,
        ["quay.io/example/app-2:v1", "quay.io/example/app-3:v1"]
    );
    assert_eq!(tags(&address), [0, 1, 4, 5]);
    let server = landfall_serve(place, &with("serve", VOLUMES, &["--allow-partial"])[1..]);
    assert_eq!(tags(&server.address), [0, 1, 4, 5]);
    drop(server);

    // the command in the message repairs the disc on the machine that packed the bundle
    run_suggested_command(&site, &by_volume);
    assert_eq!(fs::read(place.path("2/V.0002")).unwrap(), good);
    place.json(0, &with("verify", VOLUMES, &[]));
    push(0, VOLUMES, &[]);
    assert_eq!(tags(&address), [0, 1, 2, 3, 4, 5]);

    // if a disc is missing, the command writes its volume next to the first one
    fs::rename(place.path("2"), place.path("elsewhere")).unwrap();
    let printed = site.refused(&["verify", "1", "3"]);
    assert!(
        printed.starts_with(
            "1/V is incomplete: V.0002 is missing; put all volumes into one folder, or name each \
             folder\n"
        ),
        "{printed}"
    );
    assert!(
        printed.contains("image quay.io/example/app-3:v1") && !printed.contains("app-4"),
        "{printed}"
    );
    run_suggested_command(&site, &printed);
    assert_eq!(fs::read(place.path("1/V.0002")).unwrap(), good);
    place.json(0, &["verify", "1", "3"]);
}

#[test]
fn a_changed_byte_is_reported_with_volume_and_images_before_the_push() {
    let site = three_discs();
    let place = &site.place;
    let mut bytes = fs::read(place.path("2/V.0002")).unwrap();
    change_layer(&mut bytes, 3);
    fs::write(place.path("2/V.0002"), &bytes).unwrap();
    let printed = site.refused(&[&["verify"], &VOLUMES[..]].concat());
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines[0], "1/V.0001 is damaged");
    assert!(lines[1].contains("(in V.0002)"), "{printed}");
    assert_eq!(
        lines[2..4],
        ["affected:", "  image quay.io/example/app-3:v1"],
        "{printed}"
    );
    assert_eq!(lines[5], REPAIR);

    let registry = own_registry();
    let to = ["--to", &*registry.address, "--jobs", "1"];
    place.json(
        3,
        &[&["push"], &VOLUMES[..], &to, &["--allow-partial"]].concat(),
    );
    assert_eq!(tags(&registry.address), [0, 1, 2, 4, 5]);
    let registry = own_registry();
    let push = [&["push"], &VOLUMES[..], &["--to", &registry.address]].concat();
    assert_eq!(site.refused(&push), printed);
    assert_eq!(registry.requests("POST"), 0);

    run_suggested_command(&site, &printed);
    place.json(0, &[&["verify"], &VOLUMES[..]].concat());
    place.json(0, &push);
    // if the registry has everything, the damaged layer is not read
    fs::write(place.path("2/V.0002"), &bytes).unwrap();
    place.json(0, &push);
}

#[test]
fn a_push_that_finds_damage_pushes_no_later_items() {
    let site = Site::images(6, 50_000);
    site.pack("B", &[]);
    let mut bytes = site.place.read_bytes("B");
    change_layer(&mut bytes, 3);
    fs::write(site.place.path("B"), &bytes).unwrap();
    let printed = site.refused(&["verify", "B"]);
    let affected: Vec<&str> = printed
        .lines()
        .filter(|line| line.contains(" image "))
        .collect();
    assert_eq!(affected, ["  image quay.io/example/app-3:v1"], "{printed}");
    assert!(
        printed.ends_with("\ncopy it again from the machine that packed it"),
        "{printed}"
    );
    let registry = own_registry();
    let push = ["push", "B", "--to", &registry.address, "--jobs", "1"];
    let report = site.place.json(3, &push);
    let later = &report["items"][4];
    assert!(
        later["reason"]
            .as_str()
            .unwrap()
            .contains("--allow-partial sends the intact items"),
        "{report}"
    );
    // the push of an item in progress may stop before its tag is written
    let sent = tags(&registry.address);
    assert!(
        sent.iter().all(|number| *number < 3),
        "items after the damage were pushed: {sent:?}"
    );
    site.place
        .json(3, &[&push[..], &["--allow-partial"]].concat());
    assert_eq!(tags(&registry.address), [0, 1, 2, 4, 5]);
}

#[test]
fn a_volume_number_outside_the_bundle_is_a_usage_error() {
    let site = three_discs();
    let like: Vec<&str> = DISCS.iter().flat_map(|disc| ["--like", *disc]).collect();
    let beyond = |number: &'static str| {
        let report = site.place.json(
            2,
            &[&["pack"], &like[..], &["--only-volume", number]].concat(),
        );
        assert_eq!(
            message(&report),
            format!("1 has 3 volumes; there is no volume {number}")
        );
    };
    beyond("7");
    beyond("4");
    // without checksums, the length in the footer shows that no volume is missing
    DISCS
        .iter()
        .for_each(|disc| fs::remove_file(site.place.path(disc).join("V.sha256sums")).unwrap());
    beyond("7");
}

#[test]
fn files_that_only_look_like_volumes_are_kept() {
    let site = Site::small();
    site.place.write("V.0131", "the log of day 131");
    let long = site.split("V", "18k").len();
    site.place.json(0, &["verify", "V"]);
    let report = site.pack("V", &["--volume-size", "40k"]);
    let removed = report["bundle"]["removed"].as_array().unwrap();
    assert_eq!(
        removed.len(),
        long - report["bundle"]["files"].as_array().unwrap().len(),
        "{report}"
    );
    assert_eq!(removed.last().unwrap(), &format!("V.{long:04}"));
    site.place.json(0, &["verify", "V"]);
    assert_eq!(site.place.read("V.0131"), "the log of day 131");
    // packing as one file removes the volumes
    site.pack("V", &[]);
    assert_eq!(site.volumes("V").len(), 0);
    assert_eq!(site.place.read("V.0131"), "the log of day 131");
}
