//! `kubernetes`: landfall itself in a cluster, over an object store.
//!
//! - `platform.rs`: which files there are.
//! - `deployment.rs`: the settings, and the deployment that they describe.
//! - `pod.rs`: the common part of all pods.
//! - `jobs.rs`: the Indexed Job that pulls, the Job that packs, the `CronJob` that refreshes.
//! - `server.rs`: the servers with their autoscaler and disruption budget.

mod deployment;
mod jobs;
mod platform;
mod pod;
mod server;

pub(super) use platform::KubernetesPlatform;
