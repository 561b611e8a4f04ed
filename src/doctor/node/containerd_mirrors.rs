//! The registries that containerd asks for the images of each host, according to the hosts.toml
//! files of a node.

use super::machine_files::MachineFiles;
use crate::doctor::CheckStatus::{No, Note, Ok};
use crate::doctor::node_config::parse_toml;
use crate::doctor::steps::{Diagnosis, DiagnosisSteps};
use landfall_item::lockfile::Lock;
use landfall_model::report::count_of;
use landfall_model::{DestinationMap, ImageRef, split_port};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use url::Url;

/// The folder of hosts.toml files that `landfall render` writes.
const FOLDER: &str = "/etc/containerd/certs.d";
/// The folder of hosts without one of their own.
const DEFAULT: &str = "_default";

/// A registry in a hosts.toml.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NodeMirror {
    pub(crate) url: Url,
    /// The path of the certificate authority on the node.
    pub(crate) ca: Option<String>,
    /// The paths of the client certificate and of its key on the node.
    pub(crate) client: Option<[String; 2]>,
    pub(crate) skip_verify: bool,
    /// The value of the header `Authorization`.
    pub(crate) authorization: Option<String>,
}

impl NodeMirror {
    /// `host[:port]`.
    pub(crate) fn host(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        match self.url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        }
    }

    /// The name under which containerd requests a repository here. Without `override_path`, the
    /// URL has no path of its own.
    fn repository(&self, repository: &str) -> String {
        let path = self.url.path();
        let path = path.strip_prefix("/v2").unwrap_or(path).trim_matches('/');
        if path.is_empty() {
            repository.to_owned()
        } else {
            format!("{path}/{repository}")
        }
    }
}

/// A hosts.toml.
#[derive(Debug)]
struct HostFile {
    path: String,
    /// The registries in the order in which containerd asks them, or why it ignores the file.
    mirrors: Result<Vec<NodeMirror>, String>,
    /// Whether containerd asks the host itself if no registry has the image.
    asks_upstream: bool,
}

/// The hosts.toml files of a node, by the names of their folders.
#[derive(Debug, Default)]
pub(crate) struct ContainerdMirrors(BTreeMap<String, HostFile>);

impl ContainerdMirrors {
    /// Reads the files below `folder`, the `config_path` of containerd. Without one, there is
    /// nothing to read.
    pub(super) fn read(files: &MachineFiles, folder: Option<&str>) -> ContainerdMirrors {
        let folder = folder.unwrap_or(FOLDER).trim_end_matches('/');
        let mut all = BTreeMap::new();
        for name in files.names_in(folder) {
            let path = format!("{folder}/{name}/hosts.toml");
            let Some(text) = files.read(&path) else {
                continue;
            };
            let file = host_file(files, &name, path, &text);
            all.insert(name, file);
        }
        ContainerdMirrors(all)
    }

    /// The file that containerd reads for `host`, and the folder that it is in.
    fn of_host(&self, host: &str) -> Option<&HostFile> {
        let with_port = match split_port(host) {
            (name, Some(port)) => Some(format!("{name}_{port}_")),
            (_, None) => None,
        };
        with_port
            .as_deref()
            .into_iter()
            .chain([host, DEFAULT])
            .find_map(|name| self.0.get(name))
    }

    /// The registries of all files, each host once.
    pub(crate) fn registries(&self) -> Vec<NodeMirror> {
        let mut all: Vec<NodeMirror> = Vec::new();
        for mirror in self
            .0
            .values()
            .flat_map(|file| file.mirrors.iter().flatten())
        {
            if !all.iter().any(|known| known.host() == mirror.host()) {
                all.push(mirror.clone());
            }
        }
        all
    }

    fn hosts(&self) -> BTreeSet<String> {
        self.0.keys().map(|name| host_of_folder(name)).collect()
    }
}

/// The host of a folder: `172.20.0.2_5000_` is `172.20.0.2:5000`.
fn host_of_folder(name: &str) -> String {
    let port = name
        .strip_suffix('_')
        .and_then(|name| name.rsplit_once('_'))
        .filter(|(_, port)| port.parse::<u16>().is_ok());
    port.map_or_else(|| name.to_owned(), |(host, port)| format!("{host}:{port}"))
}

fn host_file(files: &MachineFiles, folder: &str, path: String, text: &str) -> HostFile {
    let root = match parse_toml(&path, text) {
        Result::Ok(root) => root,
        Err(why) => {
            return HostFile {
                path,
                mirrors: Err(why),
                asks_upstream: true,
            };
        }
    };
    let base = path.trim_end_matches("/hosts.toml").to_owned();
    let mut mirrors = Vec::new();
    let mut wrong = None;
    let tables = root.get("host").and_then(Value::as_object);
    let mut named: Vec<(&str, &Value)> = tables
        .into_iter()
        .flatten()
        .map(|(url, table)| (url.as_str(), table))
        .collect();
    // containerd asks them in the order of the file
    let positions = table_positions(text);
    named.sort_by_key(|(url, _)| positions.get(url).copied().unwrap_or(usize::MAX));
    let server = root.get("server").and_then(Value::as_str);
    named.extend(server.map(|server| (server, &root)));
    for (url, table) in named {
        let with_scheme = if url.contains("://") {
            url.to_owned()
        } else {
            format!("https://{url}")
        };
        match Url::parse(&with_scheme) {
            Result::Ok(url) => {
                let ca = table.get("ca").and_then(text_or_first);
                let client = table.get("client").and_then(client_files);
                let header = table
                    .get("header")
                    .and_then(|header| header.get("Authorization"));
                let mirror = NodeMirror {
                    ca: ca.map(|ca| absolute(&base, ca)),
                    client: client.map(|files| files.map(|file| absolute(&base, file))),
                    skip_verify: table.get("skip_verify").and_then(Value::as_bool) == Some(true),
                    authorization: header.and_then(text_or_first).map(str::to_owned),
                    url,
                };
                if !mirrors
                    .iter()
                    .any(|known: &NodeMirror| known.url == mirror.url)
                {
                    mirrors.push(mirror);
                }
            }
            Err(error) => wrong = Some(format!("{path}: '{url}' is not a URL: {error}")),
        }
    }
    let absent = mirrors
        .iter()
        .flat_map(|mirror| mirror.ca.iter().chain(mirror.client.iter().flatten()))
        .find(|file| !files.exists(file));
    let wrong =
        wrong.or_else(|| absent.map(|file| format!("{path} names {file}, which does not exist")));
    let host = host_of_folder(folder);
    let is_host = |url: &str| {
        let name = url
            .rsplit("://")
            .next()
            .unwrap_or(url)
            .trim_end_matches('/');
        name == host || (host == "docker.io" && name.ends_with("docker.io"))
    };
    // the file of the registry itself names it as a host too
    let is_own = tables.is_some_and(|tables| tables.keys().any(|url| is_host(url)));
    let asks_upstream = !is_own && server.is_none_or(is_host);
    HostFile {
        path,
        mirrors: wrong.map_or(Result::Ok(mirrors), Err),
        asks_upstream,
    }
}

/// The lines of the tables `[host."URL"]`, by their URLs.
fn table_positions(text: &str) -> BTreeMap<&str, usize> {
    let mut positions = BTreeMap::new();
    for (at, line) in text.lines().enumerate() {
        let Some(name) = line.trim_start().strip_prefix("[host.") else {
            continue;
        };
        for quote in ['"', '\''] {
            let name = name.strip_prefix(quote);
            if let Some((url, _)) = name.and_then(|name| name.split_once(quote)) {
                positions.entry(url).or_insert(at);
            }
        }
    }
    positions
}

/// A text, or the first one of a list.
fn text_or_first(value: &Value) -> Option<&str> {
    value.as_str().or_else(|| value[0].as_str())
}

/// The files of a client certificate and of its key: one file with both, or the first of a list of
/// files or of pairs of files.
fn client_files(value: &Value) -> Option<[&str; 2]> {
    if let Some(file) = text_or_first(value) {
        return Some([file, file]);
    }
    let certificate = value[0][0].as_str()?;
    let key = value[0][1].as_str().filter(|key| !key.is_empty());
    Some([certificate, key.unwrap_or(certificate)])
}

/// The path `path` of a file in the folder `base`, without `..`.
fn absolute(base: &str, path: &str) -> String {
    if path.starts_with('/') {
        return path.to_owned();
    }
    let mut parts: Vec<&str> = base.split('/').collect();
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Reports what containerd asks for the images of each host of the lock, or, without images, of
/// each host with a hosts.toml. With the destinations of the site, also reports images that the
/// registry has under another name than the one that is requested.
pub(crate) fn check_image_names(
    mirrors: &ContainerdMirrors,
    lock: Option<&Lock>,
    mapping: Option<&DestinationMap>,
) -> Diagnosis {
    let mut steps = DiagnosisSteps::default();
    let mut hosts: BTreeMap<String, Vec<&ImageRef>> = BTreeMap::new();
    match lock.filter(|lock| !lock.images.is_empty()) {
        Some(lock) => {
            for image in lock.images.iter().map(|image| &image.name) {
                hosts.entry(image.registry.clone()).or_default().push(image);
            }
        }
        None => hosts.extend(mirrors.hosts().into_iter().map(|host| (host, Vec::new()))),
    }
    let render = "run install.sh of `landfall render node`, or copy the files of `landfall render \
                  containerd` to the node";
    for (host, images) in &hosts {
        let count = if images.is_empty() {
            String::new()
        } else {
            format!(" ({})", count_of(images.len(), "image"))
        };
        let facts = |mirrors: &[NodeMirror]| {
            let urls: Vec<&str> = mirrors.iter().map(|mirror| mirror.url.as_str()).collect();
            json!({"host": host, "images": images.len(), "mirrors": urls})
        };
        let Some(file) = mirrors.of_host(host) else {
            let says =
                format!("{host}{count}: there is no hosts.toml, so containerd asks {host} itself");
            steps.add("host", No, says, facts(&[]));
            steps.fix(render);
            continue;
        };
        match &file.mirrors {
            Err(why) => {
                steps.add("host", No, format!("{host}{count}: {why}"), facts(&[]));
                steps.fix(render);
            }
            Result::Ok(list) if list.is_empty() => {
                let says = format!("{host}{count}: {} names no registry", file.path);
                steps.add("host", No, says, facts(&[]));
                steps.fix(render);
            }
            Result::Ok(list) => {
                let urls: Vec<&str> = list
                    .iter()
                    .map(|mirror| mirror.url.as_str().trim_end_matches('/'))
                    .collect();
                let shown = format!("{host}{count}: {}, by {}", urls.join(", then "), file.path);
                if file.asks_upstream {
                    let says = format!(
                        "{shown}; then {host} itself, after a timeout of 30 s in a closed network"
                    );
                    steps.add("host", Note, says, facts(list));
                    steps.fix("name the registry as `server` too, as `landfall render` does without upstreamFallback");
                } else {
                    steps.add("host", Ok, shown, facts(list));
                }
                if let Some(mapping) = mapping {
                    check_destinations(list, images, mapping, &mut steps);
                }
            }
        }
    }
    if hosts.is_empty() {
        steps.no(
            "host",
            "containerd has no hosts.toml: it asks every host itself",
        );
        steps.fix(render);
    }
    steps.into_diagnosis("image names")
}

/// Reports images whose requested name is none of their destinations at the site's registry.
fn check_destinations(
    mirrors: &[NodeMirror],
    images: &[&ImageRef],
    mapping: &DestinationMap,
    steps: &mut DiagnosisSteps,
) {
    let registry = &mapping.target().registry;
    let own: Vec<&NodeMirror> = mirrors
        .iter()
        .filter(|mirror| mirror.host() == *registry)
        .collect();
    if own.is_empty() && !images.is_empty() {
        let hosts: Vec<String> = mirrors.iter().map(NodeMirror::host).collect();
        let says = format!(
            "the registry of the site is {registry}, not {}",
            hosts.join(", ")
        );
        steps.note("host", says);
        steps.fix("correct registry.address of the site, or render the files of the node again");
        return;
    }
    for image in images {
        let requested: Vec<String> = own
            .iter()
            .map(|mirror| mirror.repository(&image.repository))
            .collect();
        let destinations = mapping.destinations(image);
        let is_there = destinations
            .iter()
            .any(|destination| requested.contains(&destination.repository));
        if !is_there {
            let delivered: Vec<String> = destinations.iter().map(ToString::to_string).collect();
            let says = format!(
                "{image} is requested as {registry}/{}, and delivered as {}",
                requested.join(" and "),
                delivered.join(", ")
            );
            steps.no("image", says);
            steps.fix("add `consumers: [containerd]` to the site and push again, or render the files of the node again");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mirrors(folder: &str, text: &str) -> Vec<NodeMirror> {
        let root = tempfile::tempdir().unwrap();
        for name in ["ca.crt", "client.cert", "client.key"] {
            std::fs::write(root.path().join(name), "x").unwrap();
        }
        let files = MachineFiles::collected(root.path().to_owned());
        let path = format!("/certs.d/{folder}/hosts.toml");
        host_file(&files, folder, path, text).mirrors.unwrap()
    }

    #[test]
    fn mirrors_have_the_order_of_the_tables() {
        let text = "server = \"https://r.test/v2/b\"\noverride_path = true\n\n\
                    [host.\"https://r.test/v2/bb\"]\noverride_path = true\n\n\
                    [host.'https://r.test/v2/a']\noverride_path = true\n\n\
                    [host.\"https://r.test/v2/b\"]\noverride_path = true\n";
        let mirrors = mirrors("quay.io", text);
        let paths: Vec<&str> = mirrors.iter().map(|mirror| mirror.url.path()).collect();
        assert_eq!(paths, ["/v2/bb", "/v2/a", "/v2/b"]);
    }

    #[test]
    fn certificates_are_texts_and_lists() {
        for (ca, client) in [
            ("\"/ca.crt\"", "[[\"/client.cert\", \"/client.key\"]]"),
            (
                "[\"../../ca.crt\"]",
                "[[\"../../client.cert\", \"../../client.key\"]]",
            ),
        ] {
            let text = format!("[host.\"https://r.test\"]\nca = {ca}\nclient = {client}\n");
            let mirrors = mirrors("quay.io", &text);
            assert_eq!(mirrors[0].ca.as_deref(), Some("/ca.crt"), "{text}");
            let client = mirrors[0].client.as_ref().unwrap();
            assert_eq!(*client, ["/client.cert", "/client.key"], "{text}");
        }
        for client in [
            "\"/client.cert\"",
            "[\"/client.cert\"]",
            "[[\"/client.cert\", \"\"]]",
        ] {
            let text = format!("server = \"https://r.test\"\nclient = {client}\n");
            let client = mirrors("quay.io", &text)[0].client.clone().unwrap();
            assert_eq!(client, ["/client.cert", "/client.cert"], "{text}");
        }
    }

    #[test]
    fn only_the_first_component_of_a_path_is_that_of_the_api() {
        let repository = |url: &str| {
            let text = format!("server = \"{url}\"\noverride_path = true\n");
            mirrors("quay.io", &text)[0].repository("team/app")
        };
        assert_eq!(repository("https://r.test"), "team/app");
        assert_eq!(repository("https://r.test/v2/quay"), "quay/team/app");
        assert_eq!(repository("https://r.test/v2/v2ray"), "v2ray/team/app");
    }
}
