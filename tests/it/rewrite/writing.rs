//! How results are written: every loss is reported, and no other file is touched.

use super::{Place, err, out};
use rustix::fs::{XattrFlags, getxattr, setxattr};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

const IMAGE: &str = "image: nginx:1.27\n";

fn is_rewritten(place: &Place, name: &str) -> bool {
    place
        .read(name)
        .contains("172.20.0.2:5000/library/nginx:1.27")
}

#[test]
fn no_input_is_overwritten_by_the_result_of_another_input() {
    let place = Place::new(&[("a", IMAGE), ("b/c", IMAGE), ("b/a", IMAGE)]);
    place.put("d/c/x.yaml", IMAGE);
    for args in [
        &["a", "b/c", "-o", "b"][..],
        &["a", "b", "-o", "b"],
        &["d", "d/c", "-o", "d"],
    ] {
        let printed = err(&place.run(args, 2));
        assert!(printed.contains("would overwrite the input"), "{printed}");
    }
    symlink("../b/c", place.path("d/a")).unwrap();
    assert!(err(&place.run(&["a", "b/c", "-o", "d"], 2)).contains("the input b/c"));
    for name in ["a", "b/a", "b/c"] {
        assert_eq!(place.read(name), IMAGE);
    }
}

/// An access control list: the owner `rw`, the user 1000 `rw`, the group `r`, the mask `rw`.
fn acl() -> Vec<u8> {
    let entry = |tag: u16, bits: u16, id: u32| {
        [
            &tag.to_le_bytes()[..],
            &bits.to_le_bytes(),
            &id.to_le_bytes(),
        ]
        .concat()
    };
    let nobody = u32::MAX;
    let entries = [
        (1, 6, nobody),
        (2, 6, 1000),
        (4, 4, nobody),
        (0x10, 6, nobody),
        (0x20, 0, nobody),
    ];
    let entries = entries
        .into_iter()
        .flat_map(|(tag, bits, id)| entry(tag, bits, id));
    2u32.to_le_bytes().into_iter().chain(entries).collect()
}

fn attribute(place: &Place, file: &str, name: &str) -> Option<Vec<u8>> {
    let mut value = vec![0; 256];
    let len = getxattr(place.path(file), name, &mut value[..]).ok()?;
    value.truncate(len);
    Some(value)
}

const ACL: &str = "system.posix_acl_access";

#[test]
fn rewriting_in_place_keeps_access_control_lists_and_attributes() {
    let place = Place::new(&[("x.yaml", IMAGE), ("plain.yaml", IMAGE)]);
    let set = |file: &str, name: &str, value: &[u8]| {
        setxattr(place.path(file), name, value, XattrFlags::empty())
    };
    if set("x.yaml", ACL, &acl()).is_err() || set("x.yaml", "user.note", b"mine").is_err() {
        crate::support::skip(
            "rewrite::writing::rewriting_in_place_keeps_access_control_lists_and_attributes",
            "the file system has no access control lists",
        );
        return;
    }
    let mode = |name: &str| fs::metadata(place.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        mode("x.yaml"),
        0o660,
        "the group bits of the mode are those of the mask"
    );
    // the rewritten files do not get the default ACL of the folder
    setxattr(
        place.path("."),
        "system.posix_acl_default",
        &acl(),
        XattrFlags::empty(),
    )
    .unwrap();
    fs::set_permissions(place.path("plain.yaml"), fs::Permissions::from_mode(0o640)).unwrap();
    place.run(&["x.yaml", "plain.yaml", "-i"], 0);
    assert!(is_rewritten(&place, "x.yaml") && is_rewritten(&place, "plain.yaml"));
    assert_eq!(attribute(&place, "x.yaml", ACL), Some(acl()));
    assert_eq!(
        attribute(&place, "x.yaml", "user.note").as_deref(),
        Some(&b"mine"[..])
    );
    assert_eq!((mode("x.yaml"), mode("plain.yaml")), (0o660, 0o640));
    assert_eq!(attribute(&place, "plain.yaml", ACL), None);
    // a copy keeps the ACL too, so the mask does not become a right of the group
    place.run(&["x.yaml", "-o", "out"], 0);
    assert_eq!(attribute(&place, "out/x.yaml", ACL), Some(acl()));
}

#[test]
fn broken_hard_links_are_reported() {
    let place = Place::new(&[("x.yaml", IMAGE)]);
    fs::hard_link(place.path("x.yaml"), place.path("other.yaml")).unwrap();
    let report = place.json(&["x.yaml", "-i"], 0);
    assert!(
        report["files"][0]["lost"][0]
            .as_str()
            .unwrap()
            .contains("1 hard link"),
        "{report:#}"
    );
    assert_eq!(place.read("other.yaml"), IMAGE);
    fs::hard_link(place.path("other.yaml"), place.path("third.yaml")).unwrap();
    let printed = err(&place.run(&["other.yaml", "-i"], 0));
    assert!(
        printed.contains("other.yaml: lost 1 hard link, which still has"),
        "{printed}"
    );
}

#[test]
fn results_are_not_written_through_symbolic_links() {
    let place = Place::new(&[("t/sub/x.yaml", IMAGE), ("elsewhere/x.yaml", "mine\n")]);
    fs::create_dir_all(place.path("out")).unwrap();
    symlink("../elsewhere", place.path("out/sub")).unwrap();
    let printed = err(&place.run(&["t", "-o", "out"], 1));
    assert!(printed.contains("the symbolic link out/sub"), "{printed}");
    assert_eq!(place.read("elsewhere/x.yaml"), "mine\n");
    // the named folder may be a link, but files below it may not
    fs::remove_file(place.path("out/sub")).unwrap();
    symlink("out", place.path("link")).unwrap();
    fs::create_dir_all(place.path("out/sub")).unwrap();
    symlink("../../elsewhere/x.yaml", place.path("out/sub/x.yaml")).unwrap();
    assert!(err(&place.run(&["t", "-o", "link"], 1)).contains("only a plain file is replaced"));
    fs::remove_file(place.path("out/sub/x.yaml")).unwrap();
    place.run(&["t", "-o", "link"], 0);
    assert!(is_rewritten(&place, "out/sub/x.yaml"));
    assert_eq!(place.read("elsewhere/x.yaml"), "mine\n");
}

#[test]
fn a_pipe_without_a_writer_is_refused() {
    let place = Place::new(&[("t/x.yaml", IMAGE)]);
    let pipe = place.path("t/pipe.yaml");
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::Mode::from_raw_mode(0o600),
    )
    .unwrap();
    assert!(err(&place.run(&["t/pipe.yaml", "--check"], 2)).contains("not a regular file"));
    place.run(&["t", "--check"], 4);
    // files that editors and file managers leave in a folder are skipped
    fs::write(place.path("t/._x.yaml"), b"\0\x05\x16\x07\xff").unwrap();
    symlink("me@host.1234", place.path("t/.#x.yaml")).unwrap();
    place.run(&["t", "--check"], 4);
    let audit = |path: &str| {
        let mut audit = assert_cmd::Command::new(env!("CARGO_BIN_EXE_landfall"));
        audit
            .env_clear()
            .current_dir(place.path("."))
            .args(["audit", path])
            .output()
            .unwrap()
    };
    assert_eq!(audit("t/pipe.yaml").status.code(), Some(2));
    assert!(
        out(&audit("t")).contains("audited 1 file"),
        "{}",
        out(&audit("t"))
    );
}

#[test]
fn a_broken_chart_in_a_folder_is_reported() {
    let place = Place::new(&[("t/x.yaml", IMAGE)]);
    let tar = |name: &str, file: &str| {
        let status = std::process::Command::new("tar")
            .current_dir(place.path("."))
            .args(["czf", name, file])
            .status()
            .unwrap();
        assert!(status.success());
    };
    // an archive that is not a chart is skipped
    tar("t/other.tgz", "t/x.yaml");
    place.run(&["t", "--check"], 4);
    place.put("t/broken.tgz", "this is no archive");
    let report = place.json(&["t", "-o", "out"], 3);
    let failed = report["files"]
        .as_array()
        .unwrap()
        .iter()
        .find(|file| file["status"] == "failed");
    assert!(
        failed.unwrap()["file"]
            .as_str()
            .unwrap()
            .ends_with("broken.tgz"),
        "{report:#}"
    );
    fs::remove_file(place.path("t/broken.tgz")).unwrap();
    // a broken archive in the `charts` of a chart is reported too; archives in other folders of the
    // chart are not read
    place.put("c/Chart.yaml", "name: c\nversion: 1.0.0\n");
    place.put("c/charts/sub.tgz", "this is no archive");
    place.put("c/files/data.tgz", "nor is this");
    tar("t/c.tgz", "c");
    let printed = err(&place.run(&["t", "-o", "out"], 3));
    assert!(
        printed.contains("t/c.tgz: c/charts/sub.tgz: not a readable .tgz"),
        "{printed}"
    );
    fs::remove_file(place.path("c/charts/sub.tgz")).unwrap();
    tar("t/c.tgz", "c");
    place.run(&["t", "-o", "out"], 0);
}

/// `>` of Windows PowerShell writes UTF-16 with a byte order mark.
#[test]
fn a_file_in_utf16_is_read_and_keeps_its_encoding() {
    let place = Place::new(&[]);
    let utf16 = |text: &str, bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
        let text = format!("\u{feff}{text}");
        text.encode_utf16().flat_map(bytes).collect()
    };
    let before = "# \u{e9}\u{1f600}\r\nimage: nginx:1.27\r\n";
    let after = before.replace("nginx", "172.20.0.2:5000/library/nginx");
    for (name, bytes) in [
        ("le.yaml", u16::to_le_bytes as fn(u16) -> [u8; 2]),
        ("be.yaml", u16::to_be_bytes),
    ] {
        fs::write(place.path(name), utf16(before, bytes)).unwrap();
        let audit = || {
            let mut command = assert_cmd::Command::new(env!("CARGO_BIN_EXE_landfall"));
            command.env_clear().current_dir(place.path("")).arg("audit");
            command
        };
        for args in [&[name][..], &["-"]] {
            let mut audit = audit();
            let input = fs::read(place.path(name)).unwrap();
            let ran = audit.args(args).write_stdin(input).assert().success();
            let printed = out(ran.get_output());
            assert!(printed.contains(": 1 held, 0 missing"), "{printed}");
        }
        let printed = err(&place.run(&[name], 1));
        assert!(printed.contains("use --in-place or --out DIR"), "{printed}");
        assert!(out(&place.run(&[name, "--check"], 4)).contains(&format!("{name}:2:8: ")));
        place.run(&[name, "-o", "o"], 0);
        place.run(&[name, "-i"], 0);
        for path in [name.to_owned(), format!("o/{name}")] {
            let written = fs::read(place.path(&path)).unwrap();
            assert_eq!(written, utf16(&after, bytes), "{path}");
        }
        // half a character at the end
        fs::write(place.path(name), &utf16(before, bytes)[..9]).unwrap();
        let printed = err(&place.run(&[name, "-i"], 1));
        assert!(printed.contains("not UTF-8"), "{printed}");
    }
}
