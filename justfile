# Short names of common commands. `just` lists them.

default:
    @just --list

# all tests, as before a push
test:
    scripts/test

# the fast tests, as in the fast job of CI
check:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings
    cargo check -p landfall --lib --no-default-features
    cargo test --workspace --lib

# build and run the main job
quickstart:
    scripts/quickstart

# measure against skopeo and the floor
bench *what:
    scripts/bench {{what}}
