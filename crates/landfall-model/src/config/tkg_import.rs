//! Imports a cluster configuration of TKG as a site.

use crate::ChangedName;
use crate::document::{self, Diagnostic, YamlNode};
use crate::report::one_line;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_yaml::{Mapping, Value};
use std::fmt::Write;

/// A site that was drafted from a cluster configuration.
#[derive(Debug)]
pub struct TkgSite {
    /// The text of the site file. It contains the notes as comments.
    pub site: String,
    /// The files of certificates that the site names: their names and their text in PEM form.
    pub certificates: Vec<(&'static str, String)>,
    /// Notes about settings that the site does not contain, one line each.
    pub notes: Vec<String>,
}

/// The upstream repository of TKG's images.
const TKG_REPOSITORY: &str = "projects.registry.vmware.com/tkg";

/// The file of the registry's authority.
const CA: &str = "ca.crt";

/// The file of the proxy's authority.
const PROXY_CA: &str = "proxy-ca.crt";

/// The first line of a certificate in PEM form.
const BEGIN_CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----";

/// The variables that become settings of the site.
const IMPORTED: [&str; 12] = [
    "TKG_CUSTOM_IMAGE_REPOSITORY",
    "TKG_CUSTOM_IMAGE_REPOSITORY_CA_CERTIFICATE",
    "TKG_CUSTOM_IMAGE_REPOSITORY_SKIP_TLS_VERIFY",
    "TKG_HTTP_PROXY_ENABLED",
    "TKG_HTTP_PROXY",
    "TKG_HTTPS_PROXY",
    "TKG_NO_PROXY",
    "TKG_PROXY_CA_CERT",
    "CLUSTER_NAME",
    "NAMESPACE",
    "CLUSTER_CIDR",
    "SERVICE_CIDR",
];

/// The entries that TKG adds to NO_PROXY itself.
const ADDED_BY_TKG: [&str; 4] = ["localhost", "127.0.0.1", "::1", ".svc"];

/// Drafts a site from `text`, a cluster configuration or the Secret in which TKG stores one. `file`
/// is its name in messages; `is_direct` returns whether a NO_PROXY list (the first argument)
/// matches the host of an address (the second).
///
/// # Errors
/// Fails if `text` is not a cluster configuration, or if an imported variable is a list or mapping,
/// or contains a control character.
pub fn read_tkg_site(
    file: &str,
    text: &str,
    is_direct: fn(&str, &str) -> bool,
) -> Result<TkgSite, Box<Diagnostic>> {
    let text = text.trim_start_matches('\u{feff}');
    let outer: Mapping = document::read(file, text)?;
    let inner = secret_value(&outer);
    let variables = match &inner {
        Some(inner) => document::read(file, inner)?,
        None => outer,
    };
    let text = inner.as_deref().unwrap_or(text);
    let mut names = variables.keys().filter_map(Value::as_str);
    if !names.any(|name| name.starts_with("TKG_") || name.starts_with("CLUSTER_")) {
        let message =
            "there is no TKG variable, such as TKG_CUSTOM_IMAGE_REPOSITORY or CLUSTER_NAME";
        let help = "name the file for `tanzu cluster create`, or the Secret CLUSTER-config-values";
        return Err(Diagnostic::new(file, text, 0..0, message, Some(help)));
    }
    let root = YamlNode::parse(text).unwrap_or_default();
    check_values(file, text, &root, &variables)?;
    let variables = TkgVariables {
        values: &variables,
        root,
    };
    Ok(variables.site(is_direct))
}

/// Fails if an imported variable is a list or mapping, or contains a control character. White space
/// before and after a value is ignored. Rendered files consist of lines, and a line feed within a
/// value would begin another line.
fn check_values(
    file: &str,
    text: &str,
    root: &YamlNode<'_>,
    variables: &Mapping,
) -> Result<(), Box<Diagnostic>> {
    for name in IMPORTED {
        let (message, help) = match variables.get(name) {
            Some(Value::String(value)) if value.trim().chars().any(char::is_control) => (
                format!("`{name}` contains a control character, such as a line feed"),
                "write one line without control characters",
            ),
            Some(Value::Sequence(_) | Value::Mapping(_) | Value::Tagged(_)) => (
                format!("`{name}` is not a text"),
                "write one value in quotes",
            ),
            _ => continue,
        };
        let span = root.get(name).span();
        return Err(Diagnostic::new(file, text, span, message, Some(help)));
    }
    Ok(())
}

/// Returns the cluster configuration in `outer`, or `None` if `outer` is not a Secret that has one.
fn secret_value(outer: &Mapping) -> Option<String> {
    let at = |map: &str| {
        outer
            .get(map)
            .and_then(|map| map.get("value"))
            .and_then(Value::as_str)
    };
    if outer.get("kind").and_then(Value::as_str) != Some("Secret") {
        return None;
    }
    let encoded = || String::from_utf8(STANDARD.decode(at("data")?.trim()).ok()?).ok();
    let text = at("stringData").map(str::to_owned).or_else(encoded)?;
    // where a manual left lines out; to YAML, this line would be the end of a document
    let lines = text.lines().filter(|line| line.trim_end() != "...");
    Some(lines.map(|line| format!("{line}\n")).collect())
}

struct TkgVariables<'v> {
    values: &'v Mapping,
    /// The same variables, with numbers as they are written.
    root: YamlNode<'v>,
}

impl TkgVariables<'_> {
    /// The text of a variable; a number or boolean as it is written. As in TKG, an empty
    /// variable counts as unset.
    fn get(&self, name: &str) -> Option<&str> {
        let text = match self.values.get(name)? {
            Value::String(text) => text,
            Value::Number(_) | Value::Bool(_) => &*self.root.get(name).scalar()?.value,
            _ => return None,
        };
        Some(text.trim()).filter(|text| !text.is_empty())
    }

    fn is_on(&self, name: &str) -> bool {
        self.values
            .get(name)
            .and_then(Value::as_bool)
            .unwrap_or_else(|| self.get(name) == Some("true"))
    }

    /// The certificates in a variable, in PEM form. If they cannot be read, adds a note that names
    /// the `key` of the site.
    fn certificates(&self, name: &str, key: &str, notes: &mut Vec<String>) -> Option<String> {
        let decoded = STANDARD.decode(self.get(name)?).ok();
        let text = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
        let pem = text.filter(|text| text.contains(BEGIN_CERTIFICATE));
        if pem.is_none() {
            notes.push(format!("{name} is not PEM in base64: set {key}"));
        }
        pem
    }

    fn site(&self, is_direct: fn(&str, &str) -> bool) -> TkgSite {
        let mut notes = Vec::new();
        let mut certificates = Vec::new();
        let of_proxy = self.certificates("TKG_PROXY_CA_CERT", "proxy.ca", &mut notes);
        let mut site = "apiVersion: landfall/v1\nkind: Site\n".to_owned();
        if let Some(repository) = self.get("TKG_CUSTOM_IMAGE_REPOSITORY") {
            let (address, path) = repository.split_once('/').unwrap_or((repository, ""));
            notes.extend(ChangedName::of(repository).map(ChangedName::summary));
            let _ = write!(site, "registry:\n  address: {}\n", quoted(address));
            let variable = "TKG_CUSTOM_IMAGE_REPOSITORY_CA_CERTIFICATE";
            let own = self.certificates(variable, "registry.ca", &mut notes);
            // TKG trusts the authorities of the proxy for the registry, too
            if own.is_some() || of_proxy.is_some() {
                let file = if own.is_some() { CA } else { PROXY_CA };
                let _ = writeln!(site, "  ca: {file}");
            }
            certificates.extend(own.map(|pem| (CA, pem)));
            if self.is_on("TKG_CUSTOM_IMAGE_REPOSITORY_SKIP_TLS_VERIFY") {
                site += "  skipVerify: true\n";
            }
            let list = self.get("TKG_NO_PROXY").unwrap_or_default();
            if self.has_proxy() && !is_direct(list, address) {
                site += "  viaProxy: true\n";
            }
            // without a rule, `tkg/pause` is delivered to ADDRESS/tkg/pause
            if path != "tkg" {
                let _ = write!(site, "  paths:\n    {TKG_REPOSITORY}: {}\n", quoted(path));
            }
            site += "consumers: [tkg]\n";
        }
        site += &self.proxy(of_proxy.is_some(), &mut notes);
        let is_named = site.contains(&format!("  ca: {PROXY_CA}\n"));
        certificates.extend(of_proxy.filter(|_| is_named).map(|pem| (PROXY_CA, pem)));
        if let Some(name) = self.get("CLUSTER_NAME") {
            let namespace = self.get("NAMESPACE").unwrap_or("default");
            let _ = writeln!(
                site,
                "clusters: [{{name: {}, namespace: {}}}]",
                quoted(name),
                quoted(namespace)
            );
        }
        let left: Vec<&str> = self
            .values
            .keys()
            .filter_map(Value::as_str)
            .filter(|name| !IMPORTED.contains(name))
            .collect();
        if !left.is_empty() {
            notes.push(format!("a site has no setting for {}", left.join(", ")));
        }
        let mut head =
            "# From a cluster configuration of TKG; `landfall render tkg` writes one.\n".to_owned();
        for note in &notes {
            let _ = writeln!(head, "# note: {}", one_line(note));
        }
        TkgSite {
            site: head + &site,
            certificates,
            notes,
        }
    }

    fn has_proxy(&self) -> bool {
        let is_off =
            self.get("TKG_HTTP_PROXY_ENABLED").is_some() && !self.is_on("TKG_HTTP_PROXY_ENABLED");
        !is_off
            && ["TKG_HTTP_PROXY", "TKG_HTTPS_PROXY"]
                .iter()
                .any(|name| self.get(name).is_some())
    }

    fn proxy(&self, has_ca: bool, notes: &mut Vec<String>) -> String {
        let urls = [("http", "TKG_HTTP_PROXY"), ("https", "TKG_HTTPS_PROXY")];
        let urls: Vec<(&str, &str)> = urls
            .into_iter()
            .filter_map(|(key, name)| Some((key, self.get(name)?)))
            .collect();
        if !self.has_proxy() {
            return String::new();
        }
        let mut part = "proxy:\n".to_owned();
        let mut has_account = false;
        for (key, url) in urls {
            let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
            let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
            has_account |= host != rest;
            let _ = writeln!(part, "  {key}: {}", quoted(&format!("{scheme}://{host}")));
        }
        if has_ca {
            let _ = writeln!(part, "  ca: {PROXY_CA}");
        }
        if has_account {
            part += "  credentials: {file: proxy-account}\n";
            notes.push(
                "the site does not contain the credentials of the proxy: write user:password to \
                 the file proxy-account next to it"
                    .into(),
            );
        }
        let list = self.get("TKG_NO_PROXY").unwrap_or_default();
        let entries: Vec<&str> = list
            .split(',')
            .map(str::trim)
            .filter(|entry| !entry.is_empty())
            .collect();
        let domain = entries.iter().find_map(|entry| entry.strip_prefix(".svc."));
        let ranges = [
            ("podCIDR", self.get("CLUSTER_CIDR")),
            ("serviceCIDR", self.get("SERVICE_CIDR")),
        ];
        // `landfall render` adds these entries again, from other settings of the site
        let is_implied = |entry: &&&str| {
            let is_domain = entry
                .strip_prefix(".svc.")
                .is_some_and(|rest| Some(rest) == domain);
            ADDED_BY_TKG.contains(entry)
                || is_domain
                || ranges.iter().any(|(_, range)| *range == Some(**entry))
        };
        let installation: Vec<String> = entries
            .iter()
            .filter(|entry| !is_implied(entry))
            .map(|entry| quoted(entry))
            .collect();
        let cluster: Vec<String> = ranges
            .iter()
            .filter_map(|(key, range)| Some(format!("{key}: {}", quoted((*range)?))))
            .chain(domain.map(|domain| format!("domain: {}", quoted(domain))))
            .collect();
        if !installation.is_empty() || !cluster.is_empty() {
            part += "  noProxy:\n";
        }
        if !installation.is_empty() {
            let _ = writeln!(part, "    installation: [{}]", installation.join(", "));
        }
        if !cluster.is_empty() {
            let _ = writeln!(part, "    cluster: {{{}}}", cluster.join(", "));
        }
        part
    }
}

/// Quotes a text as a scalar of flow YAML.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Site;
    use std::path::{Path, PathBuf};

    const CONFIG: &str = r"
CLUSTER_NAME: cluster
CLUSTER_PLAN: dev
NAMESPACE: default
SIZE: medium
CONTROLPLANE_SIZE: null
CLUSTER_CIDR: 100.96.0.0/11
SERVICE_CIDR: 100.64.0.0/13
TKG_CUSTOM_IMAGE_REPOSITORY: 172.20.0.2:5000/mirror/tkg
TKG_CUSTOM_IMAGE_REPOSITORY_SKIP_TLS_VERIFY: false
TKG_CUSTOM_IMAGE_REPOSITORY_CA_CERTIFICATE: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==
TKG_HTTP_PROXY: http://me:secret@asdf
TKG_HTTPS_PROXY: https://asdf2
TKG_NO_PROXY: .svc.cluster.local,.svc,localhost,127.0.0.1,100.64.0.0/13,100.96.0.0/11,10.0.0.0/8
";

    #[test]
    fn the_site_has_the_settings_of_the_configuration_and_no_secret() {
        let TkgSite {
            site: text,
            certificates,
            notes,
        } = read_tkg_site("c.yaml", CONFIG, |_, _| false).unwrap();
        let ca = ("ca.crt", "-----BEGIN CERTIFICATE-----\n".to_owned());
        assert!(certificates == [ca] && !text.contains("secret"), "{text}");
        let site = Site::parse(Path::new("site.yaml"), &text).unwrap();
        let registry = site.registry.unwrap();
        assert_eq!(registry.address, "172.20.0.2:5000");
        assert!(
            registry.via_proxy,
            "nodes use the proxy for hosts that are not in NO_PROXY"
        );
        let direct = read_tkg_site("c.yaml", CONFIG, |list, host| {
            list.contains("10.0.0.0/8") && host == "172.20.0.2:5000"
        });
        assert!(!direct.unwrap().site.contains("viaProxy"));
        assert_eq!(registry.paths[TKG_REPOSITORY].paths(), ["mirror/tkg"]);
        let proxy = site.proxy.unwrap();
        assert_eq!(
            (proxy.http.as_deref(), proxy.https.as_deref()),
            (Some("http://asdf"), Some("https://asdf2"))
        );
        assert_eq!(proxy.no_proxy.installation, ["10.0.0.0/8"]);
        let cluster = proxy.no_proxy.cluster.unwrap();
        assert_eq!(cluster.pod_cidr.as_deref(), Some("100.96.0.0/11"));
        assert_eq!(cluster.service_cidr.as_deref(), Some("100.64.0.0/13"));
        assert_eq!(cluster.domain.as_deref(), Some("cluster.local"));
        assert_eq!(site.clusters[0].name, "cluster");
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert!(
            notes[1].ends_with("CLUSTER_PLAN, SIZE, CONTROLPLANE_SIZE"),
            "{notes:?}"
        );
        for note in &notes {
            assert!(text.contains(&format!("\n# note: {note}\n")), "{text}");
        }
        // a name of several lines stays in its comment
        let hostile = format!("\"X\\nregistry: {{}}\\n\": 1\n{CONFIG}");
        let text = read_tkg_site("c.yaml", &hostile, |_, _| false)
            .unwrap()
            .site;
        assert!(!text.contains("\nregistry: {}"), "{text}");
        Site::parse(Path::new("site.yaml"), &text).unwrap();
    }

    #[test]
    fn an_abridged_secret_is_read_and_a_changed_registry_is_noted() {
        let secret = "apiVersion: v1\nkind: Secret\nstringData:\n  value: |\n    CLUSTER_NAME: blue\n    \
                      ...\n    TKG_CUSTOM_IMAGE_REPOSITORY: projects.registry.vmware.com/tkg\n";
        let imported = read_tkg_site("s.yaml", secret, |_, _| false).unwrap();
        let note =
            "projects.registry.vmware.com moved (2024-06-19); write projects.packages.broadcom.com";
        assert_eq!(imported.notes, [note]);
        assert!(imported.site.contains("projects.registry.vmware.com"));
    }

    #[test]
    fn a_certificate_that_is_not_pem_is_noted() {
        let config = CONFIG.replace("LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==", "cGVt");
        let imported = read_tkg_site("c.yaml", &config, |_, _| false).unwrap();
        assert!(imported.certificates.is_empty());
        assert!(!imported.site.contains("ca.crt"), "{}", imported.site);
        assert!(imported.notes[0].contains("is not PEM in base64"));
    }

    #[test]
    fn the_authority_of_the_proxy_is_imported() {
        let pem = "-----BEGIN CERTIFICATE-----\nproxy\n";
        let variable = format!("TKG_PROXY_CA_CERT: {}\n", STANDARD.encode(pem));
        let import = |config: &str| {
            let config = format!("{config}{variable}");
            let imported = read_tkg_site("c.yaml", &config, |_, _| false).unwrap();
            assert!(!imported.site.contains("TKG_PROXY_CA_CERT"));
            let site = Site::parse(Path::new("site.yaml"), &imported.site).unwrap();
            let files: Vec<_> = imported
                .certificates
                .iter()
                .map(|(name, _)| *name)
                .collect();
            let ca = |path: Option<PathBuf>| path.map(|path| path.display().to_string());
            let proxy = site.proxy.map(|proxy| ca(proxy.ca));
            (files.join(","), ca(site.registry.unwrap().ca), proxy)
        };
        let named = |file: &str| Some(file.to_owned());
        assert_eq!(
            import(CONFIG),
            (
                "ca.crt,proxy-ca.crt".into(),
                named("ca.crt"),
                Some(named("proxy-ca.crt"))
            )
        );
        let without = CONFIG.replace(
            "CA_CERTIFICATE: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==",
            "X: 1",
        );
        assert_eq!(
            import(&without),
            (
                "proxy-ca.crt".into(),
                named("proxy-ca.crt"),
                Some(named("proxy-ca.crt"))
            )
        );
        let direct = format!("{CONFIG}TKG_HTTP_PROXY_ENABLED: false\n");
        assert_eq!(import(&direct), ("ca.crt".into(), named("ca.crt"), None));
    }

    #[test]
    fn a_variable_of_several_lines_is_refused_with_its_position() {
        let broken = CONFIG.replace(
            "TKG_NO_PROXY: .svc",
            "TKG_NO_PROXY: \"a\\nExecStartPre=/bin/sh\"\nOTHER: .svc",
        );
        let error = read_tkg_site("c.yaml", &broken, |_, _| false)
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("c.yaml:14:15: error: `TKG_NO_PROXY` contains a control character"),
            "{error}"
        );
        // a variable that is not imported may have several lines, and any value may end in a line
        // feed
        let lines = format!("{CONFIG}SSH_KEY: |\n  one\n  two\n")
            .replace("NAMESPACE: default", "NAMESPACE: |\n  default");
        assert!(read_tkg_site("c.yaml", &lines, |_, _| false).is_ok());
    }

    #[test]
    fn numbers_are_imported_as_written_and_lists_are_refused() {
        let site = |config: &str| {
            let text = read_tkg_site("c.yaml", config, |_, _| false).unwrap().site;
            Site::parse(Path::new("site.yaml"), &text).unwrap()
        };
        let numbers = CONFIG
            .replace("NAME: cluster", "NAME: 0x10")
            .replace("NAMESPACE: default", "NAMESPACE: 1.50");
        let cluster = &site(&numbers).clusters[0];
        assert_eq!(cluster.name, "0x10");
        assert_eq!(cluster.namespace.as_deref(), Some("1.50"));
        for (value, has_proxy) in [("''", true), ("", true), ("true", true), ("false", false)] {
            let config = format!("{CONFIG}TKG_HTTP_PROXY_ENABLED: {value}\n");
            assert_eq!(site(&config).proxy.is_some(), has_proxy, "{value}");
        }
        let list = CONFIG.replace("TKG_NO_PROXY: .svc", "TKG_NO_PROXY: [a]\nOTHER: .svc");
        let error = read_tkg_site("c.yaml", &list, |_, _| false).unwrap_err();
        let error = error.to_string();
        assert!(
            error.starts_with("c.yaml:14:15: error: `TKG_NO_PROXY` is not a text"),
            "{error}"
        );
    }

    #[test]
    fn a_configuration_without_a_path_maps_the_images_to_the_root() {
        let config = CONFIG.replace("5000/mirror/tkg", "5000");
        let text = read_tkg_site("c.yaml", &config, |_, _| false).unwrap().site;
        let site = Site::parse(Path::new("site.yaml"), &text).unwrap();
        let target = "172.20.0.2:5000".parse().unwrap();
        let mapping = crate::config::destination_map(target, Some(&site));
        let image = format!("{TKG_REPOSITORY}/pause:3.1").parse().unwrap();
        let first = mapping.destinations(&image).remove(0).to_string();
        assert_eq!(first, "172.20.0.2:5000/pause");
    }

    #[test]
    fn the_secret_of_a_cluster_is_parsed_as_its_configuration() {
        let inner: String = CONFIG.lines().map(|line| format!("    {line}\n")).collect();
        let secret = format!("apiVersion: v1\nkind: Secret\nstringData:\n  value: |\n{inner}");
        assert_eq!(
            read_tkg_site("s", &secret, |_, _| true).unwrap().site,
            read_tkg_site("c", CONFIG, |_, _| true).unwrap().site
        );
        let error =
            read_tkg_site("x.yaml", "apiVersion: v1\nkind: ConfigMap\n", |_, _| true).unwrap_err();
        assert!(error.message.contains("no TKG variable"));
    }
}
