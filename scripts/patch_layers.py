"""The tools that compress the corpus of scripts/bench-patches to layers. Each is a function of a tar and a path."""
import contextlib
import json
import hashlib
import os
import shutil
import subprocess
import tarfile

from patch_corpus import COMPRESSOR, Registry, go, program, run, skipped, wait_for


class LayerTools:
    """Tools that need a registry. Used as a context."""

    def __init__(self, work):
        self.work = work
        self.registry = Registry(os.path.join(work, "registry"))
        self.processes = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.registry.stop()
        for process in self.processes:
            process.terminate()
            process.wait()

    def append(self, tar, name):
        """Pushes an image of one layer."""
        run(program(self.work, "crane", "v0.22.1"), "append", "--insecure", "-f", tar, "-t", name)

    def crane(self, tar, out):
        self.append(tar, f"{self.registry.address}/crane:1")
        self.registry.save_layer("crane", out)

    def buildah(self, tar, out):
        root = os.path.join(self.work, "buildah")
        buildah = ["buildah", "--root", root, "--runroot", root + "-run", "--storage-driver", "vfs"]
        container = run(*buildah, "from", "scratch").decode().strip()
        run(*buildah, "add", container, tar, "/")
        image = run(*buildah, "commit", "--quiet", "--rm", container).decode().strip()
        run(*buildah, "push", "--tls-verify=false", image, f"docker://{self.registry.address}/buildah:1")
        run(*buildah, "rmi", image)
        self.registry.save_layer("buildah", out)

    def skopeo(self, tar, out):
        """Copies a docker archive with plain layers to a folder, which compresses them."""
        with open(tar, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        rootfs = {"type": "layers", "diff_ids": ["sha256:" + digest]}
        config = {"architecture": "amd64", "os": "linux", "rootfs": rootfs}
        archive = os.path.join(self.work, "archive.tar")
        folder = os.path.join(self.work, "skopeo")
        files = {"config.json": config, "manifest.json": [{"Config": "config.json", "Layers": ["layer.tar"]}]}
        with tarfile.open(archive, "w") as packed:
            for name, content in files.items():
                path = os.path.join(self.work, name)
                with open(path, "w") as file:
                    json.dump(content, file)
                packed.add(path, name)
            packed.add(tar, "layer.tar")
        shutil.rmtree(folder, ignore_errors=True)
        run("skopeo", "copy", "--insecure-policy", "--dest-compress", "--dest-compress-level", "6",
            "docker-archive:" + archive, "dir:" + folder)
        with open(os.path.join(folder, "manifest.json")) as file:
            layer = json.load(file)["layers"][0]["digest"].split(":")[1]
        shutil.move(os.path.join(folder, layer), out)

    def docker(self, tar, out):
        docker = ["docker", "--host", f"unix://{self.work}/docker.sock"]
        name = f"{self.registry.address}/docker:1"
        run(*docker, "import", tar, name)
        run(*docker, "push", name)
        run(*docker, "rmi", name)
        self.registry.save_layer("docker", out)

    def start_docker(self):
        folder = os.path.join(self.work, "docker")
        log = open(os.path.join(self.work, "docker.log"), "w")
        self.processes.append(subprocess.Popen(
            ["dockerd", "--host", f"unix://{self.work}/docker.sock", "--data-root", folder, "--exec-root",
             folder + "-run", "--pidfile", folder + ".pid", "--storage-driver", "vfs", "--bridge", "none",
             "--iptables=false"], stdout=log, stderr=log))
        wait_for(lambda: run("docker", "--host", f"unix://{self.work}/docker.sock", "version"))


def by_command(*command):
    def make(tar, out):
        with open(tar, "rb") as plain, open(out, "wb") as layer:
            run_into(layer, command, plain)

    return make


def run_into(out, command, plain):
    subprocess.run(command, stdin=plain, stdout=out, check=True)


def by_go(work, name, level, package, version=None, setup="", toolchain=None):
    """A program that compresses stdin with a Go package."""
    folder = os.path.join(work, "go", name.replace(" ", "-"))
    path = os.path.join(folder, "compress")
    if not os.path.exists(path):
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "main.go"), "w") as file:
            file.write(COMPRESSOR % {"gzip": package, "setup": setup})
        with contextlib.suppress(FileNotFoundError):
            os.remove(os.path.join(folder, "go.mod"))
        go(folder, "mod", "init", "bench", toolchain=toolchain)
        if version:
            go(folder, "get", f"{package}@{version}", toolchain=toolchain)
        go(folder, "build", "-o", path, ".", toolchain=toolchain)
    return by_command(path, str(level))


def by_python(level):
    script = "import gzip,sys;sys.stdout.buffer.write(gzip.compress(sys.stdin.buffer.read(),%d,mtime=0))"
    return by_command("python3", "-c", script % level)


def layer_makers(work, tools):
    """The functions of the available tools, by name."""
    pgzip = "github.com/klauspost/pgzip"
    makers = {
        "crane append": ("crane", lambda: tools.crane),
        "buildah push": ("buildah", lambda: tools.buildah),
        "skopeo copy": ("skopeo", lambda: tools.skopeo),
        "docker push": ("dockerd", lambda: tools.start_docker() or tools.docker),
        "Go 1.22, default": ("go", lambda: by_go(work, "go-1.22", -1, "compress/gzip", toolchain="go1.22.0")),
        "Go 1.27, default": ("go", lambda: by_go(work, "go-1.27", -1, "compress/gzip", toolchain="go1.27.1")),
        "Go 1.27, BestSpeed": ("go", lambda: by_go(work, "go-1.27", 1, "compress/gzip", toolchain="go1.27.1")),
        "pgzip, 250 kB": ("go", lambda: by_go(work, "pgzip", -1, pgzip, "v1.2.6", "out.SetConcurrency(250000, 4)")),
        "Python, level 6": ("python3", lambda: by_python(6)),
        "Python, level 9": ("python3", lambda: by_python(9)),
        "GNU gzip -6": ("gzip", lambda: by_command("gzip", "-6nc")),
        "pigz -6": ("pigz", lambda: by_command("pigz", "-6nc")),
    }
    found = {}
    for name, (needs, start) in makers.items():
        if needs != "crane" and not shutil.which(needs):
            print(f"skipped: {name}: {needs} is not installed")
            continue
        try:
            found[name] = start()
        except (subprocess.CalledProcessError, OSError) as error:
            skipped(name, error)
    return found
