# Short names for what is done often. `just` lists them.

default:
    @just --list

# everything that must pass before a commit is pushed
test:
    scripts/test

# the fast part of it, as the fast job of CI
check:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings
    cargo test --workspace --lib

# build, and run the main job on embedded defaults
quickstart:
    scripts/quickstart

# measure against skopeo and the floor
bench *what:
    scripts/bench {{what}}
