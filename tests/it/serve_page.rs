//! The page of `landfall serve`: complete without scripts, bounded in size, and with escaped names.

use crate::support::browser::Browser;
use crate::support::http::{get, request};
use crate::support::images::sha256;
use crate::support::library::{Digest, Lock, LockedFile, media_type};
use crate::support::peers::Server;
use crate::support::programs::npm_package;
use crate::support::{Images, Place, landfall_serve, need, run, skip, test_name};
use std::collections::BTreeSet;

/// The size limit of a page in bytes.
const MAX_PAGE_BYTES: usize = 100_000;

/// Starts a server with files that have these URLs. The content of each file is its URL.
fn served(place: &Place, urls: &[String]) -> Server {
    let images = Images::new(place.path("store"));
    let mut lock = Lock {
        version: 1,
        name: Some("many".into()),
        ..Lock::default()
    };
    for url in urls {
        images.blob(media_type::OCTETS, url.as_bytes());
        lock.files.push(LockedFile::new(
            url,
            Digest::sha256(url.as_bytes()),
            url.len() as u64,
        ));
    }
    lock.sort();
    place.write("landfall.lock", lock.to_text());
    place.ok(&["pack", "-o", "bundle.tar.zst", "--store", "store"]);
    landfall_serve(place, &["bundle.tar.zst"])
}

/// The link targets in a page.
fn links(page: &str) -> Vec<String> {
    let links = page
        .split("href=\"")
        .skip(1)
        .map(|rest| &rest[..rest.find('"').unwrap()]);
    links
        .map(|link| link.replace("&amp;", "&").replace("&#39;", "'"))
        .collect()
}

#[test]
fn a_thousand_items_are_paged_and_searchable() {
    let place = Place::new();
    let name = |at: usize| {
        let folder = "a-folder-of-some-length/".repeat(4);
        format!("https://downloads.example/{folder}release-{at:04}/tool-linux-amd64.tar.gz")
    };
    let server = served(&place, &(0..1000).map(name).collect::<Vec<_>>());
    let mut seen = BTreeSet::new();
    let mut next = Some("/".to_owned());
    while let Some(target) = next {
        let page = get(&server.address, &target).text();
        assert!(
            page.len() < MAX_PAGE_BYTES,
            "{target}: {} bytes",
            page.len()
        );
        for name in page.split("<summary><code>").skip(1) {
            assert!(
                seen.insert(name[..name.find('<').unwrap()].to_owned()),
                "{name} is on several pages"
            );
        }
        next = page.find("rel=\"next\"").map(|at| {
            let before = &page[..at];
            let link = &before[before.rfind("href=\"").unwrap() + 6..];
            link[..link.find('"').unwrap()].replace("&amp;", "&")
        });
    }
    assert_eq!(seen.len(), 1000);
    let found = get(&server.address, "/?q=release-0777+TAR.gz&kind=").text();
    assert!(
        found.contains(&name(777)) && found.contains("1 item found") && !found.contains(&name(778))
    );
    assert!(
        get(&server.address, "/?q=release-0777&kind=image")
            .text()
            .contains("0 items found")
    );
    let digest = sha256(name(5).as_bytes());
    assert!(
        get(&server.address, &format!("/?q={digest}"))
            .text()
            .contains(&name(5))
    );
    assert!(get(&server.address, "/?from=99999").status == 200);
}

#[test]
fn hostile_names_are_escaped_and_scripts_are_restricted() {
    let place = Place::new();
    let hostile = [
        "https://dl.example/x'\"><script>alert(1)</script>?a=1&b=2".to_owned(),
        "https://dl.example/</code></details><img src=x onerror=alert(1)>".to_owned(),
        format!("https://dl.example/{}", "<b>".repeat(20_000)),
        "https://dl.example/\u{202e}gnp.exe".to_owned(),
    ];
    let server = served(&place, &hostile);
    let search = "/?q=%3Cscript%3E%22%27&kind=%22%3E%3Cscript%3E";
    for target in ["/", "/changes", "/nodes", search] {
        let answer = get(&server.address, target);
        let policy = answer.header("content-security-policy").unwrap();
        assert!(
            policy.starts_with("default-src 'none'") && !policy.contains("unsafe"),
            "{policy}"
        );
        let page = answer.text();
        assert!(
            page.len() < MAX_PAGE_BYTES,
            "{target}: {} bytes",
            page.len()
        );
        assert_eq!(
            page.matches("<script>").count(),
            1,
            "{target}: only the script of the page itself"
        );
        for bad in [
            "<img",
            "</script>alert",
            "<b>",
            "\u{202e}",
            "onerror=alert(1)>",
        ] {
            assert!(!page.contains(bad), "{target} has {bad}");
        }
        for link in links(&page) {
            assert!(
                link.starts_with('/') && get(&server.address, &link).status == 200,
                "{link}"
            );
        }
    }
    let host = request(
        "GET",
        &server.address,
        "/",
        &[("Host", "x\"><script>")],
        b"",
    );
    assert!(!host.text().contains("x\"><script>"));
}

#[test]
fn behind_a_tls_proxy_the_commands_have_its_scheme_and_name() {
    let place = Place::new();
    let server = served(&place, &["https://dl.k8s.io/v1/kubelet".to_owned()]);
    let headers = [("X-Forwarded-Proto", "https"), ("Host", "mirror.example")];
    let page = request("GET", &server.address, "/", &headers, b"").text();
    let url = "https://mirror.example/files/dl.k8s.io/v1/kubelet";
    assert!(page.contains(url), "{page}");
}

#[test]
fn a_text_browser_shows_the_commands_without_a_script() {
    if !need(&["w3m"]) {
        return;
    }
    let place = Place::new();
    let server = served(&place, &["https://dl.k8s.io/v1/kubelet".to_owned()]);
    let dump = |path: &str| {
        let url = format!("{}{path}", server.url());
        String::from_utf8(run(place
            .clean("w3m")
            .args(["-dump", "-cols", "200", &url])))
        .unwrap()
    };
    let text = dump("/?q=kubelet");
    let curl = format!(
        "curl --fail --location --output kubelet {}/files/dl.k8s.io/v1/kubelet",
        server.url()
    );
    for words in [
        "Contents",
        "1 item found",
        "https://dl.k8s.io/v1/kubelet",
        &curl,
        "sha256sum --check",
        "many",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(dump("/nodes").contains("ADDRESS dl.k8s.io"));
}

#[test]
fn a_browser_searches_and_copies_without_contacting_other_hosts() {
    if !need(&["chromium", "mkfifo"]) {
        return;
    }
    let Some(axe) = npm_package("axe-core@4.14.1", "axe.min.js") else {
        return;
    };
    let axe = std::fs::read_to_string(axe).unwrap() + "; true";
    let place = Place::new();
    let names = ["kubelet", "kubectl", "etcd", "crictl", "runc"];
    let server = served(
        &place,
        &names.map(|name| format!("https://dl.k8s.io/v1/{name}")),
    );
    let mut browser = match Browser::start(&place) {
        Ok(browser) => browser,
        Err(why) => return skip(&test_name(), &why),
    };
    let mut backgrounds = BTreeSet::new();
    for scheme in ["light", "dark"] {
        for (path, width) in [
            ("/", 400),
            ("/", 1280),
            ("/", 1920),
            ("/changes", 1280),
            ("/nodes", 400),
        ] {
            browser.set_view(width, scheme);
            browser.open(&format!("{}{path}", server.url()));
            browser.value(
                "document.querySelectorAll('details').forEach((one, at) => { one.open = at < 3; }); true",
            );
            browser.value(&axe);
            let serious = browser.value(
                "axe.run().then((found) => found.violations.filter((one) => ['serious', 'critical'].includes(one.impact))\
                 .map((one) => [one.id, one.nodes[0].html]))",
            );
            assert_eq!(serious, serde_json::json!([]), "{path}, {width}, {scheme}");
            let fits = browser.value("document.documentElement.scrollWidth <= innerWidth");
            assert_eq!(fits, true, "{path}, {width}, {scheme}");
            backgrounds.insert(
                browser
                    .value("getComputedStyle(document.body).backgroundColor")
                    .to_string(),
            );
        }
    }
    assert_eq!(backgrounds.len(), 2, "light and dark: {backgrounds:?}");

    browser.grant_clipboard(&server.url());
    browser.set_view(1280, "light");
    browser.open(&server.url());
    let names = "[...document.querySelectorAll('#results summary')].map((one) => one.textContent)";
    assert_eq!(browser.value(&format!("{names}.length")), 5);
    browser.press("/", 191, "/");
    browser.wait_for("document.activeElement.type === 'search'");
    browser.insert("kubelet");
    browser.wait_for(&format!("{names}.length === 1"));
    let found = browser.value(&format!("{names}[0]"));
    assert!(
        found
            .as_str()
            .unwrap()
            .contains("https://dl.k8s.io/v1/kubelet"),
        "{found}"
    );
    browser.value(
        "document.querySelector('details').open = true; document.querySelector('.cmd button').click(); true",
    );
    browser.wait_for("document.querySelector('.cmd button').textContent === 'Copied'");
    let copied = browser.value("navigator.clipboard.readText()");
    assert!(
        copied
            .as_str()
            .unwrap()
            .contains("/files/dl.k8s.io/v1/kubelet"),
        "{copied}"
    );
    assert_eq!(
        copied,
        browser.value("document.querySelector('.cmd').firstElementChild.textContent")
    );
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
    assert_eq!(browser.hosts, BTreeSet::from([server.address.clone()]));
}
