//! Packages in commands: updates of pins, deltas of `refresh`, changes and changelogs in `diff`,
//! and audits of packages that scripts install.

use crate::support::apt::{AptUpstream, deb};
use crate::support::object_store::ObjectStore;
use crate::support::yum::YumUpstream;
use serde_json::{Value, json};

/// The updated packages and variables: name, new version, and the last word of the source.
fn moved(report: &Value) -> Vec<String> {
    let text = |one: &Value, key: &str| one[key].as_str().unwrap_or_default().to_owned();
    let moves = report["updates"].as_array().unwrap().iter();
    let moves = moves.filter(|one| one["to"].is_string()).map(|one| {
        let source = text(one, "source");
        format!(
            "{} {} {}",
            text(one, "name"),
            text(one, "to"),
            source.rsplit(' ').next().unwrap()
        )
    });
    let mut moves: Vec<String> = moves.map(|line| line.trim_end().to_owned()).collect();
    moves.sort();
    moves
}

/// Each package in the changes of a report, as `change name from to`.
fn packages(report: &Value) -> Vec<String> {
    let all = report["changes"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|change| change["packages"].as_array());
    let lines = all.flatten().map(|one| {
        let text = |key: &str| one[key].as_str().unwrap_or("-").to_owned();
        format!(
            "{} {} {} {}",
            text("change"),
            text("name"),
            text("from"),
            text("to")
        )
    });
    lines.collect()
}

#[test]
fn update_moves_apt_pins_and_diff_and_audit_list_packages() {
    let Some(up) = AptUpstream::new() else { return };
    let place = &up.place;
    let url = up.url();
    up.build(
        "pool/s",
        &[
            deb("containerd", "1:1.7.24-1", ""),
            deb("foo", "1.0-1", "Depends: libfoo (= 1.0-1)\n"),
            deb("libfoo", "1.0-1", ""),
            deb("jq", "1.6-1", "Depends: old-lib\n"),
            deb("old-lib", "1-1", ""),
            deb("kubelet", "1.33.4-1.1", ""),
        ],
    );
    up.build("pool/s-security", &[deb("none", "1", "")]);
    up.suite("s", "");
    up.suite("s-security", "");
    let text = format!(
        "apiVersion: landfall/v1\nkind: Manifest\nvars:\n  kube: {{value: 1.33.4, update: patch}}\n\
         packages:\n- apt:   # 1.0-1 everywhere\n    name: nodes\n    base: none\n    update: minor\n    sources:\n    \
         - {{url: '{url}', suite: [s, s-security], components: [main], key: key.asc}}\n    install: [containerd=1:1.7.24-1,  jq,\n      \
         \"foo=1.0-1\", &pin libfoo=1.0-1, 'kubelet=${{kube}}-1.1']   # end\n"
    );
    place.write("m.yaml", &text);
    up.lock(0, &[]);
    let update =
        |exit: i32, more: &[&str]| place.json(exit, &[&["update", "-f", "m.yaml"], more].concat());
    assert_eq!(update(0, &["--check"])["updates"], json!([]));

    let new = [
        deb("containerd", "1:1.7.25-1", ""),
        deb("containerd", "1:1.8.0-1", "Depends: nowhere\n"),
        deb("containerd", "1:2.0.0-1", ""),
        deb("foo", "1.1-1", "Depends: libfoo (= 1.1-1)\n"),
        deb("libfoo", "1.1-1", ""),
        deb("jq", "1.7-1", "Depends: new-lib\n"),
        deb("new-lib", "1-1", ""),
        deb("kubelet", "1.33.5-1.1", ""),
        deb("kubelet", "1.33.6-1.1", "Depends: nowhere-else\n"),
        deb("kubelet", "1.33.7-2", ""),
        deb("kubelet", "1.34.0-1.1", ""),
    ];
    up.build("pool/s", &new);
    up.build("pool/s-security", &new[..1]);
    up.suite("s", "");
    up.suite("s-security", "");
    place.write("old.lock", place.read("landfall.lock"));
    let report = update(4, &["--check"]);
    assert_eq!(place.read("m.yaml"), text);
    let expected = [
        "containerd 1:1.7.25-1 s-security",
        "foo 1.1-1 s",
        "kube 1.33.5 s",
        "libfoo 1.1-1 s",
    ];
    assert_eq!(moved(&report), expected, "{report:#}");
    let updates = report["updates"].to_string();
    for why in ["needs nowhere", "needs nowhere-else"] {
        assert!(updates.contains(why), "{why}: {report:#}");
    }
    assert_eq!(
        moved(&update(4, &["--check", "--only", "containerd"])),
        expected[..1]
    );
    let report = update(0, &[]);
    assert_eq!(moved(&report), expected);
    let edited = text
        .replace("value: 1.33.4", "value: 1.33.5")
        .replace("containerd=1:1.7.24-1", "containerd=1:1.7.25-1")
        .replace("\"foo=1.0-1\"", "\"foo=1.1-1\"")
        .replace("&pin libfoo=1.0-1", "&pin libfoo=1.1-1");
    assert_eq!(place.read("m.yaml"), edited);
    let changes = [
        "up containerd 1:1.7.24-1 1:1.7.25-1",
        "up foo 1.0-1 1.1-1",
        "up jq 1.6-1 1.7-1",
        "up kubelet 1.33.4-1.1 1.33.5-1.1",
        "up libfoo 1.0-1 1.1-1",
        "added new-lib - 1-1",
        "removed old-lib 1-1 -",
    ];
    assert_eq!(packages(&report), changes);

    // no pin is updated from metadata without a valid signature
    let signed = place.read("up/r/dists/s/InRelease");
    place.write(
        "up/r/dists/s/InRelease",
        signed.replace("Origin: test", "Origin: best"),
    );
    assert_eq!(moved(&update(3, &["--dry-run"])), Vec::<String>::new());

    // the difference of two locks
    assert_eq!(
        packages(&place.json(0, &["diff", "old.lock", "landfall.lock"])),
        changes
    );
    let down = packages(&place.json(0, &["diff", "landfall.lock", "old.lock"]));
    assert_eq!(down[0], "down containerd 1:1.7.25-1 1:1.7.24-1");
    let printed = place.ok(&["diff", "old.lock", "landfall.lock"]);
    assert!(
        printed.contains(
            "
  up       jq 1.6-1 -> 1.7-1 amd64  "
        ) && printed.contains("  removed  old-lib 1-1 amd64\n"),
        "{printed}"
    );
    let markdown = place.ok(&["diff", "old.lock", "landfall.lock", "--output", "markdown"]);
    assert!(
        markdown.contains("<summary>Packages of apt:nodes: 7</summary>"),
        "{markdown}"
    );
    assert!(
        markdown.contains("| up | `jq` | `amd64` | `1.6-1 -> 1.7-1` |"),
        "{markdown}"
    );

    // scripts compared with the lock
    place.write(
        "t/setup.sh",
        "#!/bin/sh\napt-get update && apt-get install -y --no-install-recommends jq \\\n  containerd=1:1.7.2* $MORE\n\
         apt install -y foo=1.0-1 socat; dnf install -y tar\n",
    );
    place.write(
        "t/Dockerfile",
        "FROM scratch\nRUN [\"apt-get\", \"install\", \"-y\", \"new-lib\"]\n",
    );
    place.write(
        "t/user-data",
        "#cloud-config\npackages:\n- jq\n- [libfoo, 1.1-1]\n- nfs-common\n",
    );
    place.write(
        "t/pod.yaml",
        "kind: Pod\nargs: [sh, -c, 'apt-get install -y jq/s kubelet:arm64']\n",
    );
    let audit = ["audit", "t", "--lock", "landfall.lock"];
    let report = place.json(4, &audit);
    let names = |of: &str| {
        let found = report[of]
            .as_array()
            .unwrap()
            .iter()
            .filter(|one| one["manager"].is_string());
        let line = |one: &Value| format!("{} {}", one["line"], one["reference"].as_str().unwrap());
        found.map(line).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(
        names("held"),
        "2 new-lib, 2 jq/s, 2 jq, 3 containerd=1:1.7.2*, 3 jq, 4 libfoo=1.1-1",
        "{report:#}"
    );
    assert_eq!(
        names("missing"),
        "2 kubelet:arm64, 4 foo=1.0-1, 4 socat, 5 nfs-common",
        "{report:#}"
    );
    assert_eq!(names("undecided"), "3 $MORE, 4 tar", "{report:#}");
    let missing = report["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|item| item["name"] == "socat")
        .unwrap();
    assert_eq!(
        (&missing["kind"], &missing["status"]),
        (&json!("package"), &json!("missing"))
    );
    let output = place
        .command()
        .args(audit)
        .args(["--missing", "more.yaml"])
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(
        printed.contains("t/setup.sh:4:16: missing apt foo=1.0-1: apt:nodes has 1.1-1\n"),
        "{printed}"
    );
    assert!(
        place
            .read("more.yaml")
            .contains("# - socat  # t/setup.sh:4; not in apt:nodes"),
        "{}",
        place.read("more.yaml")
    );
    // if the lock has no packages, an audit reports none
    place.write("empty.lock", "version: 1\nimages: []\n...\n");
    assert_eq!(
        place.json(0, &["audit", "t", "--lock", "empty.lock"])["missing"],
        json!([])
    );
}

#[test]
fn update_moves_yum_pins_to_the_newest_version_and_release() {
    let Some(up) = YumUpstream::new() else { return };
    up.build(&[
        ("foo", "1.0", "", &["/usr/share/foo"]),
        ("lib-2", "1.0", "", &[]),
    ]);
    up.index("gz");
    up.wants("update: '*', base: none, install: [foo-1.0-1, lib-2, 'lib-2-1.0-1']");
    up.lock(0, &[]);
    let text = up.place.read("m.yaml");
    up.place.write("old.lock", up.place.read("landfall.lock"));
    up.build(&[
        ("foo", "1.10", "", &["/usr/share/foo"]),
        ("foo", "1.9", "", &[]),
        ("lib-2", "1.1", "", &[]),
    ]);
    up.index("gz");
    let report = up.place.json(0, &["update", "-f", "m.yaml"]);
    let moves = moved(&report);
    assert!(
        moves.len() == 2
            && moves[0].starts_with("foo 1.10-1 ")
            && moves[1].starts_with("lib-2 1.1-1 "),
        "{moves:?}"
    );
    assert_eq!(
        up.place.read("m.yaml"),
        text.replace("foo-1.0-1", "foo-1.10-1")
            .replace("'lib-2-1.0-1'", "'lib-2-1.1-1'")
    );
    assert_eq!(
        packages(&report),
        ["up foo 1.0-1 1.10-1", "up lib-2 1.0-1 1.1-1"],
        "{report:#}"
    );
    up.place.write(
        "s.sh",
        "#!/bin/sh\ndnf -y install foo-1.10 foo-1.9 lib-2.noarch\n",
    );
    let report = up
        .place
        .json(4, &["audit", "s.sh", "--lock", "landfall.lock"]);
    let names = |of: &str| {
        report[of]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["reference"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (names("held"), names("missing")),
        (
            vec![json!("foo-1.10"), json!("lib-2.noarch")],
            vec![json!("foo-1.9")]
        )
    );
}

#[test]
fn refresh_packs_newer_packages_and_their_indexes_as_a_delta() {
    let Some(up) = AptUpstream::new() else { return };
    let place = &up.place;
    let url = up.url();
    up.build(
        "pool/s",
        &[
            deb("foo", "1.0-1", "Depends: libfoo\n"),
            deb("libfoo", "1.0-1", ""),
        ],
    );
    up.suite("s", "");
    place.write(
        "m.yaml",
        format!(
            "apiVersion: landfall/v1\nkind: Manifest\npackages:\n- apt:\n    name: nodes\n    base: none\n    update: minor\n    \
             sources: [{{url: '{url}', suite: s, components: [main], key: key.asc}}]\n    install: [foo=1.0-1]\n"
        ),
    );
    let refresh = |more: &[&str]| place.json(0, &[&["refresh", "-f", "m.yaml"], more].concat());
    let first = refresh(&["-o", "b1"]);
    assert!(first["bundle"]["digest"].is_string(), "{first:#}");
    let again = refresh(&["-o", "b1"]);
    assert!(
        again.get("bundle").is_none() && packages(&again).is_empty(),
        "{again:#}"
    );
    // the update of a pin also updates the dependencies of the package
    place.write("sent.lock", place.read("landfall.lock"));
    up.changelog(
        "foo",
        "1.1-1",
        "foo (1.1-1) s; urgency=low\n\n  * what is new\n",
    );
    up.build(
        "pool/s",
        &[
            deb("foo", "1.1-1", "Depends: libfoo (>= 1.1)\n"),
            deb("libfoo", "1.1-1", ""),
        ],
    );
    up.suite("s", "");
    let second = refresh(&["-o", "d2", "--since", "sent.lock"]);
    assert_eq!(changelogs(&second), ["foo: * what is new"]);
    assert_eq!(moved(&second), ["foo 1.1-1 s"]);
    assert_eq!(
        packages(&second),
        ["up foo 1.0-1 1.1-1", "up libfoo 1.0-1 1.1-1"],
        "{second:#}"
    );
    place.ok(&["verify", "d2", "b1"]);
    // a new package in the repository changes nothing: the locked packages are packed with the
    // locked indexes
    let lock = place.read("landfall.lock");
    up.build("pool/s", &[deb("other", "1-1", "")]);
    up.suite("s", "");
    let third = refresh(&["-o", "d3", "--since", "landfall.lock"]);
    assert!(
        third.get("bundle").is_none() && packages(&third).is_empty(),
        "{third:#}"
    );
    assert_eq!(place.read("landfall.lock"), lock);
}

#[test]
fn refresh_reads_changelogs_from_an_object_store() {
    let Some(up) = AptUpstream::new() else { return };
    let place = &up.place;
    let url = up.url();
    let store = ObjectStore::start();
    store.introduce_to(place);
    let release = |version: &str| {
        let change = format!("foo ({version}) s; urgency=low\n\n  * about {version}\n");
        up.changelog("foo", version, &change);
        up.build("pool/s", &[deb("foo", version, "")]);
        up.suite("s", "");
    };
    place.write(
        "m.yaml",
        format!(
            "apiVersion: landfall/v1\nkind: Manifest\npackages:\n- apt:\n    name: nodes\n    base: none\n    update: minor\n    \
             sources: [{{url: '{url}', suite: s, components: [main], key: key.asc}}]\n    install: [foo=1.0-1]\n"
        ),
    );
    let refresh = |out: &str| {
        let args = ["refresh", "-f", "m.yaml", "-o", out];
        place.json(
            0,
            &[&args[..], &["--store", "s3://mirror/air/gap"]].concat(),
        )
    };
    release("1.0-1");
    refresh("b1");
    release("1.1-1");
    assert_eq!(changelogs(&refresh("b2")), ["foo: * about 1.1-1"]);
}

/// The changelog of each changed package that has one, as `name: line; line`.
fn changelogs(report: &Value) -> Vec<String> {
    let all = report["changes"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|change| change["packages"].as_array());
    let with_changelog = all.flatten().filter_map(|one| {
        let lines: Vec<_> = one["changelog"]
            .as_array()?
            .iter()
            .map(|line| line.as_str().unwrap())
            .collect();
        Some(format!(
            "{}: {}",
            one["name"].as_str().unwrap(),
            lines.join("; ")
        ))
    });
    with_changelog.collect()
}

#[test]
fn diff_shows_changelogs_of_available_apt_packages() {
    let Some(up) = AptUpstream::new() else { return };
    let place = &up.place;
    let debian = |version: &str, change: &str| {
        format!(
            "src ({version}) s; urgency=high\n\n  * {change}\n  * <more>\n\n -- N <n@a.test>  Mon, 01 Jan 2024 00:00:00 +0000\n"
        )
    };
    let built = |version: &str, change: &str| {
        for name in ["foo", "libfoo"] {
            up.changelog(name, version, &debian(version, change));
        }
        up.build(
            "pool/s",
            &[
                deb("foo", version, "Depends: libfoo\n"),
                deb("libfoo", version, ""),
                deb("none", version, ""),
            ],
        );
        up.suite("s", "");
    };
    built("1.0-1", "old");
    up.wants("s", "foo, none", ", base: none");
    up.lock(0, &[]);
    place.write("old.lock", place.read("landfall.lock"));
    built("1.1-1", "CVE-2024-1: \x1b[31mfixed");
    up.lock(0, &["--refresh"]);
    let diff = |old: &str, new: &str| place.json(0, &["diff", old, new]);
    assert!(
        changelogs(&diff("old.lock", "landfall.lock")).is_empty(),
        "no changelog is available"
    );
    place.json(0, &["pull"]);
    let expected = [
        "foo: * CVE-2024-1: \u{1b}[31mfixed; * <more>",
        "libfoo: * CVE-2024-1: \u{1b}[31mfixed; * <more>",
    ];
    assert_eq!(changelogs(&diff("old.lock", "landfall.lock")), expected);
    assert!(
        changelogs(&diff("landfall.lock", "old.lock")).is_empty(),
        "older versions have no new entries"
    );
    // the changelog of a source package is printed once, and is escaped for the terminal
    let text = place.ok(&["diff", "old.lock", "landfall.lock"]);
    assert_eq!(text.matches("CVE-2024-1").count(), 1, "{text}");
    assert!(
        text.contains("\n             * <more>\n") && !text.contains('\u{1b}'),
        "{text}"
    );
    let markdown = place.ok(&["diff", "old.lock", "landfall.lock", "--output", "markdown"]);
    assert!(markdown.contains("&lt;more&gt; |"), "{markdown}");

    place.ok(&["pack", "-o", "bundle"]);
    std::fs::remove_dir_all(place.path("home/.cache/landfall/store")).unwrap();
    assert!(
        changelogs(&diff("old.lock", "landfall.lock")).is_empty(),
        "without the store, no changelog is available"
    );
    assert_eq!(changelogs(&diff("old.lock", "bundle")), expected);
}

#[test]
fn diff_shows_changelogs_of_available_yum_packages() {
    let Some(up) = YumUpstream::new() else { return };
    let place = &up.place;
    let changelog =
        |text: &str| format!("%changelog\n* Mon Jan 01 2024 N <n@a.test> - 1\n{text}\n\n");
    up.build(&[("foo", "1.0", &changelog("- old"), &[])]);
    up.index("gz");
    up.wants("base: none, install: [foo]");
    up.lock(0, &[]);
    place.write("old.lock", place.read("landfall.lock"));
    up.build(&[(
        "foo",
        "1.1",
        &changelog("- new\n- and more\n- third\n- fourth"),
        &[],
    )]);
    up.index("gz");
    up.lock(0, &["--refresh"]);
    place.json(0, &["pull"]);
    let report = place.json(0, &["diff", "old.lock", "landfall.lock"]);
    assert_eq!(
        changelogs(&report),
        ["foo: - new; - and more; - third"],
        "{report:#}"
    );
    // a damaged package is named, and the command succeeds
    let digest = report["changes"][0]["packages"][0]["digest"]
        .as_str()
        .unwrap()
        .replace(':', "/");
    let blob = place.path(format!("home/.cache/landfall/store/blobs/{digest}"));
    std::fs::remove_file(&blob).unwrap();
    std::fs::write(&blob, "no package").unwrap();
    let ran = place
        .command()
        .args(["diff", "old.lock", "landfall.lock"])
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(
        ran.status.success() && printed.contains("the changelog of foo 1.1-1 cannot be read: "),
        "{printed}"
    );
}
