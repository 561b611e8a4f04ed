//! Chooses the proxy that a request goes through, and says which rule chose it.

use super::no_proxy::{NoProxyEntry, RequestTarget};
use landfall_model::config::SiteProxy;
use percent_encoding::percent_decode_str;
use std::fmt;
use url::Url;

/// The proxies and their exceptions.
#[derive(Debug, Clone, Default)]
pub struct ProxyRules {
    http: Option<ProxyUrl>,
    https: Option<ProxyUrl>,
    direct: Vec<NoProxyEntry>,
}

/// A proxy with its account set apart.
#[derive(Clone, PartialEq, Eq)]
pub struct ProxyUrl {
    /// URL without userinfo.
    pub url: Url,
    /// For Basic authentication.
    pub account: Option<ProxyAccount>,
    /// The variable or the key of the site that names the proxy.
    pub source: String,
}

/// An account at a proxy.
#[derive(Clone, PartialEq, Eq)]
pub struct ProxyAccount {
    /// User name.
    pub user: String,
    /// Password.
    pub password: String,
    /// Where both come from.
    pub source: String,
}

impl fmt::Debug for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}{}",
            self.url,
            if self.account.is_some() {
                " (with an account)"
            } else {
                ""
            }
        )
    }
}

impl fmt::Display for ProxyAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "account '{}' from {}", self.user, self.source)
    }
}

impl fmt::Debug for ProxyAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The proxy for one URL, and the rule that chose it.
#[derive(Debug, Clone, Copy)]
pub struct ProxyChoice<'a> {
    /// The proxy, or `None` to go directly.
    pub proxy: Option<&'a ProxyUrl>,
    /// The rule.
    pub rule: ProxyRule<'a>,
}

/// The rule that chose a proxy, or none.
#[derive(Debug, Clone, Copy)]
pub enum ProxyRule<'a> {
    /// No proxy is named for the URL's scheme.
    Unset,
    /// Loopback is never proxied.
    Loopback,
    /// An entry of NO_PROXY, or a key of the site, covers the host.
    NoProxy(&'a NoProxyEntry),
    /// The proxy that this variable or key names; no exception covers the host.
    Proxy(&'a str),
}

impl fmt::Display for ProxyRule<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProxyRule::Unset => f.write_str("no proxy is set for this scheme"),
            ProxyRule::Loopback => f.write_str("loopback is never proxied"),
            ProxyRule::NoProxy(entry) => write!(f, "'{}' in {}", entry.entry, entry.source),
            ProxyRule::Proxy(source) => write!(f, "{source}; no exception covers the host"),
        }
    }
}

/// Why a text is no URL of a proxy. It never shows the text, which may hold a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProxyUrlError {
    /// The scheme is not one of a proxy.
    #[error("a proxy's URL starts with http:// or https://, not {0}://")]
    Scheme(String),
    /// It is no URL.
    #[error("no URL of a proxy ({0})")]
    Url(#[from] url::ParseError),
}

/// A variable or a key of the site that holds no URL of a proxy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name}: {source}")]
pub struct ProxySettingError {
    /// The variable or the key.
    pub name: String,
    /// What is wrong with it.
    pub source: ProxyUrlError,
}

impl ProxyRules {
    /// The rules of the environment: upper case first, the first that is not empty.
    ///
    /// # Errors
    /// Which variable holds no proxy's URL.
    pub fn from_env(get: impl Fn(&str) -> Option<String>) -> Result<ProxyRules, ProxySettingError> {
        let pick = |names: &[&'static str]| {
            names.iter().find_map(|name| {
                get(name)
                    .filter(|value| !value.trim().is_empty())
                    .map(|value| (*name, value))
            })
        };
        let read = |names: [&'static str; 4]| {
            pick(&names)
                .map(|(name, value)| ProxyUrl::of_setting(&value, name))
                .transpose()
        };
        let direct = pick(&["NO_PROXY", "no_proxy"]);
        Ok(ProxyRules {
            http: read(["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"])?,
            https: read(["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"])?,
            direct: direct
                .map(|(name, value)| NoProxyEntry::list(&value, name))
                .unwrap_or_default(),
        })
    }

    /// The rules of a site. `account` is the one that the site's `proxy.credentials` names.
    ///
    /// # Errors
    /// Which key holds no proxy's URL.
    pub fn from_site(
        proxy: &SiteProxy,
        account: Option<ProxyAccount>,
    ) -> Result<ProxyRules, ProxySettingError> {
        let read =
            |value: &Option<String>, name: &str| -> Result<Option<ProxyUrl>, ProxySettingError> {
                let Some(value) = value else { return Ok(None) };
                let source = format!("proxy.{name} of the site");
                let mut proxy = ProxyUrl::of_setting(value, &source)?;
                if account.is_some() {
                    proxy.account.clone_from(&account);
                }
                Ok(Some(proxy))
            };
        let list = |entries: &[String], key: &str| -> Vec<NoProxyEntry> {
            let source = format!("proxy.noProxy.{key} of the site");
            entries
                .iter()
                .flat_map(|entry| NoProxyEntry::list(entry, &source))
                .collect()
        };
        let cluster = proxy.no_proxy.cluster.clone().unwrap_or_default();
        let cluster: Vec<String> = [
            cluster.pod_cidr,
            cluster.service_cidr,
            cluster.domain,
            cluster.control_plane_endpoint,
        ]
        .into_iter()
        .flatten()
        .collect();
        Ok(ProxyRules {
            http: read(&proxy.http, "http")?,
            https: read(&proxy.https, "https")?,
            direct: [
                list(&proxy.no_proxy.installation, "installation"),
                list(&cluster, "cluster"),
            ]
            .concat(),
        })
    }

    /// The same with further hosts that are reached directly: `host[:port]`, and the key that names
    /// it.
    #[must_use]
    pub fn with_bypass(mut self, hosts: impl IntoIterator<Item = (String, String)>) -> ProxyRules {
        self.direct.extend(
            hosts
                .into_iter()
                .map(|(host, source)| NoProxyEntry::host(&host, &source)),
        );
        self
    }

    /// The proxy for this URL, or `None` to go directly.
    pub fn proxy_for(&self, url: &Url) -> Option<&ProxyUrl> {
        self.choose(url).proxy
    }

    /// The same with the rule that chose it.
    pub fn choose(&self, url: &Url) -> ProxyChoice<'_> {
        let proxy = if url.scheme() == "https" {
            self.https.as_ref()
        } else {
            self.http.as_ref()
        };
        let (Some(proxy), Some(host)) = (proxy, url.host_str()) else {
            return ProxyChoice {
                proxy: None,
                rule: ProxyRule::Unset,
            };
        };
        let target = RequestTarget::new(host, url.port_or_known_default().unwrap_or(0));
        if target.is_loopback() {
            return ProxyChoice {
                proxy: None,
                rule: ProxyRule::Loopback,
            };
        }
        match self.direct.iter().find(|entry| entry.covers(&target)) {
            Some(entry) => ProxyChoice {
                proxy: None,
                rule: ProxyRule::NoProxy(entry),
            },
            None => ProxyChoice {
                proxy: Some(proxy),
                rule: ProxyRule::Proxy(&proxy.source),
            },
        }
    }

    /// The proxy for http targets, and that for https.
    pub fn by_scheme(&self) -> [Option<&ProxyUrl>; 2] {
        [self.http.as_ref(), self.https.as_ref()]
    }

    /// The proxies that are named, each once.
    pub fn proxies(&self) -> Vec<&ProxyUrl> {
        let mut all: Vec<&ProxyUrl> = self.https.iter().chain(&self.http).collect();
        all.dedup_by_key(|proxy| &proxy.url);
        all
    }
}

impl ProxyUrl {
    /// Reads `[scheme://][user[:password]@]host[:port]`. A raw `@` in the password is taken as a
    /// part of it; percent-encoding is decoded where it is valid. `source` says where the text
    /// stands.
    ///
    /// # Errors
    /// What is wrong, without the URL: it may hold a password.
    pub fn parse(text: &str, source: &str) -> Result<ProxyUrl, ProxyUrlError> {
        let (scheme, rest) = text
            .trim()
            .split_once("://")
            .unwrap_or(("http", text.trim()));
        if !["http", "https"].contains(&scheme.to_ascii_lowercase().as_str()) {
            return Err(ProxyUrlError::Scheme(scheme.into()));
        }
        let (userinfo, host) = match rest.rsplit_once('@') {
            Some((userinfo, host)) => (Some(userinfo), host),
            None => (None, rest),
        };
        let url = Url::parse(&format!("{scheme}://{host}"))?;
        let decode = |part: &str| match percent_decode_str(part).decode_utf8() {
            Ok(text) => text.into_owned(),
            Err(_) => part.to_owned(),
        };
        let account = userinfo.map(|userinfo| {
            let (user, password) = userinfo.split_once(':').unwrap_or((userinfo, ""));
            ProxyAccount {
                user: decode(user),
                password: decode(password),
                source: source.into(),
            }
        });
        Ok(ProxyUrl {
            url,
            account,
            source: source.into(),
        })
    }

    fn of_setting(text: &str, name: &str) -> Result<ProxyUrl, ProxySettingError> {
        ProxyUrl::parse(text, name).map_err(|source| ProxySettingError {
            name: name.into(),
            source,
        })
    }

    /// `host:port`, for messages and reports.
    pub fn shown(&self) -> String {
        let port = self.url.port_or_known_default().unwrap_or(80);
        format!("{}:{port}", self.url.host_str().unwrap_or("?"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(variables: &[(&str, &str)]) -> ProxyRules {
        let get = |name: &str| {
            variables
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).to_owned())
        };
        ProxyRules::from_env(get).unwrap()
    }

    /// Every line of the table, whose last column was computed by Go itself.
    #[test]
    fn the_table_of_gos_rules() {
        let mut cases = 0;
        let mut wrong = Vec::new();
        let table = include_str!("../../../tests/data/no_proxy.txt").lines();
        for line in table.filter(|line| !line.starts_with('#')) {
            let columns: Vec<&str> = line.split(" | ").collect();
            let [list, target, expected] = columns[..] else {
                panic!("{line}")
            };
            let list = list.trim_matches('"').replace("\\t", "\t");
            let rules = rules(&[
                ("http_proxy", "http://p:1"),
                ("HTTPS_PROXY", "http://p:2"),
                ("NO_PROXY", &list),
            ]);
            let decision = rules.choose(&Url::parse(target).unwrap());
            let got = if decision.proxy.is_some() {
                "proxy"
            } else {
                "direct"
            };
            if got != expected {
                wrong.push(format!("{line}: {got} by {}", decision.rule));
            }
            cases += 1;
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(cases >= 80, "only {cases} cases");
    }

    #[test]
    fn the_rule_that_decided_is_named() {
        let rules = rules(&[
            ("HTTP_PROXY", " "),
            ("http_proxy", "h:1"),
            ("all_proxy", "a:2"),
            ("no_proxy", "10.0.0.0/8, .corp.test"),
        ]);
        let said = |url: &str| {
            let url = Url::parse(url).unwrap();
            let decision = rules.choose(&url);
            format!(
                "{} {}",
                decision.proxy.map(ProxyUrl::shown).unwrap_or_default(),
                decision.rule
            )
        };
        assert_eq!(
            said("http://a.test/"),
            "h:1 http_proxy; no exception covers the host"
        );
        assert_eq!(
            said("https://a.test/"),
            "a:2 all_proxy; no exception covers the host"
        );
        assert_eq!(said("https://x.corp.test/"), " '.corp.test' in no_proxy");
        assert_eq!(said("http://10.2.3.4/"), " '10.0.0.0/8' in no_proxy");
        assert_eq!(said("http://127.0.0.1/"), " loopback is never proxied");
    }

    #[test]
    fn a_host_of_the_site_is_that_host_alone() {
        let rules = rules(&[("HTTPS_PROXY", "p:1")]).with_bypass([
            ("Reg.test:5000".into(), "a key".into()),
            ("[fd00::2]:9".into(), "b".into()),
        ]);
        let direct = |url: &str| rules.proxy_for(&Url::parse(url).unwrap()).is_none();
        assert!(direct("https://reg.test:5000/") && direct("https://[fd00::2]:9/"));
        assert!(!direct("https://reg.test/") && !direct("https://a.reg.test:5000/"));
    }

    #[test]
    fn accounts_may_hold_anything() {
        let parse = |text| {
            let account = ProxyUrl::parse(text, "X").unwrap().account.unwrap();
            (account.user, account.password)
        };
        let pair = |user: &str, password: &str| (user.to_owned(), password.to_owned());
        assert_eq!(parse("http://user:p@ss@h:1"), pair("user", "p@ss"));
        assert_eq!(
            parse("us%40er:p%40ss%3Aw%2Fd@h:1"),
            pair("us@er", "p@ss:w/d")
        );
        assert_eq!(parse("user:p#w/d?%@h:1"), pair("user", "p#w/d?%"));
        assert_eq!(parse("DOM%5Cuser:%ff@h:1"), pair("DOM\\user", "%ff"));
        assert_eq!(ProxyUrl::parse("h:3128", "X").unwrap().shown(), "h:3128");
        assert!(
            ProxyUrl::parse("socks5://h:1", "X")
                .unwrap_err()
                .to_string()
                .contains("socks5")
        );
        let proxy = ProxyUrl::parse("http://u:secret@h", "X").unwrap();
        assert!(!format!("{proxy:?} {:?}", proxy.account).contains("secret"));
    }
}
