//! Names of providers: source addresses, versions and platforms.
//!
//! Parts of names become paths of exported files, so each has a strict form.

use landfall_model::{Failure, Platform, is_repository_component, serde_as_text, split_optional};
use std::str::FromStr;

/// The source address of a provider, as in `registry.opentofu.org/hashicorp/aws`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, derive_more::Display)]
#[display("{host}/{namespace}/{provider_type}")]
pub struct ProviderAddress {
    /// The host of the provider registry, with the port if one is written.
    pub host: String,
    /// The namespace, as in `hashicorp`.
    pub namespace: String,
    /// The type, as in `aws`.
    pub provider_type: String,
}

impl FromStr for ProviderAddress {
    type Err = ();

    fn from_str(text: &str) -> Result<ProviderAddress, ()> {
        let [host, namespace, provider_type] = text
            .split('/')
            .collect::<Vec<_>>()
            .try_into()
            .map_err(drop)?;
        if !is_host(host) || !is_name(namespace) || !is_name(provider_type) {
            return Err(());
        }
        Ok(ProviderAddress {
            host: host.to_owned(),
            namespace: namespace.to_owned(),
            provider_type: provider_type.to_owned(),
        })
    }
}

/// Whether `text` is a namespace or a type.
fn is_name(text: &str) -> bool {
    is_repository_component(text) && !text.contains('.')
}

/// Whether `text` is a host name in lower case or an IPv4 address, with or without a port.
fn is_host(text: &str) -> bool {
    match text.split_once(':') {
        Some((name, port)) => is_host_name(name) && is_port(port),
        None => is_host_name(text),
    }
}

fn is_host_name(name: &str) -> bool {
    name.split('.')
        .all(|label| is_repository_component(label) && !label.contains('_'))
}

fn is_port(text: &str) -> bool {
    // leading zeros and signs are rejected, so that each port has one form
    text.parse::<u16>()
        .is_ok_and(|port| port.to_string() == text)
}

/// The name of a version of a provider, as in
/// `provider:registry.opentofu.org/hashicorp/aws:5.1.0`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, derive_more::Display)]
#[display("{text}")]
pub struct ProviderName {
    text: String,
    /// The source address.
    pub address: ProviderAddress,
    /// The version, without a leading `v`.
    pub version: String,
}

serde_as_text!(ProviderName);

impl ProviderName {
    /// The text before the source address. It distinguishes names of providers from names of other
    /// items.
    pub(crate) const PREFIX: &'static str = "provider:";

    /// The name of a version. `None` if `version` is not a version.
    pub(super) fn new(address: ProviderAddress, version: &str) -> Option<ProviderName> {
        is_version(version).then(|| ProviderName {
            text: format!("{}{address}:{version}", ProviderName::PREFIX),
            address,
            version: version.to_owned(),
        })
    }

    /// The name as the lock writes it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The file name of the package for `platform`, as mirrors name it.
    pub(super) fn package_file(&self, platform: &ProviderPlatform) -> String {
        let ProviderName {
            address, version, ..
        } = self;
        let provider_type = &address.provider_type;
        format!("terraform-provider-{provider_type}_{version}_{platform}.zip")
    }
}

impl FromStr for ProviderName {
    type Err = Failure;

    fn from_str(text: &str) -> Result<ProviderName, Failure> {
        let parts = text
            .strip_prefix(ProviderName::PREFIX)
            .and_then(|name| name.rsplit_once(':'));
        parts
            .and_then(|(address, version)| ProviderName::new(address.parse().ok()?, version))
            .ok_or_else(|| {
                Failure::usage(format!(
                    "'{}' is not a provider; write provider:<host>/<namespace>/<type>:<version>",
                    text.escape_debug()
                ))
            })
    }
}

/// Whether `text` is a semantic version with three numbers.
fn is_version(text: &str) -> bool {
    let (rest, build) = split_optional(text, '+');
    let (numbers, pre) = split_optional(rest, '-');
    let numbers: Vec<&str> = numbers.split('.').collect();
    text.len() <= 100
        && numbers.len() == 3
        && numbers
            .iter()
            .all(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
        && [pre, build].into_iter().flatten().all(is_identifiers)
}

/// Whether `text` is a pre-release or build: identifiers with dots between them.
fn is_identifiers(text: &str) -> bool {
    text.split('.').all(|part| {
        !part.is_empty()
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    })
}

/// A platform as providers name it, as in `linux_amd64`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, derive_more::Display)]
#[display("{os}_{architecture}")]
pub struct ProviderPlatform {
    /// The operating system, by Go's name.
    pub os: String,
    /// The architecture, by Go's name.
    pub architecture: String,
}

serde_as_text!(ProviderPlatform);

impl FromStr for ProviderPlatform {
    type Err = Failure;

    fn from_str(text: &str) -> Result<ProviderPlatform, Failure> {
        match text.split_once('_') {
            Some((os, architecture)) if is_word(os) && is_word(architecture) => {
                Ok(ProviderPlatform {
                    os: os.to_owned(),
                    architecture: architecture.to_owned(),
                })
            }
            _ => Err(Failure::usage(format!(
                "'{}' is not a platform of a provider, such as linux_amd64",
                text.escape_debug()
            ))),
        }
    }
}

impl From<&Platform> for ProviderPlatform {
    /// The same platform without its variant, which providers do not have.
    fn from(platform: &Platform) -> ProviderPlatform {
        ProviderPlatform {
            os: platform.os.clone(),
            architecture: platform.architecture.clone(),
        }
    }
}

fn is_word(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    !text.is_empty() && text.bytes().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_one_form() {
        for good in [
            "provider:registry.opentofu.org/hashicorp/aws:5.1.0",
            "provider:127.0.0.1:8443/my-org/my_type:1.0.0-rc.1+b-2",
            "provider:localhost/a/b:0.0.1",
        ] {
            let name = good.parse::<ProviderName>().unwrap();
            assert_eq!((name.as_str(), name.to_string()), (good, good.to_owned()));
        }
        for bad in [
            "registry.opentofu.org/hashicorp/aws:5.1.0",
            "provider:hashicorp/aws:5.1.0",
            "provider:h/hashicorp/aws:v5.1.0",
            "provider:h/hashicorp/aws:5.1",
            "provider:h/hashicorp/aws:5.1.0/..",
            "provider:h/../aws:5.1.0",
            "provider:h//aws:5.1.0",
            "provider:../a/b:5.1.0",
            "provider:h:/a/b:5.1.0",
            "provider:h:080/a/b:5.1.0",
            "provider:H/a/b:5.1.0",
            "provider:h/a/b c:5.1.0",
            "provider:h/a/b:5.1.0-",
            "provider:h/a/b:5.1.0\n",
        ] {
            assert!(bad.parse::<ProviderName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn platforms_have_two_words() {
        assert_eq!(
            "linux_amd64"
                .parse::<ProviderPlatform>()
                .unwrap()
                .to_string(),
            "linux_amd64"
        );
        for bad in [
            "linux",
            "linux/amd64",
            "linux_",
            "_amd64",
            "a_b_c",
            "a_..",
            "Linux_amd64",
        ] {
            assert!(bad.parse::<ProviderPlatform>().is_err(), "{bad}");
        }
    }
}
