//! What a request asks a registry or a file server for: the path of the request as a name that a
//! manifest or lock can have. `landfall serve` names its misses in this way, and access logs of
//! other servers are read with it.

use landfall_model::report::EntryKind;
use landfall_model::{LOCAL_PREFIX, has_host_characters, is_repository, is_tag};
use percent_encoding::percent_decode_str;
use serde::Deserialize;

/// The folders of `landfall serve` below which files are available as HOST/PATH.
const FILE_FOLDERS: [&str; 3] = ["/files/", "/apt/", "/yum/"];

/// The maximum length of a name in bytes. Longer names are not names that anything can have:
/// repositories have 255 characters at most (distribution/reference).
const MAX_NAME: usize = 1024;

/// The maximum length of a host in bytes: a DNS name (RFC 1035, section 2.3.4) and a port.
const MAX_HOST: usize = 253 + ":65535".len();

/// The name of what a request asks for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub struct RequestedName {
    /// The kind of item: an image (or another artifact of a registry), a file, a chart, a git
    /// repository or a provider.
    pub kind: EntryKind,
    /// The name as the client means it: `quay.io/app:v1` if the request says for which host it
    /// stands in (`ns`), `app:v1` otherwise; the URL of a file; the path of anything else.
    pub name: String,
    /// The host that the client means, if the request says it.
    #[serde(skip)]
    pub host: Option<String>,
}

impl RequestedName {
    /// Reads the target of a request: a path and perhaps a query. `host` is the host that the
    /// client means if the query does not name one. `None` if the request is not for an item, or
    /// if its name is not valid.
    pub fn of_target(target: &str, host: Option<&str>) -> Option<RequestedName> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let path = percent_decode_str(path).decode_utf8().ok()?;
        // a control character is in no name, and could imitate lines of an output
        if path.len() > MAX_NAME || path.chars().any(char::is_control) {
            return None;
        }
        let host =
            namespace(query).or_else(|| host.filter(|host| is_host(host)).map(str::to_owned));
        let named = |kind, name: String| {
            let host = host.clone();
            Some(RequestedName { kind, name, host })
        };
        if let Some(resource) = path.strip_prefix("/v2/") {
            let (repository, reference) = image(resource)?;
            let separator = if reference.contains(':') { '@' } else { ':' };
            let image = format!("{repository}{separator}{reference}");
            return match &host {
                Some(host) => named(EntryKind::Image, format!("{host}/{image}")),
                None => named(EntryKind::Image, image),
            };
        }
        let below = |folder: &str| path.strip_prefix(folder).filter(|rest| !rest.is_empty());
        if let Some(file) = FILE_FOLDERS.iter().find_map(|folder| below(folder)) {
            let name = match file.strip_prefix("local/") {
                Some(path) => format!("{LOCAL_PREFIX}{path}"),
                None => format!("https://{file}"),
            };
            named(EntryKind::File, name)
        } else if let Some(chart) = below("/charts/") {
            named(EntryKind::Chart, chart.to_owned())
        } else if let Some(provider) = below("/providers/") {
            named(EntryKind::Provider, provider.to_owned())
        } else if let Some(git) = below("/git/") {
            let end = git.find(".git/").map_or(git.len(), |at| at + ".git".len());
            named(EntryKind::Git, format!("https://{}", &git[..end]))
        } else {
            named(EntryKind::File, format!("https://{}{path}", host.as_ref()?))
        }
    }
}

/// The repository and the tag or digest of a resource of the distribution API. Requests for blobs
/// and uploads are none: they follow a manifest, or belong to a push.
fn image(resource: &str) -> Option<(&str, &str)> {
    let (front, reference) = resource.rsplit_once('/')?;
    let repository = front.strip_suffix("/manifests")?;
    let is_reference = is_tag(reference) || reference.parse::<landfall_model::Digest>().is_ok();
    (is_repository(repository) && is_reference).then_some((repository, reference))
}

/// Returns the parameter `ns` of a query, by which containerd names the host that a mirror stands
/// in for. `None` if there is none, or if it is not a host.
pub fn namespace(query: &str) -> Option<String> {
    let mut values = url::form_urlencoded::parse(query.as_bytes());
    let (_, host) = values.find(|(key, _)| key == "ns")?;
    is_host(&host).then(|| host.into_owned())
}

fn is_host(host: &str) -> bool {
    host.len() <= MAX_HOST && has_host_characters(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_as_names_of_items() {
        let digest = format!("sha256:{}", "a".repeat(64));
        let with_digest = format!("/v2/a/b/manifests/{digest}");
        for (target, host, kind, name) in [
            (
                "/v2/library/nginx/manifests/1.27?ns=docker.io",
                None,
                EntryKind::Image,
                "docker.io/library/nginx:1.27".to_owned(),
            ),
            (
                "/v2/app/manifests/v1",
                None,
                EntryKind::Image,
                "app:v1".into(),
            ),
            (
                "/v2/app/manifests/v1",
                Some("quay.io"),
                EntryKind::Image,
                "quay.io/app:v1".into(),
            ),
            (
                &with_digest,
                None,
                EntryKind::Image,
                format!("a/b@{digest}"),
            ),
            (
                "/files/dl.k8s.io/v1.35.0/kubelet",
                None,
                EntryKind::File,
                "https://dl.k8s.io/v1.35.0/kubelet".into(),
            ),
            (
                "/v1.35.0/kube%6cet",
                Some("dl.k8s.io"),
                EntryKind::File,
                "https://dl.k8s.io/v1.35.0/kubelet".into(),
            ),
            (
                "/charts/app-1.0.tgz",
                None,
                EntryKind::Chart,
                "app-1.0.tgz".into(),
            ),
            (
                "/git/example.com/r.git/info/refs?service=git-upload-pack",
                None,
                EntryKind::Git,
                "https://example.com/r.git".into(),
            ),
        ] {
            let requested = RequestedName::of_target(target, host).unwrap();
            assert_eq!((requested.kind, requested.name), (kind, name));
        }
        let long = format!("/files/{}", "a".repeat(2000));
        for target in [
            "/favicon.ico",
            "/v2/",
            "/v2/app/blobs/sha256:00",
            "/v2/app/blobs/uploads/",
            "/v2/APP/manifests/v1",
            "/v2/../manifests/v1",
            "/files/",
            "/files/a%0ab",
            "/files/%ff",
            &long,
        ] {
            assert_eq!(RequestedName::of_target(target, None), None, "{target}");
        }
    }

    #[test]
    fn a_namespace_that_is_no_host_is_ignored() {
        let name = RequestedName::of_target("/v2/a/manifests/v1?ns=%3Cb%3E/x", None);
        assert_eq!(name.map(|requested| requested.name), Some("a:v1".into()));
        // what a list of misses keeps of a request is bounded
        let long = "a".repeat(2000);
        let target = format!("/v2/a/manifests/v1?ns={long}");
        let requested = RequestedName::of_target(&target, Some(&long)).unwrap();
        assert_eq!((requested.name.as_str(), requested.host), ("a:v1", None));
    }
}
