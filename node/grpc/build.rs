//! Compiles the proto files, without protoc: to Rust, and to descriptors for reflection.

use protox::prost::Message as _;
use std::{env, error::Error, fs, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let compiled = protox::compile(["almanac.proto", "health.proto"], ["proto"])?;
    let descriptors = PathBuf::from(env::var("OUT_DIR")?).join("descriptors.bin");
    fs::write(descriptors, compiled.encode_to_vec())?;
    tonic_prost_build::configure().build_client(false).build_transport(false).compile_fds(compiled)?;
    Ok(())
}
