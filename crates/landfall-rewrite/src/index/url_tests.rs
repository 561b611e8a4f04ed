//! URLs with placeholders, each with the result of looking it up.

use super::{ReferenceIndex, UrlPattern};
use crate::ReferenceMeaning;
use landfall_item::lockfile::Lock;
use landfall_model::{DestinationMap, Digest};

const PLUGINS: &str =
    "https://github.com/cni/plugins/releases/download/v1/cni-plugins-amd64-v1.tgz";
const KUBELET: &str = "https://dl.k8s.io/v1/bin/amd64/kubelet";

fn known() -> ReferenceIndex {
    let file = |url| {
        format!(
            "- {{name: '{url}', digest: {}, size: 1}}\n",
            Digest::sha256(b"x")
        )
    };
    let lock = format!(
        "version: 1\nimages: []\nfiles:\n{}{}",
        file(PLUGINS),
        file(KUBELET)
    );
    let lock = Lock::parse("l", &lock).unwrap();
    ReferenceIndex::new(&lock, &DestinationMap::to("r:5".parse().unwrap())).with_files("http://f")
}

/// The result of looking up a URL with `*` for each placeholder: the locked URLs that it matches,
/// or the reason why it is not changed.
fn looked_up(url: &str) -> Result<Vec<String>, String> {
    let mut parts = url.split('*');
    let pattern = UrlPattern {
        head: parts.next().unwrap(),
        rest: parts.collect(),
    };
    match known().lookup_url(&pattern) {
        ReferenceMeaning::Known { reaches, .. } => Ok(reaches),
        ReferenceMeaning::Left(why) => Err(why),
        other => Err(format!("{other:?}")),
    }
}

#[test]
fn a_placeholder_matches_within_one_path_component() {
    for (url, reached) in [
        (
            "https://github.com/cni/plugins/releases/download/*/cni-plugins-*-*.tgz",
            PLUGINS,
        ),
        (
            "https://github.com/*/*/releases/download/*/cni-plugins-*.tgz",
            PLUGINS,
        ),
        (
            "https://github.com/cni/plugins/releases/download/v*",
            PLUGINS,
        ),
        (
            "https://github.com/cni/plugins/releases/download/*/",
            PLUGINS,
        ),
        (
            "https://github.com/cni/plugins/releases/download/v1/*",
            PLUGINS,
        ),
        ("https://dl.k8s.io/*/bin/*", KUBELET),
        ("https://dl.k8s.io/*/bin/*/kube*", KUBELET),
        ("https://dl.k8s.io/v1*/bin/amd64/kubelet", KUBELET),
    ] {
        assert_eq!(looked_up(url), Ok(vec![reached.to_owned()]), "{url}");
    }
}

#[test]
fn a_pattern_that_matches_no_locked_url_is_not_changed() {
    let below = Err(
        "it is a folder of locked files, and the rest of the URL is added elsewhere".to_owned(),
    );
    for url in [
        "https://github.com/*",
        "https://github.com/*/plugins",
        "https://dl.k8s.io/*",
        "https://dl.k8s.io/*/bin/",
    ] {
        assert_eq!(looked_up(url), below, "{url}");
    }
    let none =
        Err("the lock has URLs with this beginning, but none that this URL can match".to_owned());
    for url in [
        "https://github.com/*/releases",
        "https://github.com/*/*/archive/*.tgz",
        "https://dl.k8s.io/*/kubelet",
        "https://dl.k8s.io/*/bin/amd64/kube",
        "https://dl.k8s.io/v1/bin/amd64/kubelet*x",
    ] {
        assert_eq!(looked_up(url), none, "{url}");
    }
    for url in [
        "https://gith*",
        "https://other.org/*",
        "http://dl.k8s.io/*",
        "https://dl.k8s.io/v1/bin/amd64/kubelet/*",
    ] {
        assert_eq!(looked_up(url), Err("Unknown".to_owned()), "{url}");
    }
}
