//! `tofu`: CLI configuration with which OpenTofu and Terraform install the locked providers from
//! the mirror.

use crate::platform::{OutputForm, PlatformSetting, RenderPlatform, RenderRequest, RenderedConfig};
use crate::rendered_file::{header, quoted_string};
use landfall_item::{LockedItem, LockedProvider};
use landfall_model::Failure;
use std::collections::{BTreeMap, BTreeSet};

const FROM: PlatformSetting = PlatformSetting::new(
    "from",
    "WORD",
    "Where providers are installed from: a network mirror such as `landfall serve`, or the \
           registry to which `landfall push` delivered them (OpenTofu 1.10 or newer)",
)
.one_of(&[NETWORK, REGISTRY]);

const URL: PlatformSetting = PlatformSetting::new(
    "url",
    "URL",
    "The https server that has the mirror at /providers/, such as https://mirror:5000 of \
           `landfall serve` [default: `files` of the site]",
);

const OTHERS: PlatformSetting = PlatformSetting::new(
    "others",
    "WORD",
    "Whether other providers are refused (off) or installed from their registries (stay)",
)
.one_of(&["off", "stay"]);

const NETWORK: &str = "network";
const REGISTRY: &str = "registry";

/// A `network_mirror` or an `oci_mirror` with the providers that it has.
struct MirrorBlock {
    /// The name of the block.
    kind: &'static str,
    /// The argument with the location, and its value.
    location: (&'static str, String),
    providers: BTreeSet<String>,
}

pub(super) static PLATFORM: RenderPlatform = RenderPlatform {
    name: "tofu",
    about: "configuration of OpenTofu and Terraform that installs providers from the \
            mirror",
    details: "Name the file in the variable TF_CLI_CONFIG_FILE, or write it to \
              ~/.tofurc or ~/.terraformrc.",
    settings: &[FROM, URL, OTHERS],
    writes: OutputForm::Text {
        out: "Write the configuration to this file instead of stdout",
    },
    needs_registry: false,
    ..RenderPlatform::new(render)
};

fn render(request: &RenderRequest<'_>) -> Result<RenderedConfig, Failure> {
    let providers = &request.lock.providers;
    if providers.is_empty() {
        let notes = vec!["the lock has no providers, so there is nothing to write".into()];
        return Ok(RenderedConfig::of_text(String::new(), notes));
    }
    let mirrors = match request.settings.get(FROM.key) {
        Some(REGISTRY) => registry_mirrors(request)?,
        _ => vec![network_mirror(request)?],
    };
    let mut text = header("landfall render tofu") + "provider_installation {\n";
    text.extend(mirrors.iter().map(MirrorBlock::text));
    if request.settings.get(OTHERS.key) == Some("stay") {
        let excluded = list(&addresses(providers.iter()));
        text += &format!("  direct {{\n    exclude = {excluded}\n  }}\n");
    }
    text += "}\n";
    Ok(RenderedConfig::of_text(text, Vec::new()))
}

fn network_mirror(request: &RenderRequest<'_>) -> Result<MirrorBlock, Failure> {
    let url = request.settings.get(URL.key).or(request.file_server());
    let url = url
        .filter(|url| url.starts_with("https://"))
        .ok_or_else(|| {
            Failure::usage(
            "nothing names an https server with the providers, and OpenTofu and Terraform require \
             https; use --set url=https://HOST:PORT, and `landfall serve` with --tls-cert and \
             --tls-key",
        )
        })?;
    let url = format!("{}/providers/", url.trim_end_matches('/'));
    Ok(MirrorBlock {
        kind: "network_mirror",
        location: ("url", quoted(&url)),
        providers: addresses(request.lock.providers.iter()),
    })
}

/// Returns a mirror for each provider host, because the path in the registry contains the host.
fn registry_mirrors(request: &RenderRequest<'_>) -> Result<Vec<MirrorBlock>, Failure> {
    if request.target.is_none() {
        return Err(Failure::usage(
            "nothing names a registry with the providers; add `registry.address` to the site, or \
             use --to REGISTRY",
        ));
    }
    let mut mirrors: BTreeMap<&str, MirrorBlock> = BTreeMap::new();
    for provider in &request.lock.providers {
        let address = &provider.name.address;
        let below = format!("/{}/{}", address.namespace, address.provider_type);
        let destinations = LockedItem::Provider(provider).destinations(request.mapping);
        for to in destinations.iter().map(ToString::to_string) {
            let base = to.strip_suffix(&below).unwrap_or(&to);
            // OpenTofu fills in `namespace` and `type`
            let base = quoted(base);
            let template = format!("{}/${{namespace}}/${{type}}\"", base.trim_end_matches('"'));
            let mirror = mirrors
                .entry(address.host.as_str())
                .or_insert_with(|| MirrorBlock {
                    kind: "oci_mirror",
                    location: ("repository_template", template),
                    providers: BTreeSet::new(),
                });
            mirror.providers.insert(address.to_string());
        }
    }
    Ok(mirrors.into_values().collect())
}

impl MirrorBlock {
    fn text(&self) -> String {
        let MirrorBlock {
            kind,
            location: (argument, location),
            providers,
        } = self;
        let include = "include";
        let listed = list(providers);
        let width = argument.len().max(include.len());
        format!(
            "  {kind} {{\n    {argument:<width$} = {location}\n    {include:<width$} = {listed}\n  }}\n"
        )
    }
}

/// The source addresses of `providers`.
fn addresses<'l>(providers: impl Iterator<Item = &'l LockedProvider>) -> BTreeSet<String> {
    providers
        .map(|provider| provider.name.address.to_string())
        .collect()
}

fn list(texts: &BTreeSet<String>) -> String {
    let texts: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
    format!("[{}]", texts.join(", "))
}

/// Returns an HCL string without templates: a JSON string in which `${` and `%{` are escaped.
fn quoted(text: &str) -> String {
    quoted_string(text)
        .replace("${", "$${")
        .replace("%{", "%%{")
}
