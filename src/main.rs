//! The command: parse, run, print the error, exit code. Everything else is in the library.

#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    landfall::command_line()
}
