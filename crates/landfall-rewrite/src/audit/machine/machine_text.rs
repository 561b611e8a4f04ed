//! Recognizes texts that set up a machine, and finds the files and packages that they install.

use super::cloud_packages::packages;
use super::commands::{MachineInstall, MachineInstalls, PlacedInstall, fetched, of_script};
use crate::audit::dockerfile::is_dockerfile;
use crate::audit::page::{code_blocks, is_page};
use crate::error::RewriteError;
use crate::gzip;
use crate::inputs::{InputContent, inputs, read};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use landfall_model::Limits;
use landfall_model::document::yaml;
use serde_yaml::{Mapping, Value};
use std::path::{Path, PathBuf};

/// Endings of scripts, systemd units, and documents of Ignition and Butane.
const ENDINGS: [&str; 7] = ["sh", "bash", "service", "socket", "timer", "ign", "bu"];
/// Keys that identify a document of cloud-init. `packages` is not among them, because other
/// documents have it, too.
const CLOUD_KEYS: [&str; 3] = ["runcmd", "bootcmd", "write_files"];

/// Reads the files at `paths` and the text `stdin`, as far as they set up machines, and finds the
/// files and packages that they fetch and install. Files that cannot be read are skipped.
///
/// # Errors
/// If a path cannot be listed.
pub fn machine_installs(
    paths: &[PathBuf],
    stdin: Option<&str>,
) -> Result<MachineInstalls, RewriteError> {
    let mut found = MachineInstalls::default();
    for input in inputs(paths, None)? {
        if let Ok(InputContent::Text(text)) = read(&input) {
            found.0.extend(placed_installs(&input.path, &text));
        }
    }
    if let Some(text) = stdin {
        found.0.extend(placed_installs(Path::new("<stdin>"), text));
    }
    found.0.sort();
    found.0.dedup();
    Ok(found)
}

/// The files and packages that `text`, the content of the file at `path`, fetches and installs,
/// each with its position, or the URLs of a list.
fn placed_installs(path: &Path, text: &str) -> Vec<(MachineInstall, String)> {
    let found = if is_of_machine(path, text) {
        of_text(text)
    } else {
        url_lines(path, text)
    };
    let file = path.display().to_string();
    let installs = found.into_iter().map(|one| {
        let at = format!("{}:{}", one.file(&file), one.line);
        (one.install, at)
    });
    installs.collect()
}

fn is_of_machine(path: &Path, text: &str) -> bool {
    let ending = path
        .extension()
        .and_then(|ending| ending.to_str())
        .unwrap_or_default();
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    ENDINGS.contains(&ending)
        || is_dockerfile(path)
        || name.starts_with("user-data")
        || ["#!", "#cloud-config", "## template: jinja"]
            .iter()
            .any(|sign| text.starts_with(sign))
        || CLOUD_KEYS.iter().any(|key| {
            let is_key = |line: &str| line.trim_end().strip_suffix(':') == Some(key);
            text.contains(key) && text.lines().any(is_key)
        })
}

/// Finds the packages that `text` installs: by its commands and, if it sets up a machine, by its
/// cloud-init keys.
pub(crate) fn packages_in(path: &Path, text: &str) -> Vec<PlacedInstall> {
    let mut found = if is_of_machine(path, text) {
        of_text(text)
    } else if text.contains("install") {
        of_script(text)
    } else {
        Vec::new()
    };
    found.retain(|one| {
        matches!(
            one.install,
            MachineInstall::Package(..) | MachineInstall::OpenPackage(..)
        )
    });
    found
}

/// Finds the files that `text` fetches, if it sets up a machine.
pub(crate) fn fetches_in(path: &Path, text: &str) -> Vec<PlacedInstall> {
    let mut found = if is_of_machine(path, text) {
        of_text(text)
    } else {
        Vec::new()
    };
    found.retain(|one| {
        matches!(
            one.install,
            MachineInstall::File(_) | MachineInstall::Unclear(_)
        )
    });
    found
}

/// The URLs that are a whole line of a list, or of a code block of a page in Markdown.
fn url_lines(path: &Path, text: &str) -> Vec<PlacedInstall> {
    let ending = path.extension().and_then(|ending| ending.to_str());
    let blocks = match ending {
        _ if is_page(path) => code_blocks(text),
        Some("txt" | "list") => std::iter::once(0..text.len()).collect(),
        _ => return Vec::new(),
    };
    let mut found = Vec::new();
    let (mut first, mut counted) = (0, 0);
    for block in blocks {
        first += text[counted..block.start].lines().count();
        counted = block.start;
        for (at, line) in text[block].lines().enumerate() {
            let url = line.trim().trim_start_matches("- ");
            if let Some(install) = fetched(url).filter(|_| !url.contains(' ')) {
                let start = line.len() - line.trim_start_matches([' ', '-']).len();
                found.push(PlacedInstall::on_line(install, line, first + at, start));
            }
        }
    }
    found
}

fn of_text(text: &str) -> Vec<PlacedInstall> {
    let mut found = of_script(text);
    found.extend(packages(text));
    let cloud = yaml::from_str::<Mapping>(text).ok();
    for file_entry in cloud
        .iter()
        .filter_map(|cloud| cloud.get("write_files")?.as_sequence())
        .flatten()
    {
        let Some(entry) = file_entry.as_mapping() else {
            continue;
        };
        let of = |key: &str| entry.get(key).and_then(Value::as_str).unwrap_or_default();
        if let Some(inner) = decoded(of("encoding"), of("content")) {
            for install in of_script(&inner) {
                found.push(PlacedInstall {
                    inside: Some(of("path").to_owned()),
                    ..install
                });
            }
        }
        if let Some(uri) = entry
            .get("source")
            .and_then(|source| source.get("uri")?.as_str())
            && let Some(install) = fetched(uri)
        {
            found.push(placed(install, text, uri));
        }
    }
    // Ignition and Butane: the source of a file
    if let Some(config) = cloud.as_ref() {
        sources(&Value::Mapping(config.clone()), &mut |url| {
            if let Some(install) = fetched(url) {
                found.push(placed(install, text, url));
            }
        });
    }
    found
}

/// Calls `each` with the text of every key `source`.
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

/// Places `install` at the first occurrence of `part` in `text`.
fn placed(install: MachineInstall, text: &str, part: &str) -> PlacedInstall {
    let at = text
        .lines()
        .position(|line| line.contains(part))
        .unwrap_or(0);
    let line = text.lines().nth(at).unwrap_or_default();
    PlacedInstall::on_line(install, line, at, line.find(part).unwrap_or(0))
}

/// The content of a file that cloud-init writes, if it is a text in base64, gzipped or not.
fn decoded(encoding: &str, content: &str) -> Option<String> {
    // cloud-init ignores case and blanks
    let is_gzip = match &*encoding.trim().to_ascii_lowercase() {
        "b64" | "base64" => false,
        // gzip without base64 is binary, so it is written as `!!binary`, which is base64
        "gz" | "gzip" | "gz+b64" | "gz+base64" | "gzip+b64" | "gzip+base64" => true,
        _ => return None,
    };
    let plain: String = content.split_whitespace().collect();
    let mut bytes = STANDARD.decode(plain).ok()?;
    if is_gzip {
        bytes = gzip::decompress(&bytes, Limits::default().unpacked_bytes).ok()??;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_notations_of_cloud_init_for_packages_and_files_are_read() {
        let script = STANDARD.encode("#!/bin/sh\nwget https://dl.test/in-base64.tgz\n");
        let text = format!(
            "#cloud-config\npackages:\n  - curl\n  - [containerd.io, 1.7.24-1]\n  - jq=1.6  # pinned\nwrite_files:\n- path: /a\n  \
             encoding: b64\n  content: {script}\n- path: /b\n  source: {{uri: 'https://dl.test/b.bin'}}\nruncmd:\n- [sh, -c, \
             \"curl -L https://dl.test/c.tgz\"]\n- apt install -y nfs-common\n"
        );
        let mut formatted: Vec<String> = of_text(&text)
            .iter()
            .map(|one| format!("{:?} {}:{}", one.install, one.file("u"), one.line))
            .collect();
        formatted.sort();
        assert_eq!(
            formatted,
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
    fn all_encodings_of_cloud_init_are_decoded() {
        let script = b"wget https://dl.test/a.tgz\n";
        let zipped = STANDARD.encode(gzip::compress(script).unwrap());
        for (encoding, content) in [
            ("b64", STANDARD.encode(script)),
            ("Base64", STANDARD.encode(script)),
            ("gz+b64", zipped.clone()),
            ("gz+base64", zipped.clone()),
            ("gzip+b64", zipped.clone()),
            ("gzip+base64", zipped.clone()),
            ("gzip", zipped.clone()),
            ("gz", zipped),
        ] {
            let text =
                format!("write_files:\n- path: /a\n  encoding: {encoding}\n  content: {content}\n");
            let found: Vec<MachineInstall> =
                of_text(&text).into_iter().map(|one| one.install).collect();
            let expected = MachineInstall::File("https://dl.test/a.tgz".into());
            assert_eq!(found, [expected], "{encoding}");
        }
    }

    #[test]
    fn units_scripts_and_ignition_set_up_machines_and_pods_do_not() {
        for (name, text, is) in [
            ("a.service", "", true),
            ("x/user-data", "", true),
            ("setup", "#!/bin/sh\n", true),
            ("Dockerfile", "", true),
            ("c.yaml", "runcmd:\n- ls\n", true),
            ("i.ign", "{}", true),
            ("pod.yaml", "kind: Pod\n", false),
            ("values.yaml", "packages:\n- x\n", false),
        ] {
            assert_eq!(is_of_machine(Path::new(name), text), is, "{name}");
        }
        let found =
            of_text(r#"{"storage": {"files": [{"contents": {"source": "https://dl.test/i"}}]}}"#);
        let expected = MachineInstall::File("https://dl.test/i".into());
        assert_eq!(
            (found.len(), &found[0].install, found[0].line),
            (1, &expected, 1)
        );
    }

    #[test]
    fn commands_are_read_in_any_text_and_package_lists_only_in_cloud_init() {
        let names = |path: &str, text: &str| -> Vec<String> {
            let formatted =
                |one: PlacedInstall| format!("{}:{} {:?}", one.line, one.column, one.install);
            packages_in(Path::new(path), text)
                .into_iter()
                .map(formatted)
                .collect()
        };
        assert_eq!(
            names("user-data", "packages:\n- apt: [apt, jq-dev, jq]\n"),
            [
                "2:9 Package(\"apt\", \"apt\")",
                "2:14 Package(\"apt\", \"jq-dev\")",
                "2:22 Package(\"apt\", \"jq\")"
            ]
        );
        let pod = "kind: Pod\npackages:\n- x\nargs: [sh, -c, \"apt-get install -y jq\"]\n";
        assert_eq!(names("pod.yaml", pod), ["4:36 Package(\"apt\", \"jq\")"]);
        assert_eq!(
            names("user-data", "packages:\n- jq\n"),
            ["2:3 Package(\"apt\", \"jq\")"]
        );
        assert_eq!(names("a.yaml", "packages:\n- jq\n"), Vec::<String>::new());
    }
}
