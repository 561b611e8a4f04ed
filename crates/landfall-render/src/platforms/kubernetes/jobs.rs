//! The Indexed Job that pulls, the Jobs that pack and publish, and the `CronJob` that refreshes.

use super::deployment::LandfallDeployment;
use super::pod::{LOCK, LandfallPod, ObjectKind, object};
use crate::kubernetes_objects::map;
use serde_yaml::Value;

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
code=0
landfall refresh -f manifests --digests --since sent.lock -o "$BUNDLE" || code=$?
git add manifests landfall.lock
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
