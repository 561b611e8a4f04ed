//! The target for packs of git servers.

use landfall_git::{
    GitObjectKind, GitPackPlan, ObjectDatabase, ObjectId, RootFiles, SignedObject, check_complete,
    large_files, pinned_submodules, shallow_boundary, tag_name, write_pack,
};
use landfall_model::Limits;
use std::sync::Arc;

pub(super) fn pack_seeds() -> Vec<Vec<u8>> {
    vec![landfall_git::testing::sample().0.bytes()]
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
    let limits = Limits {
        git_object_bytes: 1 << 20,
        git_unpacked_bytes: 16 << 20,
        ..Limits::DEFAULT
    };
    let read = |bytes: Vec<u8>| {
        let mut database = ObjectDatabase::new(limits);
        database.add_pack(Arc::new(bytes)).map(|()| database)
    };
    let Ok(database) = read(bytes.to_vec()) else {
        return;
    };
    for object in database.objects() {
        if database.kind(object) == GitObjectKind::Blob {
            continue;
        }
        let tip = database.id(object);
        read_all(&database, tip);
        let Ok(plan) = GitPackPlan::new(&database, &[tip], &[]) else {
            continue;
        };
        assert!(check_complete(&database, &[tip]).is_ok());
        let mut written = Vec::new();
        write_pack(&database, &plan, &mut written).unwrap();
        let again = read(written.clone()).unwrap();
        let plan = GitPackPlan::new(&again, &[tip], &[]).unwrap();
        let mut second = Vec::new();
        write_pack(&again, &plan, &mut second).unwrap();
        assert_eq!(written, second);
    }
}
