//! `docker`: the daemon's configuration, certificates and proxy.

use super::systemd::{DropInForm, drop_in};
use crate::error::RenderError;
use crate::platform::{OutputForm, PlatformSpec, RenderPlatform, RenderedConfig, RenderedOutput};
use crate::rendered_file::RenderedFile;
use crate::request::RenderRequest;
use landfall_model::Consumer;
use serde_json::{Map, Value, json};

pub(super) struct DockerPlatform;

impl RenderPlatform for DockerPlatform {
    fn spec(&self) -> &'static PlatformSpec {
        &PlatformSpec {
            name: "docker",
            about: "The docker daemon: the registry as mirror of Docker Hub, its certificates, \
                    the proxy",
            details: "The daemon mirrors Docker Hub alone. Images of other hosts are asked for by \
                      their names at the \
                      registry, as `landfall rewrite` writes them.",
            inputs: &[],
            settings: &[],
            consumer: Some(Consumer::Docker),
            reads_lock: true,
            writes: OutputForm::Files {
                not_into: Some(
                    "daemon.json is no YAML; write it with -o DIR and add its keys to yours",
                ),
            },
        }
    }

    fn render(&self, request: &RenderRequest<'_>) -> Result<RenderedConfig, RenderError> {
        let registry = request.registry()?;
        let own = &registry.target.registry;
        let mut notes = Vec::new();
        let mut daemon = Map::new();
        let is_hub = |host: &str| host == "docker.io";
        if request.images().any(|image| is_hub(&image.registry)) {
            if !request.mapping.target().prefix.is_empty() {
                let why = format!(
                    "the daemon takes a mirror without a path, and everything goes below {}; \
                     write names of \
                                   the registry with `landfall rewrite`",
                    request.mapping.target()
                );
                return Err(RenderError::Refused(why));
            }
            daemon.insert("registry-mirrors".into(), json!([registry.url()]));
            if registry.has_account() {
                notes.push(
                    "the daemon asks a mirror without an account: pulls by names of Docker \
                            Hub need a registry \
                            that lets everybody read"
                        .to_owned(),
                );
            }
        }
        if registry.plain_http || registry.skip_verify {
            daemon.insert("insecure-registries".into(), json!([own]));
        }
        let others = request
            .images()
            .filter(|image| !is_hub(&image.registry))
            .count();
        if others > 0 {
            notes.push(format!(
                "{others} images are not Docker Hub's: the daemon finds them by their names at \
                 the registry alone, which \
                 `landfall rewrite` writes"
            ));
        }
        let text = format!("{:#}\n", Value::Object(daemon));
        let mut files = vec![RenderedFile {
            comments: false,
            ..RenderedFile::new("etc/docker/daemon.json", text)
        }];
        files.extend(registry.trust(&format!("etc/docker/certs.d/{own}")));
        files.extend(drop_in("docker", DropInForm::GiantSwarm, request)?);
        Ok(RenderedConfig {
            output: RenderedOutput::Files(files),
            notes,
            ..RenderedConfig::default()
        })
    }
}
