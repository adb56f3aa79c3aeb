//! Regular files and their impostors: devices, pipes, and virtual files. Nothing here waits forever.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

/// Delay before a writer tries again.
const PAUSE: Duration = Duration::from_millis(10);

/// Opens a regular file for reading. Directories, devices, pipes and sockets are rejected: they have no end, or no content.
///
/// Some system files claim to be regular but block; reading them then fails with [`io::ErrorKind::WouldBlock`].
///
/// # Errors
/// Returns the system's error; [`io::ErrorKind::IsADirectory`] for a directory.
pub fn open_regular(path: &Path) -> io::Result<File> {
    open_with_len(path).map(|(file, _)| file)
}

/// Like [`open_regular`], for a file that a directory listing has just reported as regular: it is checked only once it is open.
///
/// # Errors
/// Returns the errors of [`open_regular`].
pub fn open_listed(path: &Path) -> io::Result<File> {
    open_at_once(path).map(|(file, _)| file)
}

/// Opens the file and returns its length.
pub(super) fn open_with_len(path: &Path) -> io::Result<(File, u64)> {
    // Check before opening, because opening a device can have side effects.
    check(&std::fs::metadata(path)?)?;
    open_at_once(path)
}

fn open_at_once(path: &Path) -> io::Result<(File, u64)> {
    let mut options = OpenOptions::new();
    let file = at_once(options.read(true)).open(path)?;
    // Check again, because something else may have taken the name.
    let meta = file.metadata()?;
    check(&meta)?;
    Ok((file, meta.len()))
}

fn check(meta: &std::fs::Metadata) -> io::Result<()> {
    if meta.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if meta.is_file() { Ok(()) } else { Err(io::Error::other("not a regular file")) }
}

/// Reads a whole regular file of at most `max` bytes, with the length it had when it was opened.
///
/// # Errors
/// Returns the errors of [`open_regular`]; [`io::ErrorKind::FileTooLarge`] for a longer file.
pub fn read_regular(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    read_whole(open_with_len(path)?, max)
}

/// Like [`read_regular`], but opens the file like [`open_listed`].
///
/// # Errors
/// Returns the errors of [`read_regular`].
pub fn read_listed(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    read_whole(open_at_once(path)?, max)
}

pub(super) fn read_whole((file, len): (File, u64), max: u64) -> io::Result<Vec<u8>> {
    if len > max {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut content = Vec::with_capacity(usize::try_from(len).unwrap_or(0));
    // Virtual files have no length.
    let limit = if len == 0 { max.saturating_add(1) } else { len };
    file.take(limit).read_to_end(&mut content)?;
    match content.len() as u64 > max {
        true => Err(io::ErrorKind::FileTooLarge.into()),
        false => Ok(content),
    }
}

/// Writes to an existing device or pipe. Gives up if the reader accepts nothing for as long as `patience`.
///
/// # Errors
/// Returns the system's error, also if the pipe has no reader; [`io::ErrorKind::TimedOut`] if `patience` ends. Part of the content may have
/// been written then.
pub fn write_special(path: &Path, content: &[u8], patience: Duration) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = at_once(options.write(true)).open(path)?;
    write_patiently(&mut file, content, patience)
}

/// Like [`write_special`], with the content of a file.
pub(super) fn copy_special(path: &Path, from: &mut File, patience: Duration) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = at_once(options.write(true)).open(path)?;
    let mut piece = vec![0; 64 << 10];
    loop {
        match from.read(&mut piece)? {
            0 => return Ok(()),
            n_bytes => write_patiently(&mut file, &piece[..n_bytes], patience)?,
        }
    }
}

fn write_patiently(file: &mut File, mut content: &[u8], patience: Duration) -> io::Result<()> {
    let mut last_taken = Instant::now();
    while !content.is_empty() {
        match file.write(content) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n_taken) => {
                content = &content[n_taken..];
                last_taken = Instant::now();
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if last_taken.elapsed() >= patience {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                std::thread::sleep(PAUSE);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Moves a file's position past a hole to the next real data: a hole reads as zeros, and may be larger than the disk. Returns whether
/// anything was skipped; on systems without hole detection, nothing is.
///
/// # Errors
/// Returns the system's error.
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub fn skip_hole(file: &mut File) -> io::Result<bool> {
    use io::Seek as _;
    use rustix::fs::{SeekFrom, seek};
    let (Ok(at), len) = (file.stream_position(), file.metadata()?.len()) else { return Ok(false) };
    // Virtual files have no length.
    if at >= len {
        return Ok(false);
    }
    match seek(&*file, SeekFrom::Data(at)) {
        Ok(next) => Ok(next > at),
        // No more data.
        Err(rustix::io::Errno::NXIO) => file.seek(io::SeekFrom::Start(len)).map(|_| true),
        Err(_) => Ok(false),
    }
}

/// Does nothing: holes can only be detected on other systems.
///
/// # Errors
/// Never returns an error.
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub fn skip_hole(_: &mut File) -> io::Result<bool> {
    Ok(false)
}

/// Makes opening, reading and writing non-blocking.
#[cfg(unix)]
fn at_once(options: &mut OpenOptions) -> &mut OpenOptions {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt as _;
    options.custom_flags((OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed())
}

#[cfg(not(unix))]
fn at_once(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_are_opened() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, "text").unwrap();
        assert_eq!(io::read_to_string(open_regular(&path).unwrap()).unwrap(), "text");
        assert_eq!(read_regular(&path, 4).unwrap(), b"text");
        assert_eq!(read_regular(&path, 3).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(open_regular(dir.path()).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        assert_eq!(read_listed(&path, 4).unwrap(), b"text");
        assert_eq!(open_listed(dir.path()).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        assert_eq!(open_regular(&dir.path().join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn holes_are_skipped() {
        use std::io::{Seek as _, SeekFrom};
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        let mut file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
        let far = 1 << 30;
        file.seek(SeekFrom::Start(far)).unwrap();
        file.write_all(b"end").unwrap();
        file.set_len(2 * far).unwrap();
        file.rewind().unwrap();
        let mut passed = Vec::new();
        let mut byte = [0];
        loop {
            let skipped = skip_hole(&mut file).unwrap();
            passed.push((skipped, file.stream_position().unwrap()));
            if file.read(&mut byte).unwrap() == 0 {
                break;
            }
        }
        assert_eq!(passed.last(), Some(&(true, 2 * far)));
        assert!(passed.iter().any(|(skipped, at)| *skipped && *at > far - (1 << 20) && *at <= far), "{passed:?}");
        let mut made_up = File::open("/proc/self/status").unwrap();
        assert!(!skip_hole(&mut made_up).unwrap());
        assert!(io::read_to_string(made_up).unwrap().contains("VmHWM"));
        let path = Path::new("/proc/self/status");
        assert!(String::from_utf8(read_regular(path, 1 << 20).unwrap()).unwrap().contains("VmHWM"));
        assert_eq!(read_regular(path, 9).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_without_a_reader_is_an_error_and_a_stalled_reader_times_out() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        assert_eq!(open_regular(&path).unwrap_err().to_string(), "not a regular file");
        assert_eq!(open_listed(&path).unwrap_err().to_string(), "not a regular file");
        let patience = Duration::from_millis(50);
        let refused = write_special(&path, b"x", patience).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(rustix::io::Errno::NXIO.raw_os_error()));
        // Open for both, so that opening does not block.
        let mut reader = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        write_special(&path, b"word", patience).unwrap();
        let mut taken = [0; 4];
        io::Read::read_exact(&mut reader, &mut taken).unwrap();
        assert_eq!(&taken, b"word");
        let late = write_special(&path, &[0; 1 << 20], patience).unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
    }
}
