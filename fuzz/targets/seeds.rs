//! Writes valid inputs for each target to `corpus/TARGET`, where cargo-fuzz looks for its first
//! inputs.

use libfuzzer_sys as _;

fn main() -> std::io::Result<()> {
    for target in landfall::internals::TARGETS {
        let folder = std::path::Path::new("corpus").join(target.name);
        std::fs::create_dir_all(&folder)?;
        for (at, seed) in (target.seeds)().into_iter().enumerate() {
            std::fs::write(folder.join(format!("good-{at}")), seed)?;
        }
    }
    Ok(())
}
