//! Keys that gpg creates at times in the past or in the future.

use crate::support::{Place, run};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

/// A keyring with a key. Each command of gpg runs with a clock that the test sets.
pub struct Key {
    home: PathBuf,
    pub fingerprint: String,
}

/// The time this many days ago, in seconds since 1970.
pub fn seconds(days_ago: i64) -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs() as i64
        - days_ago * 86400
}

impl Key {
    /// A key created 100 days ago, for `usage` as in gpg, that is valid for `life`.
    pub fn new(place: &Place, name: &str, algorithm: &str, usage: &str, life: &str) -> Key {
        Key::made(place, name, algorithm, usage, life, 100)
    }

    /// Like [`Key::new`], created this many days ago.
    pub fn made(
        place: &Place,
        name: &str,
        algorithm: &str,
        usage: &str,
        life: &str,
        ago: i64,
    ) -> Key {
        let home = place.path(format!("gpg-{name}"));
        std::fs::create_dir_all(&home).unwrap();
        run(Command::new("chmod").arg("700").arg(&home));
        let mut key = Key {
            home,
            fingerprint: String::new(),
        };
        let who = format!("{name}@example.com");
        key.gpg(ago, &["--quick-gen-key", &who, algorithm, usage, life]);
        let list = key.gpg(ago, &["--with-colons", "--list-keys"]);
        key.fingerprint = fingerprints(&list).remove(0);
        key
    }

    fn command(&self, ago: i64, args: &[&str]) -> Command {
        let mut gpg = Command::new("gpg");
        gpg.arg("--homedir").arg(&self.home).args([
            "--quiet",
            "--no-tty",
            "--pinentry-mode",
            "loopback",
        ]);
        gpg.args([
            "--passphrase",
            "",
            "--faked-system-time",
            &seconds(ago).to_string(),
        ])
        .args(args);
        gpg
    }

    /// Runs gpg with the clock this many days in the past.
    pub fn gpg(&self, ago: i64, args: &[&str]) -> Vec<u8> {
        run(&mut self.command(ago, &[&["--batch", "--yes"], args].concat()))
    }

    /// Edits the key with gpg's edit commands, in order.
    pub fn edit(&self, ago: i64, commands: &[&str]) {
        self.answer(
            ago,
            &["--expert", "--edit-key", &self.fingerprint],
            &[commands, &["save"]].concat(),
        );
    }

    /// Runs gpg with `args` and the clock this many days in the past, and answers its questions.
    fn answer(&self, ago: i64, args: &[&str], answers: &[&str]) -> Vec<u8> {
        let mut gpg = self.command(
            ago,
            &[&["--command-fd", "0", "--status-fd", "2"], args].concat(),
        );
        gpg.stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = gpg.spawn().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all((answers.join("\n") + "\n").as_bytes())
            .unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        output.stdout
    }

    /// Adds a subkey this many days ago, and returns its fingerprint.
    pub fn subkey(&self, ago: i64, algorithm: &str, usage: &str, life: &str) -> String {
        self.gpg(
            ago,
            &["--quick-add-key", &self.fingerprint, algorithm, usage, life],
        );
        fingerprints(&self.gpg(ago, &["--with-colons", "--list-keys"]))
            .pop()
            .unwrap()
    }

    pub fn public(&self) -> Vec<u8> {
        self.gpg(0, &["--export", &self.fingerprint])
    }

    /// The public key in a keyring of the form that gpg had before keyboxes.
    pub fn keyring(&self) -> Vec<u8> {
        let exported = self.home.join("exported");
        std::fs::write(&exported, self.public()).unwrap();
        let ring = self.home.join("ring.gpg");
        let name = format!("gnupg-ring:{}", ring.display());
        let file = exported.to_str().unwrap();
        self.gpg(
            0,
            &["--no-default-keyring", "--keyring", &name, "--import", file],
        );
        std::fs::read(ring).unwrap()
    }

    pub fn secret(&self) -> Vec<u8> {
        self.gpg(0, &["--export-secret-keys"])
    }

    /// A detached signature of `content`, made this many days ago.
    pub fn sign(&self, ago: i64, content: &[u8], more: &[&str]) -> Vec<u8> {
        self.signed("--detach-sign", ago, content, more)
    }

    /// `text` clear-signed this many days ago.
    pub fn clear(&self, ago: i64, text: &[u8], more: &[&str]) -> Vec<u8> {
        self.signed("--clearsign", ago, text, more)
    }

    fn signed(&self, how: &str, ago: i64, content: &[u8], more: &[&str]) -> Vec<u8> {
        let input = self.home.join("content");
        std::fs::write(&input, content).unwrap();
        self.gpg(
            ago,
            &[more, &["--output", "-", how, input.to_str().unwrap()]].concat(),
        )
    }

    /// Imports the revocation certificate that gpg wrote when it created the key.
    pub fn revoke(&self) {
        let path = self
            .home
            .join(format!("openpgp-revocs.d/{}.rev", self.fingerprint));
        let text = std::fs::read_to_string(path)
            .unwrap()
            .replace(":-----BEGIN", "-----BEGIN");
        self.import("revocation", text.as_bytes());
    }

    /// Names `other` as a revoker of this key.
    pub fn add_revoker(&self, ago: i64, other: &Key) {
        self.import("revoker", &other.public());
        self.edit(ago, &["addrevoker", &other.fingerprint, "y"]);
    }

    /// Returns `other` with a revocation by this key, which `other` named as its revoker.
    pub fn revoke_for(&self, ago: i64, other: &Key) -> Vec<u8> {
        self.import("revoked", &other.public());
        let args = ["--output", "-", "--desig-revoke", &other.fingerprint];
        let revocation = self.answer(ago, &args, &["y", "0", "", "y"]);
        self.import("revocation", &revocation);
        self.gpg(0, &["--export", &other.fingerprint])
    }

    fn import(&self, name: &str, bytes: &[u8]) {
        let file = self.home.join(name);
        std::fs::write(&file, bytes).unwrap();
        self.gpg(0, &["--import", file.to_str().unwrap()]);
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        let mut end = Command::new("gpgconf");
        let _ = end
            .arg("--homedir")
            .arg(&self.home)
            .args(["--kill", "gpg-agent"])
            .status();
    }
}

fn fingerprints(list: &[u8]) -> Vec<String> {
    let list = String::from_utf8_lossy(list).into_owned();
    let lines = list.lines().filter(|line| line.starts_with("fpr:"));
    lines
        .map(|line| line.split(':').nth(9).unwrap().to_owned())
        .collect()
}
