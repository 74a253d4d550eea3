use super::*;
use std::os::unix::fs::{PermissionsExt as _, symlink};

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// A directory with a file that a planted link leads to.
fn with_victim() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let victim = directory.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    (directory, victim)
}

#[test]
fn new_files_are_private_and_follow_no_link() {
    let (directory, victim) = with_victim();
    let path = |name: &str| directory.path().join(name);
    create_new(&path("new")).unwrap();
    assert_eq!(mode(&path("new")), 0o600);
    symlink(&victim, path("link")).unwrap();
    symlink(path("nothing"), path("dangling")).unwrap();
    for name in ["new", "link", "dangling"] {
        assert_eq!(create_new(&path(name)).unwrap_err().kind(), ErrorKind::AlreadyExists, "{name}");
    }
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
    assert!(!path("nothing").exists());
    create_directories(&path("a/b")).unwrap();
    assert_eq!((mode(&path("a")), mode(&path("a/b"))), (0o700, 0o700));
    assert!(create_directory(&path("a")).is_err());
}

/// The name of the draft is known, so a link may wait there; and one may be where the file goes, or a device.
#[test]
fn replacing_a_file_leaves_the_targets_of_links_alone() {
    let (directory, victim) = with_victim();
    let path = |name: &str| directory.path().join(name);
    symlink(&victim, path("link")).unwrap();
    for place in [path("link"), directory.path().to_owned(), "/dev/null".into()] {
        let refused = replace(&place, b"one").unwrap_err().to_string();
        assert!(refused.contains("is not a regular file"), "{refused}");
    }
    symlink(&victim, path("note.new")).unwrap();
    replace(&path("note"), b"one").unwrap();
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
    assert_eq!(fs::read(path("note")).unwrap(), b"one");
    assert_eq!(mode(&path("note")), 0o600);
    replace(&path("note"), b"two").unwrap();
    assert_eq!(fs::read(path("note")).unwrap(), b"two");
    assert!(!path("note.new").exists());
}

#[test]
fn a_draft_gets_its_name_when_it_is_whole_and_never_anothers() {
    let (directory, victim) = with_victim();
    let place = directory.path().join("out");
    let count = || fs::read_dir(directory.path()).unwrap().count();
    drop(Draft::begin(&place).unwrap());
    assert_eq!(count(), 1, "what was given up is gone");

    let (mut first, second) = (Draft::begin(&place).unwrap(), Draft::begin(&place).unwrap());
    io::Write::write_all(first.file(), b"whole").unwrap();
    assert!(!place.exists());
    first.publish().unwrap();
    let refused = second.publish().unwrap_err().to_string();
    assert!(refused.contains("exists already"), "{refused}");
    assert_eq!((fs::read(&place).unwrap(), mode(&place), count()), (b"whole".to_vec(), 0o600, 2));

    for target in [&victim, &directory.path().join("nothing")] {
        fs::remove_file(&place).unwrap();
        symlink(target, &place).unwrap();
        let refused = Draft::begin(&place).err().unwrap().to_string();
        assert!(refused.contains("exists already"), "{refused}");
    }
}

#[test]
fn a_lock_that_others_could_hold_is_refused() {
    let (directory, victim) = with_victim();
    let home = directory.path().join("home");
    create_directory(&home).unwrap();
    drop(open_lock(&home, "lock").unwrap());
    let lock = home.join("lock");
    assert_eq!(mode(&lock), 0o600);
    drop(open_lock(&home, "lock").unwrap());
    for given in [0o604, 0o640, 0o644, 0o602] {
        set_mode(&lock, given);
        let refused = open_lock(&home, "lock").unwrap_err().to_string();
        assert!(refused.contains("chmod 600") && refused.contains(&format!("{given:o}")), "{refused}");
    }
    fs::remove_file(&lock).unwrap();
    symlink(&victim, &lock).unwrap();
    assert!(open_lock(&home, "lock").unwrap_err().to_string().contains("not a link"));
    fs::remove_file(&lock).unwrap();
    for given in [0o720, 0o702, 0o777, 0o1777] {
        set_mode(&home, given);
        let refused = open_lock(&home, "lock").unwrap_err().to_string();
        assert!(refused.contains("chmod 700"), "{given:o}: {refused}");
    }
    set_mode(&home, 0o755);
    open_lock(&home, "lock").unwrap();
}

#[test]
fn whose_directory_and_whose_lock_it_is_matters() {
    let path = Path::new("place");
    let of = |owner| Access { owner, mode: 0o700 };
    assert!(of(7).check_directory(path, 7).is_ok());
    assert!(of(7).check_directory(path, 0).is_ok(), "prepared by a user for the superuser");
    assert!(of(0).check_directory(path, 7).unwrap_err().to_string().contains("belongs to user 0"));
    assert!(of(7).check_lock(path, 7).is_ok());
    for (owner, user) in [(7, 0), (0, 7), (7, 8)] {
        assert!(of(owner).check_lock(path, user).unwrap_err().to_string().contains("run it as the owner"));
    }
}
