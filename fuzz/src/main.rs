//! The loop of libFuzzer, for the target that `ALMANAC_FUZZ_TARGET` names.

#![no_main]

use almanac_fuzz::{Target, seeds, target};
use libfuzzer_sys::fuzz_target;
use std::{env, sync::LazyLock};

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = env::var("ALMANAC_FUZZ_TARGET").expect("ALMANAC_FUZZ_TARGET names a target");
    target(&name).unwrap_or_else(|| panic!("{name} is not a target of fuzz/src/lib.rs"))
});

fuzz_target!(
    init: {
        // `scripts/fuzz` asks for inputs to begin with.
        if let Ok(directory) = env::var("ALMANAC_FUZZ_SEEDS") {
            seeds::write(directory.as_ref());
        }
    },
    |input: &[u8]| TARGET.check(input)
);
