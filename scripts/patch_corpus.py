"""The corpus of scripts/bench-patches: content in neighbouring versions, and the tools that make layers of it.

Everything is kept in the folder `work`, and existing files are not created again.
"""
import contextlib
import json
import os
import shutil
import socket
import subprocess
import tarfile
import tempfile
import time
import urllib.request

# name, module, package, two neighbouring versions
PROGRAMS = [
    ("regctl", "github.com/regclient/regclient", "/cmd/regctl", ["v0.11.6", "v0.11.7"]),
    ("crane", "github.com/google/go-containerregistry", "/cmd/crane", ["v0.22.0", "v0.22.1"]),
    ("oras", "oras.land/oras", "/cmd/oras", ["v1.3.0", "v1.3.1"]),
    ("helm", "helm.sh/helm/v3", "/cmd/helm", ["v3.18.5", "v3.18.6"]),
    ("coredns", "github.com/coredns/coredns", "", ["v1.14.3", "v1.14.4"]),
    ("etcd", "go.etcd.io/etcd/server/v3", "", ["v3.7.2", "v3.7.3"]),
]
# the same of components in three minor versions each, for one bundle of all
MINORS = [
    ("crane", "github.com/google/go-containerregistry", "/cmd/crane", ["v0.20.8", "v0.21.9", "v0.22.1"]),
    ("helm", "helm.sh/helm/v3", "/cmd/helm", ["v3.20.2", "v3.21.4", "v3.22.0"]),
    ("kustomize", "sigs.k8s.io/kustomize/kustomize/v5", "", ["v5.6.0", "v5.7.1", "v5.8.2"]),
    ("etcd", "go.etcd.io/etcd/server/v3", "", ["v3.5.35", "v3.6.16", "v3.7.3"]),
    ("etcdctl", "go.etcd.io/etcd/etcdctl/v3", "", ["v3.5.35", "v3.6.16", "v3.7.3"]),
    ("oras", "oras.land/oras", "/cmd/oras", ["v1.1.0", "v1.2.3", "v1.3.6"]),
]
PYTHON = [
    "Django==5.1.6 SQLAlchemy==2.0.37 cryptography==44.0.0 numpy==2.2.2 pydantic==2.10.5 requests==2.32.3",
    "Django==5.1.7 SQLAlchemy==2.0.38 cryptography==44.0.1 numpy==2.2.3 pydantic==2.10.6 requests==2.32.3",
]
JAVA = ["3.4.1", "3.4.2"]
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>bench</groupId><artifactId>bench</artifactId><version>1</version><dependencies><dependency>
<groupId>org.springframework.boot</groupId><artifactId>spring-boot-starter-web</artifactId>
<version>%s</version></dependency></dependencies></project>"""
COMPRESSOR = """package main

import (
	gzip "%(gzip)s"
	"io"
	"os"
	"strconv"
)

func main() {
	level, _ := strconv.Atoi(os.Args[1])
	out, err := gzip.NewWriterLevel(os.Stdout, level)
	if err != nil {
		panic(err)
	}
	%(setup)s
	io.Copy(out, os.Stdin)
	out.Close()
}
"""


def run(*args, **more):
    more.setdefault("stderr", subprocess.PIPE)
    return subprocess.run(args, check=True, stdout=subprocess.PIPE, **more).stdout


def skipped(what, error):
    why = getattr(error, "stderr", None) or str(error).encode()
    print(f"skipped: {what}: {why.decode(errors='replace').strip()[-300:]}", flush=True)


def go(folder, *args, toolchain=None):
    env = dict(os.environ, CGO_ENABLED="0", GOFLAGS="-mod=mod -buildvcs=false")
    if toolchain:
        env["GOTOOLCHAIN"] = toolchain
    return run("go", *args, cwd=folder, env=env)


def build_program(module, package, version, out):
    """Builds a package of a module, stripped."""
    with tempfile.TemporaryDirectory() as folder:
        go(folder, "mod", "init", "bench")
        go(folder, "get", f"{module}{package}@{version}")
        go(folder, "build", "-trimpath", "-ldflags=-s -w", "-o", out, module + package)


def program(work, name, version):
    """The path of a program, which is built if it does not exist."""
    path = os.path.join(work, "bin", name, version, name)
    if not os.path.exists(path):
        module, package = next(entry[1:3] for entry in PROGRAMS + MINORS if entry[0] == name)
        build_program(module, package, version, path)
    return path


def write_tar(path, entries):
    with tarfile.open(path + ".part", "w") as tar:
        for source, name in entries:
            tar.add(source, name)
    os.rename(path + ".part", path)


def program_tar(work, name, version):
    path = os.path.join(work, f"{name}-{version}.tar")
    if not os.path.exists(path):
        write_tar(path, [(program(work, name, version), f"usr/bin/{name}")])
    return path


def tree_tars(work, name, trees):
    """The tars of a tree in two versions. Each of `trees` fills a folder, given the folder of the previous version."""
    paths, before = [], None
    for number, fill in enumerate(trees):
        path = os.path.join(work, f"{name}-{number}.tar")
        folder = os.path.join(work, "trees", f"{name}-{number}")
        if not os.path.exists(path):
            shutil.rmtree(folder, ignore_errors=True)
            os.makedirs(folder)
            fill(folder, before)
            unwanted = ("dev", "proc", "sys")
            names = [entry for entry in sorted(os.listdir(folder)) if entry not in unwanted]
            write_tar(path, [(os.path.join(folder, entry), entry) for entry in names])
        paths.append(path)
        before = folder
    return paths


def bootstrap(folder, _):
    """A Debian root of the main suite, as it was released."""
    run("debootstrap", "--variant=minbase", "bookworm", folder)
    clean(folder)


def upgrade(folder, before):
    """The same root after the security updates, from the sources of this machine."""
    run("cp", "-a", before + "/.", folder)
    for path in ("etc/resolv.conf", "etc/apt/sources.list.d/debian.sources"):
        os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
        shutil.copy("/" + path, os.path.join(folder, path))
    for verb in ("update", "upgrade"):
        env = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
        run("chroot", folder, "apt-get", "-qqy", verb, env=env)
    clean(folder)


def clean(root):
    """Removes the files that Debian images omit."""
    for path in ("var/lib/apt/lists", "var/cache/apt", "var/log", "var/cache/debconf"):
        shutil.rmtree(os.path.join(root, path), ignore_errors=True)
        os.makedirs(os.path.join(root, path))


def pip_tree(requirements):
    def fill(folder, _):
        run("python3", "-m", "pip", "install", "--quiet", "--target", folder, *requirements.split())

    return fill


def jar_tree(version):
    def fill(folder, _):
        with tempfile.TemporaryDirectory() as project:
            with open(os.path.join(project, "pom.xml"), "w") as file:
                file.write(POM % version)
            output = "-DoutputDirectory=" + os.path.join(folder, "app/lib")
            run("mvn", "-q", "dependency:copy-dependencies", output, cwd=project)

    return fill


def pairs(work, only):
    """Name and two tars of each pair, the programs first."""
    makers = [(name, lambda name=name, versions=versions: [program_tar(work, name, one) for one in versions])
              for name, _, _, versions in PROGRAMS]
    for name, trees in [
        ("debian", [bootstrap, upgrade]),
        ("python", [pip_tree(requirements) for requirements in PYTHON]),
        ("java", [jar_tree(version) for version in JAVA]),
    ]:
        makers.append((name, lambda name=name, trees=trees: tree_tars(work, name, trees)))
    for name, make in makers:
        if not only or only in name:
            try:
                yield name, make()
            except (subprocess.CalledProcessError, OSError) as error:
                skipped(name, error)


# without a proxy of the environment
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Registry:
    """docker-registry on loopback."""

    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.address = "127.0.0.1:%d" % probe.getsockname()[1]
        config = {
            "version": 0.1,
            "storage": {"filesystem": {"rootdirectory": os.path.join(folder, "content")}},
            "http": {"addr": self.address},
        }
        with open(os.path.join(folder, "config.yml"), "w") as file:
            json.dump(config, file)
        self.process = subprocess.Popen(
            ["docker-registry", "serve", file.name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        wait_for(lambda: self.get(""))

    def get(self, path, accept="application/vnd.oci.image.manifest.v1+json"):
        headers = {"Accept": accept + ", application/vnd.docker.distribution.manifest.v2+json"}
        return DIRECT.open(urllib.request.Request(f"http://{self.address}/v2/{path}", headers=headers))

    def manifest(self, name, tag="1"):
        with self.get(f"{name}/manifests/{tag}") as answer:
            return answer.read()

    def save_layer(self, name, out):
        """Writes the last layer of an image to a file."""
        digest = json.loads(self.manifest(name))["layers"][-1]["digest"]
        with self.get(f"{name}/blobs/{digest}") as answer, open(out, "wb") as file:
            shutil.copyfileobj(answer, file)

    def stop(self):
        self.process.terminate()
        self.process.wait()


def wait_for(attempt):
    for _ in range(300):
        with contextlib.suppress(OSError, subprocess.CalledProcessError):
            return attempt()
        time.sleep(0.1)
    return attempt()
