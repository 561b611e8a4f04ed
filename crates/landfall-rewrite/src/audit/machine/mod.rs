//! Finds the files and packages that the set-up of a machine fetches and installs: in scripts,
//! systemd units, cloud-init and Ignition, and files that documents of clusters name by their URLs.
//! `discover` drafts a manifest from them; an audit looks up the packages in the lock.

mod cluster;
mod commands;

use self::commands::{PlacedInstall, fetched, is_package, of_json, of_script};
use super::{code_blocks, is_page};
use crate::archive;
use crate::inputs::{InputContent, RewriteError, inputs, read};
use crate::text::is_dockerfile;
use crate::walk::start_of;
use crate::yaml::{
    YamlDocument, YamlEntry, YamlNode, documents, entries_of, items_of, text_of, value_of,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use landfall_model::Limits;
use landfall_model::document::{LineIndex, yaml};
use percent_encoding::percent_decode_str;
use serde_yaml::{Mapping, Value};
use std::path::{Path, PathBuf};

pub(super) use self::cluster::document_files;
pub use self::commands::{MachineInstall, MachineInstalls};

// Recognizes texts that set up a machine, and finds the files and packages that they install.

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
        if let Ok(InputContent::Text(text, _)) = read(&input) {
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
        let mut found = url_lines(path, text);
        found.extend(document_files(path, text));
        found
    };
    let file = path.display().to_string();
    let installs = found.into_iter().map(|one| {
        let at = format!("{}:{}", one.file(&file), one.line);
        (one.install, at)
    });
    installs.collect()
}

/// Whether `text`, the content of the file at `path`, sets up a machine.
pub(super) fn is_of_machine(path: &Path, text: &str) -> bool {
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

/// Finds the files and packages that `text` installs: by its commands and, if it sets up a machine,
/// by its cloud-init keys.
pub(super) fn installs_in(path: &Path, text: &str) -> Vec<PlacedInstall> {
    if is_of_machine(path, text) {
        of_text(text)
    } else if text.contains("install") {
        of_script(text)
    } else {
        Vec::new()
    }
}

/// The URLs that are a whole line of a list, or of a code block of a page in Markdown.
fn url_lines(path: &Path, text: &str) -> Vec<PlacedInstall> {
    let ending = path.extension().and_then(|ending| ending.to_str());
    let blocks = match ending {
        // in the notes of a chart, a URL on a line of its own is a link
        _ if path.ends_with("NOTES.txt") => return Vec::new(),
        _ if is_page(path) => code_blocks(text),
        Some("txt" | "list") => std::iter::once(0..text.len()).collect(),
        _ => return Vec::new(),
    };
    let lines = LineIndex::new(text);
    let mut found = Vec::new();
    for line in blocks.into_iter().flat_map(|block| text[block].lines()) {
        let url = line.trim().trim_start_matches("- ");
        if let Some(install) = fetched(url).filter(|_| !url.contains(' ')) {
            let content = line.trim_start_matches([' ', '-']);
            let at = content.as_ptr() as usize - text.as_ptr() as usize;
            found.push(PlacedInstall::new(install, &lines, at));
        }
    }
    found
}

fn of_text(text: &str) -> Vec<PlacedInstall> {
    let cloud = yaml::from_str::<Mapping>(text).ok();
    let is_json = cloud.is_some() && text.trim_start().starts_with('{');
    let mut found = if is_json {
        of_json(text)
    } else {
        of_script(text)
    };
    found.extend(packages(text));
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
    }
    // a text of several documents, or with a key twice, is not one of cloud-init or Ignition
    if cloud.is_some() {
        found.extend(fetched_sources(text));
    }
    found
}

/// The files that the documents of `text` name as sources: the `uri` of `write_files` of
/// cloud-init, and the source of a file of Ignition and Butane.
fn fetched_sources(text: &str) -> Vec<PlacedInstall> {
    let lines = LineIndex::new(text);
    let mut found = Vec::new();
    for document in documents(text).flatten() {
        let Some(root) = &document.root else {
            continue;
        };
        let mut urls = uris(root);
        sources(root, &mut |value| urls.push(value));
        let files = urls.into_iter();
        found.extend(files.filter_map(|value| file_at(&document, value, &lines)));
        for file in root.descendants() {
            found.extend(of_inline_file(file.entries()));
        }
    }
    found
}

/// The files and packages that a script of Ignition installs, if the content of `file` is in a
/// `data:` URL.
fn of_inline_file(file: &[YamlEntry<'_>]) -> Vec<PlacedInstall> {
    let contents = entries_of(file, "contents");
    let (Some(path), Some(source)) = (text_of(file, "path"), text_of(contents, "source")) else {
        return Vec::new();
    };
    let compression = text_of(contents, "compression").unwrap_or_default();
    let script = data_of(source, compression).unwrap_or_default();
    let installs = of_script(&script).into_iter();
    let inside = |install: PlacedInstall| PlacedInstall {
        inside: Some(path.to_owned()),
        ..install
    };
    installs.map(inside).collect()
}

/// The text of a `data:` URL (RFC 2397).
fn data_of(url: &str, compression: &str) -> Option<String> {
    let (kind, data) = url.strip_prefix("data:")?.split_once(',')?;
    let data = percent_decode_str(data).decode_utf8().ok()?;
    match (kind.ends_with(";base64"), compression) {
        (true, "gzip") => decoded("gz+b64", &data),
        (true, _) => decoded("b64", &data),
        (false, _) => Some(data.into_owned()),
    }
}

/// The file whose URL is the text of `node`.
fn file_at(
    document: &YamlDocument<'_>,
    node: &YamlNode<'_>,
    lines: &LineIndex<'_>,
) -> Option<PlacedInstall> {
    let install = fetched(document.text(node)?)?;
    Some(PlacedInstall::new(install, lines, start_of(node)?))
}

/// The `uri` in the `source` of each of the `write_files`.
fn uris<'n>(root: &'n YamlNode<'n>) -> Vec<&'n YamlNode<'n>> {
    let files = items_of(root.entries(), "write_files").iter();
    let uris = files.filter_map(|file| value_of(entries_of(file.entries(), "source"), "uri"));
    uris.collect()
}

/// Calls `each` with the text of every key `source`.
fn sources<'n>(node: &'n YamlNode<'n>, each: &mut impl FnMut(&'n YamlNode<'n>)) {
    for YamlEntry { key, value } in node.entries() {
        match value {
            YamlNode::Scalar(_) | YamlNode::Alias(_) if key.is_text("source") => each(value),
            _ => sources(value, each),
        }
    }
    node.items().iter().for_each(|item| sources(item, each));
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
        bytes = archive::decompress(&bytes, Limits::default().unpacked_bytes).ok()??;
    }
    String::from_utf8(bytes).ok()
}

// Finds the packages that cloud-init installs: the list `packages` of a document.

/// The packages of a document of cloud-init: names, and pairs of name and version. Those of `snap`
/// are no packages of apt, so they are skipped.
pub(super) fn packages(text: &str) -> Vec<PlacedInstall> {
    let lines = LineIndex::new(text);
    let mut found = Vec::new();
    let mut inside = false;
    // the column of the key `snap`, in its list
    let mut snap = None;
    for line in text.lines() {
        let indented = line.starts_with([' ', '-']);
        let is_comment = line.starts_with('#') || line.starts_with("{%");
        if !indented && !line.trim().is_empty() && !is_comment {
            let value = line.strip_prefix("packages:").map(without_comment);
            inside = value.is_some_and(str::is_empty);
            snap = None;
            continue;
        }
        let entry = line.trim_start_matches([' ', '-', '{']);
        let content = line.trim_start();
        if entry.starts_with("snap:") && !content.starts_with("- {") {
            snap = Some(line.len() - entry.len());
            continue;
        }
        let Some(item) = content.strip_prefix("- ").filter(|_| inside) else {
            snap = snap.filter(|_| !entry.starts_with("apt:"));
            continue;
        };
        if snap.is_some_and(|column| line.len() - content.len() >= column) {
            continue;
        }
        snap = None;
        let item = without_comment(item);
        let is_mapping = item.starts_with('{') && !item.starts_with("{{");
        let item = if is_mapping {
            packages_of_apt(item)
        } else {
            item
        };
        found.extend(
            item_packages(item)
                .into_iter()
                .filter_map(|(name, written)| {
                    let start = name.as_ptr() as usize - text.as_ptr() as usize;
                    Some(PlacedInstall::new(install(written)?, &lines, start))
                }),
        );
    }
    found.extend(in_brackets(text));
    found
}

/// The list of packages of apt in a flow mapping of package managers; empty if there is none.
fn packages_of_apt(mapping: &str) -> &str {
    let list = mapping.split_once("apt:").map_or("", |(_, list)| list);
    let list = list.trim_start_matches([' ', '[']);
    list.split([']', '}']).next().unwrap_or_default()
}

fn without_comment(value: &str) -> &str {
    value.split(" #").next().unwrap_or(value).trim()
}

/// The packages of a list in brackets. Such a list may have several lines, so the text is parsed.
fn in_brackets(text: &str) -> Vec<PlacedInstall> {
    if !text.lines().any(|line| line.starts_with("packages:")) {
        return Vec::new();
    }
    let mut words = Vec::new();
    for document in documents(text).flatten() {
        if let Some(YamlNode::Sequence(list)) = value_of(document.entries(), "packages")
            && list.flow
        {
            words.extend(list.items.iter().flat_map(node_packages));
        }
    }
    let lines = LineIndex::new(text);
    let words = words.into_iter();
    let placed =
        words.filter_map(|(at, written)| Some(PlacedInstall::new(install(written)?, &lines, at)));
    placed.collect()
}

/// The packages in an item of a list in brackets: the offset of the name, and the text for apt.
fn node_packages(item: &YamlNode<'_>) -> Vec<(usize, String)> {
    match item {
        YamlNode::Scalar(_) | YamlNode::Alias(_) => node_word(item).into_iter().collect(),
        YamlNode::Sequence(names) => {
            let words: Vec<(usize, String)> = names.items.iter().filter_map(node_word).collect();
            if let [(at, name), (_, version)] = &words[..] {
                return vec![(*at, format!("{name}={version}"))];
            }
            words
        }
        // `{apt: [NAME]}`; packages of other managers, such as `snap`, are skipped
        YamlNode::Mapping(managers) => {
            let names = items_of(&managers.entries, "apt").iter();
            names.flat_map(node_packages).collect()
        }
    }
}

/// The text of a scalar, and its offset.
fn node_word(node: &YamlNode<'_>) -> Option<(usize, String)> {
    let text = node.scalar()?.text()?;
    Some((start_of(node)?, text.to_owned()))
}

/// The packages in an item of the list: the name in the item, and the text for apt.
fn item_packages(item: &str) -> Vec<(&str, String)> {
    // an expression of Jinja may contain blanks
    if item.contains("{{") {
        let written = item.trim_matches(['"', '\'']);
        return vec![(written, written.to_owned())];
    }
    let words: Vec<&str> = item
        .split([' ', ',', '[', ']', '"', '\''])
        .filter(|word| !word.is_empty() && *word != "apt:")
        .collect();
    match (&words[..], item.starts_with('[')) {
        ([name, version], true) => vec![(*name, format!("{name}={version}"))],
        (names, _) => names
            .iter()
            .map(|name| (*name, (*name).to_owned()))
            .collect(),
    }
}

/// The package `written`. `None` if it is not the name of a package to install.
fn install(written: String) -> Option<MachineInstall> {
    if written.contains('$') || written.contains("{{") {
        Some(MachineInstall::OpenPackage("apt", written))
    } else if is_package(&written) {
        Some(MachineInstall::Package("apt", written))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_model::document::growth::assert_linear;

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
    fn the_sources_of_files_are_found_in_linear_time() {
        let text = "#cloud-config\nwrite_files:\n- {path: /a, source: {uri: 'https://dl.test/a'}}\n\
                    - path: /b\n  source: &b \"https:\\/\\/dl.test/b\"\n- {source: *b}\n";
        let found = fetched_sources(text);
        let found = found.iter().map(|one| (one.line, one.column));
        assert_eq!(found.collect::<Vec<_>>(), [(3, 29), (5, 15), (6, 12)]);
        assert_linear(500, |count| {
            let files = (0..count).map(|n| format!("- source: https://dl.test/f/{n}\n"));
            let text = "files:\n".to_owned() + &files.collect::<String>();
            assert_eq!(of_text(&text).len(), count);
        });
    }

    #[test]
    fn a_long_line_of_packages_takes_linear_time() {
        assert_linear(20_000, |count| {
            let names = "jq, ".repeat(count);
            assert_eq!(packages(&format!("packages:\n- {names}\n")).len(), count);
        });
    }

    #[test]
    fn all_encodings_of_cloud_init_are_decoded() {
        let script = b"wget https://dl.test/a.tgz\n";
        let zipped = STANDARD.encode(archive::compress(script).unwrap());
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
        // units and scripts are strings with escapes
        let unit = "ExecStartPre=/bin/curl -O https://dl.test/ü.tgz\n\
                    ExecStart=/bin/sh -c \"apt-get install -y \\\n  jq\"\n";
        let unit = serde_json::json!({"systemd": {"units": [{"contents": unit}]}}).to_string();
        let found = of_text(&unit).into_iter();
        let found = found.map(|one| format!("{}:{} {:?}", one.line, one.column, one.install));
        assert_eq!(
            found.collect::<Vec<String>>(),
            [
                "1:61 File(\"https://dl.test/ü.tgz\")",
                "1:132 Package(\"apt\", \"jq\")",
            ]
        );
    }

    #[test]
    fn scripts_in_data_urls_of_ignition_are_read() {
        let script = "#!/bin/sh\ncurl -O https://dl.test/a%20b.tgz\n";
        let zipped = STANDARD.encode(archive::compress(script.as_bytes()).unwrap());
        let plain = script.replace('%', "%25").replace('\n', "%0A");
        let plain = plain.replace('#', "%23").replace(' ', "%20");
        for contents in [
            format!("{{source: 'data:,{plain}'}}"),
            format!("{{source: 'data:;base64,{}'}}", STANDARD.encode(script)),
            format!("{{source: 'data:text/plain;base64,{zipped}', compression: gzip}}"),
        ] {
            let text = format!("storage: {{files: [{{path: /a, contents: {contents}}}]}}\n");
            let [found] = &of_text(&text)[..] else {
                panic!("not one file: {text}");
            };
            let expected = MachineInstall::File("https://dl.test/a%20b.tgz".into());
            assert_eq!(
                (&found.install, found.line, &*found.file("f")),
                (&expected, 2, "f (/a)"),
                "{text}"
            );
        }
    }

    #[test]
    fn commands_are_read_in_any_text_and_package_lists_only_in_cloud_init() {
        let names = |path: &str, text: &str| -> Vec<String> {
            let formatted =
                |one: PlacedInstall| format!("{}:{} {:?}", one.line, one.column, one.install);
            installs_in(Path::new(path), text)
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

    fn found(text: &str) -> Vec<String> {
        packages(text)
            .into_iter()
            .map(|one| format!("{}:{} {:?}", one.line, one.column, one.install))
            .collect()
    }

    #[test]
    fn packages_of_snap_are_skipped() {
        for (text, expected) in [
            ("packages:\n- snap: [a, b]\n- jq\n", "3:3 jq"),
            (
                "packages:\n- snap:\n  - a\n\n  - [b, --edge]\n- apt:\n  - jq\n",
                "7:5 jq",
            ),
            ("packages:\n- apt: [jq]\n  snap:\n  - a\n", "2:9 jq"),
            (
                "packages:\n  - snap:\n      - a\n    apt:\n      - jq\n",
                "5:9 jq",
            ),
            ("packages:\n- {snap: [a]}\n- {apt: [jq]}\n", "3:10 jq"),
            ("packages:\n- {snap: [a], apt: [jq]}\n", "2:21 jq"),
            ("packages:\n- {apt: [jq], snap: [a]}\n", "2:10 jq"),
            ("packages:\n- {apt: jq}\n", "2:9 jq"),
            ("snap:\n  commands:\n  - a\npackages:\n- jq\n", "5:3 jq"),
        ] {
            let (place, name) = expected.split_once(' ').unwrap();
            let expected = format!("{place} Package(\"apt\", {name:?})");
            assert_eq!(found(text), [expected], "{text}");
        }
    }

    #[test]
    fn lists_in_brackets_and_lists_after_a_comment_are_read() {
        for (text, expected) in [
            ("packages: # tools\n- jq\n", &["2:3 jq"][..]),
            (
                "packages: [jq, \"socat\"] # tools\nruncmd: [a]\n",
                &["1:12 jq", "1:17 socat"],
            ),
            (
                "packages: [\n  jq, # why\n  [b, 1.0-1],\n  {snap: [c]}, {apt: [d]},\n]\n",
                &["2:3 jq", "3:4 b=1.0-1", "4:23 d"],
            ),
            ("other: [a]\npackages: []\n", &[]),
        ] {
            let expected: Vec<String> = expected
                .iter()
                .filter_map(|one| one.split_once(' '))
                .map(|(place, name)| format!("{place} Package(\"apt\", {name:?})"))
                .collect();
            assert_eq!(found(text), expected, "{text}");
        }
    }

    #[test]
    fn packages_with_placeholders_are_open() {
        let text = "packages:\n- a-${V}\n- [b, $V]\n- \"c={{ v1.x }}\"\n{% if v1.y %}\n- d-\n- e\n";
        assert_eq!(
            found(text),
            [
                "2:3 OpenPackage(\"apt\", \"a-${V}\")",
                "3:4 OpenPackage(\"apt\", \"b=$V\")",
                "4:4 OpenPackage(\"apt\", \"c={{ v1.x }}\")",
                "7:3 Package(\"apt\", \"e\")",
            ]
        );
    }
}
