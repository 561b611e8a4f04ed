//! The Secrets of addons that use the proxy.

use super::cluster::{ClusterNames, TkgRepository};
use crate::kubernetes_objects::{document, map, optional, secret, some_map};
use crate::pod_proxy::PodProxy;
use serde_yaml::Value;

/// The type of the Secrets of TKG addons.
const ADDON: Option<&str> = Some("tkg.tanzu.vmware.com/addon");

/// The comments that ytt requires before the values of an addon.
const HEADER: &str = "#@data/values\n#@overlay/match-child-defaults missing_ok=True\n---\n";

/// Returns the Secret with the values of the cloud provider (`cpi`) or storage (`csi`) of vSphere.
pub(super) fn vsphere(names: &ClusterNames<'_>, part: &str, kind: &str, proxy: &PodProxy) -> Value {
    let addon = format!("vsphere-{part}");
    let metadata = addon_metadata(names, &addon, kind, &[]);
    let values = document(&map([(
        match part {
            "cpi" => "vsphereCPI",
            _ => "vsphereCSI",
        },
        map([
            ("http_proxy", proxy.http.as_str().into()),
            ("https_proxy", proxy.https.as_str().into()),
            ("no_proxy", proxy.no_proxy.as_str().into()),
        ]),
    )]));
    secret(
        metadata,
        ADDON,
        &[("values.yaml", &format!("{HEADER}{values}"))],
    )
}

/// Returns the Secret with the values of kapp-controller: the proxy, and the TLS settings for the
/// repository and for hosts behind the proxy. The names of these values differ from those of other
/// addons. Returns `None` if there are no values.
pub(super) fn kapp_controller(
    names: &ClusterNames<'_>,
    repository: Option<&TkgRepository>,
    proxy: Option<&PodProxy>,
    proxy_ca: &str,
) -> Option<Value> {
    let own = repository.map_or("", |repository| &repository.ca);
    let authorities = format!("{own}{proxy_ca}");
    let skip_verify = repository.filter(|repository| repository.skip_verify);
    let config = some_map([
        (
            "caCerts",
            optional_text(Some(&authorities).filter(|all| !all.is_empty())),
        ),
        ("httpProxy", optional_text(proxy.map(|proxy| &proxy.http))),
        ("httpsProxy", optional_text(proxy.map(|proxy| &proxy.https))),
        ("noProxy", optional_text(proxy.map(|proxy| &proxy.no_proxy))),
        (
            "dangerousSkipTLSVerify",
            optional(skip_verify.map(TkgRepository::host)),
        ),
    ]);
    if config.is_null() {
        return None;
    }
    let values = document(&map([(
        "kappController",
        map([
            ("namespace", "tkg-system".into()),
            ("createNamespace", true.into()),
            ("globalNamespace", "tanzu-package-repo-global".into()),
            (
                "image",
                some_map([(
                    "repository",
                    optional(repository.map(|repository| repository.name.as_str())),
                )]),
            ),
            ("config", config),
        ]),
    )]));
    let metadata = addon_metadata(
        names,
        "kapp-controller",
        "addons-management",
        &[
            ("annotations", "tkg.tanzu.vmware.com/remote-app", "true"),
            ("labels", "clusterctl.cluster.x-k8s.io/move", ""),
        ],
    );
    Some(secret(
        metadata,
        ADDON,
        &[("values.yaml", &format!("{HEADER}{values}"))],
    ))
}

fn optional_text(value: Option<&String>) -> Value {
    optional(value.map(String::as_str))
}

/// Returns the metadata by which TKG finds the Secret of an addon. `more` lists further members,
/// each with its section, key and value.
fn addon_metadata(
    names: &ClusterNames<'_>,
    addon: &str,
    kind: &str,
    more: &[(&str, &str, &str)],
) -> Value {
    let mut metadata = map([
        (
            "annotations",
            map([(
                "tkg.tanzu.vmware.com/addon-type",
                format!("{kind}/{addon}").into(),
            )]),
        ),
        (
            "labels",
            map([
                ("tkg.tanzu.vmware.com/addon-name", addon.into()),
                ("tkg.tanzu.vmware.com/cluster-name", names.cluster.into()),
            ]),
        ),
        ("name", format!("{}-{addon}-addon", names.cluster).into()),
        ("namespace", names.namespace.into()),
    ]);
    for (section, key, value) in more {
        if let Some(Value::Mapping(section)) = metadata.get_mut(*section) {
            section.insert((*key).into(), (*value).into());
        }
    }
    metadata
}
