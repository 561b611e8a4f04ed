//! Which texts set a machine up, and what they fetch and install.

use super::commands::{fetched, of_script};
use super::installs::{Install, Installs};
use crate::rewrite::error::RewriteError;
use crate::rewrite::inputs::{Content, inputs, read};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_yaml::{Mapping, Value};
use std::path::{Path, PathBuf};

/// Endings of scripts, of systemd's units, and of Ignition's documents.
const ENDINGS: [&str; 7] = ["sh", "bash", "service", "socket", "timer", "ign", "bu"];
/// Keys by which a document of cloud-init is known.
const CLOUD_KEYS: [&str; 4] = ["runcmd", "bootcmd", "write_files", "packages"];

/// What the files that `paths` name fetch and install, where they set up machines. What cannot be read says nothing.
///
/// # Errors
/// When a path cannot be read.
pub(crate) fn machine_installs(paths: &[PathBuf]) -> Result<Installs, RewriteError> {
    let mut found = Installs::default();
    for input in inputs(paths, None)? {
        let Ok(Content::Text(text)) = read(&input) else { continue };
        if is_of_machine(&input.path, &text) {
            of_text(&input.path.display().to_string(), &text, &mut found);
        }
    }
    found.0.sort();
    found.0.dedup();
    Ok(found)
}

fn is_of_machine(path: &Path, text: &str) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    ENDINGS.contains(&ending)
        || name.starts_with("user-data")
        || ["#!", "#cloud-config", "## template: jinja"].iter().any(|sign| text.starts_with(sign))
        || CLOUD_KEYS[..3].iter().any(|key| text.lines().any(|line| line.trim_end() == format!("{key}:")))
}

fn of_text(file: &str, text: &str, found: &mut Installs) {
    let place = |line: usize| format!("{file}:{line}");
    found.0.extend(of_script(text).into_iter().map(|(install, line)| (install, place(line))));
    found.0.extend(packages(text).into_iter().map(|(install, line)| (install, place(line))));
    let cloud = serde_yaml::from_str::<Mapping>(text).ok();
    for file_entry in cloud.iter().filter_map(|cloud| cloud.get("write_files")?.as_sequence()).flatten() {
        let Some(entry) = file_entry.as_mapping() else { continue };
        let of = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
        if let Some(inner) = decoded(of("encoding"), of("content")) {
            let inside = |line: usize| format!("{file} ({}):{line}", of("path"));
            found.0.extend(of_script(&inner).into_iter().map(|(install, line)| (install, inside(line))));
        }
        if let Some(uri) = entry.get("source").and_then(|source| source.get("uri")?.as_str())
            && let Some(install) = fetched(uri)
        {
            found.0.push((install, line_of(file, text, uri)));
        }
    }
    // Ignition and Butane: the source of a file
    if let Some(config) = cloud.as_ref() {
        sources(&Value::Mapping(config.clone()), &mut |url| {
            if let Some(install) = fetched(url) {
                found.0.push((install, line_of(file, text, url)));
            }
        });
    }
}

/// The texts at the key `source`, wherever it stands.
fn sources(value: &Value, each: &mut impl FnMut(&str)) {
    match value {
        Value::Mapping(map) => {
            for (key, value) in map {
                match (key.as_str(), value) {
                    (Some("source"), Value::String(url)) => each(url),
                    _ => sources(value, each),
                }
            }
        }
        Value::Sequence(list) => list.iter().for_each(|value| sources(value, each)),
        _ => {}
    }
}

fn line_of(file: &str, text: &str, part: &str) -> String {
    let line = text.lines().position(|line| line.contains(part)).map_or(1, |at| at + 1);
    format!("{file}:{line}")
}

/// The text of a file that cloud-init is to write, where its form is base64.
fn decoded(encoding: &str, content: &str) -> Option<String> {
    if !matches!(encoding, "b64" | "base64") {
        return None;
    }
    let plain: String = content.split_whitespace().collect();
    String::from_utf8(STANDARD.decode(plain).ok()?).ok()
}

/// The packages of a document of cloud-init, with their lines: names, and pairs of name and version.
fn packages(text: &str) -> Vec<(Install, usize)> {
    let mut found = Vec::new();
    let mut inside = false;
    for (at, line) in text.lines().enumerate() {
        let indented = line.starts_with([' ', '-']);
        if !indented && !line.trim().is_empty() && !line.starts_with('#') {
            inside = line.trim_end() == "packages:";
            continue;
        }
        let Some(item) = line.trim_start().strip_prefix("- ").filter(|_| inside) else { continue };
        let item = item.split(" #").next().unwrap_or(item);
        let words: Vec<&str> = item
            .split([' ', ',', '[', ']', '"', '\''])
            .filter(|word| !word.is_empty() && !matches!(*word, "apt:" | "snap:"))
            .collect();
        match (&words[..], item.trim_start().starts_with('[')) {
            ([name, version], true) => {
                found.push((Install::package("apt", &format!("{name}={version}")), at + 1));
            }
            (names, _) => found.extend(names.iter().map(|name| (Install::package("apt", name), at + 1))),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cloud_init_names_packages_and_files_in_all_its_ways() {
        let script = STANDARD.encode("#!/bin/sh\nwget https://dl.test/in-base64.tgz\n");
        let text = format!(
            "#cloud-config\npackages:\n  - curl\n  - [containerd.io, 1.7.24-1]\n  - jq=1.6  # pinned\nwrite_files:\n- path: /a\n  \
             encoding: b64\n  content: {script}\n- path: /b\n  source: {{uri: 'https://dl.test/b.bin'}}\nruncmd:\n- [sh, -c, \
             \"curl -L https://dl.test/c.tgz\"]\n- apt install -y nfs-common\n"
        );
        let mut found = Installs::default();
        of_text("u", &text, &mut found);
        found.0.sort();
        let told: Vec<String> = found.0.iter().map(|(what, at)| format!("{what:?} {at}")).collect();
        assert_eq!(
            told,
            [
                "File(\"https://dl.test/b.bin\") u:11",
                "File(\"https://dl.test/c.tgz\") u:13",
                "File(\"https://dl.test/in-base64.tgz\") u (/a):2",
                "Package(\"apt\", \"containerd.io=1.7.24-1\") u:4",
                "Package(\"apt\", \"curl\") u:3",
                "Package(\"apt\", \"jq=1.6\") u:5",
                "Package(\"apt\", \"nfs-common\") u:14",
            ]
        );
    }

    #[test]
    fn a_unit_a_script_and_ignition_set_machines_up_and_a_pod_does_not() {
        for (name, text, is) in [
            ("a.service", "", true),
            ("x/user-data", "", true),
            ("setup", "#!/bin/sh\n", true),
            ("c.yaml", "runcmd:\n- ls\n", true),
            ("i.ign", "{}", true),
            ("pod.yaml", "kind: Pod\n", false),
            ("values.yaml", "packages:\n- x\n", false),
        ] {
            assert_eq!(is_of_machine(Path::new(name), text), is, "{name}");
        }
        let mut found = Installs::default();
        of_text(
            "i.ign",
            r#"{"storage": {"files": [{"contents": {"source": "https://dl.test/i"}}]}}"#,
            &mut found,
        );
        assert_eq!(found.0, [(Install::File("https://dl.test/i".into()), "i.ign:1".into())]);
    }
}
