//! The folder of a repository (gitrepository-layout): its refs, packs and loose objects.

use super::{
    LocalObjects, LocalRepository, changed, file_error, is_carried, refs_of, temporary_file,
    unreadable,
};
use crate::GitError;
use crate::object::{GitObjectKind, ObjectId, is_hex, parse_config};
use crate::pack::{EntryForm, PackBytes, PackWriter};
use crate::wire::OfferedRef;
use flate2::read::ZlibDecoder;
use landfall_model::Limits;
use landfall_model::document::open_input;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folder with the objects and refs of a repository: `.git` of a working copy, or a bare
/// repository.
pub(super) struct GitFolder(PathBuf);

/// How many folders deep the name of a ref may be.
const MAX_REF_FOLDERS: usize = 64;
/// How many symbolic refs may follow one another, as in git.
const MAX_SYMBOLIC: usize = 5;
/// The maximum size of a file with one ref in bytes: `ref: ` and a name.
const MAX_REF_FILE: u64 = 4096;
/// The maximum length of the header of a loose object, as in `commit 123` and a zero byte.
const MAX_OBJECT_HEADER: u64 = 32;

/// Opens the repository in `path` and reads its refs.
pub(super) fn open(path: &Path, limits: &Limits) -> Result<LocalRepository, GitError> {
    let below = path.join(".git");
    let folder = match kind_of(&below).map_err(|error| file_error(Path::new(".git"), &error))? {
        Some(FileKind::Folder) => GitFolder(below),
        Some(FileKind::File) => {
            return Err(unreadable(
                "it is a linked working tree or a submodule: its objects are elsewhere; write a \
                 file with `git bundle create FILE --all`",
            ));
        }
        None => GitFolder(path.to_owned()),
    };
    for name in ["HEAD", "objects", "refs"] {
        if folder.kind_of(name)?.is_none() {
            return Err(unreadable("it is not the folder of a git repository"));
        }
    }
    folder.check_format(limits)?;
    Ok(LocalRepository {
        refs: folder.refs(limits)?,
        shallow: folder.shallow(limits)?,
        objects: LocalObjects::Folder(folder),
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileKind {
    File,
    Folder,
}

/// Whether a file or folder is at `path`; `None` if nothing is. A symbolic link is an error.
fn kind_of(path: &Path) -> io::Result<Option<FileKind>> {
    let metadata = match path.symlink_metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    kind_of_type(metadata.file_type()).map(Some)
}

fn kind_of_type(found: std::fs::FileType) -> io::Result<FileKind> {
    match found {
        found if found.is_dir() => Ok(FileKind::Folder),
        found if found.is_file() => Ok(FileKind::File),
        found if found.is_symlink() => {
            let why = "it is a symbolic link, which is not followed in a repository";
            Err(io::Error::other(why))
        }
        _ => Err(io::Error::other("it is not a regular file")),
    }
}

impl GitFolder {
    fn kind_of(&self, name: &str) -> Result<Option<FileKind>, GitError> {
        kind_of(&self.0.join(name)).map_err(|error| file_error(Path::new(name), &error))
    }

    /// The content of the file `name`, which has at most `most` bytes. `None` if there is none.
    fn text(&self, name: &str, most: u64) -> Result<Option<String>, GitError> {
        let fault = |error: io::Error| file_error(Path::new(name), &error);
        if self.kind_of(name)?.is_none() {
            return Ok(None);
        }
        let file = match open_input(self.0.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(fault)?,
        };
        let mut bytes = Vec::new();
        file.take(most + 1).read_to_end(&mut bytes).map_err(fault)?;
        if bytes.len() as u64 > most {
            return Err(unreadable(format!("{name} is larger than {most} bytes")));
        }
        Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// The names and kinds of the entries of the folder `name`, sorted; empty if there is none.
    fn entries(&self, name: &str) -> Result<Vec<(String, FileKind)>, GitError> {
        let fault = |error: io::Error| file_error(Path::new(name), &error);
        let listed = match std::fs::read_dir(self.0.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            listed => listed.map_err(fault)?,
        };
        let mut entries = Vec::new();
        for entry in listed {
            let entry = entry.map_err(fault)?;
            // landfall needs only names of ASCII here, and refs with other names are refused later
            let own = entry.file_name().to_string_lossy().into_owned();
            let kind = entry.file_type().and_then(kind_of_type);
            let path = Path::new(name).join(&own);
            entries.push((own, kind.map_err(|error| file_error(&path, &error))?));
        }
        entries.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(entries)
    }

    /// Checks that landfall reads the format of the repository.
    fn check_format(&self, limits: &Limits) -> Result<(), GitError> {
        if self.kind_of("commondir")?.is_some() {
            return Err(unreadable(
                "it is the folder of a linked working tree; name the main repository",
            ));
        }
        let alternates = self.text("objects/info/alternates", limits.git_config_bytes)?;
        let mut lines = alternates.iter().flat_map(|text| text.lines());
        if lines.any(|line| !line.is_empty() && !line.starts_with('#')) {
            return Err(unreadable(
                "it has objects in another repository (objects/info/alternates); write a file with \
                 `git bundle create FILE --all`",
            ));
        }
        let Some(text) = self.text("config", limits.git_config_bytes)? else {
            return Ok(());
        };
        let entries =
            parse_config(&text).map_err(|why| unreadable(format!("cannot read config: {why}")))?;
        for entry in entries {
            let value = entry.value.unwrap_or_default().to_ascii_lowercase();
            let is_other = match (&*entry.section, &*entry.key) {
                ("core", "repositoryformatversion") => !matches!(&*value, "0" | "1"),
                ("extensions", "objectformat") => value != "sha1",
                ("extensions", "refstorage") => value != "files",
                _ => false,
            };
            if is_other {
                return Err(unreadable(format!(
                    "landfall does not read repositories with {}.{} {}; write a file with `git \
                     bundle create FILE --all`",
                    entry.section,
                    entry.key,
                    value.escape_default()
                )));
            }
        }
        Ok(())
    }

    /// The commits at which the history ends although they have parents.
    fn shallow(&self, limits: &Limits) -> Result<Vec<ObjectId>, GitError> {
        let text = self.text("shallow", limits.git_ref_list_bytes as u64)?;
        let lines = text.iter().flat_map(|text| text.lines());
        let ids = lines.map(|line| {
            line.parse()
                .map_err(|why| unreadable(format!("cannot read shallow: {why}")))
        });
        ids.collect()
    }

    /// The branches and tags, and `HEAD` if it points to one of the branches.
    pub(super) fn refs(&self, limits: &Limits) -> Result<Vec<OfferedRef>, GitError> {
        // as in git: a ref that moves from its own file to `packed-refs` meanwhile is found there
        let mut loose = BTreeMap::new();
        for folder in ["refs/heads", "refs/tags"] {
            self.read_loose_refs(folder, 0, limits, &mut loose)?;
        }
        let mut found = self.packed_refs(limits)?;
        let mut symbolic = Vec::new();
        for (name, value) in loose {
            match value {
                RefValue::Id(id) => {
                    found.insert(name, id);
                }
                RefValue::Symbolic(target) => {
                    found.remove(&name);
                    symbolic.push((name, target));
                }
            }
        }
        // a symbolic ref that leads nowhere is none, as in git
        for _ in 0..MAX_SYMBOLIC {
            for (name, target) in &symbolic {
                if let Some(id) = found.get(target).copied() {
                    found.insert(name.clone(), id);
                }
            }
        }
        GitError::check_refs(found.len(), limits.git_refs)?;
        let head = self.text("HEAD", MAX_REF_FILE)?.unwrap_or_default();
        let head = match RefValue::parse(&head) {
            Some(RefValue::Symbolic(target)) => Some(target),
            _ => None,
        };
        Ok(refs_of(found, head))
    }

    fn read_loose_refs(
        &self,
        folder: &str,
        depth: usize,
        limits: &Limits,
        refs: &mut BTreeMap<String, RefValue>,
    ) -> Result<(), GitError> {
        if depth > MAX_REF_FOLDERS {
            return Err(unreadable(format!("{folder} has too many folders")));
        }
        for (own, kind) in self.entries(folder)? {
            let name = format!("{folder}/{own}");
            // no ref has such a name: git writes these files while it changes a ref
            if own.starts_with('.') || own.ends_with(".lock") {
                continue;
            }
            if kind == FileKind::Folder {
                self.read_loose_refs(&name, depth + 1, limits, refs)?;
                continue;
            }
            // removed since the folder was read
            let Some(text) = self.text(&name, MAX_REF_FILE)? else {
                continue;
            };
            let value = RefValue::parse(&text);
            let value = value.ok_or_else(|| unreadable(format!("{name} is not a ref")))?;
            refs.insert(name, value);
            GitError::check_refs(refs.len(), limits.git_refs)?;
        }
        Ok(())
    }

    fn packed_refs(&self, limits: &Limits) -> Result<BTreeMap<String, ObjectId>, GitError> {
        let text = self.text("packed-refs", limits.git_ref_list_bytes as u64)?;
        let mut refs = BTreeMap::new();
        for line in text.iter().flat_map(|text| text.lines()) {
            // a comment, or the object that the annotated tag above names
            if line.starts_with(['#', '^']) || line.is_empty() {
                continue;
            }
            let found = line.split_once(' ');
            let found = found.and_then(|(id, name)| Some((id.parse().ok()?, name)));
            let (id, name) =
                found.ok_or_else(|| unreadable("a line of packed-refs is not a ref"))?;
            if is_carried(name) {
                refs.insert(name.to_owned(), id);
            }
        }
        Ok(refs)
    }

    /// The packs, and one with all loose objects.
    pub(super) fn packs(&self, limits: &Limits) -> Result<Vec<Arc<dyn PackBytes>>, GitError> {
        // first the loose objects: git deletes them after it has written them into a pack
        let loose = self.loose_objects(limits)?;
        let mut packs: Vec<Arc<dyn PackBytes>> = Vec::new();
        for (name, kind) in self.entries("objects/pack")? {
            if kind == FileKind::File && name.starts_with("pack-") && name.ends_with(".pack") {
                let path = format!("objects/pack/{name}");
                packs.push(Arc::new(self.open(&path)?));
            }
        }
        packs.extend(loose.map(|pack| Arc::new(pack) as Arc<dyn PackBytes>));
        Ok(packs)
    }

    /// Opens a file that was listed.
    fn open(&self, name: &str) -> Result<File, GitError> {
        open_input(self.0.join(name)).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => changed(),
            _ => file_error(Path::new(name), &error),
        })
    }

    /// A pack with the loose objects in an unnamed file; `None` if there are none. Those that
    /// cannot be read are errors, as in git.
    fn loose_objects(&self, limits: &Limits) -> Result<Option<File>, GitError> {
        let mut paths = Vec::new();
        for (folder, kind) in self.entries("objects")? {
            if kind != FileKind::Folder || folder.len() != 2 || !is_hex(&folder) {
                continue;
            }
            let folder = format!("objects/{folder}");
            for (name, kind) in self.entries(&folder)? {
                if kind == FileKind::File && name.len() == 2 * ObjectId::BYTES - 2 && is_hex(&name)
                {
                    paths.push(format!("{folder}/{name}"));
                }
            }
            if paths.len() as u64 > limits.git_objects.min(u32::MAX.into()) {
                return Err(GitError::TooLarge {
                    what: "the repository has more objects",
                    limit: limits.git_objects,
                });
            }
        }
        if paths.is_empty() {
            return Ok(None);
        }
        let mut pack = BufWriter::new(temporary_file()?);
        let mut writer = PackWriter::new(&mut pack);
        writer.head(paths.len() as u32)?;
        let mut left = limits.git_pack_bytes;
        for path in &paths {
            let file = self.open(path)?;
            let (kind, content) =
                loose_object(file, limits).map_err(|error| file_error(Path::new(path), &error))?;
            left = left.checked_sub(content.len() as u64).ok_or({
                GitError::TooLarge {
                    what: "the loose objects together are larger",
                    limit: limits.git_pack_bytes,
                }
            })?;
            writer.entry(EntryForm::Whole(kind), &content)?;
        }
        writer.finish()?;
        pack.flush().map_err(GitError::WritePack)?;
        let pack = pack
            .into_inner()
            .map_err(|error| GitError::WritePack(error.into_error()))?;
        Ok(Some(pack))
    }
}

/// The content of the file of a ref.
enum RefValue {
    Id(ObjectId),
    /// The name of another ref.
    Symbolic(String),
}

impl RefValue {
    fn parse(text: &str) -> Option<RefValue> {
        let text = text.trim_end();
        match text.strip_prefix("ref:") {
            Some(target) => Some(RefValue::Symbolic(target.trim_start().to_owned())),
            None => text.parse().ok().map(RefValue::Id),
        }
    }
}

/// Reads a loose object: a zlib stream of its type and size, a zero byte, and its content.
fn loose_object(file: File, limits: &Limits) -> io::Result<(GitObjectKind, Vec<u8>)> {
    let damaged = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why);
    let mut stream = BufReader::new(ZlibDecoder::new(file));
    let mut header = Vec::new();
    let bounded = stream.by_ref().take(MAX_OBJECT_HEADER);
    for byte in bounded.bytes() {
        match byte? {
            0 => break,
            byte => header.push(byte),
        }
    }
    let header = String::from_utf8_lossy(&header);
    let found = header.split_once(' ').and_then(|(kind, size)| {
        let kind = GitObjectKind::from_word(kind.as_bytes())?;
        Some((kind, size.parse::<u64>().ok()?))
    });
    let (kind, size) = found.ok_or_else(|| damaged("it is not an object of git"))?;
    if size > limits.git_object_bytes {
        let limit = limits.git_object_bytes;
        return Err(damaged(&format!("it is larger than the limit of {limit}")));
    }
    let mut content = Vec::new();
    stream.take(size + 1).read_to_end(&mut content)?;
    if content.len() as u64 != size {
        return Err(damaged("it has another size than its header says"));
    }
    Ok((kind, content))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::sample;
    use crate::{GitPackPlan, ObjectDatabase};
    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use std::fs;

    /// A bare repository with the commits of the sample in a pack, and a loose commit.
    struct Repository {
        folder: tempfile::TempDir,
        tag: ObjectId,
    }

    impl Repository {
        fn new() -> Repository {
            let (pack, tag) = sample();
            let repository = Repository {
                folder: tempfile::tempdir().unwrap(),
                tag,
            };
            repository.write("HEAD", b"ref: refs/heads/main\n");
            repository.write("objects/pack/pack-1.pack", &pack.bytes());
            repository.write("refs/tags/v1", format!("{tag}\n").as_bytes());
            repository
        }

        fn write(&self, path: &str, content: &[u8]) {
            let path = self.folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }

        fn write_loose(&self, id: &str, content: &[u8]) {
            let mut stream = ZlibEncoder::new(Vec::new(), Compression::default());
            stream.write_all(content).unwrap();
            let path = format!("objects/{}/{}", &id[..2], &id[2..]);
            self.write(&path, &stream.finish().unwrap());
        }

        fn open(&self) -> Result<LocalRepository, String> {
            open(self.folder.path(), &Limits::DEFAULT).map_err(|error| error.to_string())
        }

        fn packs(&self, limits: &Limits) -> Result<Vec<Arc<dyn PackBytes>>, String> {
            let opened = open(self.folder.path(), limits).unwrap();
            opened.packs(limits).map_err(|error| error.to_string())
        }
    }

    #[test]
    fn packed_loose_and_symbolic_refs_are_read_like_git_reads_them() {
        let repository = Repository::new();
        let tag = repository.tag;
        let other = ObjectId::ZERO;
        let packed = format!(
            "# pack-refs with: peeled fully-peeled sorted \n{other} refs/heads/main\n\
             {other} refs/remotes/origin/x\n{other} refs/tags/v1\n^{tag}\n"
        );
        repository.write("packed-refs", packed.as_bytes());
        repository.write("refs/heads/team/topic", format!("{tag}\n").as_bytes());
        repository.write("refs/heads/alias", b"ref: refs/heads/team/topic\n");
        repository.write("refs/heads/alias2", b"ref: refs/heads/alias\n");
        repository.write("refs/heads/nowhere", b"ref: refs/heads/gone\n");
        repository.write("refs/heads/main.lock", b"");
        repository.write("refs/heads/.keep", b"");
        let found = repository.open().unwrap();
        let found: Vec<_> = found.refs.iter().map(|one| (&*one.name, one.id)).collect();
        assert_eq!(
            found,
            [
                ("HEAD", other),
                ("refs/heads/alias", tag),
                ("refs/heads/alias2", tag),
                ("refs/heads/main", other),
                ("refs/heads/team/topic", tag),
                // the file of a ref overrides `packed-refs`
                ("refs/tags/v1", tag),
            ]
        );
        for (path, content) in [("refs/heads/x", "zz"), ("packed-refs", "zz refs/heads/x\n")] {
            let repository = Repository::new();
            repository.write(path, content.as_bytes());
            let error = repository.open().err().unwrap();
            assert!(error.contains("not a ref"), "{path}: {error}");
        }
    }

    #[test]
    fn objects_of_packs_and_loose_ones_are_found() {
        let repository = Repository::new();
        let content = b"loose\n";
        let id = ObjectId::of_object(GitObjectKind::Blob, content).unwrap();
        repository.write_loose(&id.to_string(), b"blob 6\0loose\n");
        repository.write("objects/pack/tmp_pack_x", b"not complete");
        let mut database = ObjectDatabase::new(Limits::DEFAULT);
        for pack in repository.packs(&Limits::DEFAULT).unwrap() {
            database.add_pack(pack).unwrap();
        }
        let found = database.find(id).unwrap();
        assert_eq!(&*database.content(found).unwrap(), content);
        let plan = GitPackPlan::new(&database, &[repository.tag], &[]).unwrap();
        let is_commit = |object| database.kind(object) == GitObjectKind::Commit;
        let commits = plan.objects().filter(|planned| is_commit(planned.object));
        assert_eq!(commits.count(), 3);
    }

    #[test]
    fn loose_objects_that_are_damaged_or_too_large_are_errors() {
        let id = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";
        let limits = Limits {
            git_object_bytes: 1000,
            git_pack_bytes: 1000,
            ..Limits::DEFAULT
        };
        let large = [b"blob 1001\0".to_vec(), vec![b'a'; 1001]].concat();
        for (content, why) in [
            (&b"blob 7\0short"[..], "another size"),
            (b"blob 3\0longer", "another size"),
            (b"blob 99999999999999999999\0x", "not an object"),
            (b"blob 1", "another size"),
            (b"file 1\0x", "not an object"),
            (&[b'1'; 40], "not an object"),
            (b"blob 1001\0x", "larger than the limit of 1000"),
            (&large, "larger than the limit of 1000"),
        ] {
            let repository = Repository::new();
            repository.write_loose(id, content);
            let error = repository.packs(&limits).err().unwrap();
            assert!(error.contains(why) && error.contains(&id[2..]), "{error}");
        }
        let repository = Repository::new();
        repository.write(&format!("objects/{}/{}", &id[..2], &id[2..]), b"not zlib");
        let error = repository.packs(&limits).err().unwrap();
        assert!(error.contains(&id[2..]), "{error}");
        let repository = Repository::new();
        for digit in ["a", "b"] {
            let content = [b"blob 600\0".to_vec(), vec![b'a'; 600]].concat();
            repository.write_loose(&digit.repeat(40), &content);
        }
        let error = repository.packs(&limits).err().unwrap();
        assert!(error.contains("loose objects together"), "{error}");
    }

    #[test]
    fn a_repository_whose_refs_move_while_it_is_read_is_an_error() {
        let repository = Repository::new();
        let opened = repository.open().unwrap();
        assert!(opened.packs(&Limits::DEFAULT).is_ok());
        repository.write("refs/heads/new", format!("{}\n", repository.tag).as_bytes());
        let error = opened.packs(&Limits::DEFAULT).err().unwrap().to_string();
        assert!(
            error.contains("changed while it was read; lock again"),
            "{error}"
        );
    }

    #[test]
    fn repositories_in_formats_that_are_not_read_are_errors() {
        for (path, content, why) in [
            (
                "config",
                "[extensions]\n\tobjectFormat = sha256\n",
                "objectformat sha256",
            ),
            (
                "config",
                "[extensions]\n\trefStorage = reftable\n",
                "refstorage reftable",
            ),
            (
                "config",
                "[core]\n\trepositoryformatversion = 7\n",
                "repositoryformatversion 7",
            ),
            ("config", "[core\n", "cannot read config: line 1"),
            (
                "objects/info/alternates",
                "# none\n/srv/other/objects\n",
                "another repository",
            ),
            ("commondir", "../..\n", "linked working tree"),
            ("shallow", "x\n", "cannot read shallow"),
            (
                ".git",
                "gitdir: ../elsewhere\n",
                "linked working tree or a submodule",
            ),
        ] {
            let repository = Repository::new();
            repository.write(path, content.as_bytes());
            let error = repository.open().err().unwrap_or_default();
            assert!(error.contains(why), "{path}: {error}");
        }
        let repository = Repository::new();
        repository.write("objects/info/alternates", b"# none\n");
        repository.write(
            "config",
            b"[core]\n\tbare = true\n[extensions]\n\tobjectformat = sha1\n",
        );
        assert!(repository.open().is_ok());
        fs::remove_file(repository.folder.path().join("HEAD")).unwrap();
        let error = repository.open().err().unwrap();
        assert!(
            error.contains("not the folder of a git repository"),
            "{error}"
        );
        let few = Limits {
            git_refs: 0,
            ..Limits::DEFAULT
        };
        assert!(open(Repository::new().folder.path(), &few).is_err());
    }
}
