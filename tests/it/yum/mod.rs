//! yum packages: from a signed repository to a lock, a bundle, a registry, a server and a folder,
//! and from there to dnf.

mod entitlement;
mod forms;
mod groups_modules;
mod hostile;
mod locations;
mod mirrors;
mod random;

use crate::support::apt::locked;
use crate::support::charts::{Signer, failure_reasons};
use crate::support::http::request;
use crate::support::netns::{Network, REGISTRY};
use crate::support::package_sets::PackageSets;
use crate::support::peers::{file_server, own_registry};
use crate::support::yum::{YumUpstream, dnf, dnf_each, documented_format, planned};
use crate::support::{Place, landfall_serve, need, rpm_repository, run};
use serde_json::Value;

/// An application with weak, rich and file dependencies, the packages that it needs, and packages
/// that it does not need.
fn upstream() -> Option<YumUpstream> {
    let up = YumUpstream::new()?;
    up.build(&[
        (
            "app",
            "2",
            "Requires: libapp.so.1()(64bit) >= 1.2\nRequires: /usr/share/data/table\nRequires: /usr/bin/tool\n\
             Requires: (plugin if lang)\nRequires: (mta-a or mta-b)\nRecommends: extra\nRecommends: missing\n",
            &["/usr/share/app/app"],
        ),
        ("app", "1", "", &["/usr/share/app/app"]),
        ("libapp", "1.2", "Provides: libapp.so.1()(64bit) = 1.2\n", &["/usr/share/libapp/lib"]),
        ("data", "1", "", &["/usr/share/data/table"]),
        ("tool", "1", "Requires: lang\n", &["/usr/bin/tool"]),
        ("lang", "1", "", &["/usr/share/lang/lang"]),
        ("plugin", "1", "", &["/usr/share/plugin/plugin"]),
        ("mta-a", "1", "Requires: gone\n", &["/usr/share/mta/a"]),
        ("mta-b", "1", "", &["/usr/share/mta/b"]),
        ("extra", "1", "Epoch: 3\n", &["/usr/share/extra/extra"]),
        ("addon", "1", "Supplements: (app and lang)\n", &["/usr/share/addon/addon"]),
        ("other", "1", "Requires: app\n", &["/usr/share/other/other"]),
    ]);
    up.index("gz");
    Some(up)
}

const ALL: [&str; 9] = [
    "addon 1-1",
    "app 2-1",
    "data 1-1",
    "extra 3:1-1",
    "lang 1-1",
    "libapp 1.2-1",
    "mta-b 1-1",
    "plugin 1-1",
    "tool 1-1",
];

#[test]
fn dnf_installs_mirrored_packages_in_a_closed_network() {
    let Some(up) = upstream() else { return };
    let place = &up.place;
    up.wants("install: [app], base: none");
    up.lock(0, &[]);
    let lock = place.read("landfall.lock");
    assert_eq!(locked(&lock), ALL, "{lock}");
    assert!(
        lock.contains(&format!("- name: yum:{}\n", up.url())),
        "{lock}"
    );
    assert!(
        lock.contains("repodata/repomd.xml.asc") && lock.contains("filelists.xml.gz"),
        "{lock}"
    );

    // locking unchanged entries sends no request, and `--refresh` finds nothing new
    let before = up.server.requests("\"");
    up.lock(0, &[]);
    assert_eq!(up.server.requests("\""), before);
    let refreshed = up.lock(0, &["--refresh"]);
    assert_eq!(
        (
            refreshed["totals"]["present"].as_u64(),
            place.read("landfall.lock")
        ),
        (Some(1), lock)
    );

    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "b"]);
    place.ok(&["verify", "b", "--lock", "landfall.lock"]);

    // the server offers the packages of a bundle, and those of a registry after a push
    let there = own_registry();
    place.ok(&["push", "b", "--to", &there.address]);
    let host = up.server.address.clone();
    let bytes = place.read_bytes("up/r/Packages/app-2-1.noarch.rpm");
    for arguments in [vec!["b"], vec!["--from", there.address.as_str()]] {
        let server = landfall_serve(place, &arguments);
        let get = |at: &str| request("GET", &server.address, at, &[], b"");
        assert_eq!(
            get(&format!("/yum/{host}/r/Packages/app-2-1.noarch.rpm")).body,
            bytes
        );
        assert_eq!(
            get(&format!("/yum/{host}/r/Packages/other-1-1.noarch.rpm")).status,
            404
        );
        let own = request(
            "GET",
            &server.address,
            "/r/repodata/repomd.xml",
            &[("Host", &host)],
            b"",
        );
        assert_eq!(own.body, place.read_bytes("up/r/repodata/repomd.xml"));
    }

    // a folder for an existing web server
    place.ok(&["export", "yum", "--bundle", "b", "-o", "out"]);
    let folder = format!("file://{}", place.path(format!("out/{host}/r")).display());
    let mut from_folder = dnf(place, "folder", &folder, "gpgcheck=0\n");
    let plan = from_folder
        .args(["--assumeno", "install", "app"])
        .output()
        .unwrap();
    assert_eq!(planned(&plan.stdout).len(), ALL.len(), "{plan:?}");

    // dnf installs in a network with only the server, and checks all signatures
    let Some(network) = Network::new() else {
        return;
    };
    let mut serve = place.command();
    serve.args(["serve", "b", "--listen", REGISTRY]);
    let _server = network.serve("registry", &serve, REGISTRY);
    // dnf uses the repository file that landfall writes
    place.write(
        "site.yaml",
        format!("apiVersion: landfall/v1\nkind: Site\nregistry: {{address: '{REGISTRY}', plainHTTP: true}}\nfiles: 'http://{REGISTRY}/yum'\n"),
    );
    place.ok(&[
        "render",
        "yum",
        "--site",
        "site.yaml",
        "-o",
        "etc-of-node",
        "--set",
        "others=off",
    ]);
    let conf = place.read("etc-of-node/etc/dnf/dnf.conf");
    assert!(
        conf.contains("reposdir=/etc/landfall/yum.repos.d\n")
            && conf.contains("install_weak_deps=True\n"),
        "{conf}"
    );
    let repositories = place.path("etc-of-node/etc/landfall/yum.repos.d");
    let file = std::fs::read_dir(&repositories)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("gpgcheck=1\nrepo_gpgcheck=1\n"), "{text}");
    // `repomd.xml` may list forms of the metadata that are not carried
    assert!(text.contains("\nmddownloadpolicy=xml\n"), "{text}");
    let keys = format!("gpgkey=file://{}/etc/", place.path("etc-of-node").display());
    std::fs::write(&file, text.replace("gpgkey=file:///etc/", &keys)).unwrap();
    let mut install = dnf(place, "node", "file:///nowhere", "enabled=0\n");
    install
        .arg(format!("--setopt=reposdir={}", repositories.display()))
        .args(["--assumeyes", "install", "app"]);
    run(&mut network.on("node", &install));
    for file in [
        "app/app",
        "libapp/lib",
        "data/table",
        "mta/b",
        "extra/extra",
        "addon/addon",
        "plugin/plugin",
    ] {
        assert!(
            place.path(format!("node/root/usr/share/{file}")).exists(),
            "{file}"
        );
    }
}

/// Compares dnf and landfall for each case in `tests/data/packages/yum-cases.txt`.
#[test]
fn the_selection_equals_that_of_dnf() {
    if !need(&["dnf", "gpg"]) {
        return;
    }
    let place = Place::new();
    let signer = Signer::new(&place, "packages");
    place.write("key.asc", signer.public());
    std::fs::create_dir_all(place.path("up")).unwrap();
    let server = file_server(&place.path("up"));
    let text = include_str!("../../data/packages/yum-cases.txt");
    let cases: Vec<(Vec<&str>, &str)> = text
        .split("\n= ")
        .skip(1)
        .map(|case| case.split_once('\n').unwrap())
        .map(|(head, packages)| (head.split(" | ").collect(), packages))
        .collect();
    assert!(cases.len() >= 40, "{} cases", cases.len());
    let mut manifest = "apiVersion: landfall/v1\nkind: Manifest\npackages:\n".to_owned();
    for (number, (head, packages)) in cases.iter().enumerate() {
        rpm_repository::write(&place.path(format!("up/{number}")), packages);
        let words: Vec<String> = head[1].split(' ').map(|word| format!("'{word}'")).collect();
        manifest += &format!(
            "- yum: {{name: case-{number}, url: '{}/{number}', key: key.asc, install: [{}], base: none, weak: {}}}\n",
            server.url(),
            words.join(", "),
            !head.contains(&"no-weak")
        );
    }
    place.write("m.yaml", manifest);
    let ours = PackageSets::lock(&place, 3);
    let ask = |number: usize| {
        let (head, _) = &cases[number];
        let folder = format!("file://{}", place.path(format!("up/{number}")).display());
        let mut ask = dnf(&place, &format!("dnf-{number}"), &folder, "gpgcheck=0\n");
        ask.arg(format!(
            "--setopt=install_weak_deps={}",
            !head.contains(&"no-weak")
        ));
        ask.args(["--assumeno", "install"]).args(head[1].split(' '));
        ask
    };
    let Some(answers) = dnf_each(&place, &(0..cases.len()).map(ask).collect::<Vec<_>>()) else {
        return;
    };
    let mut differences = Vec::new();
    for (number, ((head, _), answer)) in cases.iter().zip(&answers).enumerate() {
        let shown = |[name, version, arch]: [&str; 3]| [name, arch, version].join(" ");
        let ours = ours.chosen(&format!("yum:case-{number}"), shown);
        let theirs = planned(answer);
        if ours.clone().unwrap_or_default() != theirs || ours.is_err() != theirs.is_empty() {
            differences.push(format!("{}: landfall {ours:?}, dnf {theirs:?}", head[0]));
        }
    }
    assert!(
        differences.is_empty(),
        "{} of {} differ:\n{}",
        differences.len(),
        cases.len(),
        differences.join("\n")
    );
    // the program dnf gives the same result as its modules, which `dnf_each` loads
    for number in [0, cases.len() / 2, cases.len() - 1] {
        assert_eq!(
            planned(&ask(number).output().unwrap().stdout),
            planned(&answers[number]),
            "{number}"
        );
    }
}

#[test]
fn installed_packages_of_machines_decide_what_is_mirrored() {
    let Some(up) = upstream() else { return };
    let place = &up.place;
    // the list of a real RPM database, including its keys, in the documented format
    let query = documented_format();
    up.wants("install: [lang, tool], base: none");
    let mut install = dnf(place, "node", &format!("{}/", up.url()), "gpgcheck=0\n");
    run(install.args(["--assumeyes", "install", "tool", "libapp"]));
    let rpm = |arguments: &[&str]| {
        let mut rpm = place.clean("rpm");
        run(rpm
            .arg("--root")
            .arg(place.path("node/root"))
            .args(arguments))
    };
    rpm(&["--import", &place.path("key.asc").display().to_string()]);
    let rpms = rpm(&["-qa", "--qf", query]);
    place.write("node.rpms", &rpms);
    let text = String::from_utf8_lossy(&rpms);
    assert!(
        text.contains("provides libapp.so.1()(64bit) = 1.2") && text.contains("gpg-pubkey"),
        "{text}"
    );
    up.wants("install: [app], weak: false, base: {rpms: node.rpms}");
    up.lock(0, &[]);
    assert_eq!(
        locked(&place.read("landfall.lock")),
        ["app 2-1", "data 1-1", "mta-b 1-1", "plugin 1-1"]
    );

    assert_doctor_simulates_installations(&up, &String::from_utf8_lossy(&rpm(&["-qa"])));

    // a plain list, and two kinds of machines
    place.write(
        "plain.rpms",
        "tool-1-1.noarch\nlang-1-1.noarch\nlibapp-1.2-1.noarch\n",
    );
    up.wants("install: [app], weak: false, base: [{rpms: plain.rpms}, none]");
    let report = place
        .landfall()
        .args(["lock", "-f", "m.yaml", "--lock", "two.lock"])
        .output()
        .unwrap();
    assert!(report.status.success(), "{report:?}");
    let printed = String::from_utf8_lossy(&report.stderr).into_owned();
    assert!(
        printed
            .contains("only machines with the base `none` need lang 1-1, libapp 1.2-1, tool 1-1"),
        "{printed}"
    );
    assert_eq!(locked(&place.read("two.lock")).len(), 7);

    // without a base, dependencies that no source offers are assumed to be on the machine already
    up.build(&[(
        "vendor",
        "1",
        "Requires: libc.so.6()(64bit)\nRequires: gone-file\n",
        &["/usr/share/vendor/v"],
    )]);
    up.index("xz");
    up.wants("install: [vendor]");
    up.lock(0, &["--lock", "vendor.lock"]);
    let lock = place.read("vendor.lock");
    assert!(
        lock.contains("  expected:\n  - gone-file\n  - \"libc.so.6()(64bit)\"\n")
            || lock.contains("  expected:\n  - gone-file\n  - libc.so.6()(64bit)\n"),
        "{lock}"
    );
    // with a base, they are refused, and the message contains the chain of dependencies
    up.wants("install: [vendor], base: none");
    let why = failure_reasons(&up.lock(1, &["--lock", "none.lock"]));
    assert!(
        why.contains("vendor-1-1.noarch requires gone-file, which no source offers"),
        "{why}"
    );
}

#[test]
fn bz2_metadata_is_read_and_carried() {
    let Some(up) = upstream() else { return };
    let place = &up.place;
    up.index_again("bz2");
    up.wants("install: [app], base: none");
    up.lock(0, &[]);
    let lock = place.read("landfall.lock");
    assert!(lock.contains("-primary.xml.bz2\n"), "{lock}");
    assert_eq!(locked(&lock), ALL);
    place.ok(&["pull"]);
    place.ok(&["pack", "-o", "b"]);
    let server = landfall_serve(place, &["b"]);
    let url = format!("http://{}/yum/{}/r", server.address, up.server.address);
    let output = dnf(place, "root", &url, "gpgcheck=0\n")
        .args(["--assumeyes", "install", "app"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let installed = planned(&output.stdout).into_iter();
    let installed: Vec<String> = installed
        .map(|line| line.replace(" noarch ", " "))
        .collect();
    assert_eq!(installed, ALL);
}

/// Runs `doctor packages` for the machine whose list `node.rpms` is the base of `landfall.lock`,
/// and for other machines.
fn assert_doctor_simulates_installations(up: &YumUpstream, plain: &str) {
    let place = &up.place;
    place.ok(&["pull"]);
    let doctor = |exit: i32, list: &str| place.json(exit, &["doctor", "packages", "--rpms", list]);
    let with = |report: &Value, status: &str| -> Vec<String> {
        let items = report["items"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|item| item["status"] == status);
        items
            .map(|item| item["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let own = doctor(0, "node.rpms");
    assert_eq!(
        with(&own, "present"),
        ["app 2-1", "data 1-1", "mta-b 1-1", "plugin 1-1"],
        "{own}"
    );
    assert_eq!(own["replaced"], serde_json::json!([]));
    // a machine with fewer packages also needs packages that the lock lacks, and its older libapp
    // is replaced
    place.write(
        "bare.rpms",
        "package libapp 0:1.1-1 noarch\npackage lang 0:1-1 noarch\nprovides other\n",
    );
    let bare = doctor(4, "bare.rpms");
    assert_eq!(
        with(&bare, "missing"),
        ["libapp 1.2-1", "tool 1-1"],
        "{bare}"
    );
    assert_eq!(
        bare["replaced"],
        serde_json::json!(["libapp 1.1-1 → 1.2-1"])
    );
    let conflicting = "package old 0:1-1 noarch\nconflicts app\n";
    place.write("conflicting.rpms", conflicting);
    let why = failure_reasons(&doctor(4, "conflicting.rpms"));
    assert!(
        why.contains("old-1-1.noarch of the base conflicts with app"),
        "{why}"
    );
    // the plain list identifies packages of the sources by their names
    place.write("plain.rpms", plain);
    assert_eq!(with(&doctor(0, "plain.rpms"), "present").len(), 4);

    // an invalid list, and lists that do not fit the flag or the lock
    place.write(
        "status",
        "Package: dpkg\nStatus: install ok installed\nVersion: 1\n\n",
    );
    place.write("wrong.rpms", "ii  bash  5.1\n");
    for (flag, file, words) in [
        (
            "--rpms",
            "status",
            "status is a dpkg status file; name it with --status",
        ),
        ("--rpms", "wrong.rpms", "line 1 is 'ii  bash  5.1'"),
        (
            "--status",
            "node.rpms",
            "node.rpms is a list of RPM packages; name it with --rpms",
        ),
        (
            "--status",
            "status",
            "the lock has no apt packages to compare with a dpkg status file",
        ),
    ] {
        let why = failure_reasons(&place.json(2, &["doctor", "packages", flag, file]));
        assert!(why.contains(words), "{why}");
    }
}

#[test]
fn module_streams_are_handled_as_by_dnf() {
    let Some(up) = YumUpstream::new() else { return };
    let place = &up.place;
    let packages = "app 1: requires lib\napp 2\napp 3\nlib 1\nlib 9\nonly 2: provides perl(Only) = 2\nplain\n\
                    user: requires perl(Only) >= 1\nother: requires only-more";
    let stream = |stream: &str, artifacts: &str| {
        format!(
            "---\ndocument: modulemd\nversion: 2\ndata:\n  name: app\n  stream: \"{stream}\"\n  version: 1\n  context: c{stream}\n  \
             arch: x86_64\n  summary: s\n  description: d\n  license: {{module: [MIT]}}\n  artifacts:\n    rpms: [{artifacts}]\n...\n"
        )
    };
    let modules = [
        stream("1", "app-0:1-1.noarch, lib-0:1-1.noarch"),
        stream("2", "app-0:2-1.noarch, only-0:2-1.noarch"),
        "---\ndocument: modulemd-defaults\nversion: 1\ndata:\n  module: app\n  stream: \"1\"\n...\n"
            .to_owned(),
    ]
    .concat();
    let primary = rpm_repository::primary(packages);
    let packed = |text: &str| zstd::encode_all(text.as_bytes(), 3).unwrap();
    let indexes = [
        (
            "primary",
            "primary.xml.zst",
            packed(&primary),
            primary.as_str(),
        ),
        (
            "modules",
            "modules.yaml.zst",
            packed(&modules),
            modules.as_str(),
        ),
    ];
    rpm_repository::write_indexes(&place.path("up/r"), &indexes);
    up.wants("install: [app, plain], base: none");
    up.lock(0, &[]);
    assert_eq!(
        locked(&place.read("landfall.lock")),
        ["app 1-1", "lib 1-1", "plain 1-1"]
    );
    let folder = format!("file://{}", place.path("up/r").display());
    let mut ask = dnf(place, "dnf", &folder, "gpgcheck=0\nmodule_hotfixes=0\n");
    let output = ask
        .args([
            "--setopt=module_platform_id=platform:el9",
            "--assumeno",
            "install",
            "app",
            "plain",
        ])
        .output()
        .unwrap();
    let theirs = planned(&output.stdout);
    assert_eq!(
        theirs,
        ["app noarch 1-1", "lib noarch 1-1", "plain noarch 1-1"],
        "{output:?}"
    );
    // streams also work with trimmed metadata
    up.wants("install: [app, plain], base: none, index: trimmed");
    up.lock(0, &[]);
    place.write(
        "site.asc",
        include_bytes!("../../data/packages/site-key.asc"),
    );
    // the export is incomplete, because the packages are only listed and do not exist
    place.json(
        3,
        &["export", "yum", "-o", "out", "--packages-key", "site.asc"],
    );
    let folder = format!(
        "file://{}",
        place.path(format!("out/{}/r", up.server.address)).display()
    );
    let mut ask = dnf(place, "trimmed", &folder, "gpgcheck=0\nmodule_hotfixes=0\n");
    let arguments = [
        "--setopt=module_platform_id=platform:el9",
        "--assumeno",
        "install",
        "app",
        "plain",
    ];
    let output = ask.args(arguments).output().unwrap();
    assert_eq!(planned(&output.stdout), theirs, "{output:?}");
    let modules = format!("out/{}/r/repodata/modules.yaml.zst", up.server.address);
    assert_eq!(
        place.read_bytes(&modules),
        place.read_bytes("up/r/repodata/modules.yaml.zst")
    );
    let by_stream = "is offered by only-2-1.noarch of the module stream app:2, which is not active";
    for (word, reason) in [
        ("only", format!("only {by_stream}")),
        ("only-2", format!("only-2 {by_stream}")),
        ("user", format!("perl(Only) >= 1 {by_stream}")),
        (
            "app-2",
            "app-2 is offered by app-2-1.noarch of the module stream app:2, which is not active; \
             `modules: [\"app:2\"]` enables it"
                .into(),
        ),
        (
            "'@app:2'",
            "the module stream app:2 has no default profile".into(),
        ),
    ] {
        up.wants(&format!("install: [{word}], base: none"));
        let output = place
            .landfall()
            .args(["lock", "-f", "m.yaml", "--lock", "no.lock"])
            .output()
            .unwrap();
        let printed =
            String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(
            !output.status.success() && printed.contains(&reason),
            "{word}: {printed}"
        );
    }
    // `only-more` merely begins like `only`, a package of a stream: the message names no stream
    up.wants("install: [other], base: none");
    let output = place
        .landfall()
        .args(["lock", "-f", "m.yaml", "--lock", "no.lock"])
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(
        printed.contains("requires only-more, which no source offers"),
        "{printed}"
    );
    assert!(!printed.contains("module stream"), "{printed}");
}
