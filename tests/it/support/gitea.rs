//! Gitea, as a git server and as a container registry.

use super::process::{Guard, free_port};
use super::{Place, run, skip, test_name};
use std::net::SocketAddr;

/// The account of the administrator, as `user:password`.
pub const ACCOUNT: &str = "site:s3cret-word";

/// A Gitea server with the account [`ACCOUNT`]. It creates a repository when one is pushed.
pub struct Gitea {
    pub address: SocketAddr,
    _guard: Guard,
}

impl Gitea {
    /// Starts the program that `LANDFALL_GITEA` names. If the variable is not set, the test counts
    /// as skipped. It also has the accounts `others`.
    pub fn start(place: &Place, others: &[&str]) -> Option<Gitea> {
        let Some(program) = std::env::var_os("LANDFALL_GITEA") else {
            skip(&test_name(), "LANDFALL_GITEA names no program");
            return None;
        };
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let folder = place.path("gitea");
        std::fs::create_dir(&folder).unwrap();
        let root = folder.display();
        // the folder with the templates, if the program does not embed them
        let templates = std::env::var("LANDFALL_GITEA_STATIC").unwrap_or_default();
        place.write(
            "gitea/app.ini",
            format!(
                "RUN_MODE = prod\nI_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true\nWORK_PATH = {root}\n\
                 [server]\nHTTP_ADDR = 127.0.0.1\nHTTP_PORT = {port}\nROOT_URL = http://{address}/\n\
                 STATIC_ROOT_PATH = {templates}\nDISABLE_SSH = true\nOFFLINE_MODE = true\n\
                 LFS_START_SERVER = true\n\
                 [database]\nDB_TYPE = sqlite3\nPATH = {root}/gitea.db\n\
                 [repository]\nROOT = {root}/repositories\nENABLE_PUSH_CREATE_USER = true\n\
                 DEFAULT_PUSH_CREATE_PRIVATE = false\n\
                 [security]\nINSTALL_LOCK = true\nSECRET_KEY = key\n\
                 [oauth2]\nENABLED = false\n[actions]\nENABLED = false\n[log]\nLEVEL = Warn\n",
                port = address.port(),
            ),
        );
        let gitea = |arguments: &[&str]| {
            let mut command = place.clean(&program);
            command
                .arg("-c")
                .arg(folder.join("app.ini"))
                .args(arguments);
            command
        };
        run(&mut gitea(&["migrate"]));
        let (name, password) = ACCOUNT.split_once(':').unwrap();
        for (name, role) in std::iter::once((name, &["--admin"][..]))
            .chain(others.iter().map(|name| (*name, &[][..])))
        {
            run(gitea(&["admin", "user", "create"])
                .args(role)
                .args(["--email", &format!("{name}@example.com")])
                .args(["--username", name, "--password", password])
                .arg("--must-change-password=false"));
        }
        let mut guard = Guard::start(gitea(&["web"]));
        guard.wait_for_http(address);
        Some(Gitea {
            address,
            _guard: guard,
        })
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }
}
