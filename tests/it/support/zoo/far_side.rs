//! A registry that the zoo delivers to: one that behaves as a profile says, or a real one.

use super::Profile;
use crate::support::faults::{Content, Faults, Rule, Settings};
use crate::support::http::{self, ACCEPT, Response};
use crate::support::images::{OCI_CONFIG, OCI_INDEX, OCI_MANIFEST, sha256};
use serde_json::{Value, json};
use std::any::Any;

/// The number of tags that [`FarSide::add_old_tags`] adds: more than a page of most lists.
const OLD_TAGS: usize = 120;

pub enum FarSide {
    Own(Faults),
    Real(RealRegistry),
}

/// A running registry.
pub struct RealRegistry {
    /// `127.0.0.1:port`.
    pub(super) address: String,
    /// The account, as `user:password`.
    pub(super) account: Option<&'static str>,
    /// Keeps the registry running.
    _running: Box<dyn Any>,
}

impl FarSide {
    /// The real registry at `address`, which runs as long as `running` is kept. Its account is
    /// `user:password`.
    pub fn real(address: String, account: Option<&'static str>, running: impl Any) -> FarSide {
        FarSide::Real(RealRegistry {
            address,
            account,
            _running: Box::new(running),
        })
    }

    /// A registry that behaves as the profile says.
    pub fn own(profile: &Profile, content: Content) -> FarSide {
        let registry = Faults::new(content);
        registry.set(Settings {
            rules: profile.rules(),
            ..Settings::default()
        });
        FarSide::Own(registry)
    }

    /// Like [`FarSide::own`], but requests need no token.
    pub fn without_token(profile: &Profile) -> FarSide {
        let registry = Faults::new(Content::default());
        let rules = profile.rules();
        let rules = rules.iter().filter(|rule| !matches!(rule, Rule::Token(_)));
        registry.set(Settings {
            rules: rules.cloned().collect(),
            ..Settings::default()
        });
        FarSide::Own(registry)
    }

    pub fn address(&self) -> &str {
        match self {
            FarSide::Own(faults) => &faults.address,
            FarSide::Real(real) => &real.address,
        }
    }

    /// Forgets the requests so far.
    pub fn forget_requests(&self) {
        if let FarSide::Own(faults) = self {
            faults.set_faults([]);
        }
    }

    /// The successful uploads to repositories other than `lost`; nothing is known about a real
    /// registry.
    pub fn uploads(&self, lost: &[String]) -> Vec<String> {
        let FarSide::Own(faults) = self else {
            return Vec::new();
        };
        faults.wait_for_closed_connections();
        let seen = faults.seen().into_iter().filter(|seen| {
            let is_upload = ["PUT", "PATCH", "POST"].contains(&seen.method.as_str());
            let is_lost = lost
                .iter()
                .any(|lost| seen.path.starts_with(&format!("/v2/{lost}/")));
            is_upload && seen.status < 300 && !is_lost
        });
        seen.map(|seen| format!("{} {}", seen.method, seen.path))
            .collect()
    }

    /// The digest that a tag points to.
    pub fn digest(&self, repository: &str, tag: &str) -> Option<String> {
        match self {
            FarSide::Own(faults) => {
                let key = (repository.to_owned(), tag.to_owned());
                faults.content(|content| content.tags.get(&key).cloned())
            }
            FarSide::Real(_) => {
                let target = format!("/v2/{repository}/manifests/{tag}");
                let found = self.request("GET", &target, &[("Accept", ACCEPT)], b"");
                (found.status == 200).then(|| sha256(&found.body))
            }
        }
    }

    /// Whether a referrer of `repository:v1` is listed, by the API or under the tag for it.
    pub fn lists_referrer(&self, repository: &str, profile: &Profile) -> bool {
        let Some(subject) = self.digest(repository, "v1") else {
            return false;
        };
        let tag = subject.replace(':', "-");
        let list = match self {
            FarSide::Own(faults) => {
                let content = faults.content_copy();
                let own = content
                    .manifests
                    .iter()
                    .filter(|((own, _), _)| own == repository);
                let list = content.tags.get(&(repository.to_owned(), tag));
                let counts = |digest: &String, bytes: &[u8]| {
                    let about = profile.has_referrers_api() || list == Some(digest);
                    about.then(|| serde_json::from_slice::<Value>(bytes).unwrap_or_default())
                };
                let counted = own.filter_map(|((_, digest), (_, bytes))| counts(digest, bytes));
                return counted.into_iter().any(|document| {
                    let entries = document["manifests"].as_array().map_or(0, Vec::len);
                    document["subject"]["digest"] == *subject || list.is_some() && entries > 0
                });
            }
            FarSide::Real(_) if profile.has_referrers_api() => format!("referrers/{subject}"),
            FarSide::Real(_) => format!("manifests/{tag}"),
        };
        let target = format!("/v2/{repository}/{list}");
        let found = self.request("GET", &target, &[("Accept", ACCEPT)], b"");
        let document: Value = serde_json::from_slice(&found.body).unwrap_or_default();
        document["manifests"]
            .as_array()
            .is_some_and(|list| !list.is_empty())
    }

    /// Adds tags that all point to one index that no lock has.
    pub fn add_old_tags(&self, repository: &str) {
        let tags = (0..OLD_TAGS).map(|number| format!("old-{number}"));
        match self {
            FarSide::Own(faults) => faults.content(|content| {
                let old = content.image(repository, "linux/amd64", &[(20, 100)]);
                let old = content.index(repository, &[old]);
                for tag in tags {
                    content.tag(repository, &tag, &old);
                }
            }),
            FarSide::Real(_) => {
                let config = br#"{"os":"linux","architecture":"amd64","rootfs":{"type":"layers","diff_ids":[]}}"#;
                let digest = self.put_blob(repository, config);
                let manifest = json!({
                    "schemaVersion": 2, "mediaType": OCI_MANIFEST, "layers": [],
                    "config": {"mediaType": OCI_CONFIG, "digest": digest, "size": config.len()},
                });
                let child = manifest.to_string();
                let digest = sha256(child.as_bytes());
                let put = self.put_manifest(repository, &digest, OCI_MANIFEST, child.as_bytes());
                assert!(put.status < 300, "{digest}: {}", put.text());
                let child = json!({
                    "mediaType": OCI_MANIFEST, "digest": digest, "size": child.len(),
                    "platform": {"os": "linux", "architecture": "amd64"},
                });
                let index = json!({
                    "schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [child],
                });
                for tag in tags {
                    let bytes = index.to_string();
                    let put = self.put_manifest(repository, &tag, OCI_INDEX, bytes.as_bytes());
                    assert!(put.status < 300, "{tag}: {}", put.text());
                }
            }
        }
    }

    /// How many tags of [`FarSide::add_old_tags`] are there.
    pub fn old_tags(&self, repository: &str) -> usize {
        let tags = (0..OLD_TAGS).map(|number| format!("old-{number}"));
        tags.filter(|tag| self.digest(repository, tag).is_some())
            .count()
    }

    /// Sends a request with the account.
    pub fn request(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Response {
        use base64::Engine as _;
        let account = match self {
            FarSide::Real(real) => real.account,
            FarSide::Own(_) => None,
        };
        let basic = account.map(|account| {
            let encoded = base64::engine::general_purpose::STANDARD.encode(account);
            format!("Basic {encoded}")
        });
        let basic = basic.as_deref().map(|value| ("Authorization", value));
        let headers: Vec<(&str, &str)> = headers.iter().copied().chain(basic).collect();
        http::request(method, self.address(), target, &headers, body)
    }

    /// Uploads a blob, and returns its digest.
    pub fn put_blob(&self, repository: &str, bytes: &[u8]) -> String {
        let digest = sha256(bytes);
        let begun = self.request(
            "POST",
            &format!("/v2/{repository}/blobs/uploads/"),
            &[],
            b"",
        );
        assert_eq!(begun.status, 202, "{repository}: {}", begun.text());
        let location = path_of(begun.header("location").unwrap_or_default());
        let joint = if location.contains('?') { '&' } else { '?' };
        let octets = [("Content-Type", "application/octet-stream")];
        let target = format!("{location}{joint}digest={digest}");
        let put = self.request("PUT", &target, &octets, bytes);
        assert!(put.status < 300, "{repository}: {}", put.text());
        digest
    }

    pub fn put_manifest(
        &self,
        repository: &str,
        reference: &str,
        media_type: &str,
        bytes: &[u8],
    ) -> Response {
        let target = format!("/v2/{repository}/manifests/{reference}");
        self.request("PUT", &target, &[("Content-Type", media_type)], bytes)
    }
}

/// The path and query of a URL or path.
pub fn path_of(location: &str) -> &str {
    let rest = location
        .split_once("://")
        .map(|(_, rest)| &rest[rest.find('/').unwrap_or(0)..]);
    rest.unwrap_or(location)
}
