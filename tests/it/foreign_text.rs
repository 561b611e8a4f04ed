//! Text from servers, indexes and archives is escaped in the output: it cannot begin a line, give a
//! command to a CI system, or move the cursor.

use crate::support::images::{gzip, tarball};
use crate::support::reverse_proxy::{ProxyAction, RecordedRequest, ReverseProxy};
use crate::support::{Place, need};

/// Commands to GitHub on their own lines, a fake result of landfall, commands to Azure within a
/// line, and terminal control sequences.
const EVIL: &str = "x\n::stop-commands::pause\n  ::error::y\r\ndone: 3 images\n##[add-mask]z ##vso[task.x] \u{1b}[2J\u{9b}2J\u{202e}end";

/// Quotes `text` for YAML, which allows no control characters.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text)
        .to_string()
        .replace('\u{9b}', "\\u009b")
}

/// Runs `landfall lock` in each output mode except JSON, against a server that answers by `rule`.
/// Checks the printed text and the HTML report.
fn assert_tame(
    manifest: impl Fn(&str) -> String,
    rule: impl Fn(&RecordedRequest) -> ProxyAction + Send + Sync + 'static,
) {
    let server = ReverseProxy::new("", rule);
    let place = Place::new();
    let items = manifest(&server.address);
    place.write(
        "m.yaml",
        format!("apiVersion: landfall/v1\nkind: Manifest\n{items}\n"),
    );
    for mode in ["text", "github", "markdown"] {
        let mut command = place.command();
        command.args([
            "lock",
            "-f",
            "m.yaml",
            "--refresh",
            "--plain-http",
            &server.address,
            "--output",
            mode,
        ]);
        command.args([
            "--store",
            "store",
            "--progress",
            "none",
            "--report",
            "report.html",
        ]);
        let run = command.output().unwrap();
        let out = String::from_utf8_lossy(&run.stdout);
        let err = String::from_utf8_lossy(&run.stderr);
        let printed = format!("{out}{err}");
        assert_ne!(run.status.code(), Some(0), "{printed}");
        assert!(
            printed.contains("stop-commands"),
            "the text of the server is not shown: {printed}"
        );
        for text in [&*printed, &place.read("report.html")] {
            let hidden = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
            assert!(!text.contains(hidden), "{mode}: {text:?}");
        }
        for line in printed.lines().map(str::trim_start) {
            let is_own =
                line.starts_with("::error title=") && out.contains(line) && mode == "github";
            assert!(
                !line.starts_with("::") || is_own,
                "{mode}: {line:?} of {printed}"
            );
            assert!(
                !line.starts_with("done:") && !line.starts_with("end"),
                "{mode}: {line:?} of {printed}"
            );
            // Azure reads commands that begin with `##[` or `##vso[` anywhere in a line
            let azure = ["##[", "##vso["].iter().any(|form| line.contains(form));
            assert!(
                mode == "github" && line.starts_with("::") || !azure,
                "{mode}: {line:?}"
            );
        }
    }
    assert!(
        !place.path("landfall.lock").exists()
            || !place
                .read("landfall.lock")
                .lines()
                .any(|l| l.starts_with("::"))
    );
}

#[test]
fn errors_of_a_registry_are_escaped() {
    for (status, code) in [(500, "UNKNOWN"), (403, "DENIED"), (400, EVIL)] {
        assert_tame(
            |server| format!("images: [\"{server}/app:v1\"]"),
            move |request| match request.target.ends_with("/v2/") {
                true => ProxyAction::Answer(200, Vec::new(), "{}".into()),
                false => ProxyAction::refuse(status, code, EVIL),
            },
        );
    }
}

#[test]
fn the_index_of_a_chart_repository_is_escaped() {
    let url = quoted(&format!("ftp://{EVIL}"));
    let index =
        format!("apiVersion: v1\nentries:\n  app:\n  - version: 1.0.0\n    urls: [{url}]\n");
    assert_tame(
        |server| format!("charts: [{{repo: \"http://{server}\", name: app, version: 1.0.0}}]"),
        move |_| ProxyAction::Answer(200, Vec::new(), index.clone()),
    );
}

#[test]
fn the_metadata_of_a_chart_is_escaped() {
    if !need(&["gzip"]) {
        return;
    }
    let chart = |name: &str, dependency: &str| {
        let yaml = format!(
            "apiVersion: v2\nname: {}\nversion: 1.0.0\ndependencies: [{{name: dep, version: '1', repository: {}}}]\n",
            quoted(name),
            quoted(dependency)
        );
        gzip(&tarball(&[("app/Chart.yaml", yaml.as_bytes())]))
    };
    let other_name = chart(EVIL, "");
    let dependency = chart("app", &format!("ftp://{EVIL}"));
    let plain: &[u8] = b"apiVersion: v2\nname: app\nversion: 1.0.0\n";
    let member = gzip(&tarball(&[
        ("app/Chart.yaml", plain),
        ("app/x\n::stop-commands::y", b""),
    ]));
    for archive in [other_name, dependency, member] {
        assert_tame(
            |server| format!("charts: [{{repo: \"http://{server}\", name: app, version: 1.0.0}}]"),
            move |request| match request.target.ends_with("index.yaml") {
                true => {
                    let index = "apiVersion: v1\nentries:\n  app:\n  - version: 1.0.0\n    urls: [app.tgz]\n";
                    ProxyAction::Answer(200, Vec::new(), index.into())
                }
                false => ProxyAction::Bytes(archive.clone()),
            },
        );
    }
}

#[test]
fn the_title_of_a_page_in_place_of_a_file_is_escaped() {
    assert_tame(
        |server| format!("files: [{{url: \"http://{server}/tool\"}}]"),
        |_| {
            let page = format!(
                "<!doctype html><title>{}</title>",
                EVIL.replace('\n', "&#10;")
            );
            ProxyAction::Answer(200, vec![("Content-Type".into(), "text/html".into())], page)
        },
    );
}
