//! The exit codes and the `status` of verbs in typical situations, in one table.

use crate::support::faults::{Fault, FaultKind, RequestKind, Rig};
use std::fs;

/// The verb and its arguments, the exit code, the status of the JSON document, and the files that
/// must exist (`+name`) or must not exist (`-name`) afterwards.
type Row<'a> = (&'a str, i32, &'a str, &'a [&'a str]);

fn check(rig: &Rig, situation: &str, rows: &[Row<'_>]) {
    for (line, exit, status, files) in rows {
        let line = line
            .replace("UP", &rig.up.address)
            .replace("DOWN", &rig.down.address);
        let plain = [
            "--plain-http",
            &rig.up.address,
            "--plain-http",
            &rig.down.address,
        ];
        let args: Vec<&str> = line.split(' ').chain(plain).collect();
        let report = rig.place.json(*exit, &args);
        assert_eq!(report["status"], *status, "{situation}: {line}: {report:#}");
        // no row has another fault than the file that does not exist
        if line.contains("nowhere") {
            let message = report["error"]["message"].as_str().unwrap();
            assert!(message.contains("nowhere"), "{line}: {message}");
        }
        for file in *files {
            let is_there = file.starts_with('+');
            let name = &file[1..];
            assert_eq!(
                rig.place.path(name).exists(),
                is_there,
                "{situation}: {line}: {name}"
            );
        }
    }
}

#[test]
fn verbs_end_with_the_exit_codes_of_the_table() {
    let rig = Rig::new();
    rig.set_faults([]);
    let place = &rig.place;
    place.write(
        "app.yaml",
        format!("image: {}/team/app:v1\n", rig.up.address),
    );
    place.write("other.yaml", "image: quay.io/not/carried:1\n");
    place.write(
        "bad/app.yaml",
        format!("image: {}/team/app:v1\n", rig.up.address),
    );
    place.write("bad/not-utf8.yaml", b"image: \xff\n");
    place.write("signers", "");
    let locked = place.read("landfall.lock");

    check(
        &rig,
        "all is well",
        &[
            (
                "lock -f m.yaml --lock new.lock --store s-new",
                0,
                "done",
                &["+new.lock"],
            ),
            ("lock --check -f m.yaml --store s-new", 0, "done", &[]),
            ("pull --store s-new", 0, "done", &[]),
            (
                "pull --bundle new.bundle --store s-new",
                0,
                "done",
                &["+new.bundle"],
            ),
            ("pack -o whole --store s-new", 0, "done", &["+whole"]),
            (
                "pack -o split --volume-size 60000 --store s-new",
                0,
                "done",
                &["+split.0001"],
            ),
            ("verify whole", 0, "done", &[]),
            ("push whole --to DOWN", 0, "done", &[]),
            (
                "mirror --lock landfall.lock --to DOWN/mirrored",
                0,
                "done",
                &[],
            ),
            ("export files whole -o files", 0, "done", &["+files"]),
            (
                "export images whole -o images.tar",
                0,
                "done",
                &["+images.tar"],
            ),
            ("ls whole", 0, "done", &[]),
            ("diff landfall.lock whole", 0, "done", &[]),
            ("rewrite app.yaml --bundle whole --to DOWN", 0, "done", &[]),
            ("audit app.yaml --bundle whole", 0, "done", &[]),
            ("discover app.yaml", 0, "done", &[]),
            ("gc --lock landfall.lock --store s-new", 0, "done", &[]),
        ],
    );
    let lost =
        ["image", "file"].map(|kind| format!("- {{kind: {kind}, name: gone, cause: gone}}\n"));
    let part = format!("\nunresolved:\n{}...\n", lost.concat());
    place.write("lost.lock", locked.replace("\n...\n", &part));
    check(
        &rig,
        "the lock has unresolved items, and a dry run would write the other items",
        &[
            (
                "pull --lock lost.lock --store s-none --dry-run",
                3,
                "partial",
                &["-s-none"],
            ),
            (
                "export files --lock lost.lock --store s-new -o dry --dry-run --allow-partial",
                3,
                "partial",
                &["-dry"],
            ),
            (
                "export images --lock lost.lock --store s-new -o dry.tar --dry-run --allow-partial",
                3,
                "partial",
                &["-dry.tar"],
            ),
        ],
    );
    check(
        &rig,
        "an input file does not exist",
        &[
            ("lock -f nowhere.yaml", 2, "failed", &[]),
            (
                "lock -f m.yaml --check --lock nowhere.lock",
                2,
                "failed",
                &[],
            ),
            ("pull --lock nowhere.lock", 2, "failed", &[]),
            ("pack --lock nowhere.lock -o b", 2, "failed", &["-b"]),
            ("push --lock nowhere.lock --to DOWN", 2, "failed", &[]),
            ("mirror --lock nowhere.lock --to DOWN", 2, "failed", &[]),
            (
                "rewrite nowhere.yaml --bundle whole --to DOWN",
                2,
                "failed",
                &[],
            ),
            ("audit nowhere.yaml --bundle whole", 2, "failed", &[]),
            ("discover nowhere.yaml", 2, "failed", &[]),
            ("diff nowhere landfall.lock", 2, "failed", &[]),
            ("ls nowhere", 2, "failed", &[]),
            (
                "pack -o b --since nowhere --store s-new",
                2,
                "failed",
                &["-b"],
            ),
            ("verify nowhere", 2, "failed", &[]),
            ("push nowhere --to DOWN", 2, "failed", &[]),
            ("serve nowhere", 2, "failed", &[]),
            ("sign whole --key nowhere", 2, "failed", &[]),
            ("report nowhere", 2, "failed", &[]),
            ("sbom nowhere", 2, "failed", &[]),
            ("gc --bundle nowhere --store s-new", 2, "failed", &[]),
            ("status --bundle nowhere --registry DOWN", 2, "failed", &[]),
            (
                "rewrite app.yaml --bundle nowhere --to DOWN",
                2,
                "failed",
                &[],
            ),
            ("audit app.yaml --bundle nowhere", 2, "failed", &[]),
            (
                "render containerd --bundle nowhere --to DOWN -o none",
                2,
                "failed",
                &["-none"],
            ),
            (
                "export files --bundle nowhere -o none",
                2,
                "failed",
                &["-none"],
            ),
            (
                "export images --bundle nowhere -o none",
                2,
                "failed",
                &["-none"],
            ),
            ("doctor nowhere.yaml", 2, "failed", &[]),
        ],
    );
    fs::remove_file(place.path("split.0002")).unwrap();
    let mut damaged = place.read_bytes("whole");
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    place.write("damaged", damaged);
    check(
        &rig,
        "a bundle is incomplete, damaged, unsigned or not the expected one",
        &[
            ("verify split", 4, "refused", &[]),
            ("verify damaged", 4, "refused", &[]),
            (
                "verify whole --expect sha256:0000000000000000000000000000000000000000000000000000000000000000",
                4,
                "refused",
                &[],
            ),
            ("verify whole --allowed-signers signers", 4, "refused", &[]),
        ],
    );
    check(
        &rig,
        "a check fails",
        &[
            (
                "rewrite app.yaml --bundle whole --to DOWN --check",
                4,
                "refused",
                &[],
            ),
            ("audit other.yaml --bundle whole", 4, "refused", &[]),
        ],
    );
    check(
        &rig,
        "a file cannot be read",
        &[
            (
                "rewrite bad --bundle whole --to DOWN -o out",
                3,
                "partial",
                &["+out/app.yaml", "-out/not-utf8.yaml"],
            ),
            (
                "rewrite bad/not-utf8.yaml --bundle whole --to DOWN",
                1,
                "failed",
                &[],
            ),
            ("audit bad --bundle whole", 3, "partial", &[]),
            ("audit bad/not-utf8.yaml --bundle whole", 1, "failed", &[]),
            ("discover bad -o part.yaml", 3, "partial", &["+part.yaml"]),
            (
                "discover bad/not-utf8.yaml -o none.yaml",
                1,
                "failed",
                &["-none.yaml"],
            ),
        ],
    );

    // upstream lacks one of two images
    let lost = || Fault::always(RequestKind::Manifest, FaultKind::Status(404)).at("team/tool");
    rig.set_faults([lost()]);
    check(
        &rig,
        "one item fails",
        &[
            (
                "lock -f m.yaml --lock part.lock --store s-part",
                3,
                "partial",
                &["+part.lock"],
            ),
            ("pull --store s-part", 3, "partial", &[]),
            (
                "pull --bundle part.bundle --store s-other",
                3,
                "partial",
                &["-part.bundle"],
            ),
            (
                "pack -o refused --store s-part",
                3,
                "refused",
                &["-refused"],
            ),
            (
                "pack -o part --store s-part --allow-partial",
                3,
                "partial",
                &["+part"],
            ),
            (
                "pack -o part --lock part.lock --store s-part",
                3,
                "refused",
                &[],
            ),
            ("verify part", 4, "refused", &[]),
            ("verify part --allow-partial", 0, "done", &[]),
            ("push part --to DOWN/part", 4, "refused", &[]),
            (
                "push part --to DOWN/part --allow-partial",
                3,
                "partial",
                &[],
            ),
            (
                "export images --lock landfall.lock --store s-part -o none",
                1,
                "failed",
                &["-none"],
            ),
            (
                "export images --lock landfall.lock --store s-part -o some.tar --allow-partial",
                3,
                "partial",
                &["+some.tar"],
            ),
        ],
    );
    rig.set_faults([]);
    let app = ("team/app".to_owned(), "v1".to_owned());
    let tool = rig
        .up
        .content(|content| content.tags[&("team/tool".to_owned(), "v1".to_owned())].clone());
    let moved = |content: &mut crate::support::faults::Content| {
        let manifest = content.manifests[&("team/tool".to_owned(), tool.clone())].clone();
        content
            .manifests
            .insert(("team/app".into(), tool.clone()), manifest);
        content.tags.insert(app.clone(), tool.clone()).unwrap()
    };
    let old = rig.up.content(moved);
    check(
        &rig,
        "a tag moved upstream",
        &[("lock --check -f m.yaml --store s-new", 4, "refused", &[])],
    );
    rig.up
        .content(|content| content.tags.insert(app.clone(), old));

    let none = [
        RequestKind::Manifest,
        RequestKind::ManifestHead,
        RequestKind::Blob,
        RequestKind::File,
    ]
    .map(|on| Fault::always(on, FaultKind::Status(403)));
    rig.set_faults(none);
    check(
        &rig,
        "everything fails",
        &[
            (
                "lock -f m.yaml --lock none.lock --store s-none",
                1,
                "failed",
                &["-none.lock"],
            ),
            ("lock -f m.yaml --refresh --store s-none", 1, "failed", &[]),
            ("lock --check -f m.yaml --store s-none", 1, "failed", &[]),
            ("pull --store s-none", 1, "failed", &[]),
            (
                "pull --bundle none.bundle --store s-none",
                1,
                "failed",
                &["-none.bundle"],
            ),
            ("pack -o none --store s-none", 3, "refused", &["-none"]),
            (
                "pack -o none --store s-none --allow-partial",
                1,
                "failed",
                &["-none"],
            ),
            (
                "export files --lock landfall.lock --store s-none -o none",
                1,
                "failed",
                &[],
            ),
            (
                "mirror --lock landfall.lock --to DOWN/none",
                1,
                "failed",
                &[],
            ),
            ("push whole --to 127.0.0.1:9", 1, "failed", &[]),
        ],
    );
    // if no item can be resolved, the existing lock is not replaced
    let images = format!(
        "images: [{0}/team/app:v2, {0}/team/tool:v2]",
        rig.up.address
    );
    place.write(
        "new.yaml",
        format!("apiVersion: landfall/v1\nkind: Manifest\n{images}\n"),
    );
    check(
        &rig,
        "no item of a new manifest can be resolved",
        &[("lock -f new.yaml --store s-none", 1, "failed", &[])],
    );
    assert_eq!(place.read("landfall.lock"), locked);
}

/// A mistyped `--store` must not create an empty store, in which everything is missing.
#[test]
fn verbs_that_only_read_a_store_fail_if_there_is_none() {
    let rig = Rig::new();
    rig.set_faults([]);
    check(
        &rig,
        "the store does not exist",
        &[
            ("pack -o b --store typo", 2, "failed", &["-b", "-typo"]),
            ("pack -o b --store typo --dry-run", 2, "failed", &["-typo"]),
            (
                "pack --like b --only-volume 1 --store typo",
                2,
                "failed",
                &["-typo"],
            ),
            ("push --to DOWN --store typo", 2, "failed", &["-typo"]),
            (
                "push --to DOWN --store typo --dry-run",
                2,
                "failed",
                &["-typo"],
            ),
            ("publish --store typo", 2, "failed", &["-typo"]),
            (
                "export files -o out --store typo",
                2,
                "failed",
                &["-typo", "-out"],
            ),
            (
                "mirror --lock landfall.lock --to DOWN --store typo --dry-run",
                0,
                "done",
                &["-typo"],
            ),
            ("pull --store typo --dry-run", 0, "done", &["-typo"]),
            ("pull --store typo", 0, "done", &["+typo"]),
            ("pack -o b --store typo", 0, "done", &["+b"]),
        ],
    );
}

#[test]
fn a_refusal_to_pack_is_distinguished_from_a_partial_bundle() {
    let rig = Rig::new();
    rig.set_faults([Fault::always(RequestKind::Manifest, FaultKind::Status(404)).at("team/tool")]);
    let printed = |args: &str| {
        let output = rig
            .place
            .landfall()
            .args(args.split(' '))
            .assert()
            .code(3)
            .get_output()
            .clone();
        let printed =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        printed.concat()
    };
    printed(&format!(
        "pull --store s-part --plain-http {}",
        rig.up.address
    ));
    let refused = printed("pack -o b --store s-part");
    assert!(
        refused.starts_with("landfall: refused: 1 item would be missing from the bundle"),
        "{refused}"
    );
    let packed = printed("pack -o b --store s-part --allow-partial");
    assert!(
        packed.starts_with("packed ") && packed.contains("the bundle is partial"),
        "{packed}"
    );
}
