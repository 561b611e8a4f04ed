//! `kubernetes`: landfall itself in a cluster, over an object store.
//!
//! - `platform.rs`: which files there are.
//! - `deployment.rs`: the settings, and what the objects are made from.
//! - `pod.rs`: what all pods of landfall share.
//! - `jobs.rs`: the Indexed Job that pulls, the Job that packs, the `CronJob` that refreshes.
//! - `server.rs`: the servers, and what keeps so many of them.

mod deployment;
mod jobs;
mod platform;
mod pod;
mod server;

pub(super) use platform::KubernetesPlatform;
