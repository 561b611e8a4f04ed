//! Runs the landfall commands in the tables of `docs/how-to/coming-from.md`, from top to bottom,
//! section by section, and those of `docs/how-to/vendor-pages.md`.

use crate::support::Place;
use crate::support::faults::{Content, Faults};
use crate::support::images::tarball;
use std::path::Path;

/// The landfall commands of each section of a page: those in backticks in the second column of its
/// table.
fn sections(page: &str) -> Vec<(String, Vec<String>)> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("docs/how-to")
        .join(page);
    let text = std::fs::read_to_string(page).unwrap();
    let section = |part: &str| {
        let rows = part.lines().filter(|line| line.starts_with("| ")).skip(1);
        let cells = rows.filter_map(|row| row.split(" | ").nth(1));
        let spans = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
        let commands = spans
            .filter(|span| span.starts_with("landfall "))
            .map(str::to_owned)
            .collect();
        (part.lines().next().unwrap().to_owned(), commands)
    };
    text.split("\n## ")
        .skip(1)
        .map(section)
        .filter(|(_, commands): &(_, Vec<String>)| !commands.is_empty())
        .collect()
}

/// The input files of each section; `IMAGE` is replaced by an image at the upstream stand-in.
fn files(section: &str) -> &'static [(&'static str, &'static str)] {
    match section {
        "Hauler" => &[(
            "hauler.yaml",
            "apiVersion: content.hauler.cattle.io/v1\nkind: Images\nspec: {images: [{name: 'IMAGE'}]}\n",
        )],
        "Zarf" => &[
            (
                "zarf.yaml",
                "kind: ZarfPackageConfig\nmetadata: {name: z}\ncomponents: [{name: c, images: ['IMAGE']}]\n",
            ),
            (
                "pod.yaml",
                "kind: Pod\nspec: {containers: [{name: a, image: 'IMAGE'}]}\n",
            ),
        ],
        "oc-mirror" => &[
            (
                "isc.yaml",
                "kind: ImageSetConfiguration\nmirror: {additionalImages: [{name: 'IMAGE'}]}\n",
            ),
            (
                "mapping.txt",
                "docker://IMAGE=docker://mirror.test/team/app:v1\n",
            ),
        ],
        "skopeo" => &[("sync.yml", "'ADDRESS': {images: {team/app: ['v1']}}\n")],
        "KKP's installer" => &[
            (
                "kkp.log",
                "{\"msg\": \"Image found\", \"source-image\": \"IMAGE\"}\n{\"msg\": \"Finished\", \"all-image-count\": 1}\n",
            ),
            (
                "pod.yaml",
                "kind: Pod\nspec: {containers: [{name: a, image: 'IMAGE'}]}\n",
            ),
        ],
        other => panic!("docs/how-to/coming-from.md has a section '{other}' without a test"),
    }
}

/// Commands that are not run: a server does not end, and a list of images contains no files to
/// export.
const NOT_RUN: [&str; 2] = ["landfall serve ", "landfall export files "];

#[test]
fn the_documented_commands_for_users_of_other_tools_run() {
    let mut content = Content::default();
    let image = content.image("team/app", "linux/amd64", &[(1, 64)]);
    content.tag("team/app", "v1", &image);
    let up = Faults::new(content);
    let image = format!("{}/team/app:v1", up.address);
    let sections = sections("coming-from.md");
    assert_eq!(sections.len(), 5, "{sections:?}");
    for (section, commands) in sections {
        let place = Place::new();
        let down = Faults::new(Content::default());
        for (name, text) in files(&section) {
            place.write(
                name,
                text.replace("IMAGE", &image)
                    .replace("ADDRESS", &up.address),
            );
        }
        place.write(
            "site.yaml",
            format!(
                "apiVersion: landfall/v1\nkind: Site\nregistry: {{address: '{}'}}\n",
                down.address
            ),
        );
        // a Hauler archive is an OCI layout; this one is empty
        place.write(
            "haul.tar.zst",
            tarball(&[("index.json", br#"{"manifests": []}"#)]),
        );
        std::fs::create_dir(place.path("media")).unwrap();
        let mut ran = 0;
        for command in &commands {
            if NOT_RUN.iter().any(|verb| command.starts_with(verb)) {
                continue;
            }
            let words: Vec<String> = command
                .split(' ')
                .skip(1)
                .map(|word| match word {
                    "R" | "172.20.0.2:5000" => down.address.clone(),
                    "OLD" => "bundle.tar.zst".into(),
                    word => word.replace("/media", &place.path("media").display().to_string()),
                })
                .collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            println!("{section}: {command}");
            place.ok(&words);
            ran += 1;
        }
        assert!(ran > 4, "{section}: {commands:?}");
    }
}

#[test]
fn the_commands_for_readers_of_vendors_pages_run() {
    // a name alone stands for a command that other pages describe
    let is_whole = |command: &String| {
        ["init --from", " --role ", " -o ", " help ", "no-proxy"]
            .iter()
            .any(|part| command.contains(part))
    };
    let sections = sections("vendor-pages.md");
    assert_eq!(sections.len(), 5, "{sections:?}");
    for (section, commands) in sections {
        let place = Place::new();
        place.write("landfall.lock", "version: 1\n");
        place.write("cluster.yaml", "CLUSTER_NAME: blue\n");
        place.write(
            "site.yaml",
            "apiVersion: landfall/v1\nkind: Site\nregistry: {address: registry.test}\n\
             proxy:\n  http: http://proxy.test:3128\n  https: http://proxy.test:3128\n  \
             noProxy: {cluster: {podCIDR: 10.244.0.0/16}}\nclusters: [{name: blue, namespace: org-blue}]\n",
        );
        let mut ran = 0;
        for command in commands.iter().filter(|command| is_whole(command)) {
            let mut words: Vec<&str> = command.split(' ').skip(1).collect();
            let folder = format!("new-{ran}");
            if words[0] == "init" {
                words.extend(["-o", &folder]);
            }
            println!("{section}: {command}");
            place.ok(&words);
            ran += 1;
        }
        assert!(ran > 1, "{section}: {commands:?}");
    }
}
