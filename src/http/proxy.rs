//! Which proxy a request goes through, by Go's rules: what containerd and kubelet do
//! (`golang.org/x/net/http/httpproxy`).

use crate::site::Proxy as SiteProxy;
use percent_encoding::percent_decode_str;
use std::net::IpAddr;
use url::Url;

/// The proxies and their exceptions.
#[derive(Debug, Clone, Default)]
pub struct ProxyRules {
    http: Option<ProxyUrl>,
    https: Option<ProxyUrl>,
    direct: Vec<Exception>,
}

/// A proxy with its credentials set apart.
#[derive(Clone, PartialEq, Eq)]
pub struct ProxyUrl {
    /// URL without userinfo.
    pub url: Url,
    /// User and password for Basic authentication.
    pub credentials: Option<(String, String)>,
}

impl std::fmt::Debug for ProxyUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.url, if self.credentials.is_some() { " (with credentials)" } else { "" })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Exception {
    All,
    Network(IpAddr, u8),
    Address(IpAddr, Option<u16>),
    /// The name itself if `exact`, and every name below it.
    Domain {
        name: String,
        exact: bool,
        port: Option<u16>,
    },
}

impl ProxyRules {
    /// The rules of the environment: upper case first, the first that is not empty.
    pub fn from_env(get: impl Fn(&str) -> Option<String>) -> Result<ProxyRules, String> {
        let pick =
            |names: [&str; 2]| names.iter().find_map(|name| get(name).filter(|value| !value.is_empty()));
        let all = pick(["ALL_PROXY", "all_proxy"]);
        let read = |names: [&str; 2]| {
            let value = pick(names).or_else(|| all.clone());
            value
                .map(|value| ProxyUrl::parse(&value).map_err(|why| format!("{}: {why}", names[0])))
                .transpose()
        };
        Ok(ProxyRules {
            http: read(["HTTP_PROXY", "http_proxy"])?,
            https: read(["HTTPS_PROXY", "https_proxy"])?,
            direct: exceptions(&pick(["NO_PROXY", "no_proxy"]).unwrap_or_default()),
        })
    }

    /// The rules of a site. `credentials` are those that the site's `proxy.credentials` names.
    pub fn from_site(proxy: &SiteProxy, credentials: Option<(String, String)>) -> Result<ProxyRules, String> {
        let read = |value: &Option<String>, name: &str| -> Result<Option<ProxyUrl>, String> {
            let Some(value) = value else { return Ok(None) };
            let mut proxy =
                ProxyUrl::parse(value).map_err(|why| format!("proxy.{name} of the site: {why}"))?;
            if credentials.is_some() {
                proxy.credentials = credentials.clone();
            }
            Ok(Some(proxy))
        };
        let mut list = proxy.no_proxy.installation.clone();
        if let Some(cluster) = &proxy.no_proxy.cluster {
            let parts =
                [&cluster.pod_cidr, &cluster.service_cidr, &cluster.domain, &cluster.control_plane_endpoint];
            list.extend(parts.into_iter().flatten().cloned());
        }
        Ok(ProxyRules {
            http: read(&proxy.http, "http")?,
            https: read(&proxy.https, "https")?,
            direct: exceptions(&list.join(",")),
        })
    }

    /// The same with further entries of NO_PROXY's form.
    pub fn with_bypass(mut self, entries: impl IntoIterator<Item = String>) -> ProxyRules {
        self.direct.extend(entries.into_iter().flat_map(|entry| exceptions(&entry)));
        self
    }

    /// The proxy for this URL, or `None` to go directly.
    pub fn decide(&self, url: &Url) -> Option<&ProxyUrl> {
        let proxy = if url.scheme() == "https" { self.https.as_ref() } else { self.http.as_ref() }?;
        let host = url.host_str()?.trim_matches(['[', ']']).trim_end_matches('.').to_ascii_lowercase();
        let port = url.port_or_known_default();
        let address = host.parse::<IpAddr>().ok();
        if host == "localhost" || address.is_some_and(|address| address.is_loopback()) {
            return None;
        }
        let hit = self.direct.iter().any(|exception| exception.covers(&host, address, port));
        (!hit).then_some(proxy)
    }
}

impl ProxyUrl {
    /// Reads `[scheme://][user[:password]@]host[:port]`. A raw `@` in the password is taken as a part
    /// of it; percent-encoding is decoded where it is valid.
    ///
    /// # Errors
    /// What is wrong, without the URL: it may hold a password.
    pub fn parse(text: &str) -> Result<ProxyUrl, String> {
        let (scheme, rest) = text.trim().split_once("://").unwrap_or(("http", text.trim()));
        if !["http", "https"].contains(&scheme.to_ascii_lowercase().as_str()) {
            return Err(format!("a proxy's URL starts with http:// or https://, not {scheme}://"));
        }
        let (userinfo, host) = match rest.rsplit_once('@') {
            Some((userinfo, host)) => (Some(userinfo), host),
            None => (None, rest),
        };
        let url =
            Url::parse(&format!("{scheme}://{host}")).map_err(|why| format!("no URL of a proxy ({why})"))?;
        let decode = |part: &str| percent_decode_str(part).decode_utf8_lossy().into_owned();
        let credentials = userinfo.map(|userinfo| {
            let (user, password) = userinfo.split_once(':').unwrap_or((userinfo, ""));
            (decode(user), decode(password))
        });
        Ok(ProxyUrl { url, credentials })
    }

    /// `host:port`, for messages and reports.
    pub fn shown(&self) -> String {
        let port = self.url.port_or_known_default().unwrap_or(80);
        format!("{}:{port}", self.url.host_str().unwrap_or("?"))
    }
}

impl Exception {
    fn covers(&self, host: &str, address: Option<IpAddr>, port: Option<u16>) -> bool {
        let port_fits = |wanted: &Option<u16>| wanted.is_none() || *wanted == port;
        match self {
            Exception::All => true,
            Exception::Network(network, bits) => {
                address.is_some_and(|address| in_network(address, *network, *bits))
            }
            Exception::Address(wanted, wanted_port) => address == Some(*wanted) && port_fits(wanted_port),
            Exception::Domain { name, exact, port: wanted_port } => {
                let below = host.strip_suffix(name.as_str()).is_some_and(|rest| rest.ends_with('.'));
                (below || (*exact && host == name)) && port_fits(wanted_port)
            }
        }
    }
}

fn exceptions(list: &str) -> Vec<Exception> {
    list.split(',').filter_map(|entry| exception(&entry.trim().to_ascii_lowercase())).collect()
}

fn exception(entry: &str) -> Option<Exception> {
    if entry == "*" {
        return Some(Exception::All);
    }
    if let Some((network, bits)) = entry.split_once('/')
        && let (Ok(network), Ok(bits)) = (network.parse::<IpAddr>(), bits.parse::<u8>())
        && bits <= if network.is_ipv4() { 32 } else { 128 }
    {
        return Some(Exception::Network(network, bits));
    }
    if let Ok(address) = entry.trim_matches(['[', ']']).parse::<IpAddr>() {
        return Some(Exception::Address(address, None));
    }
    let (host, port) = match entry.rsplit_once(':') {
        Some((host, port)) => (host, Some(port.parse::<u16>().ok()?)),
        None => (entry, None),
    };
    if let Ok(address) = host.trim_matches(['[', ']']).parse::<IpAddr>() {
        return Some(Exception::Address(address, port));
    }
    let (name, exact) = match host.strip_prefix("*.").or_else(|| host.strip_prefix('.')) {
        Some(name) => (name, false),
        None => (host, true),
    };
    (!name.is_empty()).then(|| Exception::Domain { name: name.into(), exact, port })
}

fn in_network(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    match (address, network) {
        (IpAddr::V4(a), IpAddr::V4(n)) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            a.to_bits() & mask == n.to_bits() & mask
        }
        (IpAddr::V6(a), IpAddr::V6(n)) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            a.to_bits() & mask == n.to_bits() & mask
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn direct(no_proxy: &str, url: &str) -> bool {
        let env = |name: &str| match name {
            "http_proxy" | "HTTPS_PROXY" => Some("http://proxy:3128".to_owned()),
            "NO_PROXY" => Some(no_proxy.to_owned()),
            _ => None,
        };
        ProxyRules::from_env(env).unwrap().decide(&Url::parse(url).unwrap()).is_none()
    }

    #[test]
    fn gos_rules() {
        let table = [
            ("", "http://172.20.0.2:5000/", false),
            ("", "http://localhost:1/", true),
            ("", "http://127.9.9.9:1/", true),
            ("", "https://[::1]:1/", true),
            ("172.20.0.2", "http://172.20.0.2:5000/", true),
            ("172.20.0.2:5000", "http://172.20.0.2:5000/", true),
            ("172.20.0.2:5001", "http://172.20.0.2:5000/", false),
            ("172.20.0.0/16", "http://172.20.0.2:5000/", true),
            ("172.20.", "http://172.20.0.2:5000/", false),
            ("*", "http://172.20.0.2:5000/", true),
            ("0.0.0.0/0", "http://172.20.0.2:5000/", true),
            ("10.0.0.1, 172.20.0.2", "http://172.20.0.2:5000/", true),
            ("corp.test", "http://registry.corp.test:5000/", true),
            ("corp.test", "http://corp.test/", true),
            ("corp.test", "http://badcorp.test/", false),
            (".corp.test", "http://corp.test/", false),
            (".corp.test", "http://a.corp.test/", true),
            ("*.corp.test", "http://a.corp.test/", true),
            ("registry.corp.test:5000", "http://registry.corp.test:5000/", true),
            ("registry.corp.test:5000", "http://registry.corp.test/", false),
            ("CORP.test", "https://A.Corp.Test/", true),
            ("svc", "http://foo.default.svc/", true),
            ("fd00::/8", "http://[fd00::2]:9/", true),
            ("fd00::2", "http://[fd00::2]:9/", true),
        ];
        for (no_proxy, url, expected) in table {
            assert_eq!(direct(no_proxy, url), expected, "NO_PROXY={no_proxy} {url}");
        }
    }

    #[test]
    fn credentials_may_hold_anything() {
        let parse = |text| ProxyUrl::parse(text).unwrap().credentials.unwrap();
        assert_eq!(parse("http://user:p@ss@h:1"), ("user".into(), "p@ss".into()));
        assert_eq!(parse("us%40er:p%40ss%3Aw%2Fd@h:1"), ("us@er".into(), "p@ss:w/d".into()));
        assert_eq!(ProxyUrl::parse("h:3128").unwrap().shown(), "h:3128");
        assert!(ProxyUrl::parse("socks5://h:1").unwrap_err().contains("socks5"));
        assert!(!format!("{:?}", ProxyUrl::parse("http://u:secret@h").unwrap()).contains("secret"));
    }
}
