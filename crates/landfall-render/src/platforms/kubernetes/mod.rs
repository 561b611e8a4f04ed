//! `kubernetes`: landfall itself in a cluster, with an object store.
//!
//! This file has the list of files, and the settings. `pod.rs` has the common part
//! of all pods, the Jobs that pull, pack, publish and refresh, and the
//! servers with their autoscaler and disruption budget.

mod pod;

use crate::kubernetes_objects::document;
use crate::platform::{
    NAMESPACE, PlatformSetting, PlatformSettings, RenderPlatform, RenderRequest, RenderedConfig,
    wrong_value,
};
use crate::rendered_file::RenderedFile;
use landfall_model::config::Site;
use landfall_model::report::shell_word;
use landfall_model::{Failure, Limits, Shard};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

// The list of the platform's files.

pub(super) static PLATFORM: RenderPlatform = RenderPlatform {
    name: "kubernetes",
    about: "landfall itself in a cluster: sharded pulls, a scheduled refresh, and servers, \
            all on an object store",
    details: "An Indexed Job pulls a lock by shards, one Job packs it, and one publishes \
              it; a CronJob refreshes; a Deployment serves, with a Service, a \
              PodDisruptionBudget and a HorizontalPodAutoscaler. The pods share only the \
              store.",
    settings: SETTINGS,
    reads_lock: false,
    needs_registry: false,
    ..RenderPlatform::new(render)
};

fn render(request: &RenderRequest<'_>) -> Result<RenderedConfig, Failure> {
    let deployment = LandfallDeployment::of(&request.settings)?;
    let files = [
        ("pull.yaml", objects_text(&[pod::pull(&deployment)])),
        ("pack.yaml", objects_text(&[pod::pack(&deployment)])),
        ("publish.yaml", objects_text(&[pod::publish(&deployment)])),
        ("refresh.yaml", objects_text(&[pod::refresh(&deployment)])),
        ("serve.yaml", objects_text(&pod::objects(&deployment))),
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
        let authorities: Vec<&Path> = request.site.map(authorities).unwrap_or_default();
        let flag =
            |path: &&Path| format!(" --from-file={}", shell_word(&path.display().to_string()));
        let more: String = authorities.iter().map(flag).collect();
        notes.push(format!(
            "first run: kubectl {namespace}create configmap landfall \
             --from-file=landfall.lock --from-file=site.yaml{more} (at most 1 MiB; for a larger \
             lock name a volume with --set claim=NAME)"
        ));
        let elsewhere = authorities
            .iter()
            .filter(|path| path.components().count() > 1);
        let elsewhere: Vec<String> = elsewhere.map(|path| path.display().to_string()).collect();
        if !elsewhere.is_empty() {
            notes.push(format!(
                "a ConfigMap has no folders: move {} beside site.yaml, and name each there without \
                 a folder",
                elsewhere.join(", ")
            ));
        }
    }
    notes.push(format!(
        "create a Secret {} with the variables for access to the store, registries and git; \
         `landfall help scale` has the steps",
        deployment.secret
    ));
    Ok(RenderedConfig::of_files(files, notes))
}

/// Returns the certificates of authorities that the site names, each once.
fn authorities(site: &Site) -> Vec<&Path> {
    let registry = site.registry.iter().filter_map(|one| one.ca.as_deref());
    let proxy = site.proxy.iter().filter_map(|one| one.ca.as_deref());
    let upstreams = site.upstreams.values().filter_map(|one| one.ca.as_deref());
    let all: BTreeSet<&Path> = registry.chain(proxy).chain(upstreams).collect();
    all.into_iter().collect()
}

fn objects_text(objects: &[Value]) -> String {
    objects
        .iter()
        .map(document)
        .collect::<Vec<_>>()
        .join("---\n")
}

// The settings of the platform, and their values.

const IMAGE: PlatformSetting = PlatformSetting::new(
    "image",
    "IMAGE",
    "The image with landfall; for refresh also with git and sh",
);

const STORE: PlatformSetting =
    PlatformSetting::new("store", "URL", "The store, such as s3://bucket/prefix");

const BUNDLE: PlatformSetting = PlatformSetting::new(
    "bundle",
    "URL",
    "The bundle that is packed [default: bundles/landfall.tar.zst in the store]",
);

const SHARDS: PlatformSetting =
    PlatformSetting::new("shards", "N", "The number of runners that pull").with_default("8");

const REPLICAS: PlatformSetting =
    PlatformSetting::new("replicas", "N", "The minimum number of servers").with_default("3");

const MAX_REPLICAS: PlatformSetting =
    PlatformSetting::new("max-replicas", "N", "The maximum number of servers").with_default("12");

const SECRET: PlatformSetting = PlatformSetting::new(
    "secret",
    "NAME",
    "The Secret whose keys are the pods' environment: AWS_ACCESS_KEY_ID and similar, \
     DOCKER_AUTH_CONFIG, GIT_REMOTE",
)
.with_default("landfall");

const ACCOUNT: PlatformSetting = PlatformSetting::new(
    "service-account",
    "NAME",
    "The service account of the pods, if the cloud grants it access to the store",
);

const CLAIM: PlatformSetting = PlatformSetting::new(
    "claim",
    "NAME",
    "A PersistentVolumeClaim with landfall.lock and site.yaml, instead of the ConfigMap \
     `landfall`",
);

const SCHEDULE: PlatformSetting =
    PlatformSetting::new("schedule", "CRON", "When refresh runs").with_default("17 3 * * *");

const TLS: PlatformSetting = PlatformSetting::new(
    "tls",
    "NAME",
    "A Secret of type kubernetes.io/tls; without it, plain HTTP",
);

const REDIRECT: PlatformSetting = PlatformSetting {
    key: "redirect",
    value_name: "YES|NO",
    help: "Whether clients download blobs directly from the object store, by signed URLs",
    default: Some("no"),
    choices: &["yes", "no"],
};

/// All settings of the platform.
pub(super) const SETTINGS: &[PlatformSetting] = &[
    IMAGE,
    STORE,
    BUNDLE,
    SHARDS,
    REPLICAS,
    MAX_REPLICAS,
    SECRET,
    ACCOUNT,
    CLAIM,
    SCHEDULE,
    TLS,
    REDIRECT,
    NAMESPACE,
];

/// The settings of the platform after parsing.
pub(super) struct LandfallDeployment<'s> {
    pub(super) namespace: Option<&'s str>,
    pub(super) image: &'s str,
    pub(super) store: &'s str,
    pub(super) bundle: String,
    pub(super) shards: usize,
    pub(super) replicas: usize,
    pub(super) max_replicas: usize,
    pub(super) secret: &'s str,
    pub(super) account: Option<&'s str>,
    pub(super) claim: Option<&'s str>,
    pub(super) schedule: &'s str,
    pub(super) tls: Option<&'s str>,
    pub(super) redirect: bool,
}

impl<'s> LandfallDeployment<'s> {
    pub(super) fn of(settings: &'s PlatformSettings) -> Result<LandfallDeployment<'s>, Failure> {
        let store = settings.need(STORE.key)?.trim_end_matches('/');
        let bundle = settings.get(BUNDLE.key).map_or_else(
            || format!("{store}/bundles/landfall.tar.zst"),
            str::to_owned,
        );
        // pods have no disk that outlives them
        for (key, url) in [(STORE.key, store), (BUNDLE.key, bundle.as_str())] {
            if !["s3://", "gs://", "az://"]
                .iter()
                .any(|scheme| url.len() > scheme.len() && url.starts_with(scheme))
            {
                return Err(wrong_value(
                    key,
                    url,
                    "it must be an object store: s3://, gs:// or az:// and a bucket",
                ));
            }
        }
        let replicas = number(settings, &REPLICAS)?;
        let max_replicas = number(settings, &MAX_REPLICAS)?;
        if max_replicas < replicas {
            let why = format!(
                "it must not be less than {}, which is {replicas}",
                REPLICAS.key
            );
            return Err(wrong_value(MAX_REPLICAS.key, max_replicas, why));
        }
        Ok(LandfallDeployment {
            namespace: settings.get(NAMESPACE.key),
            image: settings.need(IMAGE.key)?,
            store,
            bundle,
            shards: number(settings, &SHARDS)?,
            replicas,
            max_replicas,
            secret: settings.object_name(SECRET.key)?.unwrap_or_default(),
            account: settings.object_name(ACCOUNT.key)?,
            claim: settings.object_name(CLAIM.key)?,
            schedule: settings.need(SCHEDULE.key)?,
            tls: settings.object_name(TLS.key)?,
            redirect: settings.get(REDIRECT.key) == Some("yes"),
        })
    }
}

/// Parses a number of pods, which is limited like a number of shards.
fn number(
    settings: &PlatformSettings,
    setting: &'static PlatformSetting,
) -> Result<usize, Failure> {
    let text = settings.need(setting.key)?;
    let number = text
        .parse()
        .ok()
        .filter(|number| Shard::new(*number, *number).is_ok());
    let limit = Limits::default().shards;
    number.ok_or_else(|| {
        wrong_value(
            setting.key,
            text,
            format!("it must be a number from 1 to {limit}"),
        )
    })
}
