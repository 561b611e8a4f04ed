//! The files in the packages of `scripts/dist`: manual pages, completions, the unit, the example
//! site, and the lists in Cargo.toml.

use crate::support::library::Site;
use crate::support::{Place, need};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The names of the files of a folder.
fn files(folder: &Path) -> BTreeSet<String> {
    let entries =
        std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

/// The file names of the manual pages that `page` lists: each line that ends in `(1)` names one.
fn named(page: &str) -> BTreeSet<String> {
    let page = page.replace('\\', "");
    let lines = page.lines().filter_map(|line| line.strip_suffix("(1)"));
    lines.map(|name| format!("{name}.1")).collect()
}

#[test]
fn every_verb_has_a_manual_page() {
    let place = Place::new();
    assert_eq!(
        place.ok(&["man", "-o", "man"]),
        "the manual pages are in man\n"
    );
    let pages = files(&place.path("man"));
    let mentioned: BTreeSet<String> = pages
        .iter()
        .flat_map(|page| named(&place.read(&format!("man/{page}"))))
        .collect();
    let verbs = named(&place.read("man/landfall.1"));
    // the help prints each verb on a line of its own
    let help = place.ok(&["--help"]);
    let listed = help.lines().filter_map(|line| {
        let (verb, _) = line.strip_prefix("  ")?.split_once("  ")?;
        let is_verb = !verb.is_empty() && verb.bytes().all(|byte| byte.is_ascii_lowercase());
        is_verb.then(|| format!("landfall-{verb}.1"))
    });
    assert_eq!(verbs, listed.collect(), "{help}");
    assert!(verbs.len() >= 20, "{verbs:?}");
    assert!(
        mentioned.contains("landfall-export-images.1"),
        "{mentioned:?}"
    );
    let with_root: BTreeSet<String> = mentioned.into_iter().chain(["landfall.1".into()]).collect();
    assert_eq!(pages, with_root, "each page is listed by its parent page");
    // each page has the sections that people look for, and the release in its footer
    let release = concat!("\"landfall ", env!("CARGO_PKG_VERSION"), "\"");
    for page in &pages {
        let text = place.read(&format!("man/{page}"));
        assert!(text.contains(release), "{page}");
        for section in ["EXAMPLES", "\"EXIT STATUS\"", "FILES", "\"SEE ALSO\""] {
            assert!(
                text.contains(&format!(".SH {section}\n")),
                "{page}: {section}"
            );
        }
    }
    // each page fits a terminal of 80 columns
    if need(&["man"]) {
        for page in &pages {
            let mut man = place.clean("man");
            man.env("MANWIDTH", "80").env("MANPAGER", "cat");
            let shown = crate::support::run(man.args(["-l", &format!("man/{page}")]));
            let shown = String::from_utf8(shown).unwrap();
            for line in shown.lines() {
                assert!(line.chars().count() <= 80, "{page}: {line}");
            }
        }
    }
    // `landfall man` prints the same pages
    assert_eq!(
        place.ok(&["man", "export", "images"]),
        place.read("man/landfall-export-images.1")
    );
}

#[test]
fn completions_offer_every_verb() {
    let place = Place::new();
    let verbs: Vec<String> = named(&place.ok(&["man"]))
        .iter()
        .map(|page| {
            page.trim_start_matches("landfall-")
                .trim_end_matches(".1")
                .to_owned()
        })
        .collect();
    assert!(verbs.len() >= 20, "{verbs:?}");
    for shell in ["fish", "zsh"] {
        let script = place.ok(&["completions", shell]);
        for verb in &verbs {
            let offered = [format!("'{verb}:"), format!("-a \"{verb}\"")];
            assert!(
                offered.iter().any(|line| script.contains(line)),
                "{shell}: {verb}"
            );
        }
    }
    if !need(&["bash"]) {
        return;
    }
    place.write("landfall.bash", place.ok(&["completions", "bash"]));
    let command_line = "source ./landfall.bash; COMP_WORDS=(landfall ''); COMP_CWORD=1; _landfall landfall '' landfall; \
                 printf '%s\\n' \"${COMPREPLY[@]}\"";
    let run = place
        .clean("bash")
        .args(["--norc", "-c", command_line])
        .output()
        .unwrap();
    let offered = String::from_utf8(run.stdout).unwrap();
    for verb in &verbs {
        assert!(
            offered.lines().any(|line| line == verb),
            "bash: {verb}\n{offered}"
        );
    }
}

/// The files of a package in Cargo.toml: the source of each file, and its installed path.
fn assets(metadata: &Value, package: &str) -> Vec<(String, String)> {
    let pair = |asset: &Value| {
        let text = |key: &str, index: usize| {
            asset
                .get(key)
                .or_else(|| asset.get(index))
                .and_then(Value::as_str)
                .unwrap()
                .to_owned()
        };
        let source = text("source", 0);
        let dest = text("dest", 1);
        let name = source.rsplit('/').next().unwrap();
        let dest = dest.trim_start_matches('/').to_owned();
        let full = if dest.ends_with('/') {
            format!("{dest}{name}")
        } else {
            dest
        };
        (source, full)
    };
    metadata[package]["assets"]
        .as_array()
        .unwrap()
        .iter()
        .map(pair)
        .collect()
}

#[test]
fn the_files_that_the_packages_list_exist() {
    let cargo = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--no-deps",
            "--offline",
            "--format-version=1",
            "--manifest-path",
        ])
        .arg(root().join("Cargo.toml"))
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&cargo.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let metadata = &packages
        .iter()
        .find(|package| package["name"] == "landfall")
        .unwrap()["metadata"];
    let deb = assets(metadata, "deb");
    let rpm = assets(metadata, "generate-rpm");
    for (source, _) in &deb {
        let there = match source.split_once('*') {
            _ if source.starts_with("target/") => true, // scripts/dist fails if one is missing
            Some((folder, rest)) => {
                let end = rest.rsplit('*').next().unwrap();
                files(&root().join(folder))
                    .iter()
                    .any(|name| name.ends_with(end))
            }
            None => root().join(source).is_file(),
        };
        assert!(there, "{source}");
    }
    // both packages have the same files; Debian has another folder for zsh
    let moved = |(source, dest): &(String, String)| {
        (
            source.clone(),
            dest.replace("zsh/vendor-completions", "zsh/site-functions"),
        )
    };
    assert_eq!(deb.iter().map(moved).collect::<Vec<_>>(), rpm);
    let installed: BTreeSet<&str> = deb.iter().map(|(_, dest)| dest.as_str()).collect();
    for config in metadata["deb"]["conf-files"].as_array().unwrap() {
        assert!(
            installed.contains(config.as_str().unwrap().trim_start_matches('/')),
            "{config}"
        );
    }
}

#[test]
fn the_installation_page_names_the_files_of_this_version() {
    let page = std::fs::read_to_string(root().join("docs/how-to/install.md")).unwrap();
    for (before, after) in [
        ("landfall-", "-linux-amd64"),
        ("landfall_", "-1_amd64.deb"),
        ("landfall:", " verify"),
    ] {
        let name = format!("{before}{}{after}", env!("CARGO_PKG_VERSION"));
        assert!(page.contains(&name), "{name}");
    }
}

#[test]
fn the_unit_is_sound_and_hardened() {
    let unit =
        std::fs::read_to_string(root().join("crates/landfall-render/src/serve/landfall.service"))
            .unwrap();
    if !need(&["systemd-analyze"]) {
        return;
    }
    let place = Place::new();
    // systemd-analyze fails if the program is missing, and only packages install /usr/bin/landfall
    let unit = unit.replace("/usr/bin/landfall", env!("CARGO_BIN_EXE_landfall"));
    let path = place.write("landfall.service", unit);
    let analyze = |arguments: &[&str]| {
        let run = place
            .clean("systemd-analyze")
            .args(arguments)
            .arg(&path)
            .output()
            .unwrap();
        let err = String::from_utf8_lossy(&run.stderr).into_owned();
        assert!(
            run.status.success(),
            "{err}{}",
            String::from_utf8_lossy(&run.stdout)
        );
        err
    };
    assert_eq!(analyze(&["verify", "--man=no"]), "");
    // the exposure must be at most 1.5 out of 10; a unit without hardening has 9.6
    analyze(&["security", "--offline=true", "--threshold=15"]);
}

#[test]
fn the_example_site_loads() {
    let site = Site::load(&root().join("examples/site.yaml")).unwrap();
    assert_eq!(site.registry.unwrap().address, "172.20.0.2:5000");
    // the site also loads after all commented keys are enabled
    let text = std::fs::read_to_string(root().join("examples/site.yaml")).unwrap();
    let uncommented = |line: &str| match line.trim_start().strip_prefix("# ") {
        Some(key) => format!("{}{key}\n", &line[..line.find('#').unwrap_or_default()]),
        None => format!("{line}\n"),
    };
    let full: String = text
        .lines()
        .skip_while(|line| line.starts_with('#'))
        .map(uncommented)
        .collect();
    let place = Place::new();
    let loaded = Site::load(&place.write("site.yaml", &full));
    assert!(loaded.is_ok(), "{full}\n{}", loaded.unwrap_err());
}
