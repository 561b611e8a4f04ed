//! Output for people: the runtimes that load an archive, the summary in CI, the text of a pull
//! request, and HTML reports.

use super::{run, run_with};
use crate::support::faults::{Fault, FaultKind, RequestKind, Rig};
use crate::support::{Place, need};
use std::process::Command;

#[test]
fn export_prints_which_runtimes_load_the_archive() {
    let rig = Rig::new();
    rig.set_faults([]);
    run_with(
        &rig,
        &[
            (
                "export images --help",
                0,
                &[
                    "docker and podman need --format docker",
                    "but not for docker and podman",
                ],
            ),
            ("pull --store s --plain-http UP", 0, &[]),
            (
                "export images -o i.tar --store s",
                0,
                &[
                    "loads in          ctr, nerdctl, k3s, RKE2; for docker and podman: --format docker",
                ],
            ),
            (
                "export images -o d.tar --store s --format docker --platform linux/amd64",
                0,
                &["exported 2 images", "!loads in"],
            ),
        ],
    );
}

#[test]
fn the_summary_for_ci_begins_with_a_missing_bundle() {
    let rig = Rig::new();
    rig.set_faults([Fault::always(RequestKind::Blob, FaultKind::Status(404)).at("team/tool")]);
    let summary = rig.place.path("summary.md");
    rig.place
        .set("GITHUB_STEP_SUMMARY", &summary.display().to_string());
    run_with(
        &rig,
        &[
            (
                "refresh m.yaml -o r.bundle --store s-r --plain-http UP --output github",
                3,
                &["no bundle was written"],
            ),
            (
                "pull --bundle p.bundle --store s-p --plain-http UP --output github",
                3,
                &["no bundle was written"],
            ),
        ],
    );
    let summary = rig.place.read("summary.md");
    assert!(
        // the image and its two referrers
        summary.starts_with("**No bundle was written**: 3 failed\n"),
        "{summary}"
    );
    assert_eq!(
        summary.matches("**No bundle was written**").count(),
        2,
        "{summary}"
    );
}

#[test]
fn a_tag_that_is_gone_is_in_the_text_of_the_pull_request() {
    let rig = Rig::new();
    rig.set_faults([]);
    run_with(&rig, &[("lock m.yaml --plain-http UP", 0, &[])]);
    rig.up.content(|content| {
        content
            .tags
            .remove(&("team/tool".to_owned(), "v1".to_owned()))
    });
    let output = rig
        .place
        .command()
        .args([
            "refresh",
            "m.yaml",
            "-o",
            "b",
            "--store",
            "s",
            "--progress",
            "none",
            "--output",
            "markdown",
        ])
        .args(["--plain-http", &rig.up.address])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let unfolded = text.split("<details>").next().unwrap();
    assert!(
        unfolded.contains("**Gone upstream**; the old pins are kept:"),
        "{text}"
    );
    assert!(
        unfolded.contains(&format!("- `{}/team/tool:v1`", rig.up.address)),
        "{text}"
    );
}

#[test]
fn a_signed_bundle_shows_its_signature() {
    if !need(&["ssh-keygen"]) {
        return;
    }
    let rig = Rig::new();
    rig.set_faults([]);
    let key = rig.place.path("key");
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(&key)
        .status();
    assert!(made.unwrap().success());
    run_with(
        &rig,
        &[
            ("pull --store s --plain-http UP", 0, &[]),
            ("pack -o signed --store s --sign key", 0, &[]),
            ("pack -o unsigned --store s", 0, &[]),
            (
                "report signed -o signed.html",
                0,
                &["3 items, signature ssh-ed25519 SHA256:", "(not checked"],
            ),
            (
                "report unsigned -o unsigned.html",
                0,
                &["3 items, not signed"],
            ),
        ],
    );
    let page = rig.place.read("signed.html");
    assert!(
        page.contains("<dt>signature</dt><dd><code>ssh-ed25519 SHA256:"),
        "{page}"
    );
    assert!(
        rig.place
            .read("unsigned.html")
            .contains("<dt>signature</dt><dd><code>none")
    );
    let report = rig.place.json(0, &["ls", "signed"]);
    assert_eq!(report["bundle"]["signed"], true);
}

#[test]
fn a_long_report_has_a_search() {
    let place = Place::new();
    let digest = |at: usize| format!("sha256:{at:064x}");
    let image = |at: usize| {
        format!(
            "- {{name: 'quay.io/team/a{at}:v1', digest: '{}', mediaType: application/vnd.oci.image.manifest.v1+json, size: 7}}\n",
            digest(at)
        )
    };
    let lock = |count: usize| {
        format!(
            "version: 1\nimages:\n{}",
            (0..count).map(image).collect::<String>()
        )
    };
    place.write("many.lock", lock(30));
    place.write("few.lock", lock(3));
    run(
        &place,
        &[],
        &[
            (
                "pull many.lock --store s --dry-run --report many.html",
                0,
                &[],
            ),
            (
                "pull few.lock --store s --dry-run --report few.html",
                0,
                &[],
            ),
        ],
    );
    let page = place.read("many.html");
    assert!(
        page.contains("<input id=\"find\" type=\"search\"")
            && page.contains("class=\"hash\">000000000000<")
    );
    assert!(!place.read("few.html").contains("<input id=\"find\""));
}
