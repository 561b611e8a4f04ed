//! The evidence log: the records of commands, killed commands, and concurrent writers.

use crate::support::faults::{Auth, Rig, Settings};
use crate::support::need;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const LOG: &str = "log.jsonl";

/// Runs landfall with the log, and returns its output.
fn run(rig: &Rig, line: &str) -> Output {
    command(rig, line).output().unwrap()
}

fn command(rig: &Rig, line: &str) -> Command {
    let line = line
        .replace("UP", &rig.up.address)
        .replace("DOWN", &rig.down.address);
    let mut command = rig.place.command();
    command
        .args(line.split(' '))
        .args(["--store", "s", "--progress", "none", "--log", LOG])
        .args(["--plain-http", &rig.up.address])
        .args(["--plain-http", &rig.down.address]);
    command
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The records of the log. Asserts that `log verify` finds the log consistent.
fn records(rig: &Rig) -> Vec<Value> {
    if !rig.place.path(LOG).exists() {
        return Vec::new();
    }
    let report = rig.place.json(0, &["log", "verify", LOG]);
    let text = rig.place.read(LOG);
    let read = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    let records: Vec<Value> = read.collect();
    assert_eq!(report["log"]["records"], records.len(), "{report:#}");
    let head = records.last().map_or(&Value::Null, |last| &last["hash"]);
    assert_eq!(report["log"]["head"], *head);
    records
}

fn digests(contents: &Value) -> BTreeSet<String> {
    let contents = contents.as_array().unwrap().iter();
    let digest = |content: &Value| content["digest"]["sha256"].as_str().unwrap().to_owned();
    contents.map(digest).collect()
}

fn sha256(rig: &Rig, file: &str) -> String {
    let digest = crate::support::library::Digest::sha256(&rig.place.read_bytes(file));
    digest.hex()
}

#[test]
fn commands_that_change_or_approve_content_are_recorded_with_inputs_and_outputs() {
    let rig = Rig::new();
    rig.set_faults([]);
    rig.place.write(
        "site.yaml",
        format!(
            "apiVersion: landfall/v1\nkind: Site\nregistry: {{address: \"{}\", plainHTTP: true}}\n",
            rig.down.address
        ),
    );
    let mut keygen = rig.place.clean("ssh-keygen");
    let has_key = need(&["ssh-keygen"])
        && keygen
            .args(["-q", "-N", "", "-t", "ed25519", "-f", "key"])
            .status()
            .unwrap()
            .success();
    let mut expected = Vec::new();
    let mut done = |exit: i32, line: &str| {
        let output = run(&rig, line);
        assert_eq!(
            output.status.code(),
            Some(exit),
            "{line}: {}",
            stderr(&output)
        );
        expected.push((line.split(' ').next().unwrap().to_owned(), exit));
    };
    done(0, "lock -f m.yaml --lock l");
    done(0, "lock -f m.yaml --lock l --check");
    done(0, "update -f m.yaml --lock l");
    done(0, "pull l");
    done(0, "pack l -o b");
    done(0, "refresh -f m.yaml --lock l -o r");
    if has_key {
        done(0, "sign b --key key");
    }
    done(0, "verify b");
    done(0, "push b --site site.yaml --dry-run");
    done(0, "push b --site site.yaml");
    done(0, "mirror --lock l --to DOWN/again");
    done(0, "publish l");
    done(0, "gc --lock l");
    done(2, "pull nowhere");
    done(
        4,
        "verify b --expect sha256:0000000000000000000000000000000000000000000000000000000000000000",
    );
    done(1, "push b --to 127.0.0.1:1");
    // these commands neither write nor approve anything, so they are not recorded
    for line in ["ls b", "diff l b", "status b --to DOWN", "egress l"] {
        assert_eq!(run(&rig, line).status.code(), Some(0), "{line}");
    }
    let records = records(&rig);
    let recorded = records.iter().map(|record| {
        let predicate = &record["payload"]["predicate"];
        let command = predicate["command"].as_str().unwrap().to_owned();
        (command, predicate["exit"].as_i64().unwrap() as i32)
    });
    assert_eq!(recorded.collect::<Vec<_>>(), expected);

    let schema = rig.place.json(0, &["schema", "log"])["schema"].clone();
    let of = |command: &str| -> Vec<&Value> {
        let named = |record: &&Value| record["payload"]["predicate"]["command"] == command;
        records
            .iter()
            .filter(named)
            .map(|record| &record["payload"])
            .collect()
    };
    for record in &records {
        for member in schema["required"].as_array().unwrap() {
            assert!(record.get(member.as_str().unwrap()).is_some(), "{record}");
        }
        let known = &schema["properties"]["payload"]["properties"]["predicate"];
        for member in record["payload"]["predicate"].as_object().unwrap().keys() {
            assert!(known["properties"].get(member).is_some(), "{member}");
        }
        for member in known["required"].as_array().unwrap() {
            let member = member.as_str().unwrap();
            assert!(
                record["payload"]["predicate"].get(member).is_some(),
                "{record}"
            );
        }
    }
    let lock = sha256(&rig, "l");
    let bundle = of("push")[0]["subject"].clone();
    let bundle = digests(&bundle);
    assert!(bundle.contains(&lock) && bundle.len() == 2, "{bundle:?}");
    for command in ["lock", "update", "pull", "mirror", "publish", "gc"] {
        let payload = of(command)[0];
        assert_eq!(payload["_type"], "https://in-toto.io/Statement/v1");
        assert_eq!(
            digests(&payload["subject"]),
            BTreeSet::from([lock.clone()]),
            "{command}"
        );
    }
    let packed = digests(&of("pack")[0]["subject"]);
    assert!(packed.contains(&lock) && packed.len() == 2);
    assert_eq!(digests(&of("verify")[0]["subject"]), bundle);
    let locked = &of("lock")[0]["predicate"];
    assert_eq!(
        digests(&locked["inputs"]),
        BTreeSet::from([sha256(&rig, "m.yaml")])
    );
    let flags = of("lock")[1]["predicate"]["flags"].as_array().unwrap();
    assert!(
        flags.contains(&json!("--check")) && flags.contains(&json!("--lock")),
        "{flags:?}"
    );
    let dry_run = |payload: &Value| {
        payload["predicate"]["flags"]
            .as_array()
            .unwrap()
            .contains(&json!("--dry-run"))
    };
    assert!(dry_run(of("push")[0]) && !dry_run(of("push")[1]));
    let pushed = &of("push")[1]["predicate"];
    assert_eq!(pushed["registry"], rig.down.address.as_str());
    assert!(digests(&pushed["inputs"]).contains(&sha256(&rig, "site.yaml")));
    assert_eq!(
        (&pushed["status"], &pushed["totals"]["failed"]),
        (&json!("done"), &json!(0))
    );
    if has_key {
        let signatures = &of("sign")[0]["predicate"]["signatures"];
        let mut fingerprint = rig.place.clean("ssh-keygen");
        let shown = crate::support::run(fingerprint.args(["-l", "-f", "key.pub"]));
        let shown = String::from_utf8(shown).unwrap();
        let fingerprint = shown.split(' ').nth(1).unwrap();
        assert!(
            signatures[0].as_str().unwrap().contains(fingerprint),
            "{signatures}"
        );
    }
    // the record of a command that read no content is not an in-toto Statement
    let absent = of("pull")
        .into_iter()
        .find(|payload| payload["predicate"]["exit"] == 2);
    let absent = absent.unwrap();
    assert!(absent.get("_type").is_none() && absent.get("subject").is_none());
    assert!(
        absent["predicate"]["error"]["message"]
            .as_str()
            .unwrap()
            .contains("nowhere")
    );
    let refused = of("push")[2];
    assert_eq!(refused["predicate"]["error"]["side"], "destination");
    assert_eq!(digests(&refused["subject"]), bundle);
}

#[test]
fn the_report_of_a_bundle_shows_its_records() {
    let rig = Rig::new();
    rig.set_faults([]);
    let other = format!(
        "apiVersion: landfall/v1\nkind: Manifest\nimages: [{}/team/app:v1]\n",
        rig.up.address
    );
    rig.place.write("other.yaml", other);
    for line in [
        "pull landfall.lock",
        "pack landfall.lock -o b",
        "push b --to DOWN",
        "lock -f other.yaml --lock other.lock",
    ] {
        let output = run(&rig, line);
        assert_eq!(output.status.code(), Some(0), "{line}: {}", stderr(&output));
    }
    rig.place.write("log-of-site.jsonl", rig.place.read(LOG));
    rig.place.write(
        "site.yaml",
        "apiVersion: landfall/v1\nkind: Site\nlog: log-of-site.jsonl\n",
    );
    for flags in [["--log", LOG], ["--site", "site.yaml"]] {
        let args = [&["report", "b", "-o", "page.html"][..], &flags].concat();
        let report = rig.place.json(0, &args);
        let rows = report["records"].as_array().unwrap().iter();
        let commands: Vec<_> = rows.map(|row| row["command"].as_str().unwrap()).collect();
        assert_eq!(commands, ["pull", "pack", "push"], "{report:#}");
        assert_eq!(report["records"][2]["registry"], rig.down.address.as_str());
        let page = rig.place.read("page.html");
        crate::report_page::sound(&page);
        assert!(page.contains("Commands in the evidence log"), "{page}");
    }
    // a damaged log is not shown
    let damaged = rig.place.read(LOG).replace("\"push\"", "\"pull\"");
    rig.place.write(LOG, damaged);
    let report = rig.place.json(4, &["report", "b", "--log", LOG]);
    let message = report["error"]["message"].as_str().unwrap();
    assert!(message.contains("line 3 was changed"), "{message}");
    // it is not an error if the log of the site does not exist yet
    std::fs::remove_file(rig.place.path("log-of-site.jsonl")).unwrap();
    rig.place.json(
        0,
        &["report", "b", "--site", "site.yaml", "-o", "page.html"],
    );
}

#[test]
fn the_log_of_a_site_is_used_and_a_flag_or_variable_replaces_it() {
    let rig = Rig::new();
    std::fs::create_dir(rig.place.path("conf")).unwrap();
    rig.place.write(
        "conf/site.yaml",
        "apiVersion: landfall/v1\nkind: Site\nlog: site.jsonl\n",
    );
    let lines = |name: &str| rig.place.read(name).lines().count();
    let gc = [
        "gc",
        "--lock",
        "landfall.lock",
        "--store",
        "stores/first",
        "--site",
        "conf/site.yaml",
    ];
    rig.place.ok(&gc);
    rig.place.ok(&[&gc[..], &["--log", "flag.jsonl"]].concat());
    assert_eq!((lines("conf/site.jsonl"), lines("flag.jsonl")), (1, 1));
    let mut command = rig.place.command();
    let status = command
        .args(gc)
        .env("LANDFALL_LOG_FILE", "variable.jsonl")
        .status();
    assert!(status.unwrap().success());
    assert_eq!((lines("conf/site.jsonl"), lines("variable.jsonl")), (1, 1));
    let verified = rig.place.ok(&["log", "verify", "--site", "conf/site.yaml"]);
    assert!(
        verified.contains("conf/site.jsonl: consistent, 1 record\n"),
        "{verified}"
    );
    let report = rig
        .place
        .json(0, &[&gc[..], &["--log", "flag.jsonl"]].concat());
    let head = report["log"]["head"].as_str().unwrap();
    let verified = rig
        .place
        .ok(&["log", "verify", "flag.jsonl", "--head", head]);
    assert!(verified.contains("record 2, followed by 0"), "{verified}");
    rig.place.json(2, &["log", "verify"]);
    rig.place.json(2, &["log", "verify", "nowhere"]);
}

#[test]
fn no_secret_is_recorded() {
    let rig = Rig::new();
    rig.set_faults([]);
    rig.place.set("SECRET_OF_SITE", "hunter2-secret");
    rig.place.write(
        "site.yaml",
        format!(
            "apiVersion: landfall/v1\nkind: Site\nregistry:\n  address: \"{}\"\n  plainHTTP: true\n  \
             credentials: {{usernameEnv: SECRET_OF_SITE, passwordEnv: SECRET_OF_SITE}}\n",
            rig.down.address
        ),
    );
    rig.down.set(Settings {
        auth: Some(Auth {
            uses: 1000,
            answer: r#"{"token":"TOKEN"}"#.into(),
        }),
        ..Settings::default()
    });
    for (exit, line) in [
        (0, "pull landfall.lock"),
        (0, "pack landfall.lock -o b"),
        (0, "push b --site site.yaml"),
        (
            2,
            "pull http://joe:hunter2-secret@UP/l?X-Amz-Signature=hunter2-secret",
        ),
    ] {
        let output = run(&rig, line);
        let stderr = stderr(&output);
        assert_eq!(output.status.code(), Some(exit), "{line}: {stderr}");
    }
    // the account was used, and the argument with the password is quoted without it
    let seen = rig.down.seen();
    assert!(
        seen.iter()
            .any(|seen| seen.path == "/token" && seen.authorization)
    );
    let text = rig.place.read(LOG);
    assert_eq!(records(&rig).len(), 4);
    let quoted = format!("http://***@{}/l", rig.up.address);
    assert!(text.contains(&quoted), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
    let encoded = STANDARD.encode("hunter2-secret:hunter2-secret");
    assert!(!text.contains(encoded.trim_end_matches('=')), "{text}");
}

#[test]
fn a_log_that_cannot_be_used_stops_a_command_before_it_does_anything() {
    let rig = Rig::new();
    let attempt = |log: &str, exit: i32| {
        let mut command = rig.place.command();
        command.args([
            "pack",
            "landfall.lock",
            "-o",
            "b",
            "--store",
            "stores/first",
        ]);
        let output = command.args(["--log", log]).output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(exit),
            "{log}: {}",
            stderr(&output)
        );
        assert!(!rig.place.path("b").exists(), "{log}");
        stderr(&output)
    };
    let told = attempt("nowhere/log.jsonl", 1);
    assert!(
        told.contains("cannot write the log nowhere/log.jsonl: the folder nowhere does not"),
        "{told}"
    );
    let before = rig.place.read("landfall.lock");
    let told = attempt("landfall.lock", 4);
    assert!(
        told.contains("help: ") && told.contains("name another file"),
        "{told}"
    );
    assert_eq!(rig.place.read("landfall.lock"), before);
    attempt("stores", 1);
}

/// A rig with a bundle `b` that `verify` checks quickly.
fn small() -> Rig {
    let rig = Rig::new();
    rig.set_faults([]);
    let mut command = rig.place.command();
    command.args([
        "pack",
        "landfall.lock",
        "-o",
        "b",
        "--store",
        "stores/first",
    ]);
    assert!(command.output().unwrap().status.success());
    rig
}

#[test]
fn processes_that_write_at_once_lose_no_record() {
    let rig = small();
    let each = 8;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..each {
                    let output = run(&rig, "verify b");
                    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
                }
            });
        }
    });
    let records = records(&rig);
    assert_eq!(records.len(), 4 * each);
}

#[test]
fn a_kill_at_any_call_that_touches_the_log_loses_at_most_one_record() {
    if !need(&["strace"]) {
        return;
    }
    let rig = small();
    let landfall = env!("CARGO_BIN_EXE_landfall");
    let calls = [
        "openat", "statx", "flock", "lseek", "read", "write", "fsync", "close",
    ];
    let mut complete = 0;
    let mut kills = 0;
    for call in calls {
        // strace counts each kind of call separately
        for number in 1.. {
            let mut command = rig.place.clean("strace");
            let inject = format!("inject={call}:signal=SIGKILL:when={number}");
            command
                .args(["-f", "-o", "trace", "-P", LOG, "-e", &inject])
                .args([landfall, "verify", "b", "--progress", "none", "--log", LOG]);
            let output = command.output().unwrap();
            let after = records(&rig).len();
            assert!(
                after == complete || after == complete + 1,
                "{call} {number}: {complete}, {after}"
            );
            complete = after;
            if output.status.success() {
                break;
            }
            kills += 1;
            assert!(number < 20, "{call}: all {number} runs were killed");
        }
    }
    assert!(
        kills > 12,
        "only {kills} kills: {}",
        rig.place.read("trace")
    );
    assert!(complete >= calls.len());
}

#[test]
fn a_truncated_line_is_noted_in_the_next_record() {
    let rig = small();
    let kib = |log: usize| log.div_ceil(1024);
    run(&rig, "verify b");
    let length = rig.place.read_bytes(LOG).len();
    let mut lengths = vec![length];
    // the kernel kills a process that extends a file beyond this many KiB
    let limit = kib(length + 1);
    let mut shell = rig.place.clean("sh");
    let script = format!(
        "ulimit -f {}; exec {} verify b --progress none --log {LOG}",
        // POSIX counts in blocks of 512 bytes
        limit * 2,
        env!("CARGO_BIN_EXE_landfall")
    );
    let status = shell
        .args(["-c", &script])
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(!status.success());
    lengths.push(rig.place.read_bytes(LOG).len());
    assert!(
        lengths[1] > lengths[0],
        "no part of the line was written: {lengths:?}"
    );
    let report = rig.place.json(0, &["log", "verify", LOG]);
    assert_eq!(report["log"]["incompleteLine"], 2, "{report:#}");
    let verified = rig.place.ok(&["log", "verify", LOG]);
    assert!(verified.contains("consistent, 1 record\n"), "{verified}");
    assert!(
        verified.contains("line 2: its command was killed"),
        "{verified}"
    );
    let output = run(&rig, "verify b");
    let told = stderr(&output);
    assert!(
        output.status.success() && told.contains("is incomplete: a command was killed"),
        "{told}"
    );
    let records = records(&rig);
    assert_eq!(records.len(), 2);
    assert_eq!(records[1]["torn"]["bytes"], lengths[1] - lengths[0] + 1);
}

#[test]
fn a_command_that_is_interrupted_is_recorded() {
    let rig = Rig::of(8);
    // slow enough that the pull still runs when the program `kill` has started
    let pace = Some((1000, Duration::from_millis(20)));
    rig.up.set(Settings {
        pace,
        ..Settings::default()
    });
    let before = rig.up.moved();
    let mut child = command(&rig, "pull landfall.lock")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while rig.up.moved() < before + 10_000 {
        std::thread::sleep(Duration::from_millis(1));
        assert!(
            child.try_wait().unwrap().is_none(),
            "the pull ended before it was interrupted"
        );
    }
    let mut kill = Command::new("kill");
    assert!(
        kill.args(["-INT", &child.id().to_string()])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let records = records(&rig);
    assert_eq!(records.len(), 1);
    let predicate = &records[0]["payload"]["predicate"];
    assert_eq!(
        (&predicate["exit"], &predicate["status"]),
        (&json!(130), &json!("failed"))
    );
}
