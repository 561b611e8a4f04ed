//! Patterns of names, in which `*` matches any text. Signature rules (`match`) and `--only` use
//! them. Names are compared in the form that references and URLs are normalized to, so a pattern
//! may be written in every form in which the name itself may be written.

use crate::ImageRef;
use crate::media_type::{HUB, canonical_host};
use crate::reference::{has_host, is_host_in_lower_case};
use crate::web_url::after_web_scheme;
use std::convert::Infallible;
use std::str::FromStr;

/// The beginning of the names of git repositories.
const GIT: &str = "git+";

/// A text in which `*` stands for any text, including `/` and the empty text.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::Display)]
pub struct TextPattern(String);

impl TextPattern {
    /// The pattern that is written as `text`.
    pub fn new(text: impl Into<String>) -> TextPattern {
        TextPattern(text.into())
    }

    /// Whether the whole of `text` matches.
    pub fn matches(&self, text: &str) -> bool {
        Wildcards::STAR.matches(&self.0, text)
    }
}

/// A pattern of names: image references, URLs of files and charts, and other names of items.
///
/// `nginx` matches `docker.io/library/nginx`, `Quay.io:443/a` matches `quay.io/a`, and
/// `quay.io/a:*` also matches references to digests of `quay.io/a`.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::Display)]
#[display("{written}")]
pub struct NamePattern {
    written: String,
    /// The normalized forms. There are two if `*` makes it ambiguous whether the first component is
    /// a host or an image of Docker Hub.
    forms: Vec<TextPattern>,
}

impl NamePattern {
    /// The pattern that is written as `text`.
    pub fn new(text: impl Into<String>) -> NamePattern {
        let written = text.into();
        let forms = normal_forms(&written);
        NamePattern {
            forms: forms.into_iter().map(TextPattern).collect(),
            written,
        }
    }

    /// Whether the pattern begins with a scheme, so that it matches URLs and not references.
    pub fn is_url(&self) -> bool {
        self.written.contains("://")
    }

    /// Whether the pattern matches git repositories, whose names begin with `git+`.
    pub fn is_git(&self) -> bool {
        let start = self.written.get(..GIT.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(GIT))
    }

    /// Whether the name of a git repository, such as `git+https://host/path`, matches: with or
    /// without `.git` at its end.
    pub fn matches_repository(&self, name: &str) -> bool {
        let bare = name.strip_suffix(".git").unwrap_or(name);
        self.matches(bare) || self.matches(&format!("{bare}.git"))
    }

    /// The pattern of images at the host of this URL, as in `quay.io/team/*` for
    /// `https://quay.io/team/*`. `None` if the pattern has no http or https scheme, or if `*`
    /// stands for a part of the host: such patterns are meant for files.
    pub fn of_images(&self) -> Option<NamePattern> {
        let rest = after_web_scheme(&self.written)?;
        let (host, _) = rest.split_once('/')?;
        (!host.contains('*') && has_host(rest)).then(|| NamePattern::new(rest))
    }

    /// Whether a form of the reference matches: with its tag, with its digest, with both, or the
    /// repository alone.
    pub fn matches_image(&self, image: &ImageRef) -> bool {
        let name = normal_name(image);
        // without a tag, `repository:*` still matches the repository
        let tagged = format!("{name}:{}", image.tag.as_deref().unwrap_or_default());
        let mut names = vec![name, tagged];
        if let Some(digest) = &image.digest {
            let pinned: Vec<String> = names
                .iter()
                .map(|name| format!("{name}@{digest}"))
                .collect();
            names.extend(pinned);
        }
        names.iter().any(|name| self.matches_normalized(name))
    }

    /// Whether a name of any kind matches: a URL, a reference with its host, or another name.
    pub fn matches(&self, name: &str) -> bool {
        if let Some((scheme, rest)) = name.split_once("://") {
            return self.matches_normalized(&normal_url(scheme, rest));
        }
        let is_image = || {
            let image = has_host(name).then(|| name.parse::<ImageRef>());
            image.is_some_and(|image| image.is_ok_and(|image| self.matches_image(&image)))
        };
        TextPattern::new(&*self.written).matches(name) || is_image()
    }

    fn matches_normalized(&self, name: &str) -> bool {
        self.forms.iter().any(|form| form.matches(name))
    }
}

impl FromStr for NamePattern {
    type Err = Infallible;
    fn from_str(text: &str) -> Result<NamePattern, Infallible> {
        Ok(NamePattern::new(text))
    }
}

/// Returns `registry/repository` of a reference, without the default port.
pub(crate) fn normal_name(image: &ImageRef) -> String {
    format!(
        "{}/{}",
        without_port(&image.registry, "443"),
        image.repository
    )
}

/// Whether two names of items are the same: URLs, or references to images and charts.
pub fn is_same_name(one: &str, other: &str) -> bool {
    let reference = |text: &str| {
        let image: ImageRef = text.parse().ok()?;
        Some((normal_name(&image), image.tag, image.digest))
    };
    if one.contains("://") || other.contains("://") {
        return is_same_url(one, other);
    }
    one == other || reference(one).is_some_and(|one| Some(one) == reference(other))
}

/// Whether two hosts of references are the same: https is spoken at port 443 by default.
pub fn is_same_host(one: &str, other: &str) -> bool {
    without_port(one, "443") == without_port(other, "443")
}

/// Whether two URLs, or other names of items, are the same. Case and default port of a URL's host
/// do not matter.
pub fn is_same_url(one: &str, other: &str) -> bool {
    let normal = |text: &str| match text.split_once("://") {
        Some((scheme, rest)) => normal_url(scheme, rest),
        None => text.to_owned(),
    };
    normal(one) == normal(other)
}

/// Returns a prefix of references in the form of [`ImageRef::name`]. A single component below
/// Docker Hub means both an account and an official image.
pub(crate) fn normal_prefixes(prefix: &str) -> Vec<String> {
    let prefix = prefix.trim_end_matches('/');
    let (first, path) = prefix.split_once('/').unwrap_or((prefix, ""));
    let (host, path) = match (is_host_in_lower_case(first), path) {
        (true, _) => (upstream_host(first), path),
        (false, _) if has_host(prefix) => (first.to_owned(), path),
        (false, _) => (HUB.to_owned(), prefix),
    };
    let mut prefixes = vec![format!("{host}/{path}").trim_end_matches('/').to_owned()];
    if host == HUB && !path.is_empty() && !path.contains('/') {
        prefixes.push(format!("{host}/library/{path}"));
    }
    prefixes
}

/// Returns the normalized forms of a pattern.
fn normal_forms(text: &str) -> Vec<String> {
    if let Some((scheme, rest)) = text.split_once("://") {
        return vec![normal_url(scheme, rest)];
    }
    let (first, path) = text.split_once('/').unwrap_or((text, ""));
    let on_hub = |path: &str| {
        // official images are written without `library/`
        let is_official = !path.contains('/');
        format!("{HUB}/{}{path}", if is_official { "library/" } else { "" })
    };
    if path.is_empty() {
        // an image of Docker Hub, unless `*` may continue a host or stand for one
        let name = first.split([':', '@']).next().unwrap_or_default();
        return match name.find('*') {
            Some(0) => vec![text.to_owned()],
            None => vec![on_hub(text)],
            Some(_) => vec![text.to_owned(), on_hub(text)],
        };
    }
    if first.contains('*') {
        return vec![format!("{}/{path}", first.to_ascii_lowercase())];
    }
    if !has_host(text) {
        return vec![on_hub(text)];
    }
    let host = if is_host_in_lower_case(first) {
        upstream_host(first)
    } else {
        first.to_owned()
    };
    let raw = format!("{host}/{path}");
    if host != HUB || path.contains('/') || path.starts_with('*') {
        vec![raw]
    } else if path
        .split([':', '@'])
        .next()
        .is_some_and(|name| name.contains('*'))
    {
        vec![raw, on_hub(path)]
    } else {
        vec![on_hub(path)]
    }
}

/// Returns a host, such as a key of `upstreams`, as references name it and in the form in which
/// hosts are compared: in lower case, without the default port, and `docker.io` for each name of
/// Docker Hub.
pub fn upstream_host(host: &str) -> String {
    let host = host.to_ascii_lowercase();
    canonical_host(without_port(&host, "443")).to_owned()
}

/// Returns a URL, or a pattern of URLs, with scheme and host in lower case and without the default
/// port of the scheme (RFC 3986, sections 6.2.2.1 and 6.2.3).
fn normal_url(scheme: &str, rest: &str) -> String {
    let scheme = scheme.to_ascii_lowercase();
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    let host = host.to_ascii_lowercase();
    let host = match scheme.as_str() {
        "https" | "git+https" => without_port(&host, "443"),
        "http" | "git+http" => without_port(&host, "80"),
        _ => &host,
    };
    format!("{scheme}://{host}{path}")
}

/// Returns `host` without this port.
fn without_port<'a>(host: &'a str, port: &str) -> &'a str {
    host.strip_suffix(port)
        .and_then(|host| host.strip_suffix(':'))
        .unwrap_or(host)
}

/// The characters of a pattern that stand for other text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wildcards {
    /// Stands for any bytes, or for none.
    pub any: u8,
    /// Stands for one byte.
    pub one: Option<u8>,
}

impl Wildcards {
    /// `*` stands for any text.
    pub const STAR: Wildcards = Wildcards {
        any: b'*',
        one: None,
    };

    /// `*` stands for any text, `?` for one byte.
    pub const SHELL: Wildcards = Wildcards {
        any: b'*',
        one: Some(b'?'),
    };

    /// Whether the whole of `text` matches `pattern`.
    ///
    /// It backtracks only to the last wildcard for any text, so it takes quadratic time at most.
    pub fn matches(self, pattern: &str, text: &str) -> bool {
        let pattern = pattern.as_bytes();
        let text = text.as_bytes();
        let mut pattern_at = 0;
        let mut text_at = 0;
        let mut last = None;
        while text_at < text.len() {
            match pattern.get(pattern_at) {
                Some(&byte) if byte == self.any => {
                    last = Some((pattern_at, text_at));
                    pattern_at += 1;
                }
                Some(&byte) if Some(byte) == self.one || byte == text[text_at] => {
                    pattern_at += 1;
                    text_at += 1;
                }
                _ => {
                    // let the last wildcard stand for one more byte
                    let Some((wildcard_at, matched)) = last else {
                        return false;
                    };
                    last = Some((wildcard_at, matched + 1));
                    pattern_at = wildcard_at + 1;
                    text_at = matched + 1;
                }
            }
        }
        pattern[pattern_at..].iter().all(|&byte| byte == self.any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

    #[test]
    fn patterns_match_references_in_every_form() {
        let pinned = format!("quay.io/team/app@{DIGEST}");
        let both = format!("quay.io/team/app:v1@{DIGEST}");
        for (pattern, image, expected) in [
            ("nginx", "nginx:1.27", true),
            ("nginx:1.*", "docker.io/library/nginx:1.27", true),
            ("nginx*", "nginx:1.27", true),
            ("library/nginx", "nginx:1.27", true),
            ("team/*", "team/app:v1", true),
            ("team/*", "quay.io/team/app:v1", false),
            ("index.docker.io/*", "nginx:1.27", true),
            ("registry-1.docker.io/*", "nginx:1.27", true),
            ("Docker.io/*", "nginx:1.27", true),
            ("docker.io/nginx", "nginx:1.27", true),
            ("docker.io/nginx*", "nginxinc/a:1", true),
            ("docker.io/nginx*", "nginx:1", true),
            ("QUAY.io/team/*", "quay.io/team/app:v1", true),
            ("quay.io/team/*", "quay.io:443/team/app:v1", true),
            ("quay.io:443/team/app:v1", "quay.io/team/app:v1", true),
            ("quay.io/team/app:*", &pinned, true),
            ("quay.io/team/app:v*", &pinned, false),
            ("quay.io/team/app:v1", &both, true),
            ("quay.io/team/app@sha256:*", &both, true),
            ("quay.io/team/app", &both, true),
            ("quay.io/team/ap", &both, false),
            ("quay.io/team/app:*", "quay.io/team/app2:v1", false),
            ("*", "localhost:5000/a:1", true),
            ("*/team/*", "quay.io/team/app:v1", true),
            ("*.io/team/*", "quay.io/team/app:v1", true),
            ("quay.io*", "quay.io/team/app:v1", true),
            ("quay.io:8443/*", "quay.io/team/app:v1", false),
            ("Harbor/team/*", "Harbor/team/app:v1", true),
            ("https://quay.io/team/*", "quay.io/team/app:v1", false),
        ] {
            let image: ImageRef = image.parse().unwrap();
            let matches = NamePattern::new(pattern).matches_image(&image);
            assert_eq!(matches, expected, "{pattern} {image}");
        }
    }

    #[test]
    fn a_pattern_of_urls_at_one_host_has_a_pattern_of_images() {
        for (pattern, expected) in [
            ("https://quay.io/team/*", Some("quay.io/team/*")),
            ("HTTPS://Quay.io:443/*", Some("Quay.io:443/*")),
            ("https://*", None),
            ("https://*.io/team/*", None),
            ("*://*", None),
            ("oci://quay.io/team/*", None),
            ("quay.io/team/*", None),
        ] {
            let images = NamePattern::new(pattern).of_images();
            assert_eq!(images, expected.map(NamePattern::new), "{pattern}");
        }
    }

    #[test]
    fn patterns_of_repositories_match_with_and_without_git_at_the_end() {
        for (pattern, name, expected) in [
            ("git+https://h.test/a", "git+https://h.test/a.git", true),
            ("git+https://h.test/a.git", "git+https://h.test/a", true),
            ("GIT+HTTPS://H.test:443/*", "git+https://h.test/a", true),
            ("git+*", "git+http://h.test/a", true),
            ("git+https://h.test/a", "git+https://h.test/a2.git", false),
            ("git+https://*", "git+http://h.test/a", false),
            ("git+https://h.test/*", "git+https://h.test:8443/a", false),
        ] {
            let pattern = NamePattern::new(pattern);
            assert!(pattern.is_git(), "{pattern}");
            assert_eq!(pattern.matches_repository(name), expected, "{pattern}");
        }
        assert!(!NamePattern::new("https://h.test/*").is_git());
        assert!(!NamePattern::new("gitä").is_git());
    }

    #[test]
    fn names_are_the_same_in_every_form() {
        for (one, other, expected) in [
            ("quay.io:443/a/b:1", "quay.io/a/b:1", true),
            ("index.docker.io/nginx:1", "docker.io/library/nginx:1", true),
            ("quay.io/a/b:1", "quay.io/a/b:2", false),
            ("HTTPS://A.test:443/x", "https://a.test/x", true),
            ("https://a.test/x", "a.test/x", false),
        ] {
            assert_eq!(is_same_name(one, other), expected, "{one} {other}");
        }
    }

    #[test]
    fn prefixes_are_normalized_like_references() {
        for (prefix, expected) in [
            ("Quay.io:443/Team/", vec!["quay.io/Team"]),
            ("index.docker.io", vec!["docker.io"]),
            (
                "bitnami",
                vec!["docker.io/bitnami", "docker.io/library/bitnami"],
            ),
            (
                "docker.io/nginx",
                vec!["docker.io/nginx", "docker.io/library/nginx"],
            ),
            ("team/app", vec!["docker.io/team/app"]),
            ("Harbor/team", vec!["Harbor/team"]),
            ("localhost", vec!["localhost"]),
        ] {
            assert_eq!(normal_prefixes(prefix), expected, "{prefix}");
        }
    }

    #[test]
    fn patterns_match_urls_whatever_the_case_and_default_port_of_their_host() {
        for (pattern, url, expected) in [
            ("https://dl.k8s.io/*", "HTTPS://DL.k8s.io:443/a", true),
            ("HTTPS://DL.k8s.io:443/*", "https://dl.k8s.io/a", true),
            ("http://dl.k8s.io/*", "http://dl.k8s.io:80/a", true),
            ("https://dl.k8s.io/*", "https://dl.k8s.io:80/a", false),
            ("https://dl.k8s.io/a", "https://dl.k8s.io/A", false),
            ("*", "cni", true),
            ("cni", "cni", true),
            ("cni", "cni2", false),
            ("nginx", "docker.io/library/nginx", true),
            ("Quay.io/a*", "quay.io/app", true),
        ] {
            let matches = NamePattern::new(pattern).matches(url);
            assert_eq!(matches, expected, "{pattern} {url}");
        }
    }

    #[test]
    fn a_star_matches_any_text_and_other_characters_match_themselves() {
        for (pattern, text, expected) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("*", "", true),
            ("a/*", "a/b/c", true),
            ("a/*", "a", false),
            ("*/b", "a/b", true),
            ("a*b*c", "a1b2b3c", true),
            ("a*b*c", "a1c2b", false),
            ("a*a", "a", false),
            ("ab*ba", "aba", false),
            ("a**b", "ab", true),
            ("a.c", "abc", false),
            ("a?c", "abc", false),
            ("2.2*", "2.2.1-1", true),
            ("1.33.4-*", "1.33.4-1.1", true),
            ("1", "1", true),
            ("*b*", "abc", true),
            ("2.2*", "2.1", false),
            ("1", "1.0", false),
            ("1*3", "1x2", false),
        ] {
            assert_eq!(
                Wildcards::STAR.matches(pattern, text),
                expected,
                "{pattern} {text}"
            );
        }
    }

    #[test]
    fn wildcards_match_any_text_or_one_byte() {
        for (pattern, text, expected) in [
            ("a*", "abc", true),
            ("a*c", "abcbc", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("containerd.io-2.2*", "containerd.io-2.2.1-1.el9", true),
            ("containerd.io-2.2*", "containerd.io-2.1.1-1.el9", false),
            ("*", "", true),
            ("a", "ab", false),
        ] {
            assert_eq!(
                Wildcards::SHELL.matches(pattern, text),
                expected,
                "{pattern} {text}"
            );
        }
    }
}
