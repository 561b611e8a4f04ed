//! What documents of strangers cost: every verb that reads one, and every kind of server, gets the
//! worst short documents in an address space that suffices for small ones. The readers inside of
//! landfall are measured one by one in `src/fuzz/cost.rs`.

use crate::support::Place;
use crate::support::reverse_proxy::{ProxyAction, ReverseProxy};

/// The address space in MiB, of which the program itself takes 170. A reader that needs much more
/// than a document has, here 1,300 bytes for a byte, fails to allocate, and landfall then has no
/// exit code.
const ENOUGH: u64 = 256;

/// The size of a document in bytes.
const SIZE: usize = 64 << 10;

/// Documents of about [`SIZE`] bytes, each with the name of its shape. They are short texts that
/// many formats have in common; `src/fuzz/cost.rs` has those of single formats.
fn documents() -> Vec<(&'static str, String)> {
    let many = |text: &str| text.repeat(SIZE / text.len());
    vec![
        ("brackets", many("[")),
        ("objects", many("{\"a\":")),
        ("nested list", many("- ")),
        ("elements", many("<a>")),
        (
            "empty elements",
            format!("<metadata>{}</metadata>", many("<package/>")),
        ),
        (
            "list of numbers",
            format!(
                "{{\"manifests\": [{}0], \"tags\": [], \"entries\": 0}}",
                many("0,")
            ),
        ),
        (
            "list of objects",
            format!("{{\"manifests\": [{}{{}}]}}", many("{},")),
        ),
        (
            "list of texts",
            format!("{{\"tags\": [{}\"\"]}}", many("\"\",")),
        ),
        ("list of lines", format!("images:\n{}", many("- a\n"))),
        (
            "entries of a chart",
            format!(
                "apiVersion: v1\nentries:\n  app:\n{}",
                many("  - {name: app}\n")
            ),
        ),
        ("stanzas", many("Package: a\n\n")),
        ("one word", many("a")),
        ("empty lines", many("\n")),
        ("references", many("quay.io/a/b:c\n")),
        ("sections", many("[a]\n")),
    ]
}

/// Runs landfall in the small address space. Returns its exit code and its output. Fails if it is
/// ended by a signal, as by an allocation that is not possible.
#[track_caller]
fn exit_of(place: &Place, args: &[&str], what: &str) -> (i32, String) {
    place.limit_memory(ENOUGH);
    let output = place
        .command()
        .args(args)
        .args(["--progress", "none"])
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text)
        .chars()
        .take(4000)
        .collect::<String>();
    let Some(code) = output.status.code() else {
        panic!(
            "{what}: landfall {}: {}\n{text}",
            args.join(" "),
            output.status
        );
    };
    assert!(
        (0..=4).contains(&code),
        "{what}: landfall {}: {code}\n{text}",
        args.join(" ")
    );
    (code, text)
}

/// The names of the file: `doctor` recognizes configurations of programs by their names.
const FILES: [&str; 3] = ["doc", "config.toml", "registries.conf"];

/// The verbs that read a file that somebody else may have written, with the arguments for one of
/// [`FILES`].
const FILE_READERS: &[&[&str]] = &[
    &["lock", "-f", "doc"],
    &["ls", "doc"],
    &["verify", "doc"],
    &["diff", "doc", "doc"],
    &["audit", "doc", "--lock", "empty.lock"],
    &[
        "rewrite",
        "doc",
        "--to",
        "r.example:5000",
        "--lock",
        "empty.lock",
        "-o",
        "out",
    ],
    &["discover", "doc"],
    &["render", "containerd", "--site", "doc", "-o", "rendered"],
    &["log", "verify", "doc"],
    &["egress", "--diff", "doc", "--lock", "empty.lock"],
    &["sbom", "doc"],
    &["doctor", "config.toml"],
    &["doctor", "registries.conf"],
    &["import", "images-txt", "doc", "-o", "imported"],
    &["import", "kkp", "doc", "-o", "imported"],
    &["import", "kubeadm", "doc", "-o", "imported"],
    &["import", "tkg-bom", "doc", "-o", "imported"],
    &["import", "hauler", "doc", "-o", "imported"],
    &["import", "zarf", "doc", "-o", "imported"],
    &["import", "oc-mirror", "doc", "-o", "imported"],
    &["import", "oc-mirror-mapping", "doc", "-o", "imported"],
    &["import", "imgpkg-lock", "doc", "-o", "imported"],
    &["import", "dt-lock", "doc", "-o", "imported"],
    &["import", "skopeo-sync", "doc", "-o", "imported"],
    &["import", "regsync", "doc", "-o", "imported"],
    &["import", "ocync", "doc", "-o", "imported"],
    &["import", "dregsy", "doc", "-o", "imported"],
    &["import", "image-syncer", "doc", "-o", "imported"],
    &["import", "tkg", "doc", "-o", "imported"],
];

#[test]
fn every_format_of_import_is_among_the_readers() {
    let help = Place::new().ok(&["import", "--help"]);
    let lines = help.lines().map(str::trim);
    let lines = lines.take_while(|line| !line.starts_with("<FILES>"));
    let formats = lines.filter_map(|line| line.strip_prefix("- "));
    let formats = formats.filter_map(|line| Some(line.split_once(':')?.0));
    let mut count = 0;
    for format in formats {
        count += 1;
        let is_read = FILE_READERS
            .iter()
            .any(|args| args[..2] == ["import", format]);
        // `kubeone` is read like `images-txt`
        let is_alias = matches!(format, "auto" | "kubeone");
        assert!(is_read || is_alias, "{format} is not among the readers");
    }
    assert!(count > 10, "{help}");
}

/// Otherwise a command that ends before it reads the file passes the test below.
#[test]
fn every_reader_gets_as_far_as_the_file() {
    let place = Place::new();
    place.write("empty.lock", "version: 1\n");
    for args in FILE_READERS {
        let file = args.iter().find(|arg| FILES.contains(arg)).unwrap();
        let (code, text) = exit_of(&place, args, "no file");
        let mut words = text.split([' ', ':', '\n']);
        assert!(
            code == 2 && words.any(|word| word == *file),
            "{args:?}: {code}\n{text}"
        );
    }
}

#[test]
fn short_files_take_little_memory_in_every_verb_that_reads_them() {
    for (shape, document) in documents() {
        let place = Place::new();
        place.write("empty.lock", "version: 1\n");
        for name in FILES {
            place.write(name, &document);
        }
        // all formats of import are read by few parsers
        let is_list = shape.starts_with("list") || ["brackets", "references"].contains(&shape);
        let readers = FILE_READERS.iter();
        for args in readers.filter(|args| is_list || args[0] != "import") {
            exit_of(&place, args, shape);
        }
    }
}

/// Starts a server that answers each request with the content type and the body that `answer`
/// returns for its method and target. Returns `host:port`.
fn server(answer: impl Fn(&str, &str) -> (String, String) + Send + Sync + 'static) -> String {
    let server = ReverseProxy::new("", move |request| {
        let (content_type, body) = answer(&request.method, &request.target);
        ProxyAction::Answer(200, vec![("Content-Type".into(), content_type)], body)
    });
    server.address
}

/// A manifest with an item of each kind at the server.
fn manifest(address: &str) -> String {
    format!(
        "apiVersion: landfall/v1\nkind: Manifest\n\
         images:\n- {{ref: \"{address}/a:v1.0.0\", update: minor}}\n\
         files:\n- {{url: \"http://{address}/file\", checksum: \"http://{address}/file.sha256\"}}\n\
         charts:\n- \"oci://{address}/chart:1.0.0\"\n\
         - {{repo: \"http://{address}/charts\", name: app, version: 1.0.0}}\n\
         packages:\n\
         - apt: {{url: \"http://{address}/apt\", suite: s, components: [c], architectures: [amd64], \
         key: key.asc, install: [app]}}\n\
         - yum: {{url: \"http://{address}/yum\", key: key.asc, install: [app]}}\n\
         git:\n- {{url: \"http://{address}/r.git\", ref: main}}\n"
    )
}

#[test]
fn short_answers_take_little_memory_whatever_is_requested() {
    for (shape, document) in documents() {
        let address = server(move |_, target| {
            let is_image = target.contains("/manifests/");
            let content_type = if is_image {
                "application/vnd.oci.image.index.v1+json"
            } else {
                "application/json"
            };
            (content_type.to_owned(), document.clone())
        });
        let place = Place::new();
        place.write("m.yaml", manifest(&address));
        place.write("key.asc", include_str!("../../data/packages/key.asc"));
        for verb in ["lock", "update"] {
            let args = [
                verb,
                "-f",
                "m.yaml",
                "--store",
                "store",
                "--plain-http",
                &address,
            ];
            let (code, text) = exit_of(&place, &args, shape);
            assert_ne!(code, 2, "{text}");
        }
    }
}

/// Before, the request was repeated, and the error said that the answer is not HTTP.
#[test]
fn answers_with_too_many_headers_are_refused_at_once() {
    let headers = vec![("X-A".to_owned(), "b".to_owned()); 10_000];
    let server = ReverseProxy::new("", move |_| {
        ProxyAction::Answer(200, headers.clone(), String::new())
    });
    let address = &server.address;
    let place = Place::new();
    place.write(
        "m.yaml",
        format!("apiVersion: landfall/v1\nkind: Manifest\nimages: [\"{address}/a:v1\"]\n"),
    );
    let args = ["lock", "-f", "m.yaml", "--plain-http", address];
    let (code, text) = exit_of(&place, &args, "headers");
    assert_eq!(code, 1, "{text}");
    assert!(
        text.contains("the headers of the answer are too large, or too many"),
        "{text}"
    );
    assert_eq!(server.requests().len(), 1, "{text}");
}

/// A packet of git's protocol.
fn packet(text: &str) -> String {
    format!("{:04x}{text}", text.len() + 4)
}

/// The message of `lock` for a repository at the git server `address`, which must fail.
#[track_caller]
fn lock_repository(address: &str) -> String {
    let place = Place::new();
    let url = format!("http://{address}/r.git");
    let manifest =
        format!("apiVersion: landfall/v1\nkind: Manifest\ngit:\n- {{url: \"{url}\", ref: main}}\n");
    place.write("m.yaml", manifest);
    let lock = ["lock", "-f", "m.yaml", "--store", "store"];
    let args = [&lock[..], &["--plain-http", address]].concat();
    let (code, text) = exit_of(&place, &args, "refs");
    assert_eq!(code, 1, "{text}");
    text
}

/// The message of `lock` for a git server whose list of refs is `list`.
fn lock_refs(list: String) -> String {
    let version = [&packet("version 2\n"), &packet("ls-refs\n"), "0000"].concat();
    let address = server(move |method, _| {
        let (form, body) = match method {
            "GET" => ("advertisement", &version),
            _ => ("result", &list),
        };
        (
            format!("application/x-git-upload-pack-{form}"),
            body.clone(),
        )
    });
    lock_repository(&address)
}

#[test]
fn lists_of_refs_are_limited_in_number_and_size() {
    let id = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";
    let list = |count: usize, name: &str| -> String {
        let mut list: String = (0..count)
            .map(|n| packet(&format!("{id} refs/tags/{name}{n}\n")))
            .collect();
        list.push_str("0000");
        list
    };
    let text = lock_refs(list(200_001, "v"));
    assert!(
        text.contains("more refs than the limit of 200000"),
        "{text}"
    );
    let text = lock_refs(list(70_000, &"n".repeat(1000)));
    assert!(
        text.contains("the list of refs is larger than the limit of 67108864"),
        "{text}"
    );
    // the longest list that is accepted, without the ref of the manifest
    let text = lock_refs(list(60_000, &"n".repeat(1000)));
    assert!(text.contains("main"), "{text}");
}

#[test]
fn a_first_answer_that_lists_refs_is_read_only_as_far_as_needed() {
    let address = server(|_, _| {
        let list = packet("# service=git-upload-pack\n") + "0000" + &packet("x\n").repeat(20 << 20);
        (
            "application/x-git-upload-pack-advertisement".to_owned(),
            list,
        )
    });
    let text = lock_repository(&address);
    assert!(text.contains("does not offer version 2"), "{text}");
}
