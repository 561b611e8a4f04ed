//! The targets of a diagnosis: URLs, registries, proxies.

use landfall_http::redacted_url;
use landfall_item::lockfile::Lock;
use landfall_model::config::Site;
use landfall_model::has_userinfo;
use std::fmt;
use std::str::FromStr;
use url::Url;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CheckTarget {
    /// An http or https URL.
    Url(Url),
    /// A registry, written as in references, and a repository, which may be empty.
    Registry(String, String),
    /// The proxies of the site or the environment.
    Proxies,
}

/// Why a text is not a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CheckTargetError {
    /// Neither a URL nor a registry.
    #[error("neither a URL nor HOST[:PORT][/REPOSITORY]")]
    Form,
    /// A URL with a user name or password.
    #[error("a URL with a user name is refused; accounts come from auth files or the site")]
    UserName,
    /// A URL that is neither http nor https.
    #[error("not an http or https URL")]
    Scheme,
}

impl FromStr for CheckTarget {
    type Err = CheckTargetError;

    fn from_str(text: &str) -> Result<CheckTarget, CheckTargetError> {
        if !text.contains("://") {
            let (host, repository) = text.split_once('/').unwrap_or((text, ""));
            let host = host.to_ascii_lowercase();
            return match Url::parse(&format!("https://{host}/")) {
                Ok(url) if url.path() == "/" && !has_userinfo(&url) && !host.is_empty() => Ok(
                    CheckTarget::Registry(host, repository.trim_end_matches('/').into()),
                ),
                _ => Err(CheckTargetError::Form),
            };
        }
        match Url::parse(text) {
            Ok(url) if has_userinfo(&url) => Err(CheckTargetError::UserName),
            Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(CheckTarget::Url(url)),
            _ => Err(CheckTargetError::Scheme),
        }
    }
}

impl fmt::Display for CheckTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CheckTarget::Url(url) => f.write_str(&redacted_url(url)),
            CheckTarget::Registry(host, repository) if repository.is_empty() => f.write_str(host),
            CheckTarget::Registry(host, repository) => write!(f, "{host}/{repository}"),
            CheckTarget::Proxies => f.write_str("proxy"),
        }
    }
}

/// The targets of a site: its proxies, registry, file server and upstreams. If the lock has files,
/// the target at the file server is the first of them.
pub(crate) fn targets_of(site: &Site, lock: Option<&Lock>) -> Vec<CheckTarget> {
    let registry = site.registry.as_ref().and_then(|registry| {
        let target = registry
            .address
            .parse::<landfall_model::TargetRegistry>()
            .ok()?;
        Some(CheckTarget::Registry(target.registry, String::new()))
    });
    let file = lock.and_then(|lock| lock.files.first()?.name.split_once("://"));
    let below = |base: &String| match file {
        Some((_, file)) => format!("{}/{file}", base.trim_end_matches('/')),
        None => base.clone(),
    };
    let files = site
        .files
        .as_ref()
        .and_then(|base| Some(CheckTarget::Url(Url::parse(&below(base)).ok()?)));
    let upstreams = site
        .upstreams
        .keys()
        .map(|host| CheckTarget::Registry(host.clone(), String::new()));
    std::iter::once(CheckTarget::Proxies)
        .chain(registry)
        .chain(files)
        .chain(upstreams)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_parsed_as_people_write_them() {
        let read = |text: &str| text.parse::<CheckTarget>().map(|target| target.to_string());
        assert_eq!(read("Quay.io"), Ok("quay.io".into()));
        assert_eq!(
            read("172.20.0.2:5000/team/app/"),
            Ok("172.20.0.2:5000/team/app".into())
        );
        assert_eq!(
            read("https://dl.k8s.io/x?token=hush"),
            Ok("https://dl.k8s.io/x?…".into())
        );
        assert_eq!(
            read("https://u:p@dl.k8s.io/"),
            Err(CheckTargetError::UserName)
        );
        assert!(read("u:hush@quay.io").is_err() && read(":hush@quay.io").is_err());
        assert!(read("ftp://x/").is_err() && read("").is_err() && read("a b").is_err());
    }
}
