//! Packs for tests, valid and hostile ones.

use crate::delta;
use crate::object::{GitObjectKind, ObjectId};
use crate::pack::{EntryForm, PackWriter};

/// Builds a pack entry by entry.
#[derive(Default)]
pub struct TestPack(Vec<(EntryForm, Vec<u8>)>);

impl TestPack {
    /// Adds a whole object and returns its id.
    pub fn add(&mut self, kind: GitObjectKind, content: &[u8]) -> ObjectId {
        self.0.push((EntryForm::Whole(kind), content.to_vec()));
        ObjectId::of_object(kind, content).unwrap_or(ObjectId::ZERO)
    }

    /// Adds a tree with these entries: mode, name and object. They must be sorted.
    pub fn add_tree(&mut self, entries: &[(&str, &str, ObjectId)]) -> ObjectId {
        let mut content = Vec::new();
        for (mode, name, id) in entries {
            content.extend(format!("{mode} {name}\0").bytes());
            content.extend(id.as_bytes());
        }
        self.add(GitObjectKind::Tree, &content)
    }

    /// Adds a commit.
    pub fn add_commit(&mut self, tree: ObjectId, parents: &[ObjectId]) -> ObjectId {
        let parents: String = parents.iter().map(|id| format!("parent {id}\n")).collect();
        let person = "T <t@example.com> 1600000000 +0000";
        let text = format!("tree {tree}\n{parents}author {person}\ncommitter {person}\n\ntext\n");
        self.add(GitObjectKind::Commit, text.as_bytes())
    }

    /// Adds an entry that is a delta against the object `base`. The bytes of the delta may
    /// be anything.
    pub fn add_delta_to(&mut self, base: ObjectId, delta: &[u8]) {
        self.0.push((EntryForm::DeltaToId(base), delta.to_vec()));
    }

    /// Adds an entry that is a delta against the entry that begins `distance` bytes before it.
    pub fn add_delta_at(&mut self, distance: u64, delta: &[u8]) {
        self.0
            .push((EntryForm::DeltaToOffset(distance), delta.to_vec()));
    }

    /// Adds the object `content` as a delta to the object `base`. Returns the id of the new object.
    pub fn add_as_delta(&mut self, kind: GitObjectKind, base: &[u8], content: &[u8]) -> ObjectId {
        let delta = delta::create(base, content, usize::MAX).unwrap_or_default();
        let base = ObjectId::of_object(kind, base).unwrap_or(ObjectId::ZERO);
        self.add_delta_to(base, &delta);
        ObjectId::of_object(kind, content).unwrap_or(ObjectId::ZERO)
    }

    /// The bytes of the pack.
    ///
    /// # Panics
    /// Never: memory can always be written.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = PackWriter::new(&mut bytes);
        let written = writer.head(self.0.len() as u32).and_then(|()| {
            let mut entries = self.0.iter();
            entries.try_for_each(|(form, content)| writer.entry(*form, content))
        });
        assert!(written.and_then(|()| writer.finish()).is_ok());
        bytes
    }
}

/// A pack with three commits and an annotated tag of the last one, and the id of the tag. Each
/// commit has another version of one file: as `run` and, in a folder, as `src/text`.
pub fn sample() -> (TestPack, ObjectId) {
    let mut pack = TestPack::default();
    let texts = [1, 2, 3].map(|version| {
        let lines = (0..60).map(|line| format!("line {line} of version {}\n", version * line / 40));
        lines.collect::<String>()
    });
    let mut blobs = vec![pack.add(GitObjectKind::Blob, texts[0].as_bytes())];
    for pair in texts.windows(2) {
        blobs.push(pack.add_as_delta(GitObjectKind::Blob, pair[0].as_bytes(), pair[1].as_bytes()));
    }
    let mut parents: Vec<ObjectId> = Vec::new();
    for blob in blobs {
        let folder = pack.add_tree(&[("100644", "text", blob)]);
        let tree = pack.add_tree(&[("100755", "run", blob), ("40000", "src", folder)]);
        parents = vec![pack.add_commit(tree, &parents)];
    }
    let tag = format!(
        "object {}\ntype commit\ntag v1\ntagger T <t> 0 +0000\n\nv1\n",
        parents[0]
    );
    let tag = pack.add(GitObjectKind::Tag, tag.as_bytes());
    (pack, tag)
}
