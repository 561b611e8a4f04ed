//! Pulp as a container registry, with a database of its own.

use super::peers::is_root;
use super::process::{Guard, free_port};
use super::{run, skip, test_name, which};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The account of the administrator, as `user:password`.
pub const ACCOUNT: &str = "admin:s3cret-word";

/// A running Pulp, which ends when this value is dropped.
pub struct Pulp {
    pub address: SocketAddr,
    _processes: [Guard; 4],
    _folder: tempfile::TempDir,
}

impl Pulp {
    /// Starts the Pulp in the Python environment that `LANDFALL_PULP` names. If the variable is not
    /// set, the test counts as skipped.
    pub fn start() -> Option<Pulp> {
        let Some(environment) = std::env::var_os("LANDFALL_PULP") else {
            skip(&test_name(), "LANDFALL_PULP names no Python environment");
            return None;
        };
        let programs = PathBuf::from(environment).join("bin");
        // the database runs as another user, who must be able to enter the folder
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        run(Command::new("chmod").arg("777").arg(folder.path()));
        let root = folder.path().to_owned();
        let [database_port, api, content] = [free_port(), free_port(), free_port()];
        let database = postgres(&root, database_port);
        for below in ["media", "tmp"] {
            std::fs::create_dir(root.join(below)).unwrap();
        }
        let root = root.display();
        // every request has the password, whose usual hash takes seconds on a busy machine
        let settings = format!(
            "SECRET_KEY = 'zoo'\nCONTENT_ORIGIN = 'http://127.0.0.1:{content}'\n\
             DATABASES = {{'default': {{'ENGINE': 'django.db.backends.postgresql', \
             'HOST': '127.0.0.1', 'PORT': '{database_port}', 'NAME': 'pulp', 'USER': 'pulp'}}}}\n\
             DB_ENCRYPTION_KEY = '{root}/key'\nDEPLOY_ROOT = '{root}'\n\
             MEDIA_ROOT = '{root}/media'\nWORKING_DIRECTORY = '{root}/tmp'\n\
             FILE_UPLOAD_TEMP_DIR = '{root}/tmp'\nSTATIC_ROOT = '{root}/assets'\n\
             CACHE_ENABLED = False\nTOKEN_AUTH_DISABLED = True\nANALYTICS = False\n\
             PASSWORD_HASHERS = ['django.contrib.auth.hashers.MD5PasswordHasher']\n"
        );
        std::fs::write(folder.path().join("settings.py"), settings).unwrap();
        let key = "a".repeat(43) + "=";
        std::fs::write(folder.path().join("key"), key).unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        let pulp = |program: &str, arguments: &[&str]| {
            let mut command = Command::new(programs.join(program));
            command
                .args(arguments)
                .env("PULP_SETTINGS", folder.path().join("settings.py"))
                .env("PATH", format!("{}:{path}", programs.display()));
            command
        };
        run(&mut pulp("pulpcore-manager", &["migrate", "--noinput"]));
        let (_, password) = ACCOUNT.split_once(':').unwrap();
        let reset = ["reset-admin-password", "--password", password];
        run(&mut pulp("pulpcore-manager", &reset));
        let serve = |program: &str, port: u16| {
            let address = SocketAddr::from(([127, 0, 0, 1], port));
            let bind = address.to_string();
            let mut guard = Guard::start(pulp(program, &["-b", &bind, "--workers", "1"]));
            guard.wait_for_http(address);
            guard
        };
        Some(Pulp {
            address: SocketAddr::from(([127, 0, 0, 1], api)),
            _processes: [
                serve("pulpcore-api", api),
                serve("pulpcore-content", content),
                Guard::start(pulp("pulpcore-worker", &[])),
                database,
            ],
            _folder: folder,
        })
    }
}

/// A database server with the database `pulp`, whose files are below `root`.
fn postgres(root: &Path, port: u16) -> Guard {
    let initdb = std::fs::canonicalize(which("initdb").expect("initdb is installed")).unwrap();
    let programs = initdb.parent().unwrap();
    let data = root.join("database");
    let as_postgres = |program: &str| {
        let program = programs.join(program);
        if !is_root() {
            return Command::new(program);
        }
        let mut command = Command::new("runuser");
        command.args(["-u", "postgres", "--"]).arg(program);
        command.current_dir("/");
        command
    };
    run(as_postgres("initdb")
        .args(["-A", "trust", "-U", "pulp", "-D"])
        .arg(&data));
    let mut server = as_postgres("postgres");
    server
        .args(["-p", &port.to_string(), "-D"])
        .arg(&data)
        .args(["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"])
        .arg("-c")
        .arg(format!("unix_socket_directories={}", root.display()));
    let mut guard = Guard::start(server);
    let ready = ["-h", "127.0.0.1", "-p", &port.to_string()].map(str::to_owned);
    let pg_isready = programs.join("pg_isready");
    guard.wait_until("a database", || {
        let status = Command::new(&pg_isready).args(&ready).arg("-q").status();
        status.is_ok_and(|status| status.success())
    });
    run(as_postgres("createdb")
        .args(&ready)
        .args(["-U", "pulp", "pulp"]));
    guard
}
