//! Creates files and directories for their owner only, and never through a link that someone planted.
//!
//! New files are opened with `O_EXCL` and `O_NOFOLLOW` and mode 0600. A file that replaces another is written beside
//! it, synced and renamed, so that a crash leaves either the old one or the new one complete.

use anyhow::{Context as _, bail, ensure};
use rustix::{
    fs::{CWD, Mode, OFlags, RenameFlags, renameat_with},
    io::Errno,
};
use std::{
    fs::{self, DirBuilder, File, Metadata},
    hash::{BuildHasher as _, RandomState},
    io::{self, ErrorKind},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

/// Mode of files.
const FILE_MODE: u32 = 0o600;

/// Mode of directories.
const DIRECTORY_MODE: u32 = 0o700;

/// Takes group and others out of the mode of whatever this process creates, also in the libraries below.
pub(crate) fn restrict_process() {
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
}

/// Creates a file where there is nothing, not even a link.
pub(crate) fn create_new(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    File::options().read(true).write(true).create_new(true).mode(FILE_MODE).custom_flags(flags).open(path)
}

/// Creates a directory where there is nothing.
pub(crate) fn create_directory(path: &Path) -> anyhow::Result<()> {
    let made = DirBuilder::new().mode(DIRECTORY_MODE).create(path);
    made.with_context(|| format!("cannot make {}", path.display()))
}

/// Creates a directory and those above it that are missing.
pub(crate) fn create_directories(path: &Path) -> anyhow::Result<()> {
    let made = DirBuilder::new().mode(DIRECTORY_MODE).recursive(true).create(path);
    made.with_context(|| format!("cannot make {}", path.display()))
}

/// Writes a file in a directory of ours, in place of the regular file that may be there.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    // A rename would also take the place of a link or of a device such as /dev/null.
    let is_regular = fs::symlink_metadata(path).map_or(true, |found| found.is_file());
    ensure!(is_regular, "{} is not a regular file: choose another name, or remove it", path.display());
    let draft = path.with_extension("new");
    let write = || -> io::Result<()> {
        // A crash may have left it. Removing a link leaves its target alone.
        match fs::remove_file(&draft) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = create_new(&draft)?;
        io::Write::write_all(&mut file, bytes)?;
        file.sync_all()?;
        fs::rename(&draft, path)?;
        sync_directory(parent(path))
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

/// Makes what was created, renamed or removed in a directory durable.
pub(crate) fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// The directory that a file is in.
pub(crate) fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."))
}

/// A file that is being written beside its place, and removed if it does not get there.
///
/// The place may be in a directory that others write to, so the name of the draft cannot be foreseen.
pub(crate) struct Draft {
    place: PathBuf,
    path: PathBuf,
    file: File,
    is_published: bool,
}

impl Draft {
    /// Begins a file whose place must be free.
    pub(crate) fn begin(place: &Path) -> anyhow::Result<Self> {
        ensure_free(place)?;
        let mut name =
            place.file_name().with_context(|| format!("{} names no file", place.display()))?.to_owned();
        name.push(format!(".{:016x}.unfinished", RandomState::new().hash_one(std::process::id())));
        let path = place.with_file_name(name);
        let file = create_new(&path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { place: place.to_owned(), path, file, is_published: false })
    }

    pub(crate) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Gives the file its name, unless another has it by now.
    pub(crate) fn publish(mut self) -> anyhow::Result<()> {
        let cannot = || format!("cannot write {}", self.place.display());
        self.file.sync_all().with_context(cannot)?;
        match renameat_with(CWD, &self.path, CWD, &self.place, RenameFlags::NOREPLACE) {
            Ok(()) => {}
            Err(Errno::EXIST) => ensure_free(&self.place)?,
            // A file system without this kind of rename, such as NFS.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                ensure_free(&self.place)?;
                fs::rename(&self.path, &self.place).with_context(cannot)?;
            }
            Err(error) => return Err(io::Error::from(error)).with_context(cannot),
        }
        self.is_published = true;
        sync_directory(parent(&self.place)).with_context(cannot)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.is_published {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn ensure_free(place: &Path) -> anyhow::Result<()> {
    // A link to nothing counts as well.
    let is_free = matches!(fs::symlink_metadata(place), Err(error) if error.kind() == ErrorKind::NotFound);
    ensure!(is_free, "{} exists already: choose another name, or remove it", place.display());
    Ok(())
}

/// Opens the lock of a directory, creating it, and checks that nobody else can hold it: whoever can open a file, be it
/// for reading, can lock it.
pub(crate) fn open_lock(directory: &Path, name: &str) -> anyhow::Result<File> {
    let path = directory.join(name);
    let metadata = fs::metadata(directory).with_context(|| format!("cannot read {}", directory.display()))?;
    let user = rustix::process::geteuid().as_raw();
    Access::of(&metadata).check_directory(directory, user)?;
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let lock = File::options()
        .create(true)
        .write(true)
        .truncate(false)
        .mode(FILE_MODE)
        .custom_flags(flags)
        .open(&path)
        .with_context(|| format!("cannot open {}: it must be a regular file, not a link", path.display()))?;
    let metadata = lock.metadata().with_context(|| format!("cannot read {}", path.display()))?;
    ensure!(metadata.is_file(), "{} is not a regular file: remove it", path.display());
    Access::of(&metadata).check_lock(&path, user)?;
    Ok(lock)
}

/// Who may do what with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Access {
    owner: u32,
    mode: u32,
}

impl Access {
    fn of(metadata: &Metadata) -> Self {
        Self { owner: metadata.uid(), mode: metadata.mode() & 0o7777 }
    }

    /// Refuses a directory in which others can replace files.
    fn check_directory(self, path: &Path, user: u32) -> anyhow::Result<()> {
        let (Self { owner, mode }, shown) = (self, path.display());
        // The superuser may use a directory that was prepared for it by another user.
        if owner != user && user != 0 {
            bail!("{shown} belongs to user {owner}, this process runs as user {user}: run it as the owner");
        }
        ensure!(
            mode & 0o022 == 0,
            "{shown} can be written to by others (mode {mode:o}): run chmod 700 {shown}"
        );
        Ok(())
    }

    /// Refuses a lock that others can hold.
    fn check_lock(self, path: &Path, user: u32) -> anyhow::Result<()> {
        let (Self { owner, mode }, shown) = (self, path.display());
        ensure!(
            owner == user,
            "{shown} belongs to user {owner}, this process runs as user {user}: run it as the owner of the chain"
        );
        ensure!(
            mode & 0o077 == 0,
            "{shown} can be opened by others (mode {mode:o}), who can hold it: stop what uses it and run chmod 600 {shown}"
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests;
