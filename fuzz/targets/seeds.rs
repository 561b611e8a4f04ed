//! Writes good input for each target to `corpus/TARGET/good`, where cargo-fuzz begins.

use libfuzzer_sys as _;

fn main() -> std::io::Result<()> {
    for (target, seed) in ["reader", "footer", "index"].into_iter().zip(landfall::internals::fuzz::seeds()) {
        let folder = std::path::Path::new("corpus").join(target);
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join("good"), seed)?;
    }
    Ok(())
}
