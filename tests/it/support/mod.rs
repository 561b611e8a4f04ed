//! Shared by the tests: the built command in a clean environment, real peers on loopback, and
//! generated images.
//!
//! A test that cannot run on a machine calls [`need`] or [`skip`] and returns. It counts as skipped
//! in the last line of `scripts/test`, never as passed.

pub mod apt;
pub mod browser;
pub mod certificate_log;
pub mod charts;
pub mod dice;
pub mod faults;
pub mod front;
pub mod gate;
pub mod git;
pub mod gitea;
pub mod harbor;
pub mod helm;
pub mod http;
pub mod images;
pub mod interceptor;
pub mod library;
pub mod netns;
pub mod object_store;
pub mod package_sets;
pub mod package_stand_in;
pub mod peers;
pub mod pki;
pub mod process;
pub mod programs;
pub mod providers;
pub mod pulp;
pub mod reverse_proxy;
pub mod rpm_repository;
pub mod signed;
pub mod signed_files;
pub mod sigstore;
pub mod squid;
pub mod tiled_log;
pub mod timestamps;
pub mod tokens;
pub mod tuf;
pub mod unchecked;
pub mod world;
pub mod yum;
pub mod zoo;

pub use images::Images;
pub use peers::{docker_registry, landfall_serve, skopeo};
pub use process::{Guard, free_listener, free_port, wait_for};
pub use world::World;

use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The folder for files of tests: `LANDFALL_TEST_DIR`, or one below the target folder.
pub fn scratch() -> PathBuf {
    let named = std::env::var_os("LANDFALL_TEST_DIR").map(PathBuf::from);
    let folder = named.unwrap_or_else(|| env!("CARGO_TARGET_TMPDIR").into());
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A temporary folder in which landfall runs, with its own home. Deleted when dropped.
pub struct Place {
    dir: tempfile::TempDir,
    environment: std::sync::Mutex<Vec<(String, String)>>,
    /// The limit of landfall's address space in MiB; 0 for none.
    memory: std::sync::atomic::AtomicU64,
}

impl Place {
    pub fn new() -> Place {
        let dir = tempfile::Builder::new()
            .prefix("place-")
            .tempdir_in(scratch())
            .unwrap();
        for folder in ["home", "home/run", "tmp"] {
            std::fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        Place {
            dir,
            environment: std::sync::Mutex::default(),
            memory: std::sync::atomic::AtomicU64::new(0),
        }
    }

    /// Limits the address space of landfall in this folder; landfall aborts if it needs more.
    pub fn limit_memory(&self, mebibytes: u64) {
        // each arena of the allocator reserves 64 MiB, even if it is empty
        self.set("MALLOC_ARENA_MAX", "2");
        // each thread reserves its stack, and by default there is one for each processor
        self.set("TOKIO_WORKER_THREADS", "2");
        self.memory
            .store(mebibytes, std::sync::atomic::Ordering::Relaxed);
    }

    /// Sets a variable for every program that runs in this folder from now on.
    pub fn set(&self, name: &str, value: &str) {
        self.environment
            .lock()
            .unwrap()
            .push((name.to_owned(), value.to_owned()));
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// A path in the folder.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a file in the folder, and returns its path.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub fn read_bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The built landfall in this folder. It gets only `PATH` from the caller's environment.
    pub fn command(&self) -> Command {
        let landfall = env!("CARGO_BIN_EXE_landfall");
        match self.memory.load(std::sync::atomic::Ordering::Relaxed) {
            0 => self.clean(landfall),
            mebibytes => {
                let mut shell = self.clean("sh");
                let limit = format!("ulimit -v {} && exec {landfall} \"$@\"", mebibytes << 10);
                shell.args(["-c", &limit, "landfall"]);
                shell
            }
        }
    }

    /// Any program in the same clean environment.
    pub fn clean(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(found(program.as_ref()));
        let home = self.path("home");
        command
            .env_clear()
            .env(
                "PATH",
                std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin:/usr/sbin:/sbin".into()),
            )
            .env("HOME", &home)
            .env("XDG_CACHE_HOME", home.join(".cache"))
            .env("XDG_RUNTIME_DIR", home.join("run"))
            .env("TMPDIR", self.path("tmp"))
            .env("LC_ALL", "C")
            .envs(self.environment.lock().unwrap().iter().cloned())
            .current_dir(self.dir());
        command
    }

    /// Like `command`, for assertions with `assert_cmd`.
    pub fn landfall(&self) -> assert_cmd::Command {
        assert_cmd::Command::from_std(self.command())
    }

    /// Runs landfall with `--output json`, asserts the exit code, and returns the document.
    pub fn json(&self, exit: i32, args: &[&str]) -> Value {
        let run = self
            .command()
            .args(args)
            .args(["--output", "json", "--progress", "none"])
            .output()
            .unwrap();
        let out = String::from_utf8_lossy(&run.stdout);
        let err = String::from_utf8_lossy(&run.stderr);
        assert_eq!(
            run.status.code(),
            Some(exit),
            "landfall {}\n{out}\n{err}",
            args.join(" ")
        );
        serde_json::from_str(&out)
            .unwrap_or_else(|e| panic!("landfall {}: {e}\n{out}", args.join(" ")))
    }

    /// Runs landfall in text mode, asserts exit 0, and returns stdout.
    pub fn ok(&self, args: &[&str]) -> String {
        let run = self
            .command()
            .args(args)
            .args(["--progress", "none"])
            .output()
            .unwrap();
        let out = String::from_utf8_lossy(&run.stdout);
        let err = String::from_utf8_lossy(&run.stderr);
        assert_eq!(
            run.status.code(),
            Some(0),
            "landfall {}\n{out}\n{err}",
            args.join(" ")
        );
        out.into_owned()
    }

    /// Runs landfall in text mode, asserts the exit code, and returns stderr.
    pub fn stderr(&self, exit: i32, args: &[&str]) -> String {
        let run = self.command().args(args).output().unwrap();
        let err = String::from_utf8_lossy(&run.stderr).into_owned();
        assert_eq!(
            run.status.code(),
            Some(exit),
            "landfall {}\n{err}",
            args.join(" ")
        );
        err
    }

    /// Runs landfall. Returns its exit code, and stdout followed by stderr.
    ///
    /// # Panics
    /// If a signal ended landfall, such as that of an abort.
    pub fn exited(&self, args: &[&str]) -> (i32, String) {
        let run = self
            .command()
            .args(args)
            .args(["--progress", "none"])
            .output()
            .unwrap();
        let printed = shown(&run);
        let Some(code) = run.status.code() else {
            panic!("landfall {}: {}\n{printed}", args.join(" "), run.status);
        };
        (code, printed)
    }

    /// Runs landfall, asserts the exit code, and returns stdout followed by stderr.
    pub fn printed(&self, exit: i32, args: &[&str]) -> String {
        let (code, printed) = self.exited(args);
        assert_eq!(code, exit, "landfall {}\n{printed}", args.join(" "));
        printed
    }
}

/// Whether this machine has all the programs. If not, the test counts as skipped and should return.
#[must_use]
pub fn need(programs: &[&str]) -> bool {
    let lacking: Vec<&str> = programs
        .iter()
        .copied()
        .filter(|program| which(program).is_none())
        .collect();
    if !lacking.is_empty() {
        skip(
            &test_name(),
            &format!("this machine has no {}", lacking.join(", ")),
        );
    }
    lacking.is_empty()
}

/// Counts a test as skipped, by name and with the reason.
pub fn skip(name: &str, why: &str) {
    println!("SKIPPED {name}: {why}");
    if let Some(path) = std::env::var_os("LANDFALL_TEST_SKIPPED") {
        let mut file = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .unwrap();
        file.write_all(format!("{name}: {why}\n").as_bytes())
            .unwrap();
    }
}

/// The name of the running test, which libtest gives to its thread.
pub fn test_name() -> String {
    std::thread::current().name().unwrap_or("?").to_owned()
}

/// The number of rounds of a long loop: `rounds` times the value of `LANDFALL_TEST_ROUNDS`.
pub fn rounds(rounds: usize) -> usize {
    let factor = std::env::var("LANDFALL_TEST_ROUNDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1);
    rounds * std::cmp::max(factor, 1)
}

/// Runs `round` with kill positions spread over all `bytes`, and asserts that most kills hit a
/// running process.
pub fn spread_kills(kills: usize, bytes: usize, mut round: impl FnMut(usize, usize) -> bool) {
    let met = (0..kills).filter(|number| {
        // multiples of the golden ratio are evenly distributed for any number of points
        let at = (*number as f64 * 0.618_033_988_75).fract();
        round(*number, (bytes as f64 * at) as usize)
    });
    let met = met.count();
    assert!(
        met * 2 > kills,
        "only {met} of {kills} kills hit a running process"
    );
}

/// The path of a program: in `PATH`, or in the folders of system programs.
pub fn which(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

/// The path of `program`, or `program` itself if it is a path already or is not found. If
/// [`Command`] gets a path, it spawns the program directly. If it gets a name and a changed `PATH`,
/// it forks this process first, which takes longer the more memory the process has.
pub fn found(program: &OsStr) -> OsString {
    let is_path = Path::new(program).components().count() > 1;
    let path = program.to_str().filter(|_| !is_path).and_then(which);
    path.map_or_else(|| program.to_owned(), OsString::from)
}

/// The position of `part`, which `bytes` must contain.
pub fn position_of(bytes: &[u8], part: &[u8]) -> usize {
    bytes
        .windows(part.len())
        .position(|window| window == part)
        .unwrap()
}

/// The exit code of a program, which no signal may have ended.
pub fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

/// Stdout followed by stderr.
pub fn shown(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

/// Runs a command that must succeed, and returns its stdout.
pub fn run(command: &mut Command) -> Vec<u8> {
    let mut result = command.output();
    // a program that was just copied is busy if another thread forked during the copy: the forked
    // child has the file open for writing until it executes a program
    for _ in 0..100 {
        match &result {
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(std::time::Duration::from_millis(20));
                result = command.output();
            }
            _ => break,
        }
    }
    let output = result.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let err = String::from_utf8_lossy(&output.stderr);
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{command:?}: {}\n{out}\n{err}",
        output.status
    );
    output.stdout
}
