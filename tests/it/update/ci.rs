//! Runs the commands of the jobs in `docs/how-to/ci/` in order, from a clone to a pushed branch and
//! a bundle.

use super::upstream::Upstream;
use crate::support::faults::{Fault, FaultKind, RequestKind};
use crate::support::programs::python_tool;
use crate::support::{Place, need, run};
use serde_yaml::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const NEEDS: [&str; 2] = ["git", "bash"];

fn document(name: &str) -> (String, Value) {
    let text = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("docs/how-to/ci")
            .join(name),
    )
    .unwrap();
    let value = serde_yaml::from_str(&text).unwrap_or(Value::Null);
    (text, value)
}

/// A repository in `work`, its bare clone `origin.git`, and an upstream for refreshes.
struct Forge {
    up: Upstream,
}

impl Forge {
    fn new() -> Forge {
        let forge = Forge {
            up: Upstream::new(),
        };
        let place = &forge.up.place;
        for tool in ["gh", "landfall"] {
            let script = match tool {
                "gh" => "#!/bin/sh\necho \"$@\" >> \"$GH_LOG\"\n".to_owned(),
                _ => format!(
                    "#!/bin/sh\nexec {} \"$@\"\n",
                    env!("CARGO_BIN_EXE_landfall")
                ),
            };
            place.write(&format!("bin/{tool}"), script);
            run(place
                .clean("chmod")
                .arg("+x")
                .arg(place.path(format!("bin/{tool}"))));
        }
        forge.up.put("team/app", "1.0.0", 1);
        forge.up.put("team/other", "v1", 2);
        let mirror = format!("http://{}", forge.up.faults.address);
        place.write("work/site.yaml", format!("apiVersion: landfall/v1\nkind: Site\nupstreams: {{registry.test: {{mirror: \"{mirror}\"}}}}\n"));
        place.write(
            "work/manifests/apps.yaml",
            "apiVersion: landfall/v1\nkind: Manifest\nimages:\n- {ref: \"registry.test/team/app:1.0.0\", update: patch}  # ours\n- registry.test/team/other:v1\n",
        );
        place.write("work/ci/refresh.sh", document("refresh.sh").0);
        place.write(
            "work/.gitignore",
            ".store/\ndelta.bundle\nrefresh.json\nbody.md\n",
        );
        forge.sh("landfall lock -f manifests --store ../first", "work");
        forge.sh(
            "cp landfall.lock sent.lock; git init -q -b main; git add .; git commit -qm first; \
             git clone -q --bare . ../origin.git; git -C ../origin.git config receive.advertisePushOptions true",
            "work",
        );
        let hook = "#!/bin/sh\nenv | sed -n 's/^GIT_PUSH_OPTION_[0-9]*=//p' | sort > options\n";
        place.write("origin.git/hooks/post-receive", hook);
        run(place
            .clean("chmod")
            .arg("+x")
            .arg(place.path("origin.git/hooks/post-receive")));
        forge.up.put("team/app", "1.0.1", 3);
        forge
    }

    /// A command that starts `shell` in the environment of the job.
    fn command(&self, shell: &str, folder: impl AsRef<Path>) -> Command {
        let place = &self.up.place;
        let mut command = place.clean(shell);
        let path = format!(
            "{}:{}",
            place.path("bin").display(),
            std::env::var("PATH").unwrap_or_default()
        );
        command
            .env("PATH", path)
            .env("GH_LOG", place.path("gh.log"))
            .env("GIT_CONFIG_NOSYSTEM", "1");
        command
            .env("LANDFALL_SITE", "site.yaml")
            .current_dir(place.path(folder));
        command
    }

    fn sh(&self, script: &str, folder: &str) {
        let mut command = self.command("bash", folder);
        for who in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{who}_NAME"), "a")
                .env(format!("GIT_{who}_EMAIL"), "a@example.com");
        }
        run(command.args(["-ec", script]));
    }

    fn origin(&self) -> PathBuf {
        self.up.place.path("origin.git")
    }

    /// The content of a file on a branch of the origin.
    fn at(&self, branch: &str, file: &str) -> String {
        let shown = run(self
            .up
            .place
            .clean("git")
            .arg("-C")
            .arg(self.origin())
            .args(["show", &format!("{branch}:{file}")]));
        String::from_utf8(shown).unwrap()
    }

    fn has_branch(&self, branch: &str) -> bool {
        let mut git = self.up.place.clean("git");
        git.arg("-C")
            .arg(self.origin())
            .args(["rev-parse", "-q", "--verify", branch])
            .output()
            .unwrap()
            .status
            .success()
    }

    /// Merges the branch `refresh` into `main`, deletes it, and records in `sent.lock` that the
    /// bundle was delivered.
    fn deliver(&self) {
        self.sh(
            "git fetch -q ../origin.git refresh; git reset -q --hard FETCH_HEAD; cp landfall.lock sent.lock; git add .; \
             git commit -qm delivered; git push -q ../origin.git HEAD:main; git push -q ../origin.git :refresh",
            "work",
        );
    }

    /// Checks a job in four nights: with new content, without new content, with a failing item, and
    /// after the failure. `night` runs the job, and returns whether it succeeded and the path of
    /// the bundle.
    fn nights(&self, night: impl Fn(&Forge, &str) -> (bool, PathBuf)) {
        let (green, bundle) = night(self, "one");
        assert!(green && bundle.exists(), "the first night");
        let manifest = self.at("refresh", "manifests/apps.yaml");
        assert!(
            manifest.contains("app:1.0.1\", update: patch}  # ours\n"),
            "{manifest}"
        );
        assert!(self.at("refresh", "landfall.lock").contains("app:1.0.1"));
        assert!(
            self.at("main", "landfall.lock").contains("app:1.0.0"),
            "the job must not merge its own changes"
        );
        self.up.place.ok(&[
            "verify",
            "--site",
            "work/site.yaml",
            &bundle.display().to_string(),
            "--lock",
            &self.refreshed_lock(),
        ]);
        self.deliver();
        std::fs::remove_file(&bundle).unwrap();

        let (green, bundle) = night(self, "two");
        assert!(
            green && !bundle.exists() && !self.has_branch("refresh"),
            "a night without new content"
        );

        self.up.put("team/app", "1.0.2", 4);
        self.up.faults.set_faults([Fault::always(
            RequestKind::ManifestHead,
            FaultKind::Status(403),
        )
        .at("/team/other/")]);
        let (green, _) = night(self, "three");
        assert!(!green, "a partial run must fail");
        assert!(
            self.at("refresh", "manifests/apps.yaml")
                .contains("app:1.0.2"),
            "the changes can be reviewed"
        );
        self.up.faults.set_faults([]);
        assert!(night(self, "four").0);
    }

    /// Writes the lock of the branch `refresh` to a file, and returns its path.
    fn refreshed_lock(&self) -> String {
        let lock = self.at("refresh", "landfall.lock");
        self.up
            .place
            .write("refreshed.lock", lock)
            .display()
            .to_string()
    }
}

/// A clone for one night, with the store of earlier nights.
fn checkout(forge: &Forge, night: &str) -> PathBuf {
    let clone = forge.up.place.path(format!("clone-{night}"));
    run(forge
        .up
        .place
        .clean("git")
        .args(["clone", "-q"])
        .arg(forge.origin())
        .arg(&clone));
    let cache = forge.up.place.path("cache");
    if cache.exists() {
        run(forge
            .up
            .place
            .clean("cp")
            .arg("-r")
            .arg(cache)
            .arg(clone.join(".store")));
    }
    clone
}

/// Prints the output of a night, which is shown if the test fails.
fn print(night: &str, output: &Output) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    println!("{night}: {}{}", text(&output.stdout), text(&output.stderr));
}

/// Keeps the store for the next night.
fn keep_store(forge: &Forge, clone: &Path) {
    run(forge
        .up
        .place
        .clean("rm")
        .arg("-rf")
        .arg(forge.up.place.path("cache")));
    run(forge
        .up
        .place
        .clean("cp")
        .arg("-r")
        .arg(clone.join(".store"))
        .arg(forge.up.place.path("cache")));
}

#[test]
fn the_workflow_of_github_opens_a_pull_request_and_uploads_a_bundle() {
    if !need(&NEEDS) {
        return;
    }
    let (_, workflow) = document("github-actions.yaml");
    let job = &workflow["jobs"]["refresh"];
    let steps = job["steps"].as_sequence().unwrap();
    assert!(
        steps
            .iter()
            .all(|step| step.get("uses").is_some() != step.get("run").is_some())
    );
    let uploaded = steps.last().unwrap()["with"]["path"].as_str().unwrap();
    assert!(
        uploaded.lines().any(|line| line == "delta.bundle"),
        "{uploaded}"
    );
    let forge = Forge::new();
    forge.nights(|forge, night| {
        let clone = checkout(forge, night);
        let mut green = true;
        for step in steps.iter().filter(|step| step.get("run").is_some()) {
            let always = step.get("if").and_then(Value::as_str) == Some("${{ !cancelled() }}");
            if step["name"].as_str().unwrap().starts_with("Install") || !(green || always) {
                continue;
            }
            let mut shell = forge.command("bash", &clone);
            for (name, value) in job["env"].as_mapping().unwrap() {
                let value = value
                    .as_str()
                    .unwrap()
                    .replace("${{ github.workspace }}", &clone.display().to_string());
                if !value.contains("${{") {
                    shell.env(name.as_str().unwrap(), value);
                }
            }
            shell.env(
                "GITHUB_STEP_SUMMARY",
                forge.up.place.path(format!("summary-{night}.md")),
            );
            let output = shell
                .args([
                    "--noprofile",
                    "--norc",
                    "-eo",
                    "pipefail",
                    "-c",
                    step["run"].as_str().unwrap(),
                ])
                .output()
                .unwrap();
            print(night, &output);
            green &= output.status.success();
        }
        keep_store(forge, &clone);
        (green, clone.join("delta.bundle"))
    });
    let printed = forge.up.place.read("gh.log");
    assert!(
        printed.starts_with(
            "pr create --head refresh --title Refresh: newer versions --body-file body.md\n"
        ),
        "{printed}"
    );
    assert!(
        forge
            .up
            .place
            .read("summary-one.md")
            .contains("newer versions: 1")
    );
    assert!(
        forge
            .up
            .place
            .read("summary-three.md")
            .contains("team/other")
    );
}

#[test]
fn the_pipeline_of_gitlab_pushes_a_branch_and_keeps_a_bundle() {
    if !need(&NEEDS) {
        return;
    }
    let (_, pipeline) = document("gitlab-ci.yaml");
    let job = &pipeline["refresh"];
    let lines: Vec<&str> = job["script"]
        .as_sequence()
        .unwrap()
        .iter()
        .map(|line| line.as_str().unwrap())
        .collect();
    let script = format!("set -eo pipefail\n{}", lines.join("\n"));
    assert!(
        job["artifacts"]["paths"]
            .as_sequence()
            .unwrap()
            .contains(&"delta.bundle".into())
    );
    assert_eq!(job["artifacts"]["when"], Value::from("always"));
    Forge::new().nights(|forge, night| {
        let clone = checkout(forge, night);
        let mut shell = forge.command("bash", &clone);
        for (name, value) in job["variables"].as_mapping().unwrap() {
            let value = value
                .as_str()
                .unwrap()
                .replace("$CI_PROJECT_DIR", &clone.display().to_string());
            shell.env(name.as_str().unwrap(), value);
        }
        let output = shell
            .env("REFRESH_REMOTE", forge.origin())
            .args(["-c", &script])
            .output()
            .unwrap();
        print(night, &output);
        keep_store(forge, &clone);
        if night == "one" {
            assert_eq!(
                forge.up.place.read("origin.git/options"),
                "merge_request.create\nmerge_request.title=Refresh: newer versions\n"
            );
        }
        (output.status.success(), clone.join("delta.bundle"))
    });
}

#[test]
fn the_cron_job_of_kubernetes_pushes_a_branch_and_leaves_a_bundle() {
    if !need(&NEEDS) {
        return;
    }
    let (_, job) = document("cronjob.yaml");
    assert_eq!(
        (job["apiVersion"].as_str(), job["kind"].as_str()),
        (Some("batch/v1"), Some("CronJob"))
    );
    let pod = &job["spec"]["jobTemplate"]["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let script = container["args"][0].as_str().unwrap();
    assert_eq!(
        container["command"].as_sequence().unwrap(),
        &[Value::from("sh"), Value::from("-ec")]
    );
    Forge::new().nights(|forge, night| {
        let root = forge.up.place.path("root");
        std::fs::create_dir_all(root.join("tmp")).unwrap();
        let inside = |path: &str| root.join(path.trim_start_matches('/'));
        let mut shell = forge.command("sh", &root);
        let mut bundles = PathBuf::new();
        for variable in container["env"].as_sequence().unwrap() {
            let name = variable["name"].as_str().unwrap();
            match variable.get("value").and_then(Value::as_str) {
                Some(path) if path.starts_with('/') => drop(shell.env(name, inside(path))),
                Some(value) => drop(shell.env(name, value)),
                None if name == "GIT_REMOTE" => drop(shell.env(name, forge.origin())),
                None => {}
            }
            if name == "BUNDLES" {
                bundles = inside(variable["value"].as_str().unwrap());
            }
        }
        let output = shell.args(["-ec", script]).output().unwrap();
        print(night, &output);
        (output.status.success(), bundles.join("delta.bundle"))
    });
}

#[test]
fn the_script_in_the_unit_of_systemd_pushes_a_branch_and_leaves_a_bundle() {
    if !need(&NEEDS) {
        return;
    }
    let (unit, _) = document("landfall-refresh.service");
    let (timer, _) = document("landfall-refresh.timer");
    assert!(
        timer.contains("\nOnCalendar=") && timer.contains("\nPersistent=true\n"),
        "{timer}"
    );
    let values = |key: &str| -> Vec<String> {
        unit.lines()
            .filter_map(|line| line.strip_prefix(key)?.strip_prefix('='))
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(values("ExecStart"), ["/bin/sh ci/refresh.sh"]);
    let forge = Forge::new();
    let inside = |path: &str| {
        forge
            .up
            .place
            .path("root")
            .join(path.trim_start_matches('/'))
    };
    let clone = inside(&values("WorkingDirectory")[0]);
    std::fs::create_dir_all(clone.parent().unwrap()).unwrap();
    run(forge
        .up
        .place
        .clean("git")
        .args(["clone", "-q"])
        .arg(forge.origin())
        .arg(&clone));
    for (key, value) in [
        ("user.name", "landfall refresh"),
        ("user.email", "refresh@example.com"),
    ] {
        run(forge
            .up
            .place
            .clean("git")
            .arg("-C")
            .arg(&clone)
            .args(["config", key, value]));
    }
    forge.nights(|forge, night| {
        let mut shell = forge.command("/bin/sh", &clone);
        let mut bundles = PathBuf::new();
        for variable in values("Environment") {
            let (name, value) = variable.split_once('=').unwrap();
            match value.starts_with('/') {
                true => drop(shell.env(name, inside(value))),
                false => drop(shell.env(name, value)),
            }
            if name == "BUNDLES" {
                bundles = inside(value);
            }
        }
        let output = shell.arg("ci/refresh.sh").output().unwrap();
        print(night, &output);
        (output.status.success(), bundles.join("delta.bundle"))
    });
}

#[test]
fn workflow_and_pipeline_fit_their_published_schemas() {
    let Some(check) = python_tool("check-jsonschema==0.39.0") else {
        return;
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/how-to/ci");
    let place = Place::new();
    let fits = |schema: &str, file: &Path| {
        let mut check = place.clean(&check);
        check
            .args(["--builtin-schema", schema])
            .arg(file)
            .output()
            .unwrap()
    };
    for (schema, file, part) in [
        ("vendor.github-workflows", "github-actions.yaml", "runs-on:"),
        ("vendor.gitlab-ci", "gitlab-ci.yaml", "script:"),
    ] {
        let good = fits(schema, &folder.join(file));
        assert!(
            good.status.success(),
            "{file}: {}",
            String::from_utf8_lossy(&good.stdout)
        );
        // without an essential part, the schema rejects the document
        let bad = place.write(file, document(file).0.replacen(part, "something:", 1));
        assert!(
            !fits(schema, &bad).status.success(),
            "{file} without `{part}`"
        );
    }
}

#[test]
fn the_cron_job_has_only_published_fields() {
    let (_, job) = document("cronjob.yaml");
    crate::platforms::assert_published(&job, "docs/how-to/ci/cronjob.yaml");
}

#[test]
fn the_rendered_cron_job_keeps_when_versions_were_first_seen() {
    if !need(&NEEDS) {
        return;
    }
    let forge = Forge::new();
    let place = &forge.up.place;
    forge.sh(
        "sed -i 's/^images:/minAge: 7d\\n&/' manifests/apps.yaml; git commit -qam age; \
         git push -q ../origin.git HEAD:main",
        "work",
    );
    place.write(
        "cluster.yaml",
        "apiVersion: landfall/v1\nkind: Site\nregistry: {address: \"172.20.0.2:5000\"}\n",
    );
    let settings = ["--set", "image=landfall:1", "--set", "store=s3://b/p"];
    let render = [
        "render",
        "kubernetes",
        "--site",
        "cluster.yaml",
        "-o",
        "out",
    ];
    place.ok(&[&render[..], &settings[..]].concat());
    let job: Value = serde_yaml::from_str(&place.read("out/refresh.yaml")).unwrap();
    let pod = &job["spec"]["jobTemplate"]["spec"]["template"]["spec"];
    let script = pod["containers"][0]["command"][2].as_str().unwrap();
    let script = script.replace("/tmp/work", &place.path("clone").display().to_string());
    let night = |name: &str| {
        forge.sh("rm -rf ../clone", "work");
        let output = forge
            .command("sh", "work")
            .env("GIT_REMOTE", forge.origin())
            .env("BUNDLE", place.path("delta.bundle"))
            .env("LANDFALL_SITE", place.path("work/site.yaml"))
            .args(["-ec", &script])
            .output()
            .unwrap();
        print(name, &output);
        assert!(output.status.success(), "{name}");
    };
    night("one");
    let seen = forge.at("refresh", "landfall.lock.seen");
    assert!(seen.contains(" 1.0.1 "), "{seen}");
    // nobody merges the branch for more than a week
    forge.sh(
        "git clone -q -b refresh ../origin.git ../older; cd ../older; \
         sed -i 's/20[0-9-]*T[0-9:]*Z/2020-01-01T00:00:00Z/' landfall.lock.seen; \
         git commit -qam older; git push -q origin refresh",
        "work",
    );
    night("two");
    let manifest = forge.at("refresh", "manifests/apps.yaml");
    assert!(manifest.contains("app:1.0.1"), "{manifest}");
}
