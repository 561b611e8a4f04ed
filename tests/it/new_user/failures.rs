//! Many failures with one cause, and the counts of progress.

use super::{run, run_with};
use crate::support::Place;
use crate::support::faults::{Content, Fault, FaultKind, Faults, RequestKind, Rig};

/// A registry with this many images, and a folder with a manifest that lists them.
fn many(count: usize) -> (Faults, Place) {
    let mut content = Content::default();
    for at in 0..count {
        let repository = format!("team/app{at}");
        let image = content.image(&repository, "linux/amd64", &[(at as u64 + 1, 64)]);
        content.tag(&repository, "v1", &image);
    }
    let up = Faults::new(content);
    let place = Place::new();
    let images: String = (0..count)
        .map(|at| format!("- {}/team/app{at}:v1\n", up.address))
        .collect();
    place.write(
        "m.yaml",
        format!("apiVersion: landfall/v1\nkind: Manifest\nimages:\n{images}"),
    );
    (up, place)
}

#[test]
fn many_failures_of_one_host_are_grouped() {
    let (up, place) = many(60);
    let lines = |args: &str| {
        let args = args.replace("UP", &up.address);
        let output = place
            .command()
            .args(args.split(' '))
            .args(["--progress", "none"])
            .output()
            .unwrap();
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat())
            .lines()
            .count()
    };
    run(
        &place,
        &[("UP", &up.address)],
        &[("lock m.yaml --plain-http UP", 0, &["locked 60 images"])],
    );
    up.set_faults(
        [
            RequestKind::Manifest,
            RequestKind::ManifestHead,
            RequestKind::Blob,
        ]
        .map(|on| Fault::always(on, FaultKind::Status(404))),
    );
    run(
        &place,
        &[("UP", &up.address)],
        &[(
            "pull --store s --plain-http UP --report r.json",
            1,
            &[
                "failed   60 images: source: ",
                "UP answered 404 Not Found",
                "           UP/team/app0:v1\n",
                "           … and 50 more; `--report FILE` writes all of them",
                "pulled 0 of 60 images into s, 60 failed",
            ],
        )],
    );
    assert!(lines("pull --store s --plain-http UP") < 16);
    let report: serde_json::Value = serde_json::from_str(&place.read("r.json")).unwrap();
    assert_eq!(report["items"].as_array().unwrap().len(), 60);
    assert!(
        report["items"][59]["reason"]
            .as_str()
            .unwrap()
            .contains("sha256:"),
        "the report has the complete reason"
    );
    // the list of items that cannot be packed and the annotations for CI are short, too
    run(
        &place,
        &[("UP", &up.address)],
        &[
            (
                "pack --store s",
                3,
                &[
                    "60 items would be missing",
                    "… and 30 more; `--report FILE` writes all of them",
                ],
            ),
            (
                "pull --store s --plain-http UP --output github",
                1,
                &["::error title=60 images::source: "],
            ),
            (
                "lock m.yaml --refresh --plain-http UP",
                1,
                &["failed   60 images: "],
            ),
        ],
    );
    let output = place
        .command()
        .args([
            "pull",
            "--store",
            "s",
            "--output",
            "github",
            "--progress",
            "none",
            "--plain-http",
            &up.address,
        ])
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout)
            .matches("::error")
            .count(),
        1
    );
}

#[test]
fn progress_counts_the_work_to_do() {
    let rig = Rig::new();
    rig.set_faults([Fault::always(RequestKind::Manifest, FaultKind::Status(404)).at("team/tool")]);
    let plain = format!("--progress plain --plain-http {}", rig.up.address);
    let stderr_of = |args: &str| {
        let output = rig
            .place
            .command()
            .args(args.split(' '))
            .args(plain.split(' '))
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    run_with(&rig, &[("lock m.yaml --plain-http UP --lock l", 3, &[])]);
    assert!(
        stderr_of("pull --store s").contains("pull: 3/3 items"),
        "{}",
        stderr_of("pull --store s")
    );
    rig.set_faults([]);
    // two items are in the store, and one must still be downloaded
    let printed = stderr_of("pull --store s");
    assert!(printed.contains("pull: 1/1 items"), "{printed}");
    let printed = stderr_of("pull --store s");
    assert!(!printed.contains("pull: "), "{printed}");
}
