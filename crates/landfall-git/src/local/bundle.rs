//! Git bundles (gitformat-bundle): the refs and a pack in one file.

use super::{
    LocalObjects, LocalRepository, changed, is_carried, refs_of, temporary_file, unreadable,
};
use crate::GitError;
use crate::object::ObjectId;
use landfall_model::Limits;
use landfall_model::document::open_input;
use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::SystemTime;

/// The pack in the file of a bundle.
pub(super) struct BundlePack {
    file: File,
    /// The offset of the pack in the file.
    start: u64,
    /// The size and the time of the last change of the file when it was opened.
    state: (u64, Option<SystemTime>),
}

/// Opens the bundle at `path` and reads its refs.
pub(super) fn open(path: &Path, limits: &Limits) -> Result<LocalRepository, GitError> {
    let file = open_input(path).map_err(|error| unreadable(error.to_string()))?;
    let read = |error: io::Error| unreadable(error.to_string());
    let state = state_of(&file.metadata().map_err(read)?);
    let mut head = BundleHead::default();
    let bounded = (&file).take(limits.git_ref_list_bytes as u64);
    let mut reader = BufReader::new(bounded);
    let mut start = 0;
    let mut line = Vec::new();
    loop {
        line.clear();
        let count = reader.read_until(b'\n', &mut line).map_err(read)?;
        start += count as u64;
        let Some(text) = line.strip_suffix(b"\n") else {
            return Err(match head.version {
                None => not_a_repository(),
                Some(_) => unreadable("the head of the git bundle is cut off"),
            });
        };
        if text.is_empty() && head.version.is_some() {
            break;
        }
        head.read_line(&String::from_utf8_lossy(text), limits)?;
    }
    let target = head.target();
    Ok(LocalRepository {
        refs: refs_of(head.refs, target),
        shallow: Vec::new(),
        objects: LocalObjects::Bundle(BundlePack { file, start, state }),
    })
}

fn state_of(metadata: &Metadata) -> (u64, Option<SystemTime>) {
    (metadata.len(), metadata.modified().ok())
}

fn not_a_repository() -> GitError {
    unreadable("it is neither a git bundle nor the folder of a git repository")
}

/// The lines before the pack.
#[derive(Default)]
struct BundleHead {
    /// `None` before the first line.
    version: Option<u8>,
    refs: BTreeMap<String, ObjectId>,
    /// The id of `HEAD`.
    head: Option<ObjectId>,
}

impl BundleHead {
    fn read_line(&mut self, line: &str, limits: &Limits) -> Result<(), GitError> {
        let Some(version) = self.version else {
            self.version = Some(match line {
                "# v2 git bundle" => 2,
                "# v3 git bundle" => 3,
                _ => return Err(not_a_repository()),
            });
            return Ok(());
        };
        if let Some(capability) = line.strip_prefix('@').filter(|_| version == 3) {
            return match capability {
                "object-format=sha1" => Ok(()),
                _ => Err(unreadable(format!(
                    "the git bundle has the capability '{}', which landfall does not support",
                    capability.escape_default()
                ))),
            };
        }
        if line.starts_with('-') {
            return Err(unreadable(
                "the git bundle has only a part of the history; write all of it, with `git bundle \
                 create FILE --all`",
            ));
        }
        let found = line.split_once(' ');
        let found = found.and_then(|(id, name)| Some((id.parse::<ObjectId>().ok()?, name)));
        let (id, name) =
            found.ok_or_else(|| unreadable("a line of the git bundle is not a ref"))?;
        if name == "HEAD" {
            self.head = Some(id);
        } else if is_carried(name) {
            self.refs.insert(name.to_owned(), id);
        }
        GitError::check_refs(self.refs.len(), limits.git_refs)
    }

    /// The branch that `git clone` checks out: a bundle has only the id of `HEAD`.
    fn target(&self) -> Option<String> {
        let head = self.head?;
        let is_head = |name: &&String| self.refs.get(*name) == Some(&head);
        let usual = ["refs/heads/main", "refs/heads/master"].map(String::from);
        let branches = self
            .refs
            .keys()
            .filter(|name| name.starts_with("refs/heads/"));
        usual.iter().chain(branches).find(is_head).cloned()
    }
}

impl BundlePack {
    /// Copies the pack to an unnamed file.
    pub(super) fn copy(&self, limits: &Limits) -> Result<File, GitError> {
        let mut source = &self.file;
        source
            .seek(SeekFrom::Start(self.start))
            .map_err(GitError::ReadPack)?;
        let mut copy = temporary_file()?;
        let most = limits.git_pack_bytes;
        let size = io::copy(&mut source.take(most + 1), &mut copy).map_err(GitError::WritePack)?;
        GitError::check_limit("the pack is larger", size, most)?;
        let now = self.file.metadata().map_err(GitError::ReadPack)?;
        if state_of(&now) == self.state {
            Ok(copy)
        } else {
            Err(changed())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::sample;
    use proptest::prelude::*;
    use std::fs;
    use std::io::Write;

    fn opened(bytes: &[u8]) -> Result<LocalRepository, String> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        open(file.path(), &Limits::DEFAULT).map_err(|error| error.to_string())
    }

    const ID: &str = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";

    #[test]
    fn the_branch_of_head_is_the_one_that_git_checks_out() {
        let other = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
        for (refs, expected) in [
            (
                format!("{ID} refs/heads/a\n{ID} refs/heads/main\n{ID} HEAD\n"),
                "refs/heads/main",
            ),
            (
                format!("{ID} refs/heads/b\n{ID} refs/heads/a\n{ID} HEAD\n"),
                "refs/heads/a",
            ),
            (
                format!("{other} refs/heads/main\n{ID} refs/heads/x\n{ID} HEAD\n"),
                "refs/heads/x",
            ),
            (format!("{ID} refs/heads/main\n{other} HEAD\n"), ""),
            (format!("{ID} refs/heads/main\n"), ""),
        ] {
            let found = opened(format!("# v2 git bundle\n{refs}\nPACK").as_bytes()).unwrap();
            let head = found.refs.iter().find(|one| one.name == "HEAD");
            let target = head.and_then(|head| head.target.as_deref());
            assert_eq!(target.unwrap_or_default(), expected, "{refs}");
        }
    }

    #[test]
    fn a_bundle_that_is_cut_off_incremental_or_of_another_format_is_an_error() {
        for (text, why) in [
            ("", "neither a git bundle"),
            ("# v2 git bundle", "neither a git bundle"),
            ("PACK\0\0\0\x02\n", "neither a git bundle"),
            ("# v2 git bundle\n", "is cut off"),
            (
                &format!("# v2 git bundle\n{ID} refs/heads/main"),
                "is cut off",
            ),
            (
                &format!("# v2 git bundle\n-{ID} Old\n\nPACK"),
                "only a part of the history",
            ),
            ("# v2 git bundle\n@object-format=sha1\n\n", "is not a ref"),
            (
                "# v3 git bundle\n@object-format=sha256\n\n",
                "object-format=sha256",
            ),
            ("# v3 git bundle\n@filter=blob:none\n\n", "filter=blob:none"),
            ("# v2 git bundle\nrefs/heads/main\n\n", "is not a ref"),
        ] {
            let error = opened(text.as_bytes()).err().unwrap_or_default();
            assert!(error.contains(why), "{text}: {error}");
        }
        let found = opened(
            format!("# v3 git bundle\n@object-format=sha1\n{ID} refs/tags/a\n\n").as_bytes(),
        );
        assert_eq!(found.unwrap().refs[0].name, "refs/tags/a");
        // refs that are neither branches nor tags
        let text = format!("# v2 git bundle\n{ID} refs/remotes/origin/x\n{ID} refs/stash\n\nPACK");
        assert!(opened(text.as_bytes()).unwrap().refs.is_empty());
    }

    #[test]
    fn a_bundle_that_changes_after_it_was_opened_is_an_error() {
        let pack = sample().0.bytes();
        let head = format!("# v2 git bundle\n{ID} refs/heads/main\n\n");
        let bytes = [head.as_bytes(), &pack].concat();
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), &bytes).unwrap();
        let found = open(file.path(), &Limits::DEFAULT).unwrap();
        let LocalObjects::Bundle(found) = found.objects else {
            panic!("not a bundle");
        };
        let mut copied = Vec::new();
        let mut copy = found.copy(&Limits::DEFAULT).unwrap();
        copy.rewind().unwrap();
        copy.read_to_end(&mut copied).unwrap();
        assert_eq!(copied, pack);
        let small = Limits {
            git_pack_bytes: pack.len() as u64 - 1,
            ..Limits::DEFAULT
        };
        assert!(found.copy(&small).is_err());
        fs::write(file.path(), [&bytes[..], b"x"].concat()).unwrap();
        let error = found.copy(&Limits::DEFAULT).unwrap_err();
        assert!(error.to_string().contains("changed"), "{error}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_bundle_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = opened(&bytes);
            let _ = opened(&[b"# v3 git bundle\n", &bytes[..]].concat());
        }
    }
}
