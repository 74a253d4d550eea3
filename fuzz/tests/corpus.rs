//! Stored inputs and seeds, without a fuzzer: what was found once does not come back.

use almanac_fuzz::{TARGETS, seeds};
use std::{fs, path::Path};

#[test]
fn every_stored_input_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for target in TARGETS {
        let stored = fs::read_dir(folder.join(target.name)).into_iter().flatten();
        for entry in stored {
            let path = entry.expect("an entry").path();
            println!("{}", path.display());
            target.check(&fs::read(path).expect("an input"));
        }
    }
}

#[test]
fn every_seed_holds() {
    for target in TARGETS {
        let inputs = seeds::of(target.name);
        assert!(!inputs.is_empty(), "{} begins with something", target.name);
        inputs.iter().for_each(|input| target.check(input));
    }
}
