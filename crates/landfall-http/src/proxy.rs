//! Selects the proxy for a request, and names the rule that selected it.

use super::no_proxy::{NoProxyEntry, RequestTarget};
use landfall_model::config::SiteProxy;
use landfall_model::{Failure, has_host_characters};
use percent_encoding::percent_decode_str;
use std::fmt;
use url::Url;

/// The proxies of a run, and the hosts that are reached without one.
#[derive(Debug, Clone, Default)]
pub struct ProxyRules {
    http: Option<ProxyUrl>,
    https: Option<ProxyUrl>,
    direct: Vec<NoProxyEntry>,
}

/// A proxy, with its account separate from its URL.
#[derive(Clone, PartialEq, Eq, derive_more::Debug)]
#[debug("{url}{}", if self.account.is_some() { " (with an account)" } else { "" })]
pub struct ProxyUrl {
    /// The URL without userinfo, so that it can be shown.
    pub url: Url,
    /// The account for Basic authentication.
    pub account: Option<ProxyAccount>,
    /// The variable or the key of the site that contains the URL.
    pub source: String,
}

/// An account at a proxy.
#[derive(Clone, PartialEq, Eq, derive_more::Display, derive_more::Debug)]
#[display("account '{user}' from {source}")]
#[debug("{self}")]
pub struct ProxyAccount {
    /// The user name, without percent-encoding.
    pub user: String,
    /// The password, percent-decoded.
    pub password: String,
    /// The variable, the key of the site, or the file that contains both.
    pub source: String,
}

/// The rule that selected a proxy, or a direct connection.
#[derive(Debug, Clone, Copy)]
pub enum ProxyRule<'a> {
    /// No proxy is set for the scheme of the URL.
    Unset,
    /// The host is this machine, which is never reached through a proxy.
    Loopback,
    /// An entry of NO_PROXY, or a key of the site, matches the host.
    NoProxy(&'a NoProxyEntry),
    /// This proxy is set for the scheme of the URL, and no exception matches the host.
    Proxy(&'a ProxyUrl),
}

impl<'a> ProxyRule<'a> {
    /// Returns the selected proxy; `None` for a direct connection.
    pub fn proxy(self) -> Option<&'a ProxyUrl> {
        match self {
            ProxyRule::Proxy(proxy) => Some(proxy),
            ProxyRule::Unset | ProxyRule::Loopback | ProxyRule::NoProxy(_) => None,
        }
    }
}

impl fmt::Display for ProxyRule<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProxyRule::Unset => f.write_str("no proxy is set for this scheme"),
            ProxyRule::Loopback => f.write_str("loopback is never proxied"),
            ProxyRule::NoProxy(entry) => write!(f, "'{}' in {}", entry.entry, entry.source),
            ProxyRule::Proxy(proxy) => {
                write!(f, "{}; no exception covers the host", proxy.source)
            }
        }
    }
}

impl ProxyRules {
    /// Returns the rules in the variables of the environment, which `get` reads. If a variable has
    /// several names, the first that is not empty counts; upper case has precedence.
    ///
    /// # Errors
    /// If a variable does not contain the URL of a proxy.
    pub fn from_env(get: impl Fn(&str) -> Option<String>) -> Result<ProxyRules, Failure> {
        // an empty variable counts as unset, as in Go
        let first_set = |names: &[&'static str]| {
            names.iter().find_map(|name| {
                let value = get(name)?;
                (!value.trim().is_empty()).then_some((*name, value))
            })
        };
        // Go ignores `ALL_PROXY`; curl uses it for schemes without a variable of their own
        let http = first_set(&["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"]);
        let https = first_set(&["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]);
        let direct = first_set(&["NO_PROXY", "no_proxy"]);
        let proxy = |(name, value): (&str, String)| ProxyUrl::from_setting(&value, name);
        Ok(ProxyRules {
            http: http.map(proxy).transpose()?,
            https: https.map(proxy).transpose()?,
            direct: direct
                .map(|(name, value)| NoProxyEntry::list(&value, name))
                .unwrap_or_default(),
        })
    }

    /// Returns the rules of a site. `account` is the one in `proxy.credentials`.
    ///
    /// # Errors
    /// If a key does not contain the URL of a proxy.
    pub fn from_site(
        proxy: &SiteProxy,
        account: Option<ProxyAccount>,
    ) -> Result<ProxyRules, Failure> {
        let account = account.as_ref();
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
            http: site_proxy(proxy.http.as_deref(), "http", account)?,
            https: site_proxy(proxy.https.as_deref(), "https", account)?,
            direct: [
                site_exceptions(&proxy.no_proxy.installation, "installation"),
                site_exceptions(&cluster, "cluster"),
            ]
            .concat(),
        })
    }

    /// Adds hosts that are reached directly: each `host[:port]` with the key that contains it.
    #[must_use]
    pub fn with_bypass(mut self, hosts: impl IntoIterator<Item = (String, String)>) -> ProxyRules {
        self.direct.extend(
            hosts
                .into_iter()
                .map(|(host, source)| NoProxyEntry::host(&host, &source)),
        );
        self
    }

    /// Returns the proxy for this URL; `None` for a direct connection.
    pub fn proxy_for(&self, url: &Url) -> Option<&ProxyUrl> {
        self.choose(url).proxy()
    }

    /// Returns the rule that selects the proxy for this URL.
    pub fn choose(&self, url: &Url) -> ProxyRule<'_> {
        let proxy = if url.scheme() == "https" {
            self.https.as_ref()
        } else {
            self.http.as_ref()
        };
        let (Some(proxy), Some(host)) = (proxy, url.host_str()) else {
            return ProxyRule::Unset;
        };
        let target = RequestTarget::new(host, url.port_or_known_default().unwrap_or(0));
        // before the entries: a proxy cannot reach this machine's loopback
        if target.is_loopback() {
            return ProxyRule::Loopback;
        }
        match self.direct.iter().find(|entry| entry.covers(&target)) {
            Some(entry) => ProxyRule::NoProxy(entry),
            None => ProxyRule::Proxy(proxy),
        }
    }

    /// Returns the proxy for http URLs and the proxy for https URLs.
    pub fn by_scheme(&self) -> [Option<&ProxyUrl>; 2] {
        [self.http.as_ref(), self.https.as_ref()]
    }

    /// Returns the configured proxies, each URL once per account.
    pub fn proxies(&self) -> Vec<&ProxyUrl> {
        let mut all: Vec<&ProxyUrl> = self.https.iter().chain(&self.http).collect();
        all.dedup_by_key(|proxy| {
            let account = proxy.account.as_ref();
            // without the source, which differs if two variables contain the same account
            (
                &proxy.url,
                account.map(|account| (&account.user, &account.password)),
            )
        });
        all
    }
}

impl ProxyUrl {
    /// Parses `[scheme://][user[:password]@]host[:port]`. `source` is the variable or key that
    /// contains the text. A raw `@` in the password belongs to it; percent-encoding is decoded if
    /// it is valid.
    ///
    /// # Errors
    /// If the scheme is not http or https, or the text is not a URL. The message omits the text,
    /// which may contain a password.
    pub fn parse(text: &str, source: &str) -> Result<ProxyUrl, Failure> {
        // A text without a scheme names an http proxy. A `://` may also be part of the password,
        // and the error about a scheme must not print the password.
        let (scheme, rest) = text
            .trim()
            .split_once("://")
            .filter(|(scheme, _)| is_scheme(scheme))
            .unwrap_or(("http", text.trim()));
        if !["http", "https"].contains(&scheme.to_ascii_lowercase().as_str()) {
            return Err(Failure::usage(format!(
                "a proxy's URL starts with http:// or https://, not {scheme}://"
            )));
        }
        // the last `@`, because passwords are often written without percent-encoding
        let (userinfo, host) = match rest.rsplit_once('@') {
            Some((userinfo, host)) => (Some(userinfo), host),
            None => (None, rest),
        };
        let url = Url::parse(&format!("{scheme}://{host}"))
            .map_err(|error| Failure::usage(format!("not a URL of a proxy ({error})")))?;
        if !has_host_characters(url.host_str().unwrap_or_default()) {
            return Err(Failure::usage(
                "not a URL of a proxy (its host has a character that no host has; quotes are not \
                 a part of the value)",
            ));
        }
        let account = userinfo.map(|userinfo| {
            let (user, password) = userinfo.split_once(':').unwrap_or((userinfo, ""));
            ProxyAccount {
                user: percent_decoded(user),
                password: percent_decoded(password),
                source: source.into(),
            }
        });
        Ok(ProxyUrl {
            url,
            account,
            source: source.into(),
        })
    }

    fn from_setting(text: &str, name: &str) -> Result<ProxyUrl, Failure> {
        ProxyUrl::parse(text, name).map_err(|error| Failure::usage(format!("{name}: {error}")))
    }

    /// Returns `host:port` of the proxy, for messages and reports.
    pub fn address(&self) -> String {
        let port = self.url.port_or_known_default().unwrap_or(80);
        format!("{}:{port}", self.url.host_str().unwrap_or("?"))
    }
}

/// Whether `text` has the characters of a URL's scheme (RFC 3986, 3.1).
fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

/// Returns the proxy in `proxy.NAME` of a site.
fn site_proxy(
    value: Option<&str>,
    name: &str,
    account: Option<&ProxyAccount>,
) -> Result<Option<ProxyUrl>, Failure> {
    let Some(value) = value else {
        return Ok(None);
    };
    let mut proxy = ProxyUrl::from_setting(value, &format!("proxy.{name} of the site"))?;
    // `proxy.credentials` has precedence over an account in the URL
    if let Some(account) = account {
        // the source is replaced too, because messages name it
        proxy.account = Some(account.clone());
    }
    Ok(Some(proxy))
}

/// Returns the entries in `proxy.noProxy.KEY` of a site.
fn site_exceptions(entries: &[String], key: &str) -> Vec<NoProxyEntry> {
    let source = format!("proxy.noProxy.{key} of the site");
    entries
        .iter()
        .flat_map(|entry| NoProxyEntry::list(entry, &source))
        .collect()
}

/// Decodes percent-encoding. If the result is not valid UTF-8, the text is returned unchanged,
/// because its `%` is probably meant literally.
fn percent_decoded(text: &str) -> String {
    match percent_decode_str(text).decode_utf8() {
        Ok(decoded) => decoded.into_owned(),
        Err(_) => text.to_owned(),
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

    /// The last column of the table was computed by Go.
    #[test]
    fn decisions_equal_those_of_go() {
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
            let rule = rules.choose(&Url::parse(target).unwrap());
            let got = if rule.proxy().is_some() {
                "proxy"
            } else {
                "direct"
            };
            if got != expected {
                wrong.push(format!("{line}: {got} by {rule}"));
            }
            cases += 1;
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(cases >= 80, "only {cases} cases");
    }

    #[test]
    fn the_rule_that_selected_the_proxy_is_named() {
        let rules = rules(&[
            ("HTTP_PROXY", " "),
            ("http_proxy", "h:1"),
            ("all_proxy", "a:2"),
            ("no_proxy", "10.0.0.0/8, .corp.test"),
        ]);
        let rule_text = |url: &str| {
            let url = Url::parse(url).unwrap();
            let rule = rules.choose(&url);
            let proxy = rule.proxy().map(ProxyUrl::address).unwrap_or_default();
            format!("{proxy} {rule}")
        };
        assert_eq!(
            rule_text("http://a.test/"),
            "h:1 http_proxy; no exception covers the host"
        );
        assert_eq!(
            rule_text("https://a.test/"),
            "a:2 all_proxy; no exception covers the host"
        );
        assert_eq!(
            rule_text("https://x.corp.test/"),
            " '.corp.test' in no_proxy"
        );
        assert_eq!(rule_text("http://10.2.3.4/"), " '10.0.0.0/8' in no_proxy");
        assert_eq!(rule_text("http://127.0.0.1/"), " loopback is never proxied");
    }

    #[test]
    fn a_proxy_with_two_accounts_is_listed_twice() {
        let sources = |http: &str, https: &str| -> Vec<String> {
            let rules = rules(&[("HTTP_PROXY", http), ("HTTPS_PROXY", https)]);
            let proxies = rules.proxies().into_iter();
            proxies.map(|proxy| proxy.source.clone()).collect()
        };
        let both = ["HTTPS_PROXY", "HTTP_PROXY"];
        assert_eq!(sources("http://a:b@p:1", "http://c:d@p:1"), both);
        assert_eq!(sources("http://a:b@p:1", "http://a:x@p:1"), both);
        assert_eq!(sources("http://p:1", "http://a:b@p:1"), both);
        assert_eq!(sources("http://a:b@p:1", "http://a:b@p:1"), both[..1]);
        assert_eq!(sources("http://a:b@p:1", "http://a:b@p:2"), both);
    }

    #[test]
    fn a_host_of_the_site_matches_no_subdomain() {
        let rules = rules(&[("HTTPS_PROXY", "p:1")]).with_bypass([
            ("Reg.test:5000".into(), "a key".into()),
            ("[fd00::2]:9".into(), "b".into()),
        ]);
        let direct = |url: &str| rules.proxy_for(&Url::parse(url).unwrap()).is_none();
        assert!(direct("https://reg.test:5000/") && direct("https://[fd00::2]:9/"));
        assert!(!direct("https://reg.test/") && !direct("https://a.reg.test:5000/"));
    }

    #[test]
    fn accounts_may_contain_any_character() {
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
        assert_eq!(parse("user:se://cret@h:1"), pair("user", "se://cret"));
        assert_eq!(ProxyUrl::parse("h:3128", "X").unwrap().address(), "h:3128");
        let error = ProxyUrl::parse("socks5://user:p@h:1", "X").unwrap_err();
        assert!(error.to_string().contains("socks5://"), "{error}");
        assert!(
            ProxyUrl::parse("socks5://h:1", "X")
                .unwrap_err()
                .to_string()
                .contains("socks5")
        );
        // as `docker run --env-file` passes them
        for quoted in ["\"http://h:1\"", "'h'", "\"http://u:secret@h:1\""] {
            let error = ProxyUrl::parse(quoted, "X").unwrap_err().to_string();
            assert!(error.starts_with("not a URL of a proxy ("), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
        let proxy = ProxyUrl::parse("http://u:secret@h", "X").unwrap();
        assert!(!format!("{proxy:?} {:?}", proxy.account).contains("secret"));
    }
}
