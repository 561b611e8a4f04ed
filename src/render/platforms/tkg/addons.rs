//! The Secrets of addons that talk through the proxy.

use super::cluster::Names;
use crate::render::kubernetes::{document, map, metadata, secret};
use crate::render::pod_proxy::PodProxy;
use serde_yaml::Value;

/// The type of the Secrets that TKG's addons read.
const ADDON: Option<&str> = Some("tkg.tanzu.vmware.com/addon");

/// The values of vSphere's cloud provider (`cpi`) or storage (`csi`).
pub(super) fn vsphere(names: &Names<'_>, part: &str, kind: &str, proxy: &PodProxy) -> Value {
    let addon = format!("vsphere-{part}");
    let metadata = map([
        ("annotations", map([("tkg.tanzu.vmware.com/addon-type", format!("{kind}/{addon}").into())])),
        (
            "labels",
            map([
                ("tkg.tanzu.vmware.com/addon-name", addon.as_str().into()),
                ("tkg.tanzu.vmware.com/cluster-name", names.cluster.into()),
            ]),
        ),
        ("name", format!("{}-{addon}-addon", names.cluster).into()),
        ("namespace", names.namespace.into()),
    ]);
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
    // ytt reads these comments; they belong before the document
    let values = format!("#@data/values\n#@overlay/match-child-defaults missing_ok=True\n---\n{values}");
    secret(metadata, ADDON, &[("values.yaml", &values)])
}

/// The values of kapp-controller, which spells them its own way.
pub(super) fn kapp_controller(names: &Names<'_>, proxy: &PodProxy) -> Value {
    let config = map([
        ("httpProxy", proxy.http.as_str().into()),
        ("httpsProxy", proxy.https.as_str().into()),
        ("noProxy", proxy.no_proxy.as_str().into()),
    ]);
    let values = document(&map([(
        "kappController",
        map([
            ("namespace", "tkg-system".into()),
            ("createNamespace", true.into()),
            ("globalNamespace", "tanzu-package-repo-global".into()),
            ("config", config),
        ]),
    )]));
    let name = format!("{}-kapp-controller-addon", names.cluster);
    secret(metadata(&name, Some(names.namespace)), ADDON, &[("values.yaml", &values)])
}
