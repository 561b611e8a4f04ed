//! How a request for a repository is merged, resolved and updated.

use super::choose::choose_refs;
use super::locked::LockedGitRepository;
use super::request::GitRequest;
use super::resolve::resolve;
use crate::field_conflict::{FieldConflict, merge_option};
use crate::{
    Exclusion, ItemRequest, PinPolicy, ResolvableRequest, ResolveError, ResolveOutcome, Resolver,
    UpdatableRequest, UpstreamStatus,
};
use landfall_content::upstream::list_refs;
use landfall_model::document::UpdateRule;

impl ItemRequest for GitRequest {
    type Name = String;

    fn name(&self) -> &String {
        &self.name
    }

    fn is_excluded_by(&self, exclusion: &Exclusion) -> bool {
        matches!(exclusion, Exclusion::Url(name) if *name == self.name)
    }

    fn name_like(&self, exclusion: &Exclusion) -> Option<String> {
        matches!(exclusion, Exclusion::Url(_)).then(|| self.name.clone())
    }

    fn merge(&mut self, other: &GitRequest) -> Result<(), FieldConflict> {
        self.wanted.extend(other.wanted.iter().cloned());
        self.wanted.sort();
        self.wanted.dedup();
        merge_option("update", &mut self.update, &other.update)
    }
}

impl ResolvableRequest for GitRequest {
    type Item = LockedGitRepository;

    async fn resolve(
        &self,
        resolver: &Resolver,
        old: Option<&LockedGitRepository>,
        pins: PinPolicy,
    ) -> ResolveOutcome<LockedGitRepository> {
        let matching = old.filter(|old| old.wanted == self.wanted);
        if let (Some(old), PinPolicy::Keep | PinPolicy::Referrers) = (matching, pins) {
            return ResolveOutcome::Kept(old.clone());
        }
        match resolve(resolver, self, old).await {
            Ok(found) if old == Some(&found) => ResolveOutcome::Kept(found),
            Ok(found) => ResolveOutcome::New(found),
            Err(cause) => match matching {
                Some(old) if cause.is_gone && pins != PinPolicy::Recall => {
                    ResolveOutcome::Gone(old.clone())
                }
                old => ResolveOutcome::Failed(old.cloned(), cause),
            },
        }
    }

    async fn check_upstream(
        resolver: &Resolver,
        old: &LockedGitRepository,
    ) -> Result<(), ResolveError> {
        list_refs(resolver.sessions(), old.url()).await?;
        Ok(())
    }
}

impl UpdatableRequest for GitRequest {
    fn update_rule(&self) -> Option<&UpdateRule> {
        self.update.as_ref()
    }

    async fn upstream_status(&self, resolver: &Resolver) -> Result<UpstreamStatus, ResolveError> {
        let chosen = match list_refs(resolver.sessions(), &self.url).await {
            Ok(refs) => choose_refs(self, &refs).map(drop),
            Err(error) => Err(error.into()),
        };
        match chosen {
            Err(cause) if cause.is_gone => Ok(UpstreamStatus::Gone),
            chosen => {
                chosen?;
                Ok(UpstreamStatus::Present {
                    digest: None,
                    size: None,
                })
            }
        }
    }
}
