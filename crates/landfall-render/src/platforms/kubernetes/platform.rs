//! The list of the platform's files.

use super::deployment::{LandfallDeployment, SETTINGS};
use super::{jobs, server};
use crate::error::RenderError;
use crate::kubernetes_objects::document;
use crate::platform::{OutputForm, PlatformSpec, RenderPlatform, RenderedConfig, RenderedOutput};
use crate::rendered_file::RenderedFile;
use crate::request::RenderRequest;
use serde_yaml::Value;

pub(in super::super) struct KubernetesPlatform;

impl RenderPlatform for KubernetesPlatform {
    fn spec(&self) -> &'static PlatformSpec {
        &PlatformSpec {
            name: "kubernetes",
            about: "landfall itself in a cluster: sharded pulls, a scheduled refresh, and servers, \
                    all on an object store",
            details: "An Indexed Job pulls a lock by shards, one Job packs it, and one publishes \
                      it; a CronJob refreshes; a Deployment serves, with a Service, a \
                      PodDisruptionBudget and a HorizontalPodAutoscaler. The pods share only the \
                      store.",
            inputs: &[],
            settings: SETTINGS,
            consumer: None,
            reads_lock: false,
            writes: OutputForm::Files { not_into: None },
        }
    }

    fn needs_registry(&self) -> bool {
        false
    }

    fn render(&self, request: &RenderRequest<'_>) -> Result<RenderedConfig, RenderError> {
        let deployment = LandfallDeployment::of(&request.settings)?;
        let files = [
            ("pull.yaml", objects_text(&[jobs::pull(&deployment)])),
            ("pack.yaml", objects_text(&[jobs::pack(&deployment)])),
            ("publish.yaml", objects_text(&[jobs::publish(&deployment)])),
            ("refresh.yaml", objects_text(&[jobs::refresh(&deployment)])),
            ("serve.yaml", objects_text(&server::objects(&deployment))),
        ];
        let files = files
            .map(|(path, text)| RenderedFile::new(path, text))
            .into();
        let namespace = deployment
            .namespace
            .map(|name| format!("-n {name} "))
            .unwrap_or_default();
        let mut notes = Vec::new();
        if deployment.claim.is_none() {
            notes.push(format!(
                "first run: kubectl {namespace}create configmap landfall \
                 --from-file=landfall.lock --from-file=site.yaml (at most 1 MiB; for a larger lock \
                 name a volume with --set claim=NAME)"
            ));
        }
        notes.push(format!(
            "create a Secret {} with the variables for access to the store, registries and git; \
             `landfall help scale` has the steps",
            deployment.secret
        ));
        Ok(RenderedConfig {
            output: RenderedOutput::Files(files),
            notes,
            ..RenderedConfig::default()
        })
    }
}

fn objects_text(objects: &[Value]) -> String {
    objects
        .iter()
        .map(document)
        .collect::<Vec<_>>()
        .join("---\n")
}
