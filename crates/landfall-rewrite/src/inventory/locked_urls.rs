//! The URLs of a lock, in which the URLs of documents are looked up. A lock with packages may have
//! a million URLs.

use landfall_model::{ImageRef, normal_web_url};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The URLs of a lock, each with the name of its item.
#[derive(Debug, Default)]
pub(crate) struct LockedUrls<'a> {
    /// Sorted by URL.
    urls: Vec<(Cow<'a, str>, &'a str)>,
    /// The position of a URL by its host and path. Filled by the first look-up, because few audits
    /// need it.
    locations: OnceLock<BTreeMap<String, usize>>,
    /// The position of a URL by its [`shape`]. Filled by the first look-up.
    shapes: OnceLock<BTreeMap<String, usize>>,
    /// The position of a URL that is not in its normal form, by that form. Filled by the first
    /// look-up.
    normal_forms: OnceLock<BTreeMap<String, usize>>,
}

impl<'a> LockedUrls<'a> {
    pub(crate) fn new(mut urls: Vec<(Cow<'a, str>, &'a str)>) -> LockedUrls<'a> {
        urls.sort_by(|(one, _), (other, _)| one.cmp(other));
        LockedUrls {
            urls,
            ..LockedUrls::default()
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.urls.is_empty()
    }

    /// The item with this URL, or with one that has the same normal form.
    pub(crate) fn item(&self, url: &str) -> Option<&'a str> {
        self.exact_item(url).or_else(|| {
            let normal = normal_web_url(url)?;
            let at = || Some(self.urls[*self.normal_forms().get(&normal)?].1);
            self.exact_item(&normal).or_else(at)
        })
    }

    fn normal_forms(&self) -> &BTreeMap<String, usize> {
        self.normal_forms.get_or_init(|| {
            let urls = self.urls.iter().enumerate();
            let others = urls.filter(|(_, (url, _))| may_have_other_form(url));
            let normal = others.filter_map(|(at, (url, _))| Some((normal_web_url(url)?, at)));
            normal.collect()
        })
    }

    fn exact_item(&self, url: &str) -> Option<&'a str> {
        let at = self.urls.partition_point(|(known, _)| **known < *url);
        let (known, item) = self.urls.get(at)?;
        (known == url).then_some(*item)
    }

    /// The item with this URL, or with this URL and another scheme.
    pub(crate) fn item_at_location(&self, url: &str) -> Option<&'a str> {
        let locations = self
            .locations
            .get_or_init(|| self.positions(|url| without_scheme(url).to_owned()));
        Some(self.urls[*locations.get(without_scheme(url))?].1)
    }

    /// A locked URL that differs from `url` only in its numbers and its scheme.
    pub(crate) fn similar(&self, url: &str) -> Option<&str> {
        let shapes = self.shapes.get_or_init(|| self.positions(shape));
        Some(&self.urls[*shapes.get(&shape(url))?].0)
    }

    /// Maps each result of `form` to the position of the first URL that has it.
    fn positions(&self, form: fn(&str) -> String) -> BTreeMap<String, usize> {
        let mut positions = BTreeMap::new();
        for (at, (url, _)) in self.urls.iter().enumerate() {
            positions.entry(form(url)).or_insert(at);
        }
        positions
    }
}

/// Whether the normal form of a URL may differ from it. Of a million URLs of packages, few do.
fn may_have_other_form(url: &str) -> bool {
    let authority = without_scheme(url).split('/').next().unwrap_or(url);
    url.contains('%')
        || url.contains("/.")
        || authority
            .bytes()
            .any(|byte| byte == b':' || byte.is_ascii_uppercase())
        || url
            .split("://")
            .next()
            .is_some_and(|scheme| scheme != scheme.to_ascii_lowercase())
}

/// The host and path of a URL.
fn without_scheme(url: &str) -> &str {
    url.split_once("://").map_or(url, |(_, rest)| rest)
}

/// The host and path of a URL with all numbers replaced by 0, so that the URLs of two versions of a
/// file become equal.
fn shape(url: &str) -> String {
    let mut shape = String::new();
    for c in without_scheme(url).chars() {
        if !c.is_ascii_digit() {
            shape.push(c);
        } else if !shape.ends_with('0') {
            shape.push('0');
        }
    }
    shape
}

/// Whether a lock contains a reference, URL, package or git repository.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "status", rename_all = "lowercase")]
pub enum LockCoverage {
    /// The lock contains the reference.
    Held {
        /// The name of the item in the lock.
        item: String,
    },
    /// The lock does not contain it.
    Missing {
        /// The image to add, with its upstream host. `None` if the reference is not an
        /// image, or is a destination with no upstream repository or with several.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<ImageRef>,
        /// The URL of the file to add.
        #[serde(skip_serializing_if = "Option::is_none")]
        url: Option<String>,
        /// The reason, as messages show it.
        why: String,
    },
    /// The lock contains the repository, but the reference names neither a host nor a tag: a
    /// rewrite leaves it, and a node pulls the image from its default registry.
    // reports have only three states, so `Ambiguous` is serialized as `undecided`
    #[serde(rename = "undecided")]
    Ambiguous {
        /// The name of the locked item.
        item: String,
        /// The reason, and the fix.
        why: String,
    },
    /// It cannot be decided what the value names or whether the lock contains it, or the manifest
    /// accepts that the image is missing.
    Undecided {
        /// The reason, as messages show it.
        why: String,
    },
}

impl LockCoverage {
    /// Whether a node may pull the image from the internet, although the lock contains the
    /// repository.
    pub fn is_ambiguous(&self) -> bool {
        matches!(self, LockCoverage::Ambiguous { .. })
    }
}

// Facts about public registries: their hosts, and names that no image has.

/// Whether `host` is a public registry or is named like one.
pub(super) fn is_registry(host: &str) -> bool {
    const HOSTS: [&str; 11] = [
        "docker.io",
        "gcr.io",
        "ghcr.io",
        "k8s.gcr.io",
        "mcr.microsoft.com",
        "nvcr.io",
        "public.ecr.aws",
        "quay.io",
        "registry.access.redhat.com",
        "registry.gitlab.com",
        "registry.redhat.io",
    ];
    const ENDINGS: [&str; 4] = [".gcr.io", ".pkg.dev", ".azurecr.io", ".amazonaws.com"];
    let name = host.split(':').next().unwrap_or(host);
    HOSTS.contains(&name)
        || ENDINGS.iter().any(|ending| name.ends_with(ending))
        || ["registry.", "docker."]
            .iter()
            .any(|beginning| name.starts_with(beginning))
}

/// The reason why no registry has an image of this name, if that is certain.
pub(super) fn why_impossible(reference: &ImageRef) -> Option<&'static str> {
    // in these registries, all images are below the name of an owner
    const OWNED: [&str; 5] = [
        "quay.io",
        "ghcr.io",
        "gcr.io",
        "public.ecr.aws",
        "registry.gitlab.com",
    ];
    let ImageRef {
        registry,
        repository,
        ..
    } = reference;
    match repository.strip_prefix("library/") {
        Some(name) if registry == "docker.io" && name.contains('.') => {
            Some("it is the name of a host, and its path is added elsewhere")
        }
        _ if OWNED.contains(&registry.as_str()) && !repository.contains('/') => Some(
            "all images of this registry have at least two path components; the second is added \
             elsewhere",
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_found_by_text_location_and_shape() {
        let urls = [
            "https://h/v2/b",
            "https://h/v1/a",
            "http://h/v1",
            "https://h/v1/",
        ];
        let urls = urls.map(|url| (Cow::Borrowed(url), url));
        let urls = LockedUrls::new(urls.to_vec());
        assert_eq!(urls.item("https://h/v1/a"), Some("https://h/v1/a"));
        assert_eq!(urls.item("https://h/v1/b"), None);
        assert_eq!(urls.item("https://z"), None);
        assert_eq!(urls.item_at_location("https://h/v1"), Some("http://h/v1"));
        assert_eq!(urls.similar("http://h/v10/b"), Some("https://h/v2/b"));
        assert_eq!(urls.similar("http://h/v10/c"), None);
    }

    #[test]
    fn urls_with_one_normal_form_are_the_same() {
        let locked = [
            "https://h.test/%7Euser/a",
            "HTTPS://Up.test:443/b",
            "https://h.test/plain~c",
        ];
        let urls = LockedUrls::new(locked.map(|url| (Cow::Borrowed(url), url)).to_vec());
        for (written, found) in [
            ("https://h.test/~user/a", Some(locked[0])),
            ("https://h.test/%7euser/a", Some(locked[0])),
            ("https://up.test/b", Some(locked[1])),
            ("https://H.test:443/x/../plain%7Ec", Some(locked[2])),
            ("https://h.test/user/a", None),
            ("https://h.test/~user/A", None),
        ] {
            assert_eq!(urls.item(written), found, "{written}");
        }
    }
}
