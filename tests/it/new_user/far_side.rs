//! The receiving side: the files next to the bundle, and the manual in the program.

use super::{run, run_with};
use crate::support::charts::{Chart, Upstream};
use crate::support::faults::Rig;
use crate::support::peers::own_registry;
use crate::support::{Place, http, landfall_serve, need, run as program};
use serde_json::json;
use std::process::Command;

/// The bundle has content of several kinds, and `PATH` has no program.
#[test]
fn the_receiving_side_needs_no_other_program() {
    if !need(&["gzip"]) {
        return;
    }
    let up = Upstream::new();
    let place = &up.place;
    up.image("team/app", "v1");
    let values = "image: quay.io/team/app:v1\n";
    let chart = Chart::new("app", "1.0.0", "", &[("values.yaml", values)]);
    up.repository(std::slice::from_ref(&chart));
    place.write("up/tool", "tool");
    let site = |body: String| format!("apiVersion: landfall/v1\nkind: Site\n{body}\n");
    let mirror = format!(
        "upstreams: {{quay.io: {{mirror: \"http://{}\"}}}}",
        up.registry.address
    );
    place.write("up.yaml", site(mirror));
    let items = format!(
        "images: [quay.io/team/app:v1]\nfiles: [{{url: \"{}/tool\"}}]",
        up.files.url()
    );
    let charts = json!([{"repo": up.repo(), "name": "app", "version": "1.0.0"}]);
    up.manifest(&charts, &items);
    place.ok(&["lock", "-f", "m.yaml", "--site", "up.yaml"]);
    place.ok(&["pull", "--site", "up.yaml"]);
    place.ok(&["pack", "-o", "b"]);

    std::fs::create_dir(place.path("nothing")).unwrap();
    place.set("PATH", place.path("nothing").to_str().unwrap());
    let down = own_registry();
    let registry = format!(
        "registry: {{address: \"{}\", plainHTTP: true}}",
        down.address
    );
    place.write("site.yaml", site(registry));
    place.write(
        "pod.yaml",
        "kind: Pod\nspec: {containers: [{image: \"quay.io/team/app:v1\"}]}\n",
    );
    place.write("app.tgz", &chart.archive);
    for line in [
        "verify b",
        "ls b",
        "report b -o page.html",
        "sbom b -o sbom.json",
        "push b --site site.yaml",
        "status --bundle b --site site.yaml",
        "rewrite pod.yaml app.tgz --bundle b --site site.yaml -o rewritten",
        "audit pod.yaml app.tgz --bundle b",
        "discover app.tgz",
        "render containerd --site site.yaml --bundle b -o etc",
        "render helm-values app.tgz --bundle b --site site.yaml",
        "export images b -o images.tar",
        "export files b -o files",
        "export charts b -o charts",
        "diff b b",
        "man push",
    ] {
        place.ok(&line.split(' ').collect::<Vec<_>>());
    }
    let server = landfall_serve(place, &["b"]);
    assert_eq!(
        http::manifest(&server.address, "team/app", "v1").status,
        200
    );
    let served = http::get(&server.address, "/charts/app-1.0.0.tgz");
    assert!(served.body == chart.archive, "{}", served.status);
}

#[test]
fn the_commands_in_the_readme_of_a_bundle_run() {
    if !need(&["sha256sum", "tar"]) {
        return;
    }
    let rig = Rig::new();
    rig.set_faults([]);
    run_with(
        &rig,
        &[
            ("pull --store stores/first --plain-http UP", 0, &[]),
            (
                "pack -o b --include-self --store stores/first",
                0,
                &["next to it        landfall, b.README.txt, b.man.tar, b.sha256sums"],
            ),
        ],
    );
    let place = &rig.place;
    let readme = place.read("b.README.txt");
    // five commands for this bundle, and the check without landfall
    let commands: Vec<&str> = readme
        .lines()
        .filter_map(|line| line.strip_prefix("    "))
        .collect();
    let verbs: Vec<&str> = commands
        .iter()
        .filter_map(|line| line.split(' ').nth(1))
        .collect();
    assert_eq!(
        verbs,
        ["-c", "verify", "push", "serve", "export", "rewrite"],
        "{readme}"
    );
    place.write(
        "app.yaml",
        format!("image: {}/team/app:v1\n", rig.up.address),
    );
    for command in commands
        .iter()
        .filter(|command| !command.contains(" serve "))
    {
        let line = command
            .replace("REGISTRY", &rig.down.address)
            .replace("FILE-OR-FOLDER", "app.yaml")
            .replace(
                " push ",
                &format!(" push --plain-http {} ", rig.down.address),
            );
        program(place.clean("sh").args(["-c", &line]));
    }
    program(
        place
            .clean("sh")
            .args(["-c", "tar xf b.man.tar && test -s man/man1/landfall-push.1"]),
    );
    // packing again without `--include-self` removes the unchanged files next to the bundle
    place.write("b.man.tar", "mine");
    run_with(&rig, &[("pack -o b --store stores/first", 0, &[])]);
    assert!(!place.path("b.README.txt").exists() && place.read("b.man.tar") == "mine");
    run_with(
        &rig,
        &[(
            "pack -o b --include-self --store stores/first",
            2,
            &["b.man.tar", "move it away"],
        )],
    );
    assert!(!place.path("b.README.txt").exists(), "nothing was written");
}

#[test]
fn the_export_command_in_the_readme_of_a_delta_names_the_base() {
    let rig = Rig::new();
    rig.set_faults([]);
    run_with(
        &rig,
        &[
            ("pull --store stores/first --plain-http UP", 0, &[]),
            ("pack -o base --store stores/first", 0, &[]),
            (
                "pack -o b --since base --include-self --store stores/first",
                0,
                &[],
            ),
        ],
    );
    let place = &rig.place;
    let readme = place.read("b.README.txt");
    let mut commands = readme.lines().filter_map(|line| line.strip_prefix("    "));
    let export = commands.find(|line| line.contains(" export images "));
    let line = export.unwrap().replace("BASE", "base");
    program(place.clean("sh").args(["-c", &line]));
}

#[test]
fn help_has_the_verbs_and_the_pages() {
    let place = Place::new();
    run(
        &place,
        &[],
        &[
            (
                "help",
                0,
                &[
                    "Usage: landfall",
                    "Registries and stores:",
                    "Pages of the manual (landfall help PAGE):",
                    "signing",
                    "kubermatic",
                ],
            ),
            ("help signing", 0, &["# Sign and approve bundles"]),
            (
                "help docs/reference/bundle-format.md",
                0,
                &["# Bundle format"],
            ),
            ("help kubermatic", 0, &["landfall render kubermatic"]),
            (
                "help push",
                0,
                &["Usage: landfall push", "landfall help --page push"],
            ),
            ("help --page push", 0, &["# Push to a registry"]),
            (
                "help export images",
                0,
                &["Usage: landfall export images", "--format"],
            ),
            (
                "help nonsense",
                2,
                &["there is no verb and no page 'nonsense'"],
            ),
        ],
    );
    // the help also works in a folder that has only the program
    let folder = place.path("alone");
    std::fs::create_dir(&folder).unwrap();
    std::fs::copy(env!("CARGO_BIN_EXE_landfall"), folder.join("landfall")).unwrap();
    let printed = program(
        Command::new(folder.join("landfall"))
            .args(["help", "serve", "--page"])
            .current_dir(folder),
    );
    assert!(
        String::from_utf8_lossy(&printed).contains("landfall serve"),
        "the page is not printed"
    );
}
