//! The servers: a Deployment, its Service, autoscaler and disruption budget.

use super::deployment::LandfallDeployment;
use super::pod::{LandfallPod, ObjectKind, TLS, labels, object};
use crate::kubernetes_objects::map;
use serde_yaml::Value;

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
