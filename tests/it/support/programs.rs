//! Programs that the distribution does not package.

use super::library::Digest;
use super::{skip, test_name, which};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// Without optimization and debug information, a program is built in two thirds of the time.
const QUICK: [&str; 2] = ["-gcflags=all=-N -l", "-ldflags=-s -w"];

/// The program of a Go module, `PATH@VERSION`, as [`go_build`] builds it. If it cannot be built,
/// the test counts as skipped and should return.
#[must_use]
pub fn go_install(module: &str) -> Option<PathBuf> {
    let built = go_build(module);
    if let Err(why) = &built {
        skip(&test_name(), why);
    }
    built.ok()
}

/// The program of a Go module, `PATH@VERSION`, built once into the user's cache folder.
///
/// # Errors
/// The reason why the program cannot be built, such as a missing Go or module.
pub fn go_build(module: &str) -> Result<PathBuf, String> {
    let (path, version) = module.split_once('@').unwrap();
    // `…/kustomize/v5` is the program kustomize
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_version = |part: &&str| part.strip_prefix('v').is_some_and(is_number);
    let name = path.rsplit('/').find(|part| !is_version(part)).unwrap();
    let folder = tools()?.join(format!("{name}@{version}"));
    go(&folder, name, |into| {
        let mut install = Command::new("nice");
        install
            .args(["go", "install"])
            .args(QUICK)
            .arg(module)
            .env("GOBIN", into)
            .current_dir("/");
        install
    })
}

/// A Go program that takes many minutes to build. A test builds it only if `LANDFALL_BUILD_TOOLS`
/// is set.
pub struct LargeGoProgram {
    /// The environment variable that can name an existing program; the program is then not built.
    pub variable: &'static str,
    /// The module, `PATH@VERSION`.
    pub module: &'static str,
    /// The path of the program below the module.
    pub path: &'static str,
    /// The version of Go in the module's go.mod.
    pub go: &'static str,
    /// The `replace` lines of the module's go.mod; `go install` refuses modules that have them.
    pub replace: &'static str,
    /// The value of `GOEXPERIMENT` that the program needs.
    pub experiment: &'static str,
}

impl LargeGoProgram {
    /// The path of the program: the one in the variable, or the one in the user's cache folder. If
    /// there is none, and it cannot be built, the test counts as skipped and should return.
    #[must_use]
    pub fn find(&self) -> Option<PathBuf> {
        if let Some(path) = std::env::var_os(self.variable) {
            return Some(path.into());
        }
        let found = self.kept();
        if let Err(why) = &found {
            skip(&test_name(), why);
        }
        found.ok()
    }

    fn kept(&self) -> Result<PathBuf, String> {
        let (module, version) = self.module.split_once('@').unwrap();
        let name = self.path.rsplit('/').next().unwrap();
        let folder = tools()?.join(format!("{name}@{version}"));
        let is_built = folder.join(name).is_file();
        if !is_built && std::env::var_os("LANDFALL_BUILD_TOOLS").is_none() {
            return Err(format!(
                "{name} {version} is not built: set LANDFALL_BUILD_TOOLS=1 to build it, or {}",
                self.variable
            ));
        }
        go(&folder, name, |into| {
            let text = format!(
                "module landfall.test/tool\n\ngo {}\n\nrequire {module} {version}\n\n{}\n",
                self.go, self.replace
            );
            std::fs::write(into.join("go.mod"), text).unwrap();
            let mut build = Command::new("nice");
            build
                .args(["-n", "19", "go", "build", "-mod=mod"])
                .args(QUICK)
                .args(["-o", name])
                .arg(format!("{module}/{}", self.path))
                .env("GOEXPERIMENT", self.experiment)
                .env("CGO_ENABLED", "0")
                .current_dir(into);
            build
        })
    }
}

/// The Go program in the folder `tests/data/NAME`, rebuilt when its sources change. If it cannot be
/// built, the test counts as skipped and should return.
#[must_use]
pub fn go_program(name: &str) -> Option<PathBuf> {
    let built = go_build_here(name);
    if let Err(why) = &built {
        skip(&test_name(), why);
    }
    built.ok()
}

fn go_build_here(name: &str) -> Result<PathBuf, String> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name);
    let all = ["main.go", "go.mod", "go.sum"]
        .map(|file| std::fs::read(sources.join(file)).unwrap())
        .concat();
    let folder = tools()?.join(format!("{name}@{}", &Digest::sha256(&all).hex()[..12]));
    go(&folder, name, |into| {
        let mut build = Command::new("nice");
        build
            .args(["go", "build"])
            .args(QUICK)
            .arg("-o")
            .arg(into.join(name))
            .arg(".")
            .env("CGO_ENABLED", "0")
            // the library of podman and skopeo then uses OpenPGP in Go instead of a C library
            .env("GOFLAGS", "-tags=containers_image_openpgp")
            .current_dir(sources);
        build
    })
}

/// The program `name` in `folder`. If it is missing, `command` builds it in a temporary folder.
/// The complete program is then moved to `folder`, because another test may look for it at the same
/// time.
fn go(
    folder: &Path,
    name: &str,
    command: impl FnOnce(&Path) -> Command,
) -> Result<PathBuf, String> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let program = folder.join(name);
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    if program.is_file() {
        return Ok(program);
    }
    which("go").ok_or_else(|| format!("this machine has no go to build {name}"))?;
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let build_folder =
        tempfile::tempdir_in(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let new = built(
        &mut command(build_folder.path()),
        &build_folder.path().join(name),
    )?;
    std::fs::rename(&new, &program).map_err(|error| format!("{}: {error}", program.display()))?;
    Ok(program)
}

/// Builds `program` with `command`, and returns its path.
fn built(command: &mut Command, program: &Path) -> Result<PathBuf, String> {
    match command.output() {
        Ok(output) if output.status.success() && program.is_file() => Ok(program.to_owned()),
        Ok(output) => Err(format!(
            "go cannot build {}: {}",
            program.display(),
            String::from_utf8_lossy(&output.stderr)
        )),
        Err(error) => Err(format!("go cannot build {}: {error}", program.display())),
    }
}

/// A file of an npm package, `NAME@VERSION`, which npm downloads once into the user's cache folder.
/// If that fails, the test counts as skipped and should return.
#[must_use]
pub fn npm_package(package: &str, file: &str) -> Option<PathBuf> {
    let fetched = npm_install(package, file);
    if let Err(why) = &fetched {
        skip(&test_name(), why);
    }
    fetched.ok()
}

fn npm_install(package: &str, file: &str) -> Result<PathBuf, String> {
    let (name, _) = package.rsplit_once('@').unwrap();
    let home =
        std::env::var_os("HOME").ok_or_else(|| format!("there is no HOME to keep {name} in"))?;
    let folder = Path::new(&home).join(".cache/landfall-tools").join(package);
    let file = folder.join("node_modules").join(name).join(file);
    if file.is_file() {
        return Ok(file);
    }
    which("npm").ok_or_else(|| format!("this machine has no npm to fetch {name}"))?;
    let mut npm = Command::new("npm");
    npm.args([
        "install",
        "--silent",
        "--no-audit",
        "--no-fund",
        "--no-save",
        "--ignore-scripts",
        "--prefix",
    ]);
    match npm.arg(&folder).arg(package).current_dir("/").output() {
        Ok(output) if output.status.success() && file.is_file() => Ok(file),
        Ok(output) => Err(format!(
            "npm cannot fetch {name}: {}",
            String::from_utf8_lossy(&output.stderr)
        )),
        Err(error) => Err(format!("npm cannot fetch {name}: {error}")),
    }
}

/// The program of a Python package, `NAME==VERSION`, installed once into a virtual environment in
/// the user's cache folder. If that fails, the test counts as skipped and should return.
#[must_use]
pub fn python_tool(package: &str) -> Option<PathBuf> {
    let installed = pip_install(package);
    if let Err(why) = &installed {
        skip(&test_name(), why);
    }
    installed.ok()
}

fn pip_install(package: &str) -> Result<PathBuf, String> {
    let (name, version) = package.split_once("==").unwrap();
    let folder = tools()?.join(format!("{name}@{version}"));
    let program = folder.join("bin").join(name);
    if program.is_file() {
        return Ok(program);
    }
    which("python3").ok_or_else(|| format!("this machine has no python3 to run {name}"))?;
    let folder = folder.to_str().unwrap();
    let pip = format!("{folder}/bin/pip");
    for (tool, args) in [
        ("python3", &["-m", "venv", folder][..]),
        (&pip, &["-q", "install", package]),
    ] {
        let output = Command::new(tool).args(args).current_dir("/").output();
        let output = output.map_err(|error| format!("{name} cannot be installed: {error}"))?;
        if !output.status.success() {
            return Err(format!(
                "{name} cannot be installed: {}",
                String::from_utf8_lossy(&output.stderr)
            ));
        }
    }
    Ok(program)
}

/// The folder for programs that tests build or download.
fn tools() -> Result<PathBuf, String> {
    let home = std::env::var_os("HOME").ok_or("there is no HOME to keep tools in")?;
    Ok(Path::new(&home).join(".cache/landfall-tools"))
}
