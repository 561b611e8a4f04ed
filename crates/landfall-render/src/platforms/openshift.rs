//! `openshift`: mirror sets for pulls by digest and by tag, and the trust in the registry.

use crate::kubernetes_objects::{document, metadata, object, some};
use crate::node_registry::registry_locations;
use crate::platform::{RenderPlatform, RenderRequest, RenderedConfig};
use crate::rendered_file::RenderedFile;
use landfall_model::{Consumer, Failure};
use serde_json::{Value, json};

pub(super) static PLATFORM: RenderPlatform = RenderPlatform {
    name: "openshift",
    about: "OpenShift: ImageDigestMirrorSet and ImageTagMirrorSet, and the trust in the \
            registry",
    details: "Nodes restart their container runtime when a mirror set is applied.",
    consumer: Some(Consumer::Openshift),
    ..RenderPlatform::new(render)
};

fn render(request: &RenderRequest<'_>) -> Result<RenderedConfig, Failure> {
    let registry = request.registry()?;
    registry.refuse_ipv6("nodes of OpenShift")?;
    let own = &registry.target.registry;
    let policy = if request.upstream_fallback() {
        "AllowContactingSource"
    } else {
        "NeverContactSource"
    };
    // an ImageDigestMirrorSet applies only to pulls by digest, an ImageTagMirrorSet only to
    // pulls by tag, so both are written
    let sources = registry_locations(request);
    let set = |kind: &str, key: &str| {
        let mirror = |(source, location): &(String, String)| {
            json!({
                "source": source,
                "mirrors": [location],
                "mirrorSourcePolicy": policy,
            })
        };
        let list: Value = sources.iter().map(mirror).collect();
        config_object(kind, "landfall", json!({(key): list}))
    };
    let mut files = vec![
        RenderedFile::new(
            "image-digest-mirror-set.yaml",
            set("ImageDigestMirrorSet", "imageDigestMirrors"),
        ),
        RenderedFile::new(
            "image-tag-mirror-set.yaml",
            set("ImageTagMirrorSet", "imageTagMirrors"),
        ),
    ];
    if let Some(ca) = &registry.ca {
        // a key of a ConfigMap cannot contain `:`, so the port follows two dots
        let key = own.replace(':', "..");
        let metadata = metadata("landfall-registry-ca", Some("openshift-config"));
        let map = object("v1", "ConfigMap", metadata, ("data", json!({(key): ca})));
        files.push(RenderedFile::new("registry-ca.yaml", document(&map)));
    }
    let trusted = registry.ca.as_ref();
    let trusted = trusted.map(|_| json!({"name": "landfall-registry-ca"}));
    let insecure = registry.is_insecure();
    let insecure = insecure.then(|| json!({"insecureRegistries": [own]}));
    let spec = some(json!({"additionalTrustedCA": trusted, "registrySources": insecure}));
    if !spec.is_null() {
        let config = config_object("Image", "cluster", spec);
        files.push(RenderedFile::new("image-config.yaml", config));
    }
    let mut notes: Vec<String> = registry.client_note("OpenShift").into_iter().collect();
    if registry.has_any_account() {
        notes.push(
            "add the registry's account to the cluster's pull secret: `oc set data \
             secret/pull-secret -n openshift-config`"
                .to_owned(),
        );
    }
    Ok(RenderedConfig::of_files(files, notes))
}

/// Returns an object of the cluster's configuration.
fn config_object(kind: &str, name: &str, spec: Value) -> String {
    let metadata = metadata(name, None);
    document(&object(
        "config.openshift.io/v1",
        kind,
        metadata,
        ("spec", spec),
    ))
}
