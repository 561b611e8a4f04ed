//! One run of all verbs against the registries of one profile: the content is locked, pulled and
//! mirrored from a registry that behaves as the profile says; the same content of a registry that
//! follows the specification is pushed twice, looked up, pruned and served.

use super::content::{LATER_FILE, MANIFEST, content};
use super::{FarSide, Outcome, Profile};
use crate::support::faults::{Fault, FaultKind, Faults, RequestKind, Settings};
use crate::support::http::get;
use crate::support::process::{Guard, free_port, wait_for};
use crate::support::{Place, run};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::Command;

/// The names of the steps.
pub const STEPS: [&str; 9] = [
    "lock",
    "pull",
    "push",
    "push-again",
    "status",
    "push-more",
    "prune",
    "serve",
    "mirror",
];

/// The lock of the content that is pushed.
const PLAIN_LOCK: [&str; 2] = ["--lock", "plain.lock"];

/// The lock with one more file.
const MORE_LOCK: [&str; 2] = ["--lock", "more.lock"];

/// What the name of the referrer contains.
const REFERRER: &str = "referrer UP/team/tool:v1";

/// The repository that is pruned, which every registry takes.
const PRUNED: &str = "team/hollow";

/// The lock with only this repository: nothing is pruned after a push that lost an item.
const PRUNE_LOCK: [&str; 2] = ["--lock", "prune.lock"];

pub struct Visit {
    name: String,
    profile: Profile,
    place: Place,
    /// The source that behaves as the profile says.
    up: Faults,
    /// The source that follows the specification.
    plain: Faults,
    /// The destination of the pushes.
    down: FarSide,
    /// The destination of the mirror.
    other: FarSide,
    /// What differs from the expectations of the profile.
    wrong: Vec<String>,
}

impl Visit {
    /// A run against the profile with this name, with these destinations.
    pub fn new(name: &str, down: FarSide, other: FarSide) -> Visit {
        let profile = Profile::read(name);
        let up = Faults::new(content(profile.has_referrers_api()));
        let plain = Faults::new(content(true));
        up.set(Settings {
            rules: profile.rules(),
            ..Settings::default()
        });
        let place = Place::new();
        place.write("m.yaml", MANIFEST.replace("HOST", &up.address));
        let wanted = MANIFEST.replace("HOST", &plain.address);
        place.write("plain.yaml", &wanted);
        let more = format!("{wanted}- url: http://{}{LATER_FILE}\n", plain.address);
        place.write("more.yaml", more);
        let (head, _) = wanted.split_once("images:").unwrap();
        let pruned = format!("{head}images: [{}/{PRUNED}:v1]\n", plain.address);
        place.write("prune.yaml", pruned);
        let mut accounts = json!({});
        for registry in [&down, &other] {
            if let FarSide::Real(real) = registry
                && let Some(account) = real.account
            {
                use base64::Engine as _;
                let encoded = base64::engine::general_purpose::STANDARD.encode(account);
                accounts[&real.address] = json!({"auth": encoded});
            }
        }
        place.write(
            "home/.docker/config.json",
            json!({"auths": accounts}).to_string(),
        );
        Visit {
            name: name.into(),
            profile,
            place,
            up,
            plain,
            down,
            other,
            wrong: Vec::new(),
        }
    }

    /// Runs all steps.
    ///
    /// # Panics
    /// At the end, if a step had another outcome than the profile expects.
    pub fn run(mut self) {
        // a broken download, which is resumed if the registry has ranges
        self.up.set_faults(
            [RequestKind::Blob, RequestKind::Second]
                .map(|on| Fault::once(on, FaultKind::Cut(1000))),
        );
        self.step("lock", &["lock", "-f", "m.yaml"]);
        self.step("pull", &["pull"]);
        for (manifest, lock) in [
            ("plain.yaml", PLAIN_LOCK),
            ("more.yaml", MORE_LOCK),
            ("prune.yaml", PRUNE_LOCK),
        ] {
            run(self.command().args(["lock", "-f", manifest]).args(lock));
            run(self.command().arg("pull").args(lock));
        }
        let (down, other) = (
            self.down.address().to_owned(),
            self.other.address().to_owned(),
        );
        self.step(
            "push",
            &["push", "--to", &down, PLAIN_LOCK[0], PLAIN_LOCK[1]],
        );
        self.check_arrived("push");
        self.push_again(&down);
        self.step(
            "status",
            &["status", "--registry", &down, PLAIN_LOCK[0], PLAIN_LOCK[1]],
        );
        self.step(
            "push-more",
            &["push", "--to", &down, MORE_LOCK[0], MORE_LOCK[1]],
        );
        self.prune(&down);
        self.serve(&down);
        self.step("mirror", &["mirror", "-f", "m.yaml", "--to", &other]);
        self.check_arrived("mirror");
        let Visit {
            name,
            wrong,
            profile,
            ..
        } = self;
        assert!(
            wrong.is_empty(),
            "{name}, {}:\n{}",
            profile.about,
            wrong.join("\n\n")
        );
    }

    /// landfall, or the program that `LANDFALL_TEST_PROGRAM` names, such as an older one.
    fn command(&self) -> Command {
        let mut command = match std::env::var_os("LANDFALL_TEST_PROGRAM") {
            Some(program) => self.place.clean(program),
            None => self.place.command(),
        };
        command.args(["--store", "store", "--progress", "none"]);
        let own = [&*self.up.address, &self.plain.address];
        for address in own
            .into_iter()
            .chain([self.down.address(), self.other.address()])
        {
            command.args(["--plain-http", address]);
        }
        command
    }

    /// Runs a step, and notes if its outcome is not the expected one.
    fn step(&mut self, step: &str, args: &[&str]) -> Value {
        let run = self
            .command()
            .args(args)
            .args(["--output", "json"])
            .output()
            .unwrap();
        let out = self.named(&String::from_utf8_lossy(&run.stdout));
        let err = self.named(&String::from_utf8_lossy(&run.stderr));
        let report: Value = serde_json::from_str(&out).unwrap_or_default();
        let found = outcome(run.status.code().unwrap_or(-1), &report);
        println!(
            "ZOO\t{}\t{step}\t{}\t{:?}",
            self.name, found.exit, found.lost
        );
        let expected = self.profile.expected(step);
        if !fits(&found, &expected) {
            self.wrong.push(format!(
                "{step}: {found:#?}\nexpected {expected:#?}\n{out}\n{err}"
            ));
        }
        report
    }

    /// A text in which the addresses of the registries are replaced by names.
    fn named(&self, text: &str) -> String {
        text.replace(&self.up.address, "UP")
            .replace(&self.plain.address, "UP")
            .replace(self.down.address(), "DOWN")
            .replace(self.other.address(), "OTHER")
    }

    fn check(&mut self, is_right: bool, what: &str) {
        if !is_right {
            println!("ZOO\t{}\tWRONG\t{what}", self.name);
            self.wrong.push(what.to_owned());
        }
    }

    /// Notes each tag that is neither at the destination of the step with the source's manifest nor
    /// expected to be lost.
    fn check_arrived(&mut self, step: &str) {
        let there = if step == "push" {
            &self.down
        } else {
            &self.other
        };
        let expected = self.profile.expected(step);
        let mut wrong = Vec::new();
        let source = if step == "push" {
            &self.plain
        } else {
            &self.up
        };
        for ((repository, tag), digest) in source.content_copy().tags {
            let name = format!("{repository}:{tag}");
            let is_lost = expected.lost.keys().any(|lost| {
                match lost.strip_prefix("referrer UP/") {
                    // a signature is at a tag of its own
                    Some(image) => image.starts_with(&repository) && tag.ends_with(".sig"),
                    None => lost.ends_with(&name),
                }
            });
            let found = there.digest(&repository, &tag);
            // clients keep their own list of referrers under this tag
            if tag.starts_with("sha256-") && !tag.ends_with(".sig") {
                continue;
            }
            // an index of which some platforms were left out may be there in its trimmed form
            let is_there =
                found.as_ref() == Some(&digest) || name == "team/app:v1" && found.is_some();
            if is_there == is_lost {
                wrong.push(format!("{step}: {name} is {found:?} instead of {digest}"));
            }
        }
        let lists_referrer = there.lists_referrer("team/tool", &self.profile);
        let mut lost = expected.lost.keys();
        let is_locked = step == "push" || !self.profile.hides_referrers();
        let is_lost = !is_locked || lost.any(|lost| lost == REFERRER);
        if lists_referrer == is_lost {
            wrong.push(format!("{step}: the referrer is listed: {lists_referrer}"));
        }
        self.check(wrong.is_empty(), &wrong.join("\n"));
    }

    /// Pushes again: nothing that is there is uploaded, and no item counts as delivered.
    fn push_again(&mut self, down: &str) {
        self.down.forget_requests();
        let args = ["push", "--to", down, PLAIN_LOCK[0], PLAIN_LOCK[1]];
        let report = self.step("push-again", &args);
        let lost = self.profile.expected("push-again").lost;
        let repositories: Vec<String> =
            lost.keys().filter_map(|name| repository_of(name)).collect();
        let uploads = self.down.uploads(&repositories);
        self.check(
            uploads.is_empty(),
            &format!("push-again uploads {uploads:?}"),
        );
        let done = report["totals"]["done"].as_u64().unwrap_or(u64::MAX);
        self.check(done == 0, &format!("push-again delivers {done} items"));
    }

    /// Prunes a repository with more tags than a page of the list has.
    fn prune(&mut self, down: &str) {
        self.down.add_old_tags(PRUNED);
        let prune = [
            "push",
            "--to",
            down,
            PRUNE_LOCK[0],
            PRUNE_LOCK[1],
            "--prune",
            "--delete",
            "--repository",
            PRUNED,
        ];
        self.step("prune", &prune);
        let is_deleted = self.profile.expected("prune").exit == 0;
        if let (FarSide::Real(_), true) = (&self.down, is_deleted) {
            // some registries delete in the background
            wait_for("the deletion", || self.down.old_tags(PRUNED) == 0);
        }
        let left = self.down.old_tags(PRUNED);
        self.check(
            (left == 0) == is_deleted,
            &format!("{left} old tags are left"),
        );
    }

    /// Serves the file that was pushed last from the registry.
    fn serve(&mut self, down: &str) {
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let mut command = self.command();
        command.args(["serve", "--from", down, "--listen", &address.to_string()]);
        let mut guard = Guard::start(command);
        let mut is_up = false;
        while guard.alive() && !is_up {
            is_up = std::net::TcpStream::connect(address).is_ok();
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let file = self.plain.content_copy().files[LATER_FILE].clone();
        let is_served = is_up && {
            let path = format!("/files/{}{LATER_FILE}", self.plain.address);
            let found = get(&address.to_string(), &path);
            found.status == 200 && found.body == *file
        };
        let log = self.named(&guard.log());
        println!(
            "ZOO\t{}\tserve\t{}\t{log:?}",
            self.name,
            i32::from(!is_served)
        );
        let is_expected = self.profile.expected("serve").exit == 0;
        self.check(is_served == is_expected, &format!("serve: {log}"));
    }
}

/// The outcome of a command with this exit code and report.
fn outcome(exit: i32, report: &Value) -> Outcome {
    let mut lost = BTreeMap::new();
    for item in report["items"].as_array().into_iter().flatten() {
        let text = |key: &str| item[key].as_str().unwrap_or_default();
        if !["done", "present"].contains(&text("status")) {
            let name = format!("{} {}", text("kind"), text("name"));
            lost.insert(name, format!("{}: {}", text("status"), text("reason")));
        }
    }
    Outcome { exit, lost }
}

/// Whether an outcome is the expected one: each lost item is named and has the expected reason.
fn fits(found: &Outcome, expected: &Outcome) -> bool {
    let is_expected = |(name, reason): (&String, &String)| {
        let mut of_item = expected.lost.iter();
        of_item.any(|(part, why)| name.contains(part) && reason.contains(why))
    };
    found.exit == expected.exit
        && found.lost.len() == expected.lost.len()
        && found.lost.iter().all(is_expected)
}

/// The repository of an expected lost item, such as `team/app:v1` or `referrer UP/team/app:v1`, or
/// the folder of the repositories of files.
fn repository_of(name: &str) -> Option<String> {
    let name = name.strip_prefix("referrer UP/").unwrap_or(name);
    match name.split_once(':') {
        Some((repository, _)) => Some(repository.to_owned()),
        None => name.starts_with("files/").then(|| "files".to_owned()),
    }
}
