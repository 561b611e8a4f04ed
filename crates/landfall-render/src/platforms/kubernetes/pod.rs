//! The common part of all pods: they have no privileges, only a temporary folder is writable, the
//! store is in the environment, and lock and site are in a volume.

use super::LandfallDeployment;
use crate::kubernetes_objects::{self, with};
use serde_json::{Value, json};

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
    pub(super) container: Value,
    /// Further fields of the pod.
    pub(super) spec: Value,
    /// The Secret that is mounted at [`TLS`].
    pub(super) tls: Option<&'a str>,
}

/// Returns the labels of the objects of a role.
pub(super) fn labels(component: &str) -> Value {
    json!({"app.kubernetes.io/name": "landfall", "app.kubernetes.io/component": component})
}

/// Returns an object of a role.
pub(super) fn object(
    wanted: &LandfallDeployment<'_>,
    api_version: &str,
    kind: &str,
    component: &str,
    spec: Value,
) -> Value {
    let metadata = json!({
        "name": format!("landfall-{component}"),
        "namespace": wanted.namespace,
        "labels": labels(component),
    });
    kubernetes_objects::object(api_version, kind, metadata, ("spec", spec))
}

fn mount(name: &str, path: &str, only_read: bool) -> Value {
    json!({"name": name, "mountPath": path, "readOnly": only_read.then_some(true)})
}

impl LandfallPod<'_> {
    pub(super) fn template(self, wanted: &LandfallDeployment<'_>) -> Value {
        let config = match wanted.claim {
            Some(claim) => json!({
                "name": "config",
                "persistentVolumeClaim": {"claimName": claim, "readOnly": true},
            }),
            None => json!({"name": "config", "configMap": {"name": "landfall"}}),
        };
        let mut volumes = vec![config, json!({"name": "tmp", "emptyDir": {}})];
        let mut mounts = vec![mount("config", CONFIG, true), mount("tmp", "/tmp", false)];
        if let Some(secret) = self.tls {
            volumes.push(json!({"name": "tls", "secret": {"secretName": secret}}));
            mounts.push(mount("tls", TLS, true));
        }
        // `HOME` must be writable: programs keep caches there, and the file system is read-only
        let own = [
            ("HOME", "/tmp".to_owned()),
            ("LANDFALL_STORE", wanted.store.to_owned()),
            ("LANDFALL_SITE", format!("{CONFIG}/site.yaml")),
        ];
        let variables = own.into_iter().chain(self.variables);
        let env: Value = variables
            .map(|(name, value)| json!({"name": name, "value": value}))
            .collect();
        let container = json!({
            "name": self.name,
            "image": wanted.image,
            "command": self.command,
            "env": env,
            "envFrom": [{"secretRef": {"name": wanted.secret}}],
            "volumeMounts": mounts,
            "resources": {
                "requests": {"cpu": self.cpu, "memory": "256Mi"},
                "limits": {"memory": "1Gi"},
            },
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": {"drop": ["ALL"]},
            },
        });
        let spec = json!({
            "restartPolicy": self.restart,
            "serviceAccountName": wanted.account,
            "securityContext": {
                "runAsNonRoot": true,
                "runAsUser": USER,
                "fsGroup": USER,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [with(container, self.container)],
            "volumes": volumes,
        });
        json!({"metadata": {"labels": labels(self.name)}, "spec": with(spec, self.spec)})
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
        container: Value::Null,
        spec: Value::Null,
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
    let spec = json!({
        "completionMode": "Indexed",
        "completions": wanted.shards,
        "parallelism": wanted.shards,
        "backoffLimitPerIndex": 6,
        "podFailurePolicy": failure_policy("pull"),
        "template": pod.template(wanted),
    });
    object(wanted, "batch/v1", "Job", "pull", spec)
}

/// Returns the rules of a Job: it ends if the container exits with wrong use, and the eviction of a
/// pod does not count as a failure.
fn failure_policy(container: &str) -> Value {
    let wrong_use = json!({
        "containerName": container,
        "operator": "In",
        "values": [USAGE_EXIT_CODE],
    });
    let evicted = json!([{"type": "DisruptionTarget", "status": "True"}]);
    json!({"rules": [
        {"action": "FailJob", "onExitCodes": wrong_use},
        {"action": "Ignore", "onPodConditions": evicted},
    ]})
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
    let spec = json!({
        // with the delays of Kubernetes, twelve retries wait about 45 minutes for the pull
        "backoffLimit": 12,
        "podFailurePolicy": failure_policy(name),
        "template": once(name, command).template(wanted),
    });
    object(wanted, "batch/v1", "Job", name, spec)
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
    let job = json!({
        // the next scheduled run tries again
        "backoffLimit": 0,
        "template": pod.template(wanted),
    });
    let spec = json!({
        "schedule": wanted.schedule,
        "concurrencyPolicy": "Forbid",
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 7,
        "jobTemplate": {"spec": job},
    });
    object(wanted, "batch/v1", "CronJob", "refresh", spec)
}

const PORT: u64 = 5000;
/// The time for which a terminating server still responds. The Service may still send it requests
/// during this time.
const DRAIN: &str = "15s";
/// The share of the requested processor time, in percent, above which the autoscaler adds servers.
const BUSY: u64 = 70;

/// Returns the Deployment, Service, `PodDisruptionBudget` and `HorizontalPodAutoscaler`.
pub(super) fn objects(wanted: &LandfallDeployment<'_>) -> [Value; 4] {
    let selector = json!({"matchLabels": labels("serve")});
    // without `replicas`: applying the file again would reset the number that the autoscaler chose
    let deployment = json!({
        "selector": selector,
        "strategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
        },
        "template": pod(wanted).template(wanted),
    });
    let scheme = scheme(wanted);
    let service = json!({
        "selector": labels("serve"),
        "ports": [{"name": scheme, "port": PORT, "targetPort": scheme}],
    });
    let budget = json!({"maxUnavailable": 1, "selector": selector});
    let cpu = json!({
        "name": "cpu",
        "target": {"type": "Utilization", "averageUtilization": BUSY},
    });
    let scaler = json!({
        "scaleTargetRef": {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "name": "landfall-serve",
        },
        "minReplicas": wanted.replicas,
        "maxReplicas": wanted.max_replicas,
        "metrics": [{"type": "Resource", "resource": cpu}],
    });
    [
        ("apps/v1", "Deployment", deployment),
        ("v1", "Service", service),
        ("policy/v1", "PodDisruptionBudget", budget),
        ("autoscaling/v2", "HorizontalPodAutoscaler", scaler),
    ]
    .map(|(api_version, kind, spec)| object(wanted, api_version, kind, "serve", spec))
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
    let scheme = scheme(wanted);
    let probe = |path: &str, every: u64| {
        json!({
            "httpGet": {"path": path, "port": scheme, "scheme": scheme.to_uppercase()},
            "periodSeconds": every,
        })
    };
    // servers on different nodes, if there are enough nodes
    let spread = json!({
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": labels("serve")},
    });
    LandfallPod {
        name: "serve",
        command,
        variables: Vec::new(),
        restart: "Always",
        cpu: "500m",
        container: json!({
            "ports": [{"name": scheme, "containerPort": PORT}],
            "readinessProbe": probe("/readyz", 5),
            "livenessProbe": probe("/healthz", 20),
        }),
        spec: json!({
            // longer than the drain time, so that downloads in progress can end
            "terminationGracePeriodSeconds": 60,
            "topologySpreadConstraints": [spread],
        }),
        tls: wanted.tls,
    }
}
