//! `kubernetes`: landfall itself in a cluster, with an object store.
//!
//! - `platform.rs`: the list of files, and the settings.
//! - `pod.rs`: the common part of all pods, the Jobs that pull, pack, publish and refresh, and the
//!   servers with their autoscaler and disruption budget.

mod platform;
mod pod;

pub(super) use self::platform::KubernetesPlatform;
