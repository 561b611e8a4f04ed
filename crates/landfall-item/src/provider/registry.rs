//! The provider registry protocol (opentofu.org/docs/internals/provider-registry-protocol): the
//! versions of a provider, and the packages of a version.
//!
//! Answers are untrusted: their size is limited, and they must not lead from a public host to a
//! private address, nor from https to http.

use super::address::{ProviderAddress, ProviderName, ProviderPlatform};
use crate::resolver::{ResolveError, Resolver};
use landfall_model::{Digest, from_json, has_userinfo, keeping_https};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use url::Url;

/// A provider registry that was discovered.
pub(super) struct ProviderRegistry<'r> {
    resolver: &'r Resolver,
    /// The URL below which the registry answers, with a slash at its end.
    base: Url,
}

/// The services of a host, by their names (remote service discovery).
#[derive(Deserialize)]
struct DiscoveredServices {
    #[serde(rename = "providers.v1")]
    providers: Option<String>,
}

#[derive(Deserialize)]
struct OfferedVersions {
    versions: Option<Vec<Value>>,
}

#[derive(Deserialize)]
struct PackageLocation {
    download_url: String,
    shasum: String,
}

/// The URL of the document with the services of `host`.
pub(crate) fn discovery_url(host: &str, scheme: &str) -> String {
    format!("{scheme}://{host}/.well-known/terraform.json")
}

impl<'r> ProviderRegistry<'r> {
    /// Discovers the provider registry of `host`.
    pub(super) async fn discover(
        resolver: &'r Resolver,
        host: &str,
    ) -> Result<ProviderRegistry<'r>, ResolveError> {
        let scheme = if resolver.sessions.is_plain(host) {
            "http"
        } else {
            "https"
        };
        let url = discovery_url(host, scheme);
        let about = format!("the services of {host}");
        let services: DiscoveredServices = document(resolver, &url, &about).await?;
        let path = services.providers.ok_or_else(|| {
            ResolveError::from(format!(
                "{host} has no provider registry: {url} does not name one"
            ))
        })?;
        let base = joined(&url, &format!("{}/", path.trim_end_matches('/')))?;
        resolver
            .sessions
            .check_named_target(base.as_str(), &url)
            .await?;
        Ok(ProviderRegistry { resolver, base })
    }

    /// The versions of a provider, each with its platforms.
    pub(super) async fn versions(
        &self,
        address: &ProviderAddress,
    ) -> Result<BTreeMap<String, BTreeSet<ProviderPlatform>>, ResolveError> {
        let path = format!("{}/{}/versions", address.namespace, address.provider_type);
        let url = joined(self.base.as_str(), &path)?;
        let about = format!("the versions of {address}");
        let offered: OfferedVersions = document(self.resolver, url.as_str(), &about).await?;
        Ok(offered.by_version())
    }

    /// The URL and the digest of the package of a version for one platform.
    pub(super) async fn package(
        &self,
        name: &ProviderName,
        platform: &ProviderPlatform,
    ) -> Result<(Url, Digest), ResolveError> {
        let ProviderAddress {
            namespace,
            provider_type,
            ..
        } = &name.address;
        let ProviderPlatform { os, architecture } = platform;
        let version = &name.version;
        let path = format!("{namespace}/{provider_type}/{version}/download/{os}/{architecture}");
        let at = joined(self.base.as_str(), &path)?;
        let about = format!("its package for {platform}");
        let location: PackageLocation = document(self.resolver, at.as_str(), &about).await?;
        let digest = format!("sha256:{}", location.shasum.to_ascii_lowercase());
        let digest = digest
            .parse()
            .map_err(|_| ResolveError::from("the registry names no SHA-256 of it").about(&about))?;
        let url = joined(at.as_str(), &location.download_url)?;
        self.resolver
            .sessions
            .check_named_target(url.as_str(), at.as_str())
            .await?;
        Ok((url, digest))
    }
}

impl OfferedVersions {
    /// The platforms of each version. Entries and platforms of another form are skipped, since no
    /// request can name them.
    fn by_version(&self) -> BTreeMap<String, BTreeSet<ProviderPlatform>> {
        let entries = self.versions.iter().flatten().filter_map(|entry| {
            let platforms = Option::<Vec<Value>>::deserialize(&entry["platforms"]).ok()?;
            let platforms = platforms.iter().flatten().filter_map(|platform| {
                let (os, arch) = (platform["os"].as_str()?, platform["arch"].as_str()?);
                format!("{os}_{arch}").parse().ok()
            });
            Some((entry["version"].as_str()?.to_owned(), platforms.collect()))
        });
        entries.collect()
    }
}

/// The versions of a provider, sorted as text.
///
/// # Errors
/// If the registry cannot be reached, or does not have the provider.
pub async fn provider_versions(
    resolver: &Resolver,
    address: &ProviderAddress,
) -> Result<Vec<String>, ResolveError> {
    let registry = ProviderRegistry::discover(resolver, &address.host).await?;
    Ok(registry.versions(address).await?.into_keys().collect())
}

/// Downloads and reads a JSON document, once per run. `about` is its name in messages.
async fn document<T: DeserializeOwned>(
    resolver: &Resolver,
    url: &str,
    about: &str,
) -> Result<T, ResolveError> {
    let limit = resolver.limits().document_bytes;
    let bytes = resolver
        .shared_file(url, limit)
        .await
        .map_err(|error| ResolveError::from(error).about(about))?;
    from_json(&bytes).map_err(|error| {
        ResolveError::from(format!("{url} does not answer as a registry: {error}"))
    })
}

/// Resolves `text`, a URL in the document at `base`. Rejects a URL with credentials, a scheme other
/// than http and https, and http of another server if `base` is https.
fn joined(base: &str, text: &str) -> Result<Url, ResolveError> {
    let from = Url::parse(base).ok();
    let url = from
        .as_ref()
        .and_then(|from| Some(keeping_https(from, from.join(text).ok()?)));
    let is_secure = |url: &Url| {
        let is_secure = from.as_ref().is_some_and(|from| from.scheme() == "https");
        let is_downgrade = is_secure && url.scheme() == "http";
        !is_downgrade && matches!(url.scheme(), "http" | "https")
    };
    url.filter(|url| is_secure(url) && url.has_host() && !has_userinfo(url))
        .ok_or_else(|| {
            format!("{base} names '{text}', which is not a valid URL of a registry or file").into()
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_versions_and_platforms_do_not_hide_others() {
        let offered: OfferedVersions = serde_json::from_value(serde_json::json!({"versions": [
            {"version": "0.8.0", "platforms": null},
            {"version": "0.9.0"},
            {"version": null, "platforms": []},
            null,
            {"version": "1.0.0", "platforms": [
                null, {"os": "linux"}, {"os": "li nux", "arch": "amd64"},
                {"os": "linux", "arch": "amd64", "cgo": null},
            ]},
        ]}))
        .unwrap();
        let found = offered.by_version();
        assert_eq!(
            found.keys().collect::<Vec<_>>(),
            ["0.8.0", "0.9.0", "1.0.0"]
        );
        let platforms: Vec<String> = found["1.0.0"].iter().map(ToString::to_string).collect();
        assert_eq!(platforms, ["linux_amd64"]);
        for empty in [r#"{"versions": null}"#, "{}"] {
            let offered: OfferedVersions = serde_json::from_str(empty).unwrap();
            assert!(offered.by_version().is_empty());
        }
    }

    #[test]
    fn named_urls_stay_secure() {
        let at = |text: &str| joined("https://h/v1/a", text).map(|url| url.to_string());
        assert_eq!(at("/v2/").unwrap(), "https://h/v2/");
        assert_eq!(at("b.zip").unwrap(), "https://h/v1/b.zip");
        assert_eq!(at("https://x/b.zip").unwrap(), "https://x/b.zip");
        assert_eq!(at("http://h/b.zip").unwrap(), "https://h/b.zip");
        for bad in [
            "http://x/b.zip",
            "http://h:8080/b.zip",
            "file:///etc/passwd",
            "https://u:p@h/b",
            "oci://h/b",
        ] {
            assert!(at(bad).is_err(), "{bad}");
        }
    }
}
