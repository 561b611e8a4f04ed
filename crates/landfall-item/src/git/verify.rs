//! Verifies that the packs of a repository agree with the lock: they contain everything that the
//! refs need, and have the same submodules, large files and end of the history.

use super::large_files::{locked_large_files, locked_submodules};
use super::locked::{LockedGitRepository, LockedGitSubmodule, LockedLargeFile};
use super::pack_writing::stored_objects;
use landfall_content::BlobRead;
use landfall_git::{
    GitError, GitObjectKind, IncompleteTip, ObjectDatabase, ObjectId, check_complete,
    shallow_boundary,
};
use landfall_model::{Failure, Limits};
use std::collections::BTreeSet;
use std::sync::Arc;

impl LockedGitRepository {
    /// The objects of the repository, whose packs are in `blobs`. Reads and hashes all of them.
    ///
    /// # Errors
    /// If a pack cannot be read, or is damaged.
    pub fn objects(
        &self,
        blobs: &Arc<dyn BlobRead>,
        limits: Limits,
    ) -> Result<ObjectDatabase, GitError> {
        let mut database = stored_objects(blobs, &self.packs, limits)?;
        database.set_shallow(&self.shallow);
        Ok(database)
    }

    /// Verifies that the packs, which are in `blobs`, have everything that the refs need, and agree
    /// with the end of the history, the large files and the submodules in the lock. `all` are the
    /// repositories of the lock. If the repository of a submodule is among them, one of its refs
    /// must name the commit of the submodule.
    ///
    /// # Errors
    /// If the packs and the lock differ; returns the first difference.
    pub fn verify_objects(
        &self,
        all: &[LockedGitRepository],
        blobs: &Arc<dyn BlobRead>,
        limits: Limits,
    ) -> Result<(), Failure> {
        let mut database = self.objects(blobs, limits).map_err(bad_pack)?;
        self.check_refs(&database)?;
        self.check_boundary(&mut database)?;
        self.check_large_files(&database, &limits)?;
        self.check_submodules(&database, all)
    }

    fn check_refs(&self, database: &ObjectDatabase) -> Result<(), Failure> {
        let incomplete =
            |name: &str, why: GitError| Failure::failed(format!("{name} is not complete: {why}"));
        check_complete(database, &self.tips()).map_err(|IncompleteTip { tip, why }| {
            let mut refs = self.refs.iter();
            let name = refs.find(|one| one.id == tip).map(|one| &*one.name);
            incomplete(name.unwrap_or_default(), why)
        })?;
        // git does not accept a branch that points to an annotated tag
        let branches = self.refs.iter();
        let branches = branches.filter(|one| one.name.starts_with("refs/heads/"));
        for branch in branches {
            database
                .find(branch.id)
                .and_then(|object| database.expect(object, GitObjectKind::Commit))
                .map_err(|why| incomplete(&branch.name, why))?;
        }
        Ok(())
    }

    /// Checks that the history ends where the depth says. The refs are complete up to the end that
    /// the lock names, but that end could be too early.
    fn check_boundary(&self, database: &mut ObjectDatabase) -> Result<(), Failure> {
        let Some(depth) = self.depth else {
            return Ok(());
        };
        database.set_shallow(&[]);
        let found = shallow_boundary(database, &self.tips(), depth);
        let found = found.map_err(|error| match error {
            GitError::MissingObject { id, .. } => other_boundary(id),
            error => bad_pack(error),
        })?;
        match first_difference(found, self.shallow.iter().copied()) {
            Some(commit) => Err(other_boundary(commit)),
            None => Ok(()),
        }
    }

    fn check_large_files(&self, database: &ObjectDatabase, limits: &Limits) -> Result<(), Failure> {
        let Some(locked) = &self.large_files else {
            return Ok(());
        };
        let found = locked_large_files(database, &self.tips(), limits);
        let found = found.map_err(bad_pack)?;
        let locked = locked.iter().map(|file| LockedLargeFile {
            server: None,
            ..file.clone()
        });
        match first_difference(found, locked) {
            Some(file) => Err(Failure::failed(format!(
                "the lock and the pointers of the refs have different large files: {}",
                file.digest
            ))),
            None => Ok(()),
        }
    }

    fn check_submodules(
        &self,
        database: &ObjectDatabase,
        all: &[LockedGitRepository],
    ) -> Result<(), Failure> {
        let Some(locked) = &self.submodules else {
            return Ok(());
        };
        let found = locked_submodules(database, self.url(), &self.refs);
        let found = found.map_err(|error| Failure::failed(error.to_string()))?;
        if let Some(other) = first_difference(found, locked.iter().cloned()) {
            let LockedGitSubmodule { name, commit } = other;
            return Err(Failure::failed(format!(
                "the lock and the refs have different submodules: {name} at {commit}"
            )));
        }
        for LockedGitSubmodule { name, commit } in locked {
            // the repository of a submodule is missing if `exclude` of a manifest omits it
            let carried = all.iter().find(|one| one.name == *name);
            if carried.is_some_and(|one| one.refs.iter().all(|one| one.id != *commit)) {
                return Err(Failure::failed(format!(
                    "its submodule {name} lacks the commit {commit}"
                )));
            }
        }
        Ok(())
    }

    /// The objects that the refs name.
    fn tips(&self) -> Vec<ObjectId> {
        self.refs.iter().map(|one| one.id).collect()
    }
}

/// The failure of a pack that cannot be read, or is damaged.
fn bad_pack(error: GitError) -> Failure {
    Failure::failed(error.to_string())
}

/// The failure of a history that does not end at the commits that the depth gives.
fn other_boundary(commit: ObjectId) -> Failure {
    Failure::failed(format!(
        "with the depth of the lock, the history would end at other commits: {commit}"
    ))
}

/// The first value that only one side has.
fn first_difference<T: Ord + Clone>(
    found: impl IntoIterator<Item = T>,
    locked: impl IntoIterator<Item = T>,
) -> Option<T> {
    let found: BTreeSet<T> = found.into_iter().collect();
    let locked: BTreeSet<T> = locked.into_iter().collect();
    found.symmetric_difference(&locked).next().cloned()
}
