//! Tests of `modules.rs`: hidden packages, requirements between streams, and profiles.

use super::metadata::read_base;
use super::modules::{ActiveModules, Modules};
use super::pool::Pool;
use super::version::Architectures;

const MODULES: &str = "---
document: modulemd
version: 2
data:
  name: nginx
  stream: 1.20
  version: 9
  context: abc
  arch: x86_64
  artifacts:
    rpms: [nginx-1:1.20-1.x86_64]
...
---
document: modulemd
version: 2
data: {name: nginx, stream: '1.22', artifacts: {rpms: ['nginx-1:1.22-1.x86_64', 'nginx-mod-1:1.22-1.x86_64']}}
---
document: modulemd-defaults
version: 1
data: {module: nginx, stream: 1.20}
";

fn machine() -> Architectures {
    Architectures::of("x86_64")
}

#[test]
fn packages_that_dnf_hides_are_hidden() {
    let mut pool = Pool::default();
    let packages = [
        "nginx 1:1.20-1",
        "nginx 1:1.22-1",
        "nginx 1:1.24-1",
        "nginx-mod 1:1.22-1",
        "other 0:1-1",
    ];
    let list: String = packages
        .iter()
        .map(|package| format!("package {package} x86_64\n"))
        .collect();
    read_base(&list, &mut pool).unwrap();
    pool.offer_all();
    let mut modules = Modules::default();
    modules.read(MODULES, &machine()).unwrap();
    let active = modules.activate(&[]).unwrap();
    let of_streams = modules.hide(&active, &[], &mut pool);
    pool.index();
    let seen: Vec<&str> = pool.ids().map(|id| pool.evr(id)).collect();
    assert_eq!(seen, ["1:1.20-1", "1-1"]);
    let of_streams: Vec<(&str, &str)> = of_streams
        .iter()
        .map(|one| (one.nevra.as_str(), one.streams.as_str()))
        .collect();
    let hidden =
        ["nginx-1:1.22-1.x86_64", "nginx-mod-1:1.22-1.x86_64"].map(|name| (name, "nginx:1.22"));
    assert_eq!(of_streams, hidden);
    assert_eq!(pool.named("nginx").len(), 1);
}

#[test]
fn malformed_documents_are_errors() {
    for text in ["document: [", "---\ndocument: x\n---\na: {"] {
        assert!(Modules::default().read(text, &machine()).is_err(), "{text}");
    }
    assert!(Modules::default().read("---\n...\n", &machine()).is_ok());
}

#[test]
fn a_document_whose_data_is_not_a_mapping_hides_no_other() {
    let good = "---\ndocument: modulemd\ndata: {name: nginx, stream: '1'}\n";
    let mut expected = Modules::default();
    expected.read(good, &machine()).unwrap();
    for data in ["[]", "", "text", "{name: a, stream: b, artifacts: null}"] {
        let mut modules = Modules::default();
        let text = format!("---\ndocument: modulemd\ndata: {data}\n{good}");
        modules.read(&text, &machine()).unwrap();
        modules.streams.remove("a");
        assert_eq!(modules, expected, "{data}");
    }
    for odd in [
        "- a",
        "plain",
        "version: 2",
        "document: modulemd\ndata: {name: a, stream: [1]}",
        "document: modulemd\ndata: {name: a, stream: b, artifacts: {rpms: {a: b}}}",
    ] {
        let mut modules = Modules::default();
        modules
            .read(&format!("---\n{odd}\n{good}"), &machine())
            .unwrap();
        assert_eq!(modules, expected, "{odd}");
    }
}

#[test]
fn the_name_of_a_stream_is_its_text() {
    let stream = |stream: &str| {
        format!(
            "---\ndocument: modulemd\ndata: {{name: nginx, stream: {stream}, \
             artifacts: {{rpms: ['nginx-1:{stream}-1.x86_64']}}}}\n"
        )
    };
    let default = "---\ndocument: modulemd-defaults\ndata: {module: nginx, stream: '1.20'}\n";
    let mut modules = Modules::default();
    modules
        .read(&(stream("1.2") + &stream("1.20") + default), &machine())
        .unwrap();
    let streams = modules.streams["nginx"].keys().collect::<Vec<_>>();
    assert_eq!(streams, ["1.2", "1.20"]);
    assert_eq!(modules.default_stream("nginx"), Some("1.20"));
}

#[test]
fn the_streams_that_version_1_of_the_format_requires_are_text() {
    let text = "---
document: modulemd
version: 1
data:
  name: app
  stream: 1.10
  dependencies:
    buildrequires: {platform: f28}
    requires: {platform: f28, perl: 5.30}
---
document: modulemd
version: 2
data: {name: perl, stream: 5.30}
";
    let mut modules = Modules::default();
    modules.read(text, &machine()).unwrap();
    assert_eq!(
        active(&modules, &["app"]).unwrap(),
        ["app:1.10", "perl:5.30"]
    );
}

/// Modules in the notation `name:stream requires a:1|2, b profile p = x y`.
fn modules(lines: &str) -> Modules {
    let mut text = String::new();
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (head, profiles) = line.split_once(" profile ").unwrap_or((line, ""));
        let (name, requires) = head.split_once(" requires ").unwrap_or((head, ""));
        let (name, stream) = name.split_once(':').unwrap();
        let requires: Vec<String> = requires
            .split(", ")
            .filter(|one| !one.is_empty())
            .map(|one| {
                let (module, streams) = one.split_once(':').unwrap_or((one, ""));
                format!("{module}: [{}]", streams.replace('|', ", "))
            })
            .collect();
        let (profile, packages) = profiles.split_once(" = ").unwrap_or(("common", ""));
        text += &format!(
            "---\ndocument: modulemd\ndata: {{name: {name}, stream: '{stream}', \
             dependencies: [{{requires: {{platform: [el9], {}}}}}], \
             profiles: {{{profile}: {{rpms: [{}]}}}}, \
             artifacts: {{rpms: ['{name}-0:{stream}-1.noarch']}}}}\n",
            requires.join(", "),
            packages.replace(' ', ", ")
        );
    }
    let mut modules = Modules::default();
    modules.read(&text, &machine()).unwrap();
    modules
}

fn defaults(modules: &mut Modules, module: &str, stream: &str) {
    let text = format!(
        "document: modulemd-defaults\ndata: {{module: {module}, stream: '{stream}', \
         profiles: {{'{stream}': [common]}}}}\n"
    );
    modules.read(&text, &machine()).unwrap();
}

fn active(modules: &Modules, words: &[&str]) -> Result<Vec<String>, String> {
    let requests = words
        .iter()
        .map(|word| modules.request(word, &[]).map(Option::unwrap));
    let requests = requests.collect::<Result<Vec<_>, _>>()?;
    let ActiveModules(active) = modules.activate(&requests)?;
    let active = active.into_iter();
    Ok(active
        .map(|(name, (stream, _))| format!("{name}:{stream}"))
        .collect())
}

#[test]
fn streams_that_are_required_become_active() {
    let mut all = modules(
        "app:1 requires lib:1|2
         app:2 requires lib:2, tool
         lib:1
         lib:2
         tool:9 requires lib:1
         tool:10 requires lib:2
         odd:1 requires gone:1
         even:1 requires odd:1
         not:1 requires lib:-2",
    );
    assert_eq!(active(&all, &["app:1"]).unwrap(), ["app:1", "lib:2"]);
    assert_eq!(
        active(&all, &["app:2"]).unwrap(),
        ["app:2", "lib:2", "tool:10"]
    );
    assert_eq!(active(&all, &["tool:9"]).unwrap(), ["lib:1", "tool:9"]);
    assert_eq!(active(&all, &["not"]).unwrap(), ["lib:1", "not:1"]);
    defaults(&mut all, "lib", "1");
    defaults(&mut all, "odd", "1");
    assert_eq!(active(&all, &[]).unwrap(), ["lib:1"]);
    assert_eq!(active(&all, &["app:1"]).unwrap(), ["app:1", "lib:1"]);
    assert_eq!(
        active(&all, &["app:2", "lib"]).unwrap_err(),
        "app:2 requires the module lib:2, and lib:1 is requested"
    );
    for (words, why) in [
        (
            &["odd:1"][..],
            "odd:1 requires the module gone:1, and no source has that module",
        ),
        (
            &["even"],
            "the modules that even:1 require exclude each other",
        ),
        (
            &["tool:9", "lib:2"],
            "tool:9 requires the module lib:1, and lib:2 is requested",
        ),
        (&["lib:1", "lib:2"], "both 1 and 2 are requested"),
        (
            &["lib:3"],
            "no source has the module stream 'lib:3', but @lib:1, @lib:2",
        ),
        (
            &["app"],
            "'app' has no default stream; write one of @app:1, @app:2",
        ),
    ] {
        let found = active(&all, words).unwrap_err();
        assert!(found.contains(why), "{words:?}: {found}");
    }
    assert_eq!(all.request("none:1", &[]).unwrap(), None);
    // a stream that is enabled comes before the default stream
    let enabled = [all.stream("lib:2").unwrap()];
    let request = all.request("lib", &enabled).unwrap().unwrap();
    assert_eq!(all.activate(&[request]), all.activate(&enabled));
    assert_eq!(
        all.stream("none:1").unwrap_err(),
        "no source has the module 'none'"
    );
}

#[test]
fn profiles_are_those_of_the_request_or_the_defaults() {
    let mut all = modules("app:1 profile common = a b\n app:2 profile other = c");
    defaults(&mut all, "app", "1");
    let packages = |word: &str| {
        let request = all.request(word, &[])?.unwrap();
        let active = all.activate(std::slice::from_ref(&request))?;
        let (names, artifacts) = all.profile_packages(&request, &active)?;
        let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
        Ok::<_, String>((
            names,
            artifacts.into_iter().map(str::to_owned).collect::<Vec<_>>(),
        ))
    };
    let first = (
        vec!["a".to_owned(), "b".into()],
        vec!["app-0:1-1.noarch".to_owned()],
    );
    for word in ["app", "app:1", "app:1/common", "app/common", "app/"] {
        assert_eq!(packages(word).unwrap(), first, "{word}");
    }
    assert_eq!(packages("app:2/other").unwrap().0, ["c"]);
    for (word, why) in [
        (
            "app:2",
            "app:2 has no default profile; write one of @app:2/other",
        ),
        (
            "app/x",
            "app:1 has no profile 'x'; write one of @app:1/common",
        ),
    ] {
        assert_eq!(
            packages(word).unwrap_err(),
            format!("the module stream {why}")
        );
    }
}

#[test]
fn a_long_chain_of_modules_is_given_up() {
    let chain = |length: usize| {
        let lines = (0..length).map(|at| format!("m{at}:1 requires m{}:1\n", at + 1));
        modules(&(lines.collect::<String>() + &format!("m{length}:1")))
    };
    assert_eq!(active(&chain(200), &["m0"]).unwrap().len(), 201);
    assert!(active(&chain(2_000), &["m0"]).is_err());
    // each of these streams can be combined with each of the others, and all fail at the end
    let wide = (0..40).map(|at| {
        format!(
            "w{at}:1 requires w{}\nw{at}:2 requires w{}\n",
            at + 1,
            at + 1
        )
    });
    assert!(active(&modules(&wide.collect::<String>()), &["w0:1"]).is_err());
}
