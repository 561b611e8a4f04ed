//! The clusters of a site, and the names that must resolve there.

use super::ClusterNoProxy;
use crate::document::{Diagnostic, YamlNode};
use crate::{is_dns_name, split_port, without_brackets, without_scheme};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// A cluster that configuration is rendered for. Its addresses override those of
/// `proxy.noProxy.cluster`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct SiteCluster {
    /// The name of the cluster.
    pub name: String,
    /// The namespace of the objects of the cluster.
    #[serde(default)]
    pub namespace: Option<String>,
    /// Address range of the pods.
    #[serde(default, rename = "podCIDR")]
    pub pod_cidr: Option<String>,
    /// Address range of the services.
    #[serde(default, rename = "serviceCIDR")]
    pub service_cidr: Option<String>,
    /// DNS domain inside the cluster.
    #[serde(default)]
    pub domain: Option<String>,
    /// Host of the API server.
    #[serde(default)]
    pub control_plane_endpoint: Option<String>,
}

impl SiteCluster {
    /// The part of NO_PROXY that the cluster itself has.
    pub fn no_proxy(&self) -> ClusterNoProxy {
        ClusterNoProxy {
            pod_cidr: self.pod_cidr.clone(),
            service_cidr: self.service_cidr.clone(),
            domain: self.domain.clone(),
            control_plane_endpoint: self.control_plane_endpoint.clone(),
        }
    }
}

/// Names that must resolve at the site, and optionally the names that the certificate of their
/// server must contain.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum RequiredNames {
    /// A single name; `*.` at its start matches any label.
    One(String),
    /// Names that must resolve, and the names that the certificate of their server must contain.
    Entry(RequiredNamesEntry),
}

/// Names that must resolve, and the names that the certificate of their server must contain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequiredNamesEntry {
    /// The names that must resolve; `*.` at the start of one matches any label.
    pub dns: Vec<String>,
    /// The names that the certificate must contain. By default, these are the names under `dns`;
    /// with an empty list, no certificate is checked.
    #[serde(default)]
    pub certificate: Option<Vec<String>>,
}

impl RequiredNames {
    /// The names that must resolve.
    pub fn dns(&self) -> &[String] {
        match self {
            RequiredNames::One(name) => std::slice::from_ref(name),
            RequiredNames::Entry(entry) => &entry.dns,
        }
    }

    /// Returns the names that the certificate of the server must contain.
    pub fn certificate(&self) -> &[String] {
        match self {
            RequiredNames::One(name) => std::slice::from_ref(name),
            RequiredNames::Entry(entry) => entry.certificate.as_deref().unwrap_or(&entry.dns),
        }
    }
}

// Checks `names` of a site: DNS names, possibly with `*.` at the start, or IP addresses.

/// Reports the first name that is neither a DNS name nor an address, with its position in the site
/// `text` and what to write instead.
pub(super) fn check_required_names(
    names: &[RequiredNames],
    file: &str,
    text: &str,
) -> Result<(), Box<Diagnostic>> {
    let root = YamlNode::parse(text).unwrap_or_default();
    for (index, entry) in names.iter().enumerate() {
        let node = root.get("names").item(index);
        for (key, names) in [("dns", entry.dns()), ("certificate", entry.certificate())] {
            let Some(bad) = names.iter().position(|name| !is_name(name)) else {
                continue;
            };
            let help = match contained_name(&names[bad]) {
                Some(name) => format!("write `{name}`"),
                None => "write a name alone, as in kubermatic.example.com or *.seed.example.com"
                    .to_owned(),
            };
            let span = match entry {
                RequiredNames::One(_) => node.span(),
                RequiredNames::Entry(_) => node.get(key).item(bad).span(),
            };
            let message = format!("`{}` is not a DNS name", names[bad]);
            return Err(Diagnostic::new(file, text, span, message, Some(&help)));
        }
    }
    Ok(())
}

/// Whether the text is a DNS name, possibly with `*.` before it, or an address.
fn is_name(name: &str) -> bool {
    is_dns_name(name.strip_prefix("*.").unwrap_or(name)) || name.parse::<IpAddr>().is_ok()
}

/// Returns the name in `written`: a URL, a `host:port`, or a name with a needless escape or a final
/// dot.
fn contained_name(written: &str) -> Option<String> {
    let host = without_scheme(written)
        .split('/')
        .next()
        .unwrap_or_default();
    let (host, _) = split_port(host);
    let host = without_brackets(host.trim_start_matches('\\').trim_end_matches('.'));
    is_name(host).then(|| host.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::Site;
    use std::path::Path;

    fn read(names: &str) -> Result<Site, String> {
        let text = format!("apiVersion: landfall/v1\nkind: Site\nnames: {names}\n");
        Site::parse(Path::new("site.yaml"), &text).map_err(|error| error.to_string())
    }

    #[test]
    fn names_that_are_not_dns_names_are_refused() {
        let good = "[a.test, '*.b.test', 10.0.0.1, {dns: [_acme.c.test], certificate: \
                ['*.c.test', fd00::1]}]";
        assert!(read(good).is_ok());
        for (written, instead) in [
            ("host.test:443", "host.test"),
            ("https://host.test/x", "host.test"),
            ("\\*.seed.test", "*.seed.test"),
            ("host.test.", "host.test"),
            ("[fd00::1]", "fd00::1"),
        ] {
            for names in [
                format!("['{written}']"),
                format!("[a.test, {{dns: [a.test], certificate: ['{written}']}}]"),
            ] {
                let message = read(&names).unwrap_err();
                assert!(
                    message.starts_with("site.yaml:3:")
                        && message.contains(&format!("write `{instead}`")),
                    "{message}"
                );
            }
        }
        for written in ["a b", "a..b", "*", "a.*.b", "''"] {
            let message =
                read(&format!("[{{dns: ['{}']}}]", written.trim_matches('\''))).unwrap_err();
            assert!(
                message.contains("is not a DNS name") && message.contains("write a name alone"),
                "{message}"
            );
        }
    }
}
