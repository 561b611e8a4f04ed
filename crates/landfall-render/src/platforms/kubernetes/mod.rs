//! `kubernetes`: landfall itself in a cluster, with an object store.
//!
//! - `platform.rs`: the list of files.
//! - `deployment.rs`: the settings.
//! - `pod.rs`: the common part of all pods.
//! - `jobs.rs`: the Indexed Job that pulls, the Jobs that pack and publish, the `CronJob` that
//!   refreshes.
//! - `server.rs`: the servers with their autoscaler and disruption budget.

mod platform;
mod pod;

pub(super) use self::platform::KubernetesPlatform;
