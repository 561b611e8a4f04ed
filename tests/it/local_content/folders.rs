//! Folders and patterns: each file is an item, or the folder is one archive.

use super::manifest;
use crate::support::{Place, need, run};
use std::fs::{File, Permissions, set_permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::SystemTime;

fn names(place: &Place) -> Vec<String> {
    let lock = place.read("landfall.lock");
    let names = lock
        .lines()
        .filter_map(|line| line.strip_prefix("- name: "));
    names.map(str::to_owned).collect()
}

#[test]
fn each_file_of_a_folder_or_of_a_pattern_is_an_item() {
    let place = Place::new();
    for path in [
        "conf/a.conf",
        "conf/deep/b.conf",
        "conf/.hidden",
        "conf/deep/c.txt",
    ] {
        place.write(path, path);
    }
    symlink("../conf/a.conf", place.path("conf/link")).unwrap();
    for (path, expected) in [
        (
            "conf/",
            &[
                "conf/.hidden",
                "conf/a.conf",
                "conf/deep/b.conf",
                "conf/deep/c.txt",
                "conf/link",
            ][..],
        ),
        ("./conf/deep", &["conf/deep/b.conf", "conf/deep/c.txt"]),
        ("conf/*", &["conf/a.conf", "conf/link"]),
        ("conf/.*", &["conf/.hidden"]),
        ("*/?.conf", &["conf/a.conf"]),
        ("conf/**/*.conf", &["conf/a.conf", "conf/deep/b.conf"]),
        ("**/deep/**", &["conf/deep/b.conf", "conf/deep/c.txt"]),
    ] {
        manifest(&place, "m.yaml", &format!("files:\n- path: \"{path}\"\n"));
        place.ok(&["lock", "-f", "m.yaml"]);
        let expected: Vec<String> = expected
            .iter()
            .map(|path| format!("local:{path}"))
            .collect();
        assert_eq!(names(&place), expected, "{path}");
    }
    manifest(
        &place,
        "m.yaml",
        "files:\n- {path: conf/, mode: \"0600\"}\n",
    );
    place.ok(&["lock", "-f", "m.yaml"]);
    assert_eq!(
        place
            .read("landfall.lock")
            .matches("mode: \"0600\"")
            .count(),
        5
    );
    manifest(
        &place,
        "m.yaml",
        "files:\n- {path: conf/, also: [\"https://h/x\"]}\n",
    );
    let text = place.printed(2, &["lock", "-f", "m.yaml"]);
    assert!(text.contains("`also` applies to one file"), "{text}");
}

#[test]
fn a_folder_as_tar_has_the_same_bytes_on_every_machine() {
    if !need(&["tar"]) {
        return;
    }
    let long = format!("{}/{}", "d".repeat(120), "f".repeat(120));
    let fill = |place: &Place, order: &[usize]| {
        let files = ["conf/z", "conf/a/b", "conf/a.txt", &format!("conf/{long}")];
        for at in order {
            let path = place.write(files[*at], files[*at]);
            File::open(&path)
                .unwrap()
                .set_modified(SystemTime::UNIX_EPOCH)
                .unwrap();
        }
        set_permissions(place.path("conf/z"), Permissions::from_mode(0o700)).unwrap();
        manifest(place, "m.yaml", "files:\n- {path: conf/, as: tar}\n");
        place.ok(&["lock", "-f", "m.yaml"]);
        place.read("landfall.lock")
    };
    let (one, two) = (Place::new(), Place::new());
    let lock = fill(&one, &[0, 1, 2, 3]);
    one.write("conf/a.txt", "conf/a.txt"); // another time of modification
    set_permissions(two.path("."), Permissions::from_mode(0o700)).unwrap();
    assert_eq!(lock, fill(&two, &[3, 1, 2, 0]));
    assert!(lock.contains("- name: local:conf.tar\n"), "{lock}");
    assert!(lock.contains("  path: conf\n  as: tar\n"), "{lock}");

    // from the folder next to the lock, with an empty store
    one.ok(&["pull", "--store", "new"]);
    one.ok(&["export", "files", "--store", "new", "-o", "out"]);
    let listed = run(one.clean("tar").args(["-tvf", "out/local/conf.tar"]));
    let listed = String::from_utf8(listed).unwrap();
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(lines.len(), 4, "{listed}");
    assert!(
        lines[3].starts_with("-rwxr-xr-x 0/0") && lines[3].contains("1970-01-01"),
        "{listed}"
    );
    assert!(lines[0].starts_with("-rw-r--r-- 0/0"), "{listed}");
    assert!(listed.contains(&long), "{listed}");

    one.write("conf/a/b", "changed");
    let report = one.json(1, &["pull", "--store", "third"]);
    let reason = report["items"][0]["reason"].as_str().unwrap();
    assert!(
        reason.contains("conf changed after it was locked"),
        "{reason}"
    );
}

#[test]
fn folders_with_links_out_of_them_pipes_or_too_many_files_are_refused() {
    let place = Place::new();
    place.write("secret", "secret");
    place.write("m/conf/a", "a");
    for entry in ["path: conf/", "{path: conf/, as: tar}", "path: \"conf/*\""] {
        manifest(&place, "m/m.yaml", &format!("files:\n- {entry}\n"));
        place.ok(&["lock", "-f", "m/m.yaml"]);
        for (target, why) in [
            ("../../secret", "leads out of the folder"),
            ("/etc", "leads out of the folder"),
            (".", "symbolic link to a folder"),
            ("nowhere", "No such file"),
        ] {
            symlink(target, place.path("m/conf/link")).unwrap();
            // an archive is read when it is locked, a list of files before
            let exit = if entry.contains("tar") { 1 } else { 2 };
            let text = place.printed(exit, &["lock", "-f", "m/m.yaml", "--lock", "new.lock"]);
            assert!(
                text.contains(why) && text.contains("link"),
                "{entry} {target}: {text}"
            );
            std::fs::remove_file(place.path("m/conf/link")).unwrap();
        }
    }
    run(place.clean("mkfifo").arg(place.path("m/conf/pipe")));
    manifest(&place, "m/m.yaml", "files:\n- path: conf/\n");
    let text = place.printed(2, &["lock", "-f", "m/m.yaml"]);
    assert!(
        text.contains("pipe: it is a pipe, socket or device"),
        "{text}"
    );
}

#[test]
fn a_folder_with_more_files_than_the_limit_is_an_error_before_anything_is_read() {
    let place = Place::new();
    let folder = place.path("many");
    std::fs::create_dir(&folder).unwrap();
    for number in 0..100_001 {
        // hard links are cheaper than files
        let name = folder.join(number.to_string());
        if number % 30_000 == 0 {
            std::fs::write(name, "x").unwrap();
        } else {
            let first = folder.join((number / 30_000 * 30_000).to_string());
            std::fs::hard_link(first, name).unwrap();
        }
    }
    manifest(&place, "m.yaml", "files:\n- path: many/\n");
    let text = place.printed(2, &["lock", "-f", "m.yaml"]);
    assert!(text.contains("too many files"), "{text}");
    manifest(&place, "m.yaml", "files:\n- {path: many/, as: tar}\n");
    let text = place.printed(1, &["lock", "-f", "m.yaml"]);
    assert!(text.contains("too many files"), "{text}");
}
