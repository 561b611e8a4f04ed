//! The platform `talos`: its command line, the installer and the proxy.

use super::super::containerd::other_accounts;
use super::machine_config::{TalosVersion, VERSION, patch, talos_document};
use super::registry_patch::{credentials_file, registry_documents};
use crate::error::RenderError;
use crate::host_mirrors::host_mirrors;
use crate::kubernetes_objects::map;
use crate::no_proxy::NoProxyDialect;
use crate::platform::{OutputForm, PlatformSpec, RenderPlatform, RenderedConfig, RenderedOutput};
use crate::pod_proxy::PodProxy;
use crate::rendered_file::RenderedFile;
use crate::request::RenderRequest;
use crate::settings::{PlatformSetting, SITE_CLUSTER};
use landfall_model::{Consumer, ImageRef};

pub(in crate::platforms) struct TalosPlatform;

const INSTALLER: PlatformSetting = PlatformSetting {
    key: "installer",
    value_name: "IMAGE",
    help: "The locked installer image, if the lock has several",
    default: None,
    choices: &[],
};

impl RenderPlatform for TalosPlatform {
    fn spec(&self) -> &'static PlatformSpec {
        &PlatformSpec {
            name: "talos",
            about: "Talos: patches of the machine configuration with mirrors, certificates, \
                    account, proxy, installer",
            details: "talosctl merges the files into a machine configuration: `talosctl gen \
                      config … --config-patch @registry.yaml`, with a --config-patch for each file.",
            inputs: &[],
            settings: &[VERSION, INSTALLER, SITE_CLUSTER],
            consumer: Some(Consumer::Talos),
            reads_lock: true,
            writes: OutputForm::Files {
                not_into: Some(
                    "talosctl merges patches: write them with -o DIR, then run `talosctl \
                     machineconfig patch FILE --patch @DIR/registry.yaml`",
                ),
            },
        }
    }

    fn has_proxy_part(&self) -> bool {
        true
    }

    fn render(&self, request: &RenderRequest<'_>) -> Result<RenderedConfig, RenderError> {
        if request.target.is_none() {
            let files = proxy_file(request)?.into_iter().collect();
            return Ok(RenderedConfig::of_files(files));
        }
        let registry = request.registry()?;
        let mut notes = Vec::new();
        let mirrors = host_mirrors(request)?;
        let installer = installer_image(request, &mut notes)?;
        let mut files = vec![RenderedFile::new(
            "registry.yaml",
            patch(&registry_documents(request, &registry, &mirrors, installer)),
        )];
        files.extend(credentials_file(request, &registry)?);
        files.extend(proxy_file(request)?);
        notes.extend(other_accounts(request, &registry, false)?);
        Ok(RenderedConfig {
            output: RenderedOutput::Files(files),
            notes,
            ..RenderedConfig::default()
        })
    }
}

/// Returns the locked installer, or `None` with a reason in `notes`.
fn installer_image<'r>(
    request: &RenderRequest<'r>,
    notes: &mut Vec<String>,
) -> Result<Option<&'r ImageRef>, RenderError> {
    if let Some(named) = request.named_image(INSTALLER.key)? {
        return Ok(Some(named));
    }
    let installers: Vec<&ImageRef> = request
        .images()
        .filter(|image| is_installer(image))
        .collect();
    match installers[..] {
        [] => {
            notes.push(
                "the lock has no installer image: set the installer in the machine configuration"
                    .into(),
            );
            Ok(None)
        }
        [image] => Ok(Some(image)),
        ref several => {
            let names: Vec<String> = several.iter().map(ToString::to_string).collect();
            notes.push(format!(
                "the patch has no installer; choose one with --set installer=IMAGE: {}",
                names.join(", ")
            ));
            Ok(None)
        }
    }
}

/// Whether `image` is an installer from a release (`siderolabs/installer`) or from the Image
/// Factory (`metal-installer/SCHEMATIC`).
fn is_installer(image: &ImageRef) -> bool {
    image.repository.split('/').any(|part| {
        let name = part.strip_suffix("-secureboot").unwrap_or(part);
        name == "installer" || name.ends_with("-installer")
    })
}

/// Returns the patch with the proxy and its certificate authorities, if the site has a proxy.
fn proxy_file(request: &RenderRequest<'_>) -> Result<Option<RenderedFile>, RenderError> {
    let Some(proxy) = PodProxy::of(request, NoProxyDialect::Bare)? else {
        return Ok(None);
    };
    // the names in Talos' documentation; its services are written in Go, which reads the names in
    // lower and in upper case
    let variables = map([
        ("http_proxy", proxy.http.into()),
        ("https_proxy", proxy.https.into()),
        ("no_proxy", proxy.no_proxy.into()),
    ]);
    let mut documents = if TalosVersion::of(request) < TalosVersion::V1_13 {
        vec![map([("machine", map([("env", variables)]))])]
    } else {
        let fields = map([("variables", variables)]);
        vec![talos_document("EnvironmentConfig", None, fields)]
    };
    if let Some(ca) = request.proxy()?.and_then(|proxy| proxy.ca) {
        let fields = map([("certificates", ca.into())]);
        let name = Some("landfall-proxy-ca");
        documents.push(talos_document("TrustedRootsConfig", name, fields));
    }
    Ok(Some(
        RenderedFile::new("proxy.yaml", patch(&documents)).secret(proxy.has_account),
    ))
}
