//! The rules of a site: `verify` for items and `signers` for bundles. A table lists every verb and
//! argument by which content is read or delivered; one that is not listed fails the test.

use crate::image_signatures::COSIGN;
use crate::support::charts::Chart;
use crate::support::git::{GitServer, history};
use crate::support::peers::{Server, file_server, landfall_serve, own_registry};
use crate::support::programs::go_install;
use crate::support::sigstore::{
    ImageSigner, Sigstore, Tampering, lock, push_image, push_tagged, simple_payload,
};
use crate::support::{Guard, Images, Place, free_port, http, need, run, wait_for};
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::TcpStream;
use std::path::Path;

/// How an argument reaches content.
#[derive(Clone, Copy)]
enum Way {
    /// Delivers items to the site, or writes them for it. The exit code for items that do not meet
    /// `verify`, and the command line.
    Delivers(i32, &'static str),
    /// Delivers the items of a bundle.
    Carries(&'static str),
    /// Reads a bundle, and delivers nothing.
    Reads(&'static str),
    /// Needs no rule, for this reason.
    Free(&'static str),
}
use Way::{Carries, Delivers, Free, Reads};

/// Each verb with an argument that names content, as `--help` shows them. In command lines, `B`,
/// `V`, `L`, `S` and `M` are the bundle, the same bundle in volumes, the lock, store and manifest,
/// `F` the site, `TO` a registry, and `OUT` a path that does not exist.
const WAYS: &[(&str, Way)] = &[
    ("init --from", Free("names a system")),
    ("lock --lock", Delivers(1, "lock -f M --lock OUT --site F")),
    (
        "lock --from",
        Free("tests of `lock`: images of an archive need a signature, too"),
    ),
    ("lock [MANIFEST|DIR|LIST]...", Free("see `lock --lock`")),
    ("lock --file", Free("see `lock --lock`")),
    ("update [MANIFEST|DIR|LIST]...", Free("see `update --lock`")),
    ("update --file", Free("see `update --lock`")),
    (
        "update --lock",
        Delivers(1, "update -f M --lock OUT --site F"),
    ),
    ("pull [LOCK]", Delivers(1, "pull L --store S --site F")),
    (
        "pull --lock",
        Delivers(1, "pull --lock L --store S --site F"),
    ),
    (
        "pull --bundle",
        Delivers(1, "pull L --bundle OUT --store S --site F"),
    ),
    (
        "pull --from",
        Delivers(1, "pull L --from S --store OUT --site F"),
    ),
    (
        "pack [LOCK]",
        Delivers(4, "pack L -o OUT --store S --site F"),
    ),
    (
        "pack --lock",
        Delivers(4, "pack --lock L -o OUT --store S --site F"),
    ),
    (
        "pack --out",
        Delivers(4, "pack L --out OUT --volume-size 4GiB --store S --site F"),
    ),
    (
        "pack --since",
        Reads("pack L --since B -o OUT --store S --site F"),
    ),
    (
        "pack --like",
        Reads("pack L --like V --only-volume 1 -o OUT --store S --site F"),
    ),
    ("verify [BUNDLE]", Carries("verify B --site F")),
    (
        "verify [BASE]...",
        Free("bases are compared with the digests of the delta"),
    ),
    ("verify --bundle", Carries("verify --bundle B --site F")),
    ("verify --lock", Carries("verify B --lock L --site F")),
    ("push [BUNDLE]", Carries("push B --to TO --site F")),
    ("push [REGISTRY|BASE]...", Carries("push B TO --site F")),
    ("push --bundle", Carries("push --bundle B --to TO --site F")),
    (
        "push --with-store",
        Carries("push B --with-store --store S --to TO --site F"),
    ),
    (
        "push --lock",
        Delivers(4, "push --lock L --store S --to TO --site F"),
    ),
    (
        "push --keep",
        Reads(
            "push --lock L --store S --to TO --prune --repository a/b --keep B --dry-run --site F",
        ),
    ),
    ("serve [BUNDLE]...", Carries("serve B --site F")),
    ("serve --bundle", Carries("serve --bundle B --site F")),
    ("serve --from", Delivers(4, "serve --from TO/old --site F")),
    (
        "serve --writable",
        Free("see `a_writable_server_trusts_only_clients_that_it_was_told_to_trust`"),
    ),
    ("serve --base", Free("bases are not served by name")),
    (
        "serve --with-store",
        Carries("serve B --with-store --store S --site F"),
    ),
    (
        "serve --lock",
        Delivers(4, "serve --lock L --store S --site F"),
    ),
    ("serve --store", Delivers(4, "serve --store S --site F")),
    ("rewrite --lock", Free("reads a lock and no content")),
    (
        "rewrite --bundle",
        Reads("rewrite pod.yaml --bundle B --to TO --site F"),
    ),
    (
        "rewrite [PATH]...",
        Reads("rewrite pod.yaml B --to TO --site F"),
    ),
    ("render --lock", Free("reads a lock and no content")),
    (
        "render --bundle",
        Reads("render containerd --bundle B --to TO -o OUT --site F"),
    ),
    (
        "refresh [MANIFEST|DIR|LIST]...",
        Free("see `refresh --lock`"),
    ),
    ("refresh --file", Free("see `refresh --lock`")),
    (
        "refresh --lock",
        Delivers(1, "refresh -f M --lock OUT --store S -o OUT2 --site F"),
    ),
    (
        "refresh --out",
        Delivers(1, "refresh -f M --lock OUT --store S -o OUT2 --site F"),
    ),
    (
        "refresh --since",
        Reads("refresh -f M --lock OUT --store S -o OUT2 --since B --site F"),
    ),
    ("diff <OLD>", Reads("diff B L --site F")),
    ("diff <NEW>", Reads("diff L B --site F")),
    ("sign [BUNDLE]", Free("adds the signature")),
    ("sign --bundle", Free("adds the signature")),
    ("ls [BUNDLE|LOCK]", Reads("ls B --site F")),
    ("ls [VOLUME|FOLDER]...", Free("volumes of the bundle")),
    ("ls --bundle", Reads("ls --bundle B --site F")),
    ("ls --lock", Free("reads a lock and no content")),
    ("report [BUNDLE]", Reads("report B -o OUT --site F")),
    ("report [VOLUME|FOLDER]...", Free("volumes of the bundle")),
    (
        "report --bundle",
        Reads("report --bundle B -o OUT --site F"),
    ),
    (
        "report --since",
        Reads("report B --since B -o OUT --site F"),
    ),
    ("sbom [BUNDLE]", Reads("sbom B --site F")),
    ("sbom [VOLUME|FOLDER]...", Free("volumes of the bundle")),
    ("sbom --bundle", Reads("sbom --bundle B --site F")),
    (
        "export images [BUNDLE|LOCK]",
        Carries("export images B -o OUT --site F"),
    ),
    (
        "export images --bundle",
        Carries("export images --bundle B -o OUT --site F"),
    ),
    (
        "export images --lock",
        Delivers(4, "export images --lock L --store S -o OUT --site F"),
    ),
    (
        "export images --base",
        Free("bases are compared with the digests of the delta"),
    ),
    (
        "export images --with-store",
        Carries("export images B --with-store --store S -o OUT --site F"),
    ),
    (
        "export files [BUNDLE|LOCK]",
        Carries("export files B -o OUT --site F"),
    ),
    (
        "export files --bundle",
        Carries("export files --bundle B -o OUT --site F"),
    ),
    (
        "export files --lock",
        Delivers(4, "export files --lock L --store S -o OUT --site F"),
    ),
    (
        "export files --base",
        Free("bases are compared with the digests of the delta"),
    ),
    (
        "export files --with-store",
        Carries("export files B --with-store --store S -o OUT --site F"),
    ),
    (
        "export referrers [BUNDLE|LOCK]",
        Reads("export referrers B -o OUT --site F"),
    ),
    (
        "export referrers --bundle",
        Reads("export referrers --bundle B -o OUT --site F"),
    ),
    (
        "export referrers --lock",
        Free("the content is that of `export images`"),
    ),
    (
        "export referrers --base",
        Free("bases are compared with the digests of the delta"),
    ),
    (
        "export referrers --with-store",
        Reads("export referrers B --with-store --store S -o OUT --site F"),
    ),
    (
        "export charts [BUNDLE|LOCK]",
        Carries("export charts B -o OUT --site F"),
    ),
    (
        "export charts --bundle",
        Carries("export charts --bundle B -o OUT --site F"),
    ),
    (
        "export charts --lock",
        Delivers(4, "export charts --lock L --store S -o OUT --site F"),
    ),
    (
        "export charts --base",
        Free("bases are compared with the digests of the delta"),
    ),
    (
        "export charts --with-store",
        Carries("export charts B --with-store --store S -o OUT --site F"),
    ),
    (
        "export git [BUNDLE|LOCK]",
        Carries("export git B -o OUT --site F"),
    ),
    (
        "export git --bundle",
        Carries("export git --bundle B -o OUT --site F"),
    ),
    (
        "export git --lock",
        Delivers(4, "export git --lock L --store S -o OUT --site F"),
    ),
    (
        "export git --base",
        Free("bases are compared with the digests of the delta"),
    ),
    (
        "export git --with-store",
        Carries("export git B --with-store --store S -o OUT --site F"),
    ),
    ("push --git-to", Carries("push B --git-to GIT --site F")),
    (
        "export images-txt [BUNDLE|LOCK]",
        Reads("export images-txt B --site F"),
    ),
    (
        "export images-txt --lock",
        Free("reads a lock and no content"),
    ),
    (
        "export images-txt --bundle",
        Reads("export images-txt --bundle B --site F"),
    ),
    (
        "mirror --lock",
        Delivers(4, "mirror --lock L --to TO --site F"),
    ),
    (
        "mirror [MANIFEST|DIR|LIST]...",
        Delivers(1, "mirror M --to TO --site F"),
    ),
    ("mirror --file", Delivers(1, "mirror -f M --to TO --site F")),
    (
        "status [BUNDLE|LOCK]",
        Reads("status B --registry TO --site F"),
    ),
    ("status --lock", Free("reads a lock and no content")),
    (
        "status --bundle",
        Reads("status --bundle B --registry TO --site F"),
    ),
    (
        "publish [LOCK]",
        Delivers(4, "publish L --store S --site F"),
    ),
    (
        "publish --lock",
        Delivers(4, "publish --lock L --store S --site F"),
    ),
    ("gc --lock", Free("reads a lock and no content")),
    (
        "gc --bundle",
        Reads("gc --bundle B --store S --dry-run --site F"),
    ),
    ("audit --lock", Free("reads a lock and no content")),
    (
        "audit --bundle",
        Reads("audit pod.yaml --bundle B --site F"),
    ),
    ("egress [LOCK|BUNDLE]", Reads("egress B --site F")),
    ("egress --lock", Free("reads a lock and no content")),
    (
        "egress --file",
        Free("reads manifests and requests nothing"),
    ),
    ("egress --diff", Free("reads a lock or a list")),
    ("doctor --lock", Free("reads a lock and no content")),
    ("doctor --bundle", Free("reads a lock and no content")),
    ("doctor node --bundle", Free("reads a lock and no content")),
    ("doctor node --lock", Free("reads a lock and no content")),
    (
        "audit --base",
        Free("bases are compared with the digests of the delta"),
    ),
    (
        "audit --with-store",
        Reads("audit pod.yaml --bundle B --with-store --store S --site F"),
    ),
    (
        "rewrite --base",
        Free("bases are compared with the digests of the delta"),
    ),
    (
        "rewrite --with-store",
        Reads("rewrite pod.yaml --bundle B --with-store --store S --to TO --site F"),
    ),
    (
        "render --base",
        Free("bases are compared with the digests of the delta"),
    ),
    (
        "render --with-store",
        Reads("render containerd --bundle B --with-store --store S --to TO -o OUT --site F"),
    ),
    (
        "report --base",
        Free("bases are compared with the digests of the delta"),
    ),
    (
        "report --with-store",
        Reads("report B --with-store --store S -o OUT --site F"),
    ),
    (
        "sbom --base",
        Free("bases are compared with the digests of the delta"),
    ),
    (
        "sbom --with-store",
        Reads("sbom B --with-store --store S --site F"),
    ),
    (
        "status --base",
        Free("bases are compared with the digests of the delta"),
    ),
    (
        "status --with-store",
        Reads("status B --with-store --store S --registry TO --site F"),
    ),
    (
        "export images-txt --base",
        Free("bases are compared with the digests of the delta"),
    ),
    (
        "export images-txt --with-store",
        Reads("export images-txt B --with-store --store S --site F"),
    ),
    (
        "doctor --base",
        Free("bases are compared with the digests of the delta"),
    ),
    ("doctor --with-store", Free("reads a lock and no content")),
    (
        "doctor node --base",
        Free("bases are compared with the digests of the delta"),
    ),
    (
        "doctor node --with-store",
        Free("reads a lock and no content"),
    ),
];

/// The verb of the table that has the same arguments, which the program reads in the same way.
fn listed_verb(verb: &str) -> &str {
    match verb {
        // no rule matches packages and providers
        "export apt" | "export yum" | "export providers" | "doctor packages" => "export files",
        "export hauler" | "export skopeo-sync" | "export regsync" | "export zarf"
        | "export imgpkg-lock" | "export sources" => "export images-txt",
        verb if verb.starts_with("render ") => "render",
        verb => verb,
    }
}

/// The names of the commands in the help text `help`.
fn commands(help: &str) -> Vec<&str> {
    let rows = help.lines().filter_map(|line| line.strip_prefix("  "));
    let rows = rows.filter(|row| row.starts_with(|first: char| first.is_ascii_lowercase()));
    // the name and its description are at least two spaces apart
    let names = rows.filter_map(|row| row.split_once("  ").map(|(name, _)| name));
    names.filter(|name| !name.contains(' ')).collect()
}

/// The arguments in the help text `help` that name content.
fn arguments(help: &str) -> Vec<&str> {
    const VALUES: [&str; 7] = [
        "BUNDLE", "LOCK", "BASE", "VOLUME", "ARCHIVE", "MANIFEST", "OLD",
    ];
    const NAMES: [&str; 5] = ["--lock", "--from", "--with-store", "--writable", "--keep"];
    let own = help.split("\nGlobal options:").next().unwrap_or_default();
    let lines = own.lines().map(str::trim_start);
    let rows = lines.filter(|line| line.starts_with(['-', '[', '<']));
    let content = rows.filter_map(|row| {
        let row = match row.split_once(", --") {
            Some((short, _)) if short.len() == 2 => &row[4..],
            _ => row,
        };
        let name = row.split([' ', '\n']).next().unwrap_or_default();
        let has_value = VALUES.iter().any(|value| row.contains(value)) || name == "<NEW>";
        let is_argument = !name.starts_with("[possible") && !name.starts_with("[default");
        (is_argument && (has_value || NAMES.contains(&name))).then_some(name)
    });
    content.collect()
}

/// Before, a verb could read content without asking the rules, and no test noticed it.
#[test]
fn every_argument_that_names_content_is_listed() {
    let place = Place::new();
    let mut found = BTreeSet::new();
    let program = place.ok(&["help"]);
    for verb in commands(&program) {
        if ["help", "man", "completions", "schema"].contains(&verb) {
            continue;
        }
        let help = place.ok(&[verb, "--help"]);
        let mut leaves: Vec<String> = Vec::new();
        if let Some((_, list)) = help.split_once("\nCommands:\n") {
            let list = list.split("\n\n").next().unwrap();
            leaves.extend(commands(list).iter().map(|leaf| format!("{verb} {leaf}")));
        }
        leaves.push(verb.to_owned());
        for leaf in leaves {
            let words: Vec<&str> = leaf.split(' ').chain(["--help"]).collect();
            let help = place.ok(&words);
            let names = arguments(&help).into_iter();
            found.extend(names.map(|name| format!("{} {name}", listed_verb(&leaf))));
        }
    }
    let listed: BTreeSet<String> = WAYS.iter().map(|(way, _)| (*way).to_owned()).collect();
    let unlisted: Vec<&String> = found.difference(&listed).collect();
    assert!(unlisted.is_empty(), "not in WAYS: {unlisted:?}");
    let has_reason = |way: &Way| !matches!(way, Free(why) if why.len() < 10);
    assert!(WAYS.iter().all(|(_, way)| has_reason(way)));
    assert!(found.len() > 60, "the help was not read: {found:?}");
}

/// An upstream, and a registry and a git server of the site.
struct World {
    place: Place,
    upstream: Server,
    files: Server,
    target: Server,
    sigstore: Sigstore,
    git: Option<GitServer>,
}

impl World {
    fn new() -> World {
        let place = Place::new();
        let folder = place.path("registry");
        let target = landfall_serve(&place, &["--writable", folder.to_str().unwrap()]);
        World {
            upstream: own_registry(),
            files: file_server(&place.path("www")),
            target,
            sigstore: Sigstore::new(),
            git: GitServer::new(),
            place,
        }
    }

    /// Makes the manifest, lock, store and bundle `name`, with an image, a chart and a file, and
    /// publishes and pushes them: without a site, as before the site had rules. The items are
    /// signed by `signer`, whose key the manifest demands, if there is one: with cosign, if
    /// `cosign` is its program and the flag for the format of the signatures.
    fn add(&self, name: &str, signer: Option<(&ImageSigner, &str)>, cosign: Option<(&Path, &str)>) {
        let (place, address) = (&self.place, &self.upstream.address);
        let images = Images::new(place.path(format!("layout-{name}")));
        let repository = format!("{name}/app");
        let image = push_image(&images, address, &repository);
        let chart_repository = format!("{name}/chart");
        let chart = Chart::new("chart", "1.0.0", "", &[]).push(&images, address, &chart_repository);
        let tool = format!("the tool of {name}");
        place.write(&format!("www/{name}/tool"), &tool);
        let mut fields = String::new();
        let mut rules = String::new();
        if let Some((signer, key)) = signer {
            for (repository, subject) in [(&repository, &image), (&chart_repository, &chart)] {
                if let Some((program, format)) = cosign {
                    self.sign_with_cosign(program, format, (signer, key), (repository, subject));
                    continue;
                }
                let payload = simple_payload(subject);
                let layer =
                    self.sigstore
                        .simple_layer(&images, signer, &payload, Tampering::Missing);
                push_tagged(&images, address, repository, subject, &layer, ".sig");
            }
            let signature = signer.file_signature(tool.as_bytes());
            place.write(&format!("www/{name}/tool.sig"), signature);
            fields = ", signatures: [\"${url}.sig\"]".into();
            rules = verify(key);
        }
        let manifest = format!(
            "images: [{address}/{name}/app:v1]\ncharts: [\"oci://{address}/{name}/chart:1.0.0\"]\n\
             files: [{{url: \"{}/{name}/tool\"{fields}}}]\n{rules}",
            self.files.url()
        );
        self.lock_and_pack(name, &manifest);
    }

    /// Like [`World::add`], with a git repository only. Its commit is signed by `key`, a key of
    /// OpenSSH, if there is one.
    fn add_repository(&self, server: &GitServer, name: &str, key: Option<&str>) {
        let path = format!("{name}.git");
        server.create(&format!("copy/{path}"));
        let repository = server.create(&path);
        server.import(&repository, &history("main", 0, 2));
        let mut rules = String::new();
        if let Some(key) = key {
            let work = server.place.path(format!("work-{name}"));
            let [from, to] = [&repository, &work].map(|path| path.to_str().unwrap());
            server.git(Path::new("."), &["clone", "-q", from, to]);
            let key_option = format!("user.signingkey={}", self.place.path(key).display());
            let signing = ["-c", "gpg.format=ssh", "-c", &key_option];
            let commit = ["commit", "-q", "--allow-empty", "-S", "-m", "signed"];
            server.git(&work, &[&signing[..], &commit].concat());
            server.git(&work, &["push", "-q", "origin", "HEAD:refs/heads/main"]);
            rules = format!("verify: [{{match: \"git+*\", keys: [{key}.pub]}}]\n");
        }
        let url = server.url(&path);
        self.lock_and_pack(
            name,
            &format!("git: [{{url: \"{url}\", ref: main}}]\n{rules}"),
        );
    }

    /// Makes the lock, store and bundle `name` of a manifest, and publishes and pushes them.
    fn lock_and_pack(&self, name: &str, manifest: &str) {
        let place = &self.place;
        let (exit, report, _) = lock(place, name, manifest);
        assert_eq!(exit, 0, "{report}");
        let (lock, store) = (format!("{name}.lock"), format!("{name}.store"));
        place.ok(&["pull", &lock, "--store", &store]);
        place.ok(&[
            "pack",
            &lock,
            "--store",
            &store,
            "-o",
            &format!("{name}.bundle"),
        ]);
        place.ok(&["publish", &lock, "--store", &store]);
        let old = format!("{}/old-{name}", self.target.address);
        place.ok(&["push", &format!("{name}.bundle"), "--to", &old]);
    }

    /// Lets cosign sign `subject` with the key of `signer`.
    fn sign_with_cosign(
        &self,
        program: &Path,
        format: &str,
        (signer, key): (&ImageSigner, &str),
        (repository, subject): (&str, &Value),
    ) {
        let place = &self.place;
        let cosign = |args: &[&str]| {
            let mut command = place.clean(program);
            command.args(args).env("COSIGN_PASSWORD", "");
            run(command.current_dir(place.dir()));
        };
        let (pem, private) = (format!("{key}.pem"), format!("{key}.key"));
        if !place.path(&private).exists() {
            place.write(&pem, signer.private_pem());
            let prefix = ["--output-key-prefix", key];
            cosign(&[&["import-key-pair", "--key", &pem], &prefix[..]].concat());
        }
        let digest = subject["digest"].as_str().unwrap();
        let reference = format!("{}/{repository}@{digest}", self.upstream.address);
        let unlogged = ["--use-signing-config=false", "--tlog-upload=false"];
        let all = [
            &["sign", "--key", &private],
            &unlogged[..],
            &[format, "-y", &reference],
        ];
        cosign(&all.concat());
    }

    /// Runs a command line of the table, and returns its exit code and output. `serve` is stopped
    /// once it serves, which counts as 0.
    fn run(&self, line: &str, content: &str, site: &str, number: usize) -> (i32, String) {
        let word = |word: &str| match word {
            "B" => format!("{content}.bundle"),
            "V" => format!("{content}.volumes"),
            "L" => format!("{content}.lock"),
            "S" => format!("{content}.store"),
            "M" => format!("{content}.yaml"),
            "F" => site.to_owned(),
            "TO" => self.target.address.clone(),
            "TO/old" => format!("{}/old-{content}", self.target.address),
            "GIT" => self.git.as_ref().unwrap().url("copy"),
            "OUT" | "OUT2" => format!("out/{content}-{site}-{number}-{word}"),
            word => word.to_owned(),
        };
        let words: Vec<String> = line.split(' ').map(word).collect();
        let mut command = self.place.command();
        command.args(&words).args(["--progress", "none"]);
        if words[0] != "serve" {
            let done = command.output().unwrap();
            let text = [done.stdout, done.stderr].concat();
            let text = String::from_utf8_lossy(&text).into_owned();
            return (done.status.code().unwrap(), text);
        }
        let address = format!("127.0.0.1:{}", free_port());
        command.args(["--listen", &address]);
        let mut server = Guard::start(command);
        wait_for("the server to serve or end", || {
            !server.alive() || TcpStream::connect(&address).is_ok()
        });
        let text = server.log();
        if server.alive() {
            (0, text)
        } else {
            (server.wait().unwrap(), text)
        }
    }
}

/// Rules that demand a signature by `key` of every item.
fn verify(key: &str) -> String {
    format!("verify: [{{match: \"*\", keys: [{key}]}}, {{match: \"*://*\", keys: [{key}]}}]\n")
}

/// Before, `mirror --lock`, `publish`, `serve`, `export`, `pull` and `pack` delivered items that do
/// not meet the rules of the site.
#[test]
fn nothing_that_the_rules_refuse_is_delivered_by_any_verb() {
    if !need(&["gzip"]) {
        return;
    }
    let world = World::new();
    let place = &world.place;
    let [ours, theirs] = [ImageSigner::with_key(), ImageSigner::with_key()];
    place.write("ours.pub", ours.public_pem());
    place.write("theirs.pub", theirs.public_pem());
    std::fs::create_dir(place.path("out")).unwrap();
    let [signed, wrong] = [(&ours, "ours.pub"), (&theirs, "theirs.pub")].map(Some);
    world.add("bare", None, None);
    let mut contents = vec!["bare"];
    let program = go_install(COSIGN);
    match &program {
        Some(program) => {
            for (content, signer, is_bundle) in [
                ("signed-sig", signed, false),
                ("wrong-sig", wrong, false),
                ("signed-bundle", signed, true),
                ("wrong-bundle", wrong, true),
            ] {
                let format = format!("--new-bundle-format={is_bundle}");
                world.add(content, signer, Some((program, &format)));
                contents.push(content);
            }
        }
        // without cosign, the signatures are made in the same format
        None => {
            for (content, signer) in [("signed", signed), ("wrong", wrong)] {
                world.add(content, signer, None);
                contents.push(content);
            }
        }
    }
    for (site, key) in [("ours.yaml", "ours.pub"), ("rotated.yaml", "theirs.pub")] {
        let text = format!("apiVersion: landfall/v1\nkind: Site\n{}", verify(key));
        place.write(site, text);
    }
    // `export git` does not export these kinds
    let exports = ["export git", "push B --git-to"];
    let is_asked = |line: &str| exports.iter().all(|other| !line.starts_with(other));
    world.check(&contents, is_asked, |content| {
        let address = &world.target.address;
        let is_there = http::manifest(address, &format!("{content}/app"), "v1").status == 200;
        // the next verb must not find what this one delivered
        let _ = std::fs::remove_dir_all(place.path(format!("registry/repositories/{content}")));
        is_there
    });
}

/// Before, rules could not match git repositories, and `push --git-to` asked no rule.
#[test]
fn no_repository_that_the_rules_refuse_is_delivered_by_any_verb() {
    if !need(&["gzip", "ssh-keygen"]) {
        return;
    }
    let world = World::new();
    let Some(server) = &world.git else {
        return;
    };
    let place = &world.place;
    for key in ["ours", "theirs"] {
        run(place
            .clean("ssh-keygen")
            .args(["-q", "-N", "", "-C", "", "-t", "ed25519", "-f", key]));
    }
    for (site, key) in [("ours.yaml", "ours"), ("rotated.yaml", "theirs")] {
        let rule = format!("verify: [{{match: \"git+*\", keys: [{key}.pub]}}]\n");
        place.write(site, format!("apiVersion: landfall/v1\nkind: Site\n{rule}"));
    }
    std::fs::create_dir(place.path("out")).unwrap();
    world.add_repository(server, "bare", None);
    world.add_repository(server, "signed", Some("ours"));
    world.add_repository(server, "wrong", Some("theirs"));
    let exports = ["export images", "export files", "export charts"];
    let is_asked = |line: &str| exports.iter().all(|other| !line.starts_with(other));
    world.check(&["bare", "signed", "wrong"], is_asked, |content| {
        let artifacts = place.path("registry/repositories/git");
        let copy = server
            .place
            .path(format!("repos/copy/{content}.git/refs/heads/main"));
        let is_there = artifacts.exists() || copy.exists();
        let _ = std::fs::remove_dir_all(artifacts);
        let _ = std::fs::remove_file(copy);
        is_there
    });
}

impl World {
    /// Runs each command line of the table that `is_asked`, with each of `contents` and a site
    /// whose keys signed the contents called `signed`, and with a site whose keys were rotated.
    /// `is_delivered` says whether a content has arrived, and removes it: `push` and `mirror`
    /// deliver signed content.
    #[track_caller]
    fn check(
        &self,
        contents: &[&str],
        is_asked: impl Fn(&str) -> bool,
        is_delivered: impl Fn(&str) -> bool,
    ) {
        // a key that was rotated refuses what the old one signed
        let rotated = contents.iter().filter(|name| name.starts_with("signed"));
        let mut runs: Vec<(&str, &str)> = rotated.map(|name| (*name, "rotated.yaml")).collect();
        runs.extend(contents.iter().map(|name| (*name, "ours.yaml")));
        let mut wrong = Vec::new();
        let lines = WAYS.iter().filter_map(|(way, reached)| match reached {
            Delivers(exit, line) => Some((way, *exit, *line)),
            Carries(line) => Some((way, 4, *line)),
            Reads(_) | Free(_) => None,
        });
        let lines = lines.filter(|(_, _, line)| is_asked(line));
        for (number, (way, refused, line)) in lines.enumerate() {
            let delivers = line.starts_with("push ") || line.starts_with("mirror ");
            for (content, site) in &runs {
                let is_signed = content.starts_with("signed") && *site == "ours.yaml";
                let expected = if is_signed { 0 } else { refused };
                let (exit, text) = self.run(line, content, site, number);
                let is_refused = text.contains("signature") && !text.contains("not a signature");
                if exit != expected || (expected != 0 && !is_refused) {
                    wrong.push(format!("{way}: {content} with {site}: {exit}\n{text}"));
                }
                let is_there = is_delivered(content);
                if is_there != (delivers && is_signed) {
                    wrong.push(format!(
                        "{way}: {content} with {site}: delivered: {is_there}"
                    ));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

/// Before, `pack --since`, `egress` and `gc` accepted bundles that no signer of the site signed.
#[test]
fn every_verb_that_reads_a_bundle_demands_the_signers_of_the_site() {
    if !need(&["gzip", "ssh-keygen"]) {
        return;
    }
    let world = World::new();
    let place = &world.place;
    std::fs::create_dir(place.path("out")).unwrap();
    place.write(
        "pod.yaml",
        "kind: Pod\nspec: {containers: [{name: a, image: 'a.test/b:1'}]}\n",
    );
    for key in ["ours", "theirs"] {
        run(place
            .clean("ssh-keygen")
            .args(["-q", "-N", "", "-C", "", "-t", "ed25519", "-f", key]));
    }
    place.write(
        "allowed",
        format!("release@a.test {}", place.read("ours.pub")),
    );
    let site = "apiVersion: landfall/v1\nkind: Site\nsigners: allowed\n";
    place.write("site.yaml", site);
    for (name, key) in [
        ("bare", None),
        ("wrong", Some("theirs")),
        ("signed", Some("ours")),
    ] {
        world.add(name, None, None);
        let (lock, store) = (format!("{name}.lock"), format!("{name}.store"));
        let volumes = format!("{name}.volumes");
        let mut pack = vec!["pack", &lock, "--store", &store, "-o", &volumes];
        pack.extend(["--volume-size", "4GiB"]);
        if let Some(key) = key {
            pack.extend(["--sign", key]);
            place.ok(&["sign", &format!("{name}.bundle"), "--key", key]);
        }
        place.ok(&pack);
    }
    let mut wrong = Vec::new();
    let lines = WAYS.iter().filter_map(|(way, reached)| match reached {
        Carries(line) | Reads(line) => Some((way, *line)),
        Delivers(..) | Free(_) => None,
    });
    for (number, (way, line)) in lines.enumerate() {
        for (content, is_signed) in [("bare", false), ("wrong", false), ("signed", true)] {
            let (exit, text) = world.run(line, content, "site.yaml", number);
            let is_refused = exit == 4
                && ["is not signed", "cannot accept the signature"]
                    .iter()
                    .any(|why| text.contains(why));
            // other errors, such as drift, come after the signatures
            if is_refused == is_signed || exit == 2 {
                wrong.push(format!("{way}: {content}: {exit}\n{text}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Before, `serve --writable` with rules accepted pushes of everybody at a loopback address, and
/// only printed a note.
#[test]
fn a_writable_server_trusts_only_clients_that_it_was_told_to_trust() {
    let place = Place::new();
    let key = ImageSigner::with_key().public_pem();
    place.write("ours.pub", key);
    let head = "apiVersion: landfall/v1\nkind: Site\n";
    place.write("rules.yaml", format!("{head}{}", verify("ours.pub")));
    place.write("plain.yaml", head);
    let user = "puller:$2y$05$LATlS73W.R.eF7/IR5XdVuCOgj9GGLqQcaRji6lexBxUk5Ho27Wry\n";
    place.write("users", user);
    let start = |site: &str, more: &[&str]| {
        let address = format!("127.0.0.1:{}", free_port());
        let mut command = place.command();
        command.args(["serve", "--writable", "written", "--site", site]);
        command.args(["--listen", &address]).args(more);
        let mut server = Guard::start(command);
        wait_for("the server to serve or end", || {
            !server.alive() || TcpStream::connect(&address).is_ok()
        });
        let text = server.log();
        let exit = (!server.alive()).then(|| server.wait().unwrap());
        (exit, text)
    };
    let (exit, text) = start("rules.yaml", &[]);
    assert_eq!(exit, Some(2), "{text}");
    assert!(
        text.contains("verify of rules.yaml") && text.contains("--htpasswd"),
        "{text}"
    );
    for more in [&["--anonymous-push"][..], &["--htpasswd", "users"]] {
        let (exit, text) = start("rules.yaml", more);
        assert_eq!(exit, None, "{text}");
        assert!(text.contains("not applied to what clients push"), "{text}");
    }
    let (exit, text) = start("plain.yaml", &[]);
    assert_eq!(exit, None, "{text}");
}
