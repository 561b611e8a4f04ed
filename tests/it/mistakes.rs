//! User mistakes, most of them in one table of exit codes and messages.

use crate::support::faults::Rig;
use crate::support::peers::own_registry;
use crate::support::reverse_proxy::{ProxyAction, ReverseProxy};
use std::io::Read;
use std::net::{TcpListener, ToSocketAddrs};

/// Runs landfall, asserts its exit code, and returns its stderr and stdout.
fn printed(rig: &Rig, exit: i32, line: &str) -> String {
    let words = line
        .replace("UP", &rig.up.address)
        .replace("DOWN", &rig.down.address);
    let mut command = rig.place.landfall();
    let output = command
        .args(words.split(' '))
        .args(["--progress", "none", "--store", "stores/first"])
        .output();
    let output = output.unwrap();
    let printed = [output.stderr, output.stdout].concat();
    let printed = String::from_utf8_lossy(&printed).into_owned();
    assert_eq!(output.status.code(), Some(exit), "{line}\n{printed}");
    printed
}

#[test]
fn each_mistake_has_its_exit_code_and_message() {
    let rig = Rig::new();
    rig.set_faults([]);
    rig.place.write("app.yaml", "image: nginx:1\n");
    rig.place.write("folder/file", "");
    let head = "apiVersion: landfall/v1\nkind: Manifest\n";
    rig.place.write(
        "key.yaml",
        format!("{head}packages: [{{yum: {{url: 'https://h.test', key: 'https://h.test/k', install: [a]}}}}]\n"),
    );
    rig.place.write(
        "rule.yaml",
        format!("{head}files: [{{url: 'https://h.test/f'}}]\nverify: [{{match: '*://*', keys: ['https://h.test/k']}}]\n"),
    );
    let requests_before = rig.up.seen().len() + rig.down.seen().len();
    let table: &[(&str, i32, &[&str])] = &[
        // a missing input is a usage error
        ("lock -f nowhere.yaml", 2, &["nowhere.yaml"]),
        (
            "lock -f key.yaml",
            2,
            &["key.yaml:3:", "this is a URL, and a file is needed"],
        ),
        (
            "lock -f rule.yaml",
            2,
            &["rule.yaml:4:", "is a URL, and a file is needed"],
        ),
        ("pull --lock nowhere.lock", 2, &["nowhere.lock"]),
        ("pack --lock nowhere.lock -o new", 2, &["nowhere.lock"]),
        ("push --lock nowhere.lock --to DOWN", 2, &["nowhere.lock"]),
        (
            "lock --check -f m.yaml --lock nowhere.lock",
            2,
            &["there is no nowhere.lock", "run without --check first"],
        ),
        ("mirror --lock nowhere.lock --to DOWN", 2, &["nowhere.lock"]),
        (
            "audit nowhere.yaml --lock landfall.lock",
            2,
            &["nowhere.yaml"],
        ),
        (
            "rewrite nowhere.yaml --lock landfall.lock --to DOWN",
            2,
            &["nowhere.yaml"],
        ),
        ("discover nowhere", 2, &["nowhere"]),
        ("diff nowhere landfall.lock", 2, &["nowhere"]),
        ("gc --lock nowhere.lock", 2, &["nowhere.lock"]),
        ("init kkp -o kit", 2, &["kkp", "`landfall init --list`"]),
        ("ls nowhere", 2, &["nowhere"]),
        (
            "pull --site nowhere.yaml",
            2,
            &["nowhere.yaml", "--site or LANDFALL_SITE names it"],
        ),
        ("pack -o new --sign nowhere", 2, &["nowhere"]),
        ("verify first.bundle --lock nowhere", 2, &["nowhere"]),
        (
            "serve first.bundle --htpasswd nowhere --listen 127.0.0.1:0",
            2,
            &["nowhere"],
        ),
        ("pack -o new --since nowhere", 2, &["nowhere"]),
        ("verify nowhere", 2, &["nowhere"]),
        ("verify -", 2, &["it cannot come from a pipe"]),
        ("push nowhere --to DOWN", 2, &["nowhere"]),
        // outputs are checked before the network is used
        (
            "lock -f m.yaml --lock none/new.lock --plain-http UP",
            1,
            &["the folder none does not exist; create it first"],
        ),
        (
            "pull --report none/report.json --plain-http UP",
            1,
            &["the report none/report.json", "create it first"],
        ),
        (
            "pull --report folder --plain-http UP",
            1,
            &["it is a folder; name a file in it"],
        ),
        (
            "push --to DOWN --receipt none/r.json --plain-http DOWN",
            1,
            &["the receipt none/r.json", "create it first"],
        ),
        (
            "mirror -f m.yaml --to DOWN --receipt folder --plain-http UP",
            1,
            &["it is a folder; name a file in it"],
        ),
        (
            "pull --bundle none/new --plain-http UP",
            1,
            &["the bundle none/new", "create it first"],
        ),
        (
            "pack -o none/new",
            1,
            &["the bundle none/new", "create it first"],
        ),
        (
            "export images first.bundle -o none/images.tar",
            1,
            &["the archive none/images.tar", "create it first"],
        ),
        (
            "sbom first.bundle -o none/sbom.json",
            1,
            &["the file none/sbom.json", "create it first"],
        ),
        (
            "report first.bundle -o none/page.html",
            1,
            &["the file none/page.html", "create it first"],
        ),
        (
            "discover app.yaml -o folder",
            1,
            &["the file folder", "it is a folder; name a file in it"],
        ),
        (
            "export files first.bundle -o app.yaml",
            2,
            &["'app.yaml'", "it is a file; name a folder"],
        ),
        (
            "export git first.bundle -o repositories",
            0,
            &["the lock contains nothing of this kind"],
        ),
        ("man -o app.yaml", 2, &["it is a file; name a folder"]),
        (
            "pull --log none/log",
            1,
            &["the log none/log: the folder none", "create it first"],
        ),
        // no folder called ~ is created
        (
            "pack --out=~/new.tar.zst",
            2,
            &["'~/new.tar.zst': the shell did not expand ~", "$HOME"],
        ),
        (
            "export files first.bundle --out=~/files --report=~/r.json",
            2,
            &["'~/files': the shell did not expand ~"],
        ),
        // a file server is named with a scheme
        (
            "rewrite app.yaml --lock landfall.lock --to DOWN --files 172.20.0.2:8080",
            2,
            &["write the scheme too, as in http://172.20.0.2:8080"],
        ),
        // a registry is named without a scheme
        (
            "push first.bundle oci://DOWN/x",
            2,
            &["is not a registry: write HOST[:PORT][/PREFIX] without a scheme"],
        ),
        (
            "pull nowhere.lock",
            2,
            &["run this in the folder of the lock, or name its path"],
        ),
        (
            "audit app.yaml --missing none/m.yaml --lock landfall.lock",
            1,
            &["create it first"],
        ),
        // flags of other verbs, a misspelled flag, and missing or repeated arguments
        (
            "lock -f m.yaml --bundle first.bundle",
            2,
            &["unexpected argument '--bundle'"],
        ),
        ("pack -f m.yaml", 2, &["unexpected argument '-f'"]),
        ("pull --to DOWN", 2, &["unexpected argument '--to'"]),
        (
            "pull --dry-rum",
            2,
            &["a similar argument exists: '--dry-run'"],
        ),
        ("audit first.bundle", 2, &["no files to audit are named"]),
        (
            "rewrite first.bundle --to DOWN",
            2,
            &["no files to rewrite are named"],
        ),
        (
            "rewrite app.yaml first.bundle first.bundle --to DOWN",
            2,
            &["several bundles are named", "--bundle"],
        ),
        (
            "push",
            2,
            &[
                "no destination registry is named",
                "--to HOST[:PORT][/PREFIX]",
            ],
        ),
        ("serve", 2, &["no lock was published in the store"]),
        // a file is not a host
        (
            "doctor landfall.lock",
            2,
            &["landfall.lock is a lock, which", "name it with --lock"],
        ),
        (
            "doctor first.bundle",
            2,
            &["first.bundle is a bundle, which", "--bundle"],
        ),
        ("doctor m.yaml", 2, &["m.yaml is a manifest, which"]),
        ("doctor app.yaml", 2, &["the file contains no KKP Seed"]),
        (
            "doctor folder/file",
            2,
            &["folder/file: a file of this kind is not checked"],
        ),
        // only `pack` writes to stdout, and `pull` writes no object
        ("refresh -f m.yaml -o -", 2, &["not to stdout", "pack -o -"]),
        ("pull --bundle - --dry-run", 2, &["names a file, not -"]),
        (
            "pull --bundle s3://bucket/b --dry-run",
            2,
            &["names a file", "landfall pack -o s3://bucket/b"],
        ),
    ];
    for (line, exit, words) in table {
        let printed = printed(&rig, *exit, line);
        for word in *words {
            assert!(printed.contains(word), "{line}: {word}:\n{printed}");
        }
        // `--idle` is suggested only for a misspelling of it, and no line has one
        assert!(!printed.contains("--idle'"), "{line}:\n{printed}");
    }
    assert!(!rig.place.path("~").exists());
    let seen = || format!("{}\n{}", rig.up.shown(), rig.down.shown());
    assert_eq!(
        rig.up.seen().len() + rig.down.seen().len(),
        requests_before,
        "requests were sent:\n{}",
        seen()
    );
}

#[test]
fn a_bundle_can_be_an_argument_or_a_flag() {
    let rig = Rig::new();
    rig.set_faults([]);
    rig.place.write(
        "app.yaml",
        format!("image: {}/team/app:v1\n", rig.up.address),
    );
    for (by_place, by_flag) in [
        ("verify first.bundle", "verify --bundle first.bundle"),
        ("ls first.bundle", "ls --bundle first.bundle"),
        ("ls landfall.lock", "ls --lock landfall.lock"),
        ("sbom first.bundle", "sbom --bundle first.bundle"),
        ("report first.bundle", "report --bundle first.bundle"),
        (
            "push first.bundle --to DOWN --plain-http DOWN --dry-run",
            "push --bundle first.bundle --to DOWN --plain-http DOWN --dry-run",
        ),
        (
            "audit app.yaml first.bundle",
            "audit app.yaml --bundle first.bundle",
        ),
        (
            "rewrite app.yaml first.bundle --to DOWN",
            "rewrite app.yaml --bundle first.bundle --to DOWN",
        ),
        (
            "export files first.bundle -o out --dry-run",
            "export files --bundle first.bundle -o out --dry-run",
        ),
    ] {
        assert_eq!(
            printed(&rig, 0, by_place),
            printed(&rig, 0, by_flag),
            "{by_place}"
        );
    }
}

#[test]
fn dry_runs_report_the_needed_space_and_the_free_space_on_disk() {
    let rig = Rig::new();
    rig.set_faults([]);
    for line in [
        "pull --dry-run --lock landfall.lock",
        "pull --dry-run --bundle new --lock landfall.lock",
        "pack --dry-run -o new",
        "export files --dry-run -o out",
    ] {
        let printed = printed(&rig, 0, line);
        assert!(
            printed.contains("needs at most") && printed.contains(" free"),
            "{line}: {printed}"
        );
        let args: Vec<&str> = line.split(' ').chain(["--store", "stores/first"]).collect();
        let report = rig.place.json(0, &args);
        assert!(
            report["needed_bytes"].is_u64() && report["available_bytes"].is_u64(),
            "{line}: {report:#}"
        );
    }
    for line in [
        "push --dry-run --to DOWN --plain-http DOWN",
        "mirror --lock landfall.lock --dry-run --to DOWN --plain-http UP --plain-http DOWN",
    ] {
        assert!(
            printed(&rig, 0, line).contains("needs at most     10"),
            "{line}"
        );
    }
    // a pull first reports the needed space
    let pull = format!(
        "pull --store stores/new --progress plain --plain-http {}",
        rig.up.address
    );
    let output = rig
        .place
        .landfall()
        .args(pull.split(' '))
        .assert()
        .success();
    let message = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
    assert!(
        message.starts_with("needs at most 1") && message.contains("in stores/new, which has "),
        "{message}"
    );
}

#[test]
fn a_moved_tag_fails_only_its_image_and_is_counted() {
    let rig = Rig::new();
    rig.set_faults([]);
    rig.place.json(
        0,
        &[
            "push",
            "first.bundle",
            "--to",
            &rig.down.address,
            "--plain-http",
            &rig.down.address,
        ],
    );
    // at the registry, the tag of team/app moves, and the tag of team/tool is deleted
    let other = rig.down.content(|content| {
        let other = content.tags[&("team/tool".to_owned(), "v1".to_owned())].clone();
        let manifest = content.manifests[&("team/tool".to_owned(), other.clone())].clone();
        content
            .manifests
            .insert(("team/app".into(), other.clone()), manifest);
        content
            .tags
            .insert(("team/app".into(), "v1".into()), other.clone());
        content
            .tags
            .remove(&("team/tool".to_owned(), "v1".to_owned()));
        other
    });
    let printed = printed(&rig, 3, "push first.bundle --to DOWN --plain-http DOWN");
    for words in [
        "failed   image",
        "team/app:v1 already points to",
        "--move-tags replaces it",
        "1 of 2 images, 1 file",
        ", 1 failed: 1 new, 1 there, ",
    ] {
        assert!(printed.contains(words), "{words}: {printed}");
    }
    rig.down.content(|content| {
        content
            .tags
            .remove(&("team/tool".to_owned(), "v1".to_owned()))
    });
    let all = self::printed(
        &rig,
        3,
        "push first.bundle --to DOWN --plain-http DOWN --all-or-nothing",
    );
    assert!(
        all.contains("nothing was uploaded") && all.contains("because of 1 problem"),
        "{all}"
    );
    assert!(rig.down.content(|content| {
        !content
            .tags
            .contains_key(&("team/tool".to_owned(), "v1".to_owned()))
    }));
    let tag = ("team/app".to_owned(), "v1".to_owned());
    assert_eq!(
        rig.down.content(|content| content.tags[&tag].clone()),
        other,
        "the tag still points to the other image"
    );
}

#[test]
fn a_check_that_cannot_reach_upstream_is_not_reported_as_drift() {
    let rig = Rig::new();
    rig.set_faults([]);
    // no server listens at this address
    let gone = rig
        .place
        .read("m.yaml")
        .replace(&rig.up.address, "127.0.0.1:9");
    let lock = rig
        .place
        .read("landfall.lock")
        .replace(&rig.up.address, "127.0.0.1:9");
    rig.place.write("gone.yaml", gone);
    rig.place.write("gone.lock", lock);
    let printed = printed(
        &rig,
        1,
        "lock --check -f gone.yaml --lock gone.lock --plain-http 127.0.0.1:9",
    );
    assert!(
        !printed.contains("nothing changed")
            || printed.contains("nothing changed, as far as upstream could be reached"),
        "{printed}"
    );
    assert!(
        printed.contains("0 of 2 images, 0 of 1 file") && printed.contains(", 3 failed"),
        "{printed}"
    );
    assert!(
        printed.contains("nothing listens at 127.0.0.1:9: is the port right"),
        "{printed}"
    );
}

/// Starts a server that sends `bytes` on every connection and then closes the connection. Returns
/// the address of the server.
fn raw(bytes: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut buffer = [0; 4096];
            let _ = stream.read(&mut buffer);
            let _ = std::io::Write::write_all(&mut stream, bytes);
        }
    });
    address
}

#[test]
fn the_wrong_scheme_port_or_server_is_detected() {
    let rig = Rig::new();
    rig.set_faults([]);
    let push =
        |exit, to: &str, flags: &str| printed(&rig, exit, format!("push --to {to} {flags}").trim());
    let plain = |host: &str| format!("--plain-http {host}");
    // http to a TLS port: TLS servers send an alert or a response in plain text
    let alert = raw(b"\x15\x03\x01\x00\x02\x02\x46");
    let message = push(1, &alert, &plain(&alert));
    assert!(
        message.contains(&format!("if {alert} speaks TLS, leave out --plain-http")),
        "{message}"
    );
    let go =
        raw(b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n");
    let message = push(1, &go, &plain(&go));
    assert!(
        message.contains(&format!(
            "if it speaks TLS at this port, leave out --plain-http {go}"
        )),
        "{message}"
    );
    // TLS to an http port
    let registry = own_registry();
    let by_name = registry
        .address
        .replace("127.0.0.1", "localhost.localdomain");
    let message = push(1, &by_name, "");
    let has_name = by_name.to_socket_addrs().is_ok();
    let words = match has_name {
        true => "use --plain-http localhost.localdomain",
        false => "its name cannot be resolved",
    };
    assert!(message.contains(words), "{message}");
    // no server listens at the address
    let message = push(1, "127.0.0.1:9", &plain("127.0.0.1:9"));
    assert!(
        message.contains(
            "nothing listens at 127.0.0.1:9: is the port right, and does the server run?"
        ),
        "{message}"
    );
    assert!(push(1, "127.0.0.1:9", "").contains("nothing listens at 127.0.0.1:9"));
    // a server that is not a registry
    let other = ReverseProxy::new("", |_| ProxyAction::status(501));
    let message = push(1, &other.address, &plain(&other.address));
    assert!(
        message.contains(&other.address) && message.contains("501"),
        "{message}"
    );
    let other = ReverseProxy::new("", |request| {
        ProxyAction::status(if request.method == "HEAD" { 404 } else { 501 })
    });
    let message = push(1, &other.address, &plain(&other.address));
    let words = format!(
        "this is not a registry: is {} the right host and port?",
        other.address
    );
    assert!(message.contains(&words), "{message}");
    // a proxy that answers instead of the registry
    let page = ReverseProxy::new("", |_| {
        let page = "<html><head><title>Blocked by policy</title></head></html>";
        ProxyAction::Answer(
            200,
            vec![("Content-Type".into(), "text/html".into())],
            page.into(),
        )
    });
    rig.place.write(
        "far.yaml",
        format!(
            "apiVersion: landfall/v1\nkind: Manifest\nmetadata: {{name: t}}\nimages: [{}/app:v1]\n",
            page.address
        ),
    );
    let message = printed(
        &rig,
        1,
        &format!("lock -f far.yaml --lock far.lock {}", plain(&page.address)),
    );
    assert!(
        message.contains("Blocked by policy")
            && message.contains("it is probably from a proxy, or a sign-in page"),
        "{message}"
    );
}

#[test]
fn a_rate_limit_is_reported_as_such() {
    let rig = Rig::new();
    rig.set_faults([]);
    let limited = ReverseProxy::new("", |_| {
        ProxyAction::Answer(
            429,
            vec![("Retry-After".into(), "7200".into())],
            String::new(),
        )
    });
    let host = &limited.address;
    rig.place.write("hub.yaml", "apiVersion: landfall/v1\nkind: Manifest\nmetadata: {name: t}\nimages: [docker.io/library/nginx:1.27, quay.io/a/b:v1]\n");
    rig.place.write(
        "site.yaml",
        format!("apiVersion: landfall/v1\nkind: Site\nupstreams:\n  docker.io: {{mirror: \"http://{host}\"}}\n  quay.io: {{mirror: \"http://{host}/quay\"}}\n"),
    );
    let message = printed(&rig, 1, "lock -f hub.yaml --lock hub.lock --site site.yaml");
    for words in [
        &format!(
            "{host}, the mirror of docker.io: its rate limit is reached (429): it asks to retry in 2 h"
        ),
        &format!("{host}, the mirror of quay.io: its rate limit is reached (429)"),
        "run it again after",
        "an account has a higher limit: sign in",
    ] {
        assert!(message.contains(words), "{words}: {message}");
    }
}

#[test]
fn the_password_of_the_private_registry_is_needed_only_by_verbs_that_use_it() {
    let rig = Rig::new();
    rig.set_faults([]);
    let locked = ReverseProxy::new("", |_| {
        ProxyAction::Answer(
            401,
            vec![("WWW-Authenticate".into(), "Basic realm=\"far\"".into())],
            String::new(),
        )
    });
    let far = &locked.address;
    rig.place.write(
        "site.yaml",
        format!("apiVersion: landfall/v1\nkind: Site\nregistry: {{address: \"{far}\", plainHTTP: true, credentials: {{usernameEnv: FAR_USER, passwordEnv: FAR_PASSWORD}}}}\n"),
    );
    printed(
        &rig,
        0,
        "lock -f m.yaml --lock new.lock --site site.yaml --plain-http UP",
    );
    printed(
        &rig,
        0,
        "pull --lock new.lock --site site.yaml --plain-http UP",
    );
    printed(&rig, 0, "pack --lock new.lock -o new --site site.yaml");
    assert_eq!(locked.requests().len(), 0);
    let message = printed(&rig, 2, "push new --site site.yaml");
    assert!(
        message.contains(
            "registry.credentials of the site: the environment variable FAR_USER is not set"
        ),
        "{message}"
    );
}

#[test]
fn doctor_reports_an_unknown_name_once() {
    let rig = Rig::new();
    rig.set_faults([]);
    let message = printed(&rig, 4, "doctor nowhere.invalid");
    assert_eq!(message.matches("  NO ").count(), 1, "{message}");
    assert!(message.contains("NO    name"), "{message}");
}

#[test]
fn help_and_first_files_need_no_valid_site() {
    let place = crate::support::Place::new();
    place.write("site.yaml", "kind: Site\nprxy: 1\n");
    for words in [
        "help site",
        "schema site",
        "man lock",
        "completions bash",
        "init -o kit",
    ] {
        let mut command = place.landfall();
        command.env("LANDFALL_SITE", "site.yaml");
        command.args(words.split(' ')).assert().success();
    }
    for (variable, value) in [
        ("LANDFALL_SITE", "site.yaml"),
        ("LANDFALL_STORE", "~/store"),
    ] {
        let mut command = place.landfall();
        command.env(variable, value).arg("doctor").assert().code(2);
    }
}

#[test]
fn help_groups_the_verbs_in_the_order_in_which_a_newcomer_needs_them() {
    let rig = crate::support::Place::new();
    let printed =
        |word: &str| String::from_utf8(crate::support::run(rig.command().arg(word))).unwrap();
    let help = printed("help");
    assert_eq!(help, printed("--help"));
    let at = |words: &str| {
        help.find(words)
            .unwrap_or_else(|| panic!("{words}: {help}"))
    };
    let first = &help[at("\nGetting started:")..at("\nManifests and locks:")];
    let verbs: Vec<&str> = first
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .collect();
    assert_eq!(
        verbs,
        [
            "init", "lock", "pull", "pack", "verify", "push", "serve", "rewrite", "render"
        ]
    );
    for verb in [
        "discover", "mirror", "verify", "ls", "serve", "export", "audit", "render", "doctor",
        "man", "schema",
    ] {
        assert_eq!(
            help.matches(&format!("\n  {verb} ")).count(),
            1,
            "{verb}: {help}"
        );
    }
    assert!(
        help.contains("--store <DIR|URL>") && !help.contains("\nOther:"),
        "{help}"
    );
}
