//! The common part of all pods: they have no privileges, only a temporary folder is writable, the
//! store is in the environment, and lock and site are in a volume.

use super::deployment::LandfallDeployment;
use crate::kubernetes_objects::{map, optional};
use serde_yaml::Value;

/// The folder of lock and site.
const CONFIG: &str = "/etc/landfall";
/// The path of the lock in a pod.
pub(super) const LOCK: &str = "/etc/landfall/landfall.lock";
/// The folder of the certificate and the key of a server.
pub(super) const TLS: &str = "/etc/landfall-tls";
/// An unprivileged user ID, as `nonroot` in distroless images.
const USER: u32 = 65532;

/// A pod with one container.
pub(super) struct LandfallPod<'a> {
    /// The role, which is also the name of the container.
    pub(super) name: &'a str,
    /// The command with its arguments.
    pub(super) command: Vec<String>,
    /// The variables in addition to the variables of every pod.
    pub(super) variables: Vec<(&'a str, String)>,
    /// When Kubernetes restarts the container.
    pub(super) restart: &'a str,
    /// The requested processor time, as a Kubernetes quantity.
    pub(super) cpu: &'a str,
    /// Further fields of the container: ports and probes.
    pub(super) container: Vec<(&'a str, Value)>,
    /// Further fields of the pod.
    pub(super) spec: Vec<(&'a str, Value)>,
    /// The Secret that is mounted at [`TLS`].
    pub(super) tls: Option<&'a str>,
}

/// Returns the labels of the objects of a role.
pub(super) fn labels(component: &str) -> Value {
    map([
        ("app.kubernetes.io/name", "landfall".into()),
        ("app.kubernetes.io/component", component.into()),
    ])
}

/// The kind of a Kubernetes object.
#[derive(Clone, Copy)]
pub(super) struct ObjectKind {
    pub(super) api_version: &'static str,
    pub(super) name: &'static str,
}

impl ObjectKind {
    pub(super) const JOB: ObjectKind = ObjectKind::new("batch/v1", "Job");
    pub(super) const CRON_JOB: ObjectKind = ObjectKind::new("batch/v1", "CronJob");
    pub(super) const DEPLOYMENT: ObjectKind = ObjectKind::new("apps/v1", "Deployment");
    pub(super) const SERVICE: ObjectKind = ObjectKind::new("v1", "Service");
    pub(super) const DISRUPTION_BUDGET: ObjectKind =
        ObjectKind::new("policy/v1", "PodDisruptionBudget");
    pub(super) const AUTOSCALER: ObjectKind =
        ObjectKind::new("autoscaling/v2", "HorizontalPodAutoscaler");

    const fn new(api_version: &'static str, name: &'static str) -> ObjectKind {
        ObjectKind { api_version, name }
    }
}

/// Returns an object of a role.
pub(super) fn object(
    wanted: &LandfallDeployment<'_>,
    kind: ObjectKind,
    component: &str,
    spec: Value,
) -> Value {
    let name = format!("landfall-{component}");
    let metadata = map([
        ("name", name.into()),
        ("namespace", optional(wanted.namespace)),
        ("labels", labels(component)),
    ]);
    map([
        ("apiVersion", kind.api_version.into()),
        ("kind", kind.name.into()),
        ("metadata", metadata),
        ("spec", spec),
    ])
}

/// Returns the mapping `base` with the entries `more`.
fn with<'a>(mut base: Value, more: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    if let Some(map) = base.as_mapping_mut() {
        map.extend(more.into_iter().map(|(key, value)| (key.into(), value)));
    }
    base
}

fn mount(name: &str, path: &str, only_read: bool) -> Value {
    let only_read = if only_read { true.into() } else { Value::Null };
    map([
        ("name", name.into()),
        ("mountPath", path.into()),
        ("readOnly", only_read),
    ])
}

impl LandfallPod<'_> {
    pub(super) fn template(self, wanted: &LandfallDeployment<'_>) -> Value {
        let config = match wanted.claim {
            Some(claim) => (
                "persistentVolumeClaim",
                map([("claimName", claim.into()), ("readOnly", true.into())]),
            ),
            None => ("configMap", map([("name", "landfall".into())])),
        };
        let mut volumes = vec![
            map([("name", "config".into()), config]),
            map([("name", "tmp".into()), ("emptyDir", map([]))]),
        ];
        let mut mounts = vec![mount("config", CONFIG, true), mount("tmp", "/tmp", false)];
        if let Some(secret) = self.tls {
            volumes.push(map([
                ("name", "tls".into()),
                ("secret", map([("secretName", secret.into())])),
            ]));
            mounts.push(mount("tls", TLS, true));
        }
        // `HOME` must be writable: programs keep caches there, and the file system is read-only
        let own = [
            ("HOME", "/tmp".to_owned()),
            ("LANDFALL_STORE", wanted.store.to_owned()),
            ("LANDFALL_SITE", format!("{CONFIG}/site.yaml")),
        ];
        let variables = own.into_iter().chain(self.variables);
        let env: Vec<Value> = variables
            .map(|(name, value)| map([("name", name.into()), ("value", value.into())]))
            .collect();
        let from = map([("secretRef", map([("name", wanted.secret.into())]))]);
        let resources = map([
            (
                "requests",
                map([("cpu", self.cpu.into()), ("memory", "256Mi".into())]),
            ),
            ("limits", map([("memory", "1Gi".into())])),
        ]);
        let confined = map([
            ("allowPrivilegeEscalation", false.into()),
            ("readOnlyRootFilesystem", true.into()),
            (
                "capabilities",
                map([("drop", vec![Value::from("ALL")].into())]),
            ),
        ]);
        let container = map([
            ("name", self.name.into()),
            ("image", wanted.image.into()),
            (
                "command",
                self.command
                    .into_iter()
                    .map(Value::from)
                    .collect::<Vec<_>>()
                    .into(),
            ),
            ("env", env.into()),
            ("envFrom", vec![from].into()),
            ("volumeMounts", mounts.into()),
            ("resources", resources),
            ("securityContext", confined),
        ]);
        let security = map([
            ("runAsNonRoot", true.into()),
            ("runAsUser", USER.into()),
            ("fsGroup", USER.into()),
            ("seccompProfile", map([("type", "RuntimeDefault".into())])),
        ]);
        let spec = map([
            ("restartPolicy", self.restart.into()),
            ("serviceAccountName", optional(wanted.account)),
            ("securityContext", security),
            ("containers", vec![with(container, self.container)].into()),
            ("volumes", volumes.into()),
        ]);
        map([
            ("metadata", map([("labels", labels(self.name))])),
            ("spec", with(spec, self.spec)),
        ])
    }
}
