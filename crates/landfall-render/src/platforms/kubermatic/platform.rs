//! The settings of the platform and the list of its files.

use super::configuration::{KubermaticProxy, NAMESPACE, configuration};
use super::profile::{PACKAGES, PROFILES, profiles};
use super::seed::{DATACENTER, SEED, datacenters, seed};
use crate::kubernetes_objects::{document, map, metadata, secret};
use crate::node_registry::{NodeRegistry, separate_accounts_note};
use crate::platform::{OutputForm, PlatformSpec, RenderPlatform, RenderedConfig, RenderedOutput};
use crate::platforms::yum::PACKAGE_SET;
use crate::render::SANDBOX;
use crate::rendered_file::RenderedFile;
use crate::request::RenderRequest;
use crate::settings::{PlatformSetting, SITE_CLUSTER};
use crate::signature_policy::PACKAGES_KEY;
use landfall_model::{Consumer, Failure};
use serde_yaml::Value;

pub(in crate::platforms) struct KubermaticPlatform;

const VERSION: PlatformSetting = PlatformSetting {
    key: "version",
    value_name: "RELEASE",
    help: "The release of KKP; 2.12 for releases whose node settings are in datacenters.yaml",
    default: Some("current"),
    choices: &["current", "2.12"],
};

impl RenderPlatform for KubermaticPlatform {
    fn aliases(&self) -> &'static [&'static str] {
        &["kkp"]
    }

    fn spec(&self) -> &'static PlatformSpec {
        &PlatformSpec {
            name: "kubermatic",
            about: "KKP: KubermaticConfiguration, Seed, certificates, operating system profiles",
            details: "The files contain the values that landfall computes from the site and the \
                      lock; merge them into your own files. A repository is set if the lock has \
                      its image. \
                      With --osp, profiles of operating-system-manager are pointed at the site: \
                      locked URLs are replaced by those of the file server, and machines trust the \
                      site's certificate authorities and install the locked packages.",
            inputs: &[PROFILES, PACKAGES_KEY],
            settings: &[
                VERSION,
                SEED,
                DATACENTER,
                SANDBOX,
                PACKAGES,
                PACKAGE_SET,
                SITE_CLUSTER,
            ],
            consumer: Some(Consumer::Kubermatic),
            reads_lock: true,
            writes: OutputForm::Files { not_into: None },
        }
    }

    fn has_proxy_part(&self) -> bool {
        true
    }

    fn render(&self, request: &RenderRequest<'_>) -> Result<RenderedConfig, Failure> {
        let registry = request.registry()?;
        let mut notes = Vec::new();
        let proxy = KubermaticProxy::of(request, &mut notes)?;
        let has_account = proxy.as_ref().is_some_and(|proxy| proxy.has_account);
        let mut files = Vec::new();
        if request.settings.get(VERSION.key) == Some("2.12") {
            if !request.paths(PROFILES.name).is_empty() {
                return Err(Failure::usage(
                    "--osp: KKP 2.12 has no operating-system-manager",
                ));
            }
            let text = document(&datacenters(
                request,
                &registry,
                proxy.as_ref(),
                &mut notes,
            )?);
            files.push(RenderedFile::new("datacenters.yaml", text).secret(has_account));
            return Ok(RenderedConfig {
                output: RenderedOutput::Files(files),
                notes,
                ..RenderedConfig::default()
            });
        }
        let account = registry.account(&request.mapping.target().prefix)?;
        let text = document(&configuration(
            request,
            &registry,
            account.as_ref(),
            proxy.as_ref(),
        ));
        files.push(
            RenderedFile::new("kubermatic-configuration.yaml", text)
                .secret(has_account || account.is_some()),
        );
        let authorities = authorities(request, &registry)?;
        let profiles = profiles(request, &authorities)?;
        let text = document(&seed(
            request,
            &registry,
            proxy.as_ref(),
            &profiles,
            &mut notes,
        )?);
        files.push(RenderedFile::new("kubermatic-seed.yaml", text).secret(has_account));
        if registry.ca.is_some() && profiles.is_empty() {
            notes.push(
                "machines of user clusters trust the registry's certificate authority only with a \
                 profile: name yours with --osp FILE"
                    .into(),
            );
        }
        for profile in profiles {
            files.push(profile.file);
            notes.extend(profile.notes);
        }
        if !authorities.is_empty() {
            files.push(RenderedFile::new(
                "ca-bundle.yaml",
                document(&ca_bundle(authorities)),
            ));
            notes.push(
                "KKP trusts only the certificate authorities in ca-bundle: add those of other \
                 hosts to which it connects"
                    .into(),
            );
        }
        notes.extend(separate_accounts_note(request, &registry)?);
        if let Some(account) = &account {
            let text = document(&registry_credentials(&registry.auth_file(account)));
            files.push(RenderedFile::new("registry-credentials.yaml", text).secret(true));
            notes.push(
                "registry-credentials.yaml is for each user cluster: reference it in its Cluster \
                 as spec.imagePullSecret (name registry-credentials, namespace kube-system), so \
                 that nodes pull with that account"
                    .into(),
            );
        }
        Ok(RenderedConfig {
            output: RenderedOutput::Files(files),
            notes,
            ..RenderedConfig::default()
        })
    }
}

/// Returns the certificate authorities of the registry and of the proxy.
fn authorities(
    request: &RenderRequest<'_>,
    registry: &NodeRegistry<'_>,
) -> Result<String, Failure> {
    let proxy = request.proxy()?.and_then(|proxy| proxy.ca);
    Ok(registry.ca.clone().into_iter().chain(proxy).collect())
}

fn ca_bundle(authorities: String) -> Value {
    map([
        ("apiVersion", "v1".into()),
        ("kind", "ConfigMap".into()),
        ("metadata", metadata("ca-bundle", Some(NAMESPACE))),
        ("data", map([("ca-bundle.pem", authorities.into())])),
    ])
}

/// Returns the Secret of a user cluster from which operating-system-manager configures the
/// credentials of containerd.
fn registry_credentials(auth_file: &str) -> Value {
    let metadata = metadata("registry-credentials", Some("kube-system"));
    secret(
        metadata,
        Some("kubernetes.io/dockerconfigjson"),
        &[(".dockerconfigjson", auth_file)],
    )
}
