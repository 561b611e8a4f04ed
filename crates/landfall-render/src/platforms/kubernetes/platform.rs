//! The platform: which files there are.

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
            about: "landfall itself in a cluster: many runners, refresh, and servers over an \
                    object store",
            details: "An Indexed Job pulls a lock by shards, a Job packs it and one has it \
                      served; a CronJob refreshes; a \
                      Deployment serves, with a Service, a PodDisruptionBudget and a \
                      HorizontalPodAutoscaler. The pods share nothing but the \
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
        let wanted = LandfallDeployment::of(&request.settings)?;
        let text = |objects: &[Value]| {
            objects
                .iter()
                .map(document)
                .collect::<Vec<_>>()
                .join("---\n")
        };
        let files = [
            ("pull.yaml", text(&[jobs::pull(&wanted)])),
            ("pack.yaml", text(&[jobs::pack(&wanted)])),
            ("publish.yaml", text(&[jobs::publish(&wanted)])),
            ("refresh.yaml", text(&[jobs::refresh(&wanted)])),
            ("serve.yaml", text(&server::objects(&wanted))),
        ];
        let files = files
            .map(|(path, text)| RenderedFile::new(path, text))
            .into();
        let namespace = wanted
            .namespace
            .map(|name| format!("-n {name} "))
            .unwrap_or_default();
        let mut notes = Vec::new();
        if wanted.claim.is_none() {
            notes.push(format!(
                "first: kubectl {namespace}create configmap landfall --from-file=landfall.lock \
                 --from-file=site.yaml (at \
                 most 1 MiB; for a larger lock name a volume with --set claim=NAME)"
            ));
        }
        notes.push(format!(
            "and a Secret {} with the variables that reach store, registries and git; `landfall \
             help scale` has the steps",
            wanted.secret
        ));
        Ok(RenderedConfig {
            output: RenderedOutput::Files(files),
            notes,
            ..RenderedConfig::default()
        })
    }
}
