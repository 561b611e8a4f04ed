//! `landfall serve` under the names of the hosts that its content comes from: the original URLs of
//! files and images work if DNS maps these names to the server.

use crate::support::http::{ACCEPT, get, request};
use crate::support::images::{noise, sha256_hex};
use crate::support::peers::{Server, nginx_with, own_registry, skopeo};
use crate::support::pki::Authority;
use crate::support::{Images, Place, free_port, landfall_serve, need, run};

/// A script that downloads the files of a new worker node: first as in a profile of
/// operating-system-manager, then as in KubeOne's script for Flatcar.
const WORKER: &str = r#"set -eu
ARCH="$1" KUBE_VERSION=v1.33.4 CNI_VERSION=v1.9.1 CRI_TOOLS_RELEASE=v1.33.0
mkdir "$ARCH" "$ARCH/flatcar"
cd "$ARCH"
cni="cni-plugins-linux-$ARCH-$CNI_VERSION.tgz"
base="https://github.com/containernetworking/plugins/releases/download/$CNI_VERSION"
curl -fL "$base/$cni" >"$cni"
curl -fL "$base/$cni.sha256" >cni.sha256
sha256sum -c cni.sha256
crictl="crictl-$CRI_TOOLS_RELEASE-linux-$ARCH.tar.gz"
base="https://github.com/kubernetes-sigs/cri-tools/releases/download/$CRI_TOOLS_RELEASE"
curl -fL "$base/$crictl" >"$crictl"
# this checksum file does not contain the file name
echo "$(curl -fL "$base/$crictl.sha256")  $crictl" | sha256sum -c -
base="https://dl.k8s.io/$KUBE_VERSION/bin/linux/$ARCH"
for binary in kubelet kubeadm kubectl; do
  curl -fLO "$base/$binary"
  echo "$(curl -fL "$base/$binary.sha256")  $binary" | sha256sum -c -
done
cd flatcar
curl -L --remote-name-all "https://dl.k8s.io/release/$KUBE_VERSION/bin/linux/$ARCH/"{kubeadm,kubelet,kubectl}
cmp kubelet ../kubelet
"#;

/// A web server with the files of a worker node. It has three kinds of checksum files, and
/// redirects requests to other paths.
struct Worker {
    place: Place,
    upstream: Server,
}

impl Worker {
    fn new() -> Worker {
        let place = Place::new();
        for (at, arch) in ["amd64", "arm64"].into_iter().enumerate() {
            let at = at as u64 * 10;
            let cni = format!("cni-plugins-linux-{arch}-v1.9.1.tgz");
            let below = "www/stored/containernetworking/plugins/releases/download/v1.9.1";
            let content = noise(at, 90_000);
            place.write(&format!("{below}/{cni}"), &content);
            place.write(
                &format!("{below}/{cni}.sha256"),
                format!("{}  {cni}\n", sha256_hex(&content)),
            );
            let crictl = format!("crictl-v1.33.0-linux-{arch}.tar.gz");
            let below = "www/stored/kubernetes-sigs/cri-tools/releases/download/v1.33.0";
            let content = noise(at + 1, 80_000);
            place.write(&format!("{below}/{crictl}"), &content);
            place.write(
                &format!("{below}/{crictl}.sha256"),
                format!("{}\n", sha256_hex(&content)),
            );
            for (more, binary) in ["kubelet", "kubeadm", "kubectl"].into_iter().enumerate() {
                let path = format!("www/stored/release/v1.33.4/bin/linux/{arch}/{binary}");
                let content = noise(at + 2 + more as u64, 1_200_000);
                place.write(&path, &content);
                place.write(&format!("{path}.sha256"), sha256_hex(&content));
            }
        }
        let root = place.path("www");
        let upstream = nginx_with(&format!(
            "root {}; location ~ ^/asked/(.*)$ {{ return 302 /stored/$1?X-Signature=hush; }}",
            root.display()
        ));
        let mirror = format!("{{mirror: \"{}/asked\"}}", upstream.url());
        place.write(
            "site.yaml",
            format!(
                "apiVersion: landfall/v1\nkind: Site\nupstreams:\n  dl.k8s.io: {mirror}\n  github.com: {mirror}\n"
            ),
        );
        Worker { place, upstream }
    }

    /// Locks, pulls and packs the shipped manifest.
    fn pack(&self) {
        let manifest = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/manifests/osm/worker-binaries.yaml"
        );
        self.place
            .ok(&["lock", "--site", "site.yaml", "-f", manifest]);
        self.place.ok(&["pull", "--site", "site.yaml"]);
        self.place.ok(&["pack", "-o", "bundle.tar.zst"]);
    }

    /// Runs the worker's script for both architectures. Curl connects to `address` for every host.
    fn downloads_from(&self, address: &str, ca: &std::path::Path) {
        let settings = format!(
            "silent\nshow-error\nconnect-to = \"::{address}\"\ncacert = \"{}\"\n",
            ca.display()
        );
        self.place.write(".curlrc", settings);
        self.place.write("worker.sh", WORKER);
        for arch in ["amd64", "arm64"] {
            let mut script = self.place.clean("bash");
            run(script
                .args(["worker.sh", arch])
                .env("CURL_HOME", self.place.dir()));
        }
    }
}

#[test]
fn scripts_of_workers_download_files_by_their_original_urls() {
    if !need(&["curl", "nginx", "sha256sum", "bash"]) {
        return;
    }
    let worker = Worker::new();
    worker.pack();
    let lock = std::fs::read_to_string(worker.place.path("landfall.lock")).unwrap();
    assert!(
        worker.upstream.requests("X-Signature") > 0,
        "upstream redirects"
    );
    assert!(
        !lock.contains("stored") && !lock.contains("X-Signature"),
        "no redirect is recorded: {lock}"
    );
    let authority = Authority::new(&worker.place, "site-ca");
    let (cert, key) = authority.issue(&worker.place, &["dl.k8s.io", "github.com"]);
    let [cert, key] = [cert, key].map(|path| path.display().to_string());
    let server = landfall_serve(
        &worker.place,
        &["bundle.tar.zst", "--tls-cert", &cert, "--tls-key", &key],
    );
    worker.downloads_from(&server.address, &authority.pem);
}

#[test]
fn a_url_is_found_by_host_header_sni_and_absolute_target() {
    if !need(&["curl", "nginx"]) {
        return;
    }
    let worker = Worker::new();
    worker.pack();
    let of_files = Authority::new(&worker.place, "files-ca");
    let of_site = Authority::new(&worker.place, "site-ca");
    let files = of_files.issue(&worker.place, &["dl.k8s.io"]);
    let site = of_site.issue(&worker.place, &["localhost"]);
    let plain = format!("127.0.0.1:{}", free_port());
    let plain_url = format!("http://{plain}");
    let paths = [&site.0, &site.1, &files.0, &files.1].map(|path| path.display().to_string());
    let flags = ["--tls-cert", "--tls-key", "--tls-cert", "--tls-key"];
    let tls = flags
        .iter()
        .zip(&paths)
        .flat_map(|(flag, path)| [*flag, path]);
    let args: Vec<&str> = ["bundle.tar.zst", "--listen", &plain_url]
        .into_iter()
        .chain(tls)
        .collect();
    let server = landfall_serve(&worker.place, &args);
    let expected = format!("serving on http://{plain} and https://{} (", server.address);
    assert!(server.log().contains(&expected), "{}", server.log());

    let kubelet = noise(2, 1_200_000);
    let path = "/release/v1.33.4/bin/linux/amd64/kubelet";
    let get_as = |host: &str, path: &str| request("GET", &plain, path, &[("Host", host)], b"");
    let port = plain.split(':').nth(1).unwrap();
    for host in [
        "dl.k8s.io",
        "DL.K8S.IO",
        "dl.k8s.io:443",
        "dl.k8s.io:80",
        &format!("dl.k8s.io:{port}"),
    ] {
        assert!(get_as(host, path).body == kubelet, "{host}");
    }
    let head = request("HEAD", &plain, path, &[("Host", "dl.k8s.io")], b"");
    assert_eq!(
        (head.status, head.header("content-length")),
        (200, Some("1200000"))
    );
    let part = [("Host", "dl.k8s.io"), ("Range", "bytes=100-199")];
    let part = request("GET", &plain, path, &part, b"");
    assert!((part.status, &part.body[..]) == (206, &kubelet[100..200]));
    assert_eq!(get_as("dl.k8s.io:8443", path).status, 404, "another origin");
    assert_eq!(get_as("github.com", path).status, 404, "another host");
    let unknown = get_as("dl.k8s.io", "/release/v9/kubelet");
    assert_eq!(unknown.status, 404);
    assert!(
        unknown.text().contains("dl.k8s.io/release/v9/kubelet"),
        "{}",
        unknown.text()
    );

    let curl = |args: &[&str]| {
        let ca = of_files.pem.display().to_string();
        let to = format!("::{}", server.address);
        let url = format!("https://dl.k8s.io{path}");
        run(worker
            .place
            .clean("curl")
            .args(["-sSf", "--cacert", &ca, "--connect-to", &to])
            .args(args)
            .arg(url))
    };
    assert!(
        curl(&[]) == kubelet,
        "the second certificate is for this name"
    );
    assert!(
        curl(&["-H", &format!("Host: {}", server.address)]) == kubelet,
        "the name in the handshake selects the file"
    );
    let through = worker
        .place
        .clean("curl")
        .args(["-sSf", &format!("http://dl.k8s.io{path}")])
        .env("http_proxy", &plain_url)
        .output()
        .unwrap();
    assert!(
        through.stdout == kubelet,
        "a request with an absolute URL, as for a proxy"
    );

    // the registry and the page work under any name
    for host in ["dl.k8s.io", "localhost", &plain] {
        assert_eq!(
            (get_as(host, "/v2/").status, get_as(host, "/v2/").body),
            (200, b"{}".to_vec()),
            "{host}"
        );
        assert_eq!(get_as(host, "/healthz").body, b"ok\n", "{host}");
        assert_eq!(
            get_as(host, "/").header("content-type"),
            Some("text/html; charset=utf-8"),
            "{host}"
        );
    }
    assert!(get(&plain, &format!("/files/dl.k8s.io{path}")).body == kubelet);
    assert_eq!(
        get(&plain, path).status,
        404,
        "original paths do not work under the server's own name"
    );
}

/// DNS names that resolve to the server are enough for images too: a client without a configured
/// mirror sends the source host in `Host`, and no `ns` parameter.
#[test]
fn images_are_found_by_their_source_host_if_dns_points_to_the_server() {
    let place = Place::new();
    let images = Images::new(place.path("layout"));
    let quay = own_registry();
    let other = own_registry();
    let image = |registry: &Server, seed| {
        let image = images.image("linux/amd64", &[images.layer(&[("a", &noise(seed, 900))])]);
        images.push(&registry.address, "x/app", "v1", &image);
        images.bytes(image["digest"].as_str().unwrap())
    };
    let of_quay = image(&quay, 1);
    let of_other = image(&other, 2);
    let upstream = |server: &Server| format!("{{mirror: \"{}\"}}", server.url());
    let site = format!(
        "upstreams: {{quay.io: {}, ghcr.io: {}}}",
        upstream(&quay),
        upstream(&other)
    );
    place.write(
        "site.yaml",
        format!("apiVersion: landfall/v1\nkind: Site\n{site}\n"),
    );
    place.write(
        "m.yaml",
        "apiVersion: landfall/v1\nkind: Manifest\nreferrers: false\nimages: [quay.io/x/app:v1, ghcr.io/x/app:v1]\n",
    );
    place.ok(&["lock", "-f", "m.yaml", "--site", "site.yaml"]);
    place.ok(&["pull", "--site", "site.yaml"]);
    place.ok(&["pack", "-o", "b"]);
    let server = landfall_serve(&place, &["b"]);
    let get_as = |host: &str, target: &str| {
        request(
            "GET",
            &server.address,
            target,
            &[("Host", host), ("Accept", ACCEPT)],
            b"",
        )
    };
    let target = "/v2/x/app/manifests/v1";
    for (host, target, expected) in [
        ("quay.io", target, &of_quay),
        ("ghcr.io:443", target, &of_other),
        // the ns parameter of a mirror takes precedence over the host name
        ("quay.io", "/v2/x/app/manifests/v1?ns=ghcr.io", &of_other),
        (
            "mirror.site.example",
            "/v2/x/app/manifests/v1?ns=quay.io",
            &of_quay,
        ),
    ] {
        let answer = get_as(host, target);
        assert!(
            (answer.status, &answer.body) == (200, expected),
            "{host} {target}: {}",
            answer.text()
        );
    }
    let tags = get_as("quay.io", "/v2/x/app/tags/list");
    assert_eq!(tags.json()["tags"], serde_json::json!(["v1"]));
    // under any other name, the repository is ambiguous
    for host in ["mirror.site.example", "quay.io:8443", &server.address] {
        let answer = get_as(host, target);
        assert_eq!(answer.status, 404, "{host}");
        assert!(answer.text().contains("quay.io/x/app") && answer.text().contains("ghcr.io/x/app"));
    }
    assert_eq!(get_as("docker.io", "/v2/none/manifests/v1").status, 404);
    if need(&["skopeo"]) {
        // the server is the HTTP proxy, so that requests for every host reach it
        let copied = skopeo(&place)
            .args([
                "inspect",
                "--raw",
                "--tls-verify=false",
                "docker://quay.io:80/x/app:v1",
            ])
            .env("http_proxy", server.url())
            .env("https_proxy", server.url())
            .output()
            .unwrap();
        assert!(
            copied.stdout == of_quay,
            "{}",
            String::from_utf8_lossy(&copied.stderr)
        );
    }
}
