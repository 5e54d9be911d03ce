//! Writes the seeds of a target into a folder: `seeds TARGET FOLDER`. Without arguments it lists the
//! targets.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(name), Some(folder)) = (arguments.next(), arguments.next()) else {
        octet_fuzz::TARGETS
            .iter()
            .for_each(|one| println!("{}", one.name));
        return Ok(());
    };
    let target = octet_fuzz::named(&name).ok_or_else(|| format!("no target is called {name}"))?;
    for (number, seed) in (target.seeds)().iter().enumerate() {
        std::fs::write(PathBuf::from(&folder).join(format!("seed-{number}")), seed)?;
    }
    Ok(())
}
