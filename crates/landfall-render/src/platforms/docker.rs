//! `docker`: the daemon's configuration, certificates and proxy.

use super::systemd::{DropInForm, drop_in, only_drop_ins};
use crate::platform::{OutputForm, RenderPlatform, RenderRequest, RenderedConfig, SITE_CLUSTER};
use crate::rendered_file::RenderedFile;
use landfall_model::{Consumer, Failure};
use serde_json::{Map, Value, json};

pub(super) static PLATFORM: RenderPlatform = RenderPlatform {
    name: "docker",
    about: "The docker daemon: the registry as mirror of Docker Hub, its certificates, \
            the proxy",
    details: "The daemon supports mirrors only for Docker Hub. Images of other hosts must \
              be requested by their names at the registry; `landfall rewrite` writes \
              these names.",
    settings: &[SITE_CLUSTER],
    consumer: Some(Consumer::Docker),
    writes: OutputForm::Files {
        not_into: Some("daemon.json is not YAML; write it with -o DIR and add its keys to yours"),
    },
    has_proxy_part: true,
    ..RenderPlatform::new(render)
};

fn render(request: &RenderRequest<'_>) -> Result<RenderedConfig, Failure> {
    if request.target.is_none() {
        return only_drop_ins(&["docker"], DropInForm::SixVariables, request);
    }
    let registry = request.registry()?;
    let own = &registry.target.registry;
    let mut notes = Vec::new();
    let mut daemon = Map::new();
    // Docker's documentation: only Docker Hub can be mirrored, and the URL of a mirror has no
    // path
    if request.images().any(|image| is_docker_hub(&image.registry)) {
        if !request.mapping.target().prefix.is_empty() {
            let why = format!(
                "the daemon does not accept mirrors with a path, and all images are below {}; \
                 write names at the registry with `landfall rewrite`",
                request.mapping.target()
            );
            return Err(Failure::refused(why));
        }
        daemon.insert("registry-mirrors".into(), json!([registry.url()]));
        if registry.has_any_account() {
            notes.push(
                "the daemon uses a mirror without an account: pulls by Docker Hub names \
                 require a registry that allows anonymous pulls"
                    .to_owned(),
            );
        }
    }
    if registry.is_insecure() {
        daemon.insert("insecure-registries".into(), json!([own]));
    }
    let others = request
        .images()
        .filter(|image| !is_docker_hub(&image.registry))
        .count();
    if others > 0 {
        let [images, found] = match others {
            1 => ["image is", "it only by its name"],
            _ => ["images are", "them only by their names"],
        };
        notes.push(format!(
            "{others} {images} not from Docker Hub: the daemon finds {found} at the registry; \
             change the references with `landfall rewrite`"
        ));
    }
    let text = format!("{:#}\n", Value::Object(daemon));
    let path = "etc/docker/daemon.json";
    let mut files = vec![RenderedFile::without_comments(path, text)];
    files.extend(registry.trust(&format!("etc/docker/certs.d/{own}")));
    files.extend(drop_in("docker", DropInForm::SixVariables, request)?);
    Ok(RenderedConfig::of_files(files, notes))
}

fn is_docker_hub(host: &str) -> bool {
    host == "docker.io"
}
