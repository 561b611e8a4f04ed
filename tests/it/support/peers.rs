//! Servers on loopback: the test registry, landfall serve, and real peers.

use super::faults::{Content, Faults, Settings};
use super::pki::Authority;
use super::process::{Guard, free_port};
use super::{Place, run};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A running server, which ends when this value is dropped.
pub struct Server {
    /// `127.0.0.1:port`.
    pub address: String,
    running: Running,
    place: Option<Place>,
}

/// The running server, by its kind.
enum Running {
    Process(Guard),
    /// A fault registry without faults, in this process.
    Own(Faults),
}

impl Server {
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The log of the server: docker-registry and the test registry write one line per request, in
    /// the format of Apache.
    pub fn log(&self) -> String {
        match &self.running {
            Running::Process(guard) => guard.log(),
            Running::Own(faults) => faults.access_log(),
        }
    }

    /// The file in which docker-registry keeps a blob.
    pub fn blob_file(&self, digest: &str) -> PathBuf {
        let place = self.place.as_ref().expect("docker-registry has a folder");
        let hex = digest.trim_start_matches("sha256:");
        place.path(format!(
            "registry/docker/registry/v2/blobs/sha256/{}/{hex}/data",
            &hex[..2]
        ))
    }

    /// Returns the ID of the server's process.
    pub fn pid(&self) -> u32 {
        match &self.running {
            Running::Process(guard) => guard.pid(),
            Running::Own(_) => panic!("{} is not a separate process", self.address),
        }
    }

    /// Removes a manifest, with the tags that point to it, from a test registry.
    pub fn forget(&self, repository: &str, digest: &str) {
        match &self.running {
            Running::Own(faults) => faults.content(|content| content.forget(repository, digest)),
            Running::Process(_) => panic!("{} is a separate process", self.address),
        }
    }

    /// How many logged requests contain `needle`, such as `"GET /v2/` or `/blobs/`.
    pub fn requests(&self, needle: &str) -> usize {
        self.log()
            .lines()
            .filter(|line| line.contains("HTTP/1.1\"") && line.contains(needle))
            .count()
    }
}

/// An empty test registry. Like docker-registry, it has no referrers API.
pub fn own_registry() -> Server {
    own(Content::default())
}

/// A test file server with `root` at `/`.
pub fn file_server(root: &Path) -> Server {
    own(Content {
        folder: Some(root.to_owned()),
        ..Content::default()
    })
}

fn own(content: Content) -> Server {
    let faults = Faults::new(content);
    faults.set(Settings {
        no_referrers: true,
        ..Settings::default()
    });
    Server {
        address: faults.address.clone(),
        running: Running::Own(faults),
        place: None,
    }
}

/// A docker-registry on a free port of loopback, empty, without authentication.
pub fn docker_registry() -> Server {
    docker_registry_with("")
}

/// Like [`docker_registry`], with more configuration: top-level keys of its YAML file.
pub fn docker_registry_with(more: &str) -> Server {
    let place = Place::new();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
    let config = docker_registry_config(&place, &address.to_string(), more);
    start_docker_registry(place, address, &config)
}

/// Like [`docker_registry`], with a configuration that forbids deleting.
pub fn docker_registry_without_deletion() -> Server {
    docker_registry_with_storage("delete: {enabled: false}")
}

/// Like [`docker_registry`], with this line instead of the one that allows deleting.
pub fn docker_registry_with_storage(line: &str) -> Server {
    let place = Place::new();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
    let config = docker_registry_config(&place, &address.to_string(), "");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace("delete: {enabled: true}", line)).unwrap();
    start_docker_registry(place, address, &config)
}

fn start_docker_registry(place: Place, address: SocketAddr, config: &Path) -> Server {
    let mut command = place.clean("docker-registry");
    command.arg("serve").arg(config);
    started(Some(place), address, command)
}

/// A registry of Distribution 3 with the program `registry`, on a free port, empty.
pub fn distribution(registry: &Path) -> Server {
    let place = Place::new();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
    let config = docker_registry_config(&place, &address.to_string(), "");
    let mut command = place.clean(registry);
    command
        .arg("serve")
        .arg(config)
        .env("OTEL_TRACES_EXPORTER", "none");
    started(Some(place), address, command)
}

/// zot with the program `zot`, on a free port, empty.
pub fn zot(zot: &Path) -> Server {
    let place = Place::new();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
    let config = serde_json::json!({
        "storage": {"rootDirectory": place.path("zot")}, "log": {"level": "warn"},
        "http": {"address": "127.0.0.1", "port": address.port().to_string()},
    });
    let config = place.write("zot.json", config.to_string());
    let mut command = place.clean(zot);
    command.arg("serve").arg(config);
    started(Some(place), address, command)
}

fn started(place: Option<Place>, address: SocketAddr, command: Command) -> Server {
    let mut guard = Guard::start(command);
    guard.wait_for_http(address);
    Server {
        address: address.to_string(),
        running: Running::Process(guard),
        place,
    }
}

/// Writes a configuration for docker-registry into `place`, and returns its path.
pub fn docker_registry_config(place: &Place, address: &str, more: &str) -> PathBuf {
    let http = if more.contains("\nhttp:") || more.starts_with("http:") {
        String::new()
    } else {
        format!("http: {{addr: \"{address}\"}}\n")
    };
    let root = place.path("registry");
    let config = format!(
        "version: 0.1\nlog: {{level: warn, accesslog: {{disabled: false}}}}\nstorage:\n  filesystem: \
         {{rootdirectory: \"{}\"}}\n  delete: {{enabled: true}}\n{http}{more}\n",
        root.display()
    );
    place.write("registry.yml", config)
}

/// `landfall serve ARGS --listen 127.0.0.1:PORT` on a free port.
pub fn landfall_serve(place: &Place, args: &[&str]) -> Server {
    start_landfall(place.command(), args)
}

/// Like [`landfall_serve`], in a process whose address space is limited to `bytes`, including
/// stacks and reserved memory.
pub fn landfall_serve_within(place: &Place, bytes: u64, args: &[&str]) -> Server {
    let mut command = place.clean("prlimit");
    command
        .arg(format!("--as={bytes}"))
        .arg(env!("CARGO_BIN_EXE_landfall"));
    // glibc would reserve 64 MiB for each of many threads
    command.env("MALLOC_ARENA_MAX", "2");
    start_landfall(command, args)
}

/// `COMMAND serve ARGS` on a free port.
pub fn start_landfall(mut command: Command, args: &[&str]) -> Server {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
    command
        .arg("serve")
        .args(args)
        .args(["--listen", &address.to_string()]);
    started(None, address, command)
}

/// nginx with `root` at `/`; its access log is the server's log.
pub fn nginx(root: &Path) -> Server {
    nginx_with(&format!("root {};", root.display()))
}

/// nginx with these directives for its one server.
pub fn nginx_with(directives: &str) -> Server {
    let place = Place::new();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
    let command = nginx_command(&place, directives, &address.to_string());
    started(Some(place), address, command)
}

/// Like [`nginx_with`], at `address` and over TLS, with a certificate of `authority`.
pub fn nginx_with_tls(authority: &Authority, address: &str, directives: &str) -> Server {
    let place = Place::new();
    let (certificate, key) = authority.issue(&place, &["127.0.0.1"]);
    let directives = format!(
        "ssl_certificate '{}'; ssl_certificate_key '{}'; {directives}",
        certificate.display(),
        key.display()
    );
    let command = nginx_command(&place, &directives, &format!("{address} ssl"));
    started(Some(place), address.parse().unwrap(), command)
}

/// The command that starts an nginx at `address`, with these directives for its one server.
pub fn nginx_command(place: &Place, directives: &str, address: &str) -> Command {
    let dir = place.dir().display();
    let user = if is_root() { "user root;" } else { "" };
    let config = format!(
        "daemon off; {user} worker_processes 1; pid {dir}/pid; error_log stderr warn;\n\
         events {{}}\nhttp {{ access_log /dev/stdout;\n\
         client_body_temp_path {dir}/t1; proxy_temp_path {dir}/t2; fastcgi_temp_path {dir}/t3;\n\
         uwsgi_temp_path {dir}/t4; scgi_temp_path {dir}/t5;\n\
         server {{ listen {address}; {directives} }} }}\n"
    );
    let config = place.write("nginx.conf", config);
    let mut command = place.clean(super::which("nginx").expect("nginx is installed"));
    command
        .arg("-c")
        .arg(config)
        .arg("-p")
        .arg(place.dir())
        .args(["-e", "stderr"]);
    command
}

pub fn is_root() -> bool {
    Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// skopeo in a clean environment, with a policy that accepts anything.
pub fn skopeo(place: &Place) -> Command {
    let policy = place.write(
        "home/policy.json",
        r#"{"default":[{"type":"insecureAcceptAnything"}]}"#,
    );
    let mut command = place.clean("skopeo");
    command.arg("--policy").arg(policy);
    command
}

/// `skopeo copy --all` from a layout to a plain-http registry, with all platforms and unchanged
/// digests. skopeo cannot copy nested indexes; see [`super::Images::push`].
pub fn skopeo_push(place: &Place, layout: &Path, name: &str, to: &str) {
    let from = format!("oci:{}:{name}", layout.display());
    let to = format!("docker://{to}");
    run(skopeo(place).args([
        "copy",
        "--quiet",
        "--all",
        "--preserve-digests",
        "--dest-tls-verify=false",
        &from,
        &to,
    ]));
}

/// The bytes of the manifest that `reference` names: `host:port/repository:tag` or `…@digest`.
pub fn skopeo_raw(place: &Place, reference: &str) -> Vec<u8> {
    run(skopeo(place).args([
        "inspect",
        "--raw",
        "--tls-verify=false",
        &format!("docker://{reference}"),
    ]))
}
