//! Reading the primary index and the list of files: their content, and errors.

use super::pool::{Pool, RpmRelationKind};
use super::primary::{read_filelists, read_primary};
use super::relation::RpmRelation;
use landfall_model::Failure;
use std::collections::BTreeSet;

const PRIMARY: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<metadata xmlns="http://linux.duke.edu/metadata/common" xmlns:rpm="http://linux.duke.edu/metadata/rpm" packages="2">
<package type="rpm">
  <name>bash&amp;co</name><arch>x86_64</arch><version epoch="1" ver="5.1" rel="2.el9"/>
  <checksum type="sha256" pkgid="YES">aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa</checksum>
  <summary>A &lt;shell&gt;</summary><description>it requires nothing</description>
  <size package="123" installed="9" archive="9"/>
  <location href="Packages/b/bash.rpm"/>
  <format>
    <rpm:provides><rpm:entry name="bash&amp;co" flags="EQ" epoch="1" ver="5.1" rel="2.el9"/></rpm:provides>
    <rpm:requires>
      <rpm:entry name="libc.so.6()(64bit)"/>
      <rpm:entry name="filesystem" flags="GE" epoch="0" ver="3" pre="1"/>
      <rpm:entry name="(a &gt;= 1 if b)"/>
    </rpm:requires>
    <rpm:supplements><rpm:entry name="x"/></rpm:supplements>
    <file>/usr/bin/bash</file><file type="dir">/etc/a b</file>
  </format>
</package>
<package type="rpm">
  <name>other</name><arch>s390x</arch><version epoch="0" ver="1" rel="1"/>
  <checksum type="sha" pkgid="YES">a</checksum><size package="1"/><location href="o.rpm"/>
  <format><rpm:requires><rpm:entry name="gone"/></rpm:requires></format>
</package>
<package type="rpm">
  <name>weak</name><arch>noarch</arch><version epoch="0" ver="1" rel="1"/>
  <checksum type="sha" pkgid="YES">a</checksum><size package="1"/><location xml:base="https://elsewhere" href="o.rpm"/>
  <format/>
</package>
</metadata>"#;

fn read(text: &str) -> Result<Pool, Failure> {
    let mut pool = Pool::default();
    read_primary(text.as_bytes(), 3, &["x86_64", "noarch"], &mut pool)?;
    pool.index();
    Ok(pool)
}

#[test]
fn packages_of_the_architectures_are_read_with_their_relations() {
    let pool = read(PRIMARY).unwrap();
    let all: Vec<String> = pool.ids().map(|id| pool.nevra(id)).collect();
    assert_eq!(all, ["bash&co-1:5.1-2.el9.x86_64", "weak-1-1.noarch"]);
    let [bash, weak] = pool.ids().collect::<Vec<_>>()[..] else {
        unreachable!()
    };
    let texts = |kind| {
        pool.relations(bash, kind)
            .map(|one| one.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(texts(RpmRelationKind::Provides), ["bash&co = 1:5.1-2.el9"]);
    assert_eq!(
        texts(RpmRelationKind::Requires),
        ["libc.so.6()(64bit)", "filesystem >= 3", "(a >= 1 if b)"]
    );
    assert_eq!(texts(RpmRelationKind::Supplements), ["x"]);
    assert_eq!(texts(RpmRelationKind::Files), ["/usr/bin/bash", "/etc/a b"]);
    let package = pool.package(bash);
    assert_eq!(
        (package.size, package.source, pool.path(bash)),
        (123, Some(3), "Packages/b/bash.rpm")
    );
    assert_eq!(package.digest.as_ref().unwrap().hex(), "a".repeat(64));
    assert_eq!(
        pool.providers(RpmRelation::parse("bash&co >= 1:5").unwrap()),
        [bash]
    );
    assert_eq!(pool.named("/etc/a b"), [bash]);
    assert!(
        pool.package(weak).digest.is_none(),
        "SHA-1 checksums are ignored"
    );
    assert_eq!(pool.path(weak), "https://elsewhere/o.rpm");
}

#[test]
fn files_that_primary_does_not_list_come_from_filelists() {
    let mut pool = read(PRIMARY).unwrap();
    let list = format!(
        "<filelists><package pkgid=\"{}\" name=\"bash\" arch=\"x86_64\"><version epoch=\"0\" ver=\"1\" rel=\"1\"/>\
         <file>/usr/lib/x</file><file>/usr/lib/y</file></package>\
         <package pkgid=\"other\"><file>/usr/lib/x</file></package></filelists>",
        "a".repeat(64)
    );
    let wanted = BTreeSet::from(["/usr/lib/x".to_owned()]);
    read_filelists(list.as_bytes(), 3, &wanted, &mut pool).unwrap();
    // dnf reads checksums as numbers, so their case does not matter
    let upper = list
        .replace(&"a".repeat(64), &"A".repeat(64))
        .replace("/usr/lib/x", "/usr/lib/z");
    let upper_wanted = BTreeSet::from(["/usr/lib/z".to_owned()]);
    read_filelists(upper.as_bytes(), 3, &upper_wanted, &mut pool).unwrap();
    pool.index();
    assert_eq!(pool.named("/usr/lib/x"), [pool.ids().next().unwrap()]);
    assert_eq!(pool.named("/usr/lib/z"), [pool.ids().next().unwrap()]);
    assert!(pool.named("/usr/lib/y").is_empty());
    assert!(read_filelists(&list.as_bytes()[..90], 3, &wanted, &mut pool).is_err());
}

#[test]
fn damaged_and_truncated_indexes_are_errors() {
    for length in (0..PRIMARY.len() - 12).step_by(13) {
        assert!(read(&PRIMARY[..length]).is_err(), "{length} bytes");
    }
    let entity = PRIMARY.replace("&lt;shell", "&unknown;");
    assert!(read(&entity).is_err());
}

#[test]
fn an_odd_package_does_not_hide_the_others() {
    for (from, to, left) in [
        // without a name or version, a package cannot be locked
        ("<name>weak</name>", "", 1),
        ("<version epoch=\"0\" ver=\"1\" rel=\"1\"/>", "", 1),
        ("<arch>noarch</arch>", "", 2),
        (
            "<location xml:base=\"https://elsewhere\" href=\"o.rpm\"/>",
            "",
            2,
        ),
        ("package=\"1\"", "package=\"many\"", 2),
        ("<size package=\"1\"/>", "", 2),
        ("<rpm:entry name=\"filesystem\"", "<rpm:entry", 2),
    ] {
        assert!(PRIMARY.contains(from), "{from}");
        let at = PRIMARY.rfind(from).unwrap();
        let text = [&PRIMARY[..at], to, &PRIMARY[at + from.len()..]].concat();
        let pool = read(&text).unwrap();
        assert_eq!(pool.ids().count(), left, "'{to}' instead of '{from}'");
    }
}
