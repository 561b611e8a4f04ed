//! The provider registry protocol (opentofu.org/docs/internals/provider-registry-protocol): the
//! versions of a provider, and the packages of a version.
//!
//! Answers are untrusted: their size is limited, and they must not lead from a public host to a
//! private address, nor from https to http.

use super::address::{ProviderAddress, ProviderName, ProviderPlatform};
use crate::resolver::{ResolveError, Resolver};
use landfall_model::{Digest, has_userinfo};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use url::Url;

/// A provider registry that was discovered.
pub(super) struct ProviderRegistry<'r> {
    resolver: &'r Resolver,
    /// The URL below which the registry answers, with a slash at its end.
    base: Url,
}

/// A package that a registry offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OfferedPackage {
    /// The URL of the archive.
    pub(super) url: Url,
    /// The digest of the archive according to the registry.
    pub(super) digest: Digest,
}

/// The services of a host, by their names (remote service discovery).
#[derive(Deserialize)]
struct DiscoveredServices {
    #[serde(rename = "providers.v1")]
    providers: Option<String>,
}

#[derive(Deserialize)]
struct OfferedVersions {
    #[serde(default, deserialize_with = "landfall_model::null_as_default")]
    versions: Vec<OfferedProviderVersion>,
}

#[derive(Deserialize)]
struct OfferedProviderVersion {
    #[serde(default, deserialize_with = "landfall_model::null_as_default")]
    version: String,
    #[serde(default, deserialize_with = "landfall_model::null_as_default")]
    platforms: Vec<OfferedPlatform>,
}

#[derive(Deserialize)]
struct OfferedPlatform {
    #[serde(default, deserialize_with = "landfall_model::null_as_default")]
    os: String,
    #[serde(default, deserialize_with = "landfall_model::null_as_default")]
    arch: String,
}

#[derive(Deserialize)]
struct PackageLocation {
    download_url: String,
    shasum: String,
}

/// The URL of the document with the services of `host`.
pub(super) fn discovery_url(host: &str, scheme: &str) -> String {
    format!("{scheme}://{host}/.well-known/terraform.json")
}

impl<'r> ProviderRegistry<'r> {
    /// Discovers the provider registry of `host`.
    pub(super) async fn discover(
        resolver: &'r Resolver,
        host: &str,
    ) -> Result<ProviderRegistry<'r>, ResolveError> {
        let scheme = if resolver.sessions().is_plain(host) {
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
            .sessions()
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
        let versions = offered.versions.into_iter().map(|one| {
            let platforms = one.platforms.iter();
            // a platform with an invalid name is skipped, since no request can name it
            let platforms = platforms
                .filter_map(|platform| format!("{}_{}", platform.os, platform.arch).parse().ok());
            (one.version, platforms.collect())
        });
        Ok(versions.collect())
    }

    /// The package of a version for one platform.
    pub(super) async fn package(
        &self,
        name: &ProviderName,
        platform: &ProviderPlatform,
    ) -> Result<OfferedPackage, ResolveError> {
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
            .sessions()
            .check_named_target(url.as_str(), at.as_str())
            .await?;
        Ok(OfferedPackage { url, digest })
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
    serde_json::from_slice(&bytes).map_err(|error| {
        ResolveError::from(format!("{url} does not answer as a registry: {error}"))
    })
}

/// Resolves `text`, a URL in the document at `base`. Rejects a URL with credentials, a scheme other
/// than http and https, and http if `base` is https.
fn joined(base: &str, text: &str) -> Result<Url, ResolveError> {
    let from = Url::parse(base).ok();
    let url = from.as_ref().and_then(|from| from.join(text).ok());
    let is_secure = |url: &Url| {
        let is_downgrade = base.starts_with("https:") && url.scheme() == "http";
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
    fn named_urls_stay_secure() {
        let at = |text: &str| joined("https://h/v1/a", text).map(|url| url.to_string());
        assert_eq!(at("/v2/").unwrap(), "https://h/v2/");
        assert_eq!(at("b.zip").unwrap(), "https://h/v1/b.zip");
        assert_eq!(at("https://x/b.zip").unwrap(), "https://x/b.zip");
        for bad in [
            "http://h/b.zip",
            "file:///etc/passwd",
            "https://u:p@h/b",
            "oci://h/b",
        ] {
            assert!(at(bad).is_err(), "{bad}");
        }
    }
}
