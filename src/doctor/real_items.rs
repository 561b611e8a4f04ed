//! Real items of a lock, asked for where they come from and where they go: that a host answers is
//! not that it gives.

use super::CheckStatus;
use super::rights::{PrivateRegistry, rights};
use super::steps::DiagnosisSteps;
use landfall_content::PartOrigin;
use landfall_content::registry::RegistrySessions;
use landfall_item::lockfile::Lock;
use landfall_model::{DestinationMap, Digest};
use std::collections::BTreeMap;

/// Real items of a lock, by the host that has them.
#[derive(Debug, Default)]
pub(crate) struct RealItems {
    /// A repository and a manifest in it, by registry.
    manifests: BTreeMap<String, (String, Digest)>,
    private: Option<PrivateRegistry>,
}

impl RealItems {
    /// One item of `lock` for each registry.
    pub(crate) fn of(lock: &Lock) -> RealItems {
        let mut manifests = BTreeMap::new();
        for entry in lock.each_entry() {
            let Some(PartOrigin::Manifest {
                registry,
                repository,
            }) = entry.parts.last().map(|part| &part.origin)
            else {
                continue;
            };
            let item = || (repository.to_string(), entry.top.digest.clone());
            manifests.entry(registry.to_string()).or_insert_with(item);
        }
        RealItems {
            manifests,
            private: None,
        }
    }

    /// The same with the private registry of `mapping`, where `lock`'s items go. Without a lock no
    /// repository is known there.
    #[must_use]
    pub(crate) fn delivered(
        self,
        lock: Option<&Lock>,
        mapping: &DestinationMap,
        is_read_only: bool,
    ) -> RealItems {
        RealItems {
            private: Some(PrivateRegistry::new(lock, mapping, is_read_only)),
            ..self
        }
    }

    /// The registries of the lock.
    pub(crate) fn registries(&self) -> impl Iterator<Item = &str> {
        self.manifests.keys().map(String::as_str)
    }

    /// Adds the steps about the items at the registry `host`.
    pub(super) async fn look(
        &self,
        sessions: &RegistrySessions,
        host: &str,
        steps: &mut DiagnosisSteps,
    ) {
        if let Some(private) = self.private.as_ref().filter(|private| private.is_at(host)) {
            return match sessions.destination(host).await {
                Ok(session) => rights(&session, private, steps).await,
                Err(error) => steps.say("push", CheckStatus::No, error.to_string()),
            };
        }
        let Some((repository, digest)) = self.manifests.get(host) else {
            return;
        };
        let name = format!("{host}/{repository}@{digest}");
        let found = match sessions.upstream(host).await {
            Ok(session) => {
                session
                    .head_manifest(repository, &digest.to_string(), false)
                    .await
            }
            Err(error) => Err(error),
        };
        match found {
            Ok(Some(_)) => steps.say(
                "item",
                CheckStatus::Ok,
                format!("{name} of the lock is there"),
            ),
            Ok(None) => {
                steps.say(
                    "item",
                    CheckStatus::No,
                    format!("{name} of the lock is not there"),
                );
                steps.fix("lock it anew, or take it out of the manifest");
            }
            Err(error) => {
                steps.say(
                    "item",
                    CheckStatus::No,
                    format!("{name} of the lock is not given: {error}"),
                );
                steps.fix("mend the account for it, or allow what refuses it");
            }
        }
    }
}
