//! Proxy settings: NO_PROXY, and the forms that nodes, pods and static pods need.

use crate::kubernetes_objects::document;
use crate::node_registry::read_certificates;
use crate::platform::{BasicCredentials, RenderRequest};
use crate::rendered_file::RenderedFile;
use landfall_content::registry::site_proxy_accounts;
use landfall_http::ineffective_entry;
use landfall_model::config::Site;
use landfall_model::{Failure, TargetRegistry, extend_distinct, split_port, without_brackets};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use std::net::IpAddr;
use url::Url;

// Composes NO_PROXY for all rendered files.
//
// The order of the entries: the domain, services, pods and API server of the cluster; the entries
// of the installation; `svc` and the loopback names; the registry and file server of the site. No
// entry is repeated. Up to the loopback names, this is the order of Giant Swarm's
// cluster-apps-operator.

/// The entries of NO_PROXY, independent of the dialect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoProxyEntries {
    domain: Option<String>,
    /// The ranges of services and pods, and the API server.
    cluster: Vec<String>,
    installation: Vec<String>,
    /// The registry and the file server of the site.
    own: Vec<String>,
}

/// Fails if the site has an entry that programs ignore, by the rules of `landfall doctor`. The
/// error names the first such entry, its key and what to write instead.
pub(super) fn check(site: &Site) -> Result<(), Failure> {
    let Some(proxy) = &site.proxy else {
        return Ok(());
    };
    let installation = proxy
        .no_proxy
        .installation
        .iter()
        .map(|entry| ("proxy.noProxy.installation".to_owned(), entry.clone()));
    let common = proxy.no_proxy.cluster.clone().unwrap_or_default();
    // the clusters come first: their values also override those of `proxy.noProxy.cluster`
    let clusters = site
        .clusters
        .iter()
        .map(|cluster| (format!("clusters.{}", cluster.name), cluster.no_proxy()))
        .chain([("proxy.noProxy.cluster".to_owned(), common)]);
    let clusters = clusters.flat_map(|(key, cluster)| {
        let domain = cluster
            .domain
            .map(|domain| domain.trim_matches('.').to_owned());
        let endpoint = cluster
            .control_plane_endpoint
            .map(|one| host_of(&one).to_owned());
        [
            ("serviceCIDR", cluster.service_cidr),
            ("podCIDR", cluster.pod_cidr),
            ("domain", domain),
            ("controlPlaneEndpoint", endpoint),
        ]
        .into_iter()
        .filter_map(move |(name, value)| Some((format!("{key}.{name}"), value?)))
    });
    for (key, value) in installation.chain(clusters) {
        for entry in words(&value) {
            let Some(ineffective) = ineffective_entry(&entry) else {
                continue;
            };
            let instead = ineffective
                .instead
                .map(|instead| format!("; write {instead}"))
                .unwrap_or_default();
            return Err(Failure::usage(format!(
                "'{entry}' in {key} of the site: containerd, kubelet and other \
                 programs {}{instead}",
                ineffective.why
            )));
        }
    }
    Ok(())
}

/// The notation of names inside the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoProxyDialect {
    /// `svc`, `cluster.local`, for programs in Go, as in Giant Swarm.
    Bare,
    /// `.svc`, `.svc.cluster.local`, as in TKG.
    Dotted,
    /// Like `Bare`, for any program: names are also listed with a leading dot, and the loopback
    /// address of IPv6 is added.
    Portable,
}

impl NoProxyEntries {
    /// Returns the entries of `site`, for nodes that use the registry `target`.
    pub fn of(site: Option<&Site>, target: Option<&TargetRegistry>) -> NoProxyEntries {
        let proxy = site.and_then(|site| site.proxy.as_ref());
        let cluster = proxy
            .and_then(|proxy| proxy.no_proxy.cluster.clone())
            .unwrap_or_default();
        let endpoint = cluster
            .control_plane_endpoint
            .as_deref()
            .map(|endpoint| host_of(endpoint).to_owned());
        let ranges = [cluster.service_cidr, cluster.pod_cidr]
            .into_iter()
            .flatten();
        let ranges = ranges.flat_map(|ranges| words(&ranges)).chain(endpoint);
        let installation = proxy
            .map(|proxy| proxy.no_proxy.installation.as_slice())
            .unwrap_or_default();
        let via_proxy = site
            .and_then(|site| site.registry.as_ref())
            .is_some_and(|registry| registry.via_proxy);
        let registry = target
            .filter(|_| !via_proxy)
            .map(|target| host_of(&target.registry).to_owned());
        let files = site.and_then(|site| {
            Url::parse(site.files.as_deref()?)
                .ok()?
                .host_str()
                .map(str::to_owned)
        });
        let files = files.map(|host| without_brackets(&host).to_owned());
        NoProxyEntries {
            domain: cluster
                .domain
                .map(|domain| domain.trim_matches('.').to_owned())
                .filter(|one| !one.is_empty()),
            cluster: ranges.collect(),
            installation: installation.iter().flat_map(|entry| words(entry)).collect(),
            own: registry.into_iter().chain(files).collect(),
        }
    }

    /// Adds an entry that the platform needs at every site.
    #[must_use]
    pub fn with(mut self, entry: &str) -> NoProxyEntries {
        self.own.push(entry.to_owned());
        self
    }

    /// Returns the entries in the order that the documentation of this module gives.
    pub fn entries(&self, dialect: NoProxyDialect) -> Vec<String> {
        let text = |text: &str| text.to_owned();
        let domain = self.domain.iter().map(|domain| match dialect {
            NoProxyDialect::Dotted => format!(".svc.{domain}"),
            NoProxyDialect::Bare | NoProxyDialect::Portable => domain.clone(),
        });
        let services = if dialect == NoProxyDialect::Dotted {
            ".svc"
        } else {
            "svc"
        };
        let always = [services, "127.0.0.1", "localhost"].map(text);
        let portable = (dialect == NoProxyDialect::Portable).then(|| text("::1"));
        let all = domain
            .chain(self.cluster.iter().cloned())
            .chain(self.installation.iter().cloned());
        let all = all
            .chain(always)
            .chain(portable)
            .chain(self.own.iter().cloned());
        let mut entries: Vec<String> = Vec::new();
        for entry in all {
            let below = format!(".{entry}");
            let is_plain_name = !entry.starts_with(['.', '*'])
                && !entry.contains(['/', ':'])
                && entry.parse::<IpAddr>().is_err();
            // .NET matches a name without a leading dot exactly; Go, wget and Ruby match a name
            // with a leading dot only for subdomains. Both forms together work everywhere.
            let with_dot =
                (dialect == NoProxyDialect::Portable && is_plain_name && entry != "localhost")
                    .then_some(below);
            extend_distinct(&mut entries, std::iter::once(entry).chain(with_dot));
        }
        entries
    }

    /// Returns the entries of the installation, and the registry and file server of the site,
    /// separated by commas.
    pub fn of_installation(&self) -> String {
        let all: Vec<&str> = self
            .installation
            .iter()
            .chain(&self.own)
            .map(String::as_str)
            .collect();
        all.join(",")
    }

    /// Returns all entries, separated by commas. There are no blanks, because some programs do not
    /// trim them.
    pub fn list(&self, dialect: NoProxyDialect) -> String {
        self.entries(dialect).join(",")
    }

    /// Like [`NoProxyEntries::list`], without the entries `added`, which the platform adds itself.
    /// Leading dots are ignored in the comparison.
    pub fn list_without(&self, dialect: NoProxyDialect, added: &[&str]) -> String {
        let mut entries = self.entries(dialect);
        entries.retain(|entry| {
            let name = entry.trim_start_matches('.');
            !added
                .iter()
                .any(|other| other.trim_start_matches('.') == name)
        });
        entries.join(",")
    }
}

/// Splits an entry of the site, which may be a list separated by commas.
fn words(entry: &str) -> Vec<String> {
    entry
        .split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Returns the host of `host[:port]`, without the brackets of IPv6. curl, wget and reqwest never
/// match an entry with a port.
fn host_of(text: &str) -> &str {
    let (host, port) = split_port(text);
    let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok());
    let host = if is_port { host } else { text };
    without_brackets(host)
}

// The site's proxy in the forms that nodes, pods and static pods need.

/// The site's proxy in the form that nodes need.
#[derive(Debug, Clone, Default)]
pub struct NodeProxy {
    /// The proxy for http targets.
    pub http: Option<ProxyAddress>,
    /// The proxy for https targets.
    pub https: Option<ProxyAddress>,
    /// The certificate authorities for hosts reached through the proxy, in PEM form.
    pub ca: Option<String>,
}

/// The address of a proxy, with its credentials kept apart: `Debug` prints only the address.
#[derive(Clone, PartialEq, Eq, derive_more::Debug)]
#[debug("{plain}")]
pub struct ProxyAddress {
    /// `scheme://host[:port]`, as in the site.
    plain: String,
    account: Option<BasicCredentials>,
}

/// The characters that are percent-encoded in the credentials of a URL: all characters except the
/// unreserved ones (RFC 3986, section 2.3).
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

impl ProxyAddress {
    /// Parses a proxy URL of the site, which was validated when the site was loaded. Drops the
    /// credentials in the URL: `account` has them, or other credentials with a higher priority.
    fn new(text: &str, account: Option<BasicCredentials>) -> ProxyAddress {
        let (scheme, rest) = text
            .trim()
            .split_once("://")
            .unwrap_or(("http", text.trim()));
        // the last `@` ends the credentials, because a password may contain `@` too
        let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
        ProxyAddress {
            plain: format!("{scheme}://{}", host.trim_end_matches('/')),
            account,
        }
    }

    /// Returns the URL with the percent-encoded credentials, if there are any. Programs read a raw
    /// `@`, `:` or `#` in a password in different ways.
    pub fn url(&self) -> String {
        let Some(BasicCredentials { username, password }) = &self.account else {
            return self.plain.clone();
        };
        let (scheme, host) = self
            .plain
            .split_once("://")
            .unwrap_or(("http", &self.plain));
        format!(
            "{scheme}://{}:{}@{host}",
            percent_encoded(username),
            percent_encoded(password)
        )
    }

    /// Whether the URL contains credentials.
    pub fn has_account(&self) -> bool {
        self.account.is_some()
    }
}

fn percent_encoded(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

impl NodeProxy {
    /// Returns the proxy of `site`, if it has one. `get` returns variables of the environment.
    ///
    /// # Errors
    /// If the credentials or certificates cannot be read.
    pub fn of(
        site: &Site,
        get: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<NodeProxy>, Failure> {
        let Some(proxy) = site
            .proxy
            .as_ref()
            .filter(|proxy| proxy.http.is_some() || proxy.https.is_some())
        else {
            return Ok(None);
        };
        let [http, https] =
            site_proxy_accounts(site, get)?.map(|account| account.map(BasicCredentials::from));
        let ca = proxy
            .ca
            .as_ref()
            .map(|path| read_certificates(site, path))
            .transpose()?;
        Ok(Some(NodeProxy {
            http: proxy_address(proxy.http.as_deref(), http),
            https: proxy_address(proxy.https.as_deref(), https),
            ca,
        }))
    }

    /// Whether one of the URLs contains credentials.
    pub fn has_account(&self) -> bool {
        self.http
            .iter()
            .chain(&self.https)
            .any(ProxyAddress::has_account)
    }
}

fn proxy_address(text: Option<&str>, account: Option<BasicCredentials>) -> Option<ProxyAddress> {
    text.map(|text| ProxyAddress::new(text, account))
}

/// The proxy settings of pods.
pub(super) struct PodProxy {
    pub http: String,
    pub https: String,
    pub no_proxy: String,
    /// Whether the URLs contain credentials.
    pub has_account: bool,
}

impl PodProxy {
    /// Returns the settings for the site's proxy, with NO_PROXY in this dialect; `None` if the site
    /// has no proxy. If the proxy has only one URL, that URL is used for both schemes.
    pub(super) fn of(
        request: &RenderRequest<'_>,
        dialect: NoProxyDialect,
    ) -> Result<Option<PodProxy>, Failure> {
        let Some(proxy) = request.proxy()? else {
            return Ok(None);
        };
        let (Some(http), Some(https)) = (
            proxy.http.as_ref().or(proxy.https.as_ref()),
            proxy.https.as_ref().or(proxy.http.as_ref()),
        ) else {
            return Ok(None);
        };
        Ok(Some(PodProxy {
            http: http.url(),
            https: https.url(),
            no_proxy: request.no_proxy().list(dialect),
            has_account: proxy.has_account(),
        }))
    }

    /// Returns the variables in upper and in lower case: wget reads only lower case, and curl reads
    /// `http_proxy` only in lower case.
    pub(super) fn variables(&self) -> Vec<(&'static str, String)> {
        [
            ("HTTP_PROXY", &self.http),
            ("http_proxy", &self.http),
            ("HTTPS_PROXY", &self.https),
            ("https_proxy", &self.https),
            ("NO_PROXY", &self.no_proxy),
            ("no_proxy", &self.no_proxy),
        ]
        .map(|(name, value)| (name, value.clone()))
        .into()
    }

    /// Returns a note if a URL contains `%`, for a `program` that writes the URLs into units of
    /// systemd as they are. systemd ignores a variable with a `%` that starts no specifier.
    pub(super) fn percent_note(&self, program: &str) -> Option<String> {
        let has_percent = [&self.http, &self.https]
            .iter()
            .any(|url| url.contains('%'));
        has_percent.then(|| {
            format!(
                "{program} does not escape the % in the proxy's URL for systemd, and containerd \
                 then gets no proxy; use an account of letters, digits, -, ., _ and ~"
            )
        })
    }

    /// Returns the values by the names of the variables in lower case.
    pub(super) fn lower_case_values(&self) -> Value {
        json!({
            "http_proxy": self.http,
            "https_proxy": self.https,
            "no_proxy": self.no_proxy,
        })
    }

    /// Returns the chart values `http`, `https` and `noProxy`, as in the charts of Giant Swarm.
    pub(super) fn chart_values(&self) -> Value {
        json!({"http": self.http, "https": self.https, "noProxy": self.no_proxy})
    }
}

// Proxy settings for static pods. The kubelet starts them from files that kubeadm writes, so
// admission webhooks do not see them, and kubeadm must patch them.

/// The folder for kubeadm patches on a node.
pub(super) const PATCHES: &str = "/etc/kubernetes/patches";

/// Returns patches that add these variables to the static pods of the API server, the controller
/// manager and the scheduler. The paths of the patches are the paths on a node without the leading
/// `/`.
pub(super) fn static_pod_patches(
    variables: &[(&'static str, String)],
    secret: bool,
) -> Vec<RenderedFile> {
    [
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
    ]
    .map(|pod| {
        let container = json!({"name": pod, "env": env(variables)});
        let patch = json!({"spec": {"containers": [container]}});
        let path = format!("{}/{pod}0+strategic.yaml", PATCHES.trim_start_matches('/'));
        RenderedFile::new(path, document(&patch))
            .mode(0o600)
            .secret(secret)
    })
    .into()
}

/// The failure of a platform that needs a proxy, at a site without one.
pub(super) fn no_proxy_failure() -> Failure {
    Failure::usage("the site has no proxy; add proxy.http and proxy.https to it")
}

/// Returns variables as the `env` of a container.
pub(super) fn env(variables: &[(&'static str, String)]) -> Value {
    variables
        .iter()
        .map(|(name, value)| json!({"name": name, "value": value}))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn no_proxy(registry: &str, rest: &str) -> NoProxyEntries {
        let text = format!(
            "apiVersion: landfall/v1\nkind: Site\nregistry: {{address: \"{registry}\"}}\n{rest}"
        );
        let site = Site::parse(Path::new("s"), &text).unwrap();
        NoProxyEntries::of(Some(&site), Some(&registry.parse().unwrap()))
    }

    const GIANT_SWARM: &str = "proxy: {noProxy: {installation: [172.16.0.0/16, \
                           internal.corpdomain.net, example.com], \
    cluster: {podCIDR: 100.96.0.0/11, serviceCIDR: 100.64.0.0/13, domain: cluster.local, \
    controlPlaneEndpoint: \"178.170.32.59:6443\"}}}\n";

    #[test]
    fn entries_have_the_documented_order() {
        assert_eq!(
            no_proxy("172.20.0.2:5000", GIANT_SWARM).list(NoProxyDialect::Bare),
            "cluster.local,100.64.0.0/13,100.96.0.0/11,178.170.32.59,172.16.0.0/16,internal.corpdomain.net,example.com,\
         svc,127.0.0.1,localhost,172.20.0.2"
        );
    }

    #[test]
    fn each_dialect_has_its_own_notation_of_names() {
        let tkg = "files: \"http://172.20.0.2:8080\"\n\
               proxy: {noProxy: {cluster: {podCIDR: 100.96.0.0/11, serviceCIDR: \
               100.64.0.0/13, domain: cluster.local}}}\n";
        let no_proxy = no_proxy("mirror.corp:5000/p", tkg);
        assert_eq!(
            no_proxy.list(NoProxyDialect::Dotted),
            ".svc.cluster.local,100.64.0.0/13,100.96.0.0/11,.svc,127.0.0.1,localhost,mirror.corp,172.20.0.2"
        );
        assert_eq!(
            no_proxy.list(NoProxyDialect::Portable),
            "cluster.local,.cluster.local,100.64.0.0/13,100.96.0.0/11,svc,.svc,127.0.0.1,localhost,::1,mirror.corp,\
         .mirror.corp,172.20.0.2"
        );
        let remaining =
            no_proxy.list_without(NoProxyDialect::Dotted, &["svc", "localhost", "127.0.0.1"]);
        assert_eq!(
            remaining,
            ".svc.cluster.local,100.64.0.0/13,100.96.0.0/11,mirror.corp,172.20.0.2"
        );
    }

    #[test]
    fn entries_are_split_and_not_repeated() {
        let proxy = "files: \"http://[fd00::2]:80\"\n\
                 proxy: {noProxy: {installation: [\"a.test, b.test\", a.test, \"[x\", \
                 172.20.0.2]}}\n";
        let no_proxy = no_proxy("[fd00::3]:5000", proxy);
        let expected = [
            "a.test",
            "b.test",
            "[x",
            "172.20.0.2",
            "svc",
            "127.0.0.1",
            "localhost",
            "fd00::3",
            "fd00::2",
        ];
        assert_eq!(no_proxy.entries(NoProxyDialect::Bare), expected);
    }

    #[test]
    fn an_ineffective_entry_is_refused_with_its_key() {
        let refused = |no_proxy: &str| {
            let text =
                format!("apiVersion: landfall/v1\nkind: Site\nproxy: {{noProxy: {no_proxy}}}\n");
            let site = Site::parse(Path::new("s"), &text).unwrap();
            check(&site).map_err(|error| error.to_string())
        };
        let message = refused("{installation: [ok.test, \"a b\"]}").unwrap_err();
        assert!(
            message.contains("'a b' in proxy.noProxy.installation of the site")
                && message.ends_with("write a,b"),
            "{message}"
        );
        for (written, instead) in [
            ("{installation: [\"[::1]\"]}", "write ::1"),
            ("{installation: [\"http://a.test/\"]}", "write a.test"),
            ("{installation: [\"172.20.\"]}", "write 172.20.0.0/16"),
            (
                "{cluster: {podCIDR: 10.0.0.0/255.0.0.0}}",
                "write 10.0.0.0/8",
            ),
        ] {
            let message = refused(written).unwrap_err();
            assert!(message.ends_with(instead), "{message}");
        }
        let good = "{installation: [\"a.test, .b.test\", \"*.c.test\", \"[fd00::2]:80\"], \
                cluster: {domain: .cluster.local, \
                podCIDR: \"10.0.0.0/8,fd00::/8\", controlPlaneEndpoint: \"1.2.3.4:6443\"}}";
        assert_eq!(refused(good), Ok(()));
    }

    #[test]
    fn credentials_of_the_site_are_encoded_and_replace_those_in_the_url() {
        let text = "apiVersion: landfall/v1\nkind: Site\n\
            proxy: {http: \"http://asdf\", https: \"https://old:one@10.0.0.1:80/\", \
            credentials: {usernameEnv: U, passwordEnv: P}}\n";
        let site = Site::parse(Path::new("s"), text).unwrap();
        let get = |name: &str| Some(if name == "U" { "dom\\me" } else { "p@ss:w/d%" }.to_owned());
        let proxy = NodeProxy::of(&site, get).unwrap().unwrap();
        let http = proxy.http.clone().unwrap();
        let https = proxy.https.clone().unwrap();
        assert_eq!(http.url(), "http://dom%5Cme:p%40ss%3Aw%2Fd%25@asdf");
        assert_eq!(
            https.url(),
            "https://dom%5Cme:p%40ss%3Aw%2Fd%25@10.0.0.1:80"
        );
        assert_eq!(
            (&*http.plain, &*https.plain),
            ("http://asdf", "https://10.0.0.1:80")
        );
        assert!(proxy.has_account() && !format!("{proxy:?}").contains("p@ss"));
    }
}
