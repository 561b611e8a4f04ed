//! The common part of all pods: they have no privileges, only a temporary folder is writable, the
//! store is in the environment, and lock and site are in a volume.

use super::LandfallDeployment;
use crate::kubernetes_objects::{self, map, optional};
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
    kubernetes_objects::object(kind.api_version, kind.name, metadata, ("spec", spec))
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

// The Indexed Job that pulls, the Jobs that pack and publish, and the `CronJob` that refreshes.

/// The exit code of landfall for wrong use, which a retry would not change.
const USAGE_EXIT_CODE: u64 = 2;

fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).into()
}

/// Returns a pod that runs to completion.
fn once(name: &str, command: Vec<String>) -> LandfallPod<'_> {
    LandfallPod {
        name,
        command,
        variables: Vec::new(),
        restart: "Never",
        cpu: "1",
        container: Vec::new(),
        spec: Vec::new(),
        tls: None,
    }
}

/// Returns the Job that pulls: one index for each shard, all in parallel. Evicted pods do not count
/// as failures, and wrong use ends the Job.
pub(super) fn pull(wanted: &LandfallDeployment<'_>) -> Value {
    let pod = LandfallPod {
        variables: vec![("LANDFALL_SHARDS", wanted.shards.to_string())],
        ..once(
            "pull",
            words([
                "landfall",
                "pull",
                "--lock",
                LOCK,
                "--shard",
                "auto",
                "--progress",
                "plain",
            ]),
        )
    };
    let spec = map([
        ("completionMode", "Indexed".into()),
        ("completions", wanted.shards.into()),
        ("parallelism", wanted.shards.into()),
        ("backoffLimitPerIndex", 6.into()),
        (
            "podFailurePolicy",
            map([("rules", vec![wrong_use("pull"), evicted()].into())]),
        ),
        ("template", pod.template(wanted)),
    ]);
    object(wanted, ObjectKind::JOB, "pull", spec)
}

/// A rule that ends the Job if the container exits with wrong use.
fn wrong_use(container: &str) -> Value {
    let codes = map([
        ("containerName", container.into()),
        ("operator", "In".into()),
        ("values", vec![Value::from(USAGE_EXIT_CODE)].into()),
    ]);
    map([("action", "FailJob".into()), ("onExitCodes", codes)])
}

/// A rule that does not count the eviction of a pod as a failure.
fn evicted() -> Value {
    let condition = map([
        ("type", "DisruptionTarget".into()),
        ("status", "True".into()),
    ]);
    map([
        ("action", "Ignore".into()),
        ("onPodConditions", vec![condition].into()),
    ])
}

/// Returns the Job that packs the bundle.
pub(super) fn pack(wanted: &LandfallDeployment<'_>) -> Value {
    job_after_pull(
        wanted,
        "pack",
        words([
            "landfall",
            "pack",
            "--lock",
            LOCK,
            "-o",
            &wanted.bundle,
            "--progress",
            "plain",
        ]),
    )
}

/// Returns the Job that switches the servers to the lock.
pub(super) fn publish(wanted: &LandfallDeployment<'_>) -> Value {
    job_after_pull(
        wanted,
        "publish",
        words(["landfall", "publish", "--lock", LOCK, "--progress", "plain"]),
    )
}

/// Returns a Job that needs all content of the lock. It fails while content is missing, and
/// Kubernetes retries it with growing delays, so it can be applied together with the pull.
fn job_after_pull(
    wanted: &LandfallDeployment<'_>,
    name: &'static str,
    command: Vec<String>,
) -> Value {
    let spec = map([
        // with the delays of Kubernetes, twelve retries wait about 45 minutes for the pull
        ("backoffLimit", 12.into()),
        (
            "podFailurePolicy",
            map([("rules", vec![wrong_use(name), evicted()].into())]),
        ),
        ("template", once(name, command).template(wanted)),
    ]);
    object(wanted, ObjectKind::JOB, name, spec)
}

/// The script that refreshes a clone of the manifests. It pushes the changes to a branch for
/// review, and packs a bundle. The branch is pushed even if items failed; the exit code reports
/// them.
const REFRESH: &str = r#"git clone --quiet "$GIT_REMOTE" /tmp/work
cd /tmp/work
git config user.name "landfall refresh"
git config user.email refresh@example.com
git switch --quiet -C refresh
# keep the first-seen times of a branch that nobody merged
if git cat-file -e origin/refresh:landfall.lock.seen 2>/dev/null; then
  git show origin/refresh:landfall.lock.seen >> landfall.lock.seen
fi
code=0
landfall refresh -f manifests --digests --since sent.lock -o "$BUNDLE" || code=$?
git add manifests landfall.lock*
if ! git diff --cached --quiet; then
  git commit --quiet -m "Refresh: newer versions"
  git push --quiet --force origin refresh
fi
exit "$code"
"#;

/// Returns the `CronJob` that refreshes. Only one of its Jobs runs at a time, since all push the
/// same branch.
pub(super) fn refresh(wanted: &LandfallDeployment<'_>) -> Value {
    let pod = LandfallPod {
        variables: vec![(
            "BUNDLE",
            format!("{}/bundles/refresh.tar.zst", wanted.store),
        )],
        ..once("refresh", words(["sh", "-ec", REFRESH]))
    };
    let job = map([
        // the next scheduled run tries again
        ("backoffLimit", 0.into()),
        ("template", pod.template(wanted)),
    ]);
    let spec = map([
        ("schedule", wanted.schedule.into()),
        ("concurrencyPolicy", "Forbid".into()),
        ("successfulJobsHistoryLimit", 3.into()),
        ("failedJobsHistoryLimit", 7.into()),
        ("jobTemplate", map([("spec", job)])),
    ]);
    object(wanted, ObjectKind::CRON_JOB, "refresh", spec)
}

const PORT: u64 = 5000;
/// The time for which a terminating server still responds. The Service may still send it requests
/// during this time.
const DRAIN: &str = "15s";
/// The share of the requested processor time, in percent, above which the autoscaler adds servers.
const BUSY: u64 = 70;

/// Returns the Deployment, Service, `PodDisruptionBudget` and `HorizontalPodAutoscaler`.
pub(super) fn objects(wanted: &LandfallDeployment<'_>) -> [Value; 4] {
    let selector = map([("matchLabels", labels("serve"))]);
    let surge = map([("maxSurge", 1.into()), ("maxUnavailable", 0.into())]);
    // without `replicas`: applying the file again would reset the number that the autoscaler chose
    let deployment = map([
        ("selector", selector.clone()),
        (
            "strategy",
            map([("type", "RollingUpdate".into()), ("rollingUpdate", surge)]),
        ),
        ("template", pod(wanted).template(wanted)),
    ]);
    let port = map([
        ("name", scheme(wanted).into()),
        ("port", PORT.into()),
        ("targetPort", scheme(wanted).into()),
    ]);
    let service = map([("selector", labels("serve")), ("ports", vec![port].into())]);
    let budget = map([("maxUnavailable", 1.into()), ("selector", selector)]);
    let target = map([
        ("apiVersion", "apps/v1".into()),
        ("kind", "Deployment".into()),
        ("name", "landfall-serve".into()),
    ]);
    let cpu = map([
        ("name", "cpu".into()),
        (
            "target",
            map([
                ("type", "Utilization".into()),
                ("averageUtilization", BUSY.into()),
            ]),
        ),
    ]);
    let scaler = map([
        ("scaleTargetRef", target),
        ("minReplicas", wanted.replicas.into()),
        ("maxReplicas", wanted.max_replicas.into()),
        (
            "metrics",
            vec![map([("type", "Resource".into()), ("resource", cpu)])].into(),
        ),
    ]);
    [
        object(wanted, ObjectKind::DEPLOYMENT, "serve", deployment),
        object(wanted, ObjectKind::SERVICE, "serve", service),
        object(wanted, ObjectKind::DISRUPTION_BUDGET, "serve", budget),
        object(wanted, ObjectKind::AUTOSCALER, "serve", scaler),
    ]
}

fn scheme(wanted: &LandfallDeployment<'_>) -> &'static str {
    if wanted.tls.is_some() {
        "https"
    } else {
        "http"
    }
}

fn pod<'a>(wanted: &LandfallDeployment<'a>) -> LandfallPod<'a> {
    let listen = format!("0.0.0.0:{PORT}");
    let mut command: Vec<String> = ["landfall", "serve", "--listen", &listen, "--drain", DRAIN]
        .map(str::to_owned)
        .into();
    if wanted.redirect {
        command.push("--redirect".into());
    }
    if wanted.tls.is_some() {
        command.extend([
            "--tls-cert".into(),
            format!("{TLS}/tls.crt"),
            "--tls-key".into(),
            format!("{TLS}/tls.key"),
        ]);
    }
    let port = map([
        ("name", scheme(wanted).into()),
        ("containerPort", PORT.into()),
    ]);
    let scheme = scheme(wanted);
    let probe = |path: &str, every: u64| {
        let request = map([
            ("path", path.into()),
            ("port", scheme.into()),
            ("scheme", scheme.to_uppercase().into()),
        ]);
        map([("httpGet", request), ("periodSeconds", every.into())])
    };
    // servers on different nodes, if there are enough nodes
    let spread = map([
        ("maxSkew", 1.into()),
        ("topologyKey", "kubernetes.io/hostname".into()),
        ("whenUnsatisfiable", "ScheduleAnyway".into()),
        ("labelSelector", map([("matchLabels", labels("serve"))])),
    ]);
    LandfallPod {
        name: "serve",
        command,
        variables: Vec::new(),
        restart: "Always",
        cpu: "500m",
        container: vec![
            ("ports", vec![port].into()),
            ("readinessProbe", probe("/readyz", 5)),
            ("livenessProbe", probe("/healthz", 20)),
        ],
        spec: vec![
            // longer than the drain time, so that downloads in progress can end
            ("terminationGracePeriodSeconds", 60.into()),
            ("topologySpreadConstraints", vec![spread].into()),
        ],
        tls: wanted.tls,
    }
}
