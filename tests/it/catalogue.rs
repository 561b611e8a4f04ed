//! Every shipped manifest can be written, locked against a stand-in, rendered and updated, and the
//! documented table lists it.

use crate::support::charts::{Chart, HELM_CHART, HELM_CONFIG};
use crate::support::faults::{Content, Faults};
use crate::support::images::{OCI_MANIFEST, sha256_hex};
use crate::support::library::{ItemRequests, MergedManifest, load_manifests};
use crate::support::package_stand_in::{PackageStandIn, put_keys};
use crate::support::{Place, apt, need, yum};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// An OpenPGP key, for commands that only read it.
const KEY: &[u8] = include_bytes!("../data/packages/key.asc");

/// The shipped systems, as listed by `landfall init --list`.
fn systems(place: &Place) -> Vec<Value> {
    let listed = place.json(0, &["init", "--list"]);
    listed["systems"].as_array().unwrap().clone()
}

/// The manifests in the folder of a system, without the site.
fn manifests(system: &Value, folder: &Path) -> Vec<PathBuf> {
    let files = system["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file.as_str().unwrap());
    let names = files
        .map(|file| file.split_once('/').unwrap().1)
        .filter(|name| *name != "site.yaml");
    names.map(|name| folder.join(name)).collect()
}

/// Removes from `text` the checksums of files and the digests of images, since the content of the
/// stand-in has other digests. An image without a tag gets one.
fn without_pins(text: &str) -> String {
    let is_checksum = |line: &&str| {
        ["checksum: sha256:", "checksum: sha512:"]
            .iter()
            .any(|start| line.trim_start().starts_with(start))
    };
    let line = |line: &str| {
        let name = line.split("@sha256:").next().unwrap();
        let is_digest_only = name != line && !name.rsplit('/').next().unwrap().contains(':');
        format!("{name}{}\n", if is_digest_only { ":latest" } else { "" })
    };
    text.lines()
        .filter(|line| !is_checksum(line))
        .map(line)
        .collect()
}

/// A registry and a file server with the requested images, files and charts. Each host has a folder
/// that is named after the host.
fn stand_in(wanted: &MergedManifest) -> Faults {
    let mut content = Content::default();
    add(&mut content, wanted);
    Faults::new(content)
}

/// Adds the requested images, files and charts.
fn add(content: &mut Content, wanted: &MergedManifest) {
    for image in &wanted.requests.images {
        let repository = format!("{}/{}", image.name.registry, image.name.repository);
        let platforms: Vec<String> = match image.platforms.is_empty() {
            true => vec!["linux/amd64".into()],
            false => image.platforms.iter().map(ToString::to_string).collect(),
        };
        let children: Vec<Value> = platforms
            .iter()
            .map(|platform| content.image(&repository, platform, &[(7, 64)]))
            .collect();
        let index = content.index(&repository, &children);
        content.tag(&repository, image.name.tag.as_ref().unwrap(), &index);
    }
    // several files may share a checksum file
    let mut sidecars: BTreeMap<String, String> = BTreeMap::new();
    let path = |url: &str| format!("/files/{}", url.split_once("://").unwrap().1);
    for file in &wanted.requests.files {
        let bytes = file.url.as_bytes().to_vec();
        let sum = sha256_hex(&bytes);
        if let Some(sidecar) = file
            .checksum
            .as_ref()
            .map(ToString::to_string)
            .filter(|at| at.contains("://"))
        {
            let name = file.url.rsplit('/').next().unwrap();
            *sidecars.entry(path(&sidecar)).or_default() += &format!("{sum} *{name}\n");
        }
        content.files.insert(path(&file.url), bytes.into());
    }
    let sidecars = sidecars
        .into_iter()
        .map(|(path, text)| (path, text.into_bytes().into()));
    content.files.extend(sidecars);
    for chart in &wanted.requests.charts {
        let name = &chart.name;
        let reference = &chart.name.reference;
        let made = Chart::new(&name.chart, &name.version, "", &[]);
        if let Some(repository) = &name.repository {
            let folder = format!("/files/{}", repository.split_once("://").unwrap().1);
            let index = format!(
                "apiVersion: v1\nentries:\n  {0}:\n  - {{apiVersion: v2, name: {0}, version: {1}, urls: [{2}]}}\n",
                name.chart,
                name.version,
                made.file()
            );
            content
                .files
                .insert(format!("{folder}/index.yaml"), index.into_bytes().into());
            content.files.insert(
                format!("{folder}/{}", made.file()),
                made.archive.clone().into(),
            );
            continue;
        }
        let repository = format!("{}/{}", reference.registry, reference.repository);
        let config = content.blob(&repository, HELM_CONFIG, b"{}".to_vec());
        let layer = content.blob(&repository, HELM_CHART, made.archive.clone());
        let document = json!({"schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": config, "layers": [layer]});
        let manifest = content.manifest(&repository, OCI_MANIFEST, &document);
        content.tag(&repository, reference.tag.as_ref().unwrap(), &manifest);
    }
}

/// The hosts of the items, each with its folder at the stand-in.
fn hosts(wanted: &MergedManifest) -> BTreeMap<String, String> {
    let images = wanted
        .requests
        .images
        .iter()
        .map(|image| &image.name.registry);
    let host = |url: &str| {
        url.split("://")
            .nth(1)
            .unwrap()
            .split('/')
            .next()
            .unwrap()
            .to_owned()
    };
    let files = wanted.requests.files.iter().map(|file| host(&file.url));
    let files = files.map(|host| (host.clone(), format!("files/{host}")));
    let charts = wanted
        .requests
        .charts
        .iter()
        .map(|chart| match &chart.name.repository {
            Some(repository) => (host(repository), format!("files/{}", host(repository))),
            None => (
                chart.name.reference.registry.clone(),
                chart.name.reference.registry.clone(),
            ),
        });
    let sources = wanted
        .requests
        .packages
        .iter()
        .flat_map(|wish| &wish.sources)
        .map(|source| host(&source.url));
    let packages = sources.map(|host| (host.clone(), format!("files/{host}")));
    images
        .map(|host| (host.clone(), host.clone()))
        .chain(files)
        .chain(charts)
        .chain(packages)
        .collect()
}

/// A site for the connected side that maps each host to a folder of the stand-in.
fn mirrors(wanted: &MergedManifest, up: &Faults) -> String {
    let mirrors: String = hosts(wanted)
        .iter()
        .map(|(host, folder)| {
            format!(
                "  \"{host}\": {{mirror: \"http://{}/{folder}\"}}\n",
                up.address
            )
        })
        .collect();
    format!("apiVersion: landfall/v1\nkind: Site\nupstreams:\n{mirrors}")
}

/// The commands that docs/how-to/catalogue.md shows for rke2, adapted to another system and
/// registry.
fn documented(system: &Value, registry: &str) -> Vec<Vec<String>> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/how-to/catalogue.md");
    let text = std::fs::read_to_string(page).unwrap();
    let example = text.split("## ").next().unwrap();
    let commands = example.lines().filter_map(|line| {
        let line = line
            .strip_prefix("$ ")
            .or_else(|| line.strip_prefix("    "))?;
        line.strip_prefix("landfall ")
            .filter(|command| command.contains("rke2") || *command == "pull")
    });
    let name = system["name"].as_str().unwrap();
    let platform = system["platform"].as_str().unwrap();
    let words = |command: &str| {
        let command = command
            .replace("render rke2 ", &format!("render {platform} "))
            .replace("rke2", name);
        command
            .replace("registry.corp.test:5000", registry)
            .split(' ')
            .map(str::to_owned)
            .collect()
    };
    commands.map(words).collect()
}

#[test]
fn the_documented_commands_work_for_every_shipped_manifest() {
    if !["gzip"]
        .iter()
        .chain(&apt::PROGRAMS)
        .chain(&yum::PROGRAMS)
        .all(|program| need(&[program]))
    {
        return;
    }
    for system in systems(&Place::new()) {
        let place = Place::new();
        let down = Faults::new(Content::default());
        let name = system["name"].as_str().unwrap();
        let commands = documented(&system, &down.address);
        assert!((6..10).contains(&commands.len()), "{commands:?}");
        let (init, rest) = commands.split_first().unwrap();
        let printed = place.ok(&init.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(
            printed.ends_with(&format!(
                "next: landfall lock -f {name} --site {name}/site.yaml\n"
            )),
            "{printed}"
        );
        for edit in system["edit"].as_array().unwrap() {
            assert!(
                printed.contains(&format!("edit {}\n", edit.as_str().unwrap())),
                "{printed}"
            );
        }
        for file in manifests(&system, &place.path(name)) {
            let text = without_pins(&std::fs::read_to_string(&file).unwrap());
            std::fs::write(&file, text).unwrap();
        }
        if name == "giantswarm" {
            // the account of the proxy is in a file that is not kept in git
            place.write("giantswarm/proxy-account", "user:password\n");
        }
        let packages = PackageStandIn::new(&place.path(name));
        let wanted =
            load_manifests(&[place.path(name)]).unwrap_or_else(|error| panic!("{name}: {error}"));
        let up = stand_in(&wanted);
        if let Some(packages) = &packages {
            let folder = packages.make(&wanted);
            up.content(|content| content.folder = Some(folder));
        }
        let connected = place.write("up.yaml", mirrors(&wanted, &up));
        for command in rest {
            let mut command = command.clone();
            // on the connected side, the site has the stand-ins as mirrors, and no proxy
            if matches!(&*command[0], "lock" | "pull") {
                let at = command.iter().position(|word| word == "--site").unwrap();
                command[at + 1] = connected.display().to_string();
            }
            let mut landfall = place.command();
            landfall
                .args(&command)
                .args(["--output", "json", "--progress", "none"]);
            let ran = landfall.env("LANDFALL_SITE", &connected).output().unwrap();
            let out = String::from_utf8_lossy(&ran.stdout);
            let err = String::from_utf8_lossy(&ran.stderr);
            assert!(
                ran.status.success(),
                "{name}: landfall {}\n{out}\n{err}",
                command.join(" ")
            );
            if matches!(&*command[0], "lock" | "pull" | "push") {
                let printed: Value = serde_json::from_str(&out).unwrap();
                let items = wanted.requests.images.len()
                    + wanted.requests.files.len()
                    + wanted.requests.charts.len()
                    + wanted.requests.packages.len();
                // content that `lock` downloaded is in the store when `pull` begins
                let count = |status: &str| printed["totals"][status].as_u64().unwrap();
                let good = count("done") + count("present");
                assert_eq!(good, items as u64, "{name}: {}", command[0]);
            }
        }
        assert!(
            place.path("nodes").read_dir().unwrap().next().is_some(),
            "{name}: nothing was rendered"
        );

        let site = format!("{name}/site.yaml");
        let egress = place.json(0, &["egress", "--site", &site]);
        let printed: BTreeSet<&str> = egress["egress"]["hosts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|host| host["host"].as_str().unwrap())
            .collect();
        for endpoint in &wanted.endpoints {
            assert!(
                printed.contains(endpoint.host.as_str()),
                "{name}: {} of {printed:?}",
                endpoint.host
            );
        }
        assert!(printed.len() >= hosts(&wanted).len(), "{name}: {printed:?}");
    }
}

/// The next release of `version`: the last number before a `+` is incremented, and the text from
/// the `+` on is kept.
fn bumped(version: &str) -> String {
    let end = version.find('+').unwrap_or(version.len());
    let (head, build) = version.split_at(end);
    let at = head.rfind('.').unwrap() + 1;
    format!(
        "{}{}{build}",
        &head[..at],
        head[at..].parse::<u64>().unwrap() + 1
    )
}

/// The version and the update source of each variable in the manifest `text`. Variables without an
/// update source, and variables that contain the name of a `.tar.zst` archive, are omitted.
fn policies(text: &str) -> Vec<(String, Value)> {
    let document: serde_yaml::Value = serde_yaml::from_str(text).unwrap();
    let vars = document
        .get("vars")
        .and_then(serde_yaml::Value::as_mapping)
        .into_iter()
        .flatten();
    let moving = vars.filter_map(|(_, var)| {
        let value = var.get("value")?.as_str()?;
        // the name of an archive contains a time; `update::scanners` tests its update
        if value.ends_with(".tar.zst") {
            return None;
        }
        Some((
            value.to_owned(),
            serde_json::to_value(var.get("from")?).unwrap(),
        ))
    });
    moving.collect()
}

#[test]
fn update_changes_only_the_versions_in_shipped_manifests() {
    if !need(&["gzip"]) {
        return;
    }
    let mut moved = BTreeSet::new();
    for system in systems(&Place::new()) {
        let place = Place::new();
        let name = system["name"].as_str().unwrap();
        place.ok(&["init", "--from", name, "-o", name]);
        let mut expected = BTreeMap::new();
        let mut sources = BTreeMap::new();
        for file in manifests(&system, &place.path(name)) {
            let text = without_pins(&std::fs::read_to_string(&file).unwrap());
            // packages have no versions to update, and need a repository and its key
            if text.contains("\npackages:\n") {
                std::fs::remove_file(file).unwrap();
                continue;
            }
            std::fs::write(&file, &text).unwrap();
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            for (version, from) in policies(&text) {
                let source = from["url"].as_str().or(from.as_str()).unwrap();
                let forms = [
                    format!("value: {version},"),
                    format!("value: \"{version}\","),
                ];
                let is_it = |line: &String| {
                    line.contains(source) && forms.iter().any(|form| line.contains(form.as_str()))
                };
                let mut moving: Vec<&mut String> =
                    lines.iter_mut().filter(|line| is_it(line)).collect();
                assert_eq!(moving.len(), 1, "{name}: {version}");
                *moving[0] = moving[0].replacen(&version, &bumped(&version), 1);
                let answer = match (from["url"].as_str(), from["path"].as_str()) {
                    (Some(_), Some(path)) => {
                        let key = path.strip_prefix("[].").unwrap();
                        json!([{key: bumped(&version)}, {key: version}]).to_string()
                    }
                    _ => format!("{}\n", bumped(&version)),
                };
                let url = from["url"].as_str().or(from.as_str()).unwrap().to_owned();
                // an image repository needs no file: the stand-in lists its tags
                if url.contains("://") {
                    sources.insert(url, answer);
                }
                moved.insert(name.to_owned());
            }
            expected.insert(file, lines.join("\n") + "\n");
        }
        if expected
            .iter()
            .all(|(file, newer)| std::fs::read_to_string(file).unwrap() == *newer)
        {
            continue;
        }
        let old = load_manifests(&[place.path(name)]).unwrap();
        let ahead = Place::new();
        for (file, newer) in &expected {
            ahead.write(
                &format!("{name}/{}", file.file_name().unwrap().to_str().unwrap()),
                newer,
            );
        }
        let new =
            load_manifests(&[ahead.path(name)]).unwrap_or_else(|error| panic!("{name}: {error}"));
        let up = stand_in(&old);
        let mut site = mirrors(&old, &up);
        up.content(|content| {
            add(content, &new);
            for (url, answer) in &sources {
                let path = url.split_once("://").unwrap().1;
                content
                    .files
                    .insert(format!("/files/{path}"), answer.clone().into_bytes().into());
            }
        });
        let known = hosts(&old);
        let others: BTreeSet<&str> = sources
            .keys()
            .map(|url| url.split('/').nth(2).unwrap())
            .collect();
        for host in others.into_iter().filter(|host| !known.contains_key(*host)) {
            site += &format!(
                "  \"{host}\": {{mirror: \"http://{}/files/{host}\"}}\n",
                up.address
            );
        }
        place.write("up.yaml", site);
        place.json(
            0,
            &[
                "update", "-f", name, "--site", "up.yaml", "--store", "store",
            ],
        );
        for (file, newer) in expected {
            assert_eq!(
                std::fs::read_to_string(&file).unwrap(),
                newer,
                "{name}: {}",
                file.display()
            );
        }
    }
    let moved: Vec<&str> = moved.iter().map(String::as_str).collect();
    assert_eq!(
        moved,
        [
            "giantswarm",
            "k3s",
            "kubeadm",
            "kubeone",
            "kubermatic",
            "monitoring",
            "network",
            "talos"
        ]
    );
}

#[test]
fn the_documented_table_lists_every_shipped_manifest_with_its_counts() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("docs/how-to/catalogue.md")).unwrap();
    let rows: BTreeMap<&str, Vec<&str>> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .map(|line| line.split('|').map(str::trim).collect::<Vec<_>>())
        .map(|cells| (cells[0].trim_end_matches('`'), cells))
        .collect();
    let place = Place::new();
    let mut seen = BTreeSet::new();
    for system in systems(&place) {
        for path in manifests(&system, Path::new("")) {
            let folder = system["files"][0]
                .as_str()
                .unwrap()
                .split_once('/')
                .unwrap()
                .0;
            let file = format!("{folder}/{}", path.display());
            if !seen.insert(file.clone()) {
                continue;
            }
            let text = std::fs::read_to_string(root.join("manifests").join(&file)).unwrap();
            let copy = place.write(&file, &text);
            put_keys(copy.parent().unwrap(), &text, KEY);
            let wanted = load_manifests(std::slice::from_ref(&copy))
                .unwrap_or_else(|error| panic!("{error}"));
            let row = rows
                .get(file.as_str())
                .unwrap_or_else(|| panic!("{file} has no row"));
            let packages = wanted
                .requests
                .packages
                .iter()
                .flat_map(|wish| &wish.install)
                .collect::<BTreeSet<_>>();
            let MergedManifest {
                requests,
                endpoints,
                ..
            } = &wanted;
            let ItemRequests {
                images,
                files,
                charts,
                ..
            } = requests;
            let numbers = [
                images.len(),
                files.len(),
                endpoints.len(),
                charts.len(),
                packages.len(),
            ];
            assert_eq!(
                row[1..6],
                numbers.map(|number| number.to_string()),
                "{file}"
            );
            // each manifest documents the source of its pins, and how it is updated
            let head = text.split("\napiVersion:").next().unwrap();
            let says = |words: &[&str]| words.iter().any(|words| head.contains(words));
            assert!(
                says(&["Where the versions come from", "Sources with their dates"]),
                "{file}: {head}"
            );
            assert!(
                says(&[
                    "To update",
                    "to update",
                    "not updated",
                    "Read with",
                    "To write"
                ]),
                "{file}: {head}"
            );
            assert!(row.len() > 7 && row[6].contains("20"), "{file}: {row:?}");
        }
    }
}

#[test]
fn init_writes_the_address_and_keeps_existing_files() {
    let place = Place::new();
    place.ok(&[
        "init",
        "--from",
        "kubeadm",
        "-o",
        "k",
        "--to",
        "mirror.test:5000/team",
    ]);
    assert!(
        place
            .read("k/site.yaml")
            .contains("  address: mirror.test:5000/team        # your registry")
    );
    let again = place
        .landfall()
        .args(["init", "--from", "k3s", "-o", "k"])
        .assert()
        .code(2);
    let printed = String::from_utf8_lossy(&again.get_output().stderr).into_owned();
    assert!(
        printed.contains("k/site.yaml already exists") && !place.path("k/k3s.yaml").exists(),
        "{printed}"
    );
    let shown = place.ok(&["init", "--from", "rke2", "-o", "r", "--dry-run"]);
    assert!(shown.contains("--- r/rke2.yaml\n") && !place.path("r").exists());
    let unknown = place
        .landfall()
        .args(["init", "--from", "plan9"])
        .assert()
        .code(2);
    assert!(String::from_utf8_lossy(&unknown.get_output().stderr).contains("kubermatic"));
}

/// The lists of two roles of KKP's page "Reference Setup": terraform requests the APIs of clouds,
/// and a browser does not request certificates.
#[test]
fn shipped_endpoints_are_those_of_their_roles() {
    let place = Place::new();
    place.ok(&["init", "--from", "kubermatic", "-o", "kkp"]);
    let hosts = |role: &str| -> BTreeSet<String> {
        let report = place.json(0, &["egress", "-f", "kkp", "--role", role, "--store", "s"]);
        let hosts = report["egress"]["hosts"].as_array().unwrap().iter();
        hosts
            .map(|host| host["host"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        hosts("kkp-user"),
        BTreeSet::from(["keycloak.example.com".to_owned()])
    );
    let terraform = hosts("provisioning-host");
    for host in [
        "registry.terraform.io",
        "management.azure.com",
        "vcenter.example.com",
    ] {
        assert!(terraform.contains(host), "{terraform:?}");
    }
    assert!(!terraform.contains("acme-v02.api.letsencrypt.org"));
}
