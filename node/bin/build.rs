//! Lists the documentation, so that it is part of the binary: what a node serves is what its version says.

use std::{
    env, fs,
    hash::{DefaultHasher, Hash, Hasher},
    io,
    path::{Path, PathBuf},
};

/// Folders of the repository, and what each of their files that are served ends with.
const SERVED: [(&str, &str); 4] =
    [("docs", ".md"), ("docs/decisions", ".md"), ("specs", ".md"), ("contracts", ".sol")];

fn main() -> io::Result<()> {
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR")?).join("../..").canonicalize()?;
    let mut table = String::from("&[\n");
    for (folder, ending) in SERVED {
        println!("cargo::rerun-if-changed={}", root.join(folder).display());
        for file in files(&root.join(folder), ending)? {
            table += &entry(folder, &file)?;
        }
    }
    fs::write(Path::new(&variable("OUT_DIR")?).join("documents.rs"), table + "]\n")
}

fn variable(name: &str) -> io::Result<String> {
    env::var(name).map_err(|error| io::Error::other(format!("{name}: {error}")))
}

/// The files of a folder with this ending, by name.
fn files(folder: &Path, ending: &str) -> io::Result<Vec<PathBuf>> {
    let mut files =
        fs::read_dir(folder)?.map(|file| file.map(|file| file.path())).collect::<io::Result<Vec<_>>>()?;
    files.retain(|file| file.is_file() && file.to_string_lossy().ends_with(ending));
    files.sort();
    Ok(files)
}

/// A file as the server knows it. All are below `/docs/`, in the folders that they have in the repository.
fn entry(folder: &str, file: &Path) -> io::Result<String> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let folder = folder.strip_prefix("docs").map_or(format!("/{folder}"), str::to_owned);
    let mut hasher = DefaultHasher::new();
    fs::read(file)?.hash(&mut hasher);
    let kind = if name.ends_with(".md") { "markdown" } else { "plain" };
    Ok(format!(
        "    StaticFile {{ path: \"/docs{folder}/{name}\", kind: \"text/{kind}; charset=utf-8\", \
         bytes: include_bytes!({file:?}), gzip: None, tag: \"\\\"{tag:016x}\\\"\", is_immutable: false }},\n",
        tag = hasher.finish(),
    ))
}
