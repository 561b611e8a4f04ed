//! Finds the images of commands, which may have no host: the argument of a pull (`docker pull
//! a/b:1`), what engines run (`docker run --rm a/b:1`), and the value of a flag (`--image=a/b:1`,
//! `--image a/b:1`).

use super::shell::commands;
use super::variables::placeholder;
use memchr::memmem;

/// Programs whose command `pull` has an image as its argument.
const TOOLS: [&str; 7] = [
    "docker", "podman", "nerdctl", "crictl", "ctr", "buildah", "k3s",
];

/// Words between the name of a program and `pull`.
const SUBCOMMANDS: [&str; 5] = ["image", "images", "i", "ctr", "crictl"];

/// Flags whose value is the next word.
const FLAGS_WITH_VALUE: [&str; 11] = [
    "--platform",
    "--namespace",
    "-n",
    "--user",
    "-u",
    "--address",
    "-a",
    "--runtime-endpoint",
    "-r",
    "--image-endpoint",
    "-i",
];

/// Flags whose value is an argument with a name, as in `--build-arg BASE_IMAGE=a/b:1`.
const NAMED_ARGUMENTS: [&str; 2] = ["--build-arg", "--driver-opt"];

/// The number of bytes that are searched before a word. Without a limit, a long line of words would
/// take quadratic time.
const COMMAND_BYTES: usize = 512;

/// How a command names the image that follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandImage {
    /// As the argument of a pull. The script may build it as well.
    Pulled,
    /// As the value of a flag.
    OfFlag,
}

/// How the command at the end of `before`, the text before a word, names the word as an image.
pub(super) fn image_after(before: &str) -> Option<CommandImage> {
    let near = before.ceil_char_boundary(before.len().saturating_sub(COMMAND_BYTES));
    let line = before[near..].rsplit('\n').next().unwrap_or_default();
    let line = line.trim_end_matches(['"', '\'']);
    if let Some(line) = line.strip_suffix('=') {
        let (before, flag) = line.rsplit_once(char::is_whitespace).unwrap_or(("", line));
        // the name of an argument may be quoted together with its value
        let flag = flag.trim_start_matches(['"', '\'']);
        let before = before.trim_end();
        let is_argument = NAMED_ARGUMENTS.iter().any(|name| before.ends_with(name));
        let is_image = is_image_flag(flag) || (is_argument && ends_with_image(flag));
        return is_image.then_some(CommandImage::OfFlag);
    }
    if !line.ends_with([' ', '\t']) {
        return None;
    }
    let flag = line.trim_end().rsplit(char::is_whitespace).next();
    if flag.is_some_and(is_image_flag) {
        return Some(CommandImage::OfFlag);
    }
    is_pull(line).then_some(CommandImage::Pulled)
}

/// Whether `word` is a flag that is named after an image, such as `--sidecar-image` and
/// `--build-arg=BASE_IMAGE`.
fn is_image_flag(word: &str) -> bool {
    let flag = word.trim_matches(['"', '\'', '[', ',']);
    flag.starts_with("--") && ends_with_image(flag)
}

fn ends_with_image(name: &str) -> bool {
    name.to_ascii_lowercase().ends_with("image")
}

/// Whether the last command of `line` is a pull without its argument.
fn is_pull(line: &str) -> bool {
    let command = line.rsplit([';', '|', '&', '(', '`', '{', '"', '\'']);
    let mut words = command.take(1).flat_map(str::split_whitespace);
    let is_tool = |word: &str| {
        let name = word.rsplit('/').next().unwrap_or(word);
        TOOLS.contains(&name)
    };
    if !words.any(is_tool) {
        return false;
    }
    let mut is_pull = false;
    let mut is_value = false;
    for word in words {
        is_value = match word {
            _ if is_value => false,
            _ if word.starts_with('-') => FLAGS_WITH_VALUE.contains(&word),
            "pull" if !is_pull => {
                is_pull = true;
                false
            }
            _ if !is_pull && SUBCOMMANDS.contains(&word) => false,
            _ => return false,
        };
    }
    is_pull && !is_value
}

/// Programs whose commands `run`, `create` and `from` have an image as their first argument.
const RUNNERS: [&str; 5] = ["docker", "podman", "nerdctl", "ctr", "buildah"];

/// Long flags of these commands that have no value. All others have one.
const SWITCHES: [&str; 22] = [
    "detach",
    "disable-content-trust",
    "env-host",
    "help",
    "init",
    "interactive",
    "net-host",
    "no-healthcheck",
    "no-hosts",
    "no-resolve-image",
    "null-io",
    "oom-kill-disable",
    "privileged",
    "publish-all",
    "quiet",
    "read-only",
    "replace",
    "rm",
    "rmi",
    "sig-proxy",
    "tty",
    "with-registry-auth",
];

/// Whether the next word is the value of `flag`, a flag of these commands.
fn has_value(flag: &str) -> bool {
    if let Some(name) = flag.strip_prefix("--") {
        return !SWITCHES.contains(&name);
    }
    let letters = flag.trim_start_matches('-');
    let is_switch = letters.bytes().all(|letter| b"dDiPqt".contains(&letter));
    // the value may follow its letter: `-p5000:5000`
    let is_attached = !letters.bytes().all(|letter| letter.is_ascii_alphabetic());
    !(is_switch || is_attached)
}

/// The images that the commands of `text` pull or run, as they are written. One of `k3s ctr images
/// pull` is found twice.
pub(crate) fn engine_images(text: &str) -> Vec<&str> {
    // most texts name none of the programs
    let is_named = |tool: &&str| memmem::find(text.as_bytes(), tool.as_bytes()).is_some();
    let mut found = Vec::new();
    for tool in TOOLS.into_iter().filter(is_named) {
        let commands = commands(text, tool, |flag| FLAGS_WITH_VALUE.contains(&flag));
        found.extend(commands.into_iter().filter_map(|command| {
            let mut words = command
                .positional
                .into_iter()
                .skip_while(|word| SUBCOMMANDS.contains(word));
            words.next().filter(|word| *word == "pull")?;
            words.next()
        }));
    }
    for runner in RUNNERS.into_iter().filter(is_named) {
        let commands = commands(text, runner, has_value).into_iter();
        found.extend(
            commands.filter_map(|command| match &command.positional[..] {
                ["run" | "create" | "from", words @ ..]
                | ["container" | "service", "run" | "create", words @ ..] => {
                    words.iter().find(|word| !is_variable(word)).copied()
                }
                _ => None,
            }),
        );
    }
    found
}

/// Whether `word` is only a variable, all parameters of a script or a command substitution, which
/// may be any flags.
fn is_variable(word: &str) -> bool {
    if matches!(word, "$@" | "$*") {
        return true;
    }
    // a makefile escapes the dollar sign of a shell
    let word = word
        .strip_prefix('$')
        .filter(|rest| rest.starts_with('$'))
        .unwrap_or(word);
    placeholder(word, word.len()) == Some(word.len())
}

#[cfg(test)]
mod tests {
    use super::{CommandImage, engine_images, image_after};

    #[test]
    fn the_argument_of_a_pull_and_the_value_of_a_flag_are_images() {
        for before in [
            "docker pull ",
            "x\n  - run: sudo docker pull -q ",
            "set -e; podman image pull --platform linux/arm64 --quiet ",
            "/usr/bin/ctr -n k8s.io images pull ",
            "k3s ctr i pull \"",
            "crictl -r unix:///x.sock pull ",
            "docker ps && crictl pull ",
        ] {
            assert_eq!(image_after(before), Some(CommandImage::Pulled), "{before}");
        }
        for before in [
            "kubectl run x --image=",
            "args: [\"--sidecar-image=",
            "kubectl run x --image ",
            "docker build --build-arg BASE_IMAGE=",
            "docker build --build-arg \"BASE_IMAGE=",
            "docker build --build-arg=BASE_IMAGE=",
            "docker buildx create --driver-opt network=host,image=",
            "[\"--sidecar-image\", \"",
        ] {
            assert_eq!(image_after(before), Some(CommandImage::OfFlag), "{before}");
        }
        for before in [
            "",
            "docker pull\n",
            "docker pull",
            "docker pull a ",
            "docker run ",
            "git pull ",
            "docker run x pull ",
            "docker pull --platform ",
            "docker compose pull ",
            "echo docker; pull ",
            "image=",
            "--image-x=",
            "x--image=",
            "x BASE_IMAGE=",
            "docker build --build-arg BASE=",
        ] {
            assert_eq!(image_after(before), None, "{before}");
        }
    }

    #[test]
    fn images_that_commands_run_follow_their_flags() {
        for (command, expected) in [
            ("docker run --rm -it a:1 sh -c b:2", "a:1"),
            (
                "sudo podman run -d --name x -p 80:80 -v \"$PWD:/x\" a/b:1",
                "a/b:1",
            ),
            ("docker container create -p5000:5000 -e A=b:1 a:1", "a:1"),
            (
                "docker run \\\n  --network host \\\n  a/b:$V --flag",
                "a/b:$V",
            ),
            ("- [docker, run, -d, \"--name\", reg, \"a:1\"]", "a:1"),
            ("ctr -n k8s.io run --rm a:1 name", "a:1"),
            ("docker --debug pull -q a:1 && nerdctl run b", "a:1 b"),
            ("docker exec a:1; docker network create a:1; docker run", ""),
            ("docker run -v `cd a && pwd`:/x a:1; docker run b", "a:1 b"),
            ("x=`docker run a:1`; docker run b", "a:1 b"),
            ("docker run -v ${{ github.workspace }}:/x a:1", "a:1"),
            ("docker run -e \"A=b c\" -l 'd e'=f a:1", "a:1"),
            ("docker run -e '[x]' -l \"\" --name '>y' a:1", "a:1"),
            ("docker run -v \"$HOME/.docker\":/root/.docker a:1", "a:1"),
            ("docker run $FLAGS ${MORE[@]} \"$@\" a:1", "a:1"),
            ("docker run --rm -v $(pwd):/x -w /x a:1 make", "a:1"),
            ("docker run $FLAGS $$(tty -s && echo -it) a:1 make", "a:1"),
            ("docker run ${IMAGE} sh", "sh"),
            (
                "docker service create --replicas 2 --with-registry-auth a:1",
                "a:1",
            ),
            (
                "buildah from --name x a:1; ctr -a /x.sock images pull b:1",
                "b:1 a:1",
            ),
            ("docker run -v `pwd`:/x -u \"$(id -u):$(id -g)\" a:1", "a:1"),
            (
                "docker run \\\n  -v \"$(pwd)\":/x \\\n  -e A='b c' -e \"B=$(cat d | e)\" a:1",
                "a:1",
            ),
            (
                "docker run --mount type=bind,source=\"$(pwd)\",target=/x a:1",
                "a:1",
            ),
            (
                "x=$(docker run a:1); sh -c \"docker run -e 'A=b c' b:1\" && echo \"it's\"",
                "a:1 b:1",
            ),
            ("[\"docker\",\"run\",\"-e\",\"A=b c\",\"a:1\"]", "a:1"),
            (
                "\t@docker run -v $(CURDIR):/x a:$(V)\n\t-docker pull b:1\n",
                "b:1 a:$(V)",
            ),
        ] {
            assert_eq!(engine_images(command).join(" "), expected, "{command}");
        }
    }
}
