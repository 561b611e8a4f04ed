//! Versions in a YAML alias: they are updated at the anchor, for all its aliases.

use super::moved;
use super::upstream::Upstream;

#[test]
fn a_version_in_a_yaml_alias_is_updated_at_its_anchor() {
    let up = Upstream::new();
    for (repository, version) in [
        ("a", "1.0.0"),
        ("a", "1.0.1"),
        ("b", "1.0.0"),
        ("b", "1.0.1"),
        ("c", "1.0.0"),
        ("d", "1.0.0"),
        ("d", "1.0.1"),
    ] {
        up.put(repository, version, 1);
    }
    let text = up.manifest(
        "vars:\n  plain: &release '1.0.0' # everybody's\n  moving: {value: *release, update: patch}\n  \
         again: {value: *release, update: minor}\nimages: ['REG/a:${moving}', 'REG/b:${plain}', 'REG/d:${again}']\n",
    );
    let report = up.run(0, "update", &[]);
    assert_eq!(
        moved(&report),
        [("moving".into(), "1.0.1".into())],
        "all its aliases were updated: {report:#}"
    );
    assert_eq!(up.place.read("m.yaml"), text.replacen("1.0.0", "1.0.1", 1));
    let lock = up.place.read("landfall.lock");
    assert!(
        lock.contains("/a:1.0.1") && lock.contains("/b:1.0.1") && !lock.contains("1.0.0"),
        "{lock}"
    );

    // upstream must have all items that use the anchor's version
    let text = up.manifest(
        "vars:\n  plain: &release 1.0.0\n  moving: {value: *release, update: patch}\nimages: ['REG/a:${moving}', 'REG/c:${plain}']\n",
    );
    let report = up.run(0, "update", &[]);
    assert!(
        report["updates"][0]["held"][0]["why"]
            .as_str()
            .unwrap()
            .contains("/c:1.0.1"),
        "{report:#}"
    );
    assert_eq!(up.place.read("m.yaml"), text);
}
