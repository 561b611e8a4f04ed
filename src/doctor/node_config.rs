//! Checks configuration files of a node: `config.toml` of containerd with the files that it
//! imports, and `registries.conf` of podman and CRI-O.

use super::containerd_lint::{ContainerdFile, lint_containerd};
use super::steps::{Diagnosis, DiagnosisSteps};
use landfall_model::Wildcards;
use landfall_model::document::read_text_input;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The maximum number of files that a configuration imports.
const MAX_IMPORTS: usize = 100;
/// The maximum depth of tables and arrays.
const MAX_DEPTH: usize = 100;
/// The maximum size of a file in bytes.
const MAX_BYTES: usize = 4 << 20;

/// Checks the file at `path`. The error says why the file cannot be read, or that it is neither of
/// these configurations.
pub(crate) fn lint_node_config(path: &Path) -> Result<Diagnosis, String> {
    let name = path.display().to_string();
    if path.extension().is_some_and(|end| end == "tmpl") {
        return Err(format!(
            "{name} is a template; check the config.toml that k3s or RKE2 writes, such as \
             /var/lib/rancher/k3s/agent/etc/containerd/config.toml"
        ));
    }
    let root = read(path)?;
    let checks = if is_containerd(&root) {
        let (files, absent) = with_imports(path, root, Path::new("/"))?;
        lint_containerd(&files, &absent)
    } else if is_registries_conf(&root) {
        lint_registries_conf(&root)
    } else {
        return Err(format!(
            "{name} is neither a config.toml of containerd nor a registries.conf"
        ));
    };
    Ok(checks.into_diagnosis(name))
}

/// Checks the configuration of containerd at `path`. Absolute paths of imports are below `root`.
pub(super) fn lint_config_of_node(path: &Path, root: &Path) -> Result<Diagnosis, String> {
    let (files, absent) = read_containerd(path, root)?;
    Ok(lint_containerd(&files, &absent).into_diagnosis(path.display().to_string()))
}

/// Reads the configuration of containerd at `path` and the files that it imports. Also returns the
/// imports that are not there.
pub(super) fn read_containerd(
    path: &Path,
    root: &Path,
) -> Result<(Vec<ContainerdFile>, Vec<String>), String> {
    with_imports(path, read(path)?, root)
}

fn has_any(root: &Value, keys: &[&str]) -> bool {
    keys.iter().any(|key| root.get(key).is_some())
}

fn is_containerd(root: &Value) -> bool {
    has_any(root, &["plugins", "version", "imports", "disabled_plugins"])
}

fn is_registries_conf(root: &Value) -> bool {
    let keys = ["registry", "registries", "unqualified-search-registries"];
    has_any(root, &keys)
}

/// Checks `bytes` as both kinds of configuration, without imports.
#[cfg(any(test, fuzzing))]
pub(crate) fn fuzz(bytes: &[u8]) {
    let Ok(root) = parse_toml("fuzz", &String::from_utf8_lossy(bytes)) else {
        return;
    };
    let _ = lint_registries_conf(&root);
    let name = "fuzz".to_owned();
    let _ = lint_containerd(&[ContainerdFile { name, root }], &[]);
}

fn read(path: &Path) -> Result<Value, String> {
    let name = path.display();
    let text = read_text_input(path).map_err(|error| format!("cannot read {name}: {error}"))?;
    parse_toml(&name.to_string(), &text)
}

/// Parses the text of the file `name`.
pub(super) fn parse_toml(name: &str, text: &str) -> Result<Value, String> {
    if text.len() > MAX_BYTES || is_deep(text) {
        return Err(format!("{name} is too large, or nested too deeply"));
    }
    basic_toml::from_str(text).map_err(|error| {
        format!("{name} is not valid TOML, so no program reads it: {error}; a table may occur once")
    })
}

/// Whether brackets or dotted keys may nest deeper than the limit. Brackets in texts count too.
fn is_deep(text: &str) -> bool {
    let mut depth = 0_usize;
    for line in text.lines() {
        let key = line.split('=').next().unwrap_or(line);
        if key.matches('.').count() > MAX_DEPTH {
            return true;
        }
        for c in line.chars() {
            match c {
                '[' | '{' => depth += 1,
                ']' | '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth > MAX_DEPTH {
                return true;
            }
        }
    }
    false
}

/// The configuration with the files that it imports, in the order in which later ones win; and the
/// imported files that are not on this machine.
fn with_imports(
    path: &Path,
    content: Value,
    root: &Path,
) -> Result<(Vec<ContainerdFile>, Vec<String>), String> {
    let mut known = BTreeSet::from([path.to_owned()]);
    let mut files = Vec::new();
    let mut absent = Vec::new();
    let mut open = vec![(path.to_owned(), content)];
    while !open.is_empty() {
        let mut next = Vec::new();
        for (path, content) in open {
            let imports = content.get("imports").and_then(Value::as_array);
            for pattern in imports.into_iter().flatten().filter_map(Value::as_str) {
                let folder = path.parent().unwrap_or(Path::new(""));
                let found = match pattern.strip_prefix('/') {
                    Some(pattern) => matching(root, pattern),
                    None => matching(folder, pattern),
                };
                if found.is_empty() {
                    absent.push(pattern.to_owned());
                }
                for path in found {
                    if known.len() <= MAX_IMPORTS && known.insert(path.clone()) {
                        let root = read(&path)?;
                        next.push((path, root));
                    }
                }
            }
            files.push(ContainerdFile {
                name: path.display().to_string(),
                root: content,
            });
        }
        open = next;
    }
    Ok((files, absent))
}

/// The existing files that an entry of `imports` names, sorted. As in containerd, the name of the
/// file may contain `*`.
fn matching(folder: &Path, pattern: &str) -> Vec<PathBuf> {
    let path = folder.join(pattern);
    let pattern = path.file_name().and_then(|name| name.to_str());
    let Some(pattern) = pattern.filter(|name| name.contains('*')) else {
        return path.is_file().then_some(path).into_iter().collect();
    };
    let entries = path.parent().and_then(|folder| folder.read_dir().ok());
    let mut found: Vec<PathBuf> = entries
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| Wildcards::STAR.matches(pattern, name))
        })
        .collect();
    found.sort();
    found
}

/// Checks a registries.conf: programs refuse a file with tables of both formats, and one with names
/// that they cannot read (containers-registries.conf(5), `postProcess` in
/// `image/pkg/sysregistriesv2`). podman 6 and newer also refuse version 1.
pub(super) fn lint_registries_conf(root: &Value) -> DiagnosisSteps {
    let mut steps = DiagnosisSteps::default();
    let is_old = root.get("registries").is_some();
    let new = ["registry", "unqualified-search-registries"];
    let is_new = new.iter().any(|key| root.get(key).is_some());
    let fix = "write [[registry]] and unqualified-search-registries (landfall render \
               podman, landfall render crio), and remove [registries.search], [registries.insecure] and \
               [registries.block]";
    match (is_old, is_new) {
        (true, true) => {
            let says = "it mixes [registries.…] of version 1 with [[registry]] of version 2, so \
                        podman and CRI-O refuse it";
            steps.no("format", says);
            steps.fix(fix);
        }
        (true, false) => {
            let says = "it has version 1 of the format, which cannot name mirrors, and which podman \
                        6 and newer refuse";
            steps.note("format", says);
            steps.fix(fix);
        }
        _ => steps.ok("format", "it has version 2 of the format"),
    }
    if let Some(url) = name_with_scheme(root) {
        let says = format!("'{url}' has a scheme, so podman and CRI-O refuse the whole file");
        steps.no("location", says);
        steps.fix("write HOST[:PORT][/PATH]; `insecure = true` beside it allows plain http");
    }
    for table in items(root, "registry") {
        let text = |key: &str| table.get(key).and_then(Value::as_str).unwrap_or_default();
        // only a prefix such as *.example.com may stand without a location
        if text("location").is_empty() && !text("prefix").starts_with("*.") {
            let prefix = text("prefix");
            let says = format!(
                "[[registry]] with the prefix '{prefix}' has no location, so podman and CRI-O \
                 refuse the whole file"
            );
            steps.no("location", says);
            steps.fix(format!("add location = \"{prefix}\""));
        }
    }
    steps
}

/// The first name of a registry or mirror that has a scheme.
fn name_with_scheme(root: &Value) -> Option<&str> {
    let named = items(root, "registry").flat_map(|table| {
        let mirrors = items(table, "mirror").filter_map(|mirror| mirror.get("location"));
        let own = ["prefix", "location"].into_iter();
        own.filter_map(move |key| table.get(key)).chain(mirrors)
    });
    let mut names = items(root, "unqualified-search-registries")
        .chain(named)
        .filter_map(Value::as_str);
    names.find(|name| name.starts_with("http://") || name.starts_with("https://"))
}

/// The items of a list in `table`.
fn items<'v>(table: &'v Value, key: &'static str) -> impl Iterator<Item = &'v Value> {
    let list = table.get(key).and_then(Value::as_array);
    list.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::super::CheckStatus::{No, Note, Ok};
    use super::*;

    #[test]
    fn mixed_formats_are_reported() {
        let verdict = |text: &str| {
            let root = basic_toml::from_str(text).unwrap();
            lint_registries_conf(&root).0[0].verdict
        };
        let old = "[registries.search]\nregistries = ['docker.io']\n";
        let new = "[[registry]]\nlocation = 'docker.io'\n";
        assert_eq!(verdict(old), Note);
        assert_eq!(verdict(new), Ok);
        assert_eq!(verdict(&format!("{new}{old}")), No);
    }

    #[test]
    fn names_with_which_programs_refuse_the_file_are_reported() {
        let quay = "[[registry]]\nprefix = 'quay.io'\n";
        let mirror = |location: &str| format!("[[registry.mirror]]\nlocation = '{location}'\n");
        let own = "location = 'quay.io'\n";
        for (text, expected) in [
            (format!("{quay}{own}{}", mirror("172.20.0.2:5000/")), None),
            (
                format!("{quay}{own}{}", mirror("https://172.20.0.2:5000")),
                Some("'https://172.20.0.2:5000' has a scheme"),
            ),
            (
                format!("{quay}location = 'http://quay.io'\n"),
                Some("'http://quay.io' has a scheme"),
            ),
            (
                "unqualified-search-registries = ['https://docker.io']\n".to_owned(),
                Some("'https://docker.io' has a scheme"),
            ),
            (
                format!("{quay}{}", mirror("172.20.0.2:5000")),
                Some("prefix 'quay.io' has no location"),
            ),
            (
                "[[registry]]\nprefix = '*.example.com'\nblocked = true\n".to_owned(),
                None,
            ),
        ] {
            let root = basic_toml::from_str(&text).unwrap();
            let steps = lint_registries_conf(&root).0;
            let found = steps.iter().find(|step| step.check == "location");
            match expected {
                Some(words) => {
                    let step = found.unwrap_or_else(|| panic!("{text}"));
                    assert_eq!(step.verdict, No, "{text}");
                    assert!(step.says.contains(words), "{}", step.says);
                }
                None => assert!(found.is_none(), "{text}"),
            }
        }
    }
}
