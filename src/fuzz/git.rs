//! Packs of git servers.

use landfall_git::{GitObjectKind, GitPackPlan, ObjectDatabase, write_pack};
use landfall_model::Limits;
use std::sync::Arc;

pub(super) fn pack_seeds() -> Vec<Vec<u8>> {
    vec![landfall_git::testing::sample().0.bytes()]
}

/// Reads any pack. A pack that is written from its objects must be readable, and writing that pack
/// again must give the same bytes.
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
        let Ok(plan) = GitPackPlan::new(&database, &[tip], &[]) else {
            continue;
        };
        let mut written = Vec::new();
        write_pack(&database, &plan, &mut written).unwrap();
        let again = read(written.clone()).unwrap();
        let plan = GitPackPlan::new(&again, &[tip], &[]).unwrap();
        let mut second = Vec::new();
        write_pack(&again, &plan, &mut second).unwrap();
        assert_eq!(written, second);
    }
}
