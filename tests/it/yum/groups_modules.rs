//! Groups, environments and module streams in `install`: what `dnf install @NAME` and
//! `dnf module install NAME:STREAM/PROFILE` install, from a server behind the gap too.

use crate::support::apt::locked;
use crate::support::charts::failure_reasons;
use crate::support::package_sets::PackageSets;
use crate::support::peers::file_server;
use crate::support::yum::{YumUpstream, dnf, dnf_each, planned};
use crate::support::{Place, charts::Signer, landfall_serve, need, rpm_repository, run};
use std::process::Command;

/// A module stream: `name:stream:version:context`, the modules that it requires, its profiles, and
/// its packages.
fn stream(id: &str, requires: &str, profiles: &str, artifacts: &str) -> String {
    let words: Vec<&str> = id.split(':').collect();
    let [name, stream, version, context] = words[..] else {
        panic!("{id}");
    };
    format!(
        "---\ndocument: modulemd\nversion: 2\ndata:\n  name: {name}\n  stream: \"{stream}\"\n  \
         version: {version}\n  context: {context}\n  arch: x86_64\n  summary: s\n  description: d\n  \
         license: {{module: [MIT]}}\n  dependencies:\n  - requires: {{platform: [el9]{requires}}}\n  \
         profiles: {{{profiles}}}\n  artifacts:\n    rpms: [{artifacts}]\n...\n"
    )
}

fn defaults(module: &str, stream: &str, profiles: &str) -> String {
    format!(
        "---\ndocument: modulemd-defaults\nversion: 1\ndata:\n  module: {module}\n  \
         stream: \"{stream}\"\n  profiles: {{{profiles}}}\n...\n"
    )
}

const COMPS: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE comps PUBLIC "-//Red Hat, Inc.//DTD Comps info//EN" "comps.dtd">
<comps>
  <group><id>core</id><name>Core</name><name xml:lang="de">Kern</name><description/><default>false</default>
    <uservisible>true</uservisible><packagelist>
      <packagereq type="mandatory">shell</packagereq>
      <packagereq type="default">pager</packagereq>
      <packagereq type="optional">editor</packagereq>
      <packagereq type="mandatory">gone</packagereq>
      <packagereq type="conditional" requires="lang">pager-lang</packagereq>
    </packagelist></group>
  <group><id>devel</id><name>Development Tools</name><description/><default>false</default>
    <uservisible>true</uservisible><packagelist>
      <packagereq type="mandatory">compiler</packagereq>
      <packagereq type="mandatory" arch="s390x">s390utils</packagereq>
      <packagereq type="mandatory">lang</packagereq>
      <packagereq type="mandatory">was</packagereq>
    </packagelist></group>
  <environment><id>server</id><name>Server</name><description/><display_order>1</display_order>
    <grouplist><groupid>core</groupid></grouplist>
    <optionlist><groupid>devel</groupid></optionlist></environment>
</comps>
"#;

const PACKAGES: &str = "shell 1\nshell 2\npager: requires libpager\nlibpager\neditor\npager-lang\n\
    lang\ncompiler: requires linker >= 2\nlinker 2\nlinker 3\ns390utils\nis-now: obsoletes was\nwas\n\
    app 1: requires libapp\napp 1.1: requires libapp\nlibapp 1\napp 2: requires libapp >= 2\n\
    libapp 2\napp-tools 2\napp 5\nclone 5: provides app = 5\nold-tools 1\ntool 7: requires app\n\
    db 10\ndb 12\nlate 1\nlate 2";

fn modules() -> String {
    [
        stream(
            "app:1:1:aaaa",
            "",
            "common: {rpms: [app]}",
            "app-0:1-1.noarch, libapp-0:1-1.noarch",
        ),
        // a newer version of the same stream; the packages of both can be installed
        stream(
            "app:1:2:aaaa",
            "",
            "common: {rpms: [app]}, full: {rpms: [app, late]}",
            "app-0:1.1-1.noarch, libapp-0:1-1.noarch, late-0:1-1.noarch",
        ),
        stream(
            "app:2:1:bbbb",
            ", db: [\"12\"]",
            "server: {rpms: [app, app-tools, plain-of-none]}, client: {rpms: [app, shell]}",
            "app-0:2-1.noarch, libapp-0:2-1.noarch, app-tools-0:2-1.noarch, app-0:2-1.src",
        ),
        stream("db:10:1:cccc", "", "", "db-0:10-1.noarch"),
        stream("db:12:1:dddd", "", "", "db-0:12-1.noarch"),
        stream(
            "tool:7:1:eeee",
            ", app: [\"1\", \"2\"]",
            "common: {rpms: [tool]}",
            "tool-0:7-1.noarch",
        ),
        stream("odd:1:1:ffff", ", gone: []", "common: {rpms: [app]}", ""),
        defaults("app", "1", "\"1\": [common], \"2\": [client]"),
        defaults("db", "10", ""),
        defaults("tool", "7", "\"7\": [common]"),
    ]
    .concat()
}

/// Writes a repository with these packages, `COMPS` and `modules`.
fn write_repository(place: &Place, folder: &str, packages: &str) {
    let packed = |text: &str| zstd::encode_all(text.as_bytes(), 3).unwrap();
    let (primary, modules) = (rpm_repository::primary(packages), modules());
    let index = |kind, name, text| (kind, name, packed(text), text);
    let indexes = [
        index("primary", "primary.xml.zst", primary.as_str()),
        index("modules", "modules.yaml.zst", modules.as_str()),
        ("group", "comps.xml", COMPS.as_bytes().to_vec(), COMPS),
    ];
    rpm_repository::write_indexes(&place.path(folder), &indexes);
}

/// Compares what landfall and dnf choose: the streams that are enabled, the words to install, and
/// the names of the expected packages, each separated by `|`.
fn compare_with_dnf(cases: &[(&str, &str, &[&str])]) {
    if !need(&["dnf", "gpg"]) {
        return;
    }
    let place = Place::new();
    let signer = Signer::new(&place, "packages");
    place.write("key.asc", signer.public());
    std::fs::create_dir_all(place.path("up")).unwrap();
    let server = file_server(&place.path("up"));
    write_repository(&place, "up/r", PACKAGES);
    let mut manifest = "apiVersion: landfall/v1\nkind: Manifest\npackages:\n".to_owned();
    let list = |words: &str| {
        let words = words.split('|').filter(|word| !word.is_empty());
        words.map(|word| format!("'{word}', ")).collect::<String>()
    };
    for (number, (streams, words, _)) in cases.iter().enumerate() {
        manifest += &format!(
            "- yum: {{name: case-{number}, url: '{}/r', key: key.asc, modules: [{}], install: [{}], \
             base: none}}\n",
            server.url(),
            list(streams),
            list(words)
        );
    }
    place.write("m.yaml", manifest);
    let ours = PackageSets::lock(&place, 3);
    let folder = format!("file://{}", place.path("up/r").display());
    let ask = |number: usize, subcommand: &[&str], words: &str| {
        let mut ask = dnf(&place, &format!("dnf-{number}"), &folder, "gpgcheck=0\n");
        ask.arg("--setopt=module_platform_id=platform:el9");
        ask.args(subcommand).args(words.split('|'));
        ask
    };
    let cases = cases.iter().enumerate();
    let enabling = cases
        .clone()
        .filter(|(_, (streams, ..))| !streams.is_empty());
    let enabling = enabling
        .map(|(number, (streams, ..))| ask(number, &["--assumeyes", "module", "enable"], streams));
    let enabling: Vec<Command> = enabling.collect();
    let installing = cases
        .clone()
        .map(|(number, (_, words, _))| ask(number, &["--assumeno", "install"], words));
    let installing: Vec<Command> = installing.collect();
    let (Some(enabled), Some(answers)) =
        (dnf_each(&place, &enabling), dnf_each(&place, &installing))
    else {
        return;
    };
    for answer in enabled {
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.contains("Complete!"), "{answer}");
    }
    let mut differences = Vec::new();
    for ((number, (streams, words, names)), answer) in cases.zip(&answers) {
        let shown = |[name, version, arch]: [&str; 3]| [name, arch, version].join(" ");
        let ours = ours.chosen(&format!("yum:case-{number}"), shown);
        let theirs = planned(answer);
        let chosen = ours.clone().unwrap_or_default();
        if chosen != theirs || ours.is_err() != theirs.is_empty() {
            differences.push(format!(
                "{streams} {words}: landfall {ours:?}, dnf {theirs:?}"
            ));
        }
        let chosen: Vec<&str> = chosen
            .iter()
            .map(|one| one.split(' ').next().unwrap())
            .collect();
        assert_eq!(chosen, *names, "{streams} {words}");
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// What each list of words installs, as dnf and landfall choose it.
#[test]
fn words_of_groups_and_modules_are_chosen_as_by_dnf() {
    let cases: [(&str, &[&str]); 20] = [
        ("@core", &["libpager", "pager", "shell"]),
        (
            "@core|lang",
            &["lang", "libpager", "pager", "pager-lang", "shell"],
        ),
        ("@Core", &["libpager", "pager", "shell"]),
        (
            "@development tools",
            &["compiler", "is-now", "lang", "linker", "s390utils"],
        ),
        (
            "@core|@devel",
            &[
                "compiler",
                "is-now",
                "lang",
                "libpager",
                "linker",
                "pager",
                "pager-lang",
                "s390utils",
                "shell",
            ],
        ),
        ("@server", &["libpager", "pager", "shell"]),
        ("app", &["app", "libapp"]),
        ("@app", &["app", "libapp"]),
        ("@app:1/common", &["app", "libapp"]),
        ("@app:1/full", &["app", "late", "libapp"]),
        ("@app:2", &["app", "libapp", "shell"]),
        ("@app:2|app-tools", &["app", "app-tools", "libapp", "shell"]),
        ("@app:2/client|db", &["app", "db", "libapp", "shell"]),
        ("@tool", &["app", "libapp", "tool"]),
        ("@tool|@app:2/client", &["app", "libapp", "shell", "tool"]),
        (
            "@app:2/client|@core",
            &["app", "libapp", "libpager", "pager", "shell"],
        ),
        // the packages of streams that are not active are hidden, and so is `clone`, which provides
        // the name of one of the active stream
        ("app-tools", &[]),
        ("clone", &[]),
        ("late", &["late"]),
        ("app-5", &[]),
    ];
    let cases = cases.map(|(words, names)| ("", words, names));
    compare_with_dnf(&cases);
}

/// Packages of a stream that is enabled without a profile, as by `dnf module enable`.
#[test]
fn packages_of_enabled_streams_are_chosen_as_by_dnf() {
    compare_with_dnf(&[
        ("app:2", "app", &["app", "libapp"]),
        ("app:2", "app-tools", &["app-tools"]),
        (
            "app:2",
            "app|app-tools|db",
            &["app", "app-tools", "db", "libapp"],
        ),
        // another version of the package, which no stream has
        ("app:2", "late", &["late"]),
        ("app:2", "clone", &[]),
        // a word without a stream means the one that is enabled
        ("app:2", "@app", &["app", "libapp", "shell"]),
        ("app:2", "@app:2/client", &["app", "libapp", "shell"]),
        ("app:2", "@app:1/common", &[]),
        ("app:2|tool", "tool", &["app", "libapp", "tool"]),
        // a stream that has no profiles
        ("db:12", "db", &["db"]),
        ("db:12|app:1", "db|app", &["app", "db", "libapp"]),
        ("app", "app", &["app", "libapp"]),
    ]);
}

#[test]
fn streams_that_cannot_be_enabled_are_explained() {
    let Some(up) = YumUpstream::new() else { return };
    write_repository(&up.place, "up/r", PACKAGES);
    for (streams, reason) in [
        ("none:1", "no source has the module 'none'"),
        ("app:3", "no source has the module stream 'app:3', but "),
        ("odd", "odd:1 requires the module gone, and no source has"),
        ("'app:1', 'app:2'", "both 1 and 2 are requested"),
        (
            "'app:2', 'db:10'",
            "app:2 requires the module db:12, and db:10 is requested",
        ),
    ] {
        up.wants(&format!("modules: [{streams}], install: [app], base: none"));
        let why = failure_reasons(&up.lock(1, &[]));
        assert!(why.contains(reason), "{streams}: {why}");
    }
    for (stream, help) in [
        ("app:2/client", r#"\"@app:2/client\" in `install`"#),
        ("@app:2", "as for `dnf module enable`: nodejs:20"),
        ("a*", "as for `dnf module enable`: nodejs:20"),
        ("app:", "as for `dnf module enable`: nodejs:20"),
        ("-y", "as for `dnf module enable`: nodejs:20"),
    ] {
        up.wants(&format!(
            "modules: ['{stream}'], install: [app], base: none"
        ));
        let error = up.lock(2, &[])["error"].to_string();
        assert!(
            error.contains(&format!("`{stream}` is not a module stream")) && error.contains(help),
            "{stream}: {error}"
        );
    }
}

#[test]
fn hotfix_repositories_are_exempt_from_module_streams() {
    if !need(&["dnf", "gpg"]) {
        return;
    }
    let place = Place::new();
    let signer = Signer::new(&place, "packages");
    place.write("key.asc", signer.public());
    std::fs::create_dir_all(place.path("up")).unwrap();
    let server = file_server(&place.path("up"));
    write_repository(&place, "up/r", PACKAGES);
    rpm_repository::write(&place.path("up/fixes"), "app 9\nclone 9: provides app = 9");
    let url = server.url();
    let wants = |more: &str, install: &str| {
        place.write(
            "m.yaml",
            format!(
                "apiVersion: landfall/v1\nkind: Manifest\npackages:\n- yum:\n    name: n\n    base: none\n    \
                 install: [{install}]\n    sources:\n    - {{url: '{url}/r', key: key.asc}}\n    \
                 - {{url: '{url}/fixes', key: key.asc{more}}}\n"
            ),
        );
        place.json(0, &["lock", "-f", "m.yaml"]);
        locked(&place.read("landfall.lock"))
    };
    assert_eq!(wants("", "app"), ["app 1.1-1", "libapp 1-1"]);
    let hotfixes = ", moduleHotfixes: true";
    assert_eq!(wants(hotfixes, "app"), ["app 9-1"]);
    assert_eq!(wants(hotfixes, "clone"), ["clone 9-1"]);
    // hotfixes also replace the packages of profiles
    assert_eq!(wants(hotfixes, "'@app:1'"), ["app 9-1"]);
    // the same with dnf, configured as landfall renders it
    place.write(
        "site.yaml",
        "apiVersion: landfall/v1\nkind: Site\nregistry: {address: '127.0.0.1:1', plainHTTP: true}\nfiles: 'http://127.0.0.1:1'\n",
    );
    place.ok(&["render", "yum", "--site", "site.yaml", "-o", "etc"]);
    let repositories = std::fs::read_dir(place.path("etc/etc/yum.repos.d")).unwrap();
    let texts: Vec<String> = repositories
        .map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap())
        .collect();
    let with = |folder: &str| {
        texts
            .iter()
            .find(|text| text.contains(&format!("{folder}\n")))
            .unwrap()
    };
    assert!(with("/fixes").contains("module_hotfixes=1\n"), "{texts:?}");
    assert!(!with("/r").contains("module_hotfixes"), "{texts:?}");
    let folder = |name: &str| format!("file://{}", place.path(format!("up/{name}")).display());
    let second = format!(
        "gpgcheck=0\n[t2]\nname=t2\nbaseurl={}\ngpgcheck=0\nmodule_hotfixes=1\n",
        folder("fixes")
    );
    let mut ask = dnf(&place, "dnf", &folder("r"), &second);
    ask.arg("--setopt=module_platform_id=platform:el9");
    let output = ask
        .args(["--assumeno", "install", "@app:1"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains(" app ") && text.contains("9-1"), "{text}");
}

#[test]
fn a_word_that_names_no_group_or_stream_is_explained() {
    let Some(up) = YumUpstream::new() else { return };
    let place = &up.place;
    write_repository(place, "up/r", PACKAGES);
    for (word, reason) in [
        (
            "@coer",
            "no source has a group or a module 'coer'; similar groups are core, ",
        ),
        (
            "@app:3",
            "no source has the module stream 'app:3', but @app:1, @app:2",
        ),
        (
            "@app:1/huge",
            "has no profile 'huge'; write one of @app:1/common, @app:1/full",
        ),
        (
            "@app:2/server",
            "no source has 'plain-of-none' of @app:2/server: plain-of-none",
        ),
        (
            "@db",
            "the module stream db:10 has no default profile; it has no profiles at all",
        ),
        (
            "@odd",
            "odd:1 requires the module gone, and no source has that module",
        ),
    ] {
        up.wants(&format!("install: ['{word}'], base: none"));
        let why = failure_reasons(&up.lock(1, &[]));
        assert!(why.contains(reason), "{word}: {why}");
    }
    up.wants("install: ['@app:1', '@app:2'], base: none");
    let why = failure_reasons(&up.lock(1, &[]));
    assert!(why.contains("both 1 and 2 are requested"), "{why}");
    // an error of the manifest has a position
    for (word, reason) in [
        ("@co*", "`@co*` has wildcards, which are not accepted"),
        ("@", "`@` is not the name of a group or a module"),
        ("@:1", "`@:1` is not the name of a group or a module"),
    ] {
        up.wants(&format!("install: ['{word}'], base: none"));
        let error = up.lock(2, &[])["error"]["message"].to_string();
        assert!(
            error.contains(reason) && error.contains("m.yaml:4:"),
            "{word}: {error}"
        );
    }
    // a repository without groups
    rpm_repository::write(&place.path("up/r"), "a");
    up.wants("install: ['@core'], base: none");
    let why = failure_reasons(&up.lock(1, &[]));
    assert!(
        why.contains("'@core' is not a module, and the sources have no groups"),
        "{why}"
    );
    // a damaged index of groups
    let cut = &COMPS[..COMPS.len() - 12];
    let primary = rpm_repository::primary("a");
    let indexes = [
        (
            "primary",
            "primary.xml",
            primary.clone().into_bytes(),
            primary.as_str(),
        ),
        ("group", "comps.xml", cut.as_bytes().to_vec(), cut),
    ];
    rpm_repository::write_indexes(&place.path("up/r"), &indexes);
    let why = failure_reasons(&up.lock(1, &[]));
    assert!(why.contains("comps.xml"), "{why}");
}

/// From packages and metadata as vendors make them to dnf behind the gap.
#[test]
fn dnf_installs_groups_and_modules_from_a_bundle() {
    let Some(up) = YumUpstream::new() else { return };
    if !need(&["modifyrepo_c"]) {
        return;
    }
    let place = &up.place;
    up.build(&[
        ("shell", "1", "", &["/usr/share/shell/shell"]),
        (
            "pager",
            "1",
            "Requires: libpager\n",
            &["/usr/share/pager/pager"],
        ),
        ("libpager", "1", "", &["/usr/share/libpager/lib"]),
        ("pager-lang", "1", "", &["/usr/share/lang/pager"]),
        ("app", "1", "", &["/usr/share/app/app"]),
        ("app", "2", "Requires: libapp\n", &["/usr/share/app/app"]),
        ("libapp", "2", "", &["/usr/share/libapp/lib"]),
        ("db", "12", "", &["/usr/share/db/db"]),
        ("other", "1", "", &["/usr/share/other/other"]),
    ]);
    place.write("up/comps.xml", COMPS);
    let modules = [
        stream(
            "app:1:1:aaaa",
            "",
            "common: {rpms: [app]}",
            "app-0:1-1.noarch",
        ),
        stream(
            "app:2:1:bbbb",
            ", db: [\"12\"]",
            "server: {rpms: [app, db]}",
            "app-0:2-1.noarch, libapp-0:2-1.noarch",
        ),
        stream("db:12:1:dddd", "", "", "db-0:12-1.noarch"),
        defaults("app", "1", "\"1\": [common]"),
    ];
    place.write("up/modules.yaml", modules.concat());
    let mut create = Command::new("createrepo_c");
    create.current_dir(place.path("up/r"));
    run(create.args(["--quiet", "--groupfile", "../comps.xml", "."]));
    let mut modify = Command::new("modifyrepo_c");
    modify.current_dir(place.path("up/r"));
    run(modify.args(["--mdtype=modules", "../modules.yaml", "repodata"]));
    up.sign();

    up.wants("name: n, install: ['@core', '@app:2/server'], base: none");
    let printed = place.stderr(0, &["lock", "-f", "m.yaml"]);
    assert!(
        printed.contains("no source has these packages of the group @core, which dnf skips: gone"),
        "{printed}"
    );
    let lock = place.read("landfall.lock");
    let all = [
        "app 2-1",
        "db 12-1",
        "libapp 2-1",
        "libpager 1-1",
        "pager 1-1",
        "shell 1-1",
    ];
    assert_eq!(locked(&lock), all, "{lock}");
    assert!(
        lock.contains("\"@app:2/server\"") && lock.contains("comps.xml"),
        "{lock}"
    );
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "b"]);

    let server = landfall_serve(place, &["b"]);
    let url = format!("http://{}/yum/{}/r", server.address, up.server.address);
    let checked = format!(
        "gpgcheck=1\nrepo_gpgcheck=1\ngpgkey=file://{}\n",
        place.path("key.asc").display()
    );
    let install = |name: &str, url: &str, checks: &str, words: &[&str]| {
        let mut install = dnf(place, name, url, checks);
        install.args(["--setopt=module_platform_id=platform:el9", "--assumeyes"]);
        run(install.args(words));
    };
    install("node", &url, &checked, &["install", "@core"]);
    install(
        "node",
        &url,
        &checked,
        &["module", "install", "app:2/server"],
    );
    for file in [
        "shell/shell",
        "pager/pager",
        "libpager/lib",
        "app/app",
        "libapp/lib",
        "db/db",
    ] {
        assert!(
            place.path(format!("node/root/usr/share/{file}")).exists(),
            "{file}"
        );
    }
    // the state of modules and groups is that of the machine
    let mut list = dnf(place, "node", &url, &checked);
    list.args([
        "--setopt=module_platform_id=platform:el9",
        "module",
        "list",
        "--enabled",
    ]);
    let listed = String::from_utf8(run(&mut list)).unwrap();
    assert!(listed.contains("server [i]"), "{listed}");
    let mut list = dnf(place, "node", &url, &checked);
    let listed = String::from_utf8(run(list.args(["group", "list", "--installed"]))).unwrap();
    assert!(listed.contains("Core"), "{listed}");

    // the same words in one command, from a folder with metadata that the site signed
    up.wants("name: n, install: ['@core', '@app:2/server'], base: none, index: trimmed");
    up.lock(0, &[]);
    place.write(
        "site.asc",
        include_bytes!("../../data/packages/site-key.asc"),
    );
    place.ok(&["export", "yum", "-o", "out", "--packages-key", "site.asc"]);
    let folder = format!(
        "file://{}",
        place.path(format!("out/{}/r", up.server.address)).display()
    );
    install(
        "trimmed",
        &folder,
        "gpgcheck=0\n",
        &["install", "@core", "@app:2/server"],
    );
    for file in ["shell/shell", "app/app", "db/db"] {
        assert!(
            place
                .path(format!("trimmed/root/usr/share/{file}"))
                .exists(),
            "{file}"
        );
    }

    // a stream that is enabled without a profile
    up.wants("name: e, install: [app], modules: ['app:2'], base: none");
    up.lock(0, &["--lock", "e.lock"]);
    let with_stream = place.read("e.lock");
    assert_eq!(locked(&with_stream), ["app 2-1", "libapp 2-1"]);
    assert!(
        with_stream.contains("  modules:\n  - app:2\n"),
        "{with_stream}"
    );
    place.ok(&["pull", "--lock", "e.lock"]);
    place.write("empty.rpms", "package base 0:1-1 noarch\n");
    let simulate = [
        "doctor",
        "packages",
        "--lock",
        "e.lock",
        "--rpms",
        "empty.rpms",
    ];
    let report = place.json(0, &simulate);
    assert_eq!(report["items"].as_array().unwrap().len(), 2, "{report}");
    place.ok(&["export", "yum", "--lock", "e.lock", "-o", "enabled"]);
    let folder = place.path(format!("enabled/{}/r", up.server.address));
    let folder = format!("file://{}", folder.display());
    let checks = "gpgcheck=0\n";
    install("stream", &folder, checks, &["module", "enable", "app:2"]);
    install("stream", &folder, checks, &["install", "app"]);
    assert_eq!(place.read("stream/root/usr/share/libapp/lib"), "libapp 2\n");
    // the same entry without the stream
    up.wants("name: e, install: [app], base: none");
    up.lock(0, &["--lock", "e.lock"]);
    assert_eq!(locked(&place.read("e.lock")), ["app 1-1"]);

    // the installation is simulated with the carried indexes, and scripts are audited
    place.write("empty.rpms", "package base 0:1-1 noarch\n");
    let report = place.json(0, &["doctor", "packages", "--rpms", "empty.rpms"]);
    assert_eq!(
        report["items"].as_array().unwrap().len(),
        all.len(),
        "{report}"
    );
    place.write(
        "ok/setup.sh",
        "dnf install -y @core\ndnf -y module install app:2/server\ndnf group install core\n",
    );
    place.ok(&["audit", "ok", "--lock", "landfall.lock"]);
    for script in [
        "dnf install -y @devel",
        "dnf module install app:1",
        "dnf groupinstall devel",
    ] {
        place.write("bad/setup.sh", format!("{script}\n"));
        let report = place.json(4, &["audit", "bad", "--lock", "landfall.lock"]);
        assert!(report.to_string().contains("not in"), "{script}: {report}");
    }
}
