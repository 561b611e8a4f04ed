//! Files that commands replace: their names, permissions and durability.

use crate::support::faults::Rig;
use crate::support::{need, skip, test_name};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// A folder with a store, its lock, and an upstream registry.
struct Outputs(Rig);

impl Outputs {
    fn new() -> Outputs {
        let rig = Rig::new();
        rig.set_faults([]);
        Outputs(rig)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.place.path(name)
    }

    fn args<'a>(&'a self, args: &[&'a str]) -> Vec<&'a str> {
        [
            args,
            &[
                "--store",
                "stores/first",
                "--plain-http",
                &self.0.up.address,
            ],
        ]
        .concat()
    }

    /// Runs landfall, which must exit with `code`, and returns its stderr.
    fn printed(&self, code: i32, args: &[&str]) -> String {
        let output = self
            .0
            .place
            .landfall()
            .args(self.args(args))
            .assert()
            .code(code);
        String::from_utf8_lossy(&output.get_output().stderr).into_owned()
    }

    fn sh(&self, script: &str) -> String {
        let script = format!("set -eu\n{script}");
        let mut command = self.0.place.clean("sh");
        command
            .args(["-c", &script])
            .env("LANDFALL", env!("CARGO_BIN_EXE_landfall"));
        let output = command.env("UP", &self.0.up.address).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{printed}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn mode(&self, name: &str) -> u32 {
        fs::metadata(self.path(name)).unwrap().permissions().mode() & 0o7777
    }
}

#[test]
fn only_a_regular_file_is_replaced() {
    if !need(&["mkfifo"]) {
        return;
    }
    let site = Outputs::new();
    fs::write(site.path("target"), "mine").unwrap();
    site.sh(
        "mkfifo pipe V.0001 W.sha256sums tool; ln -s target link; mkdir folder bin; touch program bin/tool",
    );
    let cases: &[(&[&str], &str)] = &[
        (&["pack", "-o", "pipe"], "pipe"),
        (&["pack", "-o", "link"], "a symbolic link"),
        (&["pack", "-o", "folder"], "a folder"),
        (&["pack", "-o", "/dev/null"], "a device"),
        (&["pull", "--bundle", "pipe"], "pipe"),
        (&["pull", "--bundle", "link"], "a symbolic link"),
        (&["pack", "-o", "V", "--volume-size", "60000"], "V.0001"),
        (
            &["pack", "-o", "W", "--include-self=program"],
            "W.sha256sums",
        ),
    ];
    for (args, word) in cases {
        let printed = site.printed(1, args);
        assert!(
            printed.contains("only a plain file is replaced") && printed.contains(word),
            "{args:?}: {printed}"
        );
    }
    let printed = site.printed(2, &["pack", "-o", "X", "--include-self=bin/tool"]);
    assert!(
        printed.contains("tool: it is a pipe, and only a plain file is replaced"),
        "{printed}"
    );
    for pipe in ["pipe", "V.0001", "W.sha256sums", "tool"] {
        assert!(
            fs::symlink_metadata(site.path(pipe))
                .unwrap()
                .file_type()
                .is_fifo(),
            "{pipe}"
        );
    }
    assert!(
        fs::symlink_metadata("/dev/null")
            .unwrap()
            .file_type()
            .is_char_device()
    );
    assert!(site.path("link").is_symlink() && site.path("folder").is_dir());
    assert_eq!(fs::read(site.path("target")).unwrap(), b"mine");
    // exported files
    let host = &site.0.up.address;
    site.sh(&format!(
        "mkdir -p out/{host}/files; mkfifo out/{host}/files/tool.bin"
    ));
    let report = site
        .0
        .place
        .json(3, &site.args(&["export", "files", "-o", "out"]));
    assert!(
        report.to_string().contains("only a plain file is replaced"),
        "{report}"
    );
    assert!(
        fs::symlink_metadata(site.path(&format!("out/{host}/files/tool.bin")))
            .unwrap()
            .file_type()
            .is_fifo()
    );
}

#[test]
fn a_lock_that_is_a_symbolic_link_stays_one() {
    let site = Outputs::new();
    site.sh("mkdir locks; ln -s locks/real.lock l.lock");
    let lock = ["lock", "-f", "m.yaml", "--lock", "l.lock"];
    fs::copy(site.path("landfall.lock"), site.path("locks/real.lock")).unwrap();
    site.sh("sed -i 's/team\\/tool:v1/team\\/tool:v0/' locks/real.lock; chmod 640 locks/real.lock");
    site.printed(0, &lock);
    assert!(site.path("l.lock").is_symlink());
    assert_eq!(
        site.0.place.read("locks/real.lock"),
        site.0.place.read("landfall.lock")
    );
    assert_eq!(site.mode("locks/real.lock"), 0o640);
}

#[test]
fn a_bundle_replaces_the_file_or_the_volumes_of_the_same_name() {
    let site = Outputs::new();
    let names = || {
        let names = fs::read_dir(site.0.place.dir()).unwrap().flatten();
        let mut names: Vec<_> = names
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.retain(|name| name.starts_with('B'));
        names.sort();
        names
    };
    fs::write(site.path("B.0131"), "the user's own").unwrap();
    let file = ["pack", "-o", "B"];
    let volumes = ["pack", "-o", "B", "--volume-size", "60000"];
    site.printed(0, &file);
    assert_eq!(names(), ["B", "B.0131"]);
    fs::remove_file(site.path("B.0131")).unwrap();
    let whole = site.0.place.json(0, &site.args(&["verify", "B"]))["bundle"]["digest"].clone();
    // the volumes replace the file: otherwise, commands would read the file and not the volumes
    let printed = site.printed(0, &volumes);
    assert!(!printed.contains("there is also a file"), "{printed}");
    assert_eq!(names(), ["B.0001", "B.0002", "B.0003", "B.sha256sums"]);
    assert_eq!(
        site.0.place.json(0, &site.args(&["verify", "B"]))["bundle"]["digest"],
        whole
    );
    // a file replaces the volumes: otherwise, commands could read the old volumes by their names
    for again in [&file[..], &["pull", "--bundle", "B"]] {
        site.printed(0, again);
        assert_eq!(names(), ["B"], "{again:?}");
        assert_eq!(
            site.0.place.json(0, &site.args(&["verify", "B"]))["bundle"]["digest"],
            whole
        );
        site.printed(0, &volumes);
    }
}

#[test]
fn written_files_have_the_permissions_of_the_umask() {
    let site = Outputs::new();
    let tool = site.0.lock.files[0].digest.hex();
    for (umask, mode) in [("022", 0o644), ("027", 0o640), ("002", 0o664)] {
        let place = |name: &str| format!("s{umask}/{name}");
        site.sh(&format!(
            "umask {umask}; mkdir s{umask}; cd s{umask}\n\
             $LANDFALL lock -f ../m.yaml --store store --plain-http $UP --lock l.lock >&2\n\
             $LANDFALL pull --lock l.lock --store store --plain-http $UP >&2\n\
             $LANDFALL pack --lock l.lock --store store -o B >&2"
        ));
        let blob = format!("store/blobs/sha256/{tool}");
        for name in ["store/index.json", "store/oci-layout", &blob, "l.lock", "B"] {
            assert_eq!(
                format!("{:o}", site.mode(&place(name))),
                format!("{mode:o}"),
                "{}",
                place(name)
            );
        }
    }
}

#[test]
fn blob_names_are_synced_before_the_index_lists_them() {
    if !need(&["strace"]) {
        return;
    }
    let site = Outputs::new();
    let traced = "strace -f -y -o trace -e trace=fsync,rename,renameat,renameat2";
    site.sh(&format!(
        "{traced} $LANDFALL pull --store new --plain-http $UP >&2"
    ));
    let trace = site.0.place.read("trace");
    let lines: Vec<&str> = trace.lines().collect();
    let line = |words: &[&str]| {
        lines
            .iter()
            .rposition(|line| words.iter().all(|word| line.contains(word)))
    };
    let renamed = line(&["rename", "partial/", "blobs/sha256/"]).expect("blobs get their names");
    let synced = line(&["fsync(", "new/blobs/sha256>"]).expect("the folder of the blobs is synced");
    let index = line(&["rename", "index.json"]).expect("the index is replaced");
    let last = line(&["fsync(", "/new>"]).expect("the folder of the index is synced");
    assert!(
        renamed < synced && synced < index && index < last,
        "{trace}"
    );
}

/// As for users of one group, who may all write to a lock that belongs to one of them.
#[test]
fn a_lock_of_another_user_is_replaced_and_loses_its_owner() {
    if !need(&["strace"]) {
        return;
    }
    let site = Outputs::new();
    let lock = site.path("landfall.lock");
    if std::os::unix::fs::chown(&lock, Some(1234), Some(4321)).is_err() {
        skip(&test_name(), "only root may change the owner");
        return;
    }
    fs::set_permissions(&lock, fs::Permissions::from_mode(0o664)).unwrap();
    let manifest = site.0.place.read("m.yaml");
    let endpoint = "endpoints: [{host: added.example.com, port: 443, why: a test}]\n";
    fs::write(site.path("m.yaml"), manifest + endpoint).unwrap();
    let refused = "strace -f -o trace -e trace=fchown -e inject=fchown:error=EPERM";
    site.sh(&format!(
        "{refused} $LANDFALL lock -f m.yaml --store stores/first --plain-http $UP 2> messages"
    ));
    let messages = site.0.place.read("messages");
    for lost in ["its owner", "its group; the new one has no rights"] {
        let note = format!("landfall.lock: lost {lost}\n");
        assert!(messages.contains(&note), "{messages}");
    }
    assert!(
        site.0
            .place
            .read("landfall.lock")
            .contains("added.example.com")
    );
    assert_eq!(format!("{:o}", site.mode("landfall.lock")), "604");
}

/// As on a USB stick that is mounted for everybody: all its files have the same mode.
#[test]
fn a_lock_is_replaced_where_modes_cannot_be_changed() {
    if !need(&["strace"]) {
        return;
    }
    let site = Outputs::new();
    let manifest = site.0.place.read("m.yaml");
    let endpoint = "endpoints: [{host: added.example.com, port: 443, why: a test}]\n";
    fs::write(site.path("m.yaml"), manifest + endpoint).unwrap();
    let locking = |name: &str| {
        let refused = "strace -f -o trace -e trace=fchmod -e inject=fchmod:error=EPERM";
        site.sh(&format!(
            "{refused} $LANDFALL lock -f m.yaml --store stores/first --plain-http $UP --lock {name} \
             >&2 || test $? = 1"
        ));
        site.0.place.read(name).contains("added.example.com")
    };
    fs::copy(site.path("landfall.lock"), site.path("private.lock")).unwrap();
    fs::set_permissions(site.path("private.lock"), fs::Permissions::from_mode(0o600)).unwrap();
    // here, a new file has this mode until it is changed
    assert!(locking("private.lock"));
    // others could not read the new file
    assert!(!locking("landfall.lock"));
    assert!(site.0.place.read("trace").contains("EPERM"));
}

/// As on a USB stick: a file has another mode than the export gives it, and keeps that.
#[test]
fn an_export_is_not_written_again_where_modes_cannot_be_changed() {
    if !need(&["strace"]) {
        return;
    }
    let site = Outputs::new();
    fs::write(site.path("tool"), "tool").unwrap();
    fs::write(
        site.path("files.yaml"),
        "apiVersion: landfall/v1\nkind: Manifest\nfiles: [{path: tool}]\n",
    )
    .unwrap();
    let export = "$LANDFALL export files --lock files.lock --store stores/files -o usb";
    site.sh(&format!(
        "$LANDFALL lock -f files.yaml --lock files.lock --store stores/files; {export}; \
         chmod 755 usb/local/tool"
    ));
    for error in ["EPERM", "ENOSYS"] {
        let refused = format!("strace -f -o trace -e trace=fchmod -e inject=fchmod:error={error}");
        let printed = site.sh(&format!("{refused} {export}"));
        assert!(printed.contains("1 unchanged"), "{error}: {printed}");
        assert!(site.0.place.read("trace").contains(error), "{error}");
    }
    assert_eq!(site.mode("usb/local/tool"), 0o755);
}

/// Mountpoint for Amazon S3 renames no files.
#[test]
fn a_bundle_on_a_file_system_that_cannot_rename_fails_with_another_way() {
    if !need(&["strace"]) {
        return;
    }
    let site = Outputs::new();
    let refused = "strace -f -o trace -e 'trace=?rename,renameat,renameat2' \
                   -e 'inject=?rename,renameat,renameat2:error=ENOSYS'";
    let printed = site.sh(&format!(
        "{refused} $LANDFALL pack --store stores/first -o B 2>&1 || test $? = 1"
    ));
    for part in ["cannot write B: Function not implemented", "`-o -`"] {
        assert!(printed.contains(part), "{printed}");
    }
    assert!(!site.path("B").exists());
}

/// Without hard links and renames, a new file can get its name but not its content.
#[test]
fn no_empty_lock_is_left_where_files_cannot_be_renamed() {
    if !need(&["strace"]) {
        return;
    }
    let site = Outputs::new();
    let refused = "strace -f -o trace -e 'trace=?link,linkat,?rename,renameat,renameat2' \
                   -e 'inject=?link,linkat,?rename,renameat,renameat2:error=ENOSYS'";
    fs::write(site.path("tool"), "tool").unwrap();
    fs::write(
        site.path("files.yaml"),
        "apiVersion: landfall/v1\nkind: Manifest\nfiles: [{path: tool}]\n",
    )
    .unwrap();
    let lock = "$LANDFALL lock -f files.yaml --lock new.lock --store stores/files";
    // the store has the content from the first run, since it needs renames too
    site.sh(&format!("{lock}; rm new.lock"));
    let printed = site.sh(&format!("{refused} {lock} 2>&1 || test $? = 1"));
    assert!(printed.contains("cannot write new.lock"), "{printed}");
    assert!(!site.path("new.lock").exists());
}

/// The folder may be writable for more users than the lock.
#[test]
fn a_lock_of_another_user_is_replaced_only_if_it_is_writable() {
    if !need(&["unshare"]) {
        return;
    }
    let site = Outputs::new();
    let path = site.path("landfall.lock");
    // in a namespace of its own, root may not write to files of others
    let namespace = Command::new("unshare").args(["-r", "true"]).status();
    if !namespace.is_ok_and(|status| status.success())
        || std::os::unix::fs::chown(&path, Some(1234), Some(4321)).is_err()
    {
        skip(
            &test_name(),
            "no namespace of users, or no right to change the owner",
        );
        return;
    }
    let manifest = site.0.place.read("m.yaml");
    let endpoint = "endpoints: [{host: added.example.com, port: 443, why: a test}]\n";
    fs::write(site.path("m.yaml"), manifest + endpoint).unwrap();
    let run = "$LANDFALL lock -f m.yaml --store stores/first --plain-http $UP > out 2> messages";
    for (mode, code) in [(0o644, "1"), (0o666, "0")] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let script = format!("code=0; unshare -r {run} || code=$?; echo $code");
        let printed = site.sh(&script);
        let messages = site.0.place.read("messages");
        assert_eq!(printed.trim(), code, "{mode:o}: {messages}");
        let lock = site.0.place.read("landfall.lock");
        let is_replaced = lock.contains("added.example.com");
        assert_eq!(is_replaced, code == "0", "{mode:o}: {messages}");
    }
}

/// In shared folders of some hypervisors, for example.
#[test]
fn a_lock_is_created_on_a_file_system_without_hard_links() {
    if !need(&["strace"]) {
        return;
    }
    let site = Outputs::new();
    let refused = "strace -f -o trace -e 'trace=renameat2,?link,linkat' \
                   -e inject=renameat2:error=EINVAL -e 'inject=?link,linkat:error=EPERM'";
    site.sh(&format!(
        "{refused} $LANDFALL lock -f m.yaml --store new --plain-http $UP --lock new.lock >&2"
    ));
    let lock = site.0.place.read("new.lock");
    assert!(lock.contains("files:"), "{lock}");
    assert!(site.0.place.read("trace").contains("EPERM"));
}

#[test]
fn documents_next_to_a_bundle_are_synced_before_they_get_their_names() {
    if !need(&["strace"]) {
        return;
    }
    let site = Outputs::new();
    fs::write(site.path("program"), "a program").unwrap();
    let traced = "strace -f -y -o trace -e trace=fsync,rename,renameat,renameat2";
    site.sh(&format!(
        "mkdir out; {traced} $LANDFALL pack --store stores/first -o out/B --include-self=program >&2"
    ));
    let trace = site.0.place.read("trace");
    let at = |words: &[&str]| {
        let mut lines = trace.lines();
        lines.position(|line| words.iter().all(|word| line.contains(word)))
    };
    for name in ["B.README.txt", "B.man.tar"] {
        let synced = at(&["fsync(", &format!("/{name}.partial>")]);
        let renamed = at(&["rename", &format!("out/{name}\"")]);
        assert!(
            synced.is_some() && renamed.is_some() && synced < renamed,
            "{name}: {trace}"
        );
    }
}

#[test]
fn a_kill_leaves_no_partial_report_or_draft() {
    let site = Outputs::new();
    let images: String = (0..60)
        .map(|n| format!("- image: quay.io/x/app{n}:v1\n"))
        .collect();
    fs::write(site.path("pods.yaml"), images).unwrap();
    let report = r#"{"command": "", "status": "", "items": [], "totals": {}, "hosts": []}"#;
    for (line, old) in [
        ("discover pods.yaml --replace -o out", "old"),
        ("discover pods.yaml --report out", report),
        (
            "audit pods.yaml --lock landfall.lock --replace --missing out",
            "old",
        ),
    ] {
        // the system kills a process that writes more than `ulimit -f` allows to one file
        let killed = format!(
            "echo '{old}' > out; code=0; (ulimit -f 1; exec $LANDFALL {line}) > /dev/null 2>&1 || code=$?; echo $code"
        );
        assert_eq!(site.sh(&killed).trim(), "153", "{line}");
        assert_eq!(site.0.place.read("out"), format!("{old}\n"), "{line}");
        let done = format!(
            "$LANDFALL {line} > messages 2>&1 || [ $? = 4 ] || {{ cat messages >&2; exit 1; }}"
        );
        site.sh(&done);
        assert!(site.0.place.read("out").len() > 1024, "{line}");
        // a file is replaced through a link to it, and keeps its permissions
        let linked =
            format!("chmod 600 out; mv out kept; echo '{old}' > kept; ln -s kept out; {done}");
        site.sh(&linked);
        assert!(
            site.path("out").is_symlink() && site.0.place.read("kept").len() > 1024,
            "{line}"
        );
        assert_eq!(site.mode("kept"), 0o600, "{line}");
        site.sh("rm out kept");
    }
}

#[test]
fn an_output_at_a_path_of_stdout_is_written_between_other_output() {
    let site = Outputs::new();
    site.sh("$LANDFALL export sources -o list >&2");
    let list = site.0.place.read("list");
    for path in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
        site.sh(&format!(
            "{{ echo before; $LANDFALL export sources -o {path}; echo after; }} > out\n\
             $LANDFALL export sources -o {path} >> out"
        ));
        let once = format!("{list}wrote {path}\n");
        assert_eq!(
            site.0.place.read("out"),
            format!("before\n{once}after\n{once}"),
            "{path}"
        );
    }
}

/// Programs such as Node.js set pipes that they share with others so, and landfall must not fail
/// when one is full.
#[test]
fn a_pipe_that_does_not_block_is_waited_for() {
    let site = Outputs::new();
    for args in ["completions bash", "pack --store stores/first -o -"] {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let flags = fcntl_getfl(&writer).unwrap();
        fcntl_setfl(&writer, flags | OFlags::NONBLOCK).unwrap();
        let program = env!("CARGO_BIN_EXE_landfall");
        let mut command = site.0.place.clean(program);
        command.args(args.split(' ')).stdout(writer);
        command.stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        // it has the other copy of the writing end
        drop(command);
        // by then, the pipe is full
        sleep(Duration::from_millis(500));
        let mut printed = Vec::new();
        reader.read_to_end(&mut printed).unwrap();
        assert!(child.wait().unwrap().success(), "{args}");
        let mut command = site.0.place.clean(program);
        let whole = command.args(args.split(' ')).output().unwrap().stdout;
        assert!(printed == whole, "{args}: {} bytes", printed.len());
    }
    let (reader, mut writer) = std::io::pipe().unwrap();
    let flags = fcntl_getfl(&reader).unwrap();
    fcntl_setfl(&reader, flags | OFlags::NONBLOCK).unwrap();
    let mut command = site.0.place.clean(env!("CARGO_BIN_EXE_landfall"));
    command.args(["discover", "-"]).stdin(reader);
    let child = command.stdout(Stdio::piped()).spawn().unwrap();
    // by then, landfall reads
    sleep(Duration::from_millis(500));
    writer.write_all(b"image: quay.io/a/b:1\n").unwrap();
    drop(writer);
    let printed = child.wait_with_output().unwrap().stdout;
    let printed = String::from_utf8_lossy(&printed);
    assert!(printed.contains("quay.io/a/b:1"), "{printed}");
}

#[test]
fn a_dash_is_stdout_for_texts_and_refused_for_other_outputs() {
    let site = Outputs::new();
    // a list that cannot express every item exits with 3
    let lines = |args: &str| site.sh(&format!("$LANDFALL {args} || test $? = 3"));
    site.0.place.write("pod.yaml", "image: quay.io/a/b:1\n");
    for args in [
        "export sources",
        "export images-txt",
        "discover pod.yaml",
        "render no-proxy --to 172.20.0.2:5000",
    ] {
        assert_eq!(lines(args), lines(&format!("{args} -o -")), "{args}");
    }
    for args in [
        &["export", "files", "-o", "-"][..],
        &["render", "containerd", "--to", "172.20.0.2:5000", "-o", "-"],
        &["rewrite", "pod.yaml", "--to", "172.20.0.2:5000", "-o", "-"],
        &["init", "-o", "-"],
        &["lock", "-f", "m.yaml", "--lock", "-"],
        &["ls", "landfall.lock", "--report", "-"],
        &["pull", "--log", "-"],
        &["push", "--to", "127.0.0.1:9", "--receipt", "-"],
        &["audit", "pod.yaml", "--missing", "-"],
    ] {
        let printed = site.printed(2, args);
        assert!(printed.contains("it cannot be stdout"), "{printed}");
    }
    assert!(!site.path("-").exists());
}

#[test]
fn temporary_files_are_not_in_the_working_folder_if_tmpdir_is_empty() {
    let site = Outputs::new();
    let down = &site.0.down.address;
    site.0
        .place
        .landfall()
        .args(["mirror", "--plain-http", &site.0.up.address, "--lock"])
        .arg(site.path("landfall.lock"))
        .args(["--plain-http", down, "--to", down])
        .env("TMPDIR", "")
        // a folder in which no file can be created
        .current_dir("/proc")
        .assert()
        .success();
}
