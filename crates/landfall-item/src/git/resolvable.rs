//! How a request for a repository is merged, resolved and updated.

use super::locked::{LockedGitRepository, refs_digest};
use super::request::GitRequest;
use super::resolve::{GitResolveError, choose_refs, resolve};
use super::signatures::{has_signed_tags, is_verified};
use crate::text::{FieldConflict, merge_option};
use crate::{
    DependencyRequest, Exclusion, ItemRequest, PinPolicy, ResolveError, ResolveOutcome, Resolver,
    host_in,
};
use landfall_content::upstream::list_refs;
use landfall_model::Digest;
use landfall_model::document::UpdateRule;
use landfall_model::sign::GitSigners;

impl ItemRequest for GitRequest {
    type Name = String;
    type Item = LockedGitRepository;

    fn name(&self) -> &String {
        &self.name
    }

    fn is_local(&self) -> bool {
        self.place.is_some()
    }

    fn further_urls(&self) -> Vec<&str> {
        self.lfs_server.as_deref().into_iter().collect()
    }

    fn may_find(&self, exclusion: &Exclusion) -> bool {
        self.submodules
            && matches!(exclusion, Exclusion::Url(name) if name.starts_with(GitRequest::PREFIX))
    }

    fn merge(&mut self, other: &GitRequest) -> Result<(), FieldConflict> {
        self.wanted.extend(other.wanted.iter().cloned());
        self.wanted.sort();
        self.wanted.dedup();
        self.submodules |= other.submodules;
        self.lfs |= other.lfs;
        if other.named_by.is_none() {
            self.named_by = None;
        }
        self.level = self.level.max(other.level);
        merge_option("path", &mut self.place, &other.place)?;
        merge_option("depth", &mut self.depth, &other.depth)?;
        merge_option("lfs", &mut self.lfs_server, &other.lfs_server)?;
        if self.signers.is_empty() {
            self.signers.clone_from(&other.signers);
        } else if !other.signers.is_empty() {
            let names = |signers: &Vec<Vec<GitSigners>>| {
                let names = signers.iter().flatten().map(ToString::to_string);
                names.collect::<Vec<String>>().join(" or ")
            };
            FieldConflict::check_equal("verify", &self.signers, &other.signers, names)?;
        }
        merge_option("update", &mut self.update, &other.update)
    }

    async fn resolve(
        &self,
        resolver: &Resolver,
        old: Option<&LockedGitRepository>,
        pins: PinPolicy,
    ) -> ResolveOutcome<LockedGitRepository> {
        let request = &self.with_rules(resolver);
        if request.place.is_some() {
            return match resolve(resolver, request, old).await {
                Err(error) if error.refutes_old => ResolveOutcome::Failed(None, error.cause),
                found => ResolveOutcome::of(found.map_err(|error| error.cause), old),
            };
        }
        // a repository that was next to the manifest before is another one now
        let old = old.filter(|old| old.path.is_none());
        let matching = old.filter(|old| {
            old.wanted == self.wanted
                && old.depth == self.depth
                && old.submodules.is_some() == self.submodules
                && old.large_files.is_some() == self.lfs
                && old.lfs_server == self.lfs_server
                && is_verified(old, &request.signers)
        });
        let proven = match matching.filter(|_| pins.keeps()) {
            Some(old) => has_signed_tags(resolver, request, old).await,
            None => None,
        };
        if let (Some(old), Some(true)) = (matching, proven) {
            return ResolveOutcome::Kept(old.clone());
        }
        let matching = matching.filter(|_| proven != Some(false));
        let resolver = match self.resolver_in(resolver).await {
            Ok(resolver) => resolver,
            Err(cause) => return ResolveOutcome::Failed(None, cause),
        };
        match resolve(resolver, request, old).await {
            Ok(found) if old == Some(&found) => ResolveOutcome::Kept(found),
            // only the signatures had to be verified again, so the refs must be the same
            Ok(found) if pins.keeps() && matching.is_some_and(|old| old.refs != found.refs) => {
                let why = "upstream has moved the refs; use `--refresh` to accept that";
                ResolveOutcome::Failed(None, why.into())
            }
            Ok(found) => ResolveOutcome::New(found),
            Err(GitResolveError { cause, refutes_old }) => {
                ResolveOutcome::lost(matching.filter(|_| !refutes_old), pins, cause)
            }
        }
    }

    fn accepts(&self, old: &LockedGitRepository, resolver: &Resolver) -> bool {
        is_verified(old, &self.with_rules(resolver).signers)
    }

    fn dependencies(&self, repository: &LockedGitRepository) -> Vec<DependencyRequest> {
        let submodules = repository.submodules.iter().flatten();
        let requests = submodules.map(|submodule| {
            let url = submodule.name.strip_prefix(GitRequest::PREFIX);
            DependencyRequest::Git(GitRequest {
                name: submodule.name.clone(),
                url: url.unwrap_or_default().to_owned(),
                place: None,
                wanted: vec![submodule.commit.to_string()],
                depth: None,
                submodules: true,
                lfs: self.lfs,
                // a submodule names its own server
                lfs_server: None,
                named_by: Some(self.url.clone()),
                level: self.level + 1,
                // the signature of this repository covers the commit ids of its submodules
                signers: Vec::new(),
                update: None,
                at: self.at.clone(),
            })
        });
        requests.collect()
    }

    async fn check_upstream(
        resolver: &Resolver,
        old: &LockedGitRepository,
    ) -> Result<(), ResolveError> {
        list_refs(&resolver.sessions, old.url()).await?;
        Ok(())
    }

    fn update_rule(&self) -> Option<&UpdateRule> {
        self.update.as_ref()
    }

    async fn check_content(
        &self,
        resolver: &Resolver,
        _digest: Option<&Digest>,
    ) -> Result<(), ResolveError> {
        let request = self.with_rules(resolver);
        if request.signers.is_empty() {
            return Ok(());
        }
        // the newest commits are enough to verify the signatures
        let shallow = GitRequest {
            depth: Some(1),
            submodules: false,
            lfs: false,
            ..request
        };
        let found = resolve(resolver, &shallow, None).await;
        found.map(drop).map_err(|error| error.cause)
    }

    async fn look_up(
        &self,
        resolver: &Resolver,
    ) -> Result<(Option<Digest>, Option<u64>), ResolveError> {
        let refs = list_refs(&resolver.sessions, &self.url).await?;
        let chosen = choose_refs(self, &refs)?;
        // other policies compare the names of tags
        let rule = self.update.as_ref();
        let follows_refs = rule.is_some_and(|rule| rule.policy == "digest");
        Ok((follows_refs.then(|| refs_digest(&chosen.refs)), None))
    }
}

impl GitRequest {
    /// The resolver for this request. A repository that the manifest does not list counts against a
    /// limit, and is fetched without credentials unless the site names its host. A repository at a
    /// public host must not name a submodule at a private one.
    async fn resolver_in<'r>(&self, resolver: &'r Resolver) -> Result<&'r Resolver, ResolveError> {
        let limit = resolver.limits().git_submodule_depth;
        if self.level > limit {
            let why = format!("submodules are nested in more than {limit} repositories");
            return Err(why.into());
        }
        let Some(named_by) = &self.named_by else {
            return Ok(resolver);
        };
        resolver.count_dependency()?;
        let sessions = &resolver.sessions;
        sessions.check_named_target(&self.url, named_by).await?;
        Ok(resolver.for_dependency_at(&self.url, host_in(&self.name)))
    }
}
