//! The targets for packs of git servers, and for repositories next to a manifest.

use flate2::Compression;
use flate2::write::ZlibEncoder;
use landfall_git::testing::sample;
use landfall_git::{
    GitObjectKind, GitPackPlan, LocalRepository, ObjectDatabase, ObjectId, RootFiles, SignedObject,
    check_complete, large_files, pinned_submodules, shallow_boundary, tag_name, write_pack,
};
use landfall_model::Limits;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const LIMITS: Limits = Limits {
    git_object_bytes: 1 << 20,
    git_unpacked_bytes: 16 << 20,
    ..Limits::DEFAULT
};

pub(super) fn pack_seeds() -> Vec<Vec<u8>> {
    vec![sample().0.bytes()]
}

/// Runs the readers that `lock` runs on a commit or tag.
fn read_all(database: &ObjectDatabase, tip: ObjectId) {
    let Ok(content) = database
        .find(tip)
        .and_then(|object| database.content(object))
    else {
        return;
    };
    for signed in [
        SignedObject::of_commit(&content),
        SignedObject::of_tag(&content),
    ] {
        let signed = signed.map(|signed| (signed.time(), signed.payload.len()));
        assert!(signed.is_none_or(|(_, length)| length < content.len()));
    }
    let _ = tag_name(&content);
    let _ = pinned_submodules(database, &[tip]);
    let _ = large_files(database, &[tip], 100);
    let mut files = RootFiles::lfs_config(database);
    if let Ok(Some(file)) = files.find(tip) {
        let _ = files.parse_lfs_config(file);
    }
    let _ = shallow_boundary(database, &[tip], 2);
}

/// Reads any pack, and writes a pack for each commit, tag and tree in it. Reading that pack and
/// writing it again must give the same bytes.
pub(super) fn pack(bytes: &[u8]) {
    let mut database = ObjectDatabase::new(LIMITS);
    if database.add_pack(Arc::new(bytes.to_vec())).is_ok() {
        write_again(&database);
    }
}

fn write_again(database: &ObjectDatabase) {
    for object in database.objects() {
        if database.kind(object) == GitObjectKind::Blob {
            continue;
        }
        let tip = database.id(object);
        read_all(database, tip);
        let Ok(plan) = GitPackPlan::new(database, &[tip], &[]) else {
            continue;
        };
        assert!(check_complete(database, &[tip]).is_ok());
        let mut written = Vec::new();
        write_pack(database, &plan, &mut written).unwrap();
        let mut again = ObjectDatabase::new(LIMITS);
        again.add_pack(Arc::new(written.clone())).unwrap();
        let plan = GitPackPlan::new(&again, &[tip], &[]).unwrap();
        let mut second = Vec::new();
        write_pack(&again, &plan, &mut second).unwrap();
        assert_eq!(written, second);
    }
}

/// Separates the files of a repository: the path of a file follows, a line feed, and its content.
const FILE: &[u8] = b"\n@@ ";

/// The maximum number of files of a repository.
const MAX_FILES: usize = 64;

/// Two bundles, and the files of a repository with a pack and a loose object.
pub(super) fn repository_seeds() -> Vec<Vec<u8>> {
    let (pack, tag) = sample();
    let bundle = |head: String| [head.into_bytes(), pack.bytes()].concat();
    let loose = ObjectId::of_object(GitObjectKind::Blob, b"loose")
        .unwrap()
        .to_string();
    let loose = format!("objects/{}/{}", &loose[..2], &loose[2..]);
    let refs = format!("{tag} refs/heads/main\n{tag} refs/tags/v1\n^{tag}\n");
    let line = format!("{tag}\n");
    let files: [(&str, &[u8]); 9] = [
        ("HEAD", b"ref: refs/heads/main\n"),
        (
            "config",
            b"[core]\n\trepositoryformatversion = 0\n\tbare = true\n",
        ),
        ("packed-refs", refs.as_bytes()),
        ("refs/tags/v1", line.as_bytes()),
        ("refs/heads/alias", b"ref: refs/heads/main\n"),
        ("shallow", line.as_bytes()),
        ("objects/info/alternates", b"# none\n"),
        ("objects/pack/pack-1.pack", &pack.bytes()),
        (&loose, b"blob 5\0loose"),
    ];
    let mut folder = Vec::new();
    for (path, content) in files {
        folder.extend([FILE, path.as_bytes(), b"\n", content].concat());
    }
    vec![
        bundle(format!(
            "# v2 git bundle\n{tag} refs/tags/v1\n{tag} HEAD\n\n"
        )),
        bundle(format!(
            "# v3 git bundle\n@object-format=sha1\n{tag} refs/heads/main\n\n"
        )),
        folder,
    ]
}

/// Reads any file as a git bundle, and any files as the folder of a repository.
pub(super) fn repository(bytes: &[u8]) {
    databases(bytes).iter().for_each(write_again);
}

/// The objects of the bundle and of the folder, as far as they can be read.
fn databases(bytes: &[u8]) -> Vec<ObjectDatabase> {
    let place = tempfile::tempdir().unwrap();
    let bundle = place.path().join("bundle");
    std::fs::write(&bundle, bytes).unwrap();
    let folder = place.path().join("folder");
    let parts = bytes.windows(FILE.len()).enumerate();
    let starts = parts.filter(|(_, window)| *window == FILE);
    let starts: Vec<usize> = starts.map(|(at, _)| at).take(MAX_FILES).collect();
    for (number, start) in starts.iter().enumerate() {
        let end = starts.get(number + 1).copied().unwrap_or(bytes.len());
        write_file(&folder, &bytes[start + FILE.len()..end]);
    }
    let read = |path: &PathBuf| {
        let repository = LocalRepository::open(path, &LIMITS).ok()?;
        // the refs, and `HEAD`
        assert!(repository.refs.len() <= LIMITS.git_refs + 1);
        let mut database = ObjectDatabase::new(LIMITS);
        for pack in repository.packs(&LIMITS).ok()? {
            database.add_pack(pack).ok()?;
        }
        Some(database)
    };
    [bundle, folder].iter().filter_map(read).collect()
}

/// Writes a file below `folder`, if its path is one. A loose object is compressed, as git does.
fn write_file(folder: &Path, file: &[u8]) {
    let line = file.iter().position(|byte| *byte == b'\n');
    let (path, content) = file.split_at(line.unwrap_or(file.len()));
    let path = String::from_utf8_lossy(path);
    let is_name = |name: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._@".contains(c);
        !name.is_empty() && name != "." && name != ".." && name.chars().all(is_plain)
    };
    if !path.split('/').all(is_name) || path.len() > 200 {
        return;
    }
    let mut content = content.get(1..).unwrap_or_default().to_vec();
    let parts: Vec<&str> = path.split('/').collect();
    if matches!(parts[..], ["objects", first, _] if first.len() == 2) {
        let mut stream = ZlibEncoder::new(Vec::new(), Compression::fast());
        stream.write_all(&content).unwrap();
        content = stream.finish().unwrap();
    }
    let path = folder.join(&*path);
    // a file may have the name of a folder
    let _ = std::fs::create_dir_all(path.parent().unwrap_or(folder));
    let _ = std::fs::write(path, content);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_seed_is_a_repository() {
        for seed in repository_seeds() {
            let databases = databases(&seed);
            assert_eq!(databases.len(), 1);
            assert!(databases[0].objects().count() > 9);
        }
    }
}
