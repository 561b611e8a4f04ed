//! Selections from generated packages, one test for each property of the solver. Other tests
//! compare with dnf itself.

use super::{SelectionRequest, UnsolvableRequest, YumSelection, choose};
use crate::yum::metadata::read_base;
use crate::yum::pool::Pool;
use crate::yum::requests::PackageRequest;
use crate::yum::version::Architectures;
use landfall_model::document::growth::assert_linear;

/// A pool of the packages in `sources` and `base`, both in the format of a list of installed
/// packages.
fn pool(sources: &str, base: &str) -> Pool {
    let mut pool = Pool::default();
    read_base(sources, &mut pool).unwrap();
    pool.offer_all();
    read_base(base, &mut pool).unwrap();
    pool.index();
    pool
}

/// The limit of steps, low enough for a test to reach it.
const STEPS: u64 = 2_000_000;

struct Answer {
    pool: Pool,
    outcome: Result<YumSelection, UnsolvableRequest>,
}

impl Answer {
    fn names(&self) -> Vec<String> {
        let choice = self
            .outcome
            .as_ref()
            .unwrap_or_else(|refusal| panic!("{:#?}", refusal.reasons));
        choice
            .packages
            .iter()
            .map(|id| format!("{}-{}", self.pool.name(*id), self.pool.evr(*id)))
            .collect()
    }

    fn reasons(&self) -> Vec<String> {
        self.outcome.as_ref().unwrap_err().reasons.clone()
    }
}

fn ask(sources: &str, base: &str, install: &[&str], weak: bool, assume: bool) -> Answer {
    // `a 1: requires b; conflicts c` is shorter than a line for each relation
    let long = |short: &str| {
        let lines = short.lines().map(str::trim).filter(|line| !line.is_empty());
        let package = |line: &str| {
            let (head, relations) = line.split_once(':').unwrap_or((line, ""));
            let (name, version) = head.split_once(' ').unwrap_or((head, "1"));
            let relations = relations
                .split(';')
                .map(str::trim)
                .filter(|one| !one.is_empty());
            let relations: Vec<&str> = relations.collect();
            let (version, arch) = version.split_once(' ').unwrap_or((version, "noarch"));
            format!(
                "package {name} 0:{version}-1 {arch}\n{}\n",
                relations.join("\n")
            )
        };
        lines.map(package).collect::<String>()
    };
    let pool = pool(&long(sources), &long(base));
    let install: Vec<PackageRequest> = install.iter().map(|word| (*word).into()).collect();
    let architectures = Architectures::of("x86_64");
    let request = SelectionRequest {
        pool: &pool,
        architectures: &architectures,
        install: &install,
        weak,
        assume,
        steps: STEPS,
    };
    let outcome = choose(request);
    Answer { pool, outcome }
}

fn chosen(sources: &str, install: &[&str]) -> Vec<String> {
    ask(sources, "", install, true, false).names()
}

#[test]
fn the_newest_suitable_version_is_selected_with_its_dependencies() {
    let sources =
        "a 1: requires b\n a 2: requires b >= 2; requires c\n b 1\n b 2: requires libd.so\n b 3\n c 1\n
        d 1: provides libd.so\n";
    assert_eq!(chosen(sources, &["a"]), ["a-2-1", "b-3-1", "c-1-1"]);
    assert_eq!(chosen(sources, &["a-1"]), ["a-1-1", "b-3-1"]);
    assert_eq!(
        chosen(sources, &["a", "b = 2"]),
        ["a-2-1", "b-2-1", "c-1-1", "d-1-1"]
    );
    assert_eq!(chosen(sources, &["libd.so"]), ["d-1-1"]);
    assert_eq!(chosen(sources, &["?"]).len(), 4);
}

#[test]
fn an_older_version_is_selected_if_the_newest_cannot_be_installed() {
    let sources = "a 2: requires gone\n a 1\n b 1: conflicts c\n c 1\n d 2: requires c\n d 1\n";
    assert_eq!(chosen(sources, &["a"]), ["a-1-1"]);
    assert_eq!(chosen(sources, &["b", "d"]), ["b-1-1", "d-1-1"]);
}

#[test]
fn operators_of_rich_dependencies_are_respected() {
    let sources = "a: requires (b if c)\n b\n c\n d: requires (b if gone else e)\n e\n f: requires (x = 1 with y)\n
        g 1: provides x = 1; provides y\n h: provides x = 1\n i: requires (b and c)\n j: requires (b unless c)\n
        k: requires (x without y)\n l: conflicts (b and c)\n";
    assert_eq!(chosen(sources, &["a"]), ["a-1-1"]);
    assert_eq!(chosen(sources, &["a", "c"]), ["a-1-1", "b-1-1", "c-1-1"]);
    assert_eq!(chosen(sources, &["d"]), ["d-1-1", "e-1-1"]);
    assert_eq!(chosen(sources, &["f"]), ["f-1-1", "g-1-1"]);
    assert_eq!(chosen(sources, &["i"]), ["b-1-1", "c-1-1", "i-1-1"]);
    assert_eq!(chosen(sources, &["j"]), ["b-1-1", "j-1-1"]);
    assert_eq!(chosen(sources, &["k"]), ["h-1-1", "k-1-1"]);
    assert_eq!(chosen(sources, &["l", "b"]), ["b-1-1", "l-1-1"]);
    assert!(
        ask(sources, "", &["l", "b", "c"], true, false)
            .outcome
            .is_err()
    );
    assert!(ask(sources, "", &["j", "c"], true, false).outcome.is_err());
}

#[test]
fn weak_dependencies_are_installed_if_possible_and_enabled() {
    let sources =
        "a: recommends b; recommends c\n b: requires gone\n c\n d: supplements a\n e: supplements (a and x)\n
        f: conflicts g; recommends g\n g\n";
    assert_eq!(chosen(sources, &["a"]), ["a-1-1", "c-1-1", "d-1-1"]);
    assert_eq!(ask(sources, "", &["a"], false, false).names(), ["a-1-1"]);
    assert_eq!(chosen(sources, &["f"]), ["f-1-1"]);
}

#[test]
fn the_policy_selects_one_of_several_providers() {
    let sources = "web: requires httpd\n apache: provides httpd = 2\n nginx: provides httpd = 3\n";
    assert_eq!(
        chosen(sources, &["web"]),
        ["nginx-1-1", "web-1-1"],
        "the one with the newer version"
    );
    let sources = "web: requires httpd\n zed: provides httpd\n nginx: provides httpd\n";
    assert_eq!(
        chosen(sources, &["web"]),
        ["nginx-1-1", "web-1-1"],
        "the first by name"
    );
    assert_eq!(
        chosen(sources, &["web", "zed"]),
        ["web-1-1", "zed-1-1"],
        "one that is requested"
    );
    let sources =
        "web: requires httpd; suggests zed\n zed: provides httpd\n nginx: provides httpd\n";
    assert_eq!(
        chosen(sources, &["web"]),
        ["web-1-1", "zed-1-1"],
        "one that is suggested"
    );
    let sources =
        "web: requires httpd; requires later\n anna: provides httpd\n zed: provides httpd\n
        later: requires more\n more: requires zed\n";
    assert_eq!(
        chosen(sources, &["web"]),
        ["later-1-1", "more-1-1", "web-1-1", "zed-1-1"],
        "one that is needed anyway"
    );
}

#[test]
fn obsoleted_packages_are_replaced() {
    let sources = "old 1\n new 1: obsoletes old < 2; provides old = 2\n user: requires old\n";
    assert_eq!(chosen(sources, &["old"]), ["new-1-1"]);
    assert_eq!(chosen(sources, &["user"]), ["new-1-1", "user-1-1"]);
}

#[test]
fn the_native_architecture_is_preferred() {
    let sources =
        "a 1 i686\n a 1 x86_64\n b 1: requires lib32\n c 1 i686: provides lib32\n c 1 x86_64\n";
    let answer = ask(sources, "", &["a"], true, false);
    assert_eq!(answer.names().len(), 1);
    let choice = answer.outcome.as_ref().unwrap();
    assert_eq!(answer.pool.arch(choice.packages[0]), "x86_64");
    assert_eq!(
        chosen(sources, &["b"]),
        ["b-1-1", "c-1-1", "c-1-1"],
        "both, of one version"
    );
    // a request for the 64-bit package does not allow another version of the 32-bit one
    let sources = "a 1 x86_64: requires lib32\n c 1 i686: provides lib32\n c 2 x86_64\n";
    let answer = ask(sources, "", &["a", "c.x86_64"], true, false);
    assert!(answer.outcome.is_err());
}

#[test]
fn installed_packages_are_not_selected_again() {
    let sources =
        "a: requires b; requires c\n b 2\n c 2\n d: requires b = 2\n e: conflicts b = 1\n";
    let base = "b 1: requires broken\n";
    assert_eq!(
        ask(sources, base, &["a"], true, false).names(),
        ["a-1-1", "c-2-1"]
    );
    assert_eq!(
        ask(sources, base, &["d"], true, false).names(),
        ["b-2-1", "d-1-1"],
        "an update if necessary"
    );
    assert_eq!(
        ask(sources, base, &["e"], true, false).names(),
        ["b-2-1", "e-1-1"]
    );
    assert_eq!(
        ask("e: conflicts b\n", base, &["e"], true, false)
            .reasons()
            .len(),
        3
    );
    assert_eq!(
        ask(sources, base, &["b"], true, false).names(),
        Vec::<String>::new(),
        "it is already installed"
    );
}

#[test]
fn replaced_packages_are_returned_with_their_replacement() {
    let sources = "a: requires b >= 2; requires new\n b 2\n new: obsoletes old < 2\n";
    let answer = ask(sources, "b 1\n old 1\n other 1\n", &["a"], true, false);
    let name = |id| format!("{}-{}", answer.pool.name(id), answer.pool.evr(id));
    let replaced = &answer.outcome.as_ref().unwrap().replaced;
    let pairs: Vec<_> = replaced
        .iter()
        .map(|(old, new)| (name(*old), new.map(name)))
        .collect();
    let pair = |old: &str, new: &str| (old.to_owned(), Some(new.to_owned()));
    assert_eq!(pairs, [pair("b-1-1", "b-2-1"), pair("old-1-1", "new-1-1")]);
}

#[test]
fn several_kernels_can_be_installed() {
    let core = |version: u32| format!("core {version}: provides installonlypkg(kernel)\n");
    let base = format!("{}{}", core(1), core(2));
    let answer = ask(
        &format!("a: requires core = 3\n{}", core(3)),
        &base,
        &["a"],
        true,
        false,
    );
    assert_eq!(answer.names(), ["a-1-1", "core-3-1"]);
    assert_eq!(answer.outcome.unwrap().replaced, []);
    let sources = format!("a: requires core = 1\n b: requires core = 2\n{base}");
    assert_eq!(
        chosen(&sources, &["a", "b"]),
        ["a-1-1", "b-1-1", "core-1-1", "core-2-1"]
    );
}

#[test]
fn dependencies_that_no_source_offers_are_expected_if_assume_is_set() {
    let sources = "a: requires libc.so.6; requires b; requires (x if y)\n b: requires /bin/sh\n c: requires b >= 5\n";
    let answer = ask(sources, "", &["a"], true, true);
    assert_eq!(answer.names(), ["a-1-1", "b-1-1"]);
    let choice = answer.outcome.as_ref().unwrap();
    assert_eq!(
        choice.expected.iter().collect::<Vec<_>>(),
        ["/bin/sh", "libc.so.6"]
    );
    assert_eq!(choice.unlisted.iter().collect::<Vec<_>>(), ["/bin/sh"]);
    let refused = ask(sources, "", &["c"], true, true).reasons();
    assert_eq!(
        refused[1],
        "c-1-1.noarch requires b >= 5; the sources have only b-1-1.noarch"
    );
}

#[test]
fn a_refusal_is_a_chain_of_reasons() {
    let sources =
        "a: requires b\n b: requires c\n c: conflicts d\n e: requires d\n d\n other 1\n other 2\n";
    assert_eq!(
        ask(sources, "", &["other", "a", "e"], true, false).reasons(),
        [
            "'a' is requested, which is a-1-1.noarch",
            "a-1-1.noarch requires b, which is b-1-1.noarch",
            "b-1-1.noarch requires c, which is c-1-1.noarch",
            "'e' is requested, which is e-1-1.noarch",
            "e-1-1.noarch requires d, which is d-1-1.noarch",
            "c-1-1.noarch conflicts with d, which is d-1-1.noarch",
        ]
    );
    assert_eq!(
        ask(sources, "", &["other = 1", "other = 2"], true, false).reasons()[2],
        "other-1-1.noarch and other-2-1.noarch cannot be installed together"
    );
    assert_eq!(
        ask(sources, "", &["otter"], true, false).reasons(),
        ["no source offers 'otter'; a similar name is 'other'"]
    );
    assert_eq!(
        ask("a: requires no\n", "", &["a"], true, false).reasons()[1],
        "a-1-1.noarch requires no, which no source offers"
    );
}

#[test]
fn rich_recommendations_are_followed() {
    let sources =
        "a: recommends (b and c)\n b\n c\n d: recommends (b and gone)\n e: recommends (b if c)\n
        f: recommends (b if c else g)\n g\n h: supplements (b if i)\n i\n";
    assert_eq!(
        chosen(sources, &["a"]),
        ["a-1-1", "b-1-1", "c-1-1", "h-1-1"]
    );
    assert_eq!(chosen(sources, &["d"]), ["d-1-1"]);
    assert_eq!(chosen(sources, &["e"]), ["e-1-1"]);
    assert_eq!(
        chosen(sources, &["e", "c"]),
        ["b-1-1", "c-1-1", "e-1-1", "h-1-1"]
    );
    // libsolv reads the recommendation of f as (b or not c) and (g or c), and selects c, which is
    // the first by name
    assert_eq!(
        chosen(sources, &["f"]),
        ["b-1-1", "c-1-1", "f-1-1", "h-1-1"]
    );
}

#[test]
fn installed_packages_are_downgraded_if_necessary() {
    let sources = "a: requires b < 2\n b 1\n b 3\n c: requires d\n d 1: conflicts b >= 2\n";
    for (requested, expected) in [
        ("a", ["a-1-1", "b-1-1"].as_slice()),
        ("c", &["b-1-1", "c-1-1", "d-1-1"]),
    ] {
        let answer = ask(sources, "b 2\n", &[requested], true, false);
        assert_eq!(answer.names(), expected);
        let replaced = &answer.outcome.as_ref().unwrap().replaced;
        let [(old, Some(new))] = replaced[..] else {
            panic!("{replaced:?}")
        };
        assert_eq!((answer.pool.evr(old), answer.pool.evr(new)), ("2-1", "1-1"));
    }
}

#[test]
fn conflicts_within_the_base_are_ignored() {
    let base = "b 1: conflicts c\n c 1: obsoletes b\n";
    assert_eq!(
        ask("a: requires b\n", base, &["a"], true, false).names(),
        ["a-1-1"]
    );
}

#[test]
fn packages_that_supplement_only_the_base_are_not_installed() {
    let sources = "a\n c: supplements b\n d: supplements (a and b)\n e: supplements (b or a)\n";
    assert_eq!(
        ask(sources, "b\n", &["a"], true, false).names(),
        ["a-1-1", "d-1-1", "e-1-1"]
    );
}

#[test]
fn weak_dependencies_of_the_base_are_not_installed() {
    let sources = "a: recommends c; recommends d; recommends e\n c: supplements cap\n d\n e 2\n b: provides cap\n";
    let base = "b: provides cap; recommends d; recommends e >= 5\n e 1\n";
    assert_eq!(ask(sources, base, &["a"], true, false).names(), ["a-1-1"]);
    assert_eq!(
        chosen(sources, &["a"]),
        ["a-1-1", "c-1-1", "d-1-1", "e-2-1"]
    );
}

#[test]
fn a_rich_conflict_is_avoided_by_installing_a_package() {
    let sources = "a: conflicts (gone if b)\n b: requires c\n c\n";
    assert_eq!(chosen(sources, &["a"]), ["a-1-1", "b-1-1", "c-1-1"]);
}

#[test]
fn another_version_of_an_installed_package_is_preferred_to_a_new_package() {
    let sources = "a: requires cap\n b 1: provides cap\n b 3: provides cap\n aa: provides cap\n";
    assert_eq!(
        ask(sources, "b 2\n", &["a"], true, false).names(),
        ["a-1-1", "b-3-1"]
    );
    assert_eq!(
        ask(sources, "", &["a"], true, false).names(),
        ["a-1-1", "aa-1-1"]
    );
    // unless the other version cannot be installed
    let sources = "a: requires cap\n b 3: provides cap; requires gone\n aa: provides cap\n";
    assert_eq!(
        ask(sources, "b 2\n", &["a"], true, false).names(),
        ["a-1-1", "aa-1-1"]
    );
}

#[test]
fn a_version_that_is_not_offered_is_reported_with_the_existing_ones() {
    let sources = "app 1\n app 2\n app-data 7\n b: provides cap = 3\n c: requires cap >= 5\n";
    let reasons = |word: &str| ask(sources, "", &[word], true, false).reasons();
    for (word, offered) in [
        ("app-3", "app-2-1.noarch, app-1-1.noarch"),
        ("app-2-9.noarch", "app-2-1.noarch, app-1-1.noarch"),
        ("app.x86_64", "app-2-1.noarch, app-1-1.noarch"),
        ("app >= 5", "app-2-1.noarch, app-1-1.noarch"),
        ("app-data-9", "app-data-7-1.noarch"),
        ("cap >= 5", "cap = 3 of b-1-1.noarch"),
    ] {
        assert_eq!(
            reasons(word),
            [format!(
                "no source offers '{word}'; the sources have only {offered}"
            )]
        );
    }
    assert_eq!(
        reasons("app-dada"),
        ["no source offers 'app-dada'; a similar name is 'app-data'"]
    );
    let needed = "c-1-1.noarch requires cap >= 5; the sources have only cap = 3 of b-1-1.noarch";
    assert_eq!(reasons("c")[1], needed);
}

#[test]
fn a_refusal_names_all_alternatives_and_all_providers() {
    let sources = "a: requires (b or c)\n b: requires gone\n c: conflicts d\n d\n e: requires cap\n
        f: provides cap; requires gone\n g: provides cap; conflicts d\n";
    assert_eq!(
        ask(sources, "", &["a", "d"], true, false).reasons(),
        [
            "'a' is requested, which is a-1-1.noarch",
            "a-1-1.noarch requires (b or c), which is b-1-1.noarch, c-1-1.noarch",
            "b-1-1.noarch requires gone, which no source offers",
            "'d' is requested, which is d-1-1.noarch",
            "c-1-1.noarch conflicts with d, which is d-1-1.noarch",
        ]
    );
    let reasons = ask(sources, "", &["e", "d"], true, false).reasons();
    assert_eq!(
        reasons[1],
        "e-1-1.noarch requires cap, which is provided by f-1-1.noarch, g-1-1.noarch"
    );
    assert_eq!(reasons.len(), 5, "{reasons:#?}");
    let reasons = ask(sources, "", &["cap", "d"], true, false).reasons();
    assert_eq!(
        reasons[0],
        "'cap' is requested, which is provided by f-1-1.noarch, g-1-1.noarch"
    );
}

/// The pigeonhole problem: each pigeon needs a hole of its own, and there is one hole too few. A
/// proof takes exponentially many steps.
fn pigeons(count: usize) -> String {
    let holes = |pigeon: usize| (1..count).map(move |hole| format!("p{pigeon}h{hole}"));
    let mut text = String::new();
    for pigeon in 0..count {
        text += &format!("p{pigeon}: requires in{pigeon}\n");
        for (hole, name) in (1..count).zip(holes(pigeon)) {
            let others = (0..count).filter(|other| *other != pigeon);
            let others = others
                .map(|other| format!("; conflicts p{other}h{hole}"))
                .collect::<String>();
            text += &format!("{name}: provides in{pigeon}{others}\n");
        }
    }
    text
}

#[test]
fn a_selection_that_takes_too_long_is_stopped() {
    let ask_for = |count: usize| {
        let names: Vec<String> = (0..count).map(|pigeon| format!("p{pigeon}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        ask(&pigeons(count), "", &names, true, false).reasons()
    };
    // with 4 pigeons, the contradiction is proved: the chain names every pigeon
    let reasons = ask_for(4).join("\n");
    assert!(
        (0..4).all(|pigeon| reasons.contains(&format!("'p{pigeon}' is requested"))),
        "{reasons}"
    );
    let reasons = ask_for(12);
    assert!(
        reasons[0].starts_with("the package selection was stopped after 2000000 steps"),
        "{reasons:?}"
    );
}

#[test]
fn many_versions_of_one_package_reach_the_limit_instead_of_filling_the_memory() {
    // each version excludes every other one
    let versions = |count: usize| {
        let versions = (0..count).map(|version| format!("a {version}\n"));
        ask(&versions.collect::<String>(), "", &["a"], true, false)
    };
    assert_eq!(versions(100).names(), ["a-99-1"]);
    let reasons = versions(1_000).reasons();
    assert!(
        reasons[0].starts_with("the package selection was stopped after 2000000 steps"),
        "{reasons:?}"
    );
}

#[test]
fn many_packages_that_obsolete_each_other_reach_the_limit() {
    let all_obsolete = |count: usize| {
        let package = |number: usize| {
            let others = (0..count).filter(|other| *other != number);
            let others = others.map(|other| format!("; obsoletes a{other}"));
            format!("a{number}: provides cap{}\n", others.collect::<String>())
        };
        let sources: String = (0..count).map(package).collect();
        ask(&sources, "", &["cap"], true, false)
    };
    assert_eq!(all_obsolete(20).names().len(), 1);
    // the rules take 1.5 million steps, and the comparison of the candidates takes the rest
    let reasons = all_obsolete(100).reasons();
    assert!(
        reasons[0].starts_with("the package selection was stopped after 2000000 steps"),
        "{reasons:?}"
    );
}

#[test]
fn a_rich_dependency_with_too_many_packages_cannot_be_met() {
    let repeated = |count: usize| {
        let mut sources = format!("a: requires ({})\n", vec!["x"; count].join(" and "));
        for number in 0..300 {
            sources += &format!("p{number}: provides x\n");
        }
        ask(&sources, "", &["a"], true, false)
    };
    assert_eq!(repeated(10).names().len(), 2);
    // 1.2 million packages in all
    let reasons = repeated(4_000).reasons();
    assert!(
        reasons[1].ends_with("x), which cannot be met"),
        "{reasons:?}"
    );
}

#[test]
fn a_long_chain_of_reasons_takes_linear_time() {
    // the packages are in the reverse order of the sentences
    let chain = |count: usize| {
        let lines = (0..count).rev();
        let lines = lines.map(|number| format!("c{number}: requires c{}\n", number + 1));
        ask(&lines.collect::<String>(), "", &["c0"], true, false).reasons()
    };
    for count in [3, 8_000] {
        let reasons = chain(count);
        assert_eq!(reasons.len(), count + 1);
        assert!(
            reasons[0].starts_with("'c0' is requested"),
            "{}",
            reasons[0]
        );
        let expected = format!(
            "c{}-1-1.noarch requires c{count}, which no source offers",
            count - 1
        );
        assert_eq!(reasons[count], expected);
    }
}

#[test]
fn many_recommendations_before_many_choices_reach_the_limit() {
    let choices = |count: usize| {
        let recommended: String = (0..20).map(|r| format!("; recommends r{r}")).collect();
        let package = |number: usize| {
            let next = number + 1;
            format!(
                "c{number}: requires v{number}; requires c{next}{recommended}\n\
                 p{number}: provides v{number}\n\
                 q{number}: provides v{number}\n"
            )
        };
        let sources: String = (0..count).map(package).collect();
        ask(&format!("{sources}c{count}\n"), "", &["c0"], false, false)
    };
    assert_eq!(choices(10).names().len(), 21);
    // each choice considers all recommendations of the selected packages
    let reasons = choices(400).reasons();
    assert!(
        reasons[0].starts_with("the package selection was stopped after 2000000 steps"),
        "{reasons:?}"
    );
}

#[test]
fn recommendations_of_a_capability_with_many_providers_take_linear_time() {
    assert_linear(1_500, |count| {
        let mut sources = "a".to_owned();
        let mut provides = String::new();
        for number in 0..4 {
            let start = if number == 0 { ':' } else { ';' };
            sources += &format!("{start} recommends x{number}");
            provides += &format!("{start} provides x{number}");
        }
        for number in 0..count {
            sources += &format!("\np{number}{provides}");
        }
        assert_eq!(ask(&sources, "", &["a"], true, false).names().len(), 2);
    });
}
