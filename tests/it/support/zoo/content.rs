//! The content that the registries of the zoo are asked to hold.

use crate::support::charts::{Chart, HELM_CHART, HELM_CONFIG};
use crate::support::faults::Content;
use crate::support::images::{
    DOCKER_CONFIG, DOCKER_GZIP, DOCKER_MANIFEST, OCI_CONFIG, OCI_GZIP, OCI_MANIFEST, noise,
};
use serde_json::{Value, json};
use std::sync::Arc;

const COSIGN_LAYER: &str = "application/vnd.dev.cosign.simplesigning.v1+json";

/// The tag of each image.
const TAG: &str = "v1";

/// The path of a file that is added to the manifest later.
pub const LATER_FILE: &str = "/files/later.bin";

/// The manifest, in which `HOST` is replaced by the registry.
pub const MANIFEST: &str = "\
apiVersion: landfall/v1
kind: Manifest
metadata: {name: zoo}
platforms: [linux/amd64]
images:
- HOST/team/app:v1
- HOST/team/docker:v1
- HOST/team/tool:v1
- HOST/team/hollow:v1
- HOST/team/artifact:v1
- HOST/team/nested:v1
- HOST/team/group/sub/deep:v1
charts:
- oci://HOST/team/charts/app:1.0.0
files:
- url: http://HOST/files/tool.bin
";

/// The content that every registry of the zoo is asked to hold. Without a referrers API, the list
/// of referrers is under its tag.
pub fn content(has_referrers_api: bool) -> Content {
    let mut content = Content::default();
    let platforms = [("linux/amd64", 1), ("linux/arm64", 2), ("linux/s390x", 3)];
    let children = platforms
        .map(|(platform, seed)| content.image("team/app", platform, &[(9, 30_000), (seed, 5000)]));
    let app = content.index("team/app", &children);
    content.tag("team/app", TAG, &app);
    let signature = image(
        &mut content,
        "team/app",
        [OCI_MANIFEST, OCI_CONFIG, COSIGN_LAYER],
        b"{\"critical\":{}}",
    );
    let tag = app["digest"].as_str().unwrap().replace(':', "-") + ".sig";
    content.tag("team/app", &tag, &signature);

    let docker = [DOCKER_MANIFEST, DOCKER_CONFIG, DOCKER_GZIP];
    let docker = image(&mut content, "team/docker", docker, &noise(4, 6000));
    content.tag("team/docker", TAG, &docker);

    let tool = content.image("team/tool", "linux/amd64", &[(9, 30_000), (5, 4000)]);
    content.tag("team/tool", TAG, &tool);
    let mut subject = tool;
    subject.as_object_mut().unwrap().remove("platform");
    let referrer = content.artifact("team/tool", "bill of materials", Some(&subject));
    if !has_referrers_api {
        let list = content.index("team/tool", &[referrer]);
        let tag = subject["digest"].as_str().unwrap().replace(':', "-");
        content.tag("team/tool", &tag, &list);
    }

    let hollow = image(
        &mut content,
        "team/hollow",
        [OCI_MANIFEST, OCI_CONFIG, OCI_GZIP],
        b"",
    );
    content.tag("team/hollow", TAG, &hollow);

    let artifact = content.artifact("team/artifact", "anything", None);
    content.tag("team/artifact", TAG, &artifact);

    let inner = content.image("team/nested", "linux/amd64", &[(6, 4000)]);
    let inner = content.index("team/nested", &[inner]);
    let nested = content.index("team/nested", &[inner]);
    content.tag("team/nested", TAG, &nested);

    let deep = content.image("team/group/sub/deep", "linux/amd64", &[(7, 4000)]);
    content.tag("team/group/sub/deep", TAG, &deep);

    let chart = Chart::new("app", "1.0.0", "", &[("values.yaml", "a: 1\n")]);
    let config = json!({"name": "app", "version": "1.0.0", "apiVersion": "v2"}).to_string();
    let config = content.blob("team/charts/app", HELM_CONFIG, config.into_bytes());
    let layer = content.blob("team/charts/app", HELM_CHART, chart.archive);
    let chart = json!({
        "schemaVersion": 2, "mediaType": OCI_MANIFEST, "config": config, "layers": [layer],
    });
    let chart = content.manifest("team/charts/app", OCI_MANIFEST, &chart);
    content.tag("team/charts/app", "1.0.0", &chart);

    for (path, seed) in [("/files/tool.bin", 8), (LATER_FILE, 9)] {
        content
            .files
            .insert(path.into(), Arc::new(noise(seed, 20_000)));
    }
    content
}

/// An image for linux/amd64 with one layer, and with these types of its manifest, config and layer.
fn image(content: &mut Content, repository: &str, types: [&str; 3], layer: &[u8]) -> Value {
    let [manifest_type, config_type, layer_type] = types;
    let layer = content.blob(repository, layer_type, layer.to_vec());
    let config = json!({
        "os": "linux", "architecture": "amd64", "config": {},
        "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]},
    });
    let config = content.blob(repository, config_type, config.to_string().into_bytes());
    let manifest = json!({
        "schemaVersion": 2, "mediaType": manifest_type, "config": config, "layers": [layer],
    });
    content.manifest(repository, manifest_type, &manifest)
}
